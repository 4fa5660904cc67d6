"""L-BFGS on the factor with the exact search along every line (Burer and Monteiro 2003, §4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.objectives import Objective
from gramian.search import quartic

Array = NDArray[np.floating]

MEMORY = 5
"""Pairs kept: more of them cost as much as a product with a sparse problem."""

REFRESH = 50
"""Steps after which the image is computed afresh, against drift."""

SLOPE, CURVED = 1e-10, 1e-14
"""Cosines below which a direction does not descend, and a pair tells nothing of the curvature."""


class Descent(NamedTuple):
    """Where a descent ended: the image, the norm of the gradient there, and the steps taken."""

    image: Any
    gradient: float
    steps: int
    endless: bool
    """Whether F fell for ever along a line."""


def descend_exactly(
    objective: Objective,
    factor: Array,
    *,
    iterations: int,
    tol: float,
    expired: Callable[[], bool] = lambda: False,
    memory: int = MEMORY,
    null: Array | None = None,
) -> Descent:
    """A point near `factor` where the gradient of L ↦ F(LLᵀ) has a norm of at most `tol`.

    For a quadratic F each search is the least of a quartic, from two products. With `null`, whose
    columns are orthonormal, L stays orthogonal to them as it is.
    """

    def slope_at(image: Any) -> Array:
        slope = objective.gradient_factor(image)
        return slope if null is None else slope - null @ (null.T @ slope)

    image = objective.image(factor)
    gradient = slope_at(image)
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=memory)
    size = float(np.linalg.norm(gradient))
    for step in range(iterations):
        if size <= tol or not np.isfinite(size) or expired():
            return Descent(image, size, step, False)
        direction = _direction(gradient, pairs)
        if not np.sum(direction * gradient) < -SLOPE * np.linalg.norm(direction) * size:
            direction = -gradient
            pairs.clear()
        line = objective.line(image, direction)
        mu, value = quartic(line.restriction)
        if value == -np.inf:
            return Descent(image, size, step, True)
        if not mu > 0:
            if not pairs:
                return Descent(image, size, step, False)
            pairs.clear()
            continue
        after = line.take(mu)
        if step % REFRESH == REFRESH - 1:
            after = objective.image(after.factor)
        slope = slope_at(after)
        move, change = mu * direction, slope - gradient
        along = float(np.sum(move * change))
        if along > CURVED * np.linalg.norm(move) * np.linalg.norm(change):
            pairs.append((move, change, 1.0 / along))
        image, gradient = after, slope
        size = float(np.linalg.norm(gradient))
    return Descent(image, size, iterations, False)


def _direction(gradient: Array, pairs: deque[tuple[Array, Array, float]]) -> Array:
    """−H∇F by the two loops of Nocedal (1980)."""
    q = gradient.copy()
    weights = []
    for move, change, inverse in reversed(pairs):
        weight = inverse * float(np.vdot(move, q))
        weights.append(weight)
        q -= weight * change
    if pairs:
        _, change, inverse = pairs[-1]
        q *= 1.0 / (inverse * float(np.vdot(change, change)))
    for (move, change, inverse), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - inverse * float(np.vdot(change, q))) * move
    return -q
