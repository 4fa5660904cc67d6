"""SDPLIB beside Clarabel and SCS: value and violation against the printed optimum, seconds, memory.

Files `sdplib/NAME.dat-s.gz` and `sdplib/optima.csv` in the folder of --data, or in its `sdp/`.
"""

import csv
from pathlib import Path
from typing import Any

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "SDPLIB: gramian beside Clarabel and SCS"
PAPER = "Borchers, SDPLIB 1.2 (1999): the optima as printed there"

LIMIT, LIMIT_QUICK = 120.0, 10.0
SOLVERS = ("gramian", "clarabel", "scs")
FIRST = ("mcp", "maxG", "theta", "gpp")
"""Families that low rank is made for."""
QUICK = ("mcp100", "gpp100", "theta1", "control1", "truss1", "infd1", "infp1")
TOL = 1e-6
FEASIBLE = 1e-12
"""A violation that is rounding."""

Row = dict[str, Any]


def run(ctx: Context) -> Report:
    """Every problem by every solver, each in a process of its own."""
    folder = sdp_folder(ctx) / "sdplib"
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    columns = ["problem", "order", "rows", "printed"]
    for solver in SOLVERS:
        columns += [f"{solver} s", f"{solver} error", f"{solver} violation", f"{solver} MB"]
    table = Table(f"Seconds to {TOL:g}, at most {limit:g} s", [*columns, "certified gap", "status"])
    solved = {solver: {1e-4: 0, 1e-6: 0} for solver in SOLVERS}
    lost, refuted = [], []
    for name, rows, order, printed, half in listed(folder / "optima.csv"):
        path = folder / f"{name}.dat-s.gz"
        if not path.exists() or (ctx.quick and name not in QUICK):
            continue
        cells: list[Any] = [name, order, rows, printed]
        seconds = {}
        for solver in SOLVERS:
            found = ctx.in_child(
                "benchmarks._sdp.calls:solve",
                {"kind": "sdpa", "name": str(path), "solver": solver, "limit": limit, "tol": TOL},
                1.5 * limit + 30,
            )
            told = found.value if found.ok else {}
            error = off(told.get("value"), printed, half)
            cells += [told.get("seconds"), error, told.get("violation"), found.peak_mb]
            for level in solved[solver]:
                solved[solver][level] += good(told, error, level)
            if good(told, error, 1e-4):
                seconds[solver] = told["seconds"]
            if solver == "gramian":
                ours = told
        cells += [ours.get("gap"), ours.get("status")]
        refuted += refutation(name, ours, printed, half)
        table.add(*cells)
        first = min(seconds, key=lambda solver: seconds[solver], default="none of them")
        if name.startswith(FIRST) and order >= 250 and first != "gramian":
            lost.append(f"{name} ({first})")
    return ctx.report([table, _totals(solved)], [*_notes(lost, limit), *refuted])


def sdp_folder(ctx: Context) -> Path:
    """Where the semidefinite programs are."""
    folder = ctx.data_folder or Path()
    return folder / "sdp" if (folder / "sdp").is_dir() else folder


def listed(path: Path) -> list[tuple[str, int, int, float | str, float]]:
    """Name, rows, order and optimum of every problem, and half a unit of its last digit."""
    with open(path) as file:
        table = list(csv.DictReader(file))
    return [(r["problem"], int(r["m"]), int(r["n"]), *_number(r["optimum"])) for r in table]


def _number(word: str) -> tuple[float | str, float]:
    """A number and half a unit of its last digit; a word, as infeasible problems have it, and 0."""
    try:
        number = float(word)
    except ValueError:
        return word, 0.0
    digits, _, power = word.lower().partition("e")
    return number, 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def off(value: float | None, printed: float | str, half: float = 0.0) -> float | None:
    """The relative error beyond half a unit of the last digit; SDPA maximises, we minimise."""
    if value is None or isinstance(printed, str):
        return None
    return max(0.0, abs(-value - printed) - half) / max(abs(printed), 1.0)


def refutation(name: str, ours: Row, printed: float | str, half: float) -> list[str]:
    """A sentence where the printed optimum lies outside what a feasible pair proves of it."""
    if isinstance(printed, str) or not ours.get("proved") or ours["violation"] > FEASIBLE:
        return []
    low, high = -ours["value"], -ours["bound"]  # SDPA maximises
    if low - half <= printed <= high + half:
        return []
    return [f"The optimum printed for {name}, {printed:g}, is none: it is {low:.7g} to {high:.7g}."]


def good(told: Row, error: float | None, level: float) -> bool:
    """Whether value and violation are within the level, or an infeasible one was called so."""
    if error is None:
        words = str(told.get("status", "")).lower()
        return "infeasible" in words or "unbounded" in words
    return error <= level and told["violation"] <= level


def _totals(solved: dict[str, dict[float, int]]) -> Table:
    table = Table("Problems solved", ("solver", "to 1e-4", "to 1e-6"))
    for solver, counts in solved.items():
        table.add(solver, counts[1e-4], counts[1e-6])
    return table


def _notes(lost: list[str], limit: float) -> list[str]:
    first = ", ".join(lost) if lost else "none"
    return [
        f"Limit: {limit:g} s a call. Times are those of the solvers, files read beforehand.",
        f"Of the families mcp, maxG, theta and gpp with order 250 and more, not first: {first}.",
        "The error is beside the printed optimum, half a unit of its last digit allowed for.",
        "Blocks of up to 50 rows are handed to Clarabel by auto: the rest is certificate.",
    ]
