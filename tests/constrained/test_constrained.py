"""Problems with linear constraints: known optima, valid bounds, rays, rejected input."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

import gramian as gm
from gramian.common import clock
from gramian.constrained.certify import constrained_certificate
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate
from gramian.constrained.polish import polished
from gramian.constrained.referee import ConstrainedReferee
from gramian.losses import Squared
from gramian.maps import Entries, PairDistances, Stack
from gramian.methods.base import Settings
from gramian.objectives import Composite, Linear
from gramian.objectives.dense import value_dense
from gramian.problems.manifold import exact_mvu
from gramian.reductions.feature_scaling import FeatureScaling
from tests.constrained.programs import instance, optimum

METHODS = ("augmented-lagrangian", "dual-newton", "splitting")


def problem_of(given):
    below = {"A_ub": list(given.B), "b_ub": given.h} if len(given.h) else {}
    return gm.problems.sdp(given.C, list(given.A), given.b, **below)


def weights(n, seed=0):
    W = np.random.default_rng(seed).random((n, n))
    W = W + W.T
    np.fill_diagonal(W, 0.0)
    return W


def diagonal(n):
    return Entries(np.column_stack([np.arange(n)] * 2), n)


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("solver", ["auto", *METHODS])
def test_random_programs_against_clarabel(solver, seed):
    given = instance(seed, largest=8)
    word, best = optimum(given)
    found = gm.minimize(problem_of(given), solver, tol=1e-4, time_limit=20)
    expected = {"solved": "CONVERGED", "infeasible": "INFEASIBLE", "unbounded": "UNBOUNDED"}
    assert found.status.name == expected[word]
    if word == "solved":
        size = max(abs(best), 1e-3)
        assert found.certificate.lower_bound <= best + 1e-7 * size
        assert abs(found.value - best) <= 3e-4 * size
        assert found.certificate.violation <= 1e-4


@pytest.mark.parametrize("solver", METHODS)
def test_gap_and_dual_point_of_maxcut_are_valid(solver):
    problem = gm.problems.maxcut(weights(20))
    found = gm.minimize(problem, solver, tol=1e-6)
    assert found.status is gm.Status.CONVERGED
    C = problem.objective.C.dense()
    slack = C - np.diag(found.dual)
    assert np.linalg.eigvalsh(slack)[0] >= -1e-12
    assert np.sum(found.dual) == pytest.approx(found.certificate.lower_bound, rel=1e-9)
    assert found.value - np.sum(found.dual) <= found.certificate.gap * (1 + 1e-9)
    again = gm.certify(problem, found.factor, dual=found.dual)
    assert again.relative_gap <= 1e-6


def test_unit_diagonal_agrees_with_other_methods():
    problem = gm.problems.maxcut(weights(30))
    quick = gm.minimize(problem, "unit-diagonal", tol=1e-6)
    slow = gm.minimize(problem, "augmented-lagrangian", tol=1e-6)
    assert quick.status is slow.status is gm.Status.CONVERGED
    assert quick.value == pytest.approx(slow.value, rel=3e-6)
    assert quick.certificate.violation <= 1e-14


def test_large_maxcut_is_proved_by_a_sparse_factorisation():
    n = 1600
    ring = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1], format="lil")
    ring[0, n - 1] = ring[n - 1, 0] = 1.0
    found = gm.minimize(gm.problems.maxcut(sp.csr_array(ring)), tol=1e-4)
    assert found.status is gm.Status.CONVERGED
    assert found.certificate.proved
    assert -found.value == pytest.approx(n, rel=1e-4)  # an even ring is cut entirely


def test_a_quadratic_objective_under_constraints_is_the_nearest_correlation_matrix():
    """Higham's 3 × 3 example (2002), whose solution is invariant to reversing the order."""
    T = np.array([[2.0, -1, 0], [-1, 2, -1], [0, -1, 2]])
    i, j = np.triu_indices(3)
    loss = Squared(T[i, j], weight=np.where(i == j, 1.0, 2.0))
    objective = Composite(Entries(np.column_stack([i, j]), 3), loss)
    problem = gm.Problem(objective, constraints=(gm.Constraint.equal(diagonal(3), 1.0),))
    found = gm.minimize(problem, tol=1e-7)
    assert found.status is gm.Status.CONVERGED
    np.testing.assert_allclose(np.diag(found.matrix()), 1.0, atol=1e-7)
    nearest = [[1, -0.8084, 0.1916], [-0.8084, 1, -0.6562], [0.1916, -0.6562, 1]]
    M = found.matrix()
    assert M[0, 1] == pytest.approx(M[1, 2], abs=1e-3)
    assert found.value <= value_dense(objective, np.array(nearest)) + 1e-3


