"""Active sets: minimise a sum of many terms over the terms that are not zero.

The terms of F are nonnegative, and 0 if satisfied, such as LMNN's triplets of a sample, a target
neighbour and an impostor. Each round solves for the terms that were violated recently and searches
for those that are violated now. A lower bound for some of the terms is one for all of them; the
value includes all terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gramian.bounds import LowerBounds, certificate_of
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.linalg.quasi_newton import Point, quasi_newton
from gramian.linalg.tolerances import ROUNDING
from gramian.methods.lbfgs import CORRECTION_PAIRS
from gramian.objectives import LowerBound
from gramian.problem import Problem
from gramian.result import Result, Status

MAX_ROUNDS = 25
"""Maximum number of rounds."""

ANCHORS_PER_SAMPLED, MIN_SAMPLED_ANCHORS = 8, 3_000
"""The first solve uses one of this number of anchors, if that gives at least this many."""

MAX_TERMS_PER_ANCHOR = 200
"""Terms per anchor above which the start is computed from a part of the anchors."""

LOW_RANK_ANCHORS = 500
"""Anchors of the first descent at low rank, if there are many more."""

MAX_DESCENT_STEPS = 500
"""Maximum number of L-BFGS steps of that descent."""

TRIAL_STEPS = 8
"""L-BFGS steps from each starting map before the best is selected."""

SLOW_STEPS, MIN_DECREASE_IN_TOLERANCES = 5, 0.1
"""The descent ends if this number of steps decreases F by at most this fraction of the
tolerance."""

FINAL_STATUSES = (Status.INTERRUPTED, Status.STOPPED, Status.TIME_LIMIT, Status.DIVERGED)
"""Statuses of a solve that end the rounds."""

INACTIVE_AFTER_START = 0.03
"""Assumed fraction of F in inactive terms after a solve for the start."""

FIRST_TOLERANCE, MAX_INACTIVE_FOR_FINAL, FINAL_TOLERANCE_FRACTION = 0.1, 0.05, 0.7
"""Tolerance of a round; fraction of F in inactive terms below which the next round uses a finer
tolerance; and that tolerance as a fraction of the requested one. The bound converges more slowly
than F: at a gap of 0.1 F is within 1e-3 of its optimum. On 10,000 digits the first round leaves
3 % in inactive terms, and the second round is the last."""

MIN_FLOAT32_TERMS = 50_000
"""Number of terms from which float32 is used."""

SAMPLED_TOLERANCE = 0.05
"""Tolerance of a first metric from a part of the anchors."""

FIRST_MARGIN = 1.2
"""Margin of the first search, which includes nearly violated terms."""

MAX_ACTIVE_SLACK = 0.25
"""Slack above which satisfied terms are removed from the active set."""


class Violated(Protocol):
    """The terms violated by a factor: their identifiers and number, and F with all its terms."""

    @property
    def keys(self) -> Any: ...
    @property
    def count(self) -> int: ...
    @property
    def value(self) -> float: ...


class Task(Protocol):
    """A sum of very many terms, each of which belongs to one of n anchors."""

    @property
    def n(self) -> int: ...

    @property
    def most(self) -> float:
        """F(0)."""

    @property
    def anchors(self) -> Indices: ...

    @property
    def none(self) -> Any:
        """An empty set of keys."""

    def start(self, given: Array | None = None) -> Array:
        """An initial factor; the given one if it is the best known."""

    def slope(self, keys: Any, factor: Array, share: float) -> Array:
        """The gradient with respect to the factor of these terms, for a fraction of the anchors."""

    def scaled(self, factor: Array) -> Array:
        """The approximately best multiple of a factor."""

    def violated(self, factor: Array, anchors: Indices, *, margin: float = 1.0) -> Violated:
        """The violated terms of the anchors; nearly violated ones too if the margin is wider."""

    def joined(self, keys: Any, others: Any) -> Any:
        """The union of the keys."""

    def some(self, keys: Any, factor: Array) -> Any:
        """The keys, with additional ones if they are few."""

    def problem(self, keys: Any, *, share: float = 1.0) -> Problem:
        """The sum of the terms of these keys alone, for a fraction of the anchors."""

    def unmet(self, problem: Problem, factor: Array, slack: float) -> Any:
        """Which terms of a problem are not satisfied with at least this slack."""


@dataclass(frozen=True)
class ActiveSet:
    """The rounds of one fit."""

    task: Task
    solve: Callable[..., Result]
    """Maps a problem, a start and a tolerance to the solution within the remaining time."""
    tol: float

    def run(self, start: Array | None) -> tuple[Result, int]:
        """The best point with the certificate of all terms, and the number of violated terms."""
        task = self.task
        factor, unseen = self._first(start)
        found = task.violated(factor, task.anchors, margin=FIRST_MARGIN if unseen == 1.0 else 1.0)
        crowded = found.keys.shape[0] > MAX_TERMS_PER_ANCHOR * task.n
        if unseen == 1.0 and crowded and clock.left() > 0:
            factor = self._coarse(max(1, task.n // ANCHORS_PER_SAMPLED))
            unseen = INACTIVE_AFTER_START
            found = task.violated(factor, task.anchors)
        active, best = task.none, (found, factor)
        bounds: LowerBounds[LowerBound] = LowerBounds()
        finest = FINAL_TOLERANCE_FRACTION * self.tol
        result: Result | None = None
        done = False
        try:
            for _ in range(MAX_ROUNDS):
                active = task.some(task.joined(active, found.keys), factor)
                problem = task.problem(active)
                tol = finest if unseen <= MAX_INACTIVE_FOR_FINAL else max(finest, FIRST_TOLERANCE)
                kind = self._precision(active)
                result = self.solve(problem, init=factor, tol=tol, **kind)
                factor = result.factor
                bounds.add(result.certificate.bound)
                active = active[task.unmet(problem, factor, MAX_ACTIVE_SLACK)]
                found, before = task.violated(factor, task.anchors), found
                best = min(best, (found, factor), key=lambda known: known[0].value)
                unseen = 1.0 - result.value / max(found.value, 1e-300)
                done = whole(bounds, result.certificate, best[0].value, task.most).within(self.tol)
                moved = abs(before.value - found.value) > self.tol * found.value
                settled = not moved and (tol == finest or result.status is not Status.CONVERGED)
                last = result.status in FINAL_STATUSES or clock.left() <= 0
                if done or settled or last:
                    break
        except (KeyboardInterrupt, clock.TimeUpError) as cut:  # raised outside of the solver
            if result is None:
                raise
            if isinstance(cut, KeyboardInterrupt):
                result = replace(result, status=Status.INTERRUPTED)
        assert result is not None
        certificate = whole(bounds, result.certificate, best[0].value, task.most)
        status = ended(result.status, done=done, late=clock.left() <= 0)
        best_result = replace(
            result, factor=best[1], value=certificate.value, certificate=certificate
        )
        return replace(best_result, status=status), best[0].count

    def _first(self, start: Array | None) -> tuple[Array, float]:
        """An initial factor, and the fraction of F in terms that its solve did not include."""
        n = self.task.n
        if start is None and n >= ANCHORS_PER_SAMPLED * MIN_SAMPLED_ANCHORS:
            return self._coarse(n // ANCHORS_PER_SAMPLED), INACTIVE_AFTER_START
        return self.task.start(start), 1.0

    def at_rank(self, relaxed: Result, maps: Sequence[Array]) -> tuple[Result, int]:
        """A local minimum over factors with few columns, with the bound of the optimum of any rank.

        It starts from the best of the given maps after a few steps. If the time is up before that,
        it is the first of them.
        """
        task, anchors = self.task, self.task.anchors
        many = task.n > ANCHORS_PER_SAMPLED * LOW_RANK_ANCHORS
        few = self._few(LOW_RANK_ANCHORS) if many else anchors
        factor = maps[0]
        with suppress(clock.TimeUpError):
            starts = [self._descended(task.scaled(L), few, TRIAL_STEPS) for L in maps]
            factor = min(starts, key=lambda L: task.violated(L, few).value)
            if many:
                factor = self._descended(factor, few)
            factor = self._descended(factor, anchors)
        with clock.grace():
            found = task.violated(factor, anchors)
        rounding = ROUNDING * abs(found.value)
        certificate = relaxed.certificate.at(found.value, float(np.sum(factor**2)), rounding)
        status = Status.LOCAL if relaxed.status.converged else relaxed.status
        status = ended(status, done=False, late=clock.left() <= 0)
        return replace(relaxed, factor=factor, value=found.value, certificate=certificate,
                       status=status, dual=None), found.count  # fmt: skip

    def _descended(self, factor: Array, anchors: Indices, steps: int = MAX_DESCENT_STEPS) -> Array:
        """A local minimum of this rank over all terms of some anchors, near a factor.

        At a low rank most terms are violated, and different ones by every metric: a minimum over
        the violated terms of one metric is far from that of the next. They are therefore searched
        at every step.
        """
        task, values, seconds = self.task, [np.inf], [0.0]

        def evaluate(x: Array) -> Point:
            started, L = clock.now(), x.reshape(factor.shape)
            found = task.violated(L, anchors)
            slope = task.slope(found.keys, L, anchors.size / task.n)
            seconds[0] = clock.elapsed(started)
            return Point(x, found.value, slope.reshape(-1))

        def enough(point: Point) -> bool:
            values.append(point.value)
            least = MIN_DECREASE_IN_TOLERANCES * self.tol * point.value
            slow = values[-SLOW_STEPS:][0] - point.value <= least
            return slow or clock.left() <= 3 * seconds[0]  # a step and the following search

        start = np.ascontiguousarray(factor).reshape(-1)
        found = quasi_newton(
            evaluate, start, iterations=steps, memory=CORRECTION_PAIRS, after=enough
        )
        return found.x.reshape(factor.shape)

    def _precision(self, active: Any) -> dict[str, str]:
        """float32 for steps over many terms; the solver changes to float64 if necessary."""
        return {"dtype": "float32"} if active.shape[0] >= MIN_FLOAT32_TERMS else {}

    def _few(self, count: int) -> Indices:
        """This number of anchors, evenly spaced."""
        return np.linspace(0, self.task.n - 1, count).astype(np.intp)

    def _coarse(self, count: int) -> Array:
        """A first metric from this number of anchors, of any rank."""
        task = self.task
        few = self._few(count)
        factor, active = task.start(), task.none
        with suppress(clock.TimeUpError), clock.share(0.5):
            for margin in (FIRST_MARGIN, 1.0):
                found = task.violated(factor, few, margin=margin)
                active = task.some(task.joined(active, found.keys), factor)
                problem = task.problem(active, share=count / task.n)
                kind = self._precision(active)
                factor = self.solve(problem, init=factor, tol=SAMPLED_TOLERANCE, **kind).factor
                active = active[task.unmet(problem, factor, MAX_ACTIVE_SLACK)]
        return factor


def ended(last: Status, *, done: bool, late: bool) -> Status:
    """The status of all rounds, given that of the last solve."""
    if done:
        return Status.CONVERGED
    if last not in (Status.CONVERGED, Status.LOCAL):
        return last
    if late:
        return Status.TIME_LIMIT
    return Status.STALLED if last is Status.CONVERGED else last


def whole(
    bounds: LowerBounds[LowerBound], found: Certificate, value: float, scale: float
) -> Certificate:
    """The certificate of F with all its terms, by bounds of some of them.

    The terms are nonnegative, so that a sum of some of them is at most F. `found` is the
    certificate of the last round, `scale` is F(0).
    """
    best = bounds.best
    if best is not None:
        best = replace(best, method=f"{best.method} of the active triplets")
    return certificate_of(
        value,
        best,
        rounding=ROUNDING * abs(value),
        lambda_min=found.lambda_min,
        complementarity=found.complementarity,
        trace=found.trace,
        scale=scale,
    )
