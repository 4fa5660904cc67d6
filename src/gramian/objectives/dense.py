"""F and its gradient at a dense symmetric matrix, for reference solvers and tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.objectives.base import Image, Objective
from gramian.objectives.composite import Composite, CompositeImage
from gramian.objectives.total import Sum, SumImage

Array = NDArray[np.floating]


def value_dense(objective: Objective, M: Array) -> float:
    """F(M)."""
    return objective.value(_image(objective, M))


def gradient_dense(objective: Objective, M: Array) -> Array:
    """∇F(M)."""
    return objective.gradient(_image(objective, M)).dense()


def _image(objective: Objective, M: Array) -> Image:
    """The image of M: of 𝒜(M) itself for a composite, else of M = ½(MI + IM)."""
    none = np.zeros((objective.order, 0))
    if isinstance(objective, Composite):
        linear = float(np.sum(M * objective.C.dense()))
        return CompositeImage(none, objective.map.of_matrix(M), linear, none)
    if isinstance(objective, Sum):
        return SumImage(none, tuple(_image(part, M) for part in objective.parts))
    image: Image = objective.pair_image(np.ascontiguousarray(M), np.eye(objective.order))
    return image
