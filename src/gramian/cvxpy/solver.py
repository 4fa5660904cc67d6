"""The solver that CVXPY calls."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gramian.constrained import Constraint
from gramian.cvxpy.standard import Blocks, Conic, Eliminated, standard
from gramian.maps import Entries, inner_products
from gramian.objectives import Linear
from gramian.objectives.matrices import Sparse
from gramian.outer import minimize
from gramian.problem import Problem
from gramian.result import Result, Status

try:
    import cvxpy.settings as names
    from cvxpy.constraints import SvecPSD
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
"""What `prob.solve` passes on; `algorithm` is the `solver` of `gramian.minimize`."""

LOOSE = 100.0
"""A run that ended within so many times its tolerance is told as inaccurate, and no failure."""


class Gramian(ConicSolver):
    """gramian for `prob.solve(solver=gm.cvxpy.Gramian())`: linear programs and SDPs.

    Zero, non-negative and semidefinite cones; CVXPY turns second-order cones into semidefinite
    ones. Options: tol (1e-6), time_limit, max_iter, rank, random_state, progress, proof, and
    algorithm, which is the `solver` of `gramian.minimize`. `problem.solver_stats.extra_stats` is
    gramian's own `Result`, with its certificate.
    """

    MIP_CAPABLE = False
    SUPPORTED_CONSTRAINTS: ClassVar[list[Any]] = [*ConicSolver.SUPPORTED_CONSTRAINTS, SvecPSD]
    PSD_TRIANGLE_KIND = TriangleKind.UPPER
    PSD_SQRT2_SCALING = True

    def name(self) -> str:
        """What CVXPY calls it."""
        return "GRAMIAN"

    def import_solver(self) -> None:
        """Nothing is left to import."""

    def cite(self, data: Any) -> str:
        """How to cite it."""
        return "gramian: positive semidefinite matrices at scale, with certificates."

    def solve_via_data(
        self,
        data: dict[str, Any],
        warm_start: bool,
        verbose: bool,
        solver_opts: dict[str, Any],
        solver_cache: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Solve what CVXPY made of a problem."""
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
        """The solution in CVXPY's own variables."""
        status = solution["status"]
        attributes = {
            names.SOLVE_TIME: solution["seconds"],
            names.NUM_ITERS: solution["iterations"],
            names.EXTRA_STATS: solution["result"],
        }
        if status not in names.SOLUTION_PRESENT:
            return failure_solution(status, attributes)
        zero = inverse_data[ConicSolver.DIMS].zero
        z = solution["z"]
        duals = {
            **utilities.get_dual_values(
                z[:zero], utilities.extract_dual_value, inverse_data[self.EQ_CONSTR]
            ),
            **utilities.get_dual_values(
                z[zero:], utilities.extract_dual_value, inverse_data[self.NEQ_CONSTR]
            ),
        }
        value = solution["value"] + inverse_data[names.OFFSET]
        primal = {inverse_data[self.VAR_ID]: solution["x"]}
        return Solution(status, value, primal, duals, attributes)


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
    blocks = Blocks(conic.nonneg, conic.psd)
    if blocks.order == 0:
        return _equations_only(conic), None
    reduced = Eliminated.of(standard(conic))
    method = options.pop("algorithm", "auto")
    fits = known is not None and known.factor.shape[0] == blocks.order
    result = minimize(_problem(reduced, blocks), method, init=known if fits else None, **options)
    status = _status(result, reduced, options.get("tol", 1e-6))
    v = blocks.vector(result.factor)
    rows = reduced.h.size
    dual = np.zeros(rows) if result.dual is None else result.dual[:rows]
    y = reduced.multipliers(dual)
    slack = reduced.form.cost - reduced.form.G.T @ y
    x, z = _named(conic, reduced, v, y, slack)
    told = {
        "status": status,
        "value": float(conic.c @ x),
        "x": x,
        "z": z,
        "seconds": result.seconds,
        "iterations": result.iterations,
        "result": result,
    }
    return told, result


def _problem(reduced: Eliminated, blocks: Blocks) -> Problem:
    n = blocks.order
    i, j, scale = blocks.places()
    halves = reduced.cost * np.where(i == j, 1.0, scale / 2)
    upper = sp.csr_array((halves, (i, j)), shape=(n, n))
    C = sp.csr_array(upper + sp.triu(upper, 1).T)
    C.eliminate_zeros()
    if reduced.h.size:
        map: Any = inner_products(blocks.matrices(reduced.G), n)
        constraint = Constraint.equal(map, reduced.h)
    else:  # nothing but the cone
        constraint = Constraint(Entries([[0, 0]], n), 0.0)
    return Problem(
        Linear(Sparse(C), constant=reduced.shift),
        name="cvxpy",
        formula="⟨C, M⟩",
        constraints=(constraint,),
        conditions="𝒜(M) = b",
    )


def _status(result: Result, reduced: Eliminated, tol: float) -> str:
    certificate = result.certificate
    if result.status is Status.INFEASIBLE:
        return str(names.UNBOUNDED if reduced.form.dual else names.INFEASIBLE)
    if result.status is Status.UNBOUNDED or reduced.unbounded:
        return str(names.INFEASIBLE if reduced.form.dual else names.UNBOUNDED)
    if result.status is Status.CONVERGED:
        return str(names.OPTIMAL)
    gap = certificate.relative_gap
    near = gap is not None and gap <= LOOSE * tol and certificate.violation <= LOOSE * tol
    if near:
        return str(names.OPTIMAL_INACCURATE)
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
    """Free variables under equations: one point, or a line along which the cost falls."""
    A = conic.A.toarray()
    x = np.linalg.lstsq(A, conic.b, rcond=None)[0] if A.size else np.zeros(conic.c.size)
    z = np.linalg.lstsq(A.T, -conic.c, rcond=None)[0] if A.size else np.zeros(conic.b.size)
    off = np.linalg.norm(A @ x - conic.b) > 1e-8 * (1 + np.linalg.norm(conic.b))
    falls = np.linalg.norm(A.T @ z + conic.c) > 1e-8 * (1 + np.linalg.norm(conic.c))
    status = names.INFEASIBLE if off else names.UNBOUNDED if falls else names.OPTIMAL
    return {
        "status": str(status),
        "value": float(conic.c @ x),
        "x": x,
        "z": z,
        "seconds": 0.0,
        "iterations": 0,
        "result": None,
    }
