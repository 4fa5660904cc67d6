"""`minimize`: runs a solver within its limits and brings home the best point."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian import clock
from gramian.backends.arrays import as_double, host, inner, largest, moved, place
from gramian.backends.errstate import under_own_errstate
from gramian.backends.threads import blas_threads_for
from gramian.callbacks import Callback, ProgressBar
from gramian.problem import Problem, as_factor
from gramian.proofs import EXACT_ORDER
from gramian.result import Result
from gramian.solvers.arguments import (
    check_options,
    check_proof,
    is_single,
    iteration_limit,
    settings_for,
)
from gramian.solvers.base import Settings, Solver, compress
from gramian.solvers.checkpoint import EVERY, checkpoint_for
from gramian.solvers.drive import Drive
from gramian.solvers.prover import Prover
from gramian.solvers.registry import check_accepts, find
from gramian.solvers.room import place_for

Array = NDArray[np.floating]

STREAMED = "data in blocks"
"""What the route of a run begins with whose data stay on the host."""


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
    """Minimise F(M) over the domain of the problem, in factored form M = LLᵀ.

    Parameters
    ----------
    problem : Problem
        One of `gramian.problems`, or a Problem of your own objective.
    solver : str
        A name from `gramian.solvers.available()`.
    rank : int, optional
        The most columns L may have. The certificate then says what the limit can cost.
    tol : float
        The certified relative gap to stop at; where no bound is known, the size of the
        optimality residuals.
    max_iter : int, optional
        Iterations at most; each solver has a default of its own.
    time_limit : float, optional
        Seconds at most. The best point so far is returned, as for Ctrl-C.
    init : array of shape (n, r) or Result, optional
        The factor to start from; by default M = 0, or a random factor where 0 is a saddle.
    random_state : int, Generator, RandomState or None
        Seeds whatever is random; None is seed 0, so that runs repeat.
    callback : callable, optional
        Called with a `State` at every iteration; returning True stops the run.
    progress : bool
        Show a progress bar (needs tqdm).
    checkpoint : str or Path, optional
        A file that keeps the best point so far. Where it exists already, the run begins with what
        it holds: the same call goes on after a kill.
    every : float
        Seconds between two writes of the checkpoint.
    proof : "auto", "proved" or "estimated"
        What a run of order above 1500 may end with as CONVERGED (below it everything is proved).
        "auto" tries a proof when the gap is estimated to be within the tolerance, and takes the
        estimate only where no proof fits into the memory or into the time (as long as the run
        took so far, and ten seconds at least); "proved" never does; "estimated" takes it, and
        tries a proof only where the estimate is not sharp enough.
    device : None, "cpu", "cuda", "cuda:1" or the like
        Where to compute: on the processor unless told. The problem is copied there at the start,
        and the result comes back as arrays of NumPy (needs `gramian[gpu]`). Ratings and samples
        that have no room there stay on the host and come in blocks, which the route tells.
    dtype : None, "float64" or "float32"
        The precision of first-order steps, whose passes over data and factor are half as long in
        float32. Certificates are in float64 always, at the float64 copy of the factor, and a run
        that needs more digits than float32 has ends in float64 by itself.
    **options
        Options of the solver itself.

    Returns
    -------
    Result
        Factor, value, status, certificate and history.
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            f"expected a gramian Problem, got {type(problem).__name__}; "
            "make one with gramian.problems or gramian.Problem(objective)"
        )
    if problem.constraints:
        raise ValueError(
            f"{problem.name!r} has linear constraints, and the solvers take none: call "
            "gramian.minimize, which puts a loop around them"
        )
    chosen = find(solver)
    started = clock.now()
    settings = settings_for(problem, rank, tol, time_limit, random_state, started)
    settings.sweeps.single = is_single(dtype)
    limit = iteration_limit(max_iter, chosen)
    check_proof(proof)
    if options:
        check_options(chosen, options, inspect.signature(minimize).parameters)
    check_accepts(chosen, problem, settings, place(device))
    keeper = checkpoint_for(problem, checkpoint, every)
    there = place_for(problem, device, settings.rank)
    if there.apart:
        settings.enters(STREAMED)
    with there.room():
        problem = moved(problem, there)
        factor = _start(problem, init, settings)
    factor = factor if keeper is None else there.put(keeper.start(host(factor)))
    bar = _bar(problem, chosen, settings, max_iter) if progress else None
    watchers = [watch for watch in (callback, keeper, bar, clock.on_step()) if watch is not None]
    clock.phase(f"{problem.name} by {chosen.name}")
    try:
        with there.room(), blas_threads_for(_dense_numbers(problem)):
            drive = Drive(problem, settings, Prover(problem, settings, proof), watchers)
            start = partial(chosen.run, problem, settings=settings, **options)
            with clock.until(settings.deadline):
                status = drive.take(factor, start, limit)
            clock.phase("the certificate")
            best, certificate, status = drive.settled(status)
        if keeper is not None:
            keeper.finish(host(best.factor), certificate.value, len(drive.history))
    finally:
        if bar is not None:
            bar.close()
    return Result(
        factor=host(best.factor),
        value=certificate.value,
        status=status,
        certificate=certificate,
        history=drive.history,
        solver=chosen.name,
        route=tuple(settings.route) or (chosen.name,),
        problem=problem.name,
        formula=problem.displayed,
        seconds=clock.elapsed(started),
        dual=None if best.dual is None else host(best.dual),
        ray=drive.ray,
    )


def _bar(problem: Problem, solver: Solver, settings: Settings, max_iter: int | None) -> ProgressBar:
    left = settings.deadline - clock.now()
    return ProgressBar(f"{problem.name} by {solver.name}", settings.tol, max_iter, left)


def _dense_numbers(problem: Problem) -> int:
    """The size of the dense matrices worked on: data, or ∇F where all its eigenvalues are found."""
    square = problem.order**2 if problem.order <= EXACT_ORDER else 0
    return max(square, problem.objective.dense_numbers)


def _start(problem: Problem, init: ArrayLike | Result | None, settings: Settings) -> Array:
    """The factor given, within the rank and of the trace asked for; M = 0 unless told."""
    domain, there = problem.domain, problem.objective.place
    if init is None:
        L: Array = there.normal(settings.rng, (problem.order, 1 if domain.bounded else 0))
    else:
        factor = init.factor if isinstance(init, Result) else init
        L = as_factor(factor, problem.order, there)
        L = as_double(L)
        _check_start(problem, L)
    if settings.rank is not None and L.shape[1] > settings.rank:
        L = compress(L, settings.rank)
    return domain.rescale(L)


def _check_start(problem: Problem, L: Array) -> None:
    """Refuse a start that is 0 where the trace is not, or that F cannot be evaluated at."""
    largest_entry = largest(L)
    if problem.domain.bounded and largest_entry == 0:
        raise ValueError(f"init is 0, and cannot be scaled to {problem.domain}")
    with np.errstate(all="ignore"):
        value = problem.value(L) if np.isfinite(inner(L, L)) else np.inf
    if not np.isfinite(value):
        raise ValueError(
            f"F is not finite at init, whose largest entry is {largest_entry:.3g}: scale it down"
        )
