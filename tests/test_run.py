"""The one loop: functions as solvers, and the checks of every result."""

from dataclasses import replace

import numpy as np
import pytest

import gramian as gm
from gramian.bounds import certify_image
from gramian.losses import Logistic
from gramian.maps import PairDistances
from gramian.objectives import Composite, LowerBound
from gramian.outcome import InconsistentResultWarning, Outcome, _consistent
from gramian.result import Status

RNG = np.random.default_rng(0)


def gradient_steps(problem, L, settings):
    """A few steps of gradient descent on the factor, each halved until F falls."""
    objective, length = problem.objective, 1.0
    for _ in range(30):
        image = objective.image(L)
        slope, value = objective.gradient_factor(image), objective.value(image)
        while length > 1e-12:
            trial = problem.domain.rescale(L - length * slope)
            if objective.value(objective.image(trial)) < value:
                L, length = trial, 2.0 * length
                break
            length *= 0.5
    return L


def low_rank(n=12, rank=3):
    G = RNG.standard_normal((n, rank))
    return gm.problems.nearest(G @ G.T - 0.1 * np.eye(n))


@pytest.mark.parametrize("rank", [None, 2])
def test_a_function_is_a_solver(rank):
    problem = low_rank()
    exact = gm.minimize(problem, rank=rank, tol=1e-8)
    found = gm.minimize(problem, gradient_steps, rank=rank, tol=1e-6)
    assert found.solver == "gradient_steps" and found.route == ("gradient_steps",)
    assert found.value == pytest.approx(exact.value, rel=1e-4)
    assert found.rank <= (rank or problem.order)
    if rank is None:
        assert found.status is Status.CONVERGED and found.certificate.relative_gap <= 1e-6


def test_a_function_keeps_a_fixed_trace():
    problem = gm.Problem(low_rank(8).objective, gm.Spectrahedron(2.0))
    found = gm.minimize(problem, gradient_steps, tol=1e-5)
    assert np.sum(found.factor**2) == pytest.approx(2.0)
    assert found.value == pytest.approx(gm.minimize(problem, tol=1e-8).value, rel=1e-3)


def test_a_function_that_makes_F_worse_returns_the_start():
    problem, start = low_rank(), 0.1 * RNG.standard_normal((12, 2))
    found = gm.minimize(problem, lambda problem, L, settings: 10.0 * L, init=start, max_iter=5)
    assert found.value <= problem.value(start)


def test_rejects_function_with_invalid_result():
    problem = low_rank()
    with pytest.raises(ValueError, match="shape"):
        gm.minimize(problem, lambda problem, L, settings: np.ones((3, 1)))


def test_constraints_refuse_a_function():
    with pytest.raises(ValueError, match="a problem with constraints is solved by"):
        gm.minimize(gm.problems.maxcut(np.ones((4, 4)) - np.eye(4)), gradient_steps)


def test_callback_is_called_in_the_last_iteration():
    seen = []
    found = gm.minimize(low_rank(), callback=lambda state: seen.append(state.iteration))
    assert seen == list(found.history["iteration"])


def outcome_of(problem, **changes):
    found = gm.minimize(problem)
    return replace(Outcome(found.factor, found.certificate, found.status), **changes)


def test_a_consistent_outcome_passes():
    problem = low_rank()
    outcome = outcome_of(problem)
    assert _consistent(problem, outcome, 1e-6) is outcome


def _unbounded(good):
    """UNBOUNDED without a bound, along a ray on which F rises."""
    changed = _certified(good, gap=None, relative_gap=None)
    return replace(changed, status=Status.UNBOUNDED, ray=np.eye(12)[:, :1])


WRONG = {
    "above its start": lambda good: replace(good, first_value=good.certificate.value - 1.0),
    "not finite": lambda good: replace(good, factor=np.full((12, 1), np.nan)),
    "below its lower": lambda good: _certified(good, value=-5.0),
    "a bound is proved": lambda good: replace(good, status=Status.UNBOUNDED),
    "the ray is missing": _unbounded,
    "converged": lambda good: _certified(good, gap=1.0, relative_gap=0.5),
}


def _certified(good, **changes):
    return replace(good, certificate=replace(good.certificate, **changes))


@pytest.mark.parametrize("fault", WRONG)
def test_a_contradiction_warns_and_lowers_the_status(fault):
    problem = low_rank()
    outcome = WRONG[fault](outcome_of(problem))
    with pytest.warns(InconsistentResultWarning, match=fault):
        found = _consistent(problem, outcome, 1e-6)
    assert found.status in (Status.STALLED, Status.DIVERGED)


class HalfConjugate(Logistic):
    """A loss of a user, whose conjugate is wrong by a factor."""

    def conjugate(self, w):
        return 2.0 * super().conjugate(w)


def test_a_lower_bound_above_F_is_not_a_certificate():
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    problem = gm.Problem(Composite(PairDistances(pairs, 4), HalfConjugate(margin=1.0), C=0.1))
    with pytest.warns(InconsistentResultWarning, match="check_conjugate"):
        found = gm.minimize(problem)
    assert found.status is Status.STALLED
    assert found.certificate.gap is None and "above F" in str(found.certificate)


def test_an_estimated_bound_above_F_is_dropped():
    problem = low_rank()
    image = problem.objective.image(gm.minimize(problem, tol=1e-8).factor)
    value = problem.objective.value(image)
    wrong = LowerBound(value + 1.0, "Fenchel dual point", how="Lanczos", miss=1e-3)
    certificate = certify_image(problem, image, known=wrong)
    assert certificate.relative_gap <= 1e-6 and certificate.proved


@pytest.mark.parametrize("limit", [-1, 2.5])
def test_rejects_a_wrong_iteration_limit_with_and_without_constraints(limit):
    constrained = gm.problems.maxcut(np.ones((4, 4)) - np.eye(4))
    for problem in (low_rank(), constrained):
        with pytest.raises(ValueError, match="max_iter must be a whole number"):
            gm.minimize(problem, max_iter=limit)


def test_rejects_a_problem_as_an_objective():
    with pytest.raises(TypeError, match=r"expected an objective, got a Problem; pass problem\.obj"):
        gm.Problem(low_rank())


def test_rejects_what_is_no_problem_and_no_callback():
    with pytest.raises(TypeError, match="expected a gramian Problem, got int"):
        gm.certify(3, np.eye(3))
    with pytest.raises(TypeError, match="callback must be a function of a State, got int"):
        gm.minimize(gm.problems.nearest(np.eye(3)), callback=3)
