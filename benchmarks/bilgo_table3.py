"""BILGO, Table 3 and Figures 3 and 4: maximum variance unfolding of w1a and MNIST samples.

Σ_e (d_M(e) − D_e)² − ν tr(HM) over M ⪰ 0, on the connected 3-NN graph of n random points: BILGO
with local search, Nesterov's projected gradient on the dense M, and `auto`, in one run.
"""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks.harness.context import Context
from benchmarks.harness.learn import Run, ratio, time_to
from benchmarks.harness.plots import Panel
from benchmarks.harness.report import Report, Table, Versus
from gramian.graph import Graph, neighbor_graph, smoothest
from gramian.manifold._spaces import Places

TITLE = "Maximum variance unfolding: BILGO-LS, Nesterov's projected gradient and auto"
PAPER = "BILGO (Hao, Yuan, Ghanem 2013), Table 3, Figures 3 and 4"
NEEDS_DATA = ("w1a", "mnist")

PRINTED: dict[str, dict[int, dict[str, tuple[float, float]]]] = {
    # set: n: solver -> (objective, seconds)
    "w1a": {
        500: {"bilgo": (4.95, 23.67), "projected-gradient": (9.23, 28.07)},
        1000: {"bilgo": (0.48, 124.81), "projected-gradient": (4.01, 207.01)},
        2000: {"bilgo": (1.56, 398.39), "projected-gradient": (2.45, 1488.12)},
        3000: {"bilgo": (6.60, 1290.15), "projected-gradient": (8.00, 4150.07)},
    },
    "mnist": {
        500: {"bilgo": (0.35, 20.57), "projected-gradient": (0.11, 22.96)},
        1000: {"bilgo": (0.29, 123.28), "projected-gradient": (0.48, 203.57)},
        2000: {"bilgo": (1.16, 437.90), "projected-gradient": (1.16, 1527.46)},
        3000: {"bilgo": (0.29, 795.64), "projected-gradient": (0.65, 4880.54)},
    },
}

LABELS = {"bilgo": "BILGO-LS", "projected-gradient": "Nesterov-PG", "auto": "auto"}
NEIGHBOURS, STRETCH = 3, 0.05
TOL, SHARE = 1e-4, 0.1
LIMITS = {500: 10.0, 1000: 15.0, 1500: 30.0, 2000: 50.0, 2500: 75.0, 3000: 100.0}
LIMITS_QUICK = {150: 4.0}
"""Seconds of auto by n; BILGO has at most BILGO_LIMIT, Nesterov-PG PATIENCE times as many."""
BILGO_LIMIT = 40.0
PATIENCE = 3.0
STARTUP = 120.0
"""Seconds of a process for its imports, a last step and its certificate."""

NOTES = (
    "Points: a random sample of the training and test parts; the components of their 3-NN graph "
    "are joined by the shortest edges; equal points are merged, with their number as the weight in "
    f"the variance. Squared lengths are in units of their mean and ν = {STRETCH:g} λ₂, as in "
    "`MVU`. The paper prints neither ν nor units, and its W = I has no minimum, so the objectives "
    "do not compare.",
    f"Seconds: one call of `minimize` to a certified relative gap of {TOL:g} or a limit, one "
    "thread; the paper's: to a small relative change.",
    "The verdict's ratio: seconds of auto to its certified gap over those in which Nesterov-PG "
    "reached its last objective. It is an upper bound if Nesterov-PG ended by its limit, and "
    "relative to the limit if it took no step or had not ended two minutes after it.",
    "Curves: F less the best lower bound of any certificate of the run.",
    f"Limits: {', '.join(f'{limit:g} s at n = {n}' for n, limit in LIMITS.items())}; BILGO-LS at "
    f"most {BILGO_LIMIT:g} s, Nesterov-PG {PATIENCE:g} times as many.",
)

Row = dict[str, Any]
Found = dict[str, dict[int, dict[str, Row]]]
Points = tuple[Graph, np.ndarray, float]
"""The graph of the distinct points, their multiplicities, and ν."""


def run(ctx: Context) -> Report:
    """Every solver on every sample, each in its own process."""
    limits = ctx.pick(LIMITS, LIMITS_QUICK)
    graphs = Table(
        "The graphs", ("set", "n", "distinct", "edges", "parts before joining", "λ₂", "ν")
    )
    calls: dict[tuple[str, int, str], Any] = {}
    for name in NEEDS_DATA:
        data = ctx.load(name)
        stack = sp.vstack if sp.issparse(data.X) else np.vstack
        X = stack([data.X, data.X_test])
        X = X.tocsr() if sp.issparse(X) else X
        for n, limit in limits.items():
            rows = np.random.default_rng(0).choice(X.shape[0], n, replace=False)
            points = _graph(X[rows], name, graphs)
            for solver in LABELS:
                calls[name, n, solver] = partial(_solved, ctx, points, solver, limit)
    solved = ctx.each({call: calls[call] for call in sorted(calls, key=lambda call: -call[1])})
    found: Found = {
        name: {n: {s: solved[name, n, s] for s in LABELS} for n in limits} for name in NEEDS_DATA
    }
    for name, sizes in found.items():
        _curves(ctx, name, sizes)
    tables = [_verdicts(found, limits), *(_table(name, found[name]) for name in found), graphs]
    return ctx.report(tables, NOTES)


