"""Unfoldings do not depend on the order and the units of the samples."""

import inspect

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import make_swiss_roll

from gramian import manifold
from gramian.estimators.persistence import Kept
from tests.slow import slow_among, slow_except

RNG = np.random.default_rng(0)
N = 120
ROLL, TURN = make_swiss_roll(N, random_state=0)
Y = np.digitize(TURN, [7.0, 10.0])
ORDER = RNG.permutation(N)
EVERY = np.arange(N)
ROTATION = np.linalg.qr(RNG.normal(size=(3, 3)))[0]

ESTIMATORS = {
    name: cls
    for name, cls in vars(manifold).items()
    if inspect.isclass(cls) and issubclass(cls, Kept)
}
CHANGES = {
    "permuted columns": lambda X: X[:, [2, 0, 1]],
    "shifted": lambda X: X + np.array([300.0, 0.0, -20.0]),
    "scaled up": lambda X: 2.0**30 * X,
    "scaled down": lambda X: 2.0**-30 * X,
    "rotated": lambda X: X @ ROTATION,
    "constant columns": lambda X: np.column_stack([X, np.full((len(X), 2), [0.1, 1e4])]),
    "nothing of the samples": lambda X: X,
}
UNITS = {"scaled up": 2.0**30, "scaled down": 2.0**-30}
NEW = ROLL + 0.3 * RNG.normal(size=ROLL.shape)


@pytest.fixture(scope="module")
def fits():
    """Each estimator fitted to the original samples."""
    found = {}

    def fitted(name):
        if name not in found:
            found[name] = ESTIMATORS[name]().fit(ROLL, Y)
        return found[name]

    return fitted


@pytest.mark.parametrize("how", slow_except(CHANGES, "rotated"))
@pytest.mark.parametrize("name", slow_among(ESTIMATORS, "NeighborLayout"))
def test_result_is_invariant(name, how, fits):
    """Transformed samples with permuted rows and renamed labels."""
    expected, change = fits(name), CHANGES[how]
    for order, side in ((EVERY, Y), (ORDER, 5 - Y[ORDER])):
        found = ESTIMATORS[name]().fit(change(ROLL[order]), side)
        assert found.embedding_.shape == expected.embedding_.shape
        picture = name == "NeighborLayout"  # which has no units, and depends on the graph alone
        unit, limit = (1.0, 1e-6) if picture else (UNITS.get(how, 1.0), np.sqrt(expected.tol))
        places = pdist(expected.embedding_[order]), pdist(found.embedding_) / unit
        np.testing.assert_allclose(places[1], places[0], atol=limit * places[0].max())
        new = distances_to(expected, NEW)[:, order], distances_to(found, change(NEW)) / unit
        np.testing.assert_allclose(new[1], new[0], atol=2 * limit * new[0].max())


def distances_to(fitted, samples):
    """From the places of new samples to those of the fit."""
    return np.linalg.norm(fitted.transform(samples)[:, None] - fitted.embedding_, axis=2)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_single_row_agrees_with_batch(name, fits):
    fitted, new = fits(name), ROLL[:20] + 0.1
    alone = np.concatenate([fitted.transform(row[None]) for row in new])
    np.testing.assert_allclose(alone, fitted.transform(new), rtol=1e-9, atol=1e-9)


def test_the_weights_of_a_layout_belong_to_its_edges():
    expected, found = (manifold.NeighborLayout(rounds=3).fit(data) for data in (ROLL, ROLL[ORDER]))
    by_edge = dict(zip(map(tuple, expected.graph_.edges.tolist()), expected.weights_, strict=True))
    edges = np.sort(ORDER[found.graph_.edges], axis=1)
    np.testing.assert_allclose(found.weights_, [by_edge[tuple(e)] for e in edges.tolist()])
