"""L-BFGS on the factor with the exact search along every line (Burer and Monteiro 2003, §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import namespace, norm
from gramian.objectives import Objective
from gramian.search import Point, quartic
from gramian.search.quasi_newton import Pairs

Array = NDArray[np.floating]

MEMORY = 5
"""Pairs kept: more of them cost as much as a product with a sparse problem."""

REFRESH = 50
"""Steps after which the image is computed afresh, against drift."""

SLOPE = 1e-10
"""The cosine below which a direction does not descend."""


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
    units: Array | None = None,
) -> Descent:
    """A point near `factor` where the gradient of L ↦ F(LLᵀ) has a norm of at most `tol`.

    For a quadratic F each search is the least of a quartic, from two products. With `null`, whose
    columns are orthonormal, L stays orthogonal to them as it is. With a column of `units` d, one a
    row, the steps and the gradient are those of K in L = DK.
    """

    def slope_at(image: Any) -> Array:
        slope = objective.gradient_factor(image)
        slope = slope if units is None else units * slope
        return slope if null is None else slope - null @ (null.T @ slope)

    def point_at(image: Any) -> Point:
        xp, slope = namespace(image.factor), slope_at(image)
        place = image.factor if units is None else image.factor / units
        return Point(xp.reshape(place, (-1,)), np.nan, xp.reshape(slope, (-1,)), image)

    point = point_at(objective.image(factor))
    pairs = Pairs(point.gradient, memory)
    for step in range(iterations):
        image, size = point.image, norm(point.gradient)
        if size <= tol or not np.isfinite(size) or expired():
            return Descent(image, size, step, False)
        direction = -pairs.times(point.gradient)
        if not direction @ point.gradient < -SLOPE * norm(direction) * size:
            direction = -point.gradient
            pairs.clear()
        along = namespace(factor).reshape(direction, factor.shape)
        line = objective.line(image, along if units is None else units * along)
        mu, value = quartic(line.restriction)
        if value == -np.inf:
            return Descent(image, size, step, True)
        if not mu > 0:
            if not pairs.taken:
                return Descent(image, size, step, False)
            pairs.clear()
            continue
        after = line.take(mu)
        if step % REFRESH == REFRESH - 1:
            after = objective.image(after.factor)
        last, point = point, point_at(after)
        pairs.add(last, point)
    return Descent(point.image, norm(point.gradient), iterations, False)