def _graph(X: Any, name: str, table: Table) -> Points:
    """The data of `MVU`: the graph of the distinct points with edges of mean square 1."""
    copies = Places().copies(X)
    once, mass = X[copies.first], copies.merge.counts
    parts = neighbor_graph(once, NEIGHBOURS, connect="components").n_parts
    graph = neighbor_graph(once, NEIGHBOURS, connect="mst")
    lengths = graph.sq_distances / graph.sq_distances.mean()
    scale = sp.diags_array(mass**-0.5)
    slowest = float(smoothest(scale @ graph.laplacian() @ scale, 1)[0][0])
    table.add(name, X.shape[0], graph.n, len(lengths), parts, slowest, STRETCH * slowest)
    return Graph(graph.n, graph.edges, lengths), mass, STRETCH * slowest


def solve(points: Points, solver: str, limit: float) -> Row:
    """The result of `minimize` and its history: in a child process."""
    graph, mass, nu = points
    weights = None if np.all(mass == 1) else mass
    problem = gm.problems.mvu(graph.edges, graph.sq_distances, graph.n, nu, mass=weights)
    result = gm.minimize(problem, solver, tol=TOL, time_limit=limit, random_state=0)
    return vars(Run.of(result))


def _solved(ctx: Context, points: Points, solver: str, limit: float) -> Row:
    limits = {"bilgo": min(limit, BILGO_LIMIT), "projected-gradient": PATIENCE * limit}
    limit = limits.get(solver, limit)
    answer = ctx.child(solve, limit + STARTUP, points=points, solver=solver, limit=limit)
    return answer.value if answer.ok else {"status": answer.error}


def _verdicts(found: Found, limits: dict[int, float]) -> Table:
    columns = (
        "set", "n", "Nesterov-PG's last F", "its seconds to that F", "auto's seconds to that F",
        f"auto's seconds to gap {TOL:g}", "auto's certified gap", "auto ÷ Nesterov-PG",
        f"< {SHARE:g}",
    )  # fmt: skip
    table = Table("Verdicts", columns)
    for name, sizes in found.items():
        for n, rows in sizes.items():
            slow, auto = rows["projected-gradient"], rows["auto"]
            if "value" not in auto:
                table.add(name, n, *[None] * 6, False)
                continue
            gap = auto["gap"]
            ours = auto["seconds"] if gap is not None and gap <= TOL else None
            if np.size(slow.get("values", ())):
                theirs = time_to(slow["times"], slow["values"], float(np.min(slow["values"])))
                reached = time_to(auto["times"], auto["values"], slow["value"])
                cells = slow["value"], theirs, reached
            else:
                theirs = PATIENCE * limits[n]
                cells = None, f"> {theirs:g}", None
            share = ratio(ours, theirs)
            table.add(name, n, *cells, ours, gap, share, share is not None and share < SHARE)
    return table


def _table(name: str, sizes: dict[int, dict[str, Row]]) -> Table:
    columns = (
        "n", "solver", "F", "seconds", "certified relative gap", "rank", "iterations", "status"
    )  # fmt: skip
    table = Table(name, columns)
    for n, rows in sizes.items():
        for solver, row in rows.items():
            printed = PRINTED[name].get(n, {}).get(solver, (None, None))
            figures = map(Versus, (row.get("value"), row.get("seconds")), printed)
            rest = (row.get(key) for key in ("gap", "rank", "steps", "status"))
            table.add(n, LABELS[solver], *figures, *rest)
    return table


def _curves(ctx: Context, name: str, sizes: dict[int, dict[str, Row]]) -> None:
    """One panel for each n."""
    panels = []
    for n, rows in sizes.items():
        solved = {LABELS[solver]: row for solver, row in rows.items() if "value" in row}
        bound = max((row["bound"] for row in solved.values()), default=-np.inf)
        curves = {label: (row["times"], row["values"] - bound) for label, row in solved.items()}
        style = {"logx": True, "logy": True, "floor": 1e-12}
        panels.append(Panel(curves, "seconds", "F − lower bound", f"n = {n}", **style))
    caption = f"{name}: F less the best lower bound proved, against seconds"
    ctx.panels(name, caption, *panels)
