"""RegMVU at the largest basis of the SQLP thesis: `auto` against Clarabel and L-BFGS.

ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0, with the m smoothest eigenvectors Q of the Laplacian
of the connected symmetric 4-NN graph of a Swiss roll of 2000 points. `auto` is asked for a
certified relative gap of 1e-8 up to m = 100, for three weights ν; Clarabel, with the quadratic in
the objective, goes as far as it comes in five minutes for one of them.
"""

import statistics
import time
from typing import Any

import gramian as gm
from benchmarks._models import smooth_basis, swiss_roll
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table, Versus
from benchmarks.sqlp_table31 import PRINTED

TITLE = "RegMVU on a Swiss roll: auto at m = 100 against an interior-point solver"
PAPER = "SQLP (Wu 2011), Table 3.1, m = 100"

WEIGHTS, CONIC_WEIGHT = (1e3, 1e5, 1e7), 1e5
SIZES, SIZES_QUICK = (10, 20, 30, 40, 50, 100), (10, 15)
CONIC_SIZES, CONIC_SIZES_QUICK = (30, 40, 50, 60, 80, 100), (10, 15)
TOL, SHARE = 1e-8, 0.1
CONIC_LIMIT, CONIC_LIMIT_QUICK = 300.0, 30.0
LARGEST_LIMIT, SMALLER_LIMIT, LBFGS_LIMIT = 60.0, 10.0, 30.0
STARTUP = 60.0
"""Seconds a child may spend on its imports, the roll, the basis and the last certificate."""
REPEAT_BELOW = 10.0
"""Seconds: calls are repeated while they took less than this together."""

NOTES = (
    "Seconds are medians of whole calls of `minimize`, certificate included, in a process with "
    "one thread; the basis Q is timed apart. A call that takes long is made once.",
    "The variable is Y in the basis Q: nothing is rescaled beforehand.",
    "F holds what no Y in this basis can fit, so beside the certified relative gap stands the same "
    "gap as a share of F(0) − F, the part that the answer has won.",
    f"Clarabel ran for ν = {CONIC_WEIGHT:g} alone; the ratios of every ν are to that run.",
    "Paper: SDPT3 on the SQLP form at a relative gap of 1e-8, on its authors' machine; ν is not "
    "printed there.",
)

Row = dict[str, Any]


def run(ctx: Context) -> Report:
    """`auto` at every m and ν, then L-BFGS at the ranks it found, then Clarabel upwards."""
    sizes = SIZES_QUICK if ctx.quick else SIZES
    auto = {nu: {m: _auto(ctx, m, nu, m == sizes[-1]) for m in sizes} for nu in WEIGHTS}
    lbfgs = {nu: _lbfgs(ctx, sizes[-1], nu, auto[nu][sizes[-1]]) for nu in WEIGHTS}
    conic = _conic(ctx)
    tables = [_table(nu, auto[nu], lbfgs[nu], conic if nu == CONIC_WEIGHT else {}) for nu in auto]
    return ctx.report([_verdicts(auto, conic), *tables, _bases(sizes)], (*NOTES, _limits(ctx)))


# --- one call, in a process of its own -----------------------------------------------


def solve(m: int, nu: float, solver: str, repeat: int, options: dict[str, Any]) -> Row:
    """Median seconds of `minimize`, and what is proved of its last answer."""
    roll = swiss_roll()
    _, Q = smooth_basis(roll.graph, m)
    problem = gm.problems.reg_mvu(Q, roll.edges, roll.sq_distances, nu)
    seconds: list[float] = []
    while len(seconds) < repeat and sum(seconds) < REPEAT_BELOW:
        result = gm.minimize(problem, solver, tol=TOL, **options)
        seconds.append(result.seconds)
    history, gap = result.history, result.certificate.gap
    inner = "conic_iterations" in history.columns
    won = problem.value(result.factor[:, :0]) - result.value
    return {
        "seconds": statistics.median(seconds),
        "iterations": int(history["conic_iterations"][-1]) if inner else result.iterations,
        "value": result.value,
        "relative_gap": result.certificate.relative_gap,
        "share_of_won": None if gap is None or won <= 0 else gap / won,
        "rank": result.rank,
        "status": result.status.name,
    }


def _call(
    ctx: Context, m: int, nu: float, solver: str, repeat: int, timeout: float, **options: Any
) -> Row:
    kwargs = {"m": m, "nu": nu, "solver": solver, "repeat": repeat, "options": options}
    answer = ctx.in_child("benchmarks.regmvu_auto:solve", kwargs, timeout, threads=1)
    return answer.value if answer.ok else {"status": answer.error}


