"""First-order steps in float32: the same optimum, certified in float64."""

import numpy as np
import pytest

import gramian as gm
from gramian.arrays.places import in_single
from gramian.metric import DMLEig
from gramian.objectives import Composite
from tests.cases import CASES


@pytest.fixture
def seen(monkeypatch):
    """The precisions of the factors that objectives are asked about."""
    kinds, image = [], Composite.image

    def spied(self, L):
        kinds.append(str(L.dtype))
        return image(self, L)

    monkeypatch.setattr(Composite, "image", spied)
    return kinds


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_optimum_is_reached_and_the_bound_is_true(case):
    found = gm.minimize(case.problem, tol=1e-6, dtype="float32")
    assert found.status is gm.Status.CONVERGED
    size = max(abs(case.optimum), case.problem.scale)
    assert found.value <= case.optimum + 2e-6 * size
    assert found.certificate.lower_bound <= case.optimum + 1e-9 * size
    assert found.factor.dtype == np.float64


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def completion(n=60, rank=3, seed=0):
    rng = np.random.default_rng(seed)
    rows, cols = np.nonzero(rng.random((n, n)) < 0.4)
    values = (rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n)))[rows, cols]
    return gm.problems.nuclear_completion(rows, cols, values, (n, n), lam=2.0)


def test_sweeps_use_float32_until_its_precision_is_insufficient(seen):
    found = gm.minimize(completion(), "lbfgs", rank=12, tol=1e-9, dtype=np.float32, max_iter=60)
    assert found.certificate.relative_gap <= 2e-8  # float32 alone ends above 1e-6
    first = seen.index("float32")
    last = len(seen) - 1 - seen[::-1].index("float32")
    assert last - first > 10 and seen[last + 1 :].count("float64") > 10
    assert set(seen[last + 1 :]) == {"float64"}


def test_default_dtype_is_float64(seen):
    for dtype in (None, "float64", float):
        gm.minimize(completion(), "lbfgs", rank=12, tol=1e-3, dtype=dtype)
    assert set(seen) == {"float64"}


@pytest.mark.parametrize("dtype", ["int32", "float16", "single precision", 3.0])
def test_rejects_other_dtypes(dtype):
    with pytest.raises(ValueError, match='dtype must be None, "float32" or "float64"'):
        gm.minimize(completion(), dtype=dtype)


def test_samples_of_float32_are_learned_from_in_float32(seen, rng):
    X = np.vstack([rng.standard_normal((40, 5)), rng.standard_normal((40, 5)) + 1.0])
    y = np.repeat([0, 1], 40)
    double = DMLEig(shrinkage=0.0).fit(X.astype(np.float32).astype(float), y)
    assert set(seen) == {"float64"}
    seen.clear()
    single = DMLEig(shrinkage=0.0).fit(X.astype(np.float32), y)
    assert "float32" in seen
    assert single.certificate_.relative_gap <= 1e-4
    assert single.result_.value >= double.certificate_.lower_bound - 1e-6


def test_numbers_beyond_float32_end_in_float64(rng):
    pairs = np.array([(i, j) for i in range(6) for j in range(i)])
    lengths = 1e60 * (1.0 + rng.random(len(pairs)))
    problem = gm.Problem(
        Composite(gm.maps.PairDistances(pairs, 6), gm.losses.Squared(lengths), C=1e30)
    )
    found = gm.minimize(problem, dtype="float32", tol=1e-6)
    assert found.status is gm.Status.CONVERGED


def test_maps_without_numbers_are_shared(rng):
    edges = gm.maps.PairDistances(np.array([[0, 1], [1, 2]]), 3)
    assert in_single(edges) is edges
    seen = gm.maps.Congruence(edges, rng.standard_normal((3, 2)))
    small = in_single(seen)
    assert small.X.dtype == np.float32 and small.base is edges and seen.X.dtype == np.float64
