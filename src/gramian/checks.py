"""Checks of maps, losses and objectives, for tests of the library and of extensions.

Each raises AssertionError with the figures if it fails, and returns the error found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays.errstate import under_own_errstate
from gramian.losses import Loss
from gramian.maps import LinearMap
from gramian.objectives import Objective

__all__ = [
    "check_adjoint",
    "check_conjugate",
    "check_curvature",
    "check_gradient",
    "check_hessian",
]


@under_own_errstate
def check_adjoint(
    map: LinearMap, *, rank: int = 3, random_state: int = 0, rtol: float = 1e-10
) -> float:
    """⟨𝒜(½(UVᵀ + VUᵀ)), w⟩ = ⟨UVᵀ, 𝒜*(w)⟩ for random U, V, w."""
    rng = np.random.default_rng(random_state)
    U, V = rng.standard_normal((2, map.order, rank))
    w = rng.standard_normal(map.size)
    image = map.bilinear(U, V)
    left, right = float(image @ w), float(np.sum(U * map.adjoint(w, V)))
    scale = float(np.linalg.norm(image) * np.linalg.norm(w))
    return _judge("adjoint", abs(left - right), max(scale, 1e-300), rtol)


@under_own_errstate
def check_gradient(
    subject: Loss | Objective,
    point: Any = None,
    *,
    rank: int = 3,
    size: int = 20,
    random_state: int = 0,
    rtol: float = 1e-6,
) -> float:
    """Compare the slope along a random direction with a central difference.

    For a loss the point is z (default: random, of the loss's own size if it has one, otherwise of
    the given size), for an objective the factor L, whose gradient is 2∇F(LLᵀ)L.
    """
    rng = np.random.default_rng(random_state)
    if isinstance(subject, Objective):
        x = rng.standard_normal((subject.order, rank)) if point is None else np.asarray(point)
        direction = rng.standard_normal(x.shape)
        slope = float(np.sum(subject.gradient_factor(subject.image(x)) * direction))

        def value(step: float) -> float:
            return subject.value(subject.image(x + step * direction))
    else:
        x = _image(subject, point, size, rng)
        direction = rng.standard_normal(x.shape)
        slope = float(subject.gradient(x) @ direction)

        def value(step: float) -> float:
            return subject.value(x + step * direction)

    return _judge("gradient", *_against_difference(slope, value, x, direction), rtol)


@under_own_errstate
def check_curvature(
    loss: Loss, z: Any = None, *, size: int = 20, random_state: int = 0, rtol: float = 1e-5
) -> float:
    """Compare dᵀ∇²g(z)d for a random direction with a central difference of the gradient.

    It must not exceed `smoothness` times ‖d‖².
    """
    rng = np.random.default_rng(random_state)
    x = _image(loss, z, size, rng)
    direction = rng.standard_normal(x.shape)
    bend = float(loss.curvature(x, direction[:, None])[0, 0])

    def slope(step: float) -> float:
        return float(loss.gradient(x + step * direction) @ direction)

    error = _judge("curvature", *_against_difference(bend, slope, x, direction), rtol)
    limit = loss.smoothness * float(direction @ direction)
    _judge("smoothness", max(0.0, bend - limit), max(limit, 1e-300), rtol)
    return error


@under_own_errstate
def check_conjugate(
    loss: Loss, z: Any = None, *, size: int = 20, random_state: int = 0, rtol: float = 1e-8
) -> float:
    """g(z) + g*(∇g(z)) = ⟨∇g(z), z⟩ and g(y) + g*(∇g(z)) ≥ ⟨∇g(z), y⟩ for a random y.

    The equation fails if the conjugate is wrong, and the inequality also if g is not convex.
    """
    rng = np.random.default_rng(random_state)
    x = _image(loss, z, size, rng)
    w = loss.gradient(x)
    conjugate, elsewhere = loss.conjugate(w), x + rng.standard_normal(x.shape)
    value, product = loss.value(x), float(w @ x)
    scale = max(abs(value), abs(conjugate), abs(product), 1e-300)
    error = _judge("conjugate", abs(value + conjugate - product), scale, rtol)
    above = float(w @ elsewhere) - loss.value(elsewhere) - conjugate
    _judge("convexity", max(0.0, above), scale, rtol)
    return error


@under_own_errstate
def check_hessian(
    objective: Objective,
    point: Any = None,
    *,
    rank: int = 3,
    random_state: int = 0,
    rtol: float = 1e-5,
) -> float:
    """Compare ⟨D, ∂²F[D]⟩ for a random direction of factors with a central difference of ∂F."""
    rng = np.random.default_rng(random_state)
    L = rng.standard_normal((objective.order, rank)) if point is None else np.asarray(point)
    direction = rng.standard_normal(L.shape)
    bend = float(np.sum(direction * objective.hessian_factor(objective.image(L))(direction)))

    def slope(step: float) -> float:
        image = objective.image(L + step * direction)
        return float(np.sum(objective.gradient_factor(image) * direction))

    return _judge("hessian", *_against_difference(bend, slope, L, direction), rtol)


def _image(loss: Loss, z: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(loss.size or size) if z is None else np.asarray(z, dtype=float)


def _against_difference(
    derivative: float, function: Any, x: np.ndarray, direction: np.ndarray
) -> tuple[float, float]:
    """|derivative − central difference| and the scale of its tolerance, including rounding."""
    step = 1e-5 * max(1.0, float(np.linalg.norm(x))) / float(np.linalg.norm(direction))
    ahead, behind = function(step), function(-step)
    difference = (ahead - behind) / (2 * step)
    size = max(abs(ahead), abs(behind)) * 1e-9 / step
    return abs(derivative - difference), max(abs(derivative), abs(difference), size, 1e-300)


def _judge(what: str, error: float, scale: float, rtol: float) -> float:
    relative = error / scale
    if not relative <= rtol:
        raise AssertionError(f"{what} check failed: relative error {relative:.3g} > {rtol:g}")
    return relative
