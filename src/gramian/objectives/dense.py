"""F and its gradient at a dense symmetric matrix, for reference solvers and tests."""

from __future__ import annotations

from gramian.arrays.places import contiguous, eye, inner
from gramian.common.types import Array
from gramian.objectives.base import Image, Objective
from gramian.objectives.composite import Composite, CompositeImage
from gramian.objectives.gram_quadratic import GramQuadratic
from gramian.objectives.total import Sum


def value_dense(objective: Objective, M: Array) -> float:
    """F(M)."""
    if isinstance(objective, Sum):
        return sum(value_dense(part, M) for part in objective.parts)
    if isinstance(objective, GramQuadratic):
        AM = objective.A @ M
        quadratic = inner(AM, AM.T) + inner(objective.B @ M, M)
        return quadratic + 2 * inner(objective.C.dense(), M) + objective.constant
    return objective.value(_image(objective, M))


def gradient_dense(objective: Objective, M: Array) -> Array:
    """∇F(M)."""
    if isinstance(objective, Sum):
        first, *others = (gradient_dense(part, M) for part in objective.parts)
        return sum(others, first)
    if isinstance(objective, GramQuadratic):
        BM = objective.B @ M
        return 2 * (objective.A @ (objective.A @ M).T) + BM + BM.T + 2 * objective.C.dense()
    return objective.gradient(_image(objective, M)).dense()


def _image(objective: Objective, M: Array) -> Image:
    """The image of M: of 𝒜(M) itself for a composite, else of M = ½(MI + IM)."""
    image: Image
    if isinstance(objective, Composite):
        none = objective.place.zeros((objective.order, 0))
        linear = inner(M, objective.C.dense())
        return CompositeImage(none, objective.map.of_matrix(M), linear, none)
    image = objective.pair_image(contiguous(M), eye(objective.order, objective.place))
    return image
