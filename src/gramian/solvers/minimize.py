"""`minimize`: runs a solver within its limits and brings home the best point."""

from __future__ import annotations

import difflib
import inspect
import time
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian._random import generator
from gramian.backends.threads import blas_threads_for
from gramian.callbacks import Callback, ProgressBar, State
from gramian.certificate import Certificate, certify, certify_image, proved_bottom
from gramian.problem import Problem, as_factor
from gramian.proofs import EXACT_ORDER
from gramian.result import History, Result, Status
from gramian.solvers.base import (
    ENDLESS,
    RESIDUALS,
    Run,
    Settings,
    Solver,
    Step,
    compress,
    is_optimal,
)
from gramian.solvers.checkpoint import EVERY, checkpoint_for
from gramian.solvers.rays import find_ray
from gramian.solvers.registry import check_accepts, find

Array = NDArray[np.floating]


ASK_FOR_RAY = (Status.STALLED, Status.LOCAL, Status.MAX_ITER, Status.CONVERGED)
"""How a run can seem to end where F falls for ever."""

PROOFS = ("auto", "proved", "estimated")


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
        took so far, and ten seconds at least); "proved" never does; "estimated" does not try.
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
    if proof not in PROOFS:
        raise ValueError(f"proof must be one of {', '.join(PROOFS)}, got {proof!r}")
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
            drive = _Drive(problem, settings, proof, watchers)
            status = drive.take(factor, run, limit)
            best, certificate, status = drive.settled(status)
        if keeper is not None:
            keeper.finish(best.factor, certificate.value, len(drive.history))
    finally:
        if bar is not None:
            bar.close()
    return Result(
        factor=best.factor,
        value=certificate.value,
        status=status,
        certificate=certificate,
        history=drive.history,
        solver=chosen.name,
        problem=problem.name,
        formula=problem.displayed,
        seconds=time.perf_counter() - started,
        ray=drive.ray,
    )


def _bar(problem: Problem, solver: Solver, settings: Settings, max_iter: int | None) -> ProgressBar:
    left = settings.deadline - time.perf_counter()
    return ProgressBar(f"{problem.name} by {solver.name}", settings.tol, max_iter, left)


def _dense_order(problem: Problem) -> int:
    """The order of the dense matrices worked on: 0 where factors meet only sparse ones."""
    return 0 if problem.objective.thin and problem.order > EXACT_ORDER else problem.order