def test_a_fixed_trace_and_bounds_on_both_sides():
    """The least eigenvalue of C, with M_00 held below a half."""
    C = np.diag([0.0, 1.0, 3.0])
    bound = gm.Constraint(Entries([[0, 0]], 3), 0.1, 0.5)
    problem = gm.Problem(Linear(C), gm.Spectrahedron(1.0), constraints=bound)
    for solver in METHODS:
        found = gm.minimize(problem, solver, tol=1e-6)
        assert found.status is gm.Status.CONVERGED
        assert found.value == pytest.approx(0.5, abs=1e-5)
        assert found.dual[0] == pytest.approx(-1.0, abs=1e-3)


def test_blocks_and_nonnegative_variables():
    """min x₁ + 2x₂ + tr M with x₁ + x₂ + M_00 = 1, M_11 = 1."""
    C = [np.eye(2), np.array([0.5, 2.0])]
    A = [[np.diag([1.0, 0]), [1.0, 1.0]], [np.diag([0, 1.0]), [0.0, 0.0]]]
    problem = gm.problems.sdp(C, A, [1.0, 1.0])
    assert [len(rows) for rows in Model.of(problem).blocks] == [1, 1, 1, 1]
    found = gm.minimize(problem, tol=1e-6)
    assert found.value == pytest.approx(1.5, rel=1e-5)


@pytest.mark.slow
def test_row_that_makes_all_feasible_points_singular():
    """⟨J, M⟩ = 0 beside a diagonal of 1, as in graph partitioning: no M is definite."""
    n = 30
    W = (weights(n) > 1.0).astype(float)
    L = np.diag(W.sum(1)) - W
    A = [np.ones((n, n)), *(np.diag(np.eye(n)[k]) for k in range(n))]
    problem = gm.problems.sdp(L, A, np.r_[0.0, np.ones(n)])
    found = gm.minimize(problem, "augmented-lagrangian", tol=1e-5)
    assert found.status is gm.Status.CONVERGED
    assert np.abs(found.factor.sum(axis=0)).max() <= 1e-6
    Q = np.linalg.qr(np.eye(n) - 1 / n)[0][:, : n - 1]
    inside = gm.problems.sdp(Q.T @ L @ Q, [np.outer(q, q) for q in Q], np.ones(n))
    assert found.value == pytest.approx(gm.minimize(inside, tol=1e-5).value, rel=3e-5)


def test_summary_contains_violation_and_dimacs_errors():
    found = gm.minimize(gm.problems.maxcut(weights(6)))
    told = found.summary()
    assert len(told["dimacs"]) == 6
    assert max(told["dimacs"]) <= 1e-6
    assert told["violation"] == found.certificate.violation
    assert "dimacs" not in gm.minimize(gm.problems.quadratic(np.eye(2), None, -np.eye(2))).summary()


def test_infeasible_and_unbounded_results_have_a_ray():
    empty = gm.problems.sdp(np.eye(2), [np.eye(2)], [-1.0])
    found = gm.minimize(empty, "augmented-lagrangian")
    assert found.status is gm.Status.INFEASIBLE
    assert found.ray[0] == pytest.approx(-1.0)
    assert found.certificate.gap is None and gm.minimize(empty).certificate.relative_gap is None
    falling = gm.problems.sdp(np.diag([1.0, -1.0]), [np.diag([1.0, 0.0])], [1.0])
    for solver in METHODS:
        found = gm.minimize(falling, solver)
        assert found.status is gm.Status.UNBOUNDED
        assert np.sum(found.ray * (np.diag([1.0, -1.0]) @ found.ray)) < 0


