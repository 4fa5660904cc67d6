"""Taking the steps of a solver: when to stop, and what to bring home."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.backends.arrays import at_home, contiguous, host, inner
from gramian.callbacks import CallbackError, State, says_stop
from gramian.certificate import Certificate
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER
from gramian.result import History, Status
from gramian.search import bilateral
from gramian.solvers.base import ENDLESS, Run, Settings, Step, is_optimal
from gramian.solvers.prover import Prover
from gramian.solvers.rays import find_ray

Array = NDArray[np.floating]

ASK_FOR_RAY = (Status.STALLED, Status.LOCAL, Status.MAX_ITER, Status.CONVERGED)
"""How a run can seem to end where F falls for ever."""

CUT_OFF = (Status.TIME_LIMIT, Status.INTERRUPTED)
"""How a run ends from outside, in the middle of a step."""

DRIFT = 1e-9
"""Part of F at the start by which the end may lie above it, or below what F can be, by rounding."""

ESCAPES = 50
"""How often a solver that stalls is started again along a direction that a proof has found."""


def ending(take: Callable[..., Status]) -> Callable[..., Status]:
    """The steps of a run, and the status of what ends them from outside."""

    @wraps(take)
    def taken(*given: Any) -> Status:
        try:
            return take(*given)
        except clock.TimeUpError:
            return Status.TIME_LIMIT
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        except CallbackError as error:
            raise error.cause from None
        except (FloatingPointError, np.linalg.LinAlgError):
            return Status.DIVERGED

    return taken


@dataclass
class Drive:
    """Takes the steps of a solver until it is done or something else ends the run."""

    problem: Problem
    settings: Settings
    prover: Prover
    watchers: list[Any]
    history: History = field(default_factory=History)
    ray: Array | None = None
    """The direction along which F was found to fall for ever."""
    escapes: int = 0
    refuted: bool = False
    """Whether a gap within the tolerance was claimed that does not hold at the factor itself."""

    def take(self, factor: Array, start: Callable[..., Run], limit: int) -> Status:
        """Take up to `limit` steps; `best` is the best of them, and how it ended is returned."""
        self.best = self.first = Step(factor, self.problem.value(factor))
        self.settings.hint.latest = None
        status = self._taken(factor, start, limit)
        if status in CUT_OFF:
            with suppress(clock.TimeUpError), clock.until(self.settings.last_deadline()):
                self._salvage()
        return status

    def _salvage(self) -> None:
        """Take the last point of a descent that was cut off, where it is the best."""
        objective, factor = self.settings.hint.latest or (None, self.best.factor)
        ours = self.problem.objective
        if objective is ours or objective is ours.for_steps:
            value = self.problem.value(factor)
            if value < self.best.value:
                self.best = Step(factor, value)

    @ending
    def _taken(self, factor: Array, start: Callable[..., Run], limit: int) -> Status:
        deepest = -ENDLESS * max(self.problem.scale, abs(self.best.value))
        floor = self.problem.objective.growth().least - DRIFT * self._size()
        run = start(factor=factor)  # some solvers look at the problem for long before a step
        for iteration in range(limit + 1):
            try:
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    step = next(run)
            except StopIteration as done:
                if (further := self._escaped(done.value)) is None:
                    return self._ended(done.value)
                run = start(factor=further)
                continue
            if not np.isfinite(step.value):
                return self._fallen() or Status.DIVERGED
            step, optimal = self.prover.confirmed(step)
            self.history.append(_record(step, iteration, self.settings.started))
            below = step.value < floor  # F never is: the point is made of rounding
            if not below and (step.value <= self.best.value or _better_certified(step, self.best)):
                self.best = step
            if optimal:
                self.best = step
                if self._holds(step):
                    return Status.CONVERGED
                self.refuted = True
            if step.value < deepest:
                deepest = ENDLESS * step.value
                if status := self._fallen():
                    return status
            state = State(iteration, step, self.history.records[-1])
            if says_stop(self.watchers, state):
                return Status.STOPPED
            if self.settings.expired():
                return Status.TIME_LIMIT
        return Status.MAX_ITER

    def _holds(self, step: Step) -> bool:
        """Whether the gap is within the tolerance at the value that F has at the factor itself."""
        certificate, objective = step.certificate, self.problem.objective
        if certificate is None or certificate.gap is None:
            return True
        image = objective.image(step.factor)
        value, trace = objective.value(image), inner(step.factor, step.factor)
        here = certificate.at(value, trace, objective.rounding(image))
        return is_optimal(here, self.settings.tol)

    def _size(self) -> float:
        """The size of F near the start."""
        return max(self.problem.scale, abs(self.first.value))

    def _ended(self, status: Status) -> Status:
        """What the solver says, but for a fall without end, which needs its ray."""
        if status is Status.UNBOUNDED and (fallen := self._fallen()):
            return fallen
        if self.settings.expired():
            return Status.TIME_LIMIT
        return Status.STALLED if status is Status.UNBOUNDED else status

    def _escaped(self, status: Status) -> Array | None:
        """The best factor and a column along which F falls, where only a proof shows that one.

        A solver of large order looks for directions by Lanczos, which can pass by those of small
        eigenvalues beside large ones.
        """
        large = self.problem.order > EXACT_ORDER and not self.problem.domain.bounded
        if status is not Status.STALLED or not large or self.settings.expired():
            return None
        if self.settings.rank is not None or self.escapes >= ESCAPES:
            return None
        self.escapes += 1
        certificate = self.prover.proved(self.best)
        self.best = replace(self.best, certificate=certificate)
        vector = self.settings.hint.vector
        if vector is None or is_optimal(certificate, self.settings.tol):
            return None
        objective = self.problem.objective
        image = objective.image(self.best.factor)
        column = contiguous(objective.place.put(vector)[:, None])
        blend = objective.blend(image, objective.image(column))
        alpha, beta, value = bilateral(blend.restriction)
        gained = self.best.value - value
        if not (np.isfinite(value) and beta > 0 and gained > 1e-12 * abs(self.best.value)):
            return None
        further: Array = blend.take(alpha, beta).factor
        return further

    def _fallen(self) -> Status | None:
        """UNBOUNDED where a ray is found along which F falls for ever."""
        certificate = self.best.certificate
        if certificate is not None and certificate.gap is not None and certificate.proved:
            return None
        factor = host(self.best.factor)
        self.ray = find_ray(at_home(self.problem), factor, self.settings)
        return None if self.ray is None else Status.UNBOUNDED

    def settled(self, status: Status) -> tuple[Step, Certificate, Status]:
        """The best point, its certificate evaluated afresh, and the status that this leaves."""
        best, objective = self.best, self.problem.objective
        image = objective.image(best.factor)
        value, noise = objective.value(image), objective.rounding(image)
        # A value of other coordinates than these can be better than it is here.
        drifted = not value <= self.first.value + min(noise, DRIFT * self._size())
        if drifted:
            best, image = self.first, objective.image(self.first.factor)
            value, noise = objective.value(image), objective.rounding(image)
        certificate = self.prover.last(best, late=status is Status.TIME_LIMIT)
        trace = inner(best.factor, best.factor)
        if np.isfinite(value) and (value != certificate.value or np.isnan(certificate.trace)):
            certificate = certificate.at(value, trace, noise)
        status = self._last_status(status, certificate, image, drifted)
        if certificate.gap is None and status in ASK_FOR_RAY:
            status = self._fallen() or status
        if status is Status.UNBOUNDED and certificate.gap is not None and certificate.proved:
            status, self.ray = Status.STALLED, None  # a bound that is proved refutes the ray
        return best, certificate, status

    def _last_status(
        self, status: Status, certificate: Certificate, image: Any, drifted: bool
    ) -> Status:
        """CONVERGED where the last certificate is within the tolerance, and only there."""
        tol = self.settings.tol
        optimal = is_optimal(certificate, tol)
        if status is Status.CONVERGED and not optimal:
            size = max(abs(certificate.value), abs(certificate.lower_bound))
            blurred = self.problem.objective.rounding(image) > 0.5 * tol * size
            return Status.ROUNDING if blurred or drifted else Status.STALLED
        if status is Status.STALLED and self.refuted and not optimal:
            return Status.ROUNDING
        finished = (Status.STALLED, Status.MAX_ITER, Status.LOCAL, Status.TIME_LIMIT)
        sure = certificate.gap is not None and certificate.proved
        return Status.CONVERGED if status in finished and optimal and sure else status


def _better_certified(step: Step, best: Step) -> bool:
    """Among values equal to rounding, prefer the point that carries a certificate."""
    close = abs(step.value - best.value) <= 1e-12 * abs(best.value)
    return close and step.certificate is not None and best.certificate is None


def _record(step: Step, iteration: int, started: float) -> dict[str, float | None]:
    certificate = step.certificate
    return {
        "iteration": iteration,
        "time": clock.elapsed(started),
        "value": step.value,
        "rank": step.rank,
        "gap": None if certificate is None else certificate.gap,
        "lambda_min": None if certificate is None else certificate.lambda_min,
        **step.trace,
    }
