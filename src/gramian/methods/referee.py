"""The best point of a run, its certificate, and the test of optimality."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from gramian.arrays.places import at_home, contiguous, host, inner
from gramian.bounds import UNKNOWN, certificate_of, certify, certify_image, proved_certificate
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg import bilateral
from gramian.methods.base import (
    MIN_SMALL_RESIDUALS,
    RAY_SEARCH_DECREASE,
    Run,
    Settings,
    Step,
)
from gramian.methods.rays import find_ray
from gramian.outcome import VALUE_ROUNDING, Outcome
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER
from gramian.result import Status

RAY_SEARCH_STATUSES = (Status.STALLED, Status.LOCAL, Status.MAX_ITER, Status.CONVERGED)
"""Statuses after which `find_ray` tests whether F is unbounded below."""

MAX_RESTARTS = 50
"""Maximum number of restarts of a stalled solver along directions found by a proof."""


@dataclass
class Referee:
    """Keeps the best point of a run and confirms the certificates that end it.

    The gap is estimated often and proved rarely: a proof is attempted when the estimate is within
    the tolerance, and after a failed proof the next few estimates are skipped.
    """

    problem: Problem
    settings: Settings
    proof: str
    """One of "auto", "proved" and "estimated", see `minimize`."""
    ray: Array | None = None
    """A direction along which F is unbounded below."""
    escapes: int = 0
    refuted: bool = False
    """Whether a gap within the tolerance was claimed that does not hold at the factor itself."""
    skipped: int = 0
    """Number of estimates within the tolerance to skip before the next proof."""
    failed: int = 0
    proved: Certificate | None = None
    """The certificate of the last attempted proof."""
    residuals: int = 0
    """Certificates without a bound whose residuals were within the tolerance."""
    route: list[str] = field(default_factory=list)
    """The methods that yielded steps."""

    def begin(self, factor: Array) -> None:
        """Set the start as the best point."""
        self._seen: tuple[Array, Any] | None = None
        self.best = self.first = Step(factor, self.problem.value(factor))
        self.ray_search_value = -RAY_SEARCH_DECREASE * max(self.problem.scale, abs(self.best.value))
        self.settings.state.latest = None

    @cached_property
    def floor(self) -> float:
        """A lower bound on F, up to rounding."""
        return self.problem.objective.growth().least - VALUE_ROUNDING * self._size()

    def steps(self, start: Callable[..., Run], factor: Array) -> Run:
        """The steps of a solver, which is restarted if a proof finds a direction of decrease."""
        while True:
            status = yield from start(factor=factor)
            further = self._restart(status)
            if further is None:
                return status
            factor = further

    def process(self, step: Step) -> tuple[Step, Status | None]:
        """Process a step; return it with the status that ends the run, if any."""
        if step.method and self.route[-1:] != [step.method]:
            self.route.append(step.method)
        if not np.isfinite(step.value):
            return self.best, self._unbounded() or Status.DIVERGED
        step, optimal = self._confirmed(step)
        below = step.value < self.floor  # impossible in exact arithmetic: a rounding error
        if not below and (step.value <= self.best.value or _better_certified(step, self.best)):
            self.best = step
        if optimal:
            self.best = step
            if self._holds_at_factor(step):
                return step, Status.CONVERGED
            self.refuted = True
        if step.value < self.ray_search_value:
            self.ray_search_value = RAY_SEARCH_DECREASE * step.value
            return step, self._unbounded()
        return step, None

    def as_step(self, step: Step) -> Step:
        """The step passed to callbacks."""
        return step

    def record(self, step: Step) -> dict[str, float | None]:
        """The columns of the history for a step, besides its number and time."""
        certificate = step.certificate
        return {
            "value": step.value,
            "rank": step.rank,
            "gap": None if certificate is None else certificate.gap,
            "lambda_min": None if certificate is None else certificate.lambda_min,
            **step.trace,
        }

    def ended(self, status: Status) -> Status:
        """The status of a solver that has returned; UNBOUNDED requires a ray."""
        if status is Status.UNBOUNDED and (fallen := self._unbounded()):
            return fallen
        if self.settings.expired():
            return Status.TIME_LIMIT
        return Status.STALLED if status is Status.UNBOUNDED else status

    def recover_last_point(self) -> None:
        """Use the last point of an interrupted descent if it is the best."""
        objective, factor = self.settings.state.latest or (None, self.best.factor)
        if objective is self.problem.objective:
            value = self.problem.value(factor)
            if value < self.best.value:
                self.best = Step(factor, value)

    def outcome(self, status: Status) -> Outcome:
        """The best point with its certificate recomputed, and the resulting status."""
        best, objective = self.best, self.problem.objective
        image = self._image_of(best)
        value, noise = objective.value(image), objective.rounding(image)
        # A value computed in other coordinates can be lower than F at the factor.
        drifted = not value <= self.first.value + min(noise, VALUE_ROUNDING * self._size())
        if drifted:
            best, image = self.first, objective.image(self.first.factor)
            value, noise = objective.value(image), objective.rounding(image)
        certificate = self._final_certificate(best, late=status is Status.TIME_LIMIT)
        trace = inner(best.factor, best.factor)
        if np.isfinite(value) and (value != certificate.value or np.isnan(certificate.trace)):
            certificate = certificate.at(value, trace, noise)
        status = self._final_status(status, certificate, image, drifted)
        if certificate.gap is None and status in RAY_SEARCH_STATUSES:
            status = self._unbounded() or status
        if status is Status.UNBOUNDED and certificate.gap is not None and certificate.proved:
            status, self.ray = Status.STALLED, None  # a proved bound refutes the ray
        dual = None if best.dual is None else host(best.dual)
        return Outcome(
            host(best.factor), certificate, status, dual, self.ray, first_value=self.first.value
        )

    def _confirmed(self, step: Step) -> tuple[Step, bool]:
        """The step with its confirmed certificate, and whether it ends the run."""
        certificate, tol = step.certificate, self.settings.tol
        if certificate is None or not certificate.within(tol):
            return step, False
        if certificate.gap is None:
            self.residuals += 1
            return step, self.residuals >= MIN_SMALL_RESIDUALS
        if certificate.proved:
            return step, True
        if self.skipped > 0:
            self.skipped -= 1
            return replace(step, certificate=None), False
        found = self._prove(step, prove=self.proof != "estimated")
        if not found.within(tol) and self.proof == "estimated":  # Lanczos is not accurate enough
            found = self._prove(step)
        accepted = found.proved or self.proof != "proved"  # an estimate: no proof was feasible
        if found.within(tol) and accepted:
            return replace(step, certificate=found), True
        self.failed += 1
        self.skipped = 2**self.failed
        return replace(step, certificate=found), False

    def _prove(self, step: Step, *, prove: bool = True) -> Certificate:
        """The certificate of the step with λ_min proved, if a proof is feasible."""
        self.proved, bottom = proved_certificate(
            self.problem,
            self.problem.objective.image(step.factor),
            step.dual,
            tol=self.settings.tol,
            seconds=self.settings.proof_seconds(),
            prove=prove,
        )
        self.settings.state.direction = bottom.vector
        return self.proved

    def _holds_at_factor(self, step: Step) -> bool:
        """Whether the gap is within the tolerance when F is evaluated at the factor itself."""
        certificate, objective = step.certificate, self.problem.objective
        if certificate is None or certificate.gap is None:
            return True
        image = self._image_of(step)
        value, trace = objective.value(image), inner(step.factor, step.factor)
        return certificate.at(value, trace, objective.rounding(image)).within(self.settings.tol)

    def _image_of(self, step: Step) -> Any:
        """The image of the factor of a step; the last one is cached."""
        if self._seen is None or self._seen[0] is not step.factor:
            self._seen = step.factor, self.problem.objective.image(step.factor)
        return self._seen[1]

    def _size(self) -> float:
        """The magnitude of F at the start."""
        return max(self.problem.scale, abs(self.first.value))

    def _restart(self, status: Status) -> Array | None:
        """The best factor plus a column along which F decreases, found by a proof only.

        At large order a solver searches such directions by Lanczos, which can miss those of small
        eigenvalues in the presence of large ones.
        """
        large = self.problem.order > EXACT_ORDER and not self.problem.domain.bounded
        if status is not Status.STALLED or not large or self.settings.expired():
            return None
        if self.settings.rank is not None or self.escapes >= MAX_RESTARTS:
            return None
        self.escapes += 1
        certificate = self._prove(self.best)
        self.best = replace(self.best, certificate=certificate)
        vector = self.settings.state.direction
        if vector is None or certificate.within(self.settings.tol):
            return None
        objective = self.problem.objective
        image = objective.image(self.best.factor)
        column = contiguous(objective.place.put(vector)[:, None])
        blend = objective.blend(image, objective.image(column))
        alpha, beta, value = bilateral(blend.restriction)
        gained = self.best.value - value
        if not (np.isfinite(value) and beta > 0 and gained > 1e-12 * abs(self.best.value)):
            return None
        return blend.take(alpha, beta).factor

    def _unbounded(self) -> Status | None:
        """UNBOUNDED if a ray is found along which F is unbounded below."""
        certificate = self.best.certificate
        if certificate is not None and certificate.gap is not None and certificate.proved:
            return None
        factor = host(self.best.factor)
        self.ray = find_ray(at_home(self.problem), factor, self.settings)
        return None if self.ray is None else Status.UNBOUNDED

    def _final_certificate(self, best: Step, *, late: bool) -> Certificate:
        """The certificate of the best point, proved if the time permits."""
        certificate = best.certificate or self._first_certificate(best)
        tried = certificate.proved or certificate is self.proved
        if not tried and self.proof != "estimated" and not late:
            with suppress(clock.TimeUpError), clock.until(self.settings.last_deadline()):
                certificate = self._prove(best)
        return certificate

    def _first_certificate(self, best: Step) -> Certificate:
        """The certificate of a point without one; only cheap bounds if the time is up."""
        problem, seconds = self.problem, self.settings.proof_seconds()
        nothing = certificate_of(best.value, None, scale=problem.scale)
        try:
            with clock.until(self.settings.last_deadline()):
                return certify(problem, best.factor, tol=self.settings.tol, time_limit=seconds)
        except clock.TimeUpError:
            with suppress(clock.TimeUpError), clock.until(clock.now() + 0.1):
                image = problem.objective.image(best.factor)
                return certify_image(problem, image, bottom=UNKNOWN)
            return nothing
        except (FloatingPointError, np.linalg.LinAlgError):
            return nothing

    def _final_status(
        self, status: Status, certificate: Certificate, image: Any, drifted: bool
    ) -> Status:
        """CONVERGED if and only if the final certificate is within the tolerance."""
        tol = self.settings.tol
        optimal = certificate.within(tol)
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
    """Among values equal up to rounding, prefer the point with a certificate."""
    close = abs(step.value - best.value) <= 1e-12 * abs(best.value)
    return close and step.certificate is not None and best.certificate is None
