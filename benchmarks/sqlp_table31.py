"""SQLP thesis, Table 3.1: RegMVU on a Swiss roll as SCSDP, as SQLP, as it stands, and by auto.

ν Σ_e (d_{QYQᵀ}(e) − D_e)² − tr Y over Y ⪰ 0, with the m smoothest eigenvectors Q of the Laplacian
of the symmetric 4-NN graph of 2000 points. `regmvu_auto` has other weights ν.
"""

from typing import Any

import gramian as gm
from benchmarks import _formulations as forms
from benchmarks._models import roll_bases, smooth_basis, swiss_roll
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report

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
NOTES = (
    f"F is ν Σ_e (…)² − tr Y with ν = {NU:g}; the thesis prints no ν. Most of F is residual that "
    "no Y in this basis removes. Nothing is rescaled beforehand.",
)


def run(ctx: Context) -> Report:
    """Every method at every m it reaches."""
    sizes = ctx.pick(*forms.SIZES)
    found = forms.all_series(ctx, solve, {m: {"m": m} for m in sizes})
    forms.curves(ctx, found)
    notes = (*NOTES, *forms.NOTES, f"Limit: {ctx.pick(*forms.LIMITS):g} s a call.")
    return ctx.report([*forms.tables(found, PRINTED, sizes), roll_bases(sizes)], notes)


def solve(m: int, solver: str, options: dict[str, Any], repeat: int, nu: float = NU) -> forms.Row:
    """One method at one m, in a child process."""
    roll = swiss_roll()
    _, Q = smooth_basis(roll.graph, m)
    problem = gm.problems.reg_mvu(Q, roll.edges, roll.sq_distances, nu)
    return forms.measured(problem, solver, options, repeat)