def test_an_infeasible_point_is_never_the_best():
    problem = gm.problems.maxcut(weights(12))
    found = gm.minimize(problem, "augmented-lagrangian", tol=1e-9, max_iter=8)
    lowest = np.min(found.history["value"][found.history["violation"] <= 1.0])
    assert found.certificate.violation <= np.min(found.history["violation"]) + 1e-12
    assert found.value >= lowest - 1e-9 or found.certificate.violation < 1e-6


def test_limits_callbacks_warm_starts_and_options():
    problem = gm.problems.maxcut(weights(15))
    seen = []
    first = gm.minimize(problem, "augmented-lagrangian", callback=seen.append, random_state=1)
    assert len(seen) == len(first.history) and {"violation", "penalty"} <= set(seen[0].record)
    again = gm.minimize(problem, "augmented-lagrangian", init=first)
    assert again.status is gm.Status.CONVERGED
    assert again.iterations <= first.iterations
    assert gm.minimize(problem, "splitting", max_iter=0).iterations == 0
    stopped = gm.minimize(problem, "splitting", callback=lambda state: True, tol=1e-12)
    assert stopped.status is gm.Status.STOPPED
    with pytest.raises(TypeError, match="no option speed"):
        gm.minimize(problem, "splitting", speed=3)
    with pytest.raises(ValueError, match="solved by auto, augmented-lagrangian"):
        gm.minimize(problem, "bilgo")
    with pytest.raises(ValueError, match="linear objective"):
        quadratic = gm.Problem(
            Composite(diagonal(3), Squared(1.0)), constraints=gm.Constraint(diagonal(3), 0.0)
        )
        gm.minimize(quadratic, "splitting")


def test_callbacks_of_a_loop_are_those_of_a_solver():
    problem = gm.problems.maxcut(weights(15))
    stopped = gm.minimize(problem, "splitting", callback=lambda state: np.True_, tol=1e-12)
    assert stopped.status is gm.Status.STOPPED

    def broken(state):
        raise np.linalg.LinAlgError("of the callback itself")

    with pytest.raises(np.linalg.LinAlgError, match="of the callback itself"):
        gm.minimize(problem, "splitting", callback=broken)


def test_distances_as_constraints():
    """Three points on a line, as far apart as their distances allow."""
    pairs = np.array([[0, 1], [1, 2]])
    centred = np.eye(3) - 1 / 3
    problem = gm.Problem(
        Linear(-centred),
        constraints=(
            gm.Constraint.equal(PairDistances(pairs, 3), 1.0),
            gm.Constraint.equal(Stack([Entries([[0, 0]], 3)]), 0.0),
        ),
    )
    found = gm.minimize(problem, "augmented-lagrangian", tol=1e-5)
    assert found.value == pytest.approx(-2.0, abs=1e-4)


