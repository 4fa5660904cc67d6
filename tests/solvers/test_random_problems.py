"""A sample of the robustness sweep: whatever the problem, the default solver tells the truth."""

from functools import cache
from itertools import islice

import numpy as np
import pytest

import gramian as gm
from benchmarks import robustness
from benchmarks.harness.process import ChildResult
from benchmarks.random_problems import KINDS, RandomProblem, random_problem, rescaled
from gramian.losses import Logistic, Squared, SquaredHinge
from gramian.maps import Entries, PairDistances, triplet_margins
from gramian.objectives import Composite
from tests.slow import slow_except

SEEDS = range(250)
SMALL = 12
ONCE = ("entries", "distances", "triplets")
"""Kinds that are sampled once; the others are sampled twice."""


@cache
def sample() -> list[int]:
    """The first small problems of each kind."""
    drawn = [random_problem(seed) for seed in SEEDS]
    small = [problem for problem in drawn if problem.order <= SMALL]
    chosen = []
    for kind in KINDS:
        count = 1 if kind.endswith(ONCE) else 2
        chosen += list(islice((p.seed for p in small if p.kind == kind), count))
    return chosen


FIRSTS = {random_problem(seed).kind: seed for seed in reversed(sample())}.values()


@pytest.mark.parametrize("seed", slow_except(sample(), *FIRSTS))
def test_the_default_solver_tells_the_truth(seed):
    """No false bound, an honest status, a finite point in the domain, no warning."""
    found = robustness.examine(random_problem(seed), seconds=0.5, reference_seconds=0.1)
    faults = (robustness.FALSE, robustness.WRONG, robustness.HANG, robustness.ERROR)
    assert found.verdict not in faults, found.reason
    assert not found.warned


@pytest.mark.parametrize("seed", [109, 367, 731])
def test_the_value_is_that_of_the_factor(seed):
    """Badly scaled problems on which a solver's own running value had drifted."""
    problem = random_problem(seed).problem
    result = gm.minimize(problem, time_limit=1.0)
    assert result.value == result.certificate.value == problem.value(result.factor)
    if result.certificate.gap is not None:
        short = result.value - result.certificate.lower_bound - result.certificate.gap
        assert abs(short) <= 1e-15 * abs(result.value)


def test_the_sample_has_every_kind_and_most_twists():
    seeds = sample()
    problems = [random_problem(seed) for seed in seeds]
    assert {problem.kind for problem in problems} == set(KINDS)
    assert len({twist for problem in problems for twist in problem.twists}) >= 12


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_a_seed_is_one_problem(seed):
    first, second = random_problem(seed), random_problem(seed)
    L = np.random.default_rng(seed).standard_normal((first.order, 2))
    assert first.label == second.label
    assert first.problem.value(L) == second.problem.value(L)


@pytest.mark.parametrize("seed", range(60))
def test_other_scales_leave_a_problem_what_it_is(seed):
    """F at the stretched factor is one multiple of the plain F, for every factor."""
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    factors = [rng.standard_normal((problem.order, k)) for k in (1, 3)]
    plain = [problem.plain.value(L) for L in factors]
    values = [problem.problem.value(problem.from_plain(L)) for L in factors]
    assert plain[0] * values[1] == pytest.approx(plain[1] * values[0], rel=1e-9)
    np.testing.assert_allclose(problem.to_plain(problem.from_plain(factors[0])), factors[0])


# --- the sweep itself sees what is wrong ---------------------------------------------


@cache
def easy() -> tuple[RandomProblem, gm.Result]:
    """A problem of the sweep that is solved, and its solution."""
    for seed in SEEDS:
        problem = random_problem(seed)
        if problem.kind == "quadratic" and not problem.twists and problem.order <= SMALL:
            return problem, gm.minimize(problem.problem)
    raise AssertionError("no such problem")


def verdict(problem, result):
    found = robustness.Examined(0)
    found.value = result.value
    reference = robustness.find_reference(problem, result, 0.2)
    robustness.judge(found, problem, result, reference)
    return found.verdict


def forged(result, **certificate):
    """The result with another certificate."""
    parts = {**vars(result.certificate), **certificate}
    return gm.Result(**{**vars(result), "certificate": gm.Certificate(**parts)})


def test_a_true_result_passes():
    assert verdict(*easy()) == robustness.CERTIFIED


def test_a_bound_that_claims_too_much_is_seen():
    """A point well above the optimum with a gap of nothing."""
    problem, result = easy()
    far = 1.1 * result.factor
    value = problem.problem.value(far)
    claimed = forged(result, value=value, gap=0.0, relative_gap=0.0)
    moved = gm.Result(**{**vars(claimed), "factor": far, "value": value})
    assert verdict(problem, moved) == robustness.FALSE


def test_convergence_that_is_none_is_seen():
    """A point well above the optimum whose residuals were said to be small."""
    problem, result = easy()
    far = 1.1 * result.factor
    value = problem.problem.value(far)
    claimed = forged(
        result, value=value, gap=None, relative_gap=None, complementarity=0.0, lambda_min=0.0
    )
    moved = gm.Result(**{**vars(claimed), "factor": far, "value": value})
    assert verdict(problem, moved) == robustness.WRONG


def test_a_minimum_called_unbounded_is_seen():
    problem, result = easy()
    fallen = gm.Result(**{**vars(result), "status": gm.Status.UNBOUNDED})
    assert verdict(problem, fallen) == robustness.WRONG


