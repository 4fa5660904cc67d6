"""A small quadratic program over the PSD cone: exact search over M = W S Wᵀ for few columns W.

    min ½ (s − h)ᵀH(s − h) + gᵀ(s − h),   s = svec(S),   S ⪰ 0   (and ⟨E, S⟩ = τ)

by a primal–dual interior-point method (Nesterov–Todd direction, Mehrotra corrector).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dtrtri

from gramian.arrays.threads import blas_threads_for
from gramian.common.types import Array
from gramian.linalg.svec import smat, svec, triangle, with_square
from gramian.linalg.tolerances import ZERO

MAX_ITERATIONS = 50
BOUNDARY_FRACTION = 0.98
MIN_STEP = 1e-7
ACCURACY = 1e-12
"""Duality gap and dual residual at which the method stops, relative to the objective's terms."""


@dataclass(frozen=True)
class Slice:
    """⟨E, S⟩ = τ for a definite E."""

    E: Array
    trace: float


class Inside(NamedTuple):
    """An interior iterate: S ≻ 0, and ⟨S, Z⟩ with its multiplier, close to f(S) − f* at the end."""

    S: Array
    gap: float


class ConeMinimum(NamedTuple):
    """The minimiser, and the last five interior iterates, some of which have ∇f ≻ 0."""

    S: Array
    inside: list[Array]


@dataclass
class _State:
    """X ≻ 0, its multiplier Z ≻ 0, and the multiplier y of the slice: ∇f(X) = Z + yE."""

    X: Array
    Z: Array
    y: float


def cone_quadratic(
    H: Array,
    gradient: Array,
    here: Array,
    within: Slice | None = None,
    *,
    damping: float = 0.0,
) -> ConeMinimum:
    """The S that minimises ½(s − h)ᵀH(s − h) + gᵀ(s − h) over the cone; a large S if unbounded.

    `damping` is added to the curvature of every entry, relative to that of the diagonal entries:
    it keeps S near `here` if H is only an approximation.
    """
    path = list(cone_path(H, gradient, here, within, damping=damping))
    return ConeMinimum(path[-1].S, [point.S for point in path[-5:]])


def cone_path(
    H: Array,
    gradient: Array,
    here: Array,
    within: Slice | None = None,
    *,
    damping: float = 0.0,
) -> Iterator[Inside]:
    """The iterates that converge to this S, the last one closest to it."""
    order = int(np.sqrt(2 * here.size))
    scale = _scale(H, order)
    i, j, _ = triangle(order)
    stretch = scale[i] * scale[j]
    H = H * stretch
    H *= stretch[:, None]
    H[np.diag_indices_from(H)] += damping
    c = gradient * stretch - H @ (here / stretch)
    if within is not None:
        within = Slice(within.E * np.outer(scale, scale), within.trace)
    back = np.outer(scale, scale)
    for state in _states(H, c, _start(H, c, order, within), within):
        yield Inside(state.X * back, float(np.sum(state.X * state.Z)))


def _states(H: Array, c: Array, state: _State, within: Slice | None) -> Iterator[_State]:
    yield state
    far = float(np.trace(state.X)) / ZERO  # a larger trace counts as unbounded
    for _ in range(MAX_ITERATIONS):
        slope = H @ svec(state.X) + c
        gap, residual = _errors(c, slope, state, within)
        if max(gap, 1e-2 * residual) <= ACCURACY or np.trace(state.X) > far:
            return
        try:
            with np.errstate(all="ignore"), blas_threads_for(H.size):
                step = _step(H, slope, state, within)
        except (np.linalg.LinAlgError, ValueError):  # the boundary is reached up to rounding
            return
        if step is None:
            return
        state = step
        yield state


def _scale(H: Array, order: int) -> Array:
    """t with S = diag(t) X diag(t), so that X has unit curvature along its diagonal."""
    i, j, _ = triangle(order)
    bend = np.diag(H)[i == j]
    largest = float(np.max(bend, initial=0.0))
    if largest <= 0:
        return np.ones(order)
    # A curvature is a square: if it is smaller, it is a rounding error.
    return np.where(bend > ACCURACY**2 * largest, np.maximum(bend, 1e-300), largest) ** -0.25


def _start(H: Array, c: Array, order: int, within: Slice | None) -> _State:
    """The best multiple of the identity, or the one with the prescribed trace."""
    unit = svec(np.eye(order))
    if within is not None:
        size = within.trace / float(np.trace(within.E))
    else:
        bend = max(float(unit @ H @ unit), 1e-300)
        least = float(np.linalg.norm(c)) / (order * float(np.linalg.norm(H)) + 1e-300)
        size = max(-float(c @ unit) / bend, least)
    X = max(size, 1e-300) * np.eye(order)
    slope = float(np.linalg.norm(H @ svec(X) + c)) / np.sqrt(order)
    return _State(X, max(slope, 1e-300) * np.eye(order), 0.0)


