"""The best point of a constrained method, its bound, and the test of convergence."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.bounds import Bounds
from gramian.certificate import Certificate, relative
from gramian.common import clock
from gramian.constrained.certify import accuracy, constrained_certificate, dimacs_errors
from gramian.constrained.dual import Repair
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide
from gramian.constrained.polish import polished
from gramian.constrained.rays import proves_infeasible, proves_unattained, proves_unbounded
from gramian.methods.base import MIN_SMALL_RESIDUALS, Settings
from gramian.objectives import LowerBound
from gramian.proofs import EXACT_ORDER, SparseForm
from gramian.result import Status

Array = NDArray[np.floating]

MAX_POLISHED_VIOLATION = 1e-2
"""Largest violation of a factor that is polished until its constraints hold."""

MAX_POLISHED_GAP = 1e-3
"""Relative difference of value and bound below which a factor is polished."""

CERTIFICATE_TIME_FRACTION = 0.3
"""Fraction of the time that intermediate certificates may take."""

PROMISING_GAP_IN_TOLERANCES = 2.0
"""Estimated gap, in allowed gaps, up to which a proof is attempted."""

MARGIN_GAP_FRACTION = 0.2
"""Fraction of the allowed gap that a margin of the dual may cost."""


@dataclass
class Judge:
    """Keeps the best feasible point and the best dual point, independently of each other."""

    model: Model
    settings: Settings
    proof: str
    guide: Guide = field(default_factory=Guide)
    best: Certificate | None = None
    factor: Array | None = None
    y: Array | None = None
    ray: Array | None = None
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

    @property
    def point(self) -> LowerBound | None:
        """The best dual point."""
        return self.bounds.best

    def process(self, candidate: Candidate, *, last: bool = False) -> Status | None:
        """Process a point; return the status that ends the run, if any."""
        started = clock.now()
        status = self._rays(candidate)
        if status is None and (last or self._affordable(candidate, started)):
            self._certified(candidate, last)
            self.looks += 1
            self.spent += clock.elapsed(started)
            if self.converged:
                return Status.CONVERGED
            self._request_margin()
            return self._flat(candidate)
        return status

    @property
    def converged(self) -> bool:
        """Whether a feasible point is certified to the tolerance."""
        best, tol = self.best, self.settings.tol
        if best is None or best.violation > tol:
            return False
        if best.relative_gap is None:  # a linear F needs a dual point
            return self.model.linear is None and self.residuals >= MIN_SMALL_RESIDUALS
        if self.below > tol:
            return False
        return best.relative_gap <= tol and (best.proved or self.proof != "proved")

    @property
    def below(self) -> float:
        """How far the best value lies below the bound, relatively, if it is slightly infeasible.

        0 if it is far from feasible: then the violation decides, and the bound may be infinite.
        """
        best = self.best
        if best is None or self.point is None or best.violation > self.settings.tol:
            return 0.0
        if self.point.value <= best.value:
            return 0.0
        return self._relative_distance(best.value)

    def _relative_distance(self, value: float) -> float:
        """The relative distance of a value to the bound."""
        assert self.point is not None
        return relative(abs(value - self.point.value), value, self.model.problem.scale)

    def _affordable(self, candidate: Candidate, now: float) -> bool:
        if self.model.order <= 100 or candidate.sure:
            return True
        return self.spent <= CERTIFICATE_TIME_FRACTION * (now - self.settings.started)

    def _certified(self, candidate: Candidate, last: bool) -> None:
        model, tol = self.model, self.settings.tol
        factor = candidate.factor
        if model.linear is None or last:  # the bound is computed at the point itself
            factor = self._improved(factor)
        image = model.objective.image(factor)
        prove = self.proof != "estimated" and (last or self._promising(image, candidate.y))
        if prove or self.proof == "estimated":
            self.bounds.add(self._bound(image, candidate.y, prove))
        self.guide.vector, self.guide.least = self.repair.vector, self.repair.least
        if model.linear is not None and self._close(image):
            factor = self._improved(factor)
            image = model.objective.image(factor)
        found = constrained_certificate(model, image, self.point, candidate.y, self.repair.least)
        if self._better(found):
            self.best, self.factor, self.y = found, factor, candidate.y
        elif self.best is not None and self.factor is not None:
            image = model.objective.image(self.factor)
            assert self.y is not None
            self.best = constrained_certificate(
                model, image, self.point, self.y, self.best.lambda_min
            )
        held = self.best
        self.guide.gap = 0.0 if held is None or held.gap is None else held.gap
        if held is not None and held.gap is None and held.within(tol):
            self.residuals += 1

    def _close(self, image: Any) -> bool:
        """Whether value and bound are close enough to polish the factor."""
        if self.point is None or self.best is None or self.best.violation > MAX_POLISHED_VIOLATION:
            return True
        off = self._relative_distance(self.model.objective.value(image))
        return off <= max(MAX_POLISHED_GAP, 10 * self.settings.tol)

    def _bound(self, image: Any, y: Array, prove: bool) -> LowerBound | None:
        wanted = accuracy(self.model, image, self.settings.tol)
        return self.repair(image, y, wanted=wanted, seconds=self._proof_seconds(), prove=prove)

    def _promising(self, image: Any, y: Array) -> bool:
        """Whether an estimate of λ_min, which is cheap, suggests that a proof will succeed."""
        self.promised = None
        if not self._proofs_are_costly(image, y):
            return True
        point = self._bound(image, y, prove=False)
        if point is None:
            return self.point is None
        value = self.model.objective.value(image)
        gap = relative(max(0.0, value - point.value), value, self.model.problem.scale)
        if gap <= PROMISING_GAP_IN_TOLERANCES * self.settings.tol:
            return True
        self.promised = gap
        return False

    def _proofs_are_costly(self, image: Any, y: Array) -> bool:
        """Whether λ_min needs a dense factorisation at large order."""
        if self.costly is None:
            form = self.model.slack(image, y).form()
            quick = isinstance(form, SparseForm) and not form.fills
            self.costly = self.model.order > EXACT_ORDER and not quick
        return self.costly

    def _proof_seconds(self) -> float:
        if self.model.order <= EXACT_ORDER:
            return float("inf")
        return self.settings.proof_seconds()

    def _improved(self, factor: Array) -> Array:
        bounds, tol = self.model.bounds, self.settings.tol
        violation = bounds.violation(bounds.map.bilinear(factor, factor))
        goal = 0.01 * tol
        if goal < violation <= MAX_POLISHED_VIOLATION and factor.shape[1]:
            return polished(self.model, factor, goal=goal)
        return factor

    def _better(self, found: Certificate) -> bool:
        """Prefer feasible points, then the value closest to the bound."""
        best, tol = self.best, self.settings.tol
        if best is None or not np.isfinite(best.value):
            return True
        if found.violation > tol or best.violation > tol:
            return found.violation < best.violation
        if self.point is None:
            return found.value < best.value
        return self._relative_distance(found.value) < self._relative_distance(best.value)

    def _request_margin(self) -> None:
        """Request a margin if no direction leads from multipliers back to a dual point."""
        best = self.best
        if best is None or self.repair.lifts_all or self.model.linear is None:
            return
        size = max(abs(best.value), 1e-6 * best.scale)
        if best.trace > 0 and size > 0:
            self.guide.margin = MARGIN_GAP_FRACTION * self.settings.tol * size / best.trace

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

    def _flat(self, candidate: Candidate) -> Status | None:
        """UNATTAINED if the search for a dual point ends because no slack is definite."""
        if candidate.flat_ray is None:
            return None
        self.ray = proves_unattained(self.model, candidate.flat_ray)
        return None if self.ray is None else Status.UNATTAINED

    def dimacs(self) -> tuple[float, ...] | None:
        """The DIMACS errors of the best point and the dual point, or its own multipliers."""
        if self.factor is None or self.y is None or self.best is None:
            return None
        image = self.model.objective.image(self.factor)
        if self.point is not None:
            return dimacs_errors(self.model, image, self.point.dual, 0.0)
        return dimacs_errors(self.model, image, self.y, self.best.lambda_min)

    def outcome(self, fallback: Array) -> tuple[Array, Certificate]:
        """The final factor and its certificate."""
        if self.best is None or self.factor is None:
            image = self.model.objective.image(fallback)
            zero = np.zeros(self.model.bounds.size)
            nothing = constrained_certificate(self.model, image, None, zero)
            return fallback, nothing
        return self.factor, replace(self.best)
