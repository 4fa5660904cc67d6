"""The bilateral search of BILGO §3.1: min F(αM + βN) over α, β ≥ 0."""

from __future__ import annotations

import numpy as np

from gramian.common.types import Array
from gramian.linalg.restriction import UNBOUNDED_STEP, Restriction
from gramian.linalg.tolerances import MAX_STEPS

DAMPING = 1e-3
"""Diagonal shift of a singular Hessian, relative to its trace; the inverse is the largest length of
the resulting step."""


def bilateral(
    restriction: Restriction, *, cap_alpha: bool = False, fix_alpha: bool = False
) -> tuple[float, float, float]:
    """(α, β, F) minimising f(α, β) = F(αM + βN) over β ≥ 0 and α ≥ 0.

    `cap_alpha` keeps α ≤ 1 as printed in Algorithm 1, `fix_alpha` keeps α = 1 (Journée et al.).
    A quadratic f is solved exactly from its candidates, and again from the result, because the
    rounding error is relative to f at the start, which may be large. Otherwise by a projected
    Newton method, eq. (3). The value is −inf if f is unbounded below.
    """
    lower = np.array([1.0 if fix_alpha else 0.0, 0.0])
    upper = np.array([1.0 if cap_alpha or fix_alpha else np.inf, np.inf])
    s = np.array([1.0, 0.0])
    best = restriction.value(s)
    for _ in range(2 if restriction.quadratic else MAX_STEPS):
        p, Q = restriction.gradient(s), restriction.hessian(s)
        step = box_quadratic(Q, p, lower - s, upper - s)
        if step is None:
            if restriction.quadratic:
                return float(s[0]), float(s[1]), -np.inf
            step = _far_descent(restriction, s, p, Q, lower, upper)
            if step is None:
                return float(s[0]), float(s[1]), -np.inf
        moved, value = _backtrack(restriction, s, step, float(p @ step), best)
        if not value < best:
            break
        settled = best - value <= 1e-15 * abs(best)
        s, best = moved, value
        if settled:
            break
    return float(s[0]), float(s[1]), best


def box_quadratic(Q: Array, p: Array, lower: Array, upper: Array) -> Array | None:
    """argmin ½bᵀQb + pᵀb over lower ≤ b ≤ upper for a PSD 2 × 2 Q, eq. (4).

    The optimum is the interior stationary point or lies on an edge; a singular Q
    has a line of stationary points, and that line meets an edge. None if unbounded below.
    """
    if np.all(np.isinf(upper)) and _falls_along_flat_line(Q, p):
        return None
    candidates = []
    for free, held in ((0, 1), (1, 0)):
        for end in (lower[held], upper[held]):
            if np.isfinite(end):
                slope, bend = p[free] + Q[free, held] * end, Q[free, free]
                best = upper[free] if slope < 0 else lower[free]
                if bend > 0:
                    best = np.clip(-slope / bend, lower[free], upper[free])
                if np.isinf(best):
                    return None
                candidates.append(np.array([best, end] if free == 0 else [end, best]))
    if not _is_singular(Q):
        b = np.linalg.solve(Q, -p)
        candidates += [b] if np.all(b >= lower) and np.all(b <= upper) else []
    return min(candidates, key=lambda b: 0.5 * b @ Q @ b + p @ b)


def _is_singular(Q: Array) -> bool:
    return bool(Q[0, 0] * Q[1, 1] - Q[0, 1] * Q[1, 0] <= 1e-15 * Q[0, 0] * Q[1, 1])


def _falls_along_flat_line(Q: Array, p: Array) -> bool:
    """Whether a singular Q has a direction n > 0 with Qn = 0 along which pᵀb decreases."""
    if not (_is_singular(Q) and Q[0, 1] < 0):
        return False
    n = np.array([-Q[0, 1], Q[0, 0]])
    return bool(p @ n < -1e-12 * np.abs(p) @ n)


def _far_descent(
    restriction: Restriction, s: Array, p: Array, Q: Array, lower: Array, upper: Array
) -> Array | None:
    """A damped step, doubled while f decreases, if the Newton model has no minimum.

    Uses steepest descent if the damped step is too long. None if f decreases up to the largest
    floating point numbers.
    """
    steepest = p / max(float(np.max(np.abs(p))), 1e-300)
    unit = np.clip(s - steepest, lower, upper) - s
    damped = box_quadratic(Q + DAMPING * np.trace(Q) * np.eye(2), p, lower - s, upper - s)
    if damped is not None and 0 < np.max(np.abs(damped)) < 1 / DAMPING:
        unit = damped
    length, value = 1.0, restriction.value(s + unit)
    while length < UNBOUNDED_STEP:
        further = restriction.value(np.clip(s + 2 * length * unit, lower, upper))
        if not further < value:
            return np.clip(s + length * unit, lower, upper) - s
        length, value = 2 * length, further
    return None


def _backtrack(
    restriction: Restriction, s: Array, step: Array, slope: float, value: float
) -> tuple[Array, float]:
    """Halve the step until Armijo's condition holds; a full Newton step usually does."""
    gamma = 1.0
    for _ in range(50):
        moved = s + gamma * step
        new = restriction.value(moved)
        if new <= value + 1e-4 * gamma * slope or (gamma == 1.0 and restriction.quadratic):
            return moved, new
        gamma *= 0.5
    return s, value