@pytest.mark.parametrize("change", ["value", "factor", "certificate"])
def test_a_result_at_odds_with_itself_is_seen(change):
    problem, result = easy()
    other = {
        "value": {"value": result.value + 1e-3 * abs(result.value)},
        "factor": {"factor": 1.01 * result.factor},
        "certificate": {"certificate": forged(result, value=2 * result.value).certificate},
    }
    assert robustness.broken(problem.problem, result) is None
    moved = gm.Result(**{**vars(result), **other[change]})
    assert robustness.broken(problem.problem, moved) is not None


@pytest.mark.parametrize("loss", ["squared hinge", "smoothed hinge", "logistic", "soft-min"])
def test_the_conic_models_have_the_optimum(loss):
    """The factor from the conic model is as good as what the library finds."""
    pytest.importorskip("clarabel")
    problem = next(
        random_problem(seed).plain
        for seed in sample()
        if random_problem(seed).kind == f"{loss} of distances"
    )
    factor = robustness.conic_factor(problem, 5.0)
    best = gm.minimize(problem, time_limit=1.0).value
    size = robustness.sizes(problem, best).all
    assert problem.value(factor) <= best + 1e-6 * size


def test_a_hang_is_ended():
    with pytest.raises(robustness.HangError), robustness.alarm(0.05):
        while True:
            pass


class OneBadSeed:
    """A context whose child processes do not survive one seed."""

    def __init__(self, bad, *, timed_out):
        self.bad, self.timed_out = bad, timed_out

    def in_child(self, path, kwargs, timeout, *, threads):
        if self.bad in kwargs["seeds"]:
            return ChildResult(timed_out=self.timed_out, error="gone")
        return ChildResult([robustness.Examined(seed, verdict="fine") for seed in kwargs["seeds"]])


@pytest.mark.parametrize(
    ("timed_out", "expected"), [(True, robustness.HANG), (False, robustness.ERROR)]
)
def test_a_process_that_ends_badly_costs_one_problem(timed_out, expected):
    examined = robustness.examine_block(OneBadSeed(3, timed_out=timed_out), [1, 2, 3, 4])
    assert [one.verdict for one in examined] == ["fine", "fine", expected, "fine"]


# --- the same problem in other words -------------------------------------------------


def points(seed: int) -> tuple[np.random.Generator, int]:
    rng = np.random.default_rng(seed)
    return rng, int(rng.integers(3, 9))


def quadratic(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    A, B = (S @ S.T / n + 0.1 * np.eye(n) for S in rng.standard_normal((2, n, n)))
    C = rng.standard_normal((n, n))
    return [A, B, C + C.T]


def composite(rng: np.random.Generator, n: int, order: np.ndarray) -> gm.Problem:
    """A loss of distances, entries or triplets of points in another order."""
    kind = rng.integers(3)
    rows = np.argsort(rng.random((3 * n, n)), axis=1)[:, :3]
    target = rng.uniform(0.5, 2.0, 3 * n)
    if kind == 0:
        map, loss = Entries(order[rows[:, :2]], n), Squared(target)
    elif kind == 1:
        map, loss = PairDistances(order[rows[:, :2]], n), Logistic(target)
    else:
        map, loss = triplet_margins(order[rows], n), SquaredHinge(target)
    return gm.Problem(Composite(map, loss, 0.3))


def assert_same_minimum(first, second, scale=1.0):
    """Both intervals [lower bound, value] hold F*, and both values are it to the tolerance."""
    size = 1e-9 * max(abs(scale * first.value), abs(second.value))
    assert scale * first.certificate.lower_bound <= second.value + size
    assert second.certificate.lower_bound <= scale * first.value + size
    assert first.status is second.status is gm.Status.CONVERGED
    assert second.value == pytest.approx(scale * first.value, rel=2.1e-6)


@pytest.mark.parametrize("factor", [1e-6, 30.0, 1e6])
@pytest.mark.parametrize("seed", range(2))
def test_scaling_the_objective_scales_value_and_gap(seed, factor):
    rng, n = points(seed)
    for problem in (gm.problems.quadratic(*quadratic(rng, n)), composite(rng, n, np.arange(n))):
        scaled = gm.Problem(rescaled(problem.objective, factor, 1.0))
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
def test_other_units_of_the_matrix_leave_the_minimum(seed, size):
    rng, n = points(seed)
    for problem in (gm.problems.quadratic(*quadratic(rng, n)), composite(rng, n, np.arange(n))):
        moved = gm.Problem(rescaled(problem.objective, 1.0, size))
        assert_same_minimum(gm.minimize(problem), gm.minimize(moved))


@pytest.mark.parametrize("seed", range(6))
def test_a_rotation_of_the_basis_leaves_the_minimum(seed):
    rng, n = points(seed)
    data = quadratic(rng, n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    turned = [Q @ S @ Q.T for S in data]
    assert_same_minimum(
        gm.minimize(gm.problems.quadratic(*data)),
        gm.minimize(gm.problems.quadratic(*((S + S.T) / 2 for S in turned))),
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_permutation_of_the_points_leaves_the_minimum(seed):
    _, n = points(seed)
    order = np.random.default_rng(100 + seed).permutation(n)
    first, second = (
        composite(np.random.default_rng(seed), n, places) for places in (np.arange(n), order)
    )
    assert_same_minimum(gm.minimize(first), gm.minimize(second))
