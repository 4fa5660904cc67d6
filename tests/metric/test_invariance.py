"""Where samples lie and in what unit they are measured changes nothing of a learned metric."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from gramian.constraints import local_pairs, local_triplets
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric

LEARNERS = {
    "KTA": KTA(),
    "KTA, lam": KTA(lam=1e-4),
    "KTA, rbf": KTA(kernel="rbf"),
    "KTA, linear": KTA(kernel="linear"),
    "LinearSeparation": LinearSeparation(),
    "LMNN": LMNN(tol=1e-10),
    "LMNN, euclidean": LMNN(neighbor_metric="euclidean", tol=1e-10),
    "DMLEig": DMLEig(tol=1e-7),
    "DMLEig, euclidean": DMLEig(neighbor_metric="euclidean", tol=1e-7),
    "DMLEig, rbf": DMLEig(kernel="rbf"),
    "LMNNEig": LMNNEig(tol=1e-7),
    "TripletMetric": TripletMetric(tol=1e-7),
}
EVERY_LEARNER = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
SHAPES = pytest.mark.parametrize(("n", "d"), [(90, 20), (40, 60)], ids=["tall", "wide"])


def samples(n, d):
    """Labelled samples at 1e6, what float64 makes of them at 0, and their labels."""
    y = np.arange(n) % 3
    far = np.random.default_rng(0).normal(size=(n, d)) + 6 * np.eye(3, d)[y] + 1e6
    return far, far - 1e6, y


def products(fitted, X):
    """The inner products of the mapped samples less their mean: what a metric is."""
    mapped = fitted.transform(X)
    mapped = mapped - mapped.mean(axis=0)
    return mapped @ mapped.T


def assert_same_products(one, other, rtol):
    np.testing.assert_allclose(other, one, atol=rtol * np.abs(one).max())


@FORMS
@SHAPES
@EVERY_LEARNER
def test_a_shift_of_the_samples_changes_nothing(learner, n, d, form):
    far, near, y = samples(n, d)
    expected = products(clone(learner).fit(form(near), y), form(near))
    found = products(clone(learner).fit(form(far), y), form(far))
    assert_same_products(
        expected, found, 2e-8 if type(learner) in (KTA, LinearSeparation) else 1e-4
    )


@FORMS
@SHAPES
@pytest.mark.parametrize(
    "learner",
    [
        LinearSeparation(),
        DMLEig(tol=1e-7),
        LMNN(tol=1e-7),
        LMNNEig(tol=1e-7),
        TripletMetric(tol=1e-7),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_a_shift_changes_nothing_of_pairs_and_triplets(learner, n, d, form):
    far, near, y = samples(n, d)
    similar, dissimilar = local_pairs(near, y, 2)
    pairs = np.vstack([similar, dissimilar])
    same = np.repeat([True, False], [len(similar), len(dissimilar)])
    found = []
    for X in (near, far):
        model = clone(learner)
        if hasattr(model, "fit_pairs"):
            model.fit_pairs(pairs, same, X=form(X))
        else:
            model.fit_triplets(local_triplets(near, y, 2), X=form(X))
        found.append(products(model, form(X)))
    assert_same_products(*found, 1e-8 if isinstance(learner, LinearSeparation) else 1e-4)


@pytest.mark.parametrize("scale", [1e6, 1e-6])
@pytest.mark.parametrize(
    "learner",
    [
        KTA(kernel="rbf"),
        KTA(regularizer="frobenius"),
        LinearSeparation(),
        DMLEig(),
        LMNN(),
        LMNNEig(),
        TripletMetric(tol=1e-7),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_the_unit_of_the_samples_changes_nothing(learner, scale):
    """Of KTA with ‖M − I‖² it does: there I is a metric of a size of its own."""
    _, X, y = samples(90, 12)
    expected = products(clone(learner).fit(X, y), X)
    found = products(clone(learner).fit(scale * X, y), scale * X)
    assert_same_products(expected / np.linalg.norm(expected), found / np.linalg.norm(found), 1e-6)
