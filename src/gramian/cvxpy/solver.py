"""The CVXPY solver interface."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gramian.constrained import ContradictionError
from gramian.cvxpy.standard import Conic, Eliminated, VariableBlocks, standard
from gramian.linear_constraints import Constraint
from gramian.maps import Entries, inner_products
from gramian.objectives import Linear
from gramian.objectives.matrices import Sparse
from gramian.problem import Problem
from gramian.result import Result, Status
from gramian.run import minimize

try:
    import cvxpy.settings as names
    from cvxpy.constraints import PSD, SOC, SvecPSD
    from cvxpy.error import SolverError
    from cvxpy.reductions.solution import Solution, failure_solution
    from cvxpy.reductions.solvers import utilities
    from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver
    from cvxpy.utilities.psd_utils import TriangleKind
except ImportError as missing:
    raise ImportError(
        "gramian.cvxpy needs CVXPY 1.9 or newer: pip install 'gramian[cvxpy]'"
    ) from missing

OPTIONS = (
    "tol", "time_limit", "max_iter", "rank", "random_state", "progress", "proof", "algorithm",
)  # fmt: skip
"""Options of `prob.solve`; `algorithm` is the `solver` of `gramian.minimize`."""

EXPLAINED = {
    "ExpCone": "an exponential cone (exp, log, entropy, log_det, …)",
    "OpRelEntrConeQuad": "a cone of operator relative entropies",
    "PowCone3D": "a power cone",
    "PowConeND": "a power cone",
    "RelEntrConeQuad": "a cone of relative entropies",
}

LOOSE = 100.0
"""Multiple of the tolerance within which a run is reported as inaccurate instead of failed."""


class Gramian(ConicSolver):
    """gramian for `prob.solve(solver=gm.cvxpy.Gramian())`: linear programs and SDPs.

    Supports zero, nonnegative and semidefinite cones; CVXPY converts second-order cones to
    semidefinite ones. Options: tol (1e-6), time_limit, max_iter, rank, random_state, progress,
    proof, and algorithm, the `solver` of `gramian.minimize`. `problem.solver_stats.extra_stats` is
    the `Result` of gramian, with its certificate.
    """

    MIP_CAPABLE = False
    SUPPORTED_CONSTRAINTS: ClassVar[list[Any]] = [*ConicSolver.SUPPORTED_CONSTRAINTS, SvecPSD]
    PSD_TRIANGLE_KIND = TriangleKind.UPPER
    PSD_SQRT2_SCALING = True

    def name(self) -> str:
        """The name for CVXPY."""
        return "GRAMIAN"

    def can_solve(self, problem_form: Any) -> bool:
        """True, or an error that names the unsupported cones."""
        if super().can_solve(problem_form):
            return True
        taken = {*self.SUPPORTED_CONSTRAINTS, SOC, PSD}
        cones = sorted(cone.__name__ for cone in problem_form.cones() if cone not in taken)
        unsupported = list(dict.fromkeys(EXPLAINED.get(cone, cone) for cone in cones))
        if not unsupported:
            return False
        raise SolverError(
            f"gramian cannot solve this problem: it has {' and '.join(unsupported)}; it supports "
            "linear, second-order and semidefinite constraints with continuous variables"
        )

    def import_solver(self) -> None:
        """No further imports are needed."""

    def cite(self, data: Any) -> str:
        """The citation."""
        return "gramian: positive semidefinite matrices at scale, with certificates."

    def solve_via_data(
        self,
        data: dict[str, Any],
        warm_start: bool,
        verbose: bool,
        solver_opts: dict[str, Any],
        solver_cache: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Solve the data of CVXPY's conic form."""
        options = _options(solver_opts, verbose)
        dims = data[ConicSolver.DIMS]
        conic = Conic(
            sp.csr_array(data[names.A]),
            np.asarray(data[names.B], dtype=float),
            np.asarray(data[names.C], dtype=float),
            int(dims.zero),
            int(dims.nonneg),
            [int(size) for size in dims.psd],
        )
        known = None
        if warm_start and solver_cache is not None:
            known = solver_cache.get(self.name())
        found, result = _solved(conic, options, known)
        if solver_cache is not None and result is not None:
            solver_cache[self.name()] = result
        return found

    def invert(self, solution: dict[str, Any], inverse_data: Any) -> Any:
        """The solution in CVXPY's variables."""
        status = solution["status"]
        attributes = {
            names.SOLVE_TIME: solution["seconds"],
            names.NUM_ITERS: solution["iterations"],
            names.EXTRA_STATS: solution["result"],
        }
        duals = self._duals(solution["z"], inverse_data)
        if status not in names.SOLUTION_PRESENT:
            return failure_solution(status, attributes, duals)
        value = solution["value"] + inverse_data[names.OFFSET]
        primal = {inverse_data[self.VAR_ID]: solution["x"]}
        return Solution(status, value, primal, duals, attributes)

    def _duals(self, z: Any, inverse_data: Any) -> dict[Any, Any]:
        """The dual variables of every constraint, empty if there is no z."""
        if z is None:
            return {}
        zero = inverse_data[ConicSolver.DIMS].zero
        parts = ((z[:zero], self.EQ_CONSTR), (z[zero:], self.NEQ_CONSTR))
        found: dict[Any, Any] = {}
        for part, constraints in parts:
            found |= utilities.get_dual_values(
                part, utilities.extract_dual_value, inverse_data[constraints]
            )
        return found


