"""The exact search along a line of factors, LRO §4: min over μ of F((L+μΔ)(L+μΔ)ᵀ)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.eigen.polynomial import minimise_quartic
from gramian.objectives.base import Restriction

Array = NDArray[np.floating]

NEWTON_STEPS = 60


def quartic(restriction: Restriction) -> tuple[float, float]:
    """(μ, F) with μ ≥ 0 the best step along θ = (1, 2μ, μ²).

    For a quadratic F this is a quartic in μ and its best root is taken; the paper's limit μ < 1
    is a slip. Otherwise a safeguarded Newton iteration in one variable.
    """
    if restriction.quadratic:
        return minimise_quartic(quartic_coefficients(restriction), nonnegative=True)
    return _newton(restriction)


def quartic_coefficients(restriction: Restriction) -> list[float]:
    """The coefficients of μ⁰ … μ⁴ of a quadratic restriction along θ = (1, 2μ, μ²)."""
    origin = np.zeros(3)
    Q, c = 0.5 * restriction.hessian(origin), 0.5 * restriction.gradient(origin)
    return [
        Q[0, 0] + 2 * c[0] + restriction.value(origin),
        4 * Q[0, 1] + 4 * c[1],
        4 * Q[1, 1] + 2 * Q[0, 2] + 2 * c[2],
        4 * Q[1, 2],
        Q[2, 2],
    ]


def _newton(restriction: Restriction) -> tuple[float, float]:
    """Find φ'(μ) = 0 from μ = 0, inside a bracket [low, high] with φ'(low) < 0."""
    low, high, mu = 0.0, np.inf, 0.0
    slope, bend = _derivatives(restriction, 0.0)
    first = abs(slope)
    if slope >= 0:
        return 0.0, restriction.value(_theta(0.0))
    for _ in range(NEWTON_STEPS):
        step = -slope / bend if bend > 0 else np.inf
        trial = mu + step
        if not low < trial < high:
            trial = 2 * max(mu, 1e-3) if np.isinf(high) else 0.5 * (low + high)
        mu = trial
        slope, bend = _derivatives(restriction, mu)
        if slope < 0:
            low = mu
        else:
            high = mu
        if abs(slope) <= 1e-10 * first or high - low <= 1e-14 * high:
            break
    value = restriction.value(_theta(mu))
    return mu, value


def _theta(mu: float) -> Array:
    return np.array([1.0, 2 * mu, mu * mu])


def _derivatives(restriction: Restriction, mu: float) -> tuple[float, float]:
    theta = _theta(mu)
    tangent = np.array([0.0, 2.0, 2 * mu])
    gradient = restriction.gradient(theta)
    bend = tangent @ restriction.hessian(theta) @ tangent + 2 * gradient[2]
    return float(gradient @ tangent), float(bend)
