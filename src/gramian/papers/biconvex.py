"""f(X, Y) = F(½(XYᵀ + YXᵀ)), its partial gradient and Lipschitz constant, for BiS and ADMM."""

from __future__ import annotations

from gramian.arrays.places import inner, norm
from gramian.common.types import Array
from gramian.objectives import Objective

MAX_QUIET_ITERATIONS = 100
"""Consecutive iterations without a decrease above rounding after which a baseline ends."""


def value(objective: Objective, X: Array, Y: Array) -> float:
    """f(X, Y)."""
    return objective.value(objective.pair_image(X, Y))


def gradient(objective: Objective, X: Array, Y: Array) -> Array:
    """∇_X f(X, Y) = ∇F(M)Y; f is symmetric, so that ∇_Y f follows by exchanging X and Y."""
    return objective.gradient(objective.pair_image(X, Y)) @ Y


def lipschitz(objective: Objective, X: Array, Y: Array, slope: Array, guess: float) -> float:
    """A local Lipschitz constant of ∇_X f(·, Y) along its gradient.

    Exact for a quadratic F, whose gradient is affine in X; otherwise the smallest guess·2ʲ for
    which a step of its inverse decreases f as the quadratic model predicts.
    """
    length = norm(slope)
    if length == 0:
        return guess
    if objective.facts.quadratic:
        unit = slope / length
        bend = inner(unit, gradient(objective, X + unit, Y) - slope)
        return max(bend, 1e-12 * guess)
    here, L = value(objective, X, Y), 0.5 * guess
    for _ in range(60):
        if value(objective, X - slope / L, Y) <= here - 0.5 * length**2 / L + 1e-14 * abs(here):
            break
        L *= 2.0
    return L
