"""Gradients as sums of a multiple of I, a sparse and a low-rank part, for proofs and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.arrays.places import at_home, host
from gramian.common.types import Array
from gramian.maps import (
    BlockEntries,
    Congruence,
    Entries,
    GroundedDistances,
    LinearMap,
    Mix,
    PairDistances,
    Squares,
    Stack,
    WhitenedDistances,
)
from gramian.objectives.matrices import (
    BORDER,
    GramOperator,
    MatrixSum,
    Rooted,
    Scaled,
    SparsePlusLowRank,
    SymmetricMatrix,
)
from gramian.proofs import Bipartite, LowRank, SparseForm, rounded_sum

SPAN_NUMBERS = 100_000_000
"""Largest size of the dense factor of a low-rank part: 0.8 GB."""


def parts_of(matrix: SymmetricMatrix) -> SparsePlusLowRank | None:
    """The parts of a symmetric matrix, None if unknown."""
    if isinstance(matrix, SparsePlusLowRank):
        return matrix
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


def _gram_parts(matrix: GramOperator) -> SparsePlusLowRank | None:
    rows, order = matrix.X.shape
    if 2 * rows > order or rows * order > SPAN_NUMBERS:
        return None
    X = matrix.X.toarray() if sp.issparse(matrix.X) else matrix.X
    weights = np.ones(rows) if matrix.weights is None else matrix.weights
    return SparsePlusLowRank(order, 0.0, None, np.asarray(X.T, dtype=float), matrix.scale * weights)


def adjoint_parts(map: LinearMap, w: Array) -> SparsePlusLowRank | None:
    """The parts of 𝒜*(w), None if unknown."""
    if isinstance(map, Mix):
        return adjoint_parts(map.base, map.weights.T @ w)
    if isinstance(map, Squares):
        return SparsePlusLowRank(map.order, factor=map.vectors, weights=np.asarray(w, dtype=float))
    if isinstance(map, Stack):
        total: SparsePlusLowRank | None = SparsePlusLowRank(map.order)
        for inner, part in map.split(w):
            known = adjoint_parts(inner, part)
            total = None if total is None or known is None else total + known
        return total
    if isinstance(map, Entries | PairDistances):
        return SparsePlusLowRank(map.order, sparse=map.adjoint_sparse(w))
    if isinstance(map, BlockEntries):
        G = 0.5 * map.matrix(np.asarray(w, dtype=float))
        return SparsePlusLowRank(
            map.order, sparse=sp.csr_array(sp.block_array([[None, G], [G.T, None]]))
        )
    return None


def rounding_of_parts(parts: SparsePlusLowRank) -> Array:
    """e² with |E_ij| ≤ e_i e_j for the rounding errors E of the sum of the parts as one matrix.

    |E| ≤ γ|S| ≤ γ diag(|S|1) for the sparse one, and |U||ω||U|ᵀ ≤ h_i h_j with h² = U²|ω|.
    """
    sums, longest = parts.absolute_sums()
    low = parts.factor**2 @ np.abs(parts.weights)
    return rounded_sum(longest) * sums + rounded_sum(parts.columns + 2) * low


def connected_parts(rows: Any, cols: Any, order: int) -> Array:
    """Normalised indicator vectors of the connected components of a graph, as columns."""
    links = sp.coo_array((np.ones(len(rows)), (rows, cols)), shape=(order, order))
    count, part = sp.csgraph.connected_components(links, directed=False)
    columns = (part[:, None] == np.arange(count)).astype(float)
    return columns / np.sqrt(columns.sum(axis=0))


def composite_form(map: LinearMap, w: Array, C: SymmetricMatrix) -> Any:
    """The structure of 𝒜*(w) + C."""
    if isinstance(map, WhitenedDistances) and not isinstance(map, GroundedDistances):
        return _pencil(map, w, C)
    known = parts_of(C)
    if known is None:
        return None
    if isinstance(map, GroundedDistances):
        if known.sparse is not None or known.columns:
            return None
        # RᵀAR + cI ⪰ tI is A + cP ⪰ tP, RᵀPR = I.
        laplacian = sp.csr_array(map.distances.adjoint_sparse(w)[1:, 1:])
        return SparseForm(laplacian + known.scale * map.unit, unit=map.unit)
    if isinstance(map, BlockEntries) and known.sparse is None and known.columns == 0:
        return Bipartite(known.scale, map.matrix(w), share=0.5)
    if isinstance(map, Congruence):
        return _span(map, w, known)
    adjoint = adjoint_parts(map, w)
    return None if adjoint is None else (known + adjoint).form()


def joined_form(order: int, forms: Sequence[Any]) -> Any:
    """The structure of a sum of matrices, None if one of them has none."""
    if all(isinstance(form, Bipartite) for form in forms):
        return Bipartite(sum(form.scale for form in forms), sum(form.B for form in forms))
    known = [_form_parts(form) for form in forms]
    joined = SparsePlusLowRank(order)
    for part in known:
        if part is None:
            return None
        joined = joined + part
    return joined.form()


def _form_parts(form: Any) -> SparsePlusLowRank | None:
    if isinstance(form, SparseForm) and form.plain:
        return SparsePlusLowRank(form.order, 0.0, form.S, form.U, form.weights)
    if isinstance(form, Bipartite):
        sparse = sp.block_array([[None, form.B], [form.B.T, None]], format="csr")
        return SparsePlusLowRank(sum(form.B.shape), form.scale, sparse)
    if isinstance(form, LowRank):
        diagonal = np.asarray(form.W.diagonal())
        if abs(form.W - sp.diags_array(diagonal)).sum() == 0:
            return SparsePlusLowRank(form.U.shape[0], form.scale, None, form.U, diagonal)
    return None


def _span(map: Congruence, w: Array, C: SparsePlusLowRank) -> LowRank | None:
    """XᵀAX + C if X has far fewer rows than columns and C has low rank."""
    rows, order = map.X.shape
    adjoint = adjoint_parts(map.base, w)
    inner = None if adjoint is None or adjoint.columns else adjoint.sparse
    columns = rows + C.columns
    if inner is None or C.sparse is not None or 2 * columns > order:
        return None
    if columns * order > SPAN_NUMBERS:
        return None
    X = map.X.toarray() if sp.issparse(map.X) else map.X
    U, W = np.asarray(X.T, dtype=float), inner
    if C.columns:
        U = np.hstack([U, C.factor])
        W = sp.block_diag([inner, sp.diags_array(C.weights)], format="csr")
    return LowRank(C.scale, U, W)


def _pencil(map: WhitenedDistances, w: Array, C: SymmetricMatrix) -> SparseForm | None:
    """Rᵀ(𝒜*(w) + C)R ⪰ tI is 𝒜*(w) + C ⪰ tP, P the Laplacian of the edges that R whitens.

    Both sides are 0 on the constants, so that one point can be omitted.
    """
    known = parts_of(at_home(C.matrix)) if isinstance(C, Rooted) else None
    if known is None or known.columns > BORDER:
        return None
    n = map.distances.order
    total = known + SparsePlusLowRank(n, sparse=map.distances.adjoint_sparse(w))
    sparse = sp.csr_array(total.sparse + total.scale * sp.eye_array(n))[1:, 1:]
    unit = sp.csr_array(map.distances.adjoint_sparse(map.kept))[1:, 1:]
    return SparseForm(sparse, total.factor[1:], total.weights, unit=unit)


def composite_errors(map: LinearMap, w: Array) -> Array:
    """e² for the dense 𝒜*(w) + C: |E| ≤ γ|X|ᵀ|A||X| ≤ γ √(h_i h_j), h = diag(Xᵀ diag(|A|1) X)."""
    if not isinstance(map, Congruence):
        parts = adjoint_parts(at_home(map), host(w))
        return np.zeros(map.order) if parts is None else rounding_of_parts(parts)
    known = map.base.reach(w)
    if known is None:
        parts = adjoint_parts(at_home(map.base), host(w))
        if parts is None:
            return np.zeros(map.order)
        reach, longest = parts.reach()
        known = map.place.put(reach), longest
    return (rounded_sum(known[1]) + rounded_sum(map.X.shape[0])) * map.spread(known[0])


def whitened_errors(map: WhitenedDistances, w: Array, C: SymmetricMatrix) -> Array:
    """e² for the dense RᵀAR with A = 𝒜*(w) + C: |E| ≤ γ|R|ᵀ|A||R|, h = diag(Rᵀ diag(|A|1) R).

    If the parts of C are unknown, it proves nothing.
    """
    known = parts_of(at_home(C.matrix)) if isinstance(C, Rooted) else None
    if known is None:
        return np.full(map.order, np.inf)
    distances = at_home(map.distances)
    whole = known + SparsePlusLowRank(distances.order, sparse=distances.adjoint_sparse(w))
    reach, longest = whole.reach()
    reach += abs(whole.scale)
    inverse = map.root.inverse
    sizes = host((inverse * inverse) @ map.place.put(reach[1:]))
    return (rounded_sum(longest) + 2 * rounded_sum(map.order)) * sizes


def quadratic_parts(
    L: Array, AL: Array, BL: Array, b: float | None, C: Any
) -> SparsePlusLowRank | None:
    """2AMA + BM + MB + 2C for M = LLᵀ; `b` if B = bI."""
    known = parts_of(C)
    if known is None:
        return None
    r = L.shape[1]
    if b is None:
        blocks = [AL, np.sqrt(0.5) * (BL + L), np.sqrt(0.5) * (BL - L)]
        weights = np.repeat([2.0, 1.0, -1.0], r)
    else:
        blocks, weights = [AL, L], np.repeat([2.0, 2.0 * b], r)
    return known.times(2.0) + SparsePlusLowRank(known.order, 0.0, None, np.hstack(blocks), weights)
