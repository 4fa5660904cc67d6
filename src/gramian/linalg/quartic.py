"""The exact search along a line of factors, LRO §4: min over μ of F((L+μΔ)(L+μΔ)ᵀ)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.linalg.restriction import UNBOUNDED_STEP, Restriction

Array = NDArray[np.floating]

NEWTON_STEPS = 200
POLISH_STEPS = 3

TINY_LEADING = 1e-8
"""Relative size of a leading coefficient whose root may round off the others."""

LOG_UNIT_LIMIT = 138.0
"""Units of μ are within 1e±60, so that their fourth powers are finite."""


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
    for _ in range(NEWTON_STEPS):
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


def minimise_quartic(
    coefficients: Sequence[float], *, nonnegative: bool = False
) -> tuple[float, float]:
    """Return the minimiser μ and the least value of c0 + c1 μ + c2 μ² + c3 μ³ + c4 μ⁴.

    Of several minimisers, the one nearest to zero; with `nonnegative`, over μ ≥ 0.

    Raises
    ------
    ValueError
        If a coefficient is not finite, or the polynomial is unbounded below. A caller that knows
        the leading coefficient to be nonnegative should clip rounding errors to zero.
    """
    c = [float(x) for x in coefficients]
    if len(c) > 5 or not all(map(math.isfinite, c)):
        raise ValueError(f"expected at most five finite coefficients, got {c}")
    powers = [k for k in range(1, len(c)) if c[k] != 0.0]
    if not powers:
        return 0.0, c[0]
    if c[powers[-1]] < 0.0 or (powers[-1] % 2 == 1 and not nonnegative):
        raise ValueError(f"polynomial is unbounded below: coefficients {c}")
    unit = _natural_unit(c, powers)
    weights = [c[k] * unit**k for k in range(1, powers[-1] + 1)]
    height = max(map(abs, weights))
    scaled = [0.0, *(weight / height for weight in weights)]
    steps = [0.0, *_stationary([k * scaled[k] for k in range(1, len(scaled))])]
    allowed = [step for step in steps if not (nonnegative and step < 0.0)]
    value, _, mu = min((_evaluate(scaled, step), abs(step), step) for step in allowed)
    return mu * unit, c[0] + height * value


def _natural_unit(c: list[float], powers: list[int]) -> float:
    """Return a unit of μ in which the lowest and highest terms have equal size."""
    low, high = powers[0], powers[-1]
    if low == high:
        return 1.0
    exponent = (math.log(abs(c[low])) - math.log(abs(c[high]))) / (high - low)
    return math.exp(max(-LOG_UNIT_LIMIT, min(LOG_UNIT_LIMIT, exponent)))


def _stationary(c: list[float]) -> list[float]:
    """The real parts of the roots of a polynomial of degree at most three, refined by Newton.

    A nearly double root may be computed as a complex pair, so real parts are kept: a step that is
    not stationary is discarded when values are compared. A tiny leading coefficient has a distant
    root, which would round off the small roots: they are also computed without it.
    """
    roots = np.roots(c[::-1]).real.tolist()
    if abs(c[-1]) < TINY_LEADING * max(map(abs, c)):
        roots += np.roots(c[-2::-1]).real.tolist()
    return [_polished(c, root) for root in roots if math.isfinite(root)]


def _polished(c: list[float], root: float) -> float:
    """Take Newton steps on a polynomial while they reduce it."""
    slopes = [k * c[k] for k in range(1, len(c))]
    value = _evaluate(c, root)
    for _ in range(POLISH_STEPS):
        slope = _evaluate(slopes, root)
        moved = root - value / slope if slope else root
        moved_value = _evaluate(c, moved)
        if not abs(moved_value) < abs(value):
            break
        root, value = moved, moved_value
    return root


def _evaluate(c: list[float], at: float) -> float:
    """The value of a polynomial, in Python floats: faster than arrays for five numbers."""
    total = 0.0
    for coefficient in reversed(c):
        total = total * at + coefficient
    return total
