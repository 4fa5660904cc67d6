"""SQLP thesis, Table 3.1: RegMVU on a Swiss roll as SCSDP, as SQLP, as it stands, and by auto.

ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0, with the m smoothest eigenvectors Q of the Laplacian
of the symmetric 4-NN graph of 2000 points. `regmvu_auto` has other weights ν.
"""

import time
from typing import Any

import gramian as gm
from benchmarks import _formulations as forms
from benchmarks._models import smooth_basis, swiss_roll
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "QSDP as SCSDP, as SQLP, as a quadratic objective and by auto: RegMVU on a Swiss roll"
PAPER = "SQLP (Wu 2011), Table 3.1"

NU = 1e5

PRINTED: dict[int, dict[str, tuple[float, int]]] = {
    # m: formulation -> (seconds, iterations), CSDP for SCSDP and SDPT3 for SQLP
    10: {"scsdp": (3.84, 29), "sqlp": (0.96, 32)},
    15: {"scsdp": (60.36, 30), "sqlp": (1.75, 31)},
    20: {"scsdp": (557.79, 32), "sqlp": (4.48, 35)},
    25: {"scsdp": (2821.76, 34), "sqlp": (7.84, 37)},
    30: {"scsdp": (13039.30, 37), "sqlp": (13.39, 35)},
    35: {"scsdp": (38559.50, 33), "sqlp": (29.74, 35)},
    40: {"sqlp": (74.01, 35)},
    50: {"sqlp": (213.26, 35)},
    60: {"sqlp": (467.90, 35)},
    80: {"sqlp": (1729.65, 39)},
    100: {"sqlp": (3988.31, 36)},
}
SIZES, SIZES_QUICK = tuple(PRINTED), (10, 15, 20)
LIMIT, LIMIT_QUICK = 60.0, 15.0

NOTES = (
    f"F is ν Σ_e (…)² − tr Y with ν = {NU:g}; the thesis prints no ν. Much of F is what no Y in "
    "this basis can fit.",
    "The variable is Y in the basis Q for every method: nothing is rescaled beforehand, though the "
    "conic solvers scale by the lengths of the columns themselves.",
)


def run(ctx: Context) -> Report:
    """Every method at every m it reaches, each in a process of its own."""
    sizes = SIZES_QUICK if ctx.quick else SIZES
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    given = {m: {"m": m} for m in sizes}
    found = forms.all_series(ctx, "benchmarks.sqlp_table31:solve", given, limit)
    forms.curves(ctx, found)
    notes = (*NOTES, *forms.NOTES, f"Limit: {limit:g} s a call.")
    return ctx.report([*forms.tables(found, PRINTED, sizes), _bases(sizes)], notes)


def solve(m: int, solver: str, options: dict[str, Any], repeat: int) -> forms.Row:
    """One method at one m, in the child process."""
    roll = swiss_roll()
    _, Q = smooth_basis(roll.graph, m)
    problem = gm.problems.reg_mvu(Q, roll.edges, roll.sq_distances, NU)
    return forms.measured(problem, solver, options, repeat)


def _bases(sizes: tuple[int, ...]) -> Table:
    roll = swiss_roll()
    caption = f"The basis: seed {roll.seed}, {len(roll.edges)} edges"
    table = Table(caption, ("m", "seconds of eigsh", "λ_1", "λ_m"))
    for m in sizes:
        start = time.perf_counter()
        values, _ = smooth_basis(roll.graph, m)
        table.add(m, time.perf_counter() - start, float(values[0]), float(values[-1]))
    return table
