"""A test that can refute the convexity of losses and objectives defined by users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gramian.arrays.places import host
from gramian.common.types import Array
from gramian.losses import Loss
from gramian.objectives.base import Objective
from gramian.objectives.composite import Composite
from gramian.objectives.total import Sum

REACHES = (0.01, 0.1, 1.0, 10.0)
"""Distances of the second points, relative to the largest entry of the first point or 1."""

ROUNDED = 1e-6
"""Decrease of a gradient, relative to its size, that is attributed to rounding."""


def not_convex(objective: Objective, factor: Array) -> str:
    """The name of a part that is not convex, empty if none is known.

    The gradient of a convex function is monotone: ⟨∇g(y) − ∇g(x), y − x⟩ ≥ 0. This is tested for
    the given point and random others. The losses and objectives of the library are convex by their
    formulas and are not tested.
    """
    for part in _parts(objective):
        tested = part.loss if isinstance(part, Composite) else part
        if type(tested).__module__.partition(".")[0] == "gramian":
            continue
        image = part.image(part.place.put(factor))
        of_loss = isinstance(part, Composite)
        if _decreases(part.loss, host(image.z)) if of_loss else _objective_decreases(part, image):
            return type(tested).__name__
    return ""


def _parts(objective: Objective) -> Iterator[Any]:
    if isinstance(objective, Sum):
        for part in objective.parts:
            yield from _parts(part)
    else:
        yield objective


def _decreases(loss: Loss, z: Array) -> bool:
    """Whether the gradient decreases from z to a random point, in one entry if g is separable."""
    rng = np.random.default_rng(0)
    before, size = loss.gradient(z), max(1.0, float(np.abs(z).max(initial=0.0)))

    def falls(reach: float) -> bool:
        step = reach * size * rng.standard_normal(z.shape)
        after = loss.gradient(z + step)
        products = (after - before) * step
        limits = ROUNDED * (np.abs(after) + np.abs(before)) * np.abs(step)
        if getattr(loss, "separable", False):
            return bool(np.any(products < -limits))
        return bool(np.sum(products) < -np.sum(limits))

    return _anywhere(falls)


def _objective_decreases(objective: Objective, image: Any) -> bool:
    """Whether ∇F decreases from M to a random matrix."""
    rng, L = np.random.default_rng(0), host(image.factor)
    size = max(1.0, float(np.abs(L).max(initial=0.0)))

    def falls(reach: float) -> bool:
        other = objective.image(
            objective.place.put(reach * size * rng.standard_normal((objective.order, 3)))
        )
        G, H = objective.gradient(image), objective.gradient(other)
        ends = [image.factor, other.factor]
        slopes = [float(np.sum(host(N) * host((H @ N) - (G @ N)))) for N in ends]
        sizes = [float(np.sum(np.abs(host(N) * host(D @ N)))) for N in ends for D in (G, H)]
        return slopes[1] - slopes[0] < -ROUNDED * sum(sizes)

    return _anywhere(falls)


def _anywhere(falls: Callable[[float], bool]) -> bool:
    with np.errstate(all="ignore"):
        return any(falls(reach) for reach in REACHES for _ in range(4))
