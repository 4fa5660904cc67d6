"""Where samples lie and in what unit they are measured changes nothing of a learned metric."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from gramian.constraints import local_pairs, local_triplets
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric
from tests.slow import slow, slow_among, slow_except

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
LONG_FITS = (
    *("KTA, linear", "LMNN", "LMNN, euclidean", "LMNNEig"),
    *("DMLEig, euclidean", "DMLEig, rbf", "TripletMetric"),
)
EVERY_LEARNER = pytest.mark.parametrize("name", slow_among(LEARNERS, *LONG_FITS))
FORMS = pytest.mark.parametrize("form", [np.asarray, slow(sp.csr_array)])
SHAPES = pytest.mark.parametrize(("n", "d"), [slow(90, 20), (40, 60)], ids=["tall", "wide"])


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
def test_fits_are_translation_invariant(name, n, d, form):
    learner = LEARNERS[name]
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
        slow(TripletMetric(tol=1e-7)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_fits_of_pairs_and_triplets_are_translation_invariant(learner, n, d, form):
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


@pytest.mark.parametrize("scale", [slow(1e6), 1e-6])
@pytest.mark.parametrize(
    "learner",
    [
        KTA(kernel="rbf"),
        KTA(regularizer="frobenius"),
        LinearSeparation(),
        slow(DMLEig()),
        slow(LMNN()),
        slow(LMNNEig(tol=1e-8)),
        TripletMetric(tol=1e-7),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_results_are_independent_of_the_unit_of_the_samples(learner, scale):
    """Of KTA with ‖M − I‖² it does: there I is a metric of a size of its own."""
    _, X, y = samples(90, 12)
    expected = products(clone(learner).fit(X, y), X)
    found = products(clone(learner).fit(scale * X, y), scale * X)
    assert_same_products(expected / np.linalg.norm(expected), found / np.linalg.norm(found), 1e-6)


# --- at sizes where parameters are chosen ----------------------------------------------

DEFAULTS = [KTA, LinearSeparation, LMNN, DMLEig, LMNNEig, TripletMetric]
CLOSED_FORMS_FIRST = pytest.mark.parametrize(
    "learner",
    slow_except(DEFAULTS, KTA, LinearSeparation),
    ids=lambda learner: learner.__name__,
)
WINE, KIND = load_wine(return_X_y=True)
IRIS, SPECIES = load_iris(return_X_y=True)
SETS = {
    "wine": (StandardScaler().fit_transform(WINE), KIND),
    "iris": (IRIS, SPECIES),  # in tenths, with many equal distances
}
NAMES = np.array(["c", "a", "b"])


def permuted(X, y):
    order = np.random.default_rng(3).permutation(len(y))
    return X[order], y[order]


def rotated(X, y):
    turn, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(X.shape[1],) * 2))
    return X @ turn, y


CHANGES = {
    "rows and names": lambda X, y: permuted(X, NAMES[y]),
    "columns": lambda X, y: (X[:, ::-1], y),
    "a shift": lambda X, y: (X + np.arange(X.shape[1]), y),
    "a rotation": rotated,
    "a constant column": lambda X, y: (np.insert(X, 2, 3.7, axis=1), y),
    "the last bits": lambda X, y: (
        X * (1 + 1e-15 * np.random.default_rng(5).normal(size=X.shape)),
        y,
    ),
}


def choice(fitted):
    """The parameter that was chosen, by its place in the path."""
    return fitted.path_.chosen


def sorted_distances(fitted, X):
    """All distances of the metric, relative to their mean, whatever the order of the rows."""
    mapped = fitted.transform(X)
    mapped = mapped - mapped.mean(axis=0)
    found = np.sort(pdist(mapped))
    return found / found.mean()


@functools.cache
def as_it_is(learner, name):
    X, y = SETS[name]
    fitted = learner().fit(X, y)
    return choice(fitted), sorted_distances(fitted, X)


@pytest.mark.parametrize("change", slow_except(CHANGES, "rows and names"))
@pytest.mark.parametrize("name", slow_except(SETS, "iris"))
@pytest.mark.parametrize(
    "learner", slow_among(DEFAULTS, DMLEig, LMNNEig), ids=lambda learner: learner.__name__
)
def test_selection_and_metric_are_invariant_to_representation(learner, name, change):
    expected, distances = as_it_is(learner, name)
    X, y = CHANGES[change](*SETS[name])
    fitted = learner().fit(X, y)
    assert choice(fitted) == expected
    np.testing.assert_allclose(sorted_distances(fitted, X), distances, atol=1e-4)


@CLOSED_FORMS_FIRST
def test_results_are_independent_of_order_names_and_constant_columns(learner):
    X, y = SETS["wine"]
    fitted = learner().fit(X, y)
    order = np.random.default_rng(6).permutation(len(y))
    wide = np.insert(X, 2, 3.7, axis=1)
    for A, b in ((X[order], NAMES[y][order]), (wide, y)):
        mapped = learner().fit(A, b).transform(wide if A is wide else X)
        np.testing.assert_allclose(pdist(mapped), pdist(fitted.transform(X)), rtol=1e-6)


@pytest.mark.parametrize("scale", [slow(2.0**10), 2.0**-10, slow(2.0**-30)])
@CLOSED_FORMS_FIRST
def test_a_power_of_two_changes_no_choice(learner, scale):
    """The metric of KTA is another one, for I has a size of its own; what is gained is not."""
    X, y = SETS["wine"]
    scaled = learner().fit(scale * X, y)
    expected, distances = as_it_is(learner, "wine")
    assert scaled.path_.gained == (expected != 0)
    assert scaled.result_.status.converged
    if learner is not KTA:
        assert choice(scaled) == expected
        np.testing.assert_allclose(sorted_distances(scaled, scale * X), distances, atol=1e-4)


@CLOSED_FORMS_FIRST
def test_a_repeated_column_is_a_longer_one(learner):
    X, y = SETS["wine"]
    longer = X * np.where(np.arange(X.shape[1]) == 4, np.sqrt(2.0), 1.0)
    twice = np.column_stack([X, X[:, 4]])
    one, two = learner().fit(longer, y), learner().fit(twice, y)
    assert choice(one) == choice(two)
    found, expected = sorted_distances(two, twice), sorted_distances(one, longer)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@CLOSED_FORMS_FIRST
def test_single_sample_is_mapped_as_in_a_batch(learner):
    X, y = SETS["wine"]
    fitted = learner(tol=1e-2).fit(X, y)
    whole = fitted.transform(X)
    alone = np.vstack([fitted.transform(row[None]) for row in X])
    np.testing.assert_allclose(alone, whole, atol=1e-12 * np.abs(whole).max())


@pytest.mark.parametrize("learner", [LinearSeparation, DMLEig, LMNN, LMNNEig, TripletMetric])
def test_results_are_independent_of_the_order_of_samples_pairs_and_triplets(learner):
    X, y = SETS["wine"]
    rng = np.random.default_rng(7)
    order = rng.permutation(len(y))
    place = np.argsort(order)

    def fitted(samples, places):
        if hasattr(learner, "fit_pairs"):
            similar, dissimilar = local_pairs(X, y, 2)
            pairs = np.vstack([similar, dissimilar])
            same = np.repeat([True, False], [len(similar), len(dissimilar)])
            some = np.arange(len(pairs)) if samples is X else rng.permutation(len(pairs))
            return learner().fit_pairs(places[pairs[some]], same[some], X=samples)
        triplets = local_triplets(X, y, 2)
        some = np.arange(len(triplets)) if samples is X else rng.permutation(len(triplets))
        return learner().fit_triplets(places[triplets[some]], X=samples)

    one, two = fitted(X, np.arange(len(y))), fitted(X[order], place)
    assert choice(one) == choice(two)
    np.testing.assert_allclose(pdist(two.transform(X)), pdist(one.transform(X)), rtol=1e-6)
