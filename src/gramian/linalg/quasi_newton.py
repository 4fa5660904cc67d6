"""L-BFGS: steps along −Hg, where H is built from the last steps and gradient changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from gramian.arrays.places import beside, host, largest, numbers, precision, zeros
from gramian.common.types import Array

ARMIJO_FRACTION, WOLFE_FRACTION = 1e-4, 0.9
"""Fractions of the initial slope in Wolfe's conditions: sufficient decrease, and curvature."""

MAX_LINE_TRIALS = 20
"""Largest number of evaluations of one line search."""

MAX_STALLED_STEPS = 10
"""Consecutive steps without a decrease above rounding after which the descent stops."""

TRIAL_LENGTH_GROWTH = 4.0
"""Ratio of consecutive trial lengths while F decreases."""

BRACKET_MARGIN = 0.1
"""Smallest distance of a trial from the ends of its bracket, as a fraction of the bracket."""


@dataclass(frozen=True)
class Point:
    """x, F(x), ∇F(x), and intermediate results of F at x."""

    x: Array
    value: float
    gradient: Array
    image: Any = None
    size: float | None = None
    """The largest entry of ∇F(x), if known."""

    @property
    def steepest(self) -> float:
        """The largest entry of ∇F(x)."""
        return largest(self.gradient) if self.size is None else self.size


class Pairs:
    """H = γI + [S γY] K [S γY]ᵀ for the last steps s and changes y of the gradient.

    The memory of L-BFGS in the compact form of Byrd, Nocedal and Schnabel (1994), theorem 2.2: with
    R the upper triangle of SᵀY and D its diagonal, K = [R⁻ᵀ(D + γYᵀY)R⁻¹, −R⁻ᵀ; −R⁻¹, 0]. Steps and
    changes are the rows of one array, which is read for its products with g, and once for Hg; a new
    pair replaces the oldest. SᵀY and YᵀY are sorted by age.
    """

    def __init__(self, like: Array, memory: int) -> None:
        self.block = zeros((2 * memory, like.shape[0]), like)
        self.products = np.zeros(2 * memory)
        self.SY, self.YY = np.zeros((memory, memory), order="F"), np.zeros((memory, memory))
        self.memory, self.taken = memory, 0
        self.order = np.arange(0)

    def clear(self) -> None:
        self.taken = 0
        self.order = np.arange(0)

    def resumed(self, gradient: Array) -> Pairs:
        """These pairs, for a descent that continues where the last one ended."""
        self.products = host(self.block @ gradient)
        return self

    def add(self, old: Point, new: Point) -> None:
        """Add a step and drop the oldest; a step that is flat up to rounding is ignored."""
        step, change = new.x - old.x, new.gradient - old.gradient
        curve, bend = numbers(step @ change, change @ change)
        if not curve > precision(change) * bend:
            self.products = host(self.block @ new.gradient)
            return
        k, m = self._place(), self.memory
        self.block[k, :], self.block[m + k, :] = step, change
        # The products with the old gradient are known except those of the new rows.
        last, self.products = self.products, host(self.block @ new.gradient)
        changes = self.products - last
        changes[k], changes[m + k] = curve, bend
        count = self.order.size
        self.SY[:count, count - 1] = changes[self.order]
        self.YY[:count, count - 1] = self.YY[count - 1, :count] = changes[m + self.order]

    def _place(self) -> int:
        """The row for a new pair, whose products are the last ones."""
        k = self.taken % self.memory
        if self.taken >= self.memory:
            self.SY[:-1, :-1], self.YY[:-1, :-1] = self.SY[1:, 1:], self.YY[1:, 1:]
        self.taken += 1
        count = min(self.taken, self.memory)
        self.order = np.arange(self.taken - count, self.taken) % self.memory
        return k

    def times(self, g: Array) -> Array:
        """Hg for the gradient g of the last point."""
        if self.taken == 0:
            return 1.0 * g
        order, m, count = self.order, self.memory, self.order.size
        products, weights = self.products, np.zeros(2 * m)
        SY, YY = self.SY[:count, :count], self.YY[:count, :count]
        gamma = float(SY[-1, -1] / YY[-1, -1])
        u, _ = dtrtrs(SY, products[order])  # LAPACK reads R, the upper triangle of SY
        v = SY.diagonal() * u + gamma * (YY @ u - products[m + order])
        weights[order], _ = dtrtrs(SY, v, trans=1)
        weights[m + order] = -gamma * u
        found = beside(self.block, weights.astype(self.products.dtype)) @ self.block
        found += gamma * g
        return found


