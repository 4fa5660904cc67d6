"""Dual points of problems with a fixed corner of M.

    max over w of −Σ φ*(w_e) + ⟨Y, B⟩,   [T − Y, Pᵀ; P, Ω] = Σ w_e A_e − [Y, 0; 0, 0] ⪰ 0

Given Ω ≻ 0 the best Y is T − PᵀΩ⁻¹P. If Ω of w = φ'(z) is indefinite, w + tv makes it definite: for
distances Σ v_e A_e is a Laplacian of the measured pairs, which is definite if all points are
connected to the corner. t is found by the signs of pivots, and a factorisation proves the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common import clock
from gramian.constrained.corner import Corner
from gramian.linear_constraints import Constraints
from gramian.proofs import SparseForm
from gramian.proofs.base import inverse_lanczos

Array = NDArray[np.floating]

MIN_LIFT, LIFT_GROWTH, LIFT_ACCURACY = 1e-13, 16.0, 1.1
"""The smallest t relative to the sizes of Ω and Σ A_e, its growth until the pivots are positive,
and the ratio of the final t to the smallest such t."""

MIN_COST_RATIO = 1e-2
"""Smallest cost, relative to the median cost."""

SLACK_SHIFTS = (1e-12, 1e-10, 1e-8, 1e-6)
"""Shifts of the slack, relative to its size, tried in order until the proof succeeds."""


@dataclass(frozen=True)
class CornerPoint:
    """A feasible (w, y), its value, −t and the eigenvector that requires t."""

    w: Array
    y: Array
    value: float
    least: float
    vector: Array | None


def corner_point(corner: Corner, bounds: Constraints, image: Any, constant: float) -> CornerPoint:
    """The dual point near w = φ'(z); its value is −∞ if none is found."""
    w, v = corner.loss.gradient(image.z), _stiffness(corner, image.z)
    slack, lift = corner.adjoint(w), corner.adjoint(v)
    free = corner.free
    t, solve = _least_lift(slack[free][:, free], lift[free][:, free])
    if solve is None:
        return CornerPoint(w, np.zeros(bounds.size), -np.inf, -np.inf, None)
    vector = np.zeros(corner.order)
    vector[free] = inverse_lanczos(free.size, solve)
    for lifted, y in _points(corner, w, v, t):
        clock.check()
        if _proved(corner, lifted, y, bounds):
            value = _value(corner, bounds, lifted, y) + constant
            return CornerPoint(lifted, y, value, -t, vector / np.linalg.norm(vector))
    return CornerPoint(w, np.zeros(bounds.size), -np.inf, -t, vector / np.linalg.norm(vector))


def _stiffness(corner: Corner, z: Array) -> Array:
    """v_e = 1/c_e, c_e the cost of a unit of v_e: the squared distance plus its part in the corner.

    For A_e = [0, pᵀ; p, 1] to the corner that is z_e + pᵀBp.
    """
    e, i, j, a = corner.entries
    place = np.full(corner.order, -1)
    place[corner.held] = np.arange(corner.held.size)
    across = (place[i] < 0) & (place[j] >= 0)
    p = np.zeros((corner.measured, corner.held.size))
    np.add.at(p, (e[across], place[j[across]]), a[across])
    cost = z + np.sum((p @ corner.root) ** 2, axis=1)
    usual = float(np.median(np.abs(cost))) or 1.0
    return 1.0 / np.maximum(cost, MIN_COST_RATIO * usual)


def _least_lift(omega: Any, lift: Any) -> tuple[float, Any]:
    """About the smallest t ≥ 0 with Ω + tP ≻ 0, and its solver; (inf, None) if there is none."""
    size = float(np.max(np.abs(omega.diagonal()), initial=0.0))
    unit = float(np.max(np.abs(lift.diagonal()), initial=0.0))
    if unit == 0:
        return np.inf, None
    low, t = 0.0, MIN_LIFT * max(size / unit, np.finfo(float).tiny / MIN_LIFT)
    found = SparseForm(omega + t * lift).above(0.0)
    while not found.definite:
        if t > 4 * size / unit / MIN_LIFT:
            return np.inf, None
        low, t = t, LIFT_GROWTH * t
        found = SparseForm(omega + t * lift).above(0.0)
    while low > 0 and t > LIFT_ACCURACY * low:
        middle = float(np.sqrt(low * t))
        trial = SparseForm(omega + middle * lift).above(0.0)
        if trial.definite:
            t, found = middle, trial
        else:
            low = middle
    return t, found.solve


def _points(corner: Corner, w: Array, v: Array, t: float) -> Iterator[tuple[Array, Array]]:
    """w + tv with a margin, and the best y for it minus a margin."""
    held, free = corner.held, corner.free
    size = float(np.max(np.abs(w), initial=0.0)) or 1.0
    for margin in SLACK_SHIFTS:
        lifted = w + ((1 + margin) * t + margin * size / np.max(v)) * v
        S = corner.adjoint(lifted)
        solve = SparseForm(S[free][:, free]).above(0.0).solve
        if solve is None:
            continue
        P = S[free][:, held].toarray()
        inner = np.column_stack([solve(column) for column in P.T])
        schur = S[held][:, held].toarray() - P.T @ inner
        spare = margin * (np.linalg.norm(schur) + np.linalg.norm(P.T @ inner))
        yield lifted, corner.multipliers(0.5 * (schur + schur.T) - spare * np.eye(held.size))


def _proved(corner: Corner, w: Array, y: Array, bounds: Constraints) -> bool:
    """Whether Σ w_e A_e − 𝒜*(y) ⪰ 0, including rounding errors of its entries."""
    i, j, weight = corner.seen
    Y = np.zeros((corner.held.size,) * 2)
    Y[i, j] = Y[j, i] = weight * y
    place = corner.held
    block = sp.coo_array(
        (Y.ravel(), (np.repeat(place, place.size), np.tile(place, place.size))),
        shape=(corner.order,) * 2,
    )
    lost = corner.rounding(w)
    lost[place] += 4 * float(np.finfo(float).eps) * np.abs(Y).sum(axis=1)
    S = sp.csr_array(corner.adjoint(w) - block) - sp.diags_array(lost)
    return SparseForm(S).above(0.0).definite


def _value(corner: Corner, bounds: Constraints, w: Array, y: Array) -> float:
    """−Σ φ*(w_e) + y·b, minus a bound on rounding errors."""
    conjugate, reach = corner.loss.conjugate(w), bounds.reach(y)
    terms = abs(conjugate) + float(np.abs(y) @ np.abs(bounds.lower))
    terms += float(np.sum(np.abs(w * corner.loss.centre)))
    return reach - conjugate - 64 * float(np.finfo(float).eps) * terms
