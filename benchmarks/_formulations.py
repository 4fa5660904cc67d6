"""A convex quadratic over Y ⪰ 0 in every way the SQLP thesis writes it, and by auto.

What its Tables 3.1 and 3.2 have in common: the formulations, one call of each at growing order, and
the tables and the picture made of them.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.report import Table, Versus

TOL = 1e-8
DIGITS = 1e-8
STARTUP = 30.0
"""Seconds a child may spend beside its limit."""
REPEAT_BELOW = 5.0
"""Seconds: calls are repeated while they took less than this together."""

NOTES = (
    "Seconds are medians of whole calls of `minimize`: rows, their QR factorisation, the conic "
    "solver, the certificate. The basis Q is timed apart. One thread.",
    "SCSDP whole cone: a semidefinite cone of order m(m+1)/2 + 1, as in the thesis but for the QR "
    "factorisation (m² + 1 there). Decomposed: Clarabel splits the arrow into cones of order 2.",
    "The certified relative gap is that of gramian's certificate at the answer, not what a solver "
    "says of itself.",
    "A method that has failed or timed out is not tried at larger m. The paper's seconds are "
    "another machine's, of CSDP for SCSDP and SDPT3 for SQLP.",
)

Printed = Mapping[int, Mapping[str, tuple[float, int]]]
"""Order: formulation -> (seconds, iterations) of the thesis."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A row of the table: what is called, and which of the thesis' columns it is."""

    label: str
    solver: str
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    printed: str = ""


METHODS = (
    Method(
        "SCSDP whole cone, Clarabel", "scsdp", {"backend": "clarabel", "decompose": False}, "scsdp"
    ),
    Method("SCSDP decomposed, Clarabel", "scsdp", {"backend": "clarabel"}),
    Method("SCSDP, SCS", "scsdp", {"backend": "scs"}),
    Method("SQLP, Clarabel", "sqlp", {"backend": "clarabel"}, "sqlp"),
    Method("SQLP, SCS", "sqlp", {"backend": "scs"}, "sqlp"),
    Method("direct, Clarabel", "conic", {"backend": "clarabel"}),
    Method("direct, SCS", "conic", {"backend": "scs"}),
    Method("auto", "auto"),
)

Found = dict[Method, dict[int, Row]]
"""By method, by order."""


def measured(problem: gm.Problem, solver: str, options: dict[str, Any], repeat: int) -> Row:
    """Median seconds of `minimize`, and what is proved of its last answer."""
    seconds: list[float] = []
    while len(seconds) < repeat and sum(seconds) < REPEAT_BELOW:
        result = gm.minimize(problem, solver, tol=TOL, **options)
        seconds.append(result.seconds)
    inner = "conic_iterations" in result.history.columns
    return {
        "seconds": statistics.median(seconds),
        "iterations": int(result.history["conic_iterations"][-1]) if inner else result.iterations,
        "value": result.value,
        "relative_gap": result.certificate.relative_gap,
        "rank": result.rank,
        "status": result.status.name,
    }


def all_series(ctx: Context, call: str, given: Mapping[int, dict[str, Any]], limit: float) -> Found:
    """Every method's series, beside each other where several processes may run."""
    calls = [partial(series, ctx, call, method, given, limit) for method in METHODS]
    return dict(zip(METHODS, ctx.at_once(calls), strict=True))


def series(
    ctx: Context, call: str, method: Method, given: Mapping[int, dict[str, Any]], limit: float
) -> dict[int, Row]:
    """What `call` returns in a process of its own at every order until a failure or the limit."""
    timed = {"time_limit": limit} if method.solver == "auto" else {}
    found: dict[int, Row] = {}
    for m, arguments in given.items():
        kwargs = {
            **arguments, "solver": method.solver, "options": {**method.options, **timed},
            "repeat": ctx.repeat,
        }  # fmt: skip
        answer = ctx.in_child(call, kwargs, limit + STARTUP, threads=1)
        found[m] = answer.value if answer.ok else {"status": answer.error}
        if not answer.ok or (found[m]["seconds"] > limit and not timed):
            break
    return found


