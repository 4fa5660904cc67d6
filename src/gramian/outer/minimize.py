"""`minimize`: with constraints by an outer loop, without by a solver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian import clock, solvers
from gramian.backends.errstate import under_own_errstate
from gramian.backends.threads import blas_threads_for
from gramian.callbacks import Callback, ProgressBar
from gramian.outer.drive import Drive
from gramian.outer.judge import Judge
from gramian.outer.model import Model
from gramian.outer.registry import METHODS, Method, choose
from gramian.outer.sanity import check_rows
from gramian.problem import Problem, as_factor
from gramian.reductions.feature_scaling import FeatureScaling, feature_scaling
from gramian.result import History, Result, Status
from gramian.solvers.arguments import check_proof, is_single, settings_for
from gramian.solvers.base import Settings
from gramian.solvers.checkpoint import EVERY, checkpoint_for

Array = NDArray[np.floating]


@under_own_errstate
def minimize(
    problem: Problem,
    solver: str = "auto",
    *,
    rank: int | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    time_limit: float | None = None,
    init: ArrayLike | Result | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    every: float = EVERY,
    proof: str = "auto",
    device: Any = None,
    dtype: Any = None,
    **options: Any,
) -> Result:
    limits: dict[str, Any] = {
        "rank": rank,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "init": init,
        "random_state": random_state,
        "callback": callback,
        "progress": progress,
        "checkpoint": checkpoint,
        "every": every,
        "proof": proof,
    }
    if not isinstance(problem, Problem) or not problem.constraints:
        return solvers.minimize(problem, solver, **limits, device=device, dtype=dtype, **options)
    is_single(dtype)  # loops around constraints have steps of their own, in float64
    if device is not None and device != "cpu":
        raise ValueError(
            f"{problem.name!r} has linear constraints, which are met on the processor: "
            f"leave device={device!r} out"
        )
    return _constrained(problem, solver, options, **limits)


minimize.__doc__ = (solvers.minimize.__doc__ or "").replace(
    "    Returns\n",
    """    Notes
    -----
    A problem with constraints goes to a loop of its own, named by `solver`: "augmented-lagrangian"
    (low-rank factors), "dual-newton" or "splitting" (a dense M of moderate order), or "auto". It
    has converged where the certified gap and the violation are both within `tol`.

    Returns
""",
)


def _constrained(
    problem: Problem,
    solver: str,
    options: dict[str, Any],
    *,
    rank: int | None,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    init: ArrayLike | Result | None,
    random_state: Any,
    callback: Callback | None,
    progress: bool,
    checkpoint: str | Path | None,
    every: float,
    proof: str,
) -> Result:
    started = clock.now()
    settings = settings_for(problem, rank, tol, time_limit, random_state, started)
    check_proof(proof)
    scaling = feature_scaling(Model.of(problem).problem)
    model = Model(scaling.problem)
    check_rows(model)
    methods = _methods(solver, model, settings)
    _check_options(methods, options)
    factor, y = _start(model, init)
    keeper = checkpoint_for(problem, checkpoint, every)
    factor = scaling.coordinates(factor if keeper is None else keeper.start(factor))
    bar = ProgressBar(f"{problem.name} by {solver}", tol, max_iter) if progress else None
    run = Drive(model, settings, Judge(model, settings, proof), History(), scaling.factor)
    run.watchers = [
        watch for watch in (callback, keeper, bar, clock.on_step()) if watch is not None
    ]
    try:
        with blas_threads_for(problem.order**2):
            status = run.take(run.through(methods, factor, y, options), max_iter)
    finally:
        if bar is not None:
            bar.close()
    found, certificate = run.judge.outcome(factor if run.last is None else run.last.factor)
    found = scaling.factor(found)
    certificate = scaling.certificate(certificate, found)
    if keeper is not None:
        keeper.finish(found, certificate.value, len(run.history))
    if status is Status.INFEASIBLE:  # nothing is above an optimum that is not there
        certificate = replace(certificate, gap=None, relative_gap=None, method="none")
    point = run.judge.point
    return Result(
        factor=found,
        value=certificate.value,
        status=status,
        certificate=certificate,
        history=run.history,
        solver=solver,
        route=tuple(settings.route),
        problem=problem.name,
        formula=problem.displayed,
        seconds=clock.elapsed(started),
        dual=run.judge.y if point is None else point.y,
        ray=_ray(run.judge.ray, status, scaling),
        dimacs=run.judge.dimacs(),
    )


def _methods(solver: str, model: Model, settings: Settings) -> list[Method]:
    if solver == "auto":
        return choose(model, settings)
    if solver not in METHODS:
        raise ValueError(
            f"a problem with constraints is solved by auto, {', '.join(METHODS)}; "
            f"got solver={solver!r}"
        )
    refusal = METHODS[solver].refusal(model)
    if refusal is not None:
        raise ValueError(f"solver {solver!r} cannot take {model.problem.name!r}: {refusal}")
    return [METHODS[solver]]


def _check_options(methods: list[Method], options: dict[str, Any]) -> None:
    known = dict.fromkeys(name for method in methods for name in method.options)
    unknown = sorted(set(options) - set(known))
    if unknown:
        names = " and ".join(method.name for method in methods)
        raise TypeError(
            f"solver {names} has no option {', '.join(unknown)}; "
            f"it has: {', '.join(known) or 'none'}"
        )


def _ray(ray: Array | None, status: Status, scaling: FeatureScaling) -> Array | None:
    """What proves the status, in the coordinates of the problem."""
    if ray is None or status not in (Status.INFEASIBLE, Status.UNBOUNDED, Status.UNATTAINED):
        return None
    if status is Status.INFEASIBLE:  # multipliers, which are the same in all coordinates
        return ray
    V = scaling.factor(ray)
    return V / float(np.linalg.norm(V))


def _start(model: Model, init: ArrayLike | Result | None) -> tuple[Array, Array]:
    """The factor and the multipliers to begin with: none and 0 unless told."""
    y = np.zeros(model.bounds.size)
    if init is None:
        return np.zeros((model.order, 0)), y
    if isinstance(init, Result):
        if init.dual is not None and init.dual.shape == y.shape:
            y = np.asarray(init.dual, dtype=float)
        init = init.factor
    return as_factor(init, model.order).astype(float, copy=False), y
