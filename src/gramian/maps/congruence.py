"""Composition of a map with data: ℬ(X M Xᵀ)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays.blocks import Blocks, whole
from gramian.arrays.places import (
    as_double,
    at_home,
    eye,
    host,
    largest,
    norm,
    place_of,
    precision,
    side_by_side,
    size,
)
from gramian.maps.base import Floats, LinearMap, check_factors, check_matrix, row_norms

MAX_GRAM_COLUMNS, ORTHONORMAL_TOL = 2000, 1e-11
"""Columns up to which XᵀX is compared with I, and the tolerance of its entries."""

MAX_ERROR_MULTIPLICATIONS = 10_000_000
"""Largest number of multiplications for an estimate of rounding errors."""

STREAMED_COLUMNS = 64
"""Columns of Xᵀ ℬ*(w) X per pass over an X that stays on the host."""

DOUBLE = np.finfo(np.float64).eps


class Transformed(LinearMap):
    """𝒜(M) = ℬ(X M Xᵀ) for a map ℬ = `base` and an X given by its products.

    The adjoint is 𝒜*(w) = Xᵀ ℬ*(w) X. Factors are mapped to X L, so neither matrix is formed.
    """

    base: LinearMap
    X: Any

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """ℬ(½ (XU (XV)ᵀ + XV (XU)ᵀ))."""
        XU = self.seen(U)
        return self.of_seen(XU, XU if V is U else self.seen(V))

    def columns(self, W: Floats) -> NDArray[np.float64]:
        """ℬ's columns for XW."""
        return self.base.columns(self.seen(W))

    def seen(self, L: Floats) -> Floats:
        """XL."""
        check_factors(self.order, L)
        return self.X @ L

    def of_seen(self, seen: Floats, other: Floats) -> NDArray[np.float64]:
        """ℬ(½ (XU (XV)ᵀ + XV (XU)ᵀ)) from XU and XV."""
        return self.base.bilinear(seen, other)

    def adjoint_of_seen(self, w: Floats, seen: Floats) -> Floats:
        """Xᵀ ℬ*(w) XL."""
        return self._back(self.base.adjoint(w, seen))

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """Xᵀ ℬ*(w) X V."""
        return self.adjoint_of_seen(w, self.seen(V))

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        """ℬ(X M Xᵀ), through the dense m × m matrix."""
        check_matrix(self.order, M)
        return self.base.of_matrix(self.X @ (self.X @ M).T)

    @abstractmethod
    def _back(self, Y: Floats) -> Floats:
        """XᵀY."""


class Congruence(Transformed):
    """𝒜(M) = ℬ(X M Xᵀ) for a map ℬ = `base` of order m and X (m × d), dense or sparse.

    M is d × d, and the adjoint is 𝒜*(w) = Xᵀ ℬ*(w) X.
    """

    def __init__(self, base: LinearMap, X: Any) -> None:
        X = _as_data(X) if base.place.is_host else X
        if X.shape[0] != base.order:
            raise ValueError(f"X has {X.shape[0]} rows, but the map is over {base.order} points")
        self.base, self.X = base, X
        self.place = place_of(X) if isinstance(X, Blocks) else base.place
        self.order = X.shape[1]
        self.size = base.size
        self.dense_numbers = 0 if sparse.issparse(X) else size(X)

    def _back(self, Y: Floats) -> Floats:
        """XᵀY, as (YᵀX)ᵀ for a row-major X, which takes half of the time for few columns."""
        return (Y.T @ self.X).T if isinstance(self.X, np.ndarray) else self.X.T @ Y

    @property
    def apart(self) -> dict[tuple[int, ...], int]:
        """X, if it is dense and not square."""
        n, d = self.X.shape
        return {} if n == d or not self.dense_numbers else {(n, d): 1}

    def adjoint_matrix(self, w: Floats) -> Floats:
        """Xᵀ ℬ*(w) X, without a product of X with the identity unless X is streamed."""
        if isinstance(self.X, Blocks):
            columns = eye(self.order, self.place)
            steps = range(0, self.order, STREAMED_COLUMNS)
            found = [self.adjoint(w, columns[:, k : k + STREAMED_COLUMNS]) for k in steps]
            return side_by_side(found)
        X = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        product: Floats = self.X.T @ self.base.adjoint(w, X)
        product = as_double(product)
        return 0.5 * (product + product.T)

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        """Bound for rows of XL with errors of norm √d u ‖x_i‖‖L‖.

        Uses √d u ‖(|X||L|)_i‖ if that is cheap, which is smaller for features of different scales.
        """
        sizes = norm(L) * self._row_sizes
        if isinstance(self.X, np.ndarray) and self.X.size * L.shape[1] <= MAX_ERROR_MULTIPLICATIONS:
            sizes = np.minimum(sizes, row_norms(np.abs(self.X) @ np.abs(L)))
        off = 4 * self._precision * self.order**0.5 * sizes
        return self.base.error_of_rows(off, self.X @ L, z)

    def spread(self, reach: Floats) -> NDArray[np.float64]:
        """Σ_i reach_i x_ij² for every column j, on the host."""
        if sparse.issparse(self.X):
            squares = self.X.multiply(self.X)
        elif hasattr(self.X, "nnz"):
            squares = replace(self.X, data=self.X.data**2)
        else:
            squares = as_double(self.X) ** 2
        return np.ravel(np.asarray(host(squares.T @ reach), dtype=float))

    def identity_weights(self) -> NDArray[np.float64] | None:
        """The weights of ℬ if X has orthonormal columns, scaled up to cover their tolerance."""
        weights = self.base.identity_weights()
        if weights is None or not self._orthonormal:
            return None
        return weights / (1.0 - ORTHONORMAL_TOL * self.order)

    @property
    def _precision(self) -> float:
        return precision(self.X.data if hasattr(self.X, "nnz") else self.X)

    @cached_property
    def _row_sizes(self) -> NDArray[np.float64]:
        """‖x_i‖ of every row."""
        if not hasattr(self.X, "nnz"):
            return whole(as_double(row_norms(self.X)))
        X = at_home(self).X
        sizes = np.sqrt(np.ravel(np.asarray(X.multiply(X).sum(axis=1), dtype=float)))
        return self.place.put(sizes)

    @cached_property
    def _orthonormal(self) -> bool:
        if hasattr(self.X, "nnz") and not self.place.is_host:
            return at_home(self)._orthonormal
        if self.order > min(self.X.shape[0], MAX_GRAM_COLUMNS) or self._precision > DOUBLE:
            return False
        gram = self.X.T @ self.X
        dense = gram.toarray() if sparse.issparse(gram) else gram
        return largest(dense - eye(self.order, self.place)) <= ORTHONORMAL_TOL


def _as_data(X: Any) -> Any:
    """A finite float32 or float64 matrix: CSR if sparse, else a C-contiguous array."""
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must be a matrix with rows and columns, got shape {X.shape}")
    if not (np.issubdtype(X.dtype, np.number) or X.dtype == bool) or X.dtype.kind == "c":
        raise ValueError(f"X must hold real numbers, got {X.dtype}")
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    X = sparse.csr_array(X, dtype=dtype) if sparse.issparse(X) else np.ascontiguousarray(X, dtype)
    values = X.data if sparse.issparse(X) else X
    if not np.isfinite(values).all():
        raise ValueError("X must be finite: it holds NaN or infinite values")
    return X
