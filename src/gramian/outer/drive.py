"""Taking the points of an outer loop: what is kept of them, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.callbacks import State, says_stop
from gramian.outer.judge import Judge
from gramian.outer.model import Model
from gramian.outer.points import Candidate
from gramian.outer.registry import Method
from gramian.result import History, Status
from gramian.solvers.base import Settings, Step
from gramian.solvers.drive import ending

Array = NDArray[np.floating]

PROGRESS, PATIENCE = 0.9, 15
"""A loop is left where so many points running have not brought gap and violation to this part of
what they were."""

PROVED = (Status.INFEASIBLE, Status.UNBOUNDED, Status.UNATTAINED, Status.CONVERGED)
"""Ends that a proof has decided."""


class Drive:
    """Takes the points of a loop until one is good enough or something else ends it."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        judge: Judge,
        history: History,
        restored: Callable[[Array], Array],
    ) -> None:
        self.model, self.settings, self.judge, self.history = model, settings, judge, history
        self.restored = restored
        """A factor in the coordinates of the problem, from one in those of the model."""
        self.watchers: list[Any] = []
        self.last: Candidate | None = None
        self.last_method = ""
        self.least, self.stale, self.looks = np.inf, 0, 0

    def through(
        self, methods: list[Method], factor: Array, y: Array, options: dict[str, Any]
    ) -> Iterator[Candidate]:
        """The points of one loop after another, each from the best so far."""
        for method in methods:
            self.last_method, self.least, self.stale = method.name, np.inf, 0
            self.settings.enters(method.name)
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
        """Whether the best point has not become better for long."""
        best = self.judge.best
        if best is None or self.judge.looks == self.looks:
            return False
        self.looks = self.judge.looks
        told = best.relative_gap if self.judge.promised is None else self.judge.promised
        gap = 1.0 if told is None else told
        measure = max(gap, best.violation, self.judge.below)
        self.stale = 0 if measure < PROGRESS * self.least else self.stale + 1
        self.least = min(self.least, measure)
        return self.stale >= PATIENCE

    def take(self, candidates: Any, limit: int | None) -> Status:
        with clock.until(self.settings.deadline):
            status = self._taken(candidates, limit)
        judge = self.judge
        if status in PROVED:
            return status
        if self.last is not None and not judge.converged:
            late = clock.until(self.settings.last_deadline())
            with suppress(clock.TimeUpError), late, _quiet():
                judge.see(self.last, last=True)
        return Status.CONVERGED if judge.converged else status

    @ending
    def _taken(self, candidates: Any, limit: int | None) -> Status:
        for iteration, candidate in enumerate(_quietly(candidates)):
            self.last = candidate
            with _quiet():
                status = self.judge.see(candidate)
            stop = self._told(iteration, candidate)
            if status is not None:
                return status
            if stop:
                return Status.STOPPED
            if limit is not None and iteration >= limit:
                return Status.MAX_ITER
            if self.settings.expired():
                return Status.TIME_LIMIT
        return Status.STALLED

    def _told(self, iteration: int, candidate: Candidate) -> bool:
        """Write the record and ask the watchers whether to stop."""
        value = self.model.problem.value(candidate.factor)
        best = self.judge.best
        record = {
            "iteration": iteration,
            "time": clock.elapsed(self.settings.started),
            "value": value,
            "rank": candidate.factor.shape[1],
            "gap": None if best is None else best.gap,
            **candidate.trace,
        }
        self.history.append(record)
        factor = self.restored(candidate.factor)
        state = State(iteration, Step(factor, value), self.history.records[-1])
        return says_stop(self.watchers, state)


def _quiet() -> Any:
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _quietly(candidates: Iterator[Candidate]) -> Iterator[Candidate]:
    """The same without warnings of numbers that have grown too large: they are looked at."""
    while True:
        with _quiet():
            candidate = next(candidates, None)
        if candidate is None:
            return
        yield candidate
