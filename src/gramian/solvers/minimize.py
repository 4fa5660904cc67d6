"""`minimize`: runs a solver within its limits and brings home the best point."""

from __future__ import annotations

import difflib
import inspect
import time
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian._random import generator
from gramian.backends.threads import blas_threads_for
from gramian.callbacks import Callback, ProgressBar, State
from gramian.certificate import DENSE_ORDER, Certificate, certify, relative, rounding
from gramian.problem import Problem, as_factor
from gramian.result import History, Result, Status
from gramian.solvers.base import ENDLESS, Run, Settings, Solver, Step, compress, is_optimal
from gramian.solvers.checkpoint import EVERY, checkpoint_for
from gramian.solvers.registry import check_accepts, find

Array = NDArray[np.floating]


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
    chosen = find(solver)
    started = time.perf_counter()
    settings = _settings(problem, rank, tol, time_limit, random_state, started)
    limit = _iteration_limit(max_iter, chosen)
    _check_options(chosen, options)
    factor = _start(problem, init, settings)
    check_accepts(chosen, problem, settings)
    keeper = checkpoint_for(problem, checkpoint, every)
    factor = factor if keeper is None else keeper.start(factor)
    bar = _bar(problem, chosen, settings, max_iter) if progress else None
    watchers = [watch for watch in (callback, keeper, bar) if watch is not None]
    try:
        with blas_threads_for(_dense_order(problem)):
            run = chosen.run(problem, factor, settings, **options)
            best, status, history = _drive(problem, factor, run, settings, limit, watchers, started)
            certificate = best.certificate or _last_certificate(problem, best)
            trace = float(np.sum(best.factor**2))
            certificate = _at(certificate, problem, problem.value(best.factor), trace)
        if keeper is not None:
            keeper.finish(best.factor, certificate.value, len(history))
    finally:
        if bar is not None:
            bar.close()
    return Result(
        factor=best.factor,
        value=certificate.value,
        status=status,
        certificate=certificate,
        history=history,
        solver=chosen.name,
        problem=problem.name,
        formula=problem.displayed,
        seconds=time.perf_counter() - started,
    )


def _bar(problem: Problem, solver: Solver, settings: Settings, max_iter: int | None) -> ProgressBar:
    left = settings.deadline - time.perf_counter()
    return ProgressBar(f"{problem.name} by {solver.name}", settings.tol, max_iter, left)


def _dense_order(problem: Problem) -> int:
    """The order of the dense matrices worked on: 0 where factors meet only sparse ones."""
    return 0 if problem.objective.thin and problem.order > DENSE_ORDER else problem.order


def _last_certificate(problem: Problem, best: Step) -> Certificate:
    try:
        return certify(problem, best.factor)
    except (FloatingPointError, np.linalg.LinAlgError):
        return Certificate(best.value, -np.inf, np.nan, None, None, "none")


def _at(certificate: Certificate, problem: Problem, value: float, trace: float) -> Certificate:
    """The same bound for the value and the trace of the factor itself.

    A solver that keeps F along its way, or in coordinates of its own, may be off by rounding.
    """
    if np.isnan(certificate.trace):
        certificate = replace(certificate, trace=trace)
    if not np.isfinite(value) or value == certificate.value:
        return certificate
    if certificate.gap is None:
        return replace(certificate, value=value)
    lower = certificate.lower_bound
    gap = max(0.0, value - lower) + rounding(value, problem.objective.constant)
    return replace(certificate, value=value, gap=gap, relative_gap=relative(gap, value, lower))


