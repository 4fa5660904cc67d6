"""Quadratic forms along given vectors: inner products with matrices of rank one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.places import namespace, precision
from gramian.maps.base import Floats, LinearMap, check_factors, check_matrix, check_weights


class Squares(LinearMap):
    """𝒜(M)_k = v_kᵀ M v_k for the columns v_k of `vectors`, with 𝒜*(w) = V diag(w) Vᵀ."""

    def __init__(self, vectors: ArrayLike) -> None:
        self.vectors = np.ascontiguousarray(vectors, dtype=float)
        if self.vectors.ndim != 2 or 0 in self.vectors.shape:
            raise ValueError(f"vectors must have shape (n, k), got {self.vectors.shape}")
        if not np.all(np.isfinite(self.vectors)):
            raise ValueError("vectors must be finite")
        self.order, self.size = self.vectors.shape

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """(v_k·U)(v_k·V)."""
        check_factors(self.order, U, V)
        left = self.vectors.T @ U
        right = left if V is U else self.vectors.T @ V
        return namespace(U).sum(left * right, axis=1)

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        check_weights(self.size, w)
        check_factors(self.order, V)
        product: Floats = (self.vectors * w) @ (self.vectors.T @ V)
        return product

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        check_matrix(self.order, M)
        return np.einsum("nk,nk->k", self.vectors, M @ self.vectors)

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        """Bounded by the sizes of the terms, because their sum may be far smaller."""
        xp = namespace(L)
        rows = xp.abs(self.vectors).T @ xp.abs(L)
        found: NDArray[np.float64] = 8 * precision(L) * self.order**0.5 * xp.sum(rows**2, axis=1)
        return found
