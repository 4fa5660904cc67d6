"""The best point of a run with constraints; see `gramian.methods.referee`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.common import clock
from gramian.constrained.judge import Judge
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate
from gramian.constrained.registry import Method
from gramian.methods.base import Settings, Step
from gramian.outcome import Outcome
from gramian.reductions.feature_scaling import FeatureScaling
from gramian.result import Status

Array = NDArray[np.floating]

PROGRESS_RATIO, MAX_STALE_CERTIFICATES = 0.9, 15
"""A method ends if this number of consecutive certificates do not reduce gap and violation by this
factor."""

PROVED_STATUSES = (Status.INFEASIBLE, Status.UNBOUNDED, Status.UNATTAINED, Status.CONVERGED)
"""Statuses decided by a proof."""


@dataclass
class ConstrainedReferee:
    """Keeps the best feasible point of a run of several methods, one after the other."""

    scaling: FeatureScaling
    """Scaling to the units of the model, in which the points are given."""
    settings: Settings
    judge: Judge
    last: Candidate | None = None
    least: float = np.inf
    """The smallest of gap and violation reached by the current method."""
    stale: int = 0
    """Consecutive certificates without progress."""
    looks: int = 0
    route: list[str] = field(default_factory=list)
    """The methods that have run."""

    @property
    def model(self) -> Model:
        return self.judge.model

    def begin(self, factor: Array) -> None:
        """Set the start, which is returned if no method finds a point."""
        self.start = factor

    def steps(
        self, methods: list[Method], factor: Array, y: Array, options: dict[str, Any]
    ) -> Iterator[Candidate]:
        """The points of one method after another, each started from the best so far."""
        for method in methods:
            self.least, self.stale = np.inf, 0
            self.route.append(method.name)
            if self.judge.factor is not None and self.judge.y is not None:
                factor, y = self.judge.factor, self.judge.y
            given = {name: options[name] for name in method.options if name in options}
            for candidate in method.run(
                self.model, factor, y, self.settings, self.judge.guide, **given
            ):
                yield candidate
                if self._idle():
                    break

    def _idle(self) -> bool:
        """Whether the best point has not improved for several certificates."""
        best = self.judge.best
        if best is None or self.judge.looks == self.looks:
            return False
        self.looks = self.judge.looks
        promised = self.judge.promised
        gap = best.relative_gap if promised is None else promised
        measure = max(1.0 if gap is None else gap, best.violation, self.judge.below)
        self.stale = 0 if measure < PROGRESS_RATIO * self.least else self.stale + 1
        self.least = min(self.least, measure)
        return self.stale >= MAX_STALE_CERTIFICATES

    def process(self, candidate: Candidate) -> tuple[Candidate, Status | None]:
        """Process a point; return it with the status that ends the run, if any."""
        self.last = candidate
        return candidate, self.judge.process(candidate)

    def as_step(self, candidate: Candidate) -> Step:
        """The point passed to callbacks, in the units of the problem."""
        factor = self.scaling.factor(candidate.factor)
        return Step(factor, self.model.problem.value(candidate.factor))

    def record(self, candidate: Candidate) -> dict[str, float | None]:
        """The columns of the history for a point, besides its number and time."""
        best = self.judge.best
        return {
            "value": self.model.problem.value(candidate.factor),
            "rank": candidate.factor.shape[1],
            "gap": None if best is None else best.gap,
            **candidate.trace,
        }

    def ended(self, status: Status | None) -> Status:
        """The status after the last method."""
        return Status.STALLED

    def recover_last_point(self) -> None:
        """Do nothing: every point has been processed."""

    def outcome(self, status: Status) -> Outcome:
        """The best point, its certificate, and the resulting status."""
        judge = self.judge
        if status not in PROVED_STATUSES:
            if self.last is not None and not judge.converged:
                late = clock.until(self.settings.last_deadline())
                with suppress(clock.TimeUpError), late, np.errstate(all="ignore"):
                    judge.process(self.last, last=True)
            status = Status.CONVERGED if judge.converged else status
        found, certificate = judge.outcome(self.start if self.last is None else self.last.factor)
        factor = self.scaling.factor(found)
        certificate = self.scaling.certificate(certificate, factor)
        if status is Status.INFEASIBLE:  # there is no optimum to compare F with
            certificate = replace(certificate, gap=None, relative_gap=None, method="none")
        dual = judge.y if judge.point is None else judge.point.dual
        return Outcome(factor, certificate, status, dual, self._ray(status), judge.dimacs())

    def _ray(self, status: Status) -> Array | None:
        """The vector that proves the status, in the coordinates of the problem."""
        ray = self.judge.ray
        if ray is None or status not in (Status.INFEASIBLE, Status.UNBOUNDED, Status.UNATTAINED):
            return None
        if status is Status.INFEASIBLE:  # multipliers do not depend on the coordinates
            return ray
        V = self.scaling.factor(ray)
        return V / float(np.linalg.norm(V))
