"""SDPLIB by gramian, Clarabel and SCS: value, violation, distance from the printed optimum, costs.

Files `sdplib/NAME.dat-s.gz` and `sdplib/optima.csv` in the folder of --data, or in its `sdp/`.
"""

import csv
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.context import Context
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table

TITLE = "SDPLIB: gramian compared with Clarabel and SCS"
PAPER = "Borchers, SDPLIB 1.2 (1999): the optima as printed there"

LIMITS = 120.0, 10.0
SOLVERS = ("gramian", "clarabel", "scs")
FIRST = ("mcp", "maxG", "theta", "gpp")
"""Families for which low-rank methods are suited."""
QUICK = ("mcp100", "gpp100", "theta1", "control1", "truss1", "infd1", "infp1")
LARGE = 250
"""Order from which Clarabel may need all memory."""
TOL = 1e-6
FEASIBLE = 1e-12
"""Largest violation that is attributed to rounding."""

Row = dict[str, Any]


def run(ctx: Context) -> Report:
    """Every problem by every solver, each in its own process."""
    folder = sdp_folder(ctx) / "sdplib"
    limit = ctx.pick(*LIMITS)
    columns = ["problem", "order", "rows", "printed"]
    for solver in SOLVERS:
        columns += [f"{solver} s", f"{solver} error", f"{solver} violation", f"{solver} MB"]
    table = Table(f"Seconds to {TOL:g}, at most {limit:g} s", [*columns, "certified gap", "status"])
    solved = {solver: {1e-4: 0, 1e-6: 0} for solver in SOLVERS}
    lost, refuted = [], []
    problems = [
        problem
        for problem in listed(folder / "optima.csv")
        if _path(folder, problem[0]).exists() and (not ctx.quick or problem[0] in QUICK)
    ]
    answers = _answers(ctx, folder, {name: order for name, _, order, *_ in problems}, limit)
    for name, rows, order, printed, half in problems:
        cells: list[Any] = [name, order, rows, printed]
        seconds = {}
        for solver in SOLVERS:
            found = answers[name, solver]
            report = found.value if found.ok else {}
            error = off(report.get("value"), printed, half)
            cells += [report.get("seconds"), error, report.get("violation"), found.peak_mb]
            for level in solved[solver]:
                solved[solver][level] += good(report, error, level)
            if good(report, error, 1e-4):
                seconds[solver] = report["seconds"]
            if solver == "gramian":
                ours = report
        cells += [ours.get("gap"), ours.get("status")]
        refuted += refutation(name, ours, printed, half)
        table.add(*cells)
        first = min(seconds, key=lambda solver: seconds[solver], default="none of them")
        if name.startswith(FIRST) and order >= LARGE and first != "gramian":
            lost.append(f"{name} ({first})")
    return ctx.report([table, _totals(solved)], [*_notes(lost, limit), *refuted])


def _answers(
    ctx: Context, folder: Path, orders: dict[str, int], limit: float
) -> dict[tuple[str, str], ChildResult]:
    """By problem and solver. Large ones first; those that fill the memory one after another."""

    def solved(name: str, solver: str) -> ChildResult:
        path = str(_path(folder, name))
        kwargs = {"kind": "sdpa", "name": path, "solver": solver, "limit": limit, "tol": TOL}
        threads = ctx.threads(None)
        return ctx.in_child(
            "benchmarks._sdp.calls:solve", kwargs, 1.5 * limit + 30, threads=threads
        )

    def in_turn(cases: list[tuple[str, str]]) -> dict[tuple[str, str], ChildResult]:
        return {case: solved(*case) for case in cases}

    longest = sorted(orders, key=lambda name: -orders[name])
    cases = [(name, solver) for name in longest for solver in SOLVERS]
    filling = [(name, s) for name, s in cases if s == "clarabel" and orders[name] >= LARGE]
    groups = [filling, *([case] for case in cases if case not in filling)]
    parts = ctx.at_once([partial(in_turn, group) for group in groups])
    return {case: found for part in parts for case, found in part.items()}


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.dat-s.gz"


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
    """A sentence if the printed optimum is outside the interval that a feasible pair proves."""
    if isinstance(printed, str) or not ours.get("proved") or ours["violation"] > FEASIBLE:
        return []
    low, high = -ours["value"], -ours["bound"]  # SDPA maximises
    if low - half <= printed <= high + half:
        return []
    return [f"The optimum printed for {name}, {printed:g}, is none: it is {low:.7g} to {high:.7g}."]


def good(report: Row, error: float | None, level: float) -> bool:
    """Whether value and violation are within the level, or an infeasible one was called so."""
    if error is None:
        words = str(report.get("status", "")).lower()
        return "infeasible" in words or "unbounded" in words
    return error <= level and report["violation"] <= level


def _totals(solved: dict[str, dict[float, int]]) -> Table:
    table = Table("Problems solved", ("solver", "to 1e-4", "to 1e-6"))
    for solver, counts in solved.items():
        table.add(solver, counts[1e-4], counts[1e-6])
    return table


def _notes(lost: list[str], limit: float) -> list[str]:
    first = ", ".join(lost) if lost else "none"
    return [
        f"Limit: {limit:g} s a call. Times are those of the solvers, files read beforehand.",
        f"Of mcp, maxG, theta and gpp with order {LARGE} and more, not first: {first}.",
        "The error is relative to the printed optimum, minus half a unit of its last digit.",
        "Blocks of up to 50 rows are handed to Clarabel by auto: the rest is certificate.",
    ]
