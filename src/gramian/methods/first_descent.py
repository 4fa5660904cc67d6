"""The first steps of the solver `staircase` at small order: L-BFGS on a factor with all columns.

If F is strongly convex, the gap is about the square of the gradient. The descent pauses as soon as
the gap may be within the tolerance, so that a certificate can be computed. If the gap is too large,
it continues with the same L-BFGS pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramian.arrays.places import side_by_side
from gramian.common.types import Array
from gramian.methods.base import Settings
from gramian.methods.columns import leanest, starting_factor
from gramian.methods.lbfgs import StoredPairs, descend
from gramian.problem import Problem
from gramian.proofs import LIVE

MAX_STEPS = 100
"""Maximum number of L-BFGS steps, in total."""

FINAL_GRADIENT_IN_TOLERANCES, FIRST_GRADIENT_IN_ROOT_TOLERANCES, GRADIENT_RATIO = 0.3, 0.2, 0.3
"""Norm of the gradient relative to the start: at the end, in units of tol; at the first
certificate, if F is strongly convex, in units of √tol; ratio of its values at successive later
certificates. On quadratics and sums with hinges of order 6 and 20 the descent takes 20 to 51 steps,
and 30 to 97 without certificates before its end."""

DROPPED_COLUMNS_IN_TOLERANCES = 0.1
"""Maximum increase of F due to dropping small columns, in units of tol."""

MAX_RELATIVE_DECREASE = 1e6
"""The result is rejected if F decreases by more than this multiple of its size at the start."""


class FirstDescent:
    """State of the descent."""

    def __init__(self, problem: Problem, settings: Settings, zero: float, size: float) -> None:
        self.problem, self.settings, self.zero, self.size = problem, settings, zero, size
        self.goal = FINAL_GRADIENT_IN_TOLERANCES * settings.tol
        """Ratio by which the norm of the gradient still has to decrease."""
        self.left = MAX_STEPS
        self.going = StoredPairs()
        self.factor: Array | None = None

    @property
    def ended(self) -> bool:
        """Whether the descent has finished."""
        return self.goal >= 1 or self.left <= 0

    def on(self, image: Any) -> Any:
        """Continue the descent; return the resulting image, or `image` if that is unreliable."""
        objective = self.problem.objective
        if self.factor is None:
            start = objective.image(self._start(image.factor))
            self.factor, fall = start.factor, self._first_fall()
            self.size = max(self.size, abs(self.zero - objective.value(start)))
        else:
            fall = max(GRADIENT_RATIO, self.goal)
        with np.errstate(all="ignore"):
            self.factor = descend(
                objective,
                self.factor,
                self.settings,
                iterations=self.left,
                tol=fall,
                domain=self.problem.domain,
                watch=self._count,
                going=self.going,
            )
            found = objective.image(self.factor)
            value = objective.value(found)
        self.goal = self.goal / fall if fall > self.goal else 1.0
        # Far from the origin F may be constant up to rounding without a minimum there.
        return (
            leanest(
                self.problem,
                found,
                DROPPED_COLUMNS_IN_TOLERANCES * self.settings.tol,
                weakest=LIVE**2,
            )
            if self.zero - value < MAX_RELATIVE_DECREASE * self.size
            else image
        )

    def _first_fall(self) -> float:
        convex = self.problem.objective.modulus > 0
        return (
            FIRST_GRADIENT_IN_ROOT_TOLERANCES * float(np.sqrt(self.settings.tol))
            if convex
            else self.goal
        )

    def _start(self, factor: Array) -> Array:
        """A factor with all columns, near the given factor if that has columns."""
        start = starting_factor(self.problem, replace(self.settings, rank=self.problem.order))
        if factor.shape[1] > 1:
            start = side_by_side([factor, 1e-2 * start])
        return self.problem.domain.rescale(start)

    def _count(self, _: Any) -> None:
        self.left -= 1
