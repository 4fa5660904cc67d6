"""A convex quadratic over Y ⪰ 0 in the formulations of the SQLP thesis, and by auto.

The code that Tables 3.1 and 3.2 share: the formulations, one call of each at growing order, and the
tables and the picture.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.learn import ratio, slope
from benchmarks.harness.report import Table, Versus

TOL = 1e-8
DIGITS = 1e-8
STARTUP = 30.0
"""Seconds of a process besides its limit."""
REPEAT_BELOW = 5.0
"""Seconds: calls are repeated while their sum is below this."""
SIZES = (10, 15, 20, 25, 30, 35, 40, 50, 60, 80, 100), (10,)
LIMITS = 60.0, 10.0
"""Orders and seconds per call, of a full and of a quick run."""

NOTES = (
    "Seconds: medians of whole calls of `minimize` (rows, QR factorisation, conic solver, "
    "certificate), one thread; the basis Q is timed separately.",
    "SCSDP whole cone: a semidefinite cone of order m(m+1)/2 + 1, as in the thesis except for the "
    "QR factorisation (m² + 1 there). Decomposed: Clarabel splits the arrow into cones of order 2.",
    "The certified relative gap is gramian's, not the one that a solver reports. A method that "
    "failed or timed out is not run at larger m. The paper's seconds: CSDP for SCSDP, SDPT3 for "
    "SQLP, another machine.",
)

Printed = Mapping[int, Mapping[str, tuple[float, int]]]
"""Order: formulation -> (seconds, iterations) of the thesis."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A row of the tables, and the column of the thesis for it."""

    label: str
    solver: str
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    printed: str = ""


CLARABEL, SCS = {"backend": "clarabel"}, {"backend": "scs"}
METHODS = (
    Method("SCSDP whole cone, Clarabel", "scsdp", {**CLARABEL, "decompose": False}, "scsdp"),
    Method("SCSDP decomposed, Clarabel", "scsdp", CLARABEL),
    Method("SCSDP, SCS", "scsdp", SCS),
    Method("SQLP, Clarabel", "sqlp", CLARABEL, "sqlp"),
    Method("SQLP, SCS", "sqlp", SCS, "sqlp"),
    Method("direct, Clarabel", "conic", CLARABEL),
    Method("direct, SCS", "conic", SCS),
    Method("auto", "auto"),
)
Found = dict[Method, dict[int, Row]]
"""By method and order."""


def measured(problem: gm.Problem, solver: str, options: dict[str, Any], repeat: int) -> Row:
    """Median seconds of `minimize`, and the certificate of its last answer."""
    seconds: list[float] = []
    while len(seconds) < repeat and sum(seconds) < REPEAT_BELOW:
        result = gm.minimize(problem, solver, tol=TOL, **options)
        seconds.append(result.seconds)
    history, gap = result.history, result.certificate.gap
    inner = "conic_iterations" in history.columns
    decrease = problem.value(result.factor[:, :0]) - result.value
    return {
        "seconds": statistics.median(seconds),
        "iterations": int(history["conic_iterations"][-1]) if inner else result.iterations,
        "value": result.value,
        "relative_gap": result.certificate.relative_gap,
        "gap_of_decrease": None if gap is None or decrease <= 0 else gap / decrease,
        "rank": result.rank,
        "status": result.status.name,
    }


def all_series(ctx: Context, solve: Any, given: Mapping[int, dict[str, Any]]) -> Found:
    """The rows of every method: `solve` at every order until a failure or the time limit."""
    return ctx.each({m: partial(_series, ctx, solve, m, given, ctx.pick(*LIMITS)) for m in METHODS})


def _series(
    ctx: Context, solve: Any, method: Method, given: Mapping[int, dict[str, Any]], limit: float
) -> dict[int, Row]:
    timed = {"time_limit": limit} if method.solver == "auto" else {}
    options = {**method.options, **timed}
    found: dict[int, Row] = {}
    for m, arguments in given.items():
        answer = ctx.child(
            solve, limit + STARTUP, **arguments, solver=method.solver, options=options,
            repeat=ctx.repeat,
        )  # fmt: skip
        found[m] = answer.value if answer.ok else {"status": answer.error}
        if not answer.ok or (found[m]["seconds"] > limit and not timed):
            break
    return found


