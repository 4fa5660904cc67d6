"""Inner products with given symmetric matrices, sparse or of rank one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gramian.arrays.places import namespace, precision
from gramian.linalg.tolerances import ROUNDING
from gramian.maps.base import (
    ROUNDINGS,
    Floats,
    LinearMap,
    check_factors,
    check_matrix,
    check_weights,
)
from gramian.maps.mix import Mix
from gramian.maps.pairs import Entries
from gramian.maps.stack import Stack

MIN_BLOCK_ROWS = 24
"""Rows from which a full block is tested for rank one."""


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
        return (self.vectors * w) @ (self.vectors.T @ V)

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        check_matrix(self.order, M)
        return np.einsum("nk,nk->k", self.vectors, M @ self.vectors)

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        """Bounded by the sizes of the terms, because their sum may be far smaller."""
        xp = namespace(L)
        rows = xp.abs(self.vectors).T @ xp.abs(L)
        found: NDArray[np.float64] = (
            ROUNDINGS * precision(L) * self.order**0.5 * xp.sum(rows**2, axis=1)
        )
        return found


@dataclass(frozen=True)
class RankOne:
    """s·vvᵀ with s = ±1 and a vector v that may have zeros."""

    sign: float
    vector: NDArray[np.float64]


def inner_products(A: sparse.csr_array, n: int) -> LinearMap:
    """𝒜(M)_k = ⟨A_k, M⟩ for the rows vec(A_k) of a sparse (m × n²) matrix, each A_k symmetric.

    Full blocks of rank one, such as the matrix of ones, become squares along a vector; the other
    A_k use the entries of M in their joint sparsity pattern.
    """
    A = sparse.csr_array(A, dtype=float)
    dense = {k: found for k in _full_rows(A) if (found := rank_one(A[[k]], n)) is not None}
    kept = np.ones(A.shape[0])
    kept[list(dense)] = 0.0
    # A sparse matrix product would allocate a row of n² numbers.
    others = A.data * np.repeat(kept, np.diff(A.indptr))
    entries, weights = _entries(sparse.csr_array((others, A.indices, A.indptr), shape=A.shape), n)
    if not dense:
        return Mix(entries, weights)
    squares = Squares(np.column_stack([found.vector for found in dense.values()]))
    signs = np.array([found.sign for found in dense.values()])
    places = (np.fromiter(dense, dtype=np.intp), np.arange(len(dense)))
    mixed = sparse.coo_array((signs, places), shape=(A.shape[0], len(dense)))
    return Mix(Stack([entries, squares]), sparse.csr_array(sparse.hstack([weights, mixed])))


def rank_one(row: sparse.csr_array, n: int) -> RankOne | None:
    """vec(A) as s·vvᵀ, None if it is sparse or has another rank."""
    flat = sparse.coo_array(row)
    i, j = np.divmod(flat.coords[1].astype(np.int64), n)
    live = np.unique(i)
    if live.size < MIN_BLOCK_ROWS or flat.nnz != live.size**2:
        return None
    block = np.zeros((live.size, live.size))
    block[np.searchsorted(live, i), np.searchsorted(live, j)] = flat.data
    pivot = int(np.argmax(np.abs(np.diagonal(block))))
    top = float(block[pivot, pivot])
    if top == 0:
        return None
    column = block[:, pivot] / np.sqrt(abs(top))
    sign = float(np.sign(top))
    off = np.abs(block - sign * np.outer(column, column))
    if np.max(off) > ROUNDING * np.max(np.abs(block)):
        return None
    vector = np.zeros(n)
    vector[live] = column
    return RankOne(sign, vector)


def squares_of(map: LinearMap) -> Iterator[tuple[int, NDArray[np.float64], float]]:
    """The rows of a map of the form s·vvᵀ: index, v and s."""
    if not isinstance(map, Mix) or not isinstance(map.base, Stack):
        return
    entries, squares = map.base.maps
    if not isinstance(squares, Squares):
        return
    rows = map.weights
    for row in np.flatnonzero(np.diff(rows.indptr) == 1):
        column = int(rows.indices[rows.indptr[row]]) - entries.size
        if column >= 0:
            yield int(row), squares.vectors[:, column], float(rows.data[rows.indptr[row]])


def _full_rows(A: sparse.csr_array) -> NDArray[np.intp]:
    """Rows with as many entries as a full square block."""
    counts = np.diff(A.indptr)
    sides = np.round(np.sqrt(counts)).astype(np.int64)
    return np.flatnonzero((sides >= MIN_BLOCK_ROWS) & (sides * sides == counts))


def _entries(A: sparse.csr_array, n: int) -> tuple[Entries, sparse.csr_array]:
    """The joint pattern i ≤ j of the matrices, and the weight of each entry in each matrix."""
    flat = sparse.coo_array(A)
    i, j = np.divmod(flat.coords[1].astype(np.int64), n)
    upper = (i <= j) & (flat.data != 0)
    row, i, j, data = flat.coords[0][upper], i[upper], j[upper], flat.data[upper]
    keys, entry = np.unique(i * n + j, return_inverse=True)
    if not keys.size:  # a map must not be empty: use one entry of weight zero
        keys = np.zeros(1, dtype=np.int64)
    shape = (A.shape[0], keys.size)
    weights = sparse.coo_array((np.where(i == j, 1.0, 2.0) * data, (row, entry)), shape=shape)
    return Entries(np.column_stack(np.divmod(keys, n)), n), sparse.csr_array(weights)
