"""SQLP thesis, Table 3.1: RegMVU on a Swiss roll as SCSDP, as SQLP, and as it stands.

ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0, with the m smoothest eigenvectors Q of the Laplacian
of the symmetric 4-NN graph of 2000 points.
"""

import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

import gramian as gm
from benchmarks._models import ROLL_POINTS, smooth_basis, swiss_roll
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table, Versus
from gramian.losses import Squared
from gramian.maps import Congruence, PairDistances
from gramian.objectives import Composite
from gramian.objectives.quadratic_form import compress, quadratic_form
from gramian.solvers import conic
from gramian.solvers.base import Settings

TITLE = "QSDP as SCSDP, as SQLP and as a quadratic objective: RegMVU on a Swiss roll"
PAPER = "SQLP (Wu 2011), Table 3.1"

NU = 1e5
DIGITS = 1e-8

PRINTED: dict[int, dict[str, tuple[float, int]]] = {
    # m: formulation -> (seconds, iterations), CSDP for SCSDP and SDPT3 for SQLP
    10: {"scsdp": (3.84, 29), "sqlp": (0.96, 32)},
    15: {"scsdp": (60.36, 30), "sqlp": (1.75, 31)},
    20: {"scsdp": (557.79, 32), "sqlp": (4.48, 35)},
    25: {"scsdp": (2821.76, 34), "sqlp": (7.84, 37)},
    30: {"scsdp": (13039.30, 37), "sqlp": (13.39, 35)},
    40: {"sqlp": (74.01, 35)},
    50: {"sqlp": (213.26, 35)},
    60: {"sqlp": (467.90, 35)},
    80: {"sqlp": (1729.65, 39)},
    100: {"sqlp": (3988.31, 36)},
}


@dataclass(frozen=True, eq=False)
class Method:
    """A row of the table: what is called, and up to which m."""

    label: str
    solver: str
    options: dict[str, Any]
    largest: int
    printed: str = ""
    besides: tuple[int, ...] = ()
    """Values of m that are measured for its growth alone."""


METHODS = (
    Method(
        "SCSDP whole cone, Clarabel", "scsdp", {"backend": "clarabel", "decompose": False}, 30,
        "scsdp", (6, 8, 12),
    ),
    Method("SCSDP decomposed, Clarabel", "scsdp", {"backend": "clarabel"}, 30),
    Method("SCSDP, SCS", "scsdp", {"backend": "scs"}, 30),
    Method("SQLP, Clarabel", "sqlp", {"backend": "clarabel"}, 40, "sqlp"),
    Method("SQLP, SCS", "sqlp", {"backend": "scs"}, 50, "sqlp"),
    Method("direct, Clarabel", "conic", {"backend": "clarabel"}, 50),
    Method("direct, SCS", "conic", {"backend": "scs"}, 50),
    Method("direct, every row, Clarabel", "conic", {"backend": "clarabel", "compress": False}, 30),
    Method("lbfgs", "lbfgs", {}, 50),
    Method("bilgo", "bilgo", {}, 50),
)  # fmt: skip

NOTES = (
    "Seconds are medians of whole calls: rows, their QR factorisation, the conic solver, the "
    "certificate. The basis Q is timed apart. One thread.",
    "F is ν Σ_e (…)² − tr Y with ν = 1e5. Much of it is what no Y in this basis can fit, so a "
    "column gives the error relative to the part that Y does decide, F(0) less that constant.",
    "The conic solvers scale M by the lengths of the columns of B, which for this basis is close "
    "to the Λ^{-1/2} of QᵀLQ = Λ. lbfgs and bilgo get the same problem in the basis QΛ^{-1/2}.",
    "The edge bound shifts the dual point ∇g by one number on all edges, where 𝒜*(1) = Λ ≻ 0, "
    "until 𝒜*(w) − I ⪰ 0; the relative gap it proves is for the F of the table.",
    "SCSDP whole cone: a semidefinite cone of order m(m+1)/2 + 1, for which Clarabel factors a "
    "dense block of the order of its triangle. Decomposed: the cone is an arrow, and Clarabel "
    "splits it into cones of order 2. The thesis used CSDP on a cone of order m² + 1.",
    "A method that has timed out is not tried at larger m. The paper's seconds are another "
    "machine's, and of solvers at a relative gap of 1e-8.",
)


