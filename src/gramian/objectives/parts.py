"""Symmetric matrices and adjoints as sums of a multiple of I, a sparse and a low-rank part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.maps import (
    BlockEntries,
    Entries,
    LinearMap,
    Mix,
    PairDistances,
    Squares,
    Stack,
)
from gramian.objectives.matrices import (
    GramOperator,
    LowRankPlusIdentity,
    MatrixSum,
    Scaled,
    Sparse,
    SymmetricMatrix,
)
from gramian.proofs import LowRank, SparseForm, rounded_sum

Array = NDArray[np.floating]

BORDER = 64
"""Largest number of columns of a low-rank part in a sparse factorisation."""

SPAN_NUMBERS = 100_000_000
"""Largest size of the dense factor of a low-rank part: 0.8 GB."""

FULL = 0.1
"""Density above which a sparse matrix counts as dense."""


@dataclass(frozen=True)
class Parts:
    """cI + S + U diag(ω) Uᵀ."""

    order: int
    scale: float = 0.0
    sparse: Any = None
    factor: Array | None = None
    weights: Array | None = None

    def __add__(self, other: Parts) -> Parts:
        sparse = [part.sparse for part in (self, other) if part.sparse is not None]
        factors = [part.factor for part in (self, other) if part.factor is not None]
        weights = [part.weights for part in (self, other) if part.weights is not None]
        return Parts(
            self.order,
            self.scale + other.scale,
            sum(sparse[1:], sparse[0]) if sparse else None,
            np.hstack(factors) if factors else None,
            np.concatenate(weights) if weights else None,
        )

    def times(self, number: float) -> Parts:
        return Parts(
            self.order,
            number * self.scale,
            None if self.sparse is None else number * self.sparse,
            self.factor,
            None if self.weights is None else number * self.weights,
        )

    @property
    def columns(self) -> int:
        return 0 if self.factor is None else self.factor.shape[1]

    def __matmul__(self, v: Array) -> Array:
        product: Array = self.scale * v
        if self.sparse is not None:
            product = product + self.sparse @ v
        if self.factor is not None and self.weights is not None:
            product = product + (self.factor * self.weights) @ (self.factor.T @ v)
        return product

    def diagonal(self) -> Array:
        entries = np.full(self.order, self.scale)
        if self.sparse is not None:
            entries += self.sparse.diagonal()
        if self.factor is not None and self.weights is not None:
            entries += self.factor**2 @ self.weights
        return entries

    def reach(self) -> tuple[Array, float]:
        """The row sums of |S| + |U||ω||U|ᵀ, and the largest number of terms of an entry."""
        sums, longest = np.zeros(self.order), 1.0
        if self.sparse is not None:
            sums += np.asarray(abs(self.sparse).sum(axis=1), dtype=float).ravel()
            longest = float(np.max(np.diff(sp.csr_array(self.sparse).indptr), initial=1))
        if self.factor is not None and self.weights is not None:
            U = np.abs(self.factor)
            sums += U @ (np.abs(self.weights) * U.sum(axis=0))
        return sums, longest + self.columns

    def form(self) -> LowRank | SparseForm | None:
        """The form of proof for these parts, None if only the dense matrix is possible."""
        if self.sparse is None:
            if 2 * self.columns > self.order:
                return None
            U = np.zeros((self.order, 0)) if self.factor is None else self.factor
            weights = np.zeros(0) if self.weights is None else self.weights
            return LowRank(self.scale, U, np.diag(weights))
        if self.sparse.nnz > FULL * self.order**2 or self.columns > BORDER:
            return None
        diagonal = self.scale * sp.eye_array(self.order)
        return SparseForm(self.sparse + diagonal, self.factor, self.weights)


def parts_of(matrix: SymmetricMatrix) -> Parts | None:
    """The parts of a symmetric matrix, None if unknown."""
    if isinstance(matrix, LowRankPlusIdentity):
        factor = matrix.factor if matrix.weights.size else None
        weights = matrix.weights if matrix.weights.size else None
        return Parts(matrix.order, matrix.scale, None, factor, weights)
    if isinstance(matrix, Sparse):
        return Parts(matrix.order, sparse=matrix.matrix)
    if isinstance(matrix, Scaled):
        inner = parts_of(matrix.matrix)
        return None if inner is None else inner.times(matrix.scale)
    if isinstance(matrix, GramOperator):
        return _gram_parts(matrix)
    if isinstance(matrix, MatrixSum):
        known = [parts_of(part) for part in matrix.parts]
        total = known[0]
        for part in known[1:]:
            total = None if total is None or part is None else total + part
        return total
    return None


def _gram_parts(matrix: GramOperator) -> Parts | None:
    rows, order = matrix.X.shape
    if 2 * rows > order or rows * order > SPAN_NUMBERS:
        return None
    X = matrix.X.toarray() if sp.issparse(matrix.X) else matrix.X
    weights = np.ones(rows) if matrix.weights is None else matrix.weights
    return Parts(order, 0.0, None, np.asarray(X.T, dtype=float), matrix.scale * weights)


def adjoint_parts(map: LinearMap, w: Array) -> Parts | None:
    """The parts of 𝒜*(w), None if unknown."""
    if isinstance(map, Mix):
        return adjoint_parts(map.base, map.weights.T @ w)
    if isinstance(map, Squares):
        return Parts(map.order, factor=map.vectors, weights=np.asarray(w, dtype=float))
    if isinstance(map, Stack):
        total: Parts | None = Parts(map.order)
        for inner, part in map.split(w):
            known = adjoint_parts(inner, part)
            total = None if total is None or known is None else total + known
        return total
    if isinstance(map, Entries | PairDistances):
        return Parts(map.order, sparse=map.adjoint_sparse(w))
    if isinstance(map, BlockEntries):
        G = 0.5 * map.matrix(np.asarray(w, dtype=float))
        return Parts(map.order, sparse=sp.csr_array(sp.block_array([[None, G], [G.T, None]])))
    return None


def rounding_of_parts(parts: Parts) -> Array:
    """e² with |E_ij| ≤ e_i e_j for the rounding errors E of the sum of the parts as one matrix.

    |E| ≤ γ|S| ≤ γ diag(|S|1) for the sparse one, and |U||ω||U|ᵀ ≤ h_i h_j with h² = U²|ω|.
    """
    errors = np.zeros(parts.order)
    if parts.sparse is not None:
        reach = np.asarray(abs(parts.sparse).sum(axis=1), dtype=float).ravel()
        longest = float(np.max(np.diff(sp.csr_array(parts.sparse).indptr), initial=1))
        errors += rounded_sum(longest) * reach
    if parts.factor is not None and parts.weights is not None:
        errors += rounded_sum(parts.columns + 2) * (parts.factor**2 @ np.abs(parts.weights))
    return errors


def connected_parts(rows: Any, cols: Any, order: int) -> Array:
    """Normalised indicator vectors of the connected components of a graph, as columns."""
    links = sp.coo_array((np.ones(len(rows)), (rows, cols)), shape=(order, order))
    count, part = sp.csgraph.connected_components(links, directed=False)
    columns = (part[:, None] == np.arange(count)).astype(float)
    found: Array = columns / np.sqrt(columns.sum(axis=0))
    return found