def _drive(
    problem: Problem,
    factor: Array,
    run: Run,
    settings: Settings,
    limit: int,
    watchers: list[Any],
    started: float,
) -> tuple[Step, Status, History]:
    """Take steps until the solver is done or something else ends the run."""
    history = History()
    best = Step(factor, problem.value(factor))
    scale = size = abs(problem.value(factor[:, :0]))
    try:
        for iteration in range(limit + 1):
            try:
                step = next(run)
            except StopIteration as done:
                return best, Status.TIME_LIMIT if settings.expired() else done.value, history
            if not np.isfinite(step.value):
                return best, Status.DIVERGED, history
            size = max(size, abs(step.value)) if iteration < 2 else size
            if step.value < -ENDLESS * size:
                return step, Status.UNBOUNDED, history
            record = _record(step, iteration, started)
            history.append(record)
            if step.value <= best.value or _better_certified(step, best):
                best = step
            if step.certificate and is_optimal(step.certificate, settings.tol, scale):
                return step, Status.CONVERGED, history
            state = State(iteration, step, history.records[-1])
            if any([_says_stop(watch(state)) for watch in watchers]):
                return best, Status.STOPPED, history
            if settings.expired():
                return best, Status.TIME_LIMIT, history
    except KeyboardInterrupt:
        return best, Status.INTERRUPTED, history
    except (FloatingPointError, np.linalg.LinAlgError):
        return best, Status.DIVERGED, history
    return best, Status.MAX_ITER, history


def _says_stop(answer: Any) -> bool:
    """True and nothing else, so that a callback may return what it likes."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _better_certified(step: Step, best: Step) -> bool:
    """Among values equal to rounding, prefer the point that carries a certificate."""
    close = abs(step.value - best.value) <= 1e-12 * abs(best.value)
    return close and step.certificate is not None and best.certificate is None


def _record(step: Step, iteration: int, started: float) -> dict[str, float | None]:
    certificate = step.certificate
    return {
        "iteration": iteration,
        "time": time.perf_counter() - started,
        "value": step.value,
        "rank": step.rank,
        "gap": None if certificate is None else certificate.gap,
        "lambda_min": None if certificate is None else certificate.lambda_min,
        **step.trace,
    }


def _settings(
    problem: Problem,
    rank: int | None,
    tol: float,
    time_limit: float | None,
    random_state: Any,
    started: float,
) -> Settings:
    if rank is not None:
        if not isinstance(rank, Integral) or isinstance(rank, bool):
            raise ValueError(f"rank must be a whole number, got {rank!r}")
        if not 1 <= rank <= problem.order:
            raise ValueError(
                f"rank must lie between 1 and the order of M, {problem.order}, got {rank}"
            )
    if not isinstance(tol, Real) or not 0 <= tol < 1:
        raise ValueError(f"tol must be a number in [0, 1), got {tol!r}")
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a number of seconds above 0, got {time_limit!r}")
    deadline = np.inf if time_limit is None else started + time_limit
    return Settings(
        None if rank is None else int(rank), float(tol), generator(random_state), deadline
    )


def _iteration_limit(max_iter: int | None, solver: Solver) -> int:
    if max_iter is None:
        return solver.max_iter
    if not isinstance(max_iter, Integral) or max_iter < 0:
        raise ValueError(f"max_iter must be a whole number of at least 0, got {max_iter!r}")
    return int(max_iter)


def _check_options(solver: Solver, options: dict[str, Any]) -> None:
    unknown = sorted(set(options) - set(solver.options))
    if unknown:
        own = inspect.signature(minimize).parameters
        near = difflib.get_close_matches(unknown[0], [*own, *solver.options], n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise TypeError(
            f"solver {solver.name!r} has no option {', '.join(unknown)}; {hint}"
            f"it has: {', '.join(solver.options) or 'none'}"
        )


def _start(problem: Problem, init: ArrayLike | Result | None, settings: Settings) -> Array:
    """The factor given, within the rank and of the trace asked for; M = 0 unless told."""
    trace = problem.domain.trace
    if init is None:
        columns = 0 if trace is None else 1
        L: Array = settings.rng.standard_normal((problem.order, columns))
    else:
        factor = init.factor if isinstance(init, Result) else init
        L = as_factor(factor, problem.order).astype(float, copy=False)
    if settings.rank is not None and L.shape[1] > settings.rank:
        L = compress(L, settings.rank)
    return L if trace is None else L * np.sqrt(trace / np.sum(L * L))
