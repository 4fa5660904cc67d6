"""RegMVU at the largest basis of the SQLP thesis: `auto` against Clarabel and L-BFGS.

ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0, with the m smoothest eigenvectors Q of the Laplacian
of the connected symmetric 4-NN graph of a Swiss roll of 2000 points. `auto` is run to a certified
relative gap of 1e-8 up to m = 100, for three weights ν; Clarabel, with the quadratic in the
objective, for one of them, up to the m that it solves in five minutes.
"""

from typing import Any

from benchmarks._formulations import Row, proves
from benchmarks._models import roll_bases
from benchmarks.harness.context import Context
from benchmarks.harness.learn import ratio
from benchmarks.harness.report import Report, Table, Versus
from benchmarks.sqlp_table31 import PRINTED, solve

TITLE = "RegMVU on a Swiss roll: auto at m = 100 against an interior-point solver"
PAPER = "SQLP (Wu 2011), Table 3.1, m = 100"

WEIGHTS, CONIC_WEIGHT = (1e3, 1e5, 1e7), 1e5
SIZES = (10, 20, 30, 40, 50, 100), (10, 15)
CONIC_SIZES = (30, 40, 50, 60, 80, 100), (10, 15)
CONIC_LIMITS = 300.0, 30.0
SHARE = 0.1
LARGEST_LIMIT, SMALLER_LIMIT, LBFGS_LIMIT = 60.0, 10.0, 30.0
STARTUP = 70.0
"""Seconds of a process for its imports, the roll, the basis and the last certificate."""

NOTES = (
    "Seconds: medians of whole calls of `minimize`, certificate included, one thread; the basis Q "
    "is timed separately. Nothing is rescaled beforehand.",
    "F contains the residual that no Y in this basis removes; the last gap is therefore relative "
    "to the decrease F(0) − F.",
    f"Clarabel was run for ν = {CONIC_WEIGHT:g} only; the ratios of every ν are to that run.",
    "Paper: SDPT3 on the SQLP form to a relative gap of 1e-8, another machine; ν is not printed.",
    f"Time limits: auto {LARGEST_LIMIT:g} s at the largest m and {SMALLER_LIMIT:g} s below, lbfgs "
    f"{LBFGS_LIMIT:g} s, Clarabel's process {CONIC_LIMITS[0]:g} s ({CONIC_LIMITS[1]:g} s in a "
    "quick run).",
)


def run(ctx: Context) -> Report:
    """`auto` at every m and ν, L-BFGS at the rank that `auto` found, and Clarabel."""
    sizes = ctx.pick(*SIZES)
    auto = {nu: {m: _auto(ctx, m, nu, m == sizes[-1]) for m in sizes} for nu in WEIGHTS}
    lbfgs = {nu: _lbfgs(ctx, sizes[-1], nu, auto[nu][sizes[-1]]) for nu in WEIGHTS}
    conic: dict[int, Row] = {}
    for m in ctx.pick(*CONIC_SIZES):  # up to the first that fails or takes too long
        limit = ctx.pick(*CONIC_LIMITS)
        conic[m] = _call(ctx, m, CONIC_WEIGHT, "conic", 1, limit, backend="clarabel")
        if "value" not in conic[m]:
            break
    tables = [_table(nu, auto[nu], lbfgs[nu], conic if nu == CONIC_WEIGHT else {}) for nu in auto]
    return ctx.report([_verdicts(auto, conic), *tables, roll_bases(sizes)], NOTES)


def _call(
    ctx: Context, m: int, nu: float, solver: str, repeat: int, timeout: float, **options: Any
) -> Row:
    kwargs = {"m": m, "nu": nu, "solver": solver, "repeat": repeat, "options": options}
    answer = ctx.child(solve, timeout, **kwargs)
    return answer.value if answer.ok else {"status": answer.error}


def _auto(ctx: Context, m: int, nu: float, largest: bool) -> Row:
    limit = LARGEST_LIMIT if largest else SMALLER_LIMIT
    return _call(ctx, m, nu, "auto", ctx.repeat, limit + STARTUP, time_limit=limit)


def _lbfgs(ctx: Context, m: int, nu: float, found: Row) -> Row:
    if "rank" not in found:
        return {"status": "no rank from auto"}
    options = {"time_limit": LBFGS_LIMIT, "rank": max(found["rank"], 1)}
    return _call(ctx, m, nu, "lbfgs", 1, LBFGS_LIMIT + STARTUP, **options)


def _verdicts(auto: dict[float, dict[int, Row]], conic: dict[int, Row]) -> Table:
    """`auto` at the largest m against the largest m that Clarabel finished."""
    m = max(next(iter(auto.values())))
    columns = (
        "ν", f"auto's seconds, m = {m}", "Clarabel's largest m", "its seconds", "auto ÷ Clarabel",
        f"≤ {SHARE:g}", "certified relative gap", "≤ 1e-08",
    )  # fmt: skip
    table = Table("Verdicts", columns)
    reached = max((size for size, row in conic.items() if "value" in row), default=None)
    theirs = None if reached is None else conic[reached]["seconds"]
    for nu, rows in auto.items():
        row, printed = rows[m], PRINTED.get(m, {}).get("sqlp", (None, None))[0]
        share = ratio(row.get("seconds"), theirs)
        table.add(
            f"{nu:g}", Versus(row.get("seconds"), printed), reached, theirs, share,
            None if share is None else bool(share <= SHARE), row.get("relative_gap"), proves(row),
        )  # fmt: skip
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
        seconds, iterations = PRINTED.get(m, {}).get("sqlp", (None, None))
        for method, row in rows.items():
            if row is None:
                continue
            value = row.get("value")
            above = None if value is None or reference is None else value - reference
            table.add(
                m, method, Versus(row.get("seconds"), seconds),
                Versus(row.get("iterations"), iterations),
                None if value is None else f"{value:.10g}",
                None if above is None else above / abs(reference),
                *(row.get(key) for key in ("relative_gap", "gap_of_decrease", "rank", "status")),
            )  # fmt: skip
    return table