def tables(found: Found, printed: Printed, sizes: tuple[int, ...]) -> list[Table]:
    """Verdicts, seconds by order, and a table of every order."""
    return [
        _verdicts(found, sizes),
        _seconds(found, printed, sizes),
        *(_table(found, printed, m) for m in sizes),
    ]


def curves(ctx: Context, found: Found) -> None:
    """Seconds against m, the thesis' Figures 3.2 and 3.3."""
    lines = {}
    for method, rows in found.items():
        times = {m: row["seconds"] for m, row in rows.items() if "seconds" in row}
        if times:
            lines[method.label] = (list(times), list(times.values()))
    caption = "Seconds of a call against m"
    ctx.plot("seconds", lines, "m", "seconds", logx=True, logy=True, caption=caption)


def _verdicts(found: Found, sizes: tuple[int, ...]) -> Table:
    """What the figures say, computed from them."""
    columns = (
        "m", "methods that ended", "their F agree to", "8 digits", "auto's certified gap",
        f"≤ {TOL:g}", "auto's seconds", "SQLP by Clarabel ÷ auto", "fastest certified",
    )  # fmt: skip
    table = Table("Verdicts", columns)
    by_label = {method.label: rows for method, rows in found.items()}
    for m in sizes:
        ended = {label: rows[m] for label, rows in by_label.items() if "value" in rows.get(m, {})}
        auto, sqlp = (ended.get(label, {}) for label in ("auto", "SQLP, Clarabel"))
        values = [row["value"] for row in ended.values()]
        spread = (max(values) - min(values)) / abs(min(values)) if len(values) > 1 else None
        table.add(
            m,
            len(ended),
            spread,
            None if spread is None else bool(spread <= DIGITS),
            auto.get("relative_gap"),
            _proved(auto),
            auto.get("seconds"),
            sqlp["seconds"] / auto["seconds"] if auto and sqlp else None,
            _fastest(ended),
        )
    return table


def _proved(row: Row) -> bool:
    gap = row.get("relative_gap")
    return gap is not None and gap <= TOL


def _fastest(rows: dict[str, Row]) -> str | None:
    """Of those with a certified gap as asked for."""
    proved = {label: row["seconds"] for label, row in rows.items() if _proved(row)}
    return min(proved, key=proved.__getitem__, default=None)


def _seconds(found: Found, printed: Printed, sizes: tuple[int, ...]) -> Table:
    columns = ("method", *(f"m = {m}" for m in sizes), "grows as")
    table = Table("Seconds", columns)
    for method, rows in found.items():
        theirs = [printed[m].get(method.printed, (None,))[0] for m in sizes]
        ours = [rows.get(m, {}).get("seconds") for m in sizes]
        table.add(
            method.label,
            *(Versus(mine, given) for mine, given in zip(ours, theirs, strict=True)),
            Versus(_growth(sizes, ours), _growth(sizes, theirs)),
        )
    return table


def _growth(sizes: tuple[int, ...], seconds: list[float | None]) -> str | None:
    """The power of m, least squares of the logarithms; None for fewer than three times."""
    times = {m: value for m, value in zip(sizes, seconds, strict=True) if value is not None}
    if len(times) < 3:
        return None
    return f"m^{np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]:.1f}"


def _table(found: Found, printed: Printed, m: int) -> Table:
    columns = (
        "method", "seconds", "iterations", "F", "(F − best) / F", "rank",
        "certified relative gap", f"≤ {TOL:g}", "status",
    )  # fmt: skip
    table = Table(f"m = {m}", columns)
    ended = [rows[m]["value"] for rows in found.values() if "value" in rows.get(m, {})]
    best = min(ended, default=np.nan)
    for method, rows in found.items():
        if m not in rows:
            continue
        row = rows[m]
        value = row.get("value")
        seconds, iterations = printed[m].get(method.printed, (None, None))
        table.add(
            method.label,
            Versus(row.get("seconds"), seconds),
            Versus(row.get("iterations"), iterations),
            None if value is None else f"{value:.10g}",
            None if value is None else (value - best) / abs(best),
            row.get("rank"),
            row.get("relative_gap"),
            _proved(row),
            row["status"],
        )
    return table
