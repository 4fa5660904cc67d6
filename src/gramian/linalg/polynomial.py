"""Exact minimiser of a polynomial of degree at most four on the real line.

The result of every exact line search on a factored objective: along a direction Δ, the value of a
quadratic function of (v + μΔ)(v + μΔ)ᵀ is a quartic in μ, and its derivative is a cubic. The code
uses Python floats, because array calls on five numbers cost more than the arithmetic.
"""

import math
from collections.abc import Sequence

_DISTANT_ROOT_RATIO = 1e-8
"""Leading coefficient of a derivative, relative to the largest, below which its root is distant."""


def minimise_quartic(
    coefficients: Sequence[float], *, nonnegative: bool = False
) -> tuple[float, float]:
    """Return the minimiser μ and the least value of c0 + c1 μ + c2 μ² + c3 μ³ + c4 μ⁴.

    Parameters
    ----------
    coefficients : at most five numbers, in ascending order of the power.
    nonnegative : minimise over μ ≥ 0 instead of over all real μ.

    Returns
    -------
    (mu, value). Of several minimisers, the one nearest to zero.

    Raises
    ------
    ValueError
        If a coefficient is not finite, or the polynomial is unbounded below. A caller that knows
        the leading coefficient to be nonnegative should clip rounding errors to zero.
    """
    c = [float(x) for x in coefficients]
    if len(c) > 5 or not all(map(math.isfinite, c)):
        raise ValueError(f"expected at most five finite coefficients, got {c}")
    constant, powers = c[0], [k for k in range(1, len(c)) if c[k] != 0.0]
    if not powers:
        return 0.0, constant
    _require_bounded(c, powers[-1], nonnegative)
    unit = _natural_unit(c, powers)
    weights = [c[k] * unit**k for k in range(1, powers[-1] + 1)]
    height = max(map(abs, weights))
    scaled = [0.0, *(weight / height for weight in weights)]
    derivative = [k * scaled[k] for k in range(1, len(scaled))]
    roots = filter(math.isfinite, _real_parts(derivative))
    steps = [0.0, *(_polished(derivative, root) for root in roots)]
    value, _, mu = min(
        (_evaluate(scaled, step), abs(step), step)
        for step in steps
        if not (nonnegative and step < 0.0)
    )
    return mu * unit, constant + height * value


def _require_bounded(c: list[float], degree: int, nonnegative: bool) -> None:
    if c[degree] < 0.0 or (degree % 2 == 1 and not nonnegative):
        raise ValueError(f"polynomial is unbounded below: coefficients {c}")


def _natural_unit(c: list[float], powers: list[int]) -> float:
    """Return a unit of μ in which the lowest and highest terms have equal size.

    It is within 1e±60, so that its fourth power is finite.
    """
    low, high = powers[0], powers[-1]
    if low == high:
        return 1.0
    exponent = (math.log(abs(c[low])) - math.log(abs(c[high]))) / (high - low)
    limit = math.log(1e60)
    return math.exp(max(-limit, min(limit, exponent)))


def _real_parts(c: list[float]) -> list[float]:
    """Return the real parts of the roots of a polynomial of degree at most three.

    A nearly double root may be computed as a complex pair, so real parts are kept: a step that is
    not stationary is discarded when values are compared. A tiny leading coefficient has a distant
    root, which would round off the small roots: they are computed without it.
    """
    while len(c) > 1 and c[-1] == 0.0:
        c = c[:-1]
    if len(c) == 1:
        return []
    roots = {2: _linear, 3: _quadratic, 4: _cubic}[len(c)](c)
    if abs(c[-1]) < _DISTANT_ROOT_RATIO * max(map(abs, c)):
        roots += _real_parts(c[:-1])
    return roots


def _linear(c: list[float]) -> list[float]:
    return [-c[0] / c[1]]


def _quadratic(c: list[float]) -> list[float]:
    half = -0.5 * c[1]
    square = half * half - c[2] * c[0]
    if square <= 0.0:
        return [half / c[2]]
    # First the root without cancellation, then the other one from their product.
    q = half + math.copysign(math.sqrt(square), half)
    return [q / c[2], c[0] / q]


def _cubic(c: list[float]) -> list[float]:
    """Return the real parts of a cubic's roots by Cardano's and Viète's formulas.

    t³ + 3pt + 2q = 0,   t = x + a/3:   one real root if q² + p³ > 0, three otherwise
    """
    a, b, d = c[2] / c[3], c[1] / c[3], c[0] / c[3]
    shift = a / 3
    p = b / 3 - shift * shift
    q = shift * shift * shift - 0.5 * shift * b + 0.5 * d
    discriminant = q * q + p * p * p
    if discriminant > 0.0:
        s = math.cbrt(-q - math.copysign(math.sqrt(discriminant), q))
        t = s - p / s
        return [t - shift, -0.5 * t - shift]
    radius = math.sqrt(-p)
    if radius == 0.0:
        return [-shift]
    angle = math.acos(max(-1.0, min(1.0, -q / (radius * radius * radius)))) / 3
    return [2 * radius * math.cos(angle + 2 * math.pi * j / 3) - shift for j in range(3)]


def _polished(c: list[float], root: float) -> float:
    """Take up to three Newton steps on the derivative's coefficients c while they reduce it."""
    slopes = [k * c[k] for k in range(1, len(c))]
    value = _evaluate(c, root)
    for _ in range(3):
        slope = _evaluate(slopes, root)
        if slope == 0.0:
            break
        moved = root - value / slope
        moved_value = _evaluate(c, moved)
        if not abs(moved_value) < abs(value):
            break
        root, value = moved, moved_value
    return root


def _evaluate(c: list[float], at: float) -> float:
    total = 0.0
    for coefficient in reversed(c):
        total = total * at + coefficient
    return total
