"""The squared loss beside free offsets of rows and columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ACCURACY, MOST_STEPS = 1e-10, 200


class SquaredWithOffsets:
    """g(z) = min over β of ½ Σ_e (s_e z_e + b_i + c_j − t_e)² + κ/2 ‖β‖², β = (b, c), e = (i, j).

    Convex in z, as a minimum over part of the arguments of a convex function. The best β solves a
    sparse system, here by conjugate gradients from the last one found; where it is off a little,
    g is a little too large, and the conjugate is exact all the same.

    Parameters
    ----------
    targets : array of shape (p,)
        t.
    rows, cols : index arrays of shape (p,), sorted by row
    shape : (m, n)
    ridge : float
        κ > 0.
    scale : array of shape (p,)
        s > 0.
    """

    quadratic = True
    infimum = 0.0

    def __init__(
        self,
        targets: Array,
        rows: Indices,
        cols: Indices,
        shape: tuple[int, int],
        *,
        ridge: float,
        scale: Array | float = 1.0,
    ) -> None:
        self.targets, self.ridge = np.asarray(targets, dtype=float), float(ridge)
        self.scale = np.broadcast_to(np.asarray(scale, dtype=float), self.targets.shape)
        self.rows, self.cols, self.shape = rows, cols, shape
        self.size: int | None = self.targets.size
        self.smoothness = float(np.max(self.scale)) ** 2
        counts = np.bincount(rows, minlength=shape[0])
        starts = np.concatenate([[0], np.cumsum(counts)])
        self._links = sparse.csr_array((np.ones(self.targets.size), cols, starts), shape=shape)
        self._row_mass = counts + self.ridge
        self._col_mass = np.bincount(cols, minlength=shape[1]) + self.ridge
        self._last: Array = np.zeros(shape[1])
        self._seen: tuple[Array, Array, Array, Array] | None = None

    def offsets(self, z: Array) -> tuple[Array, Array]:
        """b and c for a given z."""
        return self._residuals(z)[:2]

    def value(self, z: Array) -> float:
        b, c, left = self._residuals(z)
        return float(0.5 * (left @ left) + 0.5 * self.ridge * (b @ b + c @ c))

    def gradient(self, z: Array) -> Array:
        slope = self.scale * self._residuals(z)[2]
        return np.negative(slope, out=slope)

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """d ↦ sHsd, H what is left of a vector beside its best offsets."""
        return self._bend

    def curvature(self, z: Array, directions: Array) -> Array:
        return np.column_stack([directions.T @ self._bend(d) for d in directions.T])

    def smoothed(self, mu: float) -> None:
        return None

    def conjugate(self, w: Array) -> float:
        """½‖v‖² + ⟨v, t⟩ + ‖Bᵀv‖²/(2κ) with v = w/s and B the offsets' sums."""
        v = w / self.scale
        by_row, by_col = self._sums(v)
        offsets = (by_row @ by_row + by_col @ by_col) / (2 * self.ridge)
        return float(0.5 * (v @ v) + v @ self.targets + offsets)

    def _residuals(self, z: Array) -> tuple[Array, Array, Array]:
        """b, c, and the targets less all that is fitted; in place, for there may be many."""
        if self._seen is None or self._seen[0] is not z:
            self._seen = None
            left = self.scale * z
            np.subtract(self.targets, left, out=left)
            b, c = self._fitted(left, self._last)
            left -= b[self.rows]
            left -= c[self.cols]
            self._last, self._seen = c, (z, b, c, left)
        return self._seen[1:]

    def _bend(self, d: Array) -> Array:
        e = self.scale * d
        b, c = self._fitted(e, np.zeros(self.shape[1]))
        e -= b[self.rows]
        e -= c[self.cols]
        e *= self.scale
        return e

    def _sums(self, e: Array) -> tuple[Array, Array]:
        e = np.asarray(e, dtype=float)
        by_row: Array = np.bincount(self.rows, e, minlength=self.shape[0]).astype(float)
        by_col: Array = np.bincount(self.cols, e, minlength=self.shape[1]).astype(float)
        return by_row, by_col

    def _fitted(self, e: Array, start: Array) -> tuple[Array, Array]:
        """The offsets that fit e best: those of the rows eliminated, of the columns by CG."""
        by_row, by_col = self._sums(e)
        links, turned = self._links, self._links.T
        right = by_col - turned @ (by_row / self._row_mass)

        def product(c: Array) -> Array:
            return self._col_mass * c - turned @ ((links @ c) / self._row_mass)

        n = self.shape[1]
        system = LinearOperator((n, n), matvec=product, dtype=float)
        jacobi = LinearOperator((n, n), matvec=lambda c: c / self._col_mass, dtype=float)
        c, _ = cg(system, right, x0=start, rtol=ACCURACY, maxiter=MOST_STEPS, M=jacobi)
        return (by_row - links @ c) / self._row_mass, c
