"""The best point of a run with constraints and its bound; see `gramian.methods.referee`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramian.bounds import Bounds
from gramian.certificate import Certificate, relative
from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.certify import accuracy, constrained_certificate, dimacs_errors
from gramian.constrained.dual import Repair
from gramian.constrained.model import Model
from gramian.constrained.points import PROGRESS_RATIO, Candidate, Guide
from gramian.constrained.polish import polished
from gramian.constrained.rays import (
    MIN_INFEASIBLE_TRACE,
    proves_infeasible,
    proves_unattained,
    proves_unbounded,
)
from gramian.constrained.registry import Method
from gramian.methods.base import MIN_SMALL_RESIDUALS, Settings, Step
from gramian.objectives import LowerBound
from gramian.outcome import Outcome
from gramian.proofs import EXACT_ORDER, SparseForm
from gramian.reductions.feature_scaling import FeatureScaling
from gramian.result import Status

MAX_STALE_CERTIFICATES = 15
"""Consecutive certificates without progress in gap and violation after which a method ends."""

MAX_POLISHED_VIOLATION, MAX_POLISHED_GAP = 1e-2, 1e-3
"""Largest violation of a factor that is polished until its constraints hold, and the relative
difference of value and bound below which it is polished."""

CERTIFICATE_TIME_FRACTION = 0.3
"""Fraction of the time that intermediate certificates may take."""

PROMISING_GAP_IN_TOLERANCES = 2.0
"""Estimated gap, in allowed gaps, up to which a proof is attempted."""

MARGIN_GAP_FRACTION = 0.2
"""Fraction of the allowed gap that a margin of the dual may cost."""

GROWN = (
    "M has grown far beyond the right-hand sides of the constraints, so the infimum may not be "
    "attained; a constraint tr M ≤ t, with t as large as is reasonable, makes it attained"
)

PROVED_STATUSES = (Status.INFEASIBLE, Status.UNBOUNDED, Status.UNATTAINED, Status.CONVERGED)
"""Statuses decided by a proof."""


@dataclass
class ConstrainedReferee:
    """Keeps the best feasible point and the best dual point of a run, independently of each other.

    The methods of the run start one after the other, each from the best point so far.
    """

    scaling: FeatureScaling
    """Scaling to the units of the model, in which the points are given."""
    model: Model
    settings: Settings
    proof: str
    guide: Guide = field(default_factory=Guide)
    best: Certificate | None = None
    """The certificate of the best point, its factor, and its multipliers."""
    factor: Array | None = None
    y: Array | None = None
    ray: Array | None = None
    last: Candidate | None = None
    route: list[str] = field(default_factory=list)
    """The methods that have run."""
    spent: float = 0.0
    """Seconds taken by certificates."""
    looks: int = 0
    """Number of certificates so far."""
    residuals: int = 0
    """Number of certificates without a bound whose residuals were within the tolerance."""
    costly: bool | None = None
    """Whether a proof takes longer than an estimate; None before it is known."""
    promised: float | None = None
    """The relative gap of the last estimate, if no proof followed."""

    def __post_init__(self) -> None:
        self.repair = Repair(self.model)
        self.bounds = Bounds(self.model.problem, keep_estimates=True)

    def begin(self, factor: Array) -> None:
        """Set the start, which is returned if no method finds a point."""
        self.start = factor

    def steps(
        self, methods: list[Method], factor: Array, y: Array, options: dict[str, Any]
    ) -> Iterator[Candidate]:
        """The points of one method after another, until each makes no more progress."""
        for method in methods:
            self.route.append(method.name)
            if self.factor is not None and self.y is not None:
                factor, y = self.factor, self.y
            given = {name: options[name] for name in method.options if name in options}
            least, stale, looks = np.inf, 0, self.looks
            for candidate in method.run(self.model, factor, y, self.settings, self.guide, **given):
                yield candidate
                if self.best is None or self.looks == looks:
                    continue
                looks, error = self.looks, self._error(self.best)
                stale = 0 if error < PROGRESS_RATIO * least else stale + 1
                least = min(least, error)
                if stale >= MAX_STALE_CERTIFICATES:
                    break

    def _error(self, best: Certificate) -> float:
        """The larger of gap and violation of the best point."""
        gap = best.relative_gap if self.promised is None else self.promised
        return max(1.0 if gap is None else gap, best.violation, self.below)

    def process(self, candidate: Candidate) -> tuple[Candidate, Status | None]:
        """Process a point; return it with the status that ends the run, if any."""
        self.last = candidate
        return candidate, self._status(candidate)

    def _status(self, candidate: Candidate, *, last: bool = False) -> Status | None:
        started = clock.now()
        status = self._rays(candidate)
        if status is not None or not (last or self._affordable(candidate, started)):
            return status
        self._certify(candidate, last)
        self.looks += 1
        self.spent += clock.elapsed(started)
        if self.converged:
            return Status.CONVERGED
        self._request_margin()
        if candidate.flat_ray is not None:  # no dual point was found, maybe because none exists
            self.ray = proves_unattained(self.model, candidate.flat_ray)
            return None if self.ray is None else Status.UNATTAINED
        return None

    def _rays(self, candidate: Candidate) -> Status | None:
        if candidate.dual_ray is not None:
            self.ray = proves_infeasible(self.model, candidate.dual_ray)
            if self.ray is not None:
                return Status.INFEASIBLE
        if candidate.primal_ray is not None:
            self.ray = proves_unbounded(self.model, candidate.primal_ray)
            if self.ray is not None:
                return Status.UNBOUNDED
        return None

    def _affordable(self, candidate: Candidate, now: float) -> bool:
        if self.model.order <= 100 or candidate.sure:
            return True
        return self.spent <= CERTIFICATE_TIME_FRACTION * (now - self.settings.started)

    @property
    def converged(self) -> bool:
        """Whether a feasible point is certified to the tolerance."""
        best, tol = self.best, self.settings.tol
        if best is None or best.violation > tol:
            return False
        if best.relative_gap is None:  # a linear F needs a dual point
            return self.model.linear is None and self.residuals >= MIN_SMALL_RESIDUALS
        if max(self.below, best.relative_gap) > tol:
            return False
        return best.proved or self.proof != "proved"

    @property
    def below(self) -> float:
        """How far the best value lies below the bound, relatively, if it is slightly infeasible.

        0 if it is far from feasible: then the violation decides, and the bound may be infinite.
        """
        best, bound = self.best, self.bounds.best
        if best is None or bound is None or best.violation > self.settings.tol:
            return 0.0
        return self._distance(best.value, bound) if bound.value > best.value else 0.0

    def _distance(self, value: float, bound: LowerBound) -> float:
        """The relative distance of a value to a bound."""
        return relative(abs(value - bound.value), value, self.model.problem.scale)

    def _certify(self, candidate: Candidate, last: bool) -> None:
        """Bound F* by the multipliers of a point, and keep the point if it is the best."""
        model, factor, y = self.model, candidate.factor, candidate.y
        if model.linear is None or last:  # the bound is computed at the point itself
            factor = self._polished(factor)
        image = model.objective.image(factor)
        prove = self.proof != "estimated" and (last or self._promising(image, y))
        if prove or self.proof == "estimated":
            self.bounds.add(self._bound(image, y, prove))
        self.guide.vector, self.guide.least = self.repair.vector, self.repair.least
        if model.linear is not None and self._close(image):
            factor = self._polished(factor)
            image = model.objective.image(factor)
        found = constrained_certificate(model, image, self.bounds.best, y, self.repair.least)
        if self._better(found):
            self.best, self.factor, self.y = found, factor, y
        elif self.best is not None and self.factor is not None and self.y is not None:
            image, least = model.objective.image(self.factor), self.best.lambda_min
            self.best = constrained_certificate(model, image, self.bounds.best, self.y, least)
        held = self.best
        self.guide.gap = 0.0 if held is None or held.gap is None else held.gap
        if held is not None and held.gap is None and held.within(self.settings.tol):
            self.residuals += 1

    def _polished(self, factor: Array) -> Array:
        """The factor, with its constraints satisfied if it is close to that."""
        bounds, goal = self.model.bounds, 0.01 * self.settings.tol
        violation = bounds.violation(bounds.map.bilinear(factor, factor))
        if goal < violation <= MAX_POLISHED_VIOLATION and factor.shape[1]:
            return polished(self.model, factor, goal=goal)
        return factor

    def _close(self, image: Any) -> bool:
        """Whether value and bound are close enough to polish the factor."""
        best, bound = self.best, self.bounds.best
        if bound is None or best is None or best.violation > MAX_POLISHED_VIOLATION:
            return True
        distance = self._distance(self.model.objective.value(image), bound)
        return distance <= max(MAX_POLISHED_GAP, 10 * self.settings.tol)

    def _bound(self, image: Any, y: Array, prove: bool) -> LowerBound | None:
        wanted = accuracy(self.model, image, self.settings.tol)
        small = self.model.order <= EXACT_ORDER
        seconds = np.inf if small else self.settings.proof_seconds()
        return self.repair(image, y, wanted=wanted, seconds=seconds, prove=prove)

    def _promising(self, image: Any, y: Array) -> bool:
        """Whether a proof is cheap, or an estimate of λ_min suggests that it will succeed."""
        self.promised = None
        if self.costly is None:
            form = self.model.slack(image, y).form()
            quick = isinstance(form, SparseForm) and not form.fills
            self.costly = self.model.order > EXACT_ORDER and not quick
        if not self.costly:
            return True
        point = self._bound(image, y, prove=False)
        if point is None:
            return self.bounds.best is None
        value = self.model.objective.value(image)
        gap = self._distance(max(value, point.value), point)
        if gap <= PROMISING_GAP_IN_TOLERANCES * self.settings.tol:
            return True
        self.promised = gap
        return False

    def _better(self, found: Certificate) -> bool:
        """Prefer feasible points, then the value closest to the bound."""
        best, bound, tol = self.best, self.bounds.best, self.settings.tol
        if best is None or not np.isfinite(best.value):
            return True
        if found.violation > tol or best.violation > tol:
            return found.violation < best.violation
        if bound is None:
            return found.value < best.value
        return self._distance(found.value, bound) < self._distance(best.value, bound)

    def _request_margin(self) -> None:
        """Request a margin if no direction leads from multipliers back to a dual point."""
        best = self.best
        if best is None or self.repair.lifts_all or self.model.linear is None:
            return
        size = max(abs(best.value), 1e-6 * best.scale)
        if best.trace > 0 and size > 0:
            self.guide.margin = MARGIN_GAP_FRACTION * self.settings.tol * size / best.trace

    def as_step(self, candidate: Candidate) -> Step:
        """The point passed to callbacks, in the units of the problem."""
        factor = self.scaling.factor(candidate.factor)
        return Step(factor, self.model.problem.value(candidate.factor))

    def record(self, candidate: Candidate) -> dict[str, float | None]:
        """The columns of the history for a point, besides its number and time."""
        return {
            "value": self.model.problem.value(candidate.factor),
            "rank": candidate.factor.shape[1],
            "gap": None if self.best is None else self.best.gap,
            **candidate.trace,
        }

    def ended(self, status: Status | None) -> Status:
        """The status after the last method."""
        return Status.STALLED

    def recover_last_point(self) -> None:
        """Do nothing: every point has been processed."""

    def outcome(self, status: Status) -> Outcome:
        """The best point, its certificate, and the resulting status."""
        if status not in PROVED_STATUSES:
            if self.last is not None and not self.converged:
                late = clock.until(self.settings.last_deadline())
                with suppress(clock.TimeUpError), late, np.errstate(all="ignore"):
                    self._status(self.last, last=True)
            status = Status.CONVERGED if self.converged else status
        found, y, bound = self._final()
        image = self.model.objective.image(found)
        certificate = self.best
        if certificate is None:
            certificate = constrained_certificate(self.model, image, None, y)
        factor = self.scaling.factor(found)
        certificate = self.scaling.certificate(certificate, factor)
        if status is Status.INFEASIBLE:  # there is no optimum to compare F with
            certificate = replace(certificate, gap=None, relative_gap=None, method="none")
        dual, errors = (self.y if bound is None else bound.dual), None
        if self.best is not None:
            least = self.best.lambda_min if bound is None else 0.0
            errors = dimacs_errors(self.model, image, y if bound is None else bound.dual, least)
        # far larger than the right-hand sides require
        grown = float(np.sum(found**2)) >= MIN_INFEASIBLE_TRACE * max(1.0, self.model.right)
        hint = GROWN if grown and status not in PROVED_STATUSES else ""
        return Outcome(factor, certificate, status, dual, self._ray(status), errors, hint)

    def _final(self) -> tuple[Array, Array, LowerBound | None]:
        """The final factor, its multipliers, and the best dual point."""
        if self.factor is not None and self.y is not None:
            return self.factor, self.y, self.bounds.best
        fallback = self.start if self.last is None else self.last.factor
        return fallback, np.zeros(self.model.bounds.size), self.bounds.best

    def _ray(self, status: Status) -> Array | None:
        """The vector that proves the status, in the coordinates of the problem."""
        if self.ray is None or status is Status.INFEASIBLE:  # multipliers need no scaling
            return self.ray
        if status not in (Status.UNBOUNDED, Status.UNATTAINED):
            return None
        V = self.scaling.factor(self.ray)
        return V / float(np.linalg.norm(V))