REFUSED = {
    "no symmetry": (lambda: gm.problems.sdp([[1.0, 2], [0, 1]], [np.eye(2)], [1.0]), "symmetric"),
    "A of another order": (lambda: gm.problems.sdp(np.eye(2), [np.eye(3)], [1.0]), "A\\[0\\] has"),
    "b too long": (lambda: gm.problems.sdp(np.eye(2), [np.eye(2)], [1.0, 2]), "b must be a vector"),
    "NaN": (lambda: gm.problems.sdp(np.eye(2), [np.eye(2) * np.nan], [1.0]), "NaN"),
    "b without A": (lambda: gm.problems.sdp(np.eye(2), b=[1.0]), "b is given without A"),
    "b_ub without A_ub": (
        lambda: gm.problems.sdp(np.eye(2), [np.eye(2)], [1.0], b_ub=[1.0]),
        "b_ub is given without A_ub",
    ),
    "b of words": (lambda: gm.problems.sdp(np.eye(2), [np.eye(2)], ["a"]), "b must hold real"),
    "b complex": (lambda: gm.problems.sdp(np.eye(2), [np.eye(2)], [1j]), "b must hold real"),
    "b ragged": (lambda: gm.problems.sdp(np.eye(2), [np.eye(2)], [[1], [1, 2]]), "must hold real"),
    "A alone": (lambda: gm.problems.sdp(np.eye(2), np.eye(2), [1.0]), "single matrix as \\[A\\]"),
    "a block that is a number": (
        lambda: gm.problems.sdp([np.eye(2), 1.0], [[np.eye(2), 1.0]], [1.0]),
        "C\\[1\\] must be a block",
    ),
    "a block of nothing": (
        lambda: gm.problems.sdp([np.eye(2), []], [[np.eye(2), []]], [1.0]),
        "C\\[1\\] must be a block",
    ),
    "NaN in a block": (
        lambda: gm.problems.sdp([np.eye(2), [0.0, np.nan]], [[np.eye(2), None]], [1.0]),
        "C\\[1\\]\\[1\\] is not finite",
    ),
    "a block of another length": (
        lambda: gm.problems.sdp([np.eye(2), [1.0, 2]], [[np.eye(2), [1.0]]], [1.0]),
        "A\\[0\\]\\[1\\] must be a vector of length 2",
    ),
    "b not finite": (lambda: gm.problems.sdp(np.eye(2), [np.eye(2)], [np.inf]), "b\\[0\\]"),
    "nothing": (lambda: gm.problems.sdp(np.eye(2)), "needs constraints"),
    "empty": (lambda: gm.problems.sdp(np.eye(2), [], []), "A is empty"),
    "empty bounds": (lambda: gm.Constraint(diagonal(2), 2.0, 1.0), "row 0 .* is infeasible"),
    "no map": (lambda: gm.Constraint(np.eye(2)), "needs a map"),
    "another order": (
        lambda: gm.Problem(Linear(np.eye(2)), constraints=gm.Constraint(diagonal(3), 0.0)),
        "order 3",
    ),
    "contradiction": (
        lambda: gm.minimize(
            gm.problems.sdp(np.eye(2), [np.eye(2), np.diag([1.0, 0]), 2 * np.eye(2)], [1, 0.5, 3])
        ),
        "rows 0, 2 of the constraints contradict",
    ),
    "a row of nothing": (
        lambda: gm.minimize(gm.problems.sdp(np.eye(2), [np.zeros((2, 2))], [1.0])),
        "row 0 .* by 0",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), REFUSED.values(), ids=REFUSED)