def quasi_newton(
    evaluate: Callable[[Array], Point],
    start: Array,
    *,
    iterations: int,
    memory: int,
    tol: float = 0.0,
    after: Callable[[Point], bool] = lambda point: False,
    pairs: Pairs | None = None,
    search: Callable[[Point, Array], Point | None] | None = None,
) -> Point:
    """Minimise by L-BFGS; return the last point.

    The descent ends if no entry of the gradient exceeds `tol` times the largest at the start,
    or if `after`, called with each new point, returns True. With the `pairs` of a descent that
    ended at the start it continues that descent. `search` finds the next point along a direction
    (None if there is none); the default `wolfe` uses Wolfe's conditions. The exact search along a
    line of factors takes as many steps, with two products with the data for each, whereas `wolfe`
    needs hardly more than one.
    """
    point = evaluate(start)
    least = point.steepest
    enough = tol * least
    pairs = Pairs(point.gradient, memory) if pairs is None else pairs.resumed(point.gradient)
    quiet = 0
    for _ in range(iterations):
        size = point.steepest
        quiet, least = (0, size) if size < 0.5 * least else (quiet, least)
        if not size > enough or quiet == MAX_STALLED_STEPS:
            break
        found = _step(evaluate, point, pairs, search)
        if found is None and pairs.taken:
            pairs.clear()
            found = _step(evaluate, point, pairs, search)
        if found is None:
            break
        pairs.add(point, found)
        quiet = quiet + 1 if found.value >= point.value - _noise(point) else 0
        point = found
        if after(point):
            break
    return point


def _step(
    evaluate: Callable[[Array], Point],
    point: Point,
    pairs: Pairs,
    search: Callable[[Point, Array], Point | None] | None,
) -> Point | None:
    direction = -pairs.times(point.gradient)
    slope = float(direction @ point.gradient)
    if not (slope < 0 and math.isfinite(slope)):
        return None
    if search is not None:
        return search(point, direction)
    first = 1.0 if pairs.taken else min(1.0, 1.0 / math.sqrt(-slope))
    return wolfe(evaluate, point, direction, slope, first)


def wolfe(
    evaluate: Callable[[Array], Point], point: Point, direction: Array, slope: float, first: float
) -> Point | None:
    """A point along the direction that satisfies the weak Wolfe conditions.

    If F cannot resolve the decrease, its slope is used (Hager and Zhang 2005, eq. (4)).
    """
    low, high = (0.0, point.value, slope), None
    noise = _noise(point)
    length = first
    for _ in range(MAX_LINE_TRIALS):
        found = evaluate(point.x + length * direction)
        left = float(found.gradient @ direction)
        known = math.isfinite(found.value) and math.isfinite(left)
        gains = known and found.value <= point.value + ARMIJO_FRACTION * length * slope
        level = known and found.value <= point.value + noise
        if (
            gains or (level and left <= (2 * ARMIJO_FRACTION - 1) * slope)
        ) and left >= WOLFE_FRACTION * slope:
            return found
        end = length, found.value if known else np.inf, left
        if gains or (level and left < 0):
            low = end
        else:
            high = end
        length = _next_trial(low, high)
    return None


def _next_trial(low: tuple[float, float, float], high: tuple[float, float, float] | None) -> float:
    """The minimum of the cubic through both ends of the bracket, well inside it; or farther out."""
    if high is None:
        return TRIAL_LENGTH_GROWTH * low[0]
    (a, at_a, slope_a), (b, at_b, slope_b) = low, high
    width = b - a
    inside = 0.5
    if np.isfinite(at_b):
        chord = slope_a + slope_b - 3 * (at_b - at_a) / width
        square = chord * chord - slope_a * slope_b
        if square >= 0 and slope_b - slope_a + 2 * np.sqrt(square) != 0:
            root = np.sqrt(square)
            inside = 1 - (slope_b + root - chord) / (slope_b - slope_a + 2 * root)
    return a + width * float(np.clip(inside, BRACKET_MARGIN, 1 - BRACKET_MARGIN))


def _noise(point: Point) -> float:
    """A lower bound on the error of F."""
    return precision(point.gradient) * abs(point.value)
