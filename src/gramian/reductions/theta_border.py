"""Lovász's number with a border, as the same number with a trace (Grötschel, Lovász, Schrijver).

    max Σ w_i X_ii  over  X_00 = 1,  X_ii = X_0i,  X_ij = 0 on edges,  X ⪰ 0, of order n + 1
    max ⟨√w√wᵀ, Y⟩  over  tr Y = 1,                Y_ij = 0 on edges,  Y ⪰ 0, of order n

have one optimum θ. From Y = VVᵀ the rows of a factor of X are d = Vᵀ√w/‖Vᵀ√w‖ and the projections
of d on the rows v_i, whose value is no less; from t and η with tI − √w√wᵀ − Σ η_e E_e ⪰ 0 the slack
[t, −wᵀ; −w, W − Σ √(w_iw_j)η_e/t E_e] ⪰ 0 has the same value. The second form has a trace, which
proves its bounds, and rows that are orthogonal to each other.

The rows that are given may be any combinations of those of X, or of M with m_i = 2x_i − x_0: the
x_i of a stable set are 0 or 1, its m_i are −1 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from gramian.linear_constraints import Constraint, Constraints
from gramian.maps import Entries, Mix, Rows
from gramian.objectives import Linear, LowRankPlusIdentity
from gramian.objectives.matrices import SymmetricMatrix
from gramian.objectives.parts import parts_of
from gramian.problem import Problem

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

COORDINATES = ((1.0, 0.0), (2.0, -1.0))
"""q and s of m_i = q x_i + s x_0: stable sets by 0 and 1, and by −1 and 1."""

LONG = 50
"""Entries of a row, on average, from which it is none of a border."""

FAR, SHORT = 0.3, 1e-2
"""How far off the part of d along a row may be, as a power of 2, where the square of its length is
below this part of their mean."""

ROUNDED = 1e-12
"""What a coefficient may be off by, beside the largest."""

SINGULAR = 1e-8
"""What the combination of rows that a solution asks for may be off by, relatively."""


@dataclass(frozen=True, eq=False)
class ThetaBorder:
    """The problem with a trace, and the ways from it to the one with a border."""

    problem: Problem
    corner: int
    coordinates: tuple[float, float]
    root: Array
    """√w."""
    edges: tuple[Indices, Indices]
    """i and j of every edge, counted without the corner."""
    cost: Array
    """C less −Σ w_i E_ii, by the rows of X: the corner, X_ii − X_0i, the edges."""
    given: sp.csc_array
    """The rows that are given, each by those of X."""
    combined: Callable[[Array], Array]
    """The multipliers of the given rows, of those of the rows of X."""

    @property
    def others(self) -> Indices:
        return np.delete(np.arange(self.root.size + 1), self.corner)

    def factor(self, V: Array) -> Array:
        """A factor of M, of no less a value where V is feasible.

        At an optimum d is ‖Vᵀ√w‖/√w_i times v_i along v_i. Where that is far off, and v_i short, it
        is what is left of a row of 0, of which no direction is known, and becomes one.
        """
        along = V.T @ self.root
        size, squares = float(np.linalg.norm(along)) or 1.0, np.sum(V * V, axis=1)
        d = along / size
        shares = np.divide(V @ d, squares, out=np.zeros_like(squares), where=squares > 0)
        far = np.abs(np.log2(np.maximum(shares * self.root / size, 1e-300))) > FAR
        shares[far & (squares <= SHORT * np.mean(squares))] = 0.0
        q, s = self.coordinates
        L = np.empty((self.root.size + 1, V.shape[1]))
        L[self.others], L[self.corner] = q * shares[:, None] * V + s * d, d
        return L

    def coordinates_of(self, L: Array) -> Array:
        """V of Y, whose value is no less either where L is feasible."""
        q, s = self.coordinates
        X = (L[self.others] - s * L[self.corner]) / q
        V = self.root[:, None] * X
        return V / (float(np.linalg.norm(V)) or 1.0)

    def multipliers(self, y: Array) -> Array:
        """Those of the rows that are given; y has −t for the trace first, then the edges."""
        i, j = self.edges
        t, w = max(-float(y[0]), np.finfo(float).tiny), self.root**2
        bent = self.root[i] * self.root[j] * y[1:] / t
        return self.combined(self.cost + np.concatenate([[-t], -2 * w, bent]))

    def multipliers_of(self, y: Array) -> Array:
        """The multipliers of trace and edges, of those of the rows that are given."""
        seen = self.given.T @ y - self.cost
        (i, j), t = self.edges, max(-float(seen[0]), 0.0)
        bent = t * seen[1 + self.root.size :] / (self.root[i] * self.root[j])
        return np.concatenate([[-t], bent])


def theta_border(C: SymmetricMatrix, rows: Rows, bounds: Constraints) -> ThetaBorder | None:
    """The reduction of min ⟨C, M⟩ over rows with one value each, None where it is none of these."""
    n, values = rows.order, bounds.lower
    if not (2 < n <= values.size and np.array_equal(values, bounds.upper)):
        return None
    parts = parts_of(C)
    if parts is None or parts.columns or rows.matrix.nnz > LONG * values.size:
        return None
    entries = sp.coo_array(rows.matrix)
    i, j = np.divmod(rows.places[entries.coords[1]], n)
    first = (entries.coords[0], i, j, entries.data)
    corner = int(np.argmax(np.bincount(i[i != j], minlength=n)))
    sparse = sp.csr_array((n, n)) if parts.sparse is None else parts.sparse
    linear = sp.coo_array(parts.scale * sp.eye_array(n) + sparse)
    last = (np.full(linear.nnz, values.size), *linear.coords, linear.data)
    table = tuple(np.concatenate(pair) for pair in zip(first, last, strict=True))
    for coordinates in COORDINATES:
        found = _bordered(table, n, corner, coordinates, values)
        if found is not None:
            return found
    return None


def _bordered(
    table: tuple[Any, ...], n: int, corner: int, coordinates: tuple[float, float], values: Array
) -> ThetaBorder | None:
    seen = _Seen.of(table, n, corner, coordinates, values.size)
    m, size = values.size, ROUNDED * float(np.max(np.abs(table[3]), initial=0.0))
    loose = seen.diagonal + seen.border
    w = -loose[[m]].toarray().ravel()
    given = sp.hstack([sp.csr_array(seen.corner[:, None]), seen.diagonal, seen.edges], format="csr")
    if given.shape != (m + 1, m) or not np.all(w > size):
        return None
    if abs(loose[:m]).max() > size or np.max(np.abs(seen.corner[:m] - values)) > size:
        return None
    combined = _inverse(sp.csc_array(given[:m].T))
    if combined is None:
        return None
    border = seen.border[[m]].toarray().ravel()
    cost = np.concatenate([seen.corner[m:], -border, seen.edges[[m]].toarray().ravel()])
    return ThetaBorder(
        _with_trace(np.sqrt(w), seen.ends),
        corner,
        coordinates,
        np.sqrt(w),
        seen.ends,
        cost,
        sp.csc_array(given[:m]),
        combined,
    )


@dataclass(frozen=True, eq=False)
class _Seen:
    """What every row, and C as the last, has of X_00, X_ii, X_0i and the other X_ij."""

    corner: Array
    diagonal: sp.csr_array
    border: sp.csr_array
    edges: sp.csr_array
    ends: tuple[Indices, Indices]
    """i and j of the columns of `edges`, counted without the corner."""

    @classmethod
    def of(
        cls, table: tuple[Any, ...], n: int, c: int, coordinates: tuple[float, float], m: int
    ) -> _Seen:
        """From k, i, j and the value of every entry of M: M_ij = (q x_i + s x_c)(q x_j + s x_c)."""
        k, i, j, a = table
        (qi, si), (qj, sj) = (_weights(end, c, coordinates) for end in (i, j))
        here = np.full_like(i, c)
        low, high = np.concatenate([i, i, here, here]), np.concatenate([j, here, j, here])
        a = np.concatenate([qi * qj * a, qi * sj * a, si * qj * a, si * sj * a])
        k, low, high = np.tile(k, 4), np.minimum(low, high), np.maximum(low, high)
        k, low, high, a = (part[a != 0] for part in (k, low, high, a))
        ends = (low == c).astype(int) + (high == c)
        same, vertex = low == high, np.where(low == c, high, low)
        vertex = vertex - (vertex > c)

        def matrix(live: Any, column: Any, width: int) -> sp.csr_array:
            return sp.csr_array((a[live], (k[live], column)), shape=(m + 1, width))

        rest = (ends == 0) & ~same
        places, column = np.unique(low[rest] * n + high[rest], return_inverse=True)
        edges = matrix(rest, column, places.size)
        kept = np.flatnonzero(abs(edges[:m]).max(axis=0).toarray().ravel() > 0)
        i, j = np.divmod(places[kept], n)
        on, side = (ends == 0) & same, ends == 1
        return cls(
            np.bincount(k[ends == 2], a[ends == 2], minlength=m + 1).astype(float),
            matrix(on, vertex[on], n - 1),
            matrix(side, vertex[side], n - 1),
            sp.csr_array(edges[:, kept]),
            (i - (i > c), j - (j > c)),
        )


def _weights(ends: Indices, c: int, coordinates: tuple[float, float]) -> tuple[Array, Array]:
    q, s = coordinates
    return np.where(ends == c, 1.0, q), np.where(ends == c, 0.0, s)


def _inverse(given: sp.csc_array) -> Callable[[Array], Array] | None:
    """b ↦ A⁻¹b, None where A is singular."""
    try:
        solve: Callable[[Array], Array] = splu(given).solve
    except RuntimeError:
        return None
    probe = np.ones(given.shape[0])
    right = given @ probe
    off = float(np.linalg.norm(solve(right) - probe))
    return solve if off <= SINGULAR * np.sqrt(probe.size) else None


def _with_trace(root: Array, ends: tuple[Indices, Indices]) -> Problem:
    """min −⟨√w√wᵀ, Y⟩ over tr Y = 1 and Y_ij = 0 on the edges."""
    n, (i, j), each = root.size, ends, np.arange(root.size)
    places = Entries(np.column_stack([np.concatenate([each, i]), np.concatenate([each, j])]), n)
    row = np.concatenate([np.zeros(n, dtype=int), 1 + np.arange(i.size)])
    weights = sp.csr_array((np.ones(row.size), (row, np.arange(row.size))))
    right = np.eye(1, 1 + i.size).ravel()
    return Problem(
        Linear(LowRankPlusIdentity(n, 0.0, root[:, None], np.array([-1.0]))),
        name="theta",
        constraints=(Constraint.equal(Mix(places, weights), right),),
    )