def test_rejects_bad_input(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        call()


@pytest.mark.parametrize("A", [[[np.eye(2)]], [np.eye(2)]], ids=["blocks", "plain"])
def test_a_list_of_one_block_is_that_block(A):
    problem = gm.problems.sdp([np.diag([1.0, 2.0])], A, [1.0])
    assert gm.minimize(problem).value == pytest.approx(1.0, abs=1e-5)


def test_a_list_of_one_vector_is_a_linear_program():
    problem = gm.problems.sdp([[1.0, 2.0]], [[[1.0, 1.0]]], [1.0])
    assert gm.minimize(problem).value == pytest.approx(1.0, abs=1e-5)


CONTRADICTORY = {
    "two rows of three": ([np.eye(2), np.diag([1.0, 0]), 2 * np.eye(2)], [1, 0.5, 3]),
    "a row of nothing": ([np.eye(2), np.zeros((2, 2))], [1.0, -2.0]),
}


@pytest.mark.parametrize(("A", "b"), CONTRADICTORY.values(), ids=CONTRADICTORY)
def test_contradiction_error_has_the_combination_of_rows(A, b):
    with pytest.raises(gm.constrained.ContradictionError) as told:
        gm.minimize(gm.problems.sdp(np.eye(2), A, b))
    y = told.value.combination
    assert y @ b == pytest.approx(1.0)
    np.testing.assert_allclose(np.tensordot(y, A, 1), 0.0, atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", *METHODS])
def test_zero_objective_finds_a_feasible_point(solver):
    result = gm.minimize(gm.problems.sdp(np.zeros((3, 3)), [np.diag([1.0, 0, 0])], [2.0]), solver)
    assert result.status is gm.Status.CONVERGED
    assert result.matrix()[0, 0] == pytest.approx(2.0, abs=1e-5)


@pytest.mark.parametrize("seconds", [0.01, 0.2])
def test_time_limit_returns_the_best_point(seconds):
    n = 1800
    W = sp.random_array((n, n), density=0.01, rng=np.random.default_rng(0))
    found = gm.minimize(gm.problems.maxcut(W + W.T), tol=1e-9, time_limit=seconds)
    assert found.status is gm.Status.TIME_LIMIT
    if found.rank:  # it had the time for a point, which is feasible all along
        assert found.certificate.violation <= 1e-12
        assert found.value < 0


def test_violations_are_measured_in_units_of_rows():
    M = np.diag([2.0, 1.0, 1.0])
    plain, scaled = (gm.Constraint.equal(diagonal(3), 1.0, unit) for unit in (1.0, [10.0, 1, 1]))
    z = plain.map.of_matrix(M)
    for constraint, expected in ((plain, 1.0 / 2), (scaled, 0.1 / 2)):
        problem = gm.Problem(Linear(np.eye(3)), constraints=constraint)
        assert problem.bounds.violation(z) == pytest.approx(expected)
    with pytest.raises(ValueError, match="unit must hold finite numbers above 0"):
        gm.Constraint(diagonal(3), 0.0, unit=0.0)


def test_distances_alone_have_a_bound():
    """max tr M centred, with a path of unit edges: no row nor sum of rows is definite."""
    pairs = np.column_stack([np.arange(29), np.arange(1, 30)])
    problem = exact_mvu(pairs, np.ones(29), 30)
    found = gm.minimize(problem, "augmented-lagrangian", tol=1e-4)
    assert found.status is gm.Status.CONVERGED
    straight = np.arange(30.0) - 14.5
    assert -found.value == pytest.approx(straight @ straight, rel=1e-3)
    assert -found.certificate.lower_bound >= straight @ straight * (1 - 1e-9)


def test_value_below_the_bound_is_not_converged():
    """A row of a thousandth: tr M = 0.95 violates it by 5e-5, and the value is off by 5e-2."""
    model = Model.of(gm.problems.sdp(np.eye(2), [1e-3 * np.eye(2)], [1e-3]))
    settings = Settings(rank=None, tol=1e-4, rng=np.random.default_rng(0))
    referee = ConstrainedReferee(FeatureScaling(model.problem), model, settings, "auto")
    y = np.array([1000.0])
    referee.process(Candidate(np.eye(2)[:, :1], y))
    assert referee.converged and referee.best.value == pytest.approx(1.0)
    lower = model.objective.image(np.sqrt(0.95) * np.eye(2)[:, :1])
    found = constrained_certificate(model, lower, referee.bounds.best, y)
    assert found.violation <= 1e-4 and found.relative_gap <= 1e-4
    assert not referee._better(found)
    referee.best = found
    assert referee.below == pytest.approx(0.05, rel=0.1) and not referee.converged


def test_diverging_bound_does_not_end_the_search_for_a_ray():
    given = instance(2)
    below = {"A_ub": list(given.B), "b_ub": given.h} if len(given.h) else {}
    problem = gm.problems.sdp(given.C, list(given.A), given.b, **below)
    assert gm.minimize(problem, tol=1e-5).status is gm.Status.INFEASIBLE


def test_factor_is_not_polished_after_the_time_limit():
    model = Model.of(gm.problems.maxcut(weights(6)))
    factor = 0.9 * np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    with clock.until(time.perf_counter() - 1.0):
        assert polished(model, factor, goal=1e-9) is factor
    moved = polished(model, factor, goal=1e-9)
    assert model.bounds.violation(model.bounds.map.bilinear(moved, moved)) <= 1e-9
