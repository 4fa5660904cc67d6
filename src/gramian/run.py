"""`minimize`: the loop over the steps of a method, and the checks of its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.places import HOST, Place, as_double, host, inner, largest, moved, place
from gramian.arrays.threads import blas_threads_for
from gramian.callbacks import Callback, CallbackError, ProgressBar, State, says_stop
from gramian.checkpoint import EVERY, checkpoint_for
from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.constrained.rays import check_rows
from gramian.constrained.referee import ConstrainedReferee
from gramian.constrained.registry import check_method_options, methods_for
from gramian.methods.base import Settings, Step
from gramian.methods.columns import compress
from gramian.methods.referee import Referee
from gramian.methods.room import place_for
from gramian.outcome import Outcome, result_of
from gramian.problem import Problem, as_factor, check_problem
from gramian.reductions.feature_scaling import feature_scaling
from gramian.result import History, Result, Status
from gramian.solvers.arguments import (
    check_options,
    check_proof,
    is_single,
    iteration_limit,
    settings_for,
)
from gramian.solvers.registry import check_accepts, find

STREAMED = "data in blocks"
"""First entry of the route of a run whose data stay on the host."""

CUT_OFF = (Status.TIME_LIMIT, Status.INTERRUPTED)
"""Statuses of runs that end in the middle of a step."""


class _Referee(Protocol):
    """Interface of the two referees, for problems with and without constraints."""

    route: list[str]

    def begin(self, factor: Array) -> None: ...

    def process(self, step: Any) -> tuple[Any, Status | None]: ...

    def as_step(self, step: Any) -> Step: ...

    def record(self, step: Any) -> dict[str, float | None]: ...

    def ended(self, status: Any) -> Status: ...

    def recover_last_point(self) -> None: ...

    def outcome(self, status: Status) -> Outcome: ...


@dataclass(frozen=True)
class _Prepared:
    """A problem, the method that solves it, and the start of the run."""

    problem: Problem
    solver: str
    referee: _Referee
    steps: Callable[[Array], Iterator[Any]]
    """Maps a start to the steps of the method."""
    factor: Array
    """The start, on the host."""
    enter: Callable[[Array], Array]
    """Converts a factor of the problem to the coordinates and the device of the steps."""
    limit: float
    dense_numbers: int
    place: Place = HOST


@under_own_errstate
def minimize(
    problem: Problem,
    solver: str | Callable[..., Any] = "auto",
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
        A problem from `gramian.problems`, or a `Problem` with your own objective.
    solver : str or callable
        A name from `gramian.solvers.available()`, or a function `advance(problem, L, settings)`
        that returns a better factor. The loop certifies it and adds or removes columns.
    rank : int, optional
        Maximum number of columns of L. The certificate bounds the cost of this limit.
    tol : float
        Certified relative gap at which the run stops. If no lower bound is known, tolerance of
        the optimality residuals.
    max_iter : int, optional
        Maximum number of iterations; the default depends on the solver.
    time_limit : float, optional
        Time limit in seconds. The best point so far is returned, as for Ctrl-C.
    init : array of shape (n, r) or Result, optional
        The initial factor. Default: M = 0, or a random factor if 0 is a saddle point.
    random_state : int, Generator, RandomState or None
        Seed of all random numbers; None means seed 0, so that runs are reproducible.
    callback : callable, optional
        Called with a `State` at every iteration; returning True stops the run.
    progress : bool
        Show a progress bar (needs tqdm).
    checkpoint : str or Path, optional
        A file that stores the best point so far. If the file exists, the run starts from its
        point: the same call resumes a run that was killed.
    every : float
        Seconds between two writes of the checkpoint.
    proof : "auto", "proved" or "estimated"
        What a run of order above 1500 needs to end as CONVERGED (smaller problems are always
        proved). "auto" attempts a proof when the estimated gap is within the tolerance, and
        accepts the estimate only if the proof does not fit into memory or takes longer than the
        run so far (at least ten seconds). "proved" never accepts an estimate. "estimated" accepts
        it, and attempts a proof only if the estimate is not accurate enough.
    device : None, "cpu", "cuda", "cuda:1" or similar
        Device of the computation; default is the CPU. The problem is copied to it at the start,
        and the result is returned as NumPy arrays (needs `gramian[gpu]`). Ratings and samples
        that do not fit on it stay on the host and are copied in blocks; the route reports this.
    dtype : None, "float64" or "float32"
        Precision of first-order steps; float32 halves their memory traffic. Certificates are
        always computed in float64, at the float64 copy of the factor, and a run that needs more
        digits than float32 has finishes in float64.
    **options
        Options of the solver.

    Notes
    -----
    A problem with constraints is solved by a method named by `solver`: "augmented-lagrangian"
    (low-rank factors), "dual-newton" or "splitting" (a dense M of moderate order), or "auto". It
    converges when the certified gap and the violation are both at most `tol`.

    Returns
    -------
    Result
        Factor, value, status, certificate and history.
    """
    check_problem(problem)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a State, got {type(callback).__name__}")
    started = clock.now()
    settings = settings_for(problem, rank, tol, time_limit, random_state, started)
    settings.state.single = is_single(dtype)
    check_proof(proof)
    prepare = _constrained if problem.constraints else _unconstrained
    run = prepare(problem, solver, options, settings, max_iter, init, proof, device)
    keeper = checkpoint_for(problem, checkpoint, every)
    name = f"{problem.name} by {run.solver}"
    seconds = settings.deadline - started
    bar = ProgressBar(name, settings.tol, max_iter, seconds) if progress else None
    watcher = clock.watcher()
    watching = callback, keeper, bar, None if watcher is None else watcher.step
    watchers = [watch for watch in watching if watch is not None]
    clock.phase(name)
    try:
        with run.place.room(), blas_threads_for(run.dense_numbers):
            loop = _Loop(run, settings, watchers)
            start = run.factor if keeper is None else keeper.start(run.factor)
            if (cut := _at_most(start, settings.rank)) is not start:  # of a run of another rank
                start = problem.domain.rescale(cut)
            outcome = loop.outcome_from(start)
        if keeper is not None:
            keeper.finish(outcome.factor, outcome.certificate.value, len(loop.history))
        with run.place.room():
            return result_of(
                run.problem,
                outcome,
                tol=settings.tol,
                solver=run.solver,
                route=tuple(run.referee.route),
                started=started,
                history=loop.history,
            )
    finally:
        if bar is not None:
            bar.close()


