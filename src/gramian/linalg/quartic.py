"""The exact search along a line of factors, LRO §4: min over μ of F((L+μΔ)(L+μΔ)ᵀ)."""

from __future__ import annotations

import numpy as np

from gramian.common.types import Array
from gramian.linalg.polynomial import minimise_quartic
from gramian.linalg.restriction import UNBOUNDED_STEP, Restriction
from gramian.linalg.tolerances import MAX_STEPS


def quartic(restriction: Restriction) -> tuple[float, float]:
    """(μ, F) with the best step μ ≥ 0 along θ = (1, 2μ, μ²).

    For a quadratic F this is a quartic in μ and its best root is used; the paper's limit μ < 1
    is an error. Otherwise a safeguarded Newton iteration in one variable. The value is −inf if F
    is unbounded below.
    """
    if not restriction.quadratic:
        return _newton(restriction)
    coefficients = quartic_coefficients(restriction)
    # The last coefficient is a square, which rounding can make negative.
    coefficients[4] = max(coefficients[4], 0.0)
    try:
        return minimise_quartic(coefficients, nonnegative=True)
    except ValueError:
        return 0.0, -np.inf


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
    """Newton from μ = 0 inside a bracket: F decreases at `low`; at `high` it rises, or is higher.

    A step that leaves the bracket, or does not halve it, is replaced by its middle (or by
    doubling, while it is open). The value is −inf if F decreases up to the largest numbers.
    """
    low, low_value, high, width = 0.0, restriction.value(_theta(0.0)), np.inf, np.inf
    slope, bend = _derivatives(restriction, low)
    enough = 1e-10 * abs(slope)
    if not slope < 0:
        return low, low_value
    for _ in range(MAX_STEPS):
        mu = low - slope / bend if bend > 0 else np.inf
        if not low < mu < high or (np.isfinite(width) and high - low > 0.5 * width):
            mu = 0.5 * (low + high) if np.isfinite(high) else max(2 * low, 1.0)
        width = high - low
        value = restriction.value(_theta(mu))
        mu_slope, mu_bend = _derivatives(restriction, mu)
        if value <= low_value and abs(mu_slope) <= enough:
            return mu, value
        if mu_slope < 0 and value <= low_value:
            low, low_value, slope, bend = mu, value, mu_slope, mu_bend
        else:
            high = mu
        if low > UNBOUNDED_STEP:
            return low, -np.inf
        if np.isfinite(high) and high - low <= 1e-14 * high:
            break
    return low, low_value


def _theta(mu: float) -> Array:
    return np.array([1.0, 2 * mu, mu * mu])


def _derivatives(restriction: Restriction, mu: float) -> tuple[float, float]:
    theta = _theta(mu)
    tangent = np.array([0.0, 2.0, 2 * mu])
    gradient = restriction.gradient(theta)
    bend = tangent @ restriction.hessian(theta) @ tangent + 2 * gradient[2]
    return float(gradient @ tangent), float(bend)