def _residual(slope: Array, state: _State, within: Slice | None) -> Array:
    """∇f(X) − Z − yE."""
    rest = slope - svec(state.Z)
    return rest if within is None else rest - state.y * svec(within.E)


def _errors(c: Array, slope: Array, state: _State, within: Slice | None) -> tuple[float, float]:
    """⟨X, Z⟩ and ‖∇f(X) − Z − yE‖, relative to the terms of f and of its gradient."""
    x, Hx = svec(state.X), slope - c
    terms = float(0.5 * x @ Hx + abs(c @ x)) + 1e-300
    size = max(float(np.linalg.norm(c)), float(np.linalg.norm(Hx))) + 1e-300
    rest = float(np.linalg.norm(_residual(slope, state, within)))
    return float(np.sum(state.X * state.Z)) / terms, rest / size


def _step(H: Array, slope: Array, state: _State, within: Slice | None) -> _State | None:
    """Predictor, then corrector; None if the step to the boundary is too short."""
    X, Z, order = state.X, state.Z, state.X.shape[0]
    root = np.linalg.cholesky(X)
    values, turn = np.linalg.eigh(_symmetric(root.T @ Z @ root))
    if not values[0] > 0:
        return None
    # R⁻¹XR⁻ᵀ = I and RᵀZR = diag(values), so that W⁻¹ = R⁻ᵀ diag(√values) R⁻¹ maps X to Z.
    R = root @ turn
    inverse = turn.T @ dtrtri(root, lower=1)[0]
    roots = np.sqrt(values)
    scaling = _symmetric((inverse.T * roots) @ inverse)
    # A lower triangle by rows is an upper triangle by columns, as LAPACK expects.
    factor = cho_factor(with_square(H, scaling).T, overwrite_a=True, check_finite=False)
    residual = _residual(slope, state, within)
    missing = 0.0 if within is None else within.trace - float(np.sum(within.E * X))
    sizes = np.outer(roots, roots)
    normal = None if within is None else svec(within.E)

    def solve(right: Array, refine: bool = True) -> Array:
        x: Array = cho_solve(factor, right, check_finite=False)
        if not refine:
            return x
        rest = right - H @ x - svec(scaling @ smat(x, order) @ scaling)
        return x + cho_solve(factor, rest, check_finite=False)

    along = None if normal is None else solve(normal)

    def direction(centre: Array | None) -> tuple[Array, Array, float]:
        """dX, dZ, dy with which ∇f(X) − yE equals `centre`, or about 0, to first order."""
        right = -slope if centre is None else centre - slope
        if normal is None or along is None:
            dx = solve(right, refine=centre is not None)
            return smat(dx, order), smat(H @ dx + residual, order), 0.0
        lean = solve(right + state.y * normal, refine=centre is not None)
        change = (missing - float(normal @ lean)) / float(normal @ along)
        dx = lean + change * along
        return smat(dx, order), smat(H @ dx - change * normal + residual, order), change

    def longest(dX: Array, dZ: Array) -> float:
        """The step to the boundary, in the coordinates where X and Z are diagonal."""
        both = np.stack([inverse @ dX @ inverse.T, (R.T @ dZ @ R) / sizes])
        lowest = float(np.linalg.eigvalsh(0.5 * (both + both.transpose(0, 2, 1)))[:, 0].min())
        return -1 / lowest if lowest < 0 else np.inf

    dX, dZ, dy = direction(None)
    length = min(1.0, longest(dX, dZ))
    mean = float(np.sum(X * Z)) / order
    ahead = float(np.sum((X + length * dX) * (Z + length * dZ))) / order
    centring = min(1.0, max(ahead / mean, 0.0)) ** 3
    quarter = values**0.25
    product = _symmetric((inverse @ dX @ inverse.T @ R.T @ dZ @ R) * np.outer(quarter, 1 / quarter))
    bent = 2 * product / np.add.outer(roots, roots)
    correction = inverse.T @ (bent * np.outer(quarter, quarter)) @ inverse
    target = centring * mean * _symmetric(inverse.T @ inverse) - _symmetric(correction)
    dX, dZ, dy = direction(svec(target))
    length = min(1.0, BOUNDARY_FRACTION * longest(dX, dZ))
    if not length > MIN_STEP or not np.isfinite(dX).all():
        return None
    return _State(X + length * dX, Z + length * dZ, state.y + length * dy)


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + A.T)