def tables(found: Found, printed: Printed, sizes: tuple[int, ...]) -> list[Table]:
    """Verdicts, seconds by order, and a table of every order."""
    each = [_table(found, printed, m) for m in sizes]
    return [_verdicts(found, sizes), _seconds(found, printed, sizes), *each]


def curves(ctx: Context, found: Found) -> None:
    """Seconds against m, the thesis' Figures 3.2 and 3.3."""
    times = {
        method.label: {m: row["seconds"] for m, row in rows.items() if "seconds" in row}
        for method, rows in found.items()
    }
    lines = {label: (list(t), list(t.values())) for label, t in times.items() if t}
    caption = "Seconds of a call against m"
    ctx.plot("seconds", lines, "m", "seconds", logx=True, logy=True, caption=caption)


def _verdicts(found: Found, sizes: tuple[int, ...]) -> Table:
    columns = (
        "m", "methods that ended", "their F agree to", "8 digits", "auto's certified gap",
        f"≤ {TOL:g}", "auto's seconds", "SQLP by Clarabel ÷ auto", "fastest certified",
    )  # fmt: skip
    table = Table("Verdicts", columns)
    for m in sizes:
        ended = {at.label: rows[m] for at, rows in found.items() if "value" in rows.get(m, {})}
        auto, sqlp = (ended.get(label, {}) for label in ("auto", "SQLP, Clarabel"))
        values = [row["value"] for row in ended.values()]
        spread = (max(values) - min(values)) / abs(min(values)) if len(values) > 1 else None
        proved = {label: row["seconds"] for label, row in ended.items() if proves(row)}
        table.add(
            m, len(ended), spread, None if spread is None else bool(spread <= DIGITS),
            auto.get("relative_gap"), proves(auto), auto.get("seconds"),
            ratio(sqlp.get("seconds"), auto.get("seconds")),
            min(proved, key=proved.__getitem__, default=None),
        )  # fmt: skip
    return table


def proves(row: Row) -> bool:
    """Whether the certified gap is as small as requested."""
    gap = row.get("relative_gap")
    return gap is not None and bool(gap <= TOL)


def _seconds(found: Found, printed: Printed, sizes: tuple[int, ...]) -> Table:
    table = Table("Seconds", ("method", *(f"m = {m}" for m in sizes), "grows as"))
    for method, rows in found.items():
        theirs = {m: printed[m].get(method.printed, (None,))[0] for m in sizes}
        ours = {m: rows.get(m, {}).get("seconds") for m in sizes}
        cells = [Versus(ours[m], theirs[m]) for m in sizes]
        table.add(method.label, *cells, Versus(_growth(ours), _growth(theirs)))
    return table


def _growth(seconds: dict[int, float | None]) -> str | None:
    """The power of m by least squares of the logarithms; None for fewer than three times."""
    known = sum(value is not None for value in seconds.values())
    return f"m^{slope(seconds):.1f}" if known >= 3 else None


def _table(found: Found, printed: Printed, m: int) -> Table:
    columns = (
        "method", "seconds", "iterations", "F", "(F − best) / F", "rank",
        "certified relative gap", f"≤ {TOL:g}", "status",
    )  # fmt: skip
    table = Table(f"m = {m}", columns)
    ended = [rows[m]["value"] for rows in found.values() if "value" in rows.get(m, {})]
    best = min(ended, default=np.nan)
    for method, row in ((method, rows[m]) for method, rows in found.items() if m in rows):
        value = row.get("value")
        seconds, iterations = printed[m].get(method.printed, (None, None))
        table.add(
            method.label, Versus(row.get("seconds"), seconds),
            Versus(row.get("iterations"), iterations), None if value is None else f"{value:.10g}",
            None if value is None else (value - best) / abs(best), row.get("rank"),
            row.get("relative_gap"), proves(row), row["status"],
        )  # fmt: skip
    return table
