"""Kernels and clusters do not depend on the order, the names and the units of what they see."""

import inspect

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from gramian import kernel
from gramian.estimators.persistence import Kept
from gramian.kernel import NPKL, InductiveKernel, KernelKMeans, RegPCP
from gramian.kernel._links import gather
from tests.slow import slow_among, slow_except

RNG = np.random.default_rng(0)
N = 150
MOONS, SIDES = make_moons(N, noise=0.15, random_state=0)
X = np.column_stack([MOONS, 0.2 * RNG.normal(size=(N, 2))])
KNOWN = np.where(np.arange(N) % 4 == 0, SIDES, -1)
"""Labels of a fourth: enough of them to hold some out, so that parameters are chosen."""
ORDER = RNG.permutation(N)
ROTATION = np.linalg.qr(RNG.normal(size=(4, 4)))[0]

ESTIMATORS = {
    name: cls
    for name, cls in vars(kernel).items()
    if inspect.isclass(cls) and issubclass(cls, Kept)
}
MAKERS = ESTIMATORS | {
    "NPKL with lam='auto'": lambda: NPKL(lam="auto"),
    "KernelKMeans of a Gaussian": lambda: KernelKMeans(n_clusters=2, kernel="rbf"),
}
EVERY = np.arange(N)
NAMES = np.array(["west", "east"])
CHANGES = {
    "permuted rows": (X[ORDER], KNOWN[ORDER], ORDER),
    "permuted columns": (X[:, [2, 0, 3, 1]], KNOWN, EVERY),
    "renamed labels": (X, np.where(KNOWN < 0, -1, 7 - KNOWN), EVERY),
    "labels that are words": (X, np.where(KNOWN < 0, "", NAMES[KNOWN]), EVERY),
    "shifted": (X + np.array([300.0, 0.0, -20.0, 1.0]), KNOWN, EVERY),
    "scaled up": (2.0**30 * X, KNOWN, EVERY),
    "scaled down": (2.0**-30 * X, KNOWN, EVERY),
    "rotated": (X @ ROTATION, KNOWN, EVERY),
    "constant columns": (np.column_stack([X, np.full((N, 2), [0.1, 1e4])]), KNOWN, EVERY),
}
CHOICES = ("shrinkage_", "lam_", "n_clusters_")


@pytest.fixture(scope="module")
def fits():
    """Each estimator fitted to the samples as they are."""
    found = {}

    def fitted(name):
        if name not in found:
            found[name] = MAKERS[name]().fit(X, KNOWN)
        return found[name]

    return fitted


def gram(estimator, rows):
    factor = estimator.kernel_factor_[rows]
    return factor @ factor.T


@pytest.mark.parametrize("how", slow_except(CHANGES, "permuted rows"))
@pytest.mark.parametrize("name", slow_among(MAKERS, "NPKL with lam='auto'"))
def test_the_answer_is_the_same(name, how, fits):
    data, known, order = CHANGES[how]
    expected, found = fits(name), MAKERS[name]().fit(data, known)
    for choice in CHOICES:
        if hasattr(expected, choice):
            assert getattr(found, choice) == pytest.approx(getattr(expected, choice)), choice
    if hasattr(expected, "labels_"):
        assert adjusted_rand_score(expected.labels_[order], found.labels_) == 1.0
        assert adjusted_rand_score(expected.predict(X)[order], found.predict(data)) == 1.0
    if hasattr(expected, "kernel_factor_"):
        limit = 10 * np.sqrt(expected.tol) * np.abs(gram(expected, EVERY)).max()
        np.testing.assert_allclose(gram(found, EVERY), gram(expected, order), atol=limit)


@pytest.mark.parametrize("name", slow_among(MAKERS, "NPKL with lam='auto'"))
def test_single_row_gives_the_same_result_as_in_a_batch(name, fits):
    fitted = fits(name)
    new = X[:20] + 0.01
    for use in ("transform", "predict"):
        if hasattr(fitted, use):
            batch = getattr(fitted, use)(new)
            alone = np.concatenate([getattr(fitted, use)(row[None]) for row in new])
            np.testing.assert_allclose(alone, batch, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_links_select_the_same_number_of_waves():
    """RegPCP takes more waves where links held out ask for them."""
    expected, found = RegPCP().fit(X, KNOWN), RegPCP().fit(X[ORDER], KNOWN[ORDER])
    assert found.basis_.shape == expected.basis_.shape


def test_links_drawn_from_many_labels_are_the_same():
    labels, order = np.repeat([0, 1, 2], [200, 150, 50]), RNG.permutation(400)
    expected = gather(400, labels, order=EVERY_OF_400)
    names = np.array([9, 4, 6])[labels]
    place = np.argsort(order)
    found = gather(400, names[order], order=place)
    pairs = np.sort(order[found.pairs], axis=1)
    assert {*map(tuple, pairs.tolist())} == {*map(tuple, expected.pairs.tolist())}


EVERY_OF_400 = np.arange(400)


def test_parts_held_out_do_not_depend_on_names_and_order():
    fits = [
        InductiveKernel().fit(data, known)
        for data, known in ((X, KNOWN), (X[ORDER], np.where(KNOWN < 0, -1, 5 - KNOWN)[ORDER]))
    ]
    np.testing.assert_allclose(fits[1].path_.errors, fits[0].path_.errors)
