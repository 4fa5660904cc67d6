"""The solvers by name, and the problems that each accepts."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gramian.arrays.places import HOST, Place
from gramian.common import html
from gramian.methods import alternating as halved
from gramian.methods import central_path as central
from gramian.methods import conic as bridge
from gramian.methods import eigenbasis as split
from gramian.methods import interior as inside
from gramian.methods import primal_dual as written
from gramian.methods import whitened as white
from gramian.methods.base import Settings, Solver, accepts_all, needs_cone, no_rank_limit
from gramian.methods.lbfgs import lbfgs
from gramian.methods.loop import by_function
from gramian.methods.staircase import staircase
from gramian.papers import frank_wolfe as fw
from gramian.papers import projected_gradient as projected
from gramian.papers.admm import admm
from gramian.papers.agd import agd
from gramian.papers.bilgo import bilgo
from gramian.papers.bis import bis
from gramian.papers.greedy import journee, random_conic_pursuit
from gramian.papers.lro import gd, lro
from gramian.problem import Problem
from gramian.solvers.auto import auto

ANY = "any objective and domain"
CONE = "any objective over M ⪰ 0"
QUADRATIC = f"squared losses and quadratics, any domain, order up to {bridge.MAX_ORDER}"

SOLVERS = {
    solver.name: solver
    for solver in (
        Solver("auto", auto, "chooses by the problem's structure", "everything", accepts_all),
        Solver("staircase", staircase, "local steps on a growing factor", ANY, no_rank_limit),
        Solver(
            "whitened",
            white.whitened,
            "L-BFGS in coordinates in which the graph's Laplacian is the identity",
            "distances along a connected graph over M ⪰ 0 (unfolding)",
            white.refusal,
        ),
        Solver(
            "interior",
            inside.interior,
            "L-BFGS and the central path of the dual, alternating",
            "squared distances along a connected graph of some hundred points over M ⪰ 0",
            inside.refusal,
        ),
        Solver("bilgo", bilgo, "bilateral greedy, with local search", CONE, needs_cone),
        Solver("lro", lro, "conjugate gradient with exact quartic steps", CONE, needs_cone),
        Solver("bis", bis, "biconvex surrogate with extrapolation", CONE, needs_cone, 5000),
        Solver(
            "frank-wolfe",
            fw.frank_wolfe,
            "Frank–Wolfe: Hazan's steps, exact or away, with local search",
            "any objective over a fixed trace, or over M ⪰ 0 with a term that bounds the trace",
            fw.refusal,
        ),
        Solver("lbfgs", lbfgs, "L-BFGS on the factor", CONE, needs_cone),
        Solver(
            "alternating",
            halved.alternating,
            "least squares row by row for one half of the factor at a time, mixed",
            "squares of some entries of a block plus the trace (completion)",
            halved.refusal,
            on_host=True,
        ),
        Solver(
            "eigenbasis",
            split.eigenbasis,
            "splitting in the basis in which the Hessian is diagonal",
            "tr((AM)² + BM² + 2CM) with commuting A and B over M ⪰ 0, moderate order",
            split.refusal,
        ),
        Solver(
            "projected-gradient",
            projected.projected_gradient,
            "Nesterov's method with full eigenvalue projections",
            f"any objective and domain, order up to {projected.MAX_ORDER}",
            projected.refusal,
            max_iter=20_000,
        ),
        Solver(
            "central-path",
            central.central_path,
            "Newton's method with a barrier on M and on kinks of the loss",
            f"a loss of a linear map over M ⪰ 0, order up to {central.MAX_ORDER}, few terms",
            central.refusal,
            on_host=True,
        ),
        Solver(
            "primal-dual",
            written.primal_dual,
            "primal-dual interior points of an explicit quadratic",
            f"squared losses and quadratics, any domain, order up to {written.MAX_ORDER}",
            written.refusal,
            on_host=True,
        ),
        Solver(
            "conic",
            bridge.conic,
            "Clarabel or SCS with the quadratic in the objective",
            QUADRATIC,
            bridge.refusal,
            on_host=True,
        ),
        Solver(
            "sqlp",
            bridge.sqlp,
            "conic with the quadratic as a second-order cone",
            QUADRATIC,
            bridge.refusal,
            on_host=True,
        ),
        Solver(
            "scsdp",
            bridge.scsdp,
            "conic with the quadratic as a Schur complement",
            QUADRATIC + ", few rows",
            bridge.schur_refusal,
            on_host=True,
        ),
        Solver("gd", gd, "gradient descent with exact steps", CONE, needs_cone, 5000),
        Solver("agd", agd, "Nesterov's gradient on the factor", CONE, needs_cone, 5000),
        Solver("admm", admm, "alternating directions on X = Y", CONE, needs_cone, 3000),
        Solver("journee", journee, "adds atoms, never shrinks (reference)", CONE, needs_cone),
        Solver(
            "random-conic-pursuit",
            random_conic_pursuit,
            "random atoms (reference)",
            CONE,
            needs_cone,
        ),
    )
}


@dataclass(frozen=True)
class SolverTable:
    """The solvers with summaries; prints as a table and iterates over the names."""

    rows: tuple[tuple[str, str, str], ...]

    def __iter__(self):  # type: ignore[no-untyped-def]
        return (name for name, _, _ in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        """The HTML table shown by notebooks."""
        return html.table("solvers", ["name", "what it does", "what it accepts"], self.rows)

    def __str__(self) -> str:
        widths = [max(len(row[i]) for row in self.rows) for i in range(2)]
        return "\n".join(f"{n:{widths[0]}}  {s:{widths[1]}}  {a}" for n, s, a in self.rows)


def available() -> SolverTable:
    """The solvers of problems without constraints: name, summary and the problems they accept.

    `gramian.constrained.METHODS` contains those of problems with linear constraints.
    """
    return SolverTable(tuple((s.name, s.summary, s.accepts) for s in SOLVERS.values()))


def find(name: str | Callable[..., Any]) -> Solver:
    """The solver of that name, or the loop around a function; raise ValueError if unknown."""
    if callable(name):
        return by_function(name)
    if not isinstance(name, str) or name not in SOLVERS:
        asked = name.lower() if isinstance(name, str) else ""
        near = difflib.get_close_matches(asked, SOLVERS, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise ValueError(f"unknown solver {name!r}; {hint}available: {', '.join(SOLVERS)}")
    return SOLVERS[name]


def check_accepts(
    solver: Solver, problem: Problem, settings: Settings, there: Place = HOST
) -> None:
    """Raise ValueError if the solver does not accept the problem; name those that do."""

    def refusal(asked: Solver) -> str | None:
        if asked.on_host and not there.is_host:
            return f"it computes on the host only, but device={str(there.device)!r} was given"
        return asked.refusal(problem, settings)

    reason = refusal(solver)
    if reason is not None:
        able = [s.name for s in SOLVERS.values() if refusal(s) is None]
        raise ValueError(
            f"solver {solver.name!r} cannot take {problem.name!r}: {reason}. "
            f"These can: {', '.join(able)}"
        )