@dataclass
class _Drive:
    """Takes the steps of a solver until it is done or something else ends the run."""

    problem: Problem
    settings: Settings
    proof: str
    watchers: list[Any]
    history: History = field(default_factory=History)
    ray: Array | None = None
    """The direction along which F was found to fall for ever."""
    wait: int = 0
    """Estimates within the tolerance to let pass before the next proof."""
    failed: int = 0
    residuals: int = 0
    """Certificates without a bound, whose residuals were within the tolerance."""

    def take(self, factor: Array, run: Run, limit: int) -> Status:
        """Take up to `limit` steps; `best` is the best of them, and how it ended is returned."""
        self.best = Step(factor, self.problem.value(factor))
        deepest = -ENDLESS * max(self.problem.scale, abs(self.best.value))
        try:
            for iteration in range(limit + 1):
                try:
                    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                        step = next(run)
                except StopIteration as done:
                    return self._ended(done.value)
                if not np.isfinite(step.value):
                    return self._fallen() or Status.DIVERGED
                step, optimal = self._confirmed(step)
                self.history.append(_record(step, iteration, self.settings.started))
                if step.value <= self.best.value or _better_certified(step, self.best):
                    self.best = step
                if optimal:
                    self.best = step
                    return Status.CONVERGED
                if step.value < deepest:
                    deepest = ENDLESS * step.value
                    if status := self._fallen():
                        return status
                state = State(iteration, step, self.history.records[-1])
                if any([_says_stop(_told(watch, state)) for watch in self.watchers]):
                    return Status.STOPPED
                if self.settings.expired():
                    return Status.TIME_LIMIT
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        except _CallbackError as error:
            raise error.cause from None
        except (FloatingPointError, np.linalg.LinAlgError):
            return Status.DIVERGED
        return Status.MAX_ITER

    def _ended(self, status: Status) -> Status:
        """What the solver says, but for a fall without end, which needs its ray."""
        if self.settings.expired():
            return Status.TIME_LIMIT
        if status is Status.UNBOUNDED:
            return self._fallen() or Status.STALLED
        return status

    def _fallen(self) -> Status | None:
        """UNBOUNDED where a ray is found along which F falls for ever."""
        certificate = self.best.certificate
        if certificate is not None and certificate.gap is not None and certificate.proved:
            return None
        self.ray = find_ray(self.problem, self.best.factor, self.settings)
        return None if self.ray is None else Status.UNBOUNDED

    def _confirmed(self, step: Step) -> tuple[Step, bool]:
        """The step with a certificate that may end the run, and whether it does."""
        certificate, tol = step.certificate, self.settings.tol
        if certificate is None or not is_optimal(certificate, tol):
            return step, False
        if certificate.gap is None:
            self.residuals += 1
            return step, self.residuals >= RESIDUALS
        if certificate.proved:
            return step, True
        if self.proof == "estimated":
            return step, True
        if self.wait > 0:
            self.wait -= 1
            return replace(step, certificate=None), False
        found = self._prove(step)
        accepted = found.proved or (self.proof == "auto" and found.miss < 1.0)
        if is_optimal(found, tol) and accepted:
            return replace(step, certificate=found), True
        self.failed += 1
        self.wait = 2**self.failed
        return replace(step, certificate=found), False

    def _prove(self, step: Step) -> Certificate:
        """The certificate of the step with λ_min proved, where a proof fits."""
        problem, seconds = self.problem, self.settings.proof_seconds()
        image = problem.objective.image(step.factor)
        costly = [*problem.objective.costly_bounds(image, seconds)]
        known = max(costly, key=lambda bound: bound.value, default=None)
        prove = known is None or not np.isfinite(known.value)
        bottom = proved_bottom(
            problem, image, tol=self.settings.tol, seconds=seconds, prove=prove
        )
        self.settings.hint.vector = bottom.vector
        return certify_image(problem, image, bottom=bottom, known=known)

    def settled(self, status: Status) -> tuple[Step, Certificate, Status]:
        """The best point, its certificate evaluated afresh, and the status that this leaves."""
        best, problem = self.best, self.problem
        certificate = best.certificate or self._last_certificate(best)
        if not certificate.proved and self.proof != "estimated" and status is not Status.TIME_LIMIT:
            certificate = self._prove(best)
        image = problem.objective.image(best.factor)
        value, trace = problem.objective.value(image), float(np.sum(best.factor**2))
        if np.isfinite(value) and (value != certificate.value or np.isnan(certificate.trace)):
            certificate = certificate.at(value, trace, problem.objective.rounding(image))
        status = self._last_status(status, certificate, image)
        if certificate.gap is None and status in ASK_FOR_RAY:
            status = self._fallen() or status
        return best, certificate, status

    def _last_certificate(self, best: Step) -> Certificate:
        try:
            seconds = self.settings.proof_seconds()
            return certify(problem=self.problem, factor=best.factor, time_limit=seconds)
        except (FloatingPointError, np.linalg.LinAlgError):
            return Certificate(best.value, -np.inf, np.nan, None, None, "none")

    def _last_status(self, status: Status, certificate: Certificate, image: Any) -> Status:
        """CONVERGED where the last certificate is within the tolerance, and only there."""
        tol = self.settings.tol
        optimal = is_optimal(certificate, tol)
        if status is Status.CONVERGED and not optimal:
            size = max(abs(certificate.value), abs(certificate.lower_bound))
            blurred = self.problem.objective.rounding(image) > 0.5 * tol * size
            return Status.ROUNDING if blurred else Status.STALLED
        finished = (Status.STALLED, Status.MAX_ITER, Status.LOCAL)
        sure = certificate.gap is not None and certificate.proved
        return Status.CONVERGED if status in finished and optimal and sure else status


class _CallbackError(Exception):
    """What a callback raised, which is not the solver's."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause


def _told(watch: Any, state: State) -> Any:
    try:
        return watch(state)
    except (FloatingPointError, np.linalg.LinAlgError) as error:
        raise _CallbackError(error) from error


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
        None if rank is None else int(rank), float(tol), generator(random_state), deadline, started
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
        _check_start(problem, L)
    if settings.rank is not None and L.shape[1] > settings.rank:
        L = compress(L, settings.rank)
    return L if trace is None else L * np.sqrt(trace / np.sum(L * L))


def _check_start(problem: Problem, L: Array) -> None:
    """Refuse a start that is 0 where the trace is not, or that F cannot be evaluated at."""
    if problem.domain.trace is not None and not np.any(L):
        raise ValueError(f"init is 0, and cannot be scaled to {problem.domain}")
    with np.errstate(all="ignore"):
        value = problem.value(L) if np.isfinite(np.sum(L * L)) else np.inf
    if not np.isfinite(value):
        raise ValueError(
            f"F is not finite at init, whose largest entry is {np.max(np.abs(L)):.3g}; scale it down"
        )
