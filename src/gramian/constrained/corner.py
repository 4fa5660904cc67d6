"""Problems with a fixed corner of M, such as anchors of known positions, and their dual points.

    min Σ_e φ_e(⟨A_e, M⟩)  subject to  M_KK = B,  M ⪰ 0

The rows K of every factor can be fixed: L = [R 0; X V] with RRᵀ = B, and the constraints hold for
all values of the free rows (X, V). The dual is

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

from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.linalg.tolerances import ROUNDING, ZERO
from gramian.linear_constraints import Constraints
from gramian.losses import Separable
from gramian.maps import Rows, rows_of
from gramian.objectives import Composite, Objective
from gramian.objectives.matrices import size_of
from gramian.proofs import SparseForm
from gramian.proofs.base import inverse_lanczos
from gramian.proofs.search import STEP_GROWTH

MAX_CORNER_ROWS = 50
"""Maximum number of rows of the corner, which is dense."""

LIFT_ACCURACY = 1.1
"""Ratio of the final t to the smallest one for which the pivots are positive."""

MIN_COST_RATIO = 1e-2
"""Smallest cost, relative to the median cost."""

SLACK_SHIFTS = (1e-12, 1e-10, 1e-8, 1e-6)
"""Shifts of the slack, relative to its size, tried in order until the proof succeeds."""


@dataclass(frozen=True, eq=False)
class Corner:
    """The fixed and the free rows, and the matrices A_e by their entries."""

    held: Indices
    """K."""
    free: Indices
    root: Array
    """R, with RRᵀ = B."""
    seen: tuple[Indices, Indices, Array]
    """i and j in K, and the weight, of the entry in each row of the constraints."""
    loss: Separable
    order: int
    measured: int
    entries: tuple[Indices, Indices, Indices, Array]
    """e, i, j and the value of every entry of the A_e."""

    def image(self, L: Array) -> Array:
        """z_e = ⟨A_e, LLᵀ⟩."""
        e, i, j, a = self.entries
        terms = a * np.einsum("ij,ij->i", L[i], L[j])
        return np.asarray(np.bincount(e, terms, minlength=self.measured), dtype=float)

    def adjoint(self, w: Array) -> sp.csr_array:
        """Σ w_e A_e."""
        e, i, j, a = self.entries
        return _square(a * w[e], i, j, self.order)

    def rounding(self, w: Array) -> Array:
        """d with −diag(d) ⪯ E for the rounding errors E of `adjoint`: row sums of those of |w||A|.

        An entry is a sum of at most `counts` products, each rounded once, as is each sum.
        """
        e, i, j, a = self.entries
        sizes = np.asarray(_square(np.abs(a * w[e]), i, j, self.order).sum(axis=1)).ravel()
        counts = np.bincount(i.astype(np.int64) * self.order + j).max(initial=1) if i.size else 1
        return (counts + 4) * float(np.finfo(float).eps) * sizes

    def multipliers(self, Y: Array) -> Array:
        """y with 𝒜*(y) = Y on the corner, for a symmetric Y."""
        i, j, weight = self.seen
        return Y[i, j] / weight


def corner_of(objective: Objective, bounds: Constraints) -> Corner | None:
    """The corner fixed by the constraints; None if they are of another kind."""
    if not isinstance(objective, Composite) or not isinstance(objective.loss, Separable):
        return None
    if size_of(objective.C) != 0 or not np.array_equal(bounds.lower, bounds.upper):
        return None
    rows, given = rows_of(objective.map), rows_of(bounds.map)
    if rows is None or given is None or not objective.map.size:
        return None
    known = _given_block(given, bounds.lower)
    if known is None:
        return None
    held, B, seen = known
    values, vectors = np.linalg.eigh(B)
    if values[0] <= ZERO * values[-1] or held.size == objective.order:
        return None
    order = objective.order
    entries = sp.coo_array(rows.matrix)
    i, j = np.divmod(rows.places[entries.coords[1]], order)
    return Corner(
        held,
        np.setdiff1d(np.arange(order), held),
        vectors * np.sqrt(values),
        seen,
        objective.loss,
        order,
        rows.matrix.shape[0],
        (entries.coords[0], i, j, entries.data),
    )


def _given_block(
    given: Rows, right: Array
) -> tuple[Indices, Array, tuple[Indices, Indices, Array]] | None:
    """K, B and the entry of each row, if every row is one entry and they form a whole block."""
    m, n = right.size, given.order
    if m == 0 or m > MAX_CORNER_ROWS * (MAX_CORNER_ROWS + 1) // 2:
        return None
    entries = sp.coo_array(given.matrix)
    i, j = np.divmod(given.places[entries.coords[1]], n)
    upper = i <= j
    row, i, j, weight = entries.coords[0][upper], i[upper], j[upper], entries.data[upper]
    order = np.argsort(row)
    if not np.array_equal(row[order], np.arange(m)) or np.any(weight == 0):
        return None
    i, j, weight = i[order], j[order], weight[order]
    held = np.unique(np.concatenate([i, j]))
    if m != held.size * (held.size + 1) // 2 or np.unique(i * n + j).size != m:
        return None
    i, j = np.atleast_1d(np.searchsorted(held, i)), np.atleast_1d(np.searchsorted(held, j))
    B = np.zeros((held.size, held.size))
    B[i, j] = B[j, i] = right / np.where(i == j, weight, 2 * weight)
    return held, B, (i, j, weight)


def _square(values: Array, i: Indices, j: Indices, order: int) -> sp.csr_array:
    return sp.csr_array(sp.coo_array((values, (i, j)), shape=(order, order)))


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
        if _proved(corner, lifted, y):
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
    low, t = 0.0, max(ROUNDING * size / unit, np.finfo(float).tiny)
    found = SparseForm(omega + t * lift).above(0.0)
    while not found.definite:
        if t > 4 * size / unit / ROUNDING:
            return np.inf, None
        low, t = t, STEP_GROWTH * t
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


def _proved(corner: Corner, w: Array, y: Array) -> bool:
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