def _options(given: dict[str, Any], verbose: bool) -> dict[str, Any]:
    options = {key: value for key, value in given.items() if key != "use_quad_obj"}
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(f"gramian has no option {', '.join(unknown)}; it has: {', '.join(OPTIONS)}")
    options.setdefault("progress", verbose)
    return options


def _solved(
    conic: Conic, options: dict[str, Any], known: Result | None
) -> tuple[dict[str, Any], Result | None]:
    blocks = VariableBlocks(conic.nonneg, conic.psd)
    if blocks.order == 0:
        return _equations_only(conic), None
    reduced = Eliminated.of(standard(conic))
    method = options.pop("algorithm", "auto")
    fits = known is not None and known.factor.shape[0] == blocks.order
    try:
        result = minimize(
            _problem(reduced, blocks), method, init=known if fits else None, **options
        )
    except ContradictionError as shown:
        return _contradicted(conic, reduced, shown.combination), None
    status = _status(result, reduced, options.get("tol", 1e-6))
    v = blocks.vector(result.factor)
    dual = np.zeros(reduced.h.size) if result.dual is None else result.dual[: reduced.h.size]
    y = reduced.multipliers(dual)
    x, z = _named(conic, reduced, v, y, reduced.form.cost - reduced.form.G.T @ y)
    if status not in names.SOLUTION_PRESENT:
        z = _farkas(conic, reduced, blocks, result) if status == names.INFEASIBLE else None
    solution = _solution(status, x, z, float(conic.c @ x))
    return solution | {
        "seconds": result.seconds,
        "iterations": result.iterations,
        "result": result,
    }, result


def _solution(status: str, x: Any, z: Any, value: float) -> dict[str, Any]:
    found = {"status": str(status), "value": value, "x": x, "z": z}
    return found | {"seconds": 0.0, "iterations": 0, "result": None}


def _contradicted(conic: Conic, reduced: Eliminated, y: Any) -> dict[str, Any]:
    """The result for contradictory equations in CVXPY's form."""
    rows = y[: reduced.h.size]
    if not reduced.form.dual:
        z = _shown_by_rows(conic, reduced, rows)
    else:
        z = _shown_by_equations(conic, reduced) if reduced.unbounded else None
    status = names.UNBOUNDED if z is None else names.INFEASIBLE
    return _solution(status, np.zeros(conic.c.size), z, np.nan)


def _farkas(conic: Conic, reduced: Eliminated, blocks: VariableBlocks, result: Result) -> Any:
    """z in the dual cones with Aᵀz = 0 and b·z < 0, which proves infeasibility."""
    if not reduced.form.dual:
        return _shown_by_rows(conic, reduced, np.asarray(result.ray)[: reduced.h.size])
    if reduced.unbounded:
        return _shown_by_equations(conic, reduced)
    v = blocks.vector(np.asarray(result.ray))
    return np.concatenate([reduced.free_ray(v), v])