@dataclass
class _Loop:
    """Runs the steps until convergence, a limit, a callback or the user ends the run."""

    run: _Prepared
    settings: Settings
    watchers: list[Any]
    history: History = field(default_factory=History)

    def outcome_from(self, factor: Array) -> Outcome:
        """Run from this factor and return the outcome."""
        referee, start = self.run.referee, self.run.enter(factor)
        referee.begin(start)
        with clock.until(self.settings.deadline):
            status = self._status(start)
        if status in CUT_OFF:
            with suppress(clock.TimeUpError), clock.until(self.settings.last_deadline()):
                referee.recover_last_point()
        clock.phase("the certificate")
        return referee.outcome(status)

    def _status(self, start: Array) -> Status:
        """Run the steps and return the reason why they ended."""
        try:
            return self._steps(start)
        except clock.TimeUpError:
            return Status.TIME_LIMIT
        except KeyboardInterrupt:
            if clock.interrupted():  # the second one of a fit
                raise
            return Status.INTERRUPTED
        except CallbackError as error:
            raise error.cause from None
        except (FloatingPointError, np.linalg.LinAlgError):
            return Status.DIVERGED

    def _steps(self, start: Array) -> Status:
        referee, steps, iteration = self.run.referee, self.run.steps(start), 0
        while True:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                try:
                    step = next(steps)
                except StopIteration as end:
                    return referee.ended(end.value)
                step, status = referee.process(step)
            if status is Status.DIVERGED:  # a point where F is not finite is no iteration
                return status
            stopped = self._recorded(iteration, step)
            if status is not None:
                return status
            if stopped:
                return Status.STOPPED
            if iteration >= self.run.limit:
                return Status.MAX_ITER
            if self.settings.expired():
                return Status.TIME_LIMIT
            iteration += 1

    def _recorded(self, iteration: int, step: Any) -> bool:
        """Append a record to the history and return whether a callback requests a stop."""
        seconds = clock.elapsed(self.settings.started)
        record = self.run.referee.record(step)
        self.history.append({"iteration": iteration, "time": seconds, **record})
        shown = self.run.referee.as_step(step)
        return says_stop(self.watchers, State(iteration, shown, self.history.records[-1]))