def run(ctx: Context) -> Report:
    """Every method at every m it may reach, each in a process of its own."""
    sizes = [10, 15, 20] if ctx.quick else [10, 15, 20, 25, 30, 40, 50]
    limit = 60.0 if ctx.quick else 150.0
    found = {method: _series(ctx, method, sizes, limit) for method in METHODS}
    tables = [_table(found, m) for m in sizes] + [_verdicts(found, sizes), _bases(sizes)]
    return ctx.report(tables, (*NOTES, f"Time-out: {limit:.0f} s a process."))


# --- the problem ---------------------------------------------------------------------


def reg_mvu(m: int, scaled: bool) -> gm.Problem:
    """RegMVU in the basis Q, or in QΛ^{-1/2}, where tr Y is ⟨Λ^{-1}, ·⟩."""
    roll = swiss_roll()
    values, Q = smooth_basis(roll.graph, m)
    if not scaled:
        return gm.problems.reg_mvu(Q, roll.edges, roll.sq_distances, NU)
    map = Congruence(PairDistances(roll.edges, ROLL_POINTS), Q / np.sqrt(values))
    loss = Squared(roll.sq_distances, weight=NU)
    return gm.Problem(Composite(map, loss, -np.diag(1 / values)), name="RegMVU")


def edge_bound(problem: gm.Problem, factor: np.ndarray) -> float:
    """F ≥ −g*(w + δ1) for the least δ ≥ 0 with 𝒜*(w) + C + δ𝒜*(1) ⪰ 0."""
    objective = problem.objective
    image = objective.image(factor)
    w = objective.loss.gradient(image.z)
    G = objective.gradient(image).dense()
    ones = np.ones(w.size)
    shift = -scipy.linalg.eigh(G, objective.map.adjoint_matrix(ones), eigvals_only=True)[0]
    return objective.constant - objective.loss.conjugate(w + max(shift, 0.0) * ones)


# --- one method at one m, in a process of its own ------------------------------------


