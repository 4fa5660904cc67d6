"""Conversion of CVXPY's conic form to a problem in M, elimination of variables, and the inverse.

CVXPY passes  min c·x  subject to  Ax + s = b,  s ∈ zero cone × nonnegative × semidefinite,
with x free. CVXPY writes a PSD variable as n² free variables whose affine slack is in the cone.
There are two conversions to

    min κ·v + φ·f   subject to   Gv + Hf = h,   v in the cones, f free:

- *direct*: v = s. If a row of a cone contains a single entry of x, the slack replaces that entry;
  the other entries of x are f.
- *dual*: v are the multipliers of the cones and f those of the equations, with Aᵀ(f; v) = −c. It is
  smaller for matrix inequalities in few variables.

The form with fewer rows is used. The free variables f are eliminated by a QR decomposition of H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common.types import Array
from gramian.linalg.tolerances import ROUNDING

Indices = NDArray[np.intp]

MAX_ELIMINATED = 40_000_000
"""Maximum number of elements of H, which is decomposed as a dense matrix."""


@dataclass(frozen=True)
class Conic:
    """CVXPY's data; the rows are those of the zero cone, the nonnegative cone and the PSD cones."""

    A: sp.csr_array
    b: Array
    c: Array
    zero: int
    nonneg: int
    psd: list[int]


@dataclass(frozen=True)
class Standard:
    """min κ·v + φ·f subject to Gv + Hf = h."""

    G: sp.csr_array
    H: sp.csr_array
    h: Array
    cost: Array
    free_cost: Array
    dual: bool
    restored: Indices
    """Direct form: for each entry of x, the cone row whose slack replaces it, or −1."""


def standard(problem: Conic) -> Standard:
    """The smaller of the two forms."""
    restored = _slacks(problem)
    direct = problem.zero + (problem.b.size - problem.zero - int(np.sum(restored >= 0)))
    return _direct(problem, restored) if direct <= problem.c.size else _dual(problem)


def _slacks(problem: Conic) -> Indices:
    """For each entry of x, a cone row that contains no other entry of x, or −1."""
    cones = problem.A[problem.zero :]
    alone = np.flatnonzero(np.diff(cones.indptr) == 1)[::-1]
    restored = np.full(problem.c.size, -1, dtype=np.intp)
    restored[cones.indices[cones.indptr[alone]]] = alone  # of several such rows, the first one
    return restored


def _direct(problem: Conic, restored: Indices) -> Standard:
    """The direct form: x_j = (b_r − v_r)/a for the replaced entries, x_j = f for the others."""
    cones, size = problem.A[problem.zero :], problem.b.size - problem.zero
    slack, free = np.flatnonzero(restored >= 0), np.flatnonzero(restored < 0)
    rows = restored[slack]
    a = cones.data[cones.indptr[rows]]
    right = problem.b[problem.zero :]
    shape = (problem.c.size, size)
    T = sp.csr_array((-1.0 / a, (slack, rows)), shape=shape)
    t = np.zeros(problem.c.size)
    t[slack] = right[rows] / a
    left = np.setdiff1d(np.arange(size), rows)
    own = sp.csr_array((np.ones(left.size), (np.arange(left.size), left)), shape=(left.size, size))
    matrix = sp.csr_array(sp.vstack([problem.A[: problem.zero], cones[left]]))
    plus = sp.csr_array(sp.vstack([sp.csr_array((problem.zero, size)), own]))
    h = np.concatenate([problem.b[: problem.zero], right[left]]) - matrix @ t
    G = sp.csr_array(matrix @ T + plus)
    H = sp.csr_array(matrix.tocsc()[:, free])
    return Standard(G, H, h, T.T @ problem.c, problem.c[free], False, restored)


def _dual(problem: Conic) -> Standard:
    rows = sp.csr_array(problem.A.T).tocsc()
    G, H = sp.csr_array(rows[:, problem.zero :]), sp.csr_array(rows[:, : problem.zero])
    none = np.zeros(0, dtype=np.intp)
    b = problem.b
    return Standard(G, H, -problem.c, b[problem.zero :], b[: problem.zero], True, none)


