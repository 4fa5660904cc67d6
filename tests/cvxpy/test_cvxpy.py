"""gramian as a CVXPY solver, compared with Clarabel."""

import numpy as np
import pytest

cp = pytest.importorskip(
    "cvxpy", minversion="1.9", reason="CVXPY 1.9 is missing: pip install 'gramian[cvxpy]'"
)

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
def test_optimum_agrees_with_clarabel(make):
    problem = make()
    expected = problem.solve(solver=cp.CLARABEL)
    found = problem.solve(solver=gm.cvxpy.Gramian(), tol=1e-7)
    assert problem.status == cp.OPTIMAL
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for constraint in problem.constraints:
        assert np.max(np.abs(constraint.violation())) <= 1e-4


@pytest.mark.parametrize("make", [cut, matrix_inequality], ids=lambda make: make.__name__)
def test_duals_agree_with_clarabel(make):
    problem = make()
    problem.solve(solver=cp.CLARABEL)
    expected = [c.dual_value for c in problem.constraints]
    problem.solve(solver=gm.cvxpy.Gramian(), tol=1e-8)
    for constraint, dual in zip(problem.constraints, expected, strict=True):
        np.testing.assert_allclose(constraint.dual_value, dual, atol=1e-3)


def test_psd_variable_is_restored():
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


def test_parameter_with_warm_start():
    X, t = cp.Variable((N, N), PSD=True), cp.Parameter(value=1.0)
    problem = cp.Problem(cp.Minimize(cp.trace(weights() @ X)), [cp.diag(X) == t])
    first = problem.solve(solver=gm.cvxpy.Gramian(), algorithm="augmented-lagrangian")
    t.value = 2.0
    again = problem.solve(
        solver=gm.cvxpy.Gramian(), algorithm="augmented-lagrangian", warm_start=True
    )
    assert again == pytest.approx(2 * first, rel=1e-5)


def entropy():
    x = cp.Variable(3)
    return cp.Problem(cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1])


def determinant():
    X = cp.Variable((2, 2), PSD=True)
    return cp.Problem(cp.Maximize(cp.log_det(X)), [cp.trace(X) == 1])


def powers():
    x = cp.Variable(3)
    return cp.Problem(cp.Maximize(x[2]), [cp.PowCone3D(x[0], x[1], x[2], 0.3), x[:2] <= 1])


def whole_number():
    k = cp.Variable(integer=True)
    return cp.Problem(cp.Minimize(k), [k >= 0.5])


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (entropy, "an exponential cone"),
        (determinant, "an exponential cone"),
        (powers, "a power cone"),
        (whole_number, "mixed-integer"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_rejects_unsupported_cones(make, named):
    with pytest.raises(cp.SolverError, match=named):
        make().solve(solver=gm.cvxpy.Gramian())


def test_rejects_unknown_option():
    with pytest.raises(TypeError, match="no option speed"):
        cut().solve(solver=gm.cvxpy.Gramian(), speed=1)


def equations_of_matrices():
    X = cp.Variable((3, 3), PSD=True)
    return cp.Problem(cp.Minimize(cp.trace(X)), [cp.trace(X) == 1, 2 * cp.trace(X) == 4])


def equations_of_numbers():
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(x[1]), [x[0] == 1, x[0] == 2, x >= 0])


def equations_beside_an_inequality():
    x = cp.Variable(3)
    A = np.random.default_rng(0).standard_normal((30, 3))
    return cp.Problem(cp.Minimize(cp.sum(A @ x)), [x[0] == 1, x[0] == 2, A @ x >= -1])


def equations_alone():
    x = cp.Variable(2)
    return cp.Problem(cp.Minimize(0), [x[0] + x[1] == 3, x[0] + x[1] == 4])


def matrix_inequality_beside_a_bound():
    t = cp.Variable()
    return cp.Problem(cp.Minimize(t), [t * np.eye(2) >> np.eye(2), t <= 0.5])


CONTRADICTORY = [
    equations_of_matrices,
    equations_of_numbers,
    equations_beside_an_inequality,
    equations_alone,
    matrix_inequality_beside_a_bound,
]