def _unconstrained(
    problem: Problem,
    solver: str | Callable[..., Any],
    options: dict[str, Any],
    settings: Settings,
    max_iter: int | None,
    init: ArrayLike | Result | None,
    proof: str,
    device: Any,
) -> _Prepared:
    chosen = find(solver)
    limit = iteration_limit(max_iter, chosen.max_iter)
    if options:
        check_options(chosen, options, inspect.signature(minimize).parameters)
    check_accepts(chosen, problem, settings, place(device))
    there = place_for(problem, device, settings.rank)
    with there.room():
        problem = moved(problem, there)
        factor = host(_start(problem, init, settings))
    referee = Referee(problem, settings, proof, route=[STREAMED] if there.apart else [])
    method = partial(chosen.run, problem, settings=settings, **options)
    steps = partial(referee.steps, method)
    numbers = problem.objective.facts.dense_numbers
    return _Prepared(problem, chosen.name, referee, steps, factor, there.put, limit, numbers, there)


def _constrained(
    problem: Problem,
    solver: str | Callable[..., Any],
    options: dict[str, Any],
    settings: Settings,
    max_iter: int | None,
    init: ArrayLike | Result | None,
    proof: str,
    device: Any,
) -> _Prepared:
    if device is not None and device != "cpu":
        raise ValueError(
            f"{problem.name!r} has linear constraints, which are met on the processor: "
            f"leave device={device!r} out"
        )
    scaling = feature_scaling(Model.of(problem).problem)
    model = Model(scaling.problem)
    check_rows(model)
    methods = methods_for(solver, model, settings)
    check_method_options(methods, options)
    factor, y = _constrained_start(model, init)
    referee = ConstrainedReferee(scaling, model, settings, proof)

    def steps(start: Array) -> Iterator[Any]:
        return referee.steps(methods, start, y, options)

    limit = iteration_limit(max_iter, np.inf)
    return _Prepared(
        problem, str(solver), referee, steps, factor, scaling.coordinates, limit, problem.order**2
    )


def _start(problem: Problem, init: ArrayLike | Result | None, settings: Settings) -> Array:
    """The given factor, cut to the rank and scaled to the trace; by default M = 0."""
    domain, there = problem.domain, problem.objective.place
    if init is None:
        L: Array = there.normal(settings.rng, (problem.order, 1 if domain.bounded else 0))
    else:
        factor = init.factor if isinstance(init, Result) else init
        L = as_factor(factor, problem.order, there)
        L = as_double(L)
        _check_start(problem, L)
    return domain.rescale(_at_most(L, settings.rank))


def _at_most(L: Array, rank: int | None) -> Array:
    """The factor cut to a rank; itself if it has no more columns."""
    return L if rank is None or L.shape[1] <= rank else compress(L, rank)


def _check_start(problem: Problem, L: Array) -> None:
    """Raise ValueError if F is not finite at L, or if L = 0 cannot be scaled to the trace."""
    largest_entry = largest(L)
    if problem.domain.bounded and largest_entry == 0:
        raise ValueError(f"init is 0, and cannot be scaled to {problem.domain}")
    with np.errstate(all="ignore"):
        value = problem.value(L) if np.isfinite(inner(L, L)) else np.inf
    if not np.isfinite(value):
        raise ValueError(
            f"F is not finite at init, whose largest entry is {largest_entry:.3g}: scale it down"
        )


def _constrained_start(model: Model, init: ArrayLike | Result | None) -> tuple[Array, Array]:
    """The initial factor and multipliers; by default no columns and 0."""
    y = np.zeros(model.bounds.size)
    if init is None:
        return np.zeros((model.order, 0)), y
    if isinstance(init, Result):
        if init.dual is not None and init.dual.shape == y.shape:
            y = np.asarray(init.dual, dtype=float)
        init = init.factor
    return as_factor(init, model.order).astype(float, copy=False), y