def _auto(ctx: Context, m: int, nu: float, largest: bool) -> Row:
    limit = LARGEST_LIMIT if largest else SMALLER_LIMIT
    timeout = limit + REPEAT_BELOW + STARTUP
    return _call(ctx, m, nu, "auto", ctx.repeat, timeout, time_limit=limit)


def _lbfgs(ctx: Context, m: int, nu: float, found: Row) -> Row:
    """L-BFGS told the rank that `auto` had to find."""
    if "rank" not in found:
        return {"status": "no rank from auto"}
    options = {"time_limit": LBFGS_LIMIT, "rank": max(found["rank"], 1)}
    return _call(ctx, m, nu, "lbfgs", 1, LBFGS_LIMIT + STARTUP, **options)


def _conic(ctx: Context) -> dict[int, Row]:
    """Clarabel at growing m, one call each, up to the first that fails or takes too long."""
    limit = CONIC_LIMIT_QUICK if ctx.quick else CONIC_LIMIT
    found: dict[int, Row] = {}
    for m in CONIC_SIZES_QUICK if ctx.quick else CONIC_SIZES:
        found[m] = _call(ctx, m, CONIC_WEIGHT, "conic", 1, limit, backend="clarabel")
        if "value" not in found[m]:
            break
    return found


# --- tables --------------------------------------------------------------------------


def _verdicts(auto: dict[float, dict[int, Row]], conic: dict[int, Row]) -> Table:
    """`auto` at the largest m against the largest m that Clarabel finished."""
    m = max(next(iter(auto.values())))
    columns = (
        "ν", f"auto's seconds, m = {m}", "Clarabel's largest m", "its seconds", "auto ÷ Clarabel",
        f"≤ {SHARE:g}", "certified relative gap", f"≤ {TOL:g}",
    )  # fmt: skip
    table = Table("Verdicts", columns)
    reached = max((size for size, row in conic.items() if "value" in row), default=None)
    theirs = None if reached is None else conic[reached]["seconds"]
    for nu, rows in auto.items():
        ours, gap = rows[m].get("seconds"), rows[m].get("relative_gap")
        ratio = None if ours is None or theirs is None else ours / theirs
        table.add(
            f"{nu:g}",
            Versus(ours, _printed(m)[0]),
            reached,
            theirs,
            ratio,
            None if ratio is None else bool(ratio <= SHARE),
            gap,
            bool(gap is not None and gap <= TOL),
        )
    return table


def _table(nu: float, auto: dict[int, Row], lbfgs: Row, conic: dict[int, Row]) -> Table:
    columns = (
        "m", "method", "seconds", "iterations", "F", "F above Clarabel's, relative",
        "certified relative gap", "gap ÷ (F(0) − F)", "rank", "status",
    )  # fmt: skip
    table = Table(f"ν = {nu:g}", columns)
    for m in sorted({*auto, *conic}):
        rows = {"auto": auto.get(m), "direct, Clarabel": conic.get(m)}
        if m == max(auto):
            rows["lbfgs, rank of auto"] = lbfgs
        reference = conic.get(m, {}).get("value")
        for method, row in rows.items():
            if row is not None:
                table.add(m, method, *_cells(m, row, reference))
    return table


def _cells(m: int, row: Row, reference: float | None) -> tuple[Any, ...]:
    value = row.get("value")
    above = None if value is None or reference is None else (value - reference) / abs(reference)
    seconds, iterations = _printed(m)
    return (
        Versus(row.get("seconds"), seconds),
        Versus(row.get("iterations"), iterations),
        None if value is None else f"{value:.10g}",
        above,
        row.get("relative_gap"),
        row.get("share_of_won"),
        row.get("rank"),
        row["status"],
    )


def _printed(m: int) -> tuple[float | None, int | None]:
    """Seconds and iterations of the thesis for the SQLP form."""
    return PRINTED.get(m, {}).get("sqlp", (None, None))


def _bases(sizes: tuple[int, ...]) -> Table:
    roll = swiss_roll()
    caption = f"The basis: seed {roll.seed}, {len(roll.edges)} edges"
    table = Table(caption, ("m", "seconds of eigsh", "λ_1", "λ_m"))
    for m in sizes:
        start = time.perf_counter()
        values, _ = smooth_basis(roll.graph, m)
        table.add(m, time.perf_counter() - start, float(values[0]), float(values[-1]))
    return table


def _limits(ctx: Context) -> str:
    conic = CONIC_LIMIT_QUICK if ctx.quick else CONIC_LIMIT
    return (
        f"Time limits: auto {LARGEST_LIMIT:g} s at the largest m and {SMALLER_LIMIT:g} s below, "
        f"lbfgs {LBFGS_LIMIT:g} s; Clarabel's process is ended after {conic:g} s, and larger m are "
        "not tried after that."
    )