def _shown_by_rows(conic: Conic, reduced: Eliminated, ray: Any) -> Any:
    y = reduced.combination(ray)
    return np.concatenate([-y[: conic.zero], -(reduced.form.G.T @ y)])


def _shown_by_equations(conic: Conic, reduced: Eliminated) -> Any:
    """CVXPY's equations contradict each other."""
    return np.concatenate([reduced.falling(), np.zeros(conic.b.size - conic.zero)])


def _problem(reduced: Eliminated, blocks: VariableBlocks) -> Problem:
    n = blocks.order
    i, j, scale = blocks.places()
    halves = reduced.cost * np.where(i == j, 1.0, scale / 2)
    upper = sp.csr_array((halves, (i, j)), shape=(n, n))
    C = sp.csr_array(upper + sp.triu(upper, 1).T)
    C.eliminate_zeros()
    if reduced.h.size:
        map: Any = inner_products(blocks.matrices(reduced.G), n)
        constraint = Constraint.equal(map, reduced.h)
    else:  # only the cone constraint
        constraint = Constraint(Entries([[0, 0]], n), 0.0)
    return Problem(
        Linear(Sparse(C), constant=reduced.shift),
        name="cvxpy",
        formula="⟨C, M⟩",
        constraints=(constraint,),
        conditions="𝒜(M) = b",
    )


def _status(result: Result, reduced: Eliminated, tol: float) -> str:
    if reduced.form.dual and reduced.unbounded:  # CVXPY's equations contradict each other
        return str(names.INFEASIBLE)
    if result.status is Status.INFEASIBLE:
        return str(names.UNBOUNDED if reduced.form.dual else names.INFEASIBLE)
    if result.status is Status.UNBOUNDED or reduced.unbounded:
        return str(names.INFEASIBLE if reduced.form.dual else names.UNBOUNDED)
    if result.status is Status.CONVERGED:
        return str(names.OPTIMAL)
    error = np.inf if result.dimacs is None else float(np.max(np.abs(result.dimacs)))
    if error <= LOOSE * tol:  # relative to 1 + |F|: an optimum of 0 has no relative gap
        return str(names.OPTIMAL if error <= tol else names.OPTIMAL_INACCURATE)
    limits = (Status.MAX_ITER, Status.TIME_LIMIT, Status.STOPPED, Status.INTERRUPTED)
    return str(names.USER_LIMIT if result.status in limits else names.SOLVER_ERROR)


def _named(conic: Conic, reduced: Eliminated, v: Any, y: Any, slack: Any) -> tuple[Any, Any]:
    """x and z of CVXPY's form."""
    form = reduced.form
    if form.dual:
        return y, np.concatenate([reduced.free(v), v])
    x = np.zeros(conic.c.size)
    x[form.restored < 0] = reduced.free(v)
    at = np.flatnonzero(form.restored >= 0)
    rows = form.restored[at]
    cones = conic.A[conic.zero :]
    a = cones.data[cones.indptr[rows]]
    x[at] = (conic.b[conic.zero :][rows] - v[rows]) / a
    return x, np.concatenate([-y[: conic.zero], slack])


def _equations_only(conic: Conic) -> dict[str, Any]:
    """Free variables under equations: one point, or a line along which the cost is unbounded."""
    A = conic.A.toarray()
    x = np.linalg.lstsq(A, conic.b, rcond=None)[0] if A.size else np.zeros(conic.c.size)
    z = np.linalg.lstsq(A.T, -conic.c, rcond=None)[0] if A.size else np.zeros(conic.b.size)
    off = np.linalg.norm(A @ x - conic.b) > 1e-8 * (1 + np.linalg.norm(conic.b))
    falls = np.linalg.norm(A.T @ z + conic.c) > 1e-8 * (1 + np.linalg.norm(conic.c))
    status = names.INFEASIBLE if off else names.UNBOUNDED if falls else names.OPTIMAL
    return _solution(status, x, A @ x - conic.b if off else z, float(conic.c @ x))
