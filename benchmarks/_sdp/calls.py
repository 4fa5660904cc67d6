"""One semidefinite program by one solver, in a process of its own."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gramian as gm
from benchmarks._sdp.graphs import hamming, random_graph, read_rudy, sensors
from gramian.constrained.conic import ConicForm
from gramian.constrained.model import Model
from gramian.objectives import Linear
from gramian.objectives.matrices import Sparse

Row = dict[str, Any]


def solve(kind: str, name: str, solver: str, limit: float, tol: float) -> Row:
    """The problem of that kind and name by gramian, Clarabel or SCS."""
    problem = make(kind, name)
    if solver == "gramian":
        return ours(problem, limit, tol)
    return peer(met_exactly(problem) if kind == "sensors" else problem, solver, limit, tol)


def met_exactly(problem: gm.Problem) -> gm.Problem:
    """Distances without noise as equations and a zero objective, for conic solvers."""
    objective = problem.objective
    measured = gm.Constraint.equal(objective.map, objective.loss.centre)
    nothing = Linear(Sparse(sp.csr_array((problem.order,) * 2)))
    return gm.Problem(nothing, constraints=(*problem.constraints, measured))


def make(kind: str, name: str) -> gm.Problem:
    """A file, or a graph that is made here."""
    if kind == "sdpa":
        return gm.io.read_sdpa(name)
    if kind == "maxcut":
        return gm.problems.maxcut(read_rudy(Path(name)))
    if kind == "theta":
        family, size = name.split("-")
        graph = hamming(int(size)) if family == "hamming" else random_graph(int(size))
        return gm.problems.lovasz_theta(graph)
    size, _, noise = name.partition("-")
    edges, distances, anchors, _ = sensors(int(size), noise=float(noise or 0.0))
    return gm.problems.sensor_localization(edges, distances, anchors, n=int(size))


def ours(problem: gm.Problem, limit: float, tol: float) -> Row:
    before = time.process_time()
    found = gm.minimize(problem, tol=tol, time_limit=limit)
    certificate = found.certificate
    return {
        "value": found.value,
        "violation": certificate.violation,
        "gap": certificate.relative_gap,
        "bound": certificate.lower_bound,
        "proved": certificate.proved,
        "seconds": found.seconds,
        "cpu": time.process_time() - before,
        "status": found.status.name,
        "rank": found.rank,
        "method": ", ".join(found.route),
    }


def peer(problem: gm.Problem, solver: str, limit: float, tol: float) -> Row:
    model = Model.of(problem)
    form = ConicForm(model)
    data: Any = form.data(0.0, tol)
    started, before = time.perf_counter(), time.process_time()
    x, status = (_clarabel if solver == "clarabel" else _scs)(data, form, limit, tol)
    seconds, cpu = time.perf_counter() - started, time.process_time() - before
    off = form.A @ x
    violation = np.linalg.norm(off - np.clip(off, model.bounds.lower, model.bounds.upper))
    return {
        "value": float(form.q @ x),
        "violation": float(violation) / model.bounds.scale,
        "seconds": seconds,
        "cpu": cpu,
        "status": status,
    }


def _clarabel(data: Any, form: ConicForm, limit: float, tol: float) -> tuple[Any, str]:
    import clarabel

    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "semidefinite": clarabel.PSDTriangleConeT,
    }
    options = clarabel.DefaultSettings()
    options.verbose, options.time_limit = False, limit
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = tol
    cones = [kinds[kind](size) for kind, size in data["cones"]]
    call = clarabel.DefaultSolver(data["P"], data["q"], data["A"], data["b"], cones, options)
    found = call.solve()
    return np.asarray(found.x), str(found.status)


def _scs(data: Any, form: ConicForm, limit: float, tol: float) -> tuple[Any, str]:
    """SCS reads the lower triangle by columns, and single entries before the blocks."""
    import scs

    rows, orders, sizes = [], [], {"z": 0, "l": 0}
    first = 0
    for kind, size in data["cones"]:
        length = size * (size + 1) // 2 if kind == "semidefinite" else size
        place = np.arange(first, first + length)
        if kind == "semidefinite":
            j, i = np.tril_indices(size)
            place = place[np.lexsort((j, i))]
            orders.append(size)
        else:
            sizes["z" if kind == "zero" else "l"] += size
        rows.append((("zero", "nonnegative", "semidefinite").index(kind), place))
        first += length
    order = np.concatenate([place for _, place in sorted(rows, key=lambda row: row[0])])
    A, b = sp.csc_matrix(data["A"].tocsr()[order]), data["b"][order]
    cones = {"z": sizes["z"], "l": sizes["l"], "s": orders}
    options = {"eps_abs": tol, "eps_rel": tol, "verbose": False, "time_limit_secs": limit}
    found = scs.SCS({"A": A, "b": b, "c": data["q"]}, cones, **options, max_iters=10**7).solve()
    return np.asarray(found["x"]), found["info"]["status"]
