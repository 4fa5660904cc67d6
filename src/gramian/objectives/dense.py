"""F and its gradient at a dense symmetric matrix, for reference solvers and tests."""

from __future__ import annotations

from functools import reduce, singledispatch
from operator import add

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import inner
from gramian.objectives.base import Image, Objective
from gramian.objectives.composite import Composite
from gramian.objectives.gram_quadratic import GramQuadratic
from gramian.objectives.total import Sum

Array = NDArray[np.floating]


@singledispatch
def value_dense(objective: Objective, M: Array) -> float:
    """F(M)."""
    return objective.value(_image(objective, M))


@singledispatch
def gradient_dense(objective: Objective, M: Array) -> Array:
    """∇F(M)."""
    return objective.gradient(_image(objective, M)).dense()


def _image(objective: Objective, M: Array) -> Image:
    """The image of M = ½(MI + IM)."""
    image: Image = objective.pair_image(np.ascontiguousarray(M), np.eye(objective.order))
    return image


@value_dense.register
def _(objective: Composite, M: Array) -> float:
    z = objective.map.of_matrix(M)
    return objective.loss.value(z) + inner(M, objective.C.dense()) + objective.constant


@gradient_dense.register
def _(objective: Composite, M: Array) -> Array:
    w = objective.loss.gradient(objective.map.of_matrix(M))
    return objective.map.adjoint_matrix(w) + objective.C.dense()


@value_dense.register
def _(objective: GramQuadratic, M: Array) -> float:
    AM = objective.A @ M
    quadratic = inner(AM, AM.T) + inner(objective.B @ M, M)
    return quadratic + 2 * inner(objective.C.dense(), M) + objective.constant


@gradient_dense.register
def _(objective: GramQuadratic, M: Array) -> Array:
    BM = objective.B @ M
    return 2 * (objective.A @ (objective.A @ M).T) + BM + BM.T + 2 * objective.C.dense()


@value_dense.register
def _(objective: Sum, M: Array) -> float:
    return sum(value_dense(part, M) for part in objective.parts)


@gradient_dense.register
def _(objective: Sum, M: Array) -> Array:
    return reduce(add, (gradient_dense(part, M) for part in objective.parts))