def solve(m: int, solver: str, options: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Median seconds of the whole call, and what is proved of its last answer."""
    problem = reg_mvu(m, scaled=solver in ("lbfgs", "bilgo"))
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        factor, iterations = _answer(problem, solver, options)
        seconds.append(time.perf_counter() - start)
        if seconds[0] > 10:
            break
    value = problem.value(factor)
    certificate = gm.certify(problem, factor)
    rest = compress(quadratic_form(problem.objective)).constant
    return {
        "seconds": statistics.median(seconds),
        "iterations": iterations,
        "value": value,
        "decided": problem.value(factor[:, :0]) - rest,
        "rank": factor.shape[1],
        "lambda_min": certificate.lambda_min,
        "complementarity": certificate.complementarity,
        "relative_gap": certificate.relative_gap,
        "edge_gap": (value - edge_bound(problem, factor)) / abs(value),
    }


def _answer(problem: gm.Problem, solver: str, options: dict[str, Any]) -> tuple[np.ndarray, int]:
    if solver in ("lbfgs", "bilgo"):
        result = gm.minimize(problem, solver, tol=1e-12, time_limit=60.0)
        return result.factor, result.iterations
    settings = Settings(None, 1e-8, np.random.default_rng(0))
    step = next(getattr(conic, solver)(problem, np.zeros((problem.order, 0)), settings, **options))
    return step.factor, int(step.trace["conic_iterations"])


def _series(
    ctx: Context, method: Method, sizes: list[int], limit: float
) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for m in sorted(m for m in {*sizes, *method.besides} if m <= method.largest):
        kwargs = {
            "m": m, "solver": method.solver, "options": method.options, "repeat": ctx.repeat,
        }  # fmt: skip
        answer = ctx.in_child("benchmarks.sqlp_table31:solve", kwargs, limit, threads=1)
        found[m] = answer.value if answer.ok else {"error": answer.error}
        if not answer.ok:
            break
    return found


# --- tables --------------------------------------------------------------------------

Found = dict[Method, dict[int, dict[str, Any]]]


def _best(found: Found, m: int) -> float:
    return min(row[m]["value"] for row in found.values() if "value" in row.get(m, {}))


def _table(found: Found, m: int) -> Table:
    columns = (
        "method", "seconds", "iterations", "F", "(F − best) / F", "(F − best) / decided",
        "rank", "λ_min", "complementarity", "certified relative gap", "by the edge bound",
    )  # fmt: skip
    table = Table(f"m = {m}", columns)
    best = _best(found, m)
    for method, series in found.items():
        if m not in series:
            continue
        row = series[m]
        printed = PRINTED.get(m, {}).get(method.printed, (None, None))
        if "error" in row:
            table.add(
                method.label,
                Versus(row["error"], printed[0]),
                Versus(None, printed[1]),
                *[None] * 8,
            )
            continue
        table.add(
            method.label,
            Versus(row["seconds"], printed[0]),
            Versus(row["iterations"], printed[1]),
            f"{row['value']:.10g}",
            (row["value"] - best) / abs(best),
            (row["value"] - best) / row["decided"],
            row["rank"],
            row["lambda_min"],
            row["complementarity"],
            row["relative_gap"],
            row["edge_gap"],
        )
    return table


def _verdicts(found: Found, sizes: list[int]) -> Table:
    """What the figures say, computed from them."""
    table = Table("Verdicts", ("claim", "figure", "holds"))
    for m in (m for m in sizes if m <= 30):
        values = [
            series[m]["value"]
            for method, series in found.items()
            if method.solver in ("sqlp", "scsdp") and "value" in series.get(m, {})
        ]
        spread = (max(values) - min(values)) / abs(min(values))
        table.add(
            f"SQLP and SCSDP ({len(values)} runs) agree to 8 digits, m = {m}",
            spread,
            bool(spread <= DIGITS),
        )
    exponents = {method.label: _exponent(series) for method, series in found.items()}
    sqlp = exponents["SQLP, Clarabel"]
    for label, exponent in exponents.items():
        if label.startswith("SCSDP"):
            faster = None if exponent is None or sqlp is None else exponent > sqlp
            claim = f"{label}: time grows faster with m than SQLP by Clarabel, m^{sqlp or 0:.1f}"
            table.add(claim, None if exponent is None else f"m^{exponent:.1f}", faster)
    for backend in ("Clarabel", "SCS"):
        series = {
            method.label: series
            for method, series in found.items()
            if method.label.endswith(backend) and "every row" not in method.label
        }
        for m in sizes:
            times = {k: s[m]["seconds"] for k, s in series.items() if "seconds" in s.get(m, {})}
            if len(times) > 1:
                first = min(times, key=times.__getitem__)
                claim = f"direct is the fastest by {backend}, m = {m}"
                table.add(claim, f"{first}, {times[first]:.3g} s", first.startswith("direct"))
    return table


def _exponent(series: dict[int, dict[str, Any]]) -> float | None:
    """The slope of log time against log m; None for fewer than two times."""
    times = {m: row["seconds"] for m, row in series.items() if "seconds" in row}
    if len(times) < 2:
        return None
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def _bases(sizes: list[int]) -> Table:
    table = Table("The basis", ("m", "seconds of eigsh", "λ_1", "λ_m", "seed", "edges"))
    roll = swiss_roll()
    for m in sizes:
        start = time.perf_counter()
        values, _ = smooth_basis(roll.graph, m)
        seconds = time.perf_counter() - start
        table.add(m, seconds, float(values[0]), float(values[-1]), roll.seed, len(roll.edges))
    return table
