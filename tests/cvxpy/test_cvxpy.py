"""gramian as a solver of CVXPY, beside Clarabel."""

import numpy as np
import pytest

cp = pytest.importorskip("cvxpy", minversion="1.9")

import gramian as gm  # noqa: E402

N = 7


def weights():
    W = np.random.default_rng(0).random((N, N))
    return W + W.T


def cut():
    X = cp.Variable((N, N), PSD=True)
    return cp.Problem(cp.Minimize(cp.trace(weights() @ X)), [cp.diag(X) == 1])


def cut_with_bounds():
    X = cp.Variable((N, N), PSD=True)
    return cp.Problem(cp.Maximize(-cp.trace(weights() @ X)), [cp.diag(X) == 1, X[0, 1:] >= -0.1])


def matrix_inequality():
    x = cp.Variable(3)
    A = [np.diag(np.roll(np.arange(N), k).astype(float)) + np.eye(N, k=k + 1) for k in range(3)]
    A = [a + a.T for a in A]
    total = sum(x[k] * A[k] for k in range(3))
    return cp.Problem(cp.Minimize(cp.sum(x)), [total - weights() >> 0])


def largest_eigenvalue():
    X = cp.Variable((N, N), symmetric=True)
    target = weights()
    return cp.Problem(cp.Minimize(cp.lambda_max(X)), [X[0] == target[0], cp.trace(X) >= 3])


def linear_program():
    x = cp.Variable(4)
    A = np.random.default_rng(1).random((3, 4))
    return cp.Problem(cp.Minimize(cp.sum(x) - 2 * x[0]), [A @ x <= 1, x >= -1, x <= 2])


def least_norm():
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(cp.norm(x)), [x[0] + 2 * x[1] == 3, x[2] >= 0.5])


EVERY = [cut, cut_with_bounds, matrix_inequality, largest_eigenvalue, linear_program, least_norm]


@pytest.mark.parametrize("make", EVERY, ids=lambda make: make.__name__)
def test_the_optimum_is_that_of_clarabel(make):
    problem = make()
    expected = problem.solve(solver=cp.CLARABEL)
    found = problem.solve(solver=gm.cvxpy.Gramian(), tol=1e-7)
    assert problem.status == cp.OPTIMAL
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for constraint in problem.constraints:
        assert np.max(np.abs(constraint.violation())) <= 1e-4


@pytest.mark.parametrize("make", [cut, matrix_inequality], ids=lambda make: make.__name__)
def test_duals_come_back(make):
    problem = make()
    problem.solve(solver=cp.CLARABEL)
    expected = [c.dual_value for c in problem.constraints]
    problem.solve(solver=gm.cvxpy.Gramian(), tol=1e-8)
    for constraint, dual in zip(problem.constraints, expected, strict=True):
        np.testing.assert_allclose(constraint.dual_value, dual, atol=1e-3)


def test_a_psd_variable_is_restored():
    problem = cut()
    problem.solve(solver=gm.cvxpy.Gramian())
    result = problem.solver_stats.extra_stats
    assert result.factor.shape[0] == N
    assert result.dual.size == N
    assert result.certificate.relative_gap <= 1e-6


def test_infeasible_and_unbounded():
    X = cp.Variable((2, 2), PSD=True)
    empty = cp.Problem(cp.Minimize(cp.trace(X)), [cp.trace(X) == -1])
    empty.solve(solver=gm.cvxpy.Gramian())
    assert empty.status == cp.INFEASIBLE
    falling = cp.Problem(cp.Minimize(-X[1, 1]), [X[0, 0] == 1])
    falling.solve(solver=gm.cvxpy.Gramian())
    assert falling.status == cp.UNBOUNDED


def test_a_parameter_is_solved_again_warm():
    X, t = cp.Variable((N, N), PSD=True), cp.Parameter(value=1.0)
    problem = cp.Problem(cp.Minimize(cp.trace(weights() @ X)), [cp.diag(X) == t])
    first = problem.solve(solver=gm.cvxpy.Gramian(), algorithm="augmented-lagrangian")
    t.value = 2.0
    again = problem.solve(
        solver=gm.cvxpy.Gramian(), algorithm="augmented-lagrangian", warm_start=True
    )
    assert again == pytest.approx(2 * first, rel=1e-5)


def test_what_it_cannot_take_is_refused():
    x = cp.Variable()
    with pytest.raises(cp.SolverError):
        cp.Problem(cp.Minimize(cp.exp(x)), [x >= 1]).solve(solver=gm.cvxpy.Gramian())
    k = cp.Variable(integer=True)
    with pytest.raises(cp.SolverError):
        cp.Problem(cp.Minimize(k), [k >= 0.5]).solve(solver=gm.cvxpy.Gramian())
    with pytest.raises(TypeError, match="no option speed"):
        cut().solve(solver=gm.cvxpy.Gramian(), speed=1)


STANDARD = {
    "StandardTestLPs": ["lp_0", "lp_1", "lp_2", "lp_3", "lp_4", "lp_5", "lp_6"],
    "StandardTestQPs": ["qp_0", "qp_parameter_update"],
    "StandardTestSDPs": ["sdp_1max", "sdp_1min", "sdp_2", "sdp_batched"],
    "StandardTestSOCPs": [
        "socp_0", "socp_1", "socp_2", "socp_3ax0", "socp_3ax1", "socp_4", "socp_bounds_attr",
    ],
}  # fmt: skip
"""CVXPY's own problems for conic solvers with these cones: all but lp_7, which needs another solver
to be installed, and those for solvers that take bounds of variables beside the constraints."""


@pytest.mark.filterwarnings("ignore:The problem has an expression")  # CVXPY, of its own problem
@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family, names in STANDARD.items() for name in names]
)
def test_the_standard_problems_of_cvxpy(family, name):
    helpers = pytest.importorskip("cvxpy.tests.solver_test_helpers")
    getattr(getattr(helpers, family), f"test_{name}")(solver=gm.cvxpy.Gramian())


def test_a_sum_of_many_squares():
    """A second-order cone of 146 entries, as a semidefinite one."""
    target = np.random.default_rng(0).standard_normal((12, 12))
    X = cp.Variable((12, 12))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X - target)), [cp.trace(X) == 1])
    value = problem.solve(solver=gm.cvxpy.Gramian())
    assert problem.status == cp.OPTIMAL
    assert value == pytest.approx((np.trace(target) - 1) ** 2 / 12, rel=1e-5)