@pytest.mark.parametrize("make", CONTRADICTORY, ids=lambda make: make.__name__)
def test_duals_prove_that_a_problem_is_infeasible(make):
    """z of Ax + s = b has Aᵀz = 0 and b·z < 0, and lies in the dual cones."""
    problem, solver = make(), gm.cvxpy.Gramian()
    assert problem.solve(solver=solver) == np.inf
    assert problem.status == cp.INFEASIBLE
    assert all(constraint.dual_value is not None for constraint in problem.constraints)
    data = problem.get_problem_data(solver)[0]
    z = solver.solve_via_data(data, False, False, {})["z"]
    assert data["b"] @ z < 0
    np.testing.assert_allclose(data["A"].T @ z / -(data["b"] @ z), 0.0, atol=1e-6)
    dims = data["dims"]
    assert np.all(z[dims.zero : dims.zero + dims.nonneg] >= -1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_duplicate_equations_are_consistent(seed):
    rng = np.random.default_rng(seed)
    X, x = cp.Variable((3, 3), symmetric=True), cp.Variable(2)
    A = rng.standard_normal((3, 3))
    same = [cp.trace((A + A.T) @ X) == 1.1578581112610955] * 2
    more = [cp.sum(X) + rng.standard_normal(2) @ x == -0.09085891154163399, x >= -1, x <= 1]
    problem = cp.Problem(cp.Minimize(cp.sum(x)), same + more)
    assert problem.solve(solver=gm.cvxpy.Gramian()) == pytest.approx(-2.0, abs=1e-5)


def test_a_feasible_point_is_found_without_an_objective():
    X = cp.Variable((3, 3), PSD=True)
    problem = cp.Problem(cp.Minimize(7), [X[0, 0] == 1])
    assert problem.solve(solver=gm.cvxpy.Gramian()) == pytest.approx(7.0)
    assert problem.status == cp.OPTIMAL
    assert X.value[0, 0] == pytest.approx(1.0, abs=1e-5)


def test_an_optimum_of_zero_is_reached_within_the_tolerance():
    """Reached only in the limit, where no gap is small relative to the value."""
    X = cp.Variable((3, 3), PSD=True)
    problem = cp.Problem(cp.Minimize(X[0, 0]), [X[0, 1] == 1])
    assert problem.solve(solver=gm.cvxpy.Gramian()) == pytest.approx(0.0, abs=1e-5)
    assert problem.status == cp.OPTIMAL


STANDARD = {
    "StandardTestLPs": ["lp_0", "lp_1", "lp_2", "lp_3", "lp_4", "lp_5", "lp_6"],
    "StandardTestQPs": ["qp_0", "qp_parameter_update"],
    "StandardTestSDPs": ["sdp_1max", "sdp_1min", "sdp_2", "sdp_batched"],
    "StandardTestSOCPs": [
        "socp_0", "socp_1", "socp_2", "socp_3ax0", "socp_3ax1", "socp_4", "socp_bounds_attr",
    ],
}  # fmt: skip
"""CVXPY's own problems for conic solvers with these cones: all but lp_7, which needs several times
the usual precision, and those for solvers that take bounds of variables beside the constraints."""

EACH = [(family, name) for family, names in STANDARD.items() for name in names]
OWN_WORDS = "ignore:The problem has an expression"
"""What CVXPY warns of at one of its own problems."""


def standard_problems():
    return pytest.importorskip(
        "cvxpy.tests.solver_test_helpers", reason="this CVXPY comes without its tests"
    )


@pytest.mark.filterwarnings(OWN_WORDS)
@pytest.mark.parametrize(("family", "name"), EACH)
def test_the_standard_problems_of_cvxpy(family, name):
    """Four decimals of points and multipliers, whose errors are the roots of that of the value."""
    run = getattr(getattr(standard_problems(), family), f"test_{name}")
    run(solver=gm.cvxpy.Gramian(), tol=1e-9)


@pytest.mark.filterwarnings(OWN_WORDS)
@pytest.mark.parametrize("algorithm", ["augmented-lagrangian", "splitting"])
@pytest.mark.parametrize(("family", "name"), EACH)
def test_the_standard_problems_without_another_solver(family, name, algorithm):
    """`auto` hands small problems to Clarabel, which comes with CVXPY."""
    run = getattr(getattr(standard_problems(), family), f"test_{name}")
    run(solver=gm.cvxpy.Gramian(), algorithm=algorithm, tol=1e-8)


@pytest.mark.parametrize("name", ["lp_ineq_constraints", "lp_eq_constraints", "soc", "psd_cone"])
def test_the_standard_infeasible_problems_of_cvxpy(name):
    run = getattr(standard_problems().StandardTestInfeasibleProblems, f"test_{name}")
    run(solver=gm.cvxpy.Gramian())


@pytest.mark.parametrize("name", ["lp_bound_attr", "qp_bound_attr"])
def test_bounds_of_variables(name):
    """CVXPY's own test expects separate bounds; here they are ordinary rows."""
    given = getattr(standard_problems(), name)()
    given.solve(gm.cvxpy.Gramian())
    given.verify_objective(4)
    given.verify_primal_values(4)


REFUSED = {
    "StandardTestECPs": ["expcone_1"],
    "StandardTestMixedCPs": ["exp_soc_1", "sdp_pcp_1"],
    "StandardTestPCPs": ["pcp_1", "pcp_2", "pcp_3", "mi_pcp_0"],
    "StandardTestLPs": [f"mi_lp_{k}" for k in range(7)],
    "StandardTestSOCPs": ["mi_socp_1", "mi_socp_2"],
    "StandardTestInfeasibleProblems": [
        "exp_cone", "power_cone_3d", "power_cone_nd", "soc_exp_mixed",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family, names in REFUSED.items() for name in names]
)
def test_rejects_other_standard_problems(family, name):
    run = getattr(getattr(standard_problems(), family), f"test_{name}")
    with pytest.raises(cp.SolverError, match=r"exponential cone|power cone|mixed-integer"):
        run(solver=gm.cvxpy.Gramian())


def test_a_sum_of_many_squares():
    """A second-order cone of 146 entries, as a semidefinite one."""
    target = np.random.default_rng(0).standard_normal((12, 12))
    X = cp.Variable((12, 12))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X - target)), [cp.trace(X) == 1])
    value = problem.solve(solver=gm.cvxpy.Gramian())
    assert problem.status == cp.OPTIMAL
    assert value == pytest.approx((np.trace(target) - 1) ** 2 / 12, rel=1e-5)
