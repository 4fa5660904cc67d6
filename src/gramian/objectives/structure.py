"""The form of a gradient, for proofs: sparse, of low rank, two blocks, or a pencil of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.maps import (
    BlockEntries,
    Congruence,
    Entries,
    LinearMap,
    Mix,
    PairDistances,
    WhitenedDistances,
)
from gramian.objectives.matrices import (
    GramOperator,
    LowRankPlusIdentity,
    MatrixSum,
    Rooted,
    Scaled,
    Sparse,
    SymmetricMatrix,
)
from gramian.proofs import Bipartite, LowRank, SparseForm, rounded_sum

Array = NDArray[np.floating]

BORDER = 64
"""Columns of a low-rank part that a sparse factorisation takes along."""

SPAN_NUMBERS = 100_000_000
"""Numbers of the dense factor of a low-rank part at most: 0.8 GB."""

FULL = 0.1
"""A sparse matrix with more than this share of its entries is dense."""


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

    def form(self) -> LowRank | SparseForm | None:
        """The proof that these parts allow, None where only the dense matrix will do."""
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
    """A symmetric matrix by its parts, None where it is not known to have them."""
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


def composite_form(map: LinearMap, w: Array, C: SymmetricMatrix) -> Any:
    """What 𝒜*(w) + C is made of."""
    if isinstance(map, WhitenedDistances):
        return _pencil(map, w, C)
    known = parts_of(C)
    if known is None:
        return None
    if isinstance(map, BlockEntries) and known.sparse is None and known.columns == 0:
        return Bipartite(known.scale, 0.5 * map.matrix(np.asarray(w, dtype=float)))
    if isinstance(map, Congruence):
        return _span(map, w, known)
    sparse = sparse_adjoint(map, w)
    return None if sparse is None else (known + Parts(map.order, sparse=sparse)).form()


def joined_form(order: int, forms: Sequence[Any]) -> Any:
    """The form of a sum of matrices by those of its parts, None where one of them has none."""
    if all(isinstance(form, Bipartite) for form in forms):
        return Bipartite(sum(form.scale for form in forms), sum(form.B for form in forms))
    known = [_form_parts(form) for form in forms]
    joined = Parts(order)
    for part in known:
        if part is None:
            return None
        joined = joined + part
    return joined.form()


def _form_parts(form: Any) -> Parts | None:
    if isinstance(form, SparseForm) and form.plain:
        columns = form.weights.size > 0
        return Parts(
            form.order,
            0.0,
            form.S,
            form.U if columns else None,
            form.weights if columns else None,
        )
    if isinstance(form, Bipartite):
        sparse = sp.block_array([[None, form.B], [form.B.T, None]], format="csr")
        return Parts(sum(form.B.shape), form.scale, sparse)
    if isinstance(form, LowRank):
        diagonal = np.asarray(form.W.diagonal())
        if abs(form.W - sp.diags_array(diagonal)).sum() == 0:
            return Parts(form.U.shape[0], form.scale, None, form.U, diagonal)
    return None


def sparse_adjoint(map: LinearMap, w: Array) -> Any:
    """𝒜*(w) as a sparse matrix, None where it is not one."""
    if isinstance(map, Mix):
        return sparse_adjoint(map.base, map.weights.T @ w)
    if isinstance(map, Entries | PairDistances):
        return map.adjoint_sparse(w)
    if isinstance(map, BlockEntries):
        G = 0.5 * map.matrix(np.asarray(w, dtype=float))
        return sp.csr_array(sp.block_array([[None, G], [G.T, None]]))
    return None


def _span(map: Congruence, w: Array, C: Parts) -> LowRank | None:
    """XᵀAX + C where the rows of X are few beside its columns, and C is of low rank too."""
    rows, order = map.X.shape
    inner = sparse_adjoint(map.base, w)
    columns = rows + C.columns
    if inner is None or C.sparse is not None or 2 * columns > order:
        return None
    if columns * order > SPAN_NUMBERS:
        return None
    X = map.X.toarray() if sp.issparse(map.X) else map.X
    U, W = np.asarray(X.T, dtype=float), inner
    if C.factor is not None:
        U = np.hstack([U, C.factor])
        W = sp.block_diag([inner, sp.diags_array(C.weights)], format="csr")
    return LowRank(C.scale, U, W)


def _pencil(map: WhitenedDistances, w: Array, C: SymmetricMatrix) -> SparseForm | None:
    """Rᵀ(𝒜*(w) + C)R ⪰ tI is 𝒜*(w) + C ⪰ tP, P the Laplacian of the edges that R whitens.

    Both sides are 0 on the constants, so that a point may be left out: the rest tells the whole.
    """
    known = parts_of(C.matrix) if isinstance(C, Rooted) else None
    if known is None or known.columns > BORDER:
        return None
    n = map.distances.order
    total = known + Parts(n, sparse=map.distances.adjoint_sparse(w))
    sparse = sp.csr_array(total.sparse + total.scale * sp.eye_array(n))[1:, 1:]
    unit = sp.csr_array(map.distances.adjoint_sparse(map.kept))[1:, 1:]
    factor = None if total.factor is None else total.factor[1:]
    return SparseForm(sparse, factor, total.weights, unit=unit)


def composite_errors(map: LinearMap, w: Array, C: SymmetricMatrix) -> Array:
    """e² for the dense 𝒜*(w) + C: |E| ≤ γ|X|ᵀ|A||X| ≤ γ √(h_i h_j), h = diag(Xᵀ diag(|A|1) X)."""
    base = map.base if isinstance(map, Congruence) else map
    inner = sparse_adjoint(base, w)
    if inner is None:
        return np.zeros(map.order)
    reach = np.asarray(abs(inner).sum(axis=1), dtype=float).ravel()
    longest = float(np.max(np.diff(sp.csr_array(inner).indptr), initial=1))
    if not isinstance(map, Congruence):
        return rounded_sum(longest) * reach
    rows = map.X.shape[0]
    squares = map.X.multiply(map.X) if sp.issparse(map.X) else np.square(map.X, dtype=float)
    sizes: Array = np.ravel(np.asarray(squares.T @ reach, dtype=float))
    return (rounded_sum(longest) + rounded_sum(rows)) * sizes


def quadratic_parts(L: Array, AL: Array, BL: Array, b: float | None, C: Any) -> Parts | None:
    """2AMA + BM + MB + 2C for M = LLᵀ; `b` where B = bI."""
    known = parts_of(C)
    if known is None:
        return None
    r = L.shape[1]
    if b is None:
        blocks = [AL, np.sqrt(0.5) * (BL + L), np.sqrt(0.5) * (BL - L)]
        weights = np.repeat([2.0, 1.0, -1.0], r)
    else:
        blocks, weights = [AL, L], np.repeat([2.0, 2.0 * b], r)
    return known.times(2.0) + Parts(known.order, 0.0, None, np.hstack(blocks), weights)
