"""Problems with a fixed corner of M, such as anchors of known positions.

    min Σ_e φ_e(⟨A_e, M⟩)  subject to  M_KK = B,  M ⪰ 0

The rows K of every factor can be fixed: L = [R 0; X V] with RRᵀ = B, and the constraints hold for
all values of the free rows (X, V).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.linear_constraints import Constraints
from gramian.losses import Separable
from gramian.maps import Rows, rows_of
from gramian.objectives import Composite, Objective
from gramian.objectives.matrices import size_of

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

MAX_CORNER_ROWS = 50
"""Maximum number of rows of the corner, which is dense."""

MIN_EIGENVALUE_RATIO = 1e-10
"""Smallest eigenvalue of B, relative to its largest."""


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
    if values[0] <= MIN_EIGENVALUE_RATIO * values[-1] or held.size == objective.order:
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
