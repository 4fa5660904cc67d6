"""Random losses of maps: claims of the default solver, and the same problem in other forms."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from benchmarks._attack.composites import LEAST, LOSSES
from benchmarks._attack.examine import draw, examine
from gramian.losses import Logistic, Squared, SquaredHinge
from gramian.maps import Entries, Mix, PairDistances, triplet_margins
from gramian.objectives import Composite
from tests.slow import slow_except

KINDS = [(map, loss) for loss in LOSSES for map in LEAST]


@cache
def first_of_each_kind() -> dict[tuple[str, str], int]:
    """The first small random problem with each map and loss."""
    found: dict[tuple[str, str], int] = {}
    for index in range(200):
        instance = draw(0, index, 0.0, "composite")
        if instance.problem.order <= 12 and "shifted" not in instance.twists:
            found.setdefault(instance.twists[:2], index)
    return found


@pytest.mark.parametrize("kind", slow_except(KINDS, *KINDS[::4]), ids="-".join)
def test_default_solver_makes_no_false_claim(kind):
    assert examine(0, first_of_each_kind()[kind], 0.0, "composite")["alarms"] == []


@pytest.mark.parametrize("index", [6, 29, 38])
def test_the_value_is_that_of_the_factor(index):
    instance = draw(0, index, 0.0, "composite")
    assert {"scaled", "ill-scaled"} & set(instance.twists)
    problem = instance.problem
    result = gm.minimize(problem, time_limit=1.0)
    assert result.value == result.certificate.value == problem.value(result.factor)
    if result.certificate.gap is not None:
        short = result.value - result.certificate.lower_bound - result.certificate.gap
        assert abs(short) <= 1e-15 * abs(result.value)


# --- the same problem in other forms -------------------------------------------------


def points(seed: int) -> tuple[np.random.Generator, int]:
    rng = np.random.default_rng(seed)
    return rng, int(rng.integers(3, 9))


def quadratic(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    A, B = (S @ S.T / n + 0.1 * np.eye(n) for S in rng.standard_normal((2, n, n)))
    C = rng.standard_normal((n, n))
    return [A, B, C + C.T]


def scaled_quadratic(data: list[np.ndarray], factor: float = 1.0, size: float = 1.0) -> gm.Problem:
    """factor · F(M/size)."""
    A, B, C = data
    return gm.problems.quadratic(
        np.sqrt(factor) / size * A, factor / size**2 * B, factor / size * C
    )


def composite(
    rng: np.random.Generator, n: int, order: np.ndarray, factor: float = 1.0, size: float = 1.0
) -> gm.Problem:
    """factor · F(M/size), F a loss of distances, entries or triplets of points in another order."""
    kind = rng.integers(3)
    rows = np.argsort(rng.random((3 * n, n)), axis=1)[:, :3]
    target = rng.uniform(0.5, 2.0, 3 * n)
    if kind == 0:
        map, loss = Entries(order[rows[:, :2]], n), Squared(target, weight=factor)
    elif kind == 1:
        map, loss = PairDistances(order[rows[:, :2]], n), Logistic(target, weight=factor)
    else:
        map, loss = triplet_margins(order[rows], n), SquaredHinge(target, weight=factor)
    if size != 1.0:
        map = Mix(map, sp.eye_array(map.size, format="csr") / size)
    return gm.Problem(Composite(map, loss, 0.3 * factor / size))


def assert_same_minimum(first, second, scale=1.0):
    """Both intervals [lower bound, value] hold F*, and both values are it to the tolerance."""
    size = 1e-9 * max(abs(scale * first.value), abs(second.value))
    assert scale * first.certificate.lower_bound <= second.value + size
    assert second.certificate.lower_bound <= scale * first.value + size
    assert first.status is second.status is gm.Status.CONVERGED
    assert second.value == pytest.approx(scale * first.value, rel=2.1e-6)


def scaled_pairs(seed: int, **scales: float):
    """A quadratic and a loss, each with the same problem in other scales."""
    rng, n = points(seed)
    data = quadratic(rng, n)
    yield scaled_quadratic(data), scaled_quadratic(data, **scales)
    state = rng.bit_generator.state
    plain = composite(rng, n, np.arange(n))
    rng.bit_generator.state = state
    yield plain, composite(rng, n, np.arange(n), **scales)


@pytest.mark.parametrize("factor", [1e-6, 30.0, 1e6])
@pytest.mark.parametrize("seed", range(2))
def test_scaling_the_objective_scales_value_and_gap(seed, factor):
    for problem, scaled in scaled_pairs(seed, factor=factor):
        first, second = gm.minimize(problem), gm.minimize(scaled)
        assert_same_minimum(first, second, factor)
        at_same_point = gm.certify(scaled, first.factor).gap
        assert at_same_point == pytest.approx(
            factor * gm.certify(problem, first.factor).gap,
            rel=1e-6,
            abs=1e-12 * factor * abs(first.value),
        )


@pytest.mark.parametrize("size", [1e-6, 30.0, 1e6])
@pytest.mark.parametrize("seed", range(2))
def test_minimum_is_equivariant_to_units_of_the_matrix(seed, size):
    for problem, moved in scaled_pairs(seed, size=size):
        assert_same_minimum(gm.minimize(problem), gm.minimize(moved))


@pytest.mark.parametrize("seed", range(6))
def test_minimum_is_invariant_to_rotations_of_the_basis(seed):
    rng, n = points(seed)
    data = quadratic(rng, n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    turned = [Q @ S @ Q.T for S in data]
    assert_same_minimum(
        gm.minimize(gm.problems.quadratic(*data)),
        gm.minimize(gm.problems.quadratic(*((S + S.T) / 2 for S in turned))),
    )


@pytest.mark.parametrize("seed", range(5))
def test_minimum_is_invariant_to_permutations(seed):
    _, n = points(seed)
    order = np.random.default_rng(100 + seed).permutation(n)
    first, second = (
        composite(np.random.default_rng(seed), n, places) for places in (np.arange(n), order)
    )
    assert_same_minimum(gm.minimize(first), gm.minimize(second))
