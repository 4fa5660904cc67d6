"""L-BFGS on the factor with an exact line search (Burer and Monteiro 2003, §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gramian.arrays.places import namespace, norm
from gramian.common.types import Array
from gramian.linalg import Point, quartic, quasi_newton
from gramian.objectives import Objective
from gramian.papers.lro import REFRESH_STEPS

CORRECTION_PAIRS = 5
"""Correction pairs: more of them cost as much as a product with a sparse problem."""


class Descent(NamedTuple):
    """The end of a descent: the image, the norm of the gradient there, and the steps taken."""

    image: Any
    gradient: float
    steps: int
    endless: bool
    """Whether F is unbounded below along a line."""


def descend_exactly(
    objective: Objective,
    factor: Array,
    *,
    iterations: int,
    tol: float,
    expired: Callable[[], bool] = lambda: False,
    memory: int = CORRECTION_PAIRS,
    null: Array | None = None,
    units: Array | None = None,
) -> Descent:
    """A point near `factor` where the gradient of L ↦ F(LLᵀ) has a norm of at most `tol`.

    For a quadratic F each line search minimises a quartic, from two products. With `null`, whose
    columns are orthonormal, L stays orthogonal to them. With a column `units` d, one entry per
    row, the steps and the gradient are those of K in L = DK.
    """

    xp, steps, endless = namespace(factor), 0, False

    def point_at(image: Any) -> Point:
        slope, place = objective.gradient_factor(image), image.factor
        if units is not None:
            slope, place = units * slope, place / units
        slope = slope if null is None else slope - null @ (null.T @ slope)
        return Point(xp.reshape(place, (-1,)), np.nan, xp.reshape(slope, (-1,)), image)

    def search(point: Point, direction: Array) -> Point | None:
        nonlocal steps, endless
        if endless:
            return None
        along = xp.reshape(direction, factor.shape)
        line = objective.line(point.image, along if units is None else units * along)
        mu, value = quartic(line.restriction)
        endless = value == -np.inf
        if endless or not mu > 0:
            return None
        after, steps = line.take(mu), steps + 1
        return point_at(after if steps % REFRESH_STEPS else objective.image(after.factor))

    def enough(point: Point) -> bool:
        size = norm(point.gradient)
        return size <= tol or not np.isfinite(size) or expired()

    start = found = point_at(objective.image(factor))
    if not enough(start):
        found = quasi_newton(
            lambda _: start,
            start.x,
            iterations=iterations,
            memory=memory,
            after=enough,
            search=search,
        )
    return Descent(found.image, norm(found.gradient), steps, endless)
