"""An active set: a sum of far more terms than matter, minimised over those that do.

The terms of F are at least 0 and 0 where they are met, as LMNN's triplets of a sample, a target and
an impostor are. Each round solves for those that were violated lately and looks for those that are
now. A bound for some of the terms is one for all of them, and the value counts them all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.bounds import LowerBounds, certificate_of
from gramian.certificate import Certificate
from gramian.common import clock
from gramian.linalg.quasi_newton import Point, quasi_newton
from gramian.methods.columns import compress
from gramian.objectives import LowerBound
from gramian.problem import Problem
from gramian.result import Result, Status

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ROUNDS = 25
"""Refreshes of the active terms at most."""

PART, FEW = 8, 3_000
"""The first solve takes one in so many of the anchors, where they are at least so many."""

CROWD = 200
"""With more terms to an anchor than this, a start is not worth a solve with all of them."""

SOME = 500
"""Anchors whose terms a metric of low rank is first learned from, where there are many more."""

STEPS, PAIRS = 500, 20
"""Steps of that descent at most, and how many of them it remembers."""

PATIENCE, FALL = 5, 0.1
"""It ends where so many steps lower F by no more than this part of the tolerance."""

SUM_ROUNDING = 1e-13
"""Relative rounding error of the sum over all terms."""

ENDED = (Status.INTERRUPTED, Status.STOPPED, Status.TIME_LIMIT, Status.DIVERGED)
"""What ends the rounds, too."""

WARM = 0.03
"""The part of F that is taken to be unseen where a start was solved for."""

COARSE, CLOSE, FINEST = 0.1, 0.05, 0.7
"""The tolerance of a round, and the part of F in terms that it did not see within which the next
one takes this part of the tolerance asked for. The bound lags: at a gap of 0.1 F is within 1e-3 of
its optimum. On 10,000 digits the first round leaves out 3 %, and the second is the last."""

MANY = 50_000
"""Terms that make float32 worth while."""

ROUGH = 0.05
"""The tolerance of a first metric from a few anchors."""

WIDE = 1.2
"""The margin that first terms are taken by: those nearly violated soon are."""

SLACK = 0.25
"""Terms that are met by more than this are dropped from the active ones."""


class Violated(Protocol):
    """The terms that a factor violates."""

    @property
    def keys(self) -> Any:
        """What they are known by."""

    @property
    def count(self) -> int: ...

    @property
    def value(self) -> float:
        """F with all its terms."""


class Task(Protocol):
    """A sum of very many terms, each belonging to one of n anchors."""

    @property
    def n(self) -> int: ...

    @property
    def most(self) -> float:
        """F(0)."""

    @property
    def anchors(self) -> Indices: ...

    @property
    def none(self) -> Any:
        """No keys."""

    def start(self, given: Array | None = None) -> Array:
        """A factor to start from, the one that is given where it is the best known."""

    def slope(self, keys: Any, factor: Array, share: float) -> Array:
        """The gradient by the factor of the terms of these keys, for a share of the anchors."""

    def scaled(self, factor: Array) -> Array:
        """The best multiple of a factor, roughly."""

    def violated(self, factor: Array, anchors: Indices, *, margin: float = 1.0) -> Violated:
        """The terms of the anchors that are violated, or nearly so where the margin is wider."""

    def joined(self, keys: Any, others: Any) -> Any:
        """The keys of both, each once."""

    def some(self, keys: Any, factor: Array) -> Any:
        """The keys, with others where they are few."""

    def problem(self, keys: Any, *, share: float = 1.0) -> Problem:
        """The sum of the terms of these keys alone, for a share of the anchors."""

    def unmet(self, problem: Problem, factor: Array, slack: float) -> Any:
        """Which terms of a problem are not met by more than the slack."""


@dataclass(frozen=True)
class ActiveSet:
    """The rounds of one fit."""

    task: Task
    solve: Callable[..., Result]
    """A problem, a start and a tolerance ↦ its solution in the time that is left."""
    tol: float
    rank: int | None
    """The largest rank, None for any."""

    def run(self, start: Array | None) -> tuple[Result, int]:
        """The best point with the certificate of all terms, and how many it violates."""
        task = self.task
        factor, unseen = self._first(start)
        found = task.violated(factor, task.anchors, margin=WIDE if unseen == 1.0 else 1.0)
        crowded = self.rank is None and found.keys.shape[0] > CROWD * task.n
        if unseen == 1.0 and crowded and clock.left() > 0:
            factor, unseen = self._coarse(max(1, task.n // PART)), WARM
            found = task.violated(factor, task.anchors)
        active = task.none
        seen = [(found, factor)]
        bounds: LowerBounds[LowerBound] = LowerBounds()
        finest = FINEST * self.tol
        certificate: Certificate | None = None
        try:
            for _ in range(ROUNDS):
                active = task.some(task.joined(active, found.keys), factor)
                problem = task.problem(active)
                tol = finest if unseen <= CLOSE else max(finest, COARSE)
                limits = {} if self.rank is None else {"max_iter": 1}
                kind = self._precision(active)
                result = self.solve(problem, init=factor, tol=tol, **kind, **limits)
                factor = result.factor
                bounds.add(result.certificate.bound)
                best = seen[0]
                certificate = whole(bounds, result.certificate, best[0].value, task.most)
                active = active[task.unmet(problem, factor, SLACK)]
                found, before = task.violated(factor, task.anchors), found
                best = min([*seen, (found, factor)], key=lambda known: known[0].value)
                seen, certificate = (
                    [best],
                    whole(bounds, result.certificate, best[0].value, task.most),
                )
                unseen = 1.0 - result.value / max(found.value, 1e-300)
                done = certificate.within(self.tol)
                moved = abs(before.value - found.value) > self.tol * found.value
                settled = not moved and (tol == finest or result.status is not Status.CONVERGED)
                # At a limited rank the start is a local minimum, and the solve gives its bound.
                last = self.rank is not None or result.status in ENDED or clock.left() <= 0
                if done or settled or last:
                    break
        except (KeyboardInterrupt, clock.TimeUpError) as cut:  # in a search; solvers catch theirs
            if certificate is None:
                raise
            done = False
            if isinstance(cut, KeyboardInterrupt):
                result = replace(result, status=Status.INTERRUPTED)
        assert certificate is not None
        at_rank = self.rank is not None and result.status not in ENDED
        status = Status.LOCAL if at_rank else result.status
        status = ended(status, done=done, late=clock.left() <= 0)
        told = replace(result, factor=best[1], value=certificate.value, certificate=certificate)
        return replace(told, status=status), best[0].count

    def _first(self, start: Array | None) -> tuple[Array, float]:
        """A factor to start from and the part of F in terms that its solve has not seen."""
        n = self.task.n
        many = n >= PART * FEW
        if self.rank is None:
            coarse = start is None and many
            return (self._coarse(n // PART), WARM) if coarse else (self.task.start(start), 1.0)
        full = self._coarse(n // PART if many else n) if start is None else start
        factor = self.task.scaled(compress(full, self.rank))
        if n > PART * SOME:
            factor = self._descended(factor, self._few(SOME))
        return self._descended(factor, self.task.anchors), WARM

    def _descended(self, factor: Array, anchors: Indices) -> Array:
        """A local minimum of this rank over all terms of some anchors, near a factor.

        At a low rank most terms are violated, and others by every metric: a minimum over those of
        one metric is far from one over those of the next. So they are found again at every step.
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
            slow = values[-PATIENCE:][0] - point.value <= FALL * self.tol * point.value
            return slow or clock.left() <= 3 * seconds[0]  # a step, and the search after it

        start = np.ascontiguousarray(factor).reshape(-1)
        found = quasi_newton(evaluate, start, iterations=STEPS, memory=PAIRS, after=enough)
        return found.x.reshape(factor.shape)

    def _precision(self, active: Any) -> dict[str, str]:
        """Steps over many terms are in float32, then in float64 where they need more digits."""
        return {"dtype": "float32"} if active.shape[0] >= MANY else {}

    def _few(self, count: int) -> Indices:
        """So many of the anchors, evenly over all of them."""
        return np.linspace(0, self.task.n - 1, count).astype(np.intp)

    def _coarse(self, count: int) -> Array:
        """A first metric from so many of the anchors, of any rank."""
        task = self.task
        few = self._few(count)
        factor, active = task.start(), task.none
        with suppress(clock.TimeUpError), clock.share(0.5):
            for margin in (WIDE, 1.0):
                found = task.violated(factor, few, margin=margin)
                active = task.some(task.joined(active, found.keys), factor)
                problem = task.problem(active, share=count / task.n)
                kind = self._precision(active)
                factor = self.solve(problem, init=factor, tol=ROUGH, rank=None, **kind).factor
                active = active[task.unmet(problem, factor, SLACK)]
        return factor


def ended(last: Status, *, done: bool, late: bool) -> Status:
    """How the rounds ended, of which the last solve ended so."""
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
    """The certificate of F with all its terms, whose value is this, by bounds of some of them.

    A sum of some of the terms, none of which is negative, is nowhere above F. `found` is the
    certificate of the last round, `scale` is F(0).
    """
    best = bounds.best
    if best is not None:
        best = replace(best, method=f"{best.method} of the active triplets")
    return certificate_of(
        value,
        best,
        rounding=SUM_ROUNDING * abs(value),
        lambda_min=found.lambda_min,
        complementarity=found.complementarity,
        trace=found.trace,
        scale=scale,
    )
