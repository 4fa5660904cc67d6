"""MaxCut on the Gset, Lovász's theta and sensor localisation: seconds to a certified gap of 1e-4.

Files `gset/NAME.gz` in the folder of --data, or in its `sdp/`; the other graphs are made here.
"""

from functools import partial
from typing import Any

from benchmarks.harness.context import Context
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table
from benchmarks.sdp_sdplib import sdp_folder

TITLE = "MaxCut, theta and sensors: certified to 1e-4"
PAPER = "Helmberg and Rendl's Gset; Lovász 1979; Biswas and Ye 2004"

LIMITS = 300.0, 20.0
GSET = ("G1", "G22", "G43", "G60", "G67", "G70", "G81"), ("G1",)
THETA = ("hamming-8", "hamming-9", "hamming-10", "random-200", "random-500", "random-1000",
         "random-2000"), ("hamming-6", "random-100")  # fmt: skip
SENSORS = ("1000", "10000", "1000-0.1"), ("100",)
"""Sensors, and the noise of their distances."""
DENSE = 2000
"""Sensors up to which a conic solver has the memory for M."""
SENSORS_NOTE = (
    "Sensors: SCS is given the distances as equations and nothing to minimise, up to 2,000 of them "
    "and without noise; an optimum of 0 is measured by 1e-6 of F(0)."
)
SOLVERS = {"maxcut": ("gramian",), "theta": ("gramian", "scs"), "sensors": ("gramian", "scs")}
TOL, THREADS = 1e-4, 2


def run(ctx: Context) -> Report:
    """Every graph by gramian; theta and sensors also by SCS."""
    limit, gset = ctx.pick(*LIMITS), sdp_folder(ctx) / "gset"
    cuts = [(name, str(gset / f"{name}.gz")) for name in ctx.pick(*GSET)]
    theta, sensors = ([(name, name) for name in ctx.pick(*names)] for names in (THETA, SENSORS))
    cases = {"maxcut": cuts, "theta": theta, "sensors": sensors}
    threads = "one thread" if ctx.threads(THREADS) == 1 else "two threads"
    notes = [f"Limit: {limit:g} s a call, {threads}.", SENSORS_NOTE]
    return ctx.report(_tables(ctx, cases, limit), notes)


def _tables(ctx: Context, cases: dict[str, list[tuple[str, str]]], limit: float) -> list[Table]:
    """One table per kind of problem."""
    calls = {
        (kind, name, solver): partial(_solved, ctx, kind, given, solver, limit)
        for kind, graphs in cases.items()
        for name, given in graphs
        for solver in SOLVERS[kind]
        if kind != "sensors" or solver != "scs" or _conic(name)
    }
    found = ctx.each({call: calls[call] for call in reversed(calls)})  # long ones first
    figures = ("value", "certified gap", "proved", "violation", "seconds", "CPU s", "MB")
    tables = {kind: Table(kind, ("graph", "solver", *figures, "rank", "status")) for kind in cases}
    for kind, name, solver in calls:
        tables[kind].add(name, solver, *_cells(found[kind, name, solver]))
    return list(tables.values())


def _solved(ctx: Context, kind: str, given: str, solver: str, limit: float) -> ChildResult:
    kwargs = {"kind": kind, "name": given, "solver": solver, "limit": limit, "tol": TOL}
    threads = ctx.threads(THREADS)
    return ctx.in_child("benchmarks._sdp.calls:solve", kwargs, 1.5 * limit + 30, threads=threads)


def _cells(found: ChildResult) -> tuple[Any, ...]:
    report = found.value if found.ok else {"status": found.error}
    keys = ("value", "gap", "proved", "violation", "seconds", "cpu")
    cells = (report.get(key) for key in keys)
    return *cells, found.peak_mb, report.get("rank"), report.get("status")


def _conic(name: str) -> bool:
    """Whether SCS is run on these sensors."""
    size, _, noise = name.partition("-")
    return int(size) <= DENSE and not noise