@dataclass(frozen=True)
class Eliminated:
    """The equations NᵀGv = Nᵀh with HᵀN = 0, and the data to recover f and all multipliers."""

    form: Standard
    G: sp.csr_array
    h: Array
    cost: Array
    shift: float
    base: Array
    """y₀ with Hᵀy₀ = φ."""
    N: Array | None
    unbounded: bool
    """Whether φ·f decreases along some f with Hf = 0."""

    @classmethod
    def of(cls, form: Standard) -> Eliminated:
        m, k = form.H.shape
        if k == 0:
            zero = np.zeros(m)
            return cls(form, form.G, form.h, form.cost, 0.0, zero, None, False)
        if m * k > MAX_ELIMINATED:
            raise ValueError(
                f"this problem has {k} free variables and {m} equations; gramian eliminates "
                "them by a dense decomposition, which would be too large here"
            )
        Q, R, order = scipy.linalg.qr(form.H.toarray(), pivoting=True)
        sizes = np.abs(np.diagonal(R))
        rank = int(np.sum(sizes > 1e-11 * np.max(sizes, initial=1e-300)))
        phi = form.free_cost[order]
        inner = scipy.linalg.solve_triangular(R[:rank, :rank], phi[:rank], trans="T")
        base = Q[:, :rank] @ inner
        off = np.linalg.norm(form.H.T @ base - form.free_cost)
        N = Q[:, rank:]
        G = sp.csr_array(_tidy(N.T @ form.G.toarray(), np.max(np.abs(form.G.data), initial=0.0)))
        cost = form.cost - form.G.T @ base
        unbounded = bool(off > 1e-8 * (1 + np.linalg.norm(form.free_cost)))
        h = _tidy(N.T @ form.h, np.max(np.abs(form.h), initial=0.0))
        return cls(form, G, h, cost, float(base @ form.h), base, N, unbounded)

    def multipliers(self, y: Array) -> Array:
        """The multipliers of all rows."""
        return self.base + self.combination(y)

    def combination(self, y: Array) -> Array:
        """Ny: a combination of all rows without f."""
        return y if self.N is None else self.N @ y

    def free(self, v: Array) -> Array:
        """f of Hf = h − Gv."""
        return self._solved(self.form.h - self.form.G @ v)

    def free_ray(self, v: Array) -> Array:
        """f of Hf = −Gv."""
        return self._solved(-(self.form.G @ v))

    def falling(self) -> Array:
        """−φ minus its projection on the range of Hᵀ: Hf = 0, and φ·f < 0 if it is not 0."""
        H, phi = self.form.H.toarray(), self.form.free_cost
        return H.T @ np.linalg.lstsq(H.T, phi, rcond=None)[0] - phi

    def _solved(self, right: Array) -> Array:
        if not self.form.H.shape[1]:
            return np.zeros(0)
        return np.linalg.lstsq(self.form.H.toarray(), right, rcond=None)[0]


def _tidy(values: Array, largest: float) -> Array:
    """The values, with those that are only rounding errors of the largest one set to 0.

    Duplicate rows lead to equations that consist of rounding errors only.
    """
    return np.where(np.abs(values) > ROUNDING * largest, values, 0.0)


@dataclass(frozen=True)
class VariableBlocks:
    """The position of every entry of v in M: nonnegative variables first, then the PSD blocks."""

    nonneg: int
    psd: list[int]

    @property
    def order(self) -> int:
        return self.nonneg + sum(self.psd)

    def places(self) -> tuple[Indices, Indices, Array]:
        """i ≤ j and the scale of each entry of v, which is M_ij, times √2 off the diagonal."""
        first, i, j = self.nonneg, [np.arange(self.nonneg)], [np.arange(self.nonneg)]
        for size in self.psd:
            column, row = np.tril_indices(size)
            i.append(row + first)
            j.append(column + first)
            first += size
        rows, columns = np.concatenate(i), np.concatenate(j)
        return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))

    def matrices(self, G: sp.csr_array) -> sp.csr_array:
        """Each row of G, acting on v, as a row vec(A_k) that acts on vec(M)."""
        i, j, scale = self.places()
        n = self.order
        entries = sp.coo_array(G)
        e = entries.coords[1]
        off = i[e] != j[e]
        values = entries.data * np.where(off, scale[e] / 2, 1.0)
        rows = np.concatenate([entries.coords[0], entries.coords[0][off]])
        places = np.concatenate([i[e].astype(np.int64) * n + j[e], (j[e] * n + i[e])[off]])
        flat = sp.coo_array(
            (np.concatenate([values, values[off]]), (rows, places)), shape=(G.shape[0], n * n)
        )
        return sp.csr_array(flat)

    def vector(self, factor: Array) -> Array:
        """v of M = LLᵀ."""
        i, j, scale = self.places()
        return scale * np.einsum("er,er->e", factor[i], factor[j])
