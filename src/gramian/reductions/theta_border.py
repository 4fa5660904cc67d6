"""The bordered form of Lovász's theta number, reduced to the form with a trace.

    max Σ w_i X_ii  over  X_00 = 1,  X_ii = X_0i,  X_ij = 0 on edges,  X ⪰ 0, of order n + 1
    max ⟨√w√wᵀ, Y⟩  over  tr Y = 1,                Y_ij = 0 on edges,  Y ⪰ 0, of order n

have the same optimum θ (Grötschel, Lovász, Schrijver). From Y = VVᵀ the rows of a factor of X are
d = Vᵀ√w/‖Vᵀ√w‖ and the projections of d on the rows v_i, with a value that is at least as good.
From t and η with tI − √w√wᵀ − Σ η_e E_e ⪰ 0 the slack [t, −wᵀ; −w, W − Σ √(w_iw_j)η_e/t E_e] ⪰ 0
has the same value. The second form has a trace, which proves its bounds, and orthogonal rows.

The given rows may be any combinations of those of X, or of M with m_i = 2x_i − x_0: the x_i of a
stable set are 0 or 1, its m_i are −1 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gramian.common.types import Array, Indices
from gramian.linalg.tolerances import ROUNDING
from gramian.linear_constraints import Constraint, Constraints
from gramian.maps import Entries, Mix, Rows
from gramian.objectives import Linear, LowRankPlusIdentity
from gramian.objectives.matrices import SymmetricMatrix
from gramian.objectives.parts import parts_of
from gramian.problem import Problem

COORDINATES = ((1.0, 0.0), (2.0, -1.0))
"""q and s of m_i = q x_i + s x_0: stable sets as 0 and 1, and as −1 and 1."""

MAX_ROW_ENTRIES = 50
"""Mean number of entries per row from which the rows are not those of a border."""

MAX_LOG_RATIO, MIN_SQUARE_RATIO = 0.3, 1e-2
"""Tolerance of the part of d along a row, as an exponent of 2, and the squared length relative to
the mean below which a row that exceeds it is set to 0."""

COMBINATION_RTOL = 1e-8
"""Relative tolerance of the combination of rows in a solution."""


@dataclass(frozen=True, eq=False)
class ThetaBorder:
    """The problem with a trace, and the maps to the bordered one."""

    problem: Problem
    corner: int
    coordinates: tuple[float, float]
    root: Array
    """√w."""
    edges: tuple[Indices, Indices]
    """i and j of every edge, numbered without the corner."""
    cost: Array
    """C plus Σ w_i E_ii, in terms of the rows of X: the corner, X_ii − X_0i, the edges."""
    given: sp.csc_array
    """The given rows in terms of those of X."""
    combined: Callable[[Array], Array]
    """Multipliers of the given rows from those of the rows of X."""

    @property
    def others(self) -> Indices:
        return np.delete(np.arange(self.root.size + 1), self.corner)

    def factor(self, V: Array) -> Array:
        """A factor of M, with a value at least as good if V is feasible.

        At an optimum the component of d along v_i is ‖Vᵀ√w‖/√w_i times v_i. If it deviates and v_i
        is short, the row is a perturbed zero row without a defined direction and is set to 0.
        """
        along = V.T @ self.root
        size, squares = float(np.linalg.norm(along)) or 1.0, np.sum(V * V, axis=1)
        d = along / size
        shares = np.divide(V @ d, squares, out=np.zeros_like(squares), where=squares > 0)
        far = np.abs(np.log2(np.maximum(shares * self.root / size, 1e-300))) > MAX_LOG_RATIO
        shares[far & (squares <= MIN_SQUARE_RATIO * np.mean(squares))] = 0.0
        q, s = self.coordinates
        L = np.empty((self.root.size + 1, V.shape[1]))
        L[self.others], L[self.corner] = q * shares[:, None] * V + s * d, d
        return L

    def coordinates_of(self, L: Array) -> Array:
        """V of Y, also with a value at least as good if L is feasible."""
        q, s = self.coordinates
        X = (L[self.others] - s * L[self.corner]) / q
        V = self.root[:, None] * X
        return V / (float(np.linalg.norm(V)) or 1.0)

    def multipliers(self, y: Array) -> Array:
        """Multipliers of the given rows; y holds −t for the trace first, then the edges."""
        i, j = self.edges
        t, w = max(-float(y[0]), np.finfo(float).tiny), self.root**2
        bent = self.root[i] * self.root[j] * y[1:] / t
        return self.combined(self.cost + np.concatenate([[-t], -2 * w, bent]))

    def multipliers_of(self, y: Array) -> Array:
        """Multipliers of trace and edges from those of the given rows."""
        seen = self.given.T @ y - self.cost
        (i, j), t = self.edges, max(-float(seen[0]), 0.0)
        bent = t * seen[1 + self.root.size :] / (self.root[i] * self.root[j])
        return np.concatenate([[-t], bent])


def theta_border(C: SymmetricMatrix, rows: Rows, bounds: Constraints) -> ThetaBorder | None:
    """The reduction of min ⟨C, M⟩ over equality rows, None if they do not have this form."""
    n, values = rows.order, bounds.lower
    if not (2 < n <= values.size and np.array_equal(values, bounds.upper)):
        return None
    parts = parts_of(C)
    if parts is None or parts.columns or rows.matrix.nnz > MAX_ROW_ENTRIES * values.size:
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
    m, size = values.size, ROUNDING * float(np.max(np.abs(table[3]), initial=0.0))
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
    """Coefficients of X_00, X_ii, X_0i and the other X_ij in every row, and in C as the last."""

    corner: Array
    diagonal: sp.csr_array
    border: sp.csr_array
    edges: sp.csr_array
    ends: tuple[Indices, Indices]
    """i and j of the columns of `edges`, numbered without the corner."""

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
        kept = np.flatnonzero(abs(edges).max(axis=0).toarray().ravel() > 0)
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
    """b ↦ A⁻¹b, None if A is singular."""
    try:
        solve: Callable[[Array], Array] = splu(given).solve
    except RuntimeError:
        return None
    probe = np.ones(given.shape[0])
    right = given @ probe
    off = float(np.linalg.norm(solve(right) - probe))
    return solve if off <= COMBINATION_RTOL * np.sqrt(probe.size) else None


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
