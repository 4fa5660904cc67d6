"""MaxCut on the Gset, Lovász's theta and sensor localisation: seconds to a certified gap of 1e-4.

Files `gset/NAME.gz` in the folder of --data, or in its `sdp/`; the other graphs are made here.
"""

from typing import Any

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from benchmarks.sdp_sdplib import sdp_folder

TITLE = "MaxCut, theta and sensors: certified to 1e-4"
PAPER = "Helmberg and Rendl's Gset; Lovász 1979; Biswas and Ye 2004"

LIMIT, LIMIT_QUICK = 300.0, 20.0
GSET, GSET_QUICK = ("G1", "G22", "G43", "G60", "G67", "G70", "G81"), ("G1",)
THETA = ("hamming-8", "hamming-9", "hamming-10", "random-200", "random-500", "random-1000",
         "random-2000")  # fmt: skip
THETA_QUICK = ("hamming-6", "random-100")
SENSORS, SENSORS_QUICK = ("1000", "10000", "1000-0.1"), ("100",)
"""Sensors, and the noise of their distances."""
DENSE = 2000
"""Sensors up to which a conic solver has the memory for M."""
SENSORS_NOTE = (
    "Sensors: SCS is given the distances as equations and nothing to minimise, up to 2,000 of them "
    "and without noise; an optimum of 0 is measured by 1e-6 of F(0)."
)
TOL = 1e-4


def run(ctx: Context) -> Report:
    """Every graph by gramian; theta and sensors beside SCS until it runs out of time."""
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    gset = sdp_folder(ctx) / "gset"
    cuts = [(name, str(gset / f"{name}.gz")) for name in (GSET_QUICK if ctx.quick else GSET)]
    theta = [(name, name) for name in (THETA_QUICK if ctx.quick else THETA)]
    sensors = [(name, name) for name in (SENSORS_QUICK if ctx.quick else SENSORS)]
    tables = [
        _table(ctx, "maxcut", cuts, ("gramian",), limit),
        _table(ctx, "theta", theta, ("gramian", "scs"), limit),
        _table(ctx, "sensors", sensors, ("gramian", "scs"), limit),
    ]
    return ctx.report(tables, [f"Limit: {limit:g} s a call, two threads.", SENSORS_NOTE])


def _table(ctx: Context, kind: str, cases: Any, solvers: tuple[str, ...], limit: float) -> Table:
    told_of = ("value", "certified gap", "proved", "violation", "seconds", "CPU s", "MB")
    table = Table(kind, ("graph", "solver", *told_of, "rank", "status"))
    for name, given in cases:
        for solver in solvers:
            if kind == "sensors" and solver == "scs" and not _conic(name):
                continue
            found = ctx.in_child(
                "benchmarks._sdp.calls:solve",
                {"kind": kind, "name": given, "solver": solver, "limit": limit, "tol": TOL},
                1.5 * limit + 30,
                threads=2,
            )
            told = found.value if found.ok else {"status": found.error}
            keys = ("value", "gap", "proved", "violation", "seconds", "cpu")
            table.add(
                name, solver, *(told.get(key) for key in keys), found.peak_mb,
                told.get("rank"), told.get("status"),
            )  # fmt: skip
    return table


def _conic(name: str) -> bool:
    """Whether SCS is asked for the sensors of that name."""
    size, _, noise = name.partition("-")
    return int(size) <= DENSE and not noise
