"""𝒜*(w) + C as an operator: products, structure for proofs, rounding errors, coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.arrays.places import at_home, host, stored
from gramian.common.types import Array
from gramian.maps import (
    BlockEntries,
    Congruence,
    Entries,
    LinearMap,
    Mix,
    PairDistances,
    Stack,
    WhitenedDistances,
)
from gramian.maps.whitened import DenseRoot
from gramian.objectives.base import SymmetricOperator, once
from gramian.objectives.matrices import Rooted, Sparse
from gramian.objectives.parts import (
    adjoint_parts,
    composite_errors,
    composite_form,
    parts_of,
    whitened_errors,
)
from gramian.objectives.pencil import PENCIL_ORDER

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite


SEEN_NUMBERS = 5_000_000
"""Order times (terms + order) up to which coordinates in units of the data are computed, by one
singular value decomposition of the data."""

SAMPLES = 8
"""Number of random combinations of the matrices of a map that determine its null space."""

UNSEEN = 16 * float(np.finfo(float).eps)
"""Relative size of singular values, times the longer side, below which they are rounding."""


@once
def coordinates_of(objective: Composite) -> Array | None:
    """T (n × m) with M = TSTᵀ in units of the data, for small objectives on the host.

    F(M) = g(𝒜(M)) + ⟨C, M⟩ does not depend on the complement of the span of T. None if T is too
    expensive.
    """
    map, order = objective.map, objective.order
    numbers = order * (order + map.size)
    if order > PENCIL_ORDER or numbers > SEEN_NUMBERS or not objective.place.is_host:
        return None
    if isinstance(map, WhitenedDistances):
        return None
    with np.errstate(all="ignore"):
        found = seen_coordinates(map, objective.C.dense())
    return found if np.all(np.isfinite(found)) else None


def seen_coordinates(map: LinearMap, C: Array) -> Array:
    """T of a map and a linear term, which scales each direction by the data along it.

    This balances features of very different sizes. Only directions along which data and C vanish
    up to rounding are omitted.
    """
    rows, power = _rows(map)
    lengths = np.linalg.norm(rows, axis=0) ** power
    lengths = np.where(lengths > 0, lengths, np.sqrt(np.abs(np.diagonal(C))))
    lengths = np.where(lengths > 0, lengths, 1.0)
    scaled = rows / lengths if power == 1.0 else _turned(rows, lengths)
    linear = C / np.outer(lengths, lengths)
    size = float(np.linalg.norm(linear))
    stacked = np.vstack([scaled, linear / size]) if size > 0 else scaled
    _, sizes, turn = np.linalg.svd(stacked, full_matrices=False)
    seen = sizes > UNSEEN * max(stacked.shape) * sizes[0]
    return turn[seen].T * sizes[seen] ** -power / lengths[:, None]


def _rows(map: LinearMap) -> tuple[Array, float]:
    """A matrix whose null space the map ignores, and its power that scales like M^(-1/2).

    For 𝒜(M) = ℬ(XMXᵀ) this is X, shifted if ℬ is invariant to translations: power 1. Otherwise
    random combinations of the matrices A_e of the map: power 1/2.
    """
    rng = np.random.default_rng(0)
    if isinstance(map, Congruence):
        X: Any = map.X.toarray() if hasattr(map.X, "toarray") else map.X
        ones = np.ones((X.shape[0], 1))
        shifted = map.base.adjoint(rng.standard_normal(map.size), ones)
        blind = np.linalg.norm(shifted) <= UNSEEN * map.size
        return np.asarray(X - X.mean(axis=0) if blind else X, dtype=float), 1.0
    weights = rng.standard_normal((SAMPLES, map.size))
    found = np.vstack([map.adjoint_matrix(w) for w in weights])
    return found / (np.abs(found).max() or 1.0), 0.5


def _turned(rows: Array, lengths: Array) -> Array:
    """The stacked matrices A_e scaled by the lengths from both sides."""
    order = lengths.size
    return (rows.reshape(-1, order, order) / np.outer(lengths, lengths)).reshape(-1, order)


def dual_operator(objective: Composite, w: Array) -> SymmetricOperator:
    """𝒜*(w) + C for the map and the linear term of an objective."""
    w, fused = stored(w), list[Any]()

    def product(V: Array) -> Array:
        if V.ndim == 2:
            return objective.map.adjoint(w, V) + objective.C @ V
        # A Krylov method multiplies by many vectors: use one sparse matrix for all of them.
        if not fused:
            fused.append(_vector_product(objective, w))
        return fused[0](V)

    return SymmetricOperator(
        objective.order,
        product,
        lambda: objective.map.adjoint_matrix(w) + objective.C.dense(),
        lambda: _form(objective, w),
        lambda: _errors(objective, w),
        objective.place,
        lambda: coordinates_of(objective),
    )


def _errors(objective: Composite, w: Array) -> Array:
    """e² for the dense 𝒜*(w) + C."""
    map = objective.map
    if isinstance(map, WhitenedDistances) and isinstance(map.root, DenseRoot):
        return whitened_errors(map, host(w), objective.C)
    return composite_errors(map, w)


def _form(objective: Composite, w: Array) -> Any:
    """The structure of 𝒜*(w) + C, on the host except for the blocks of a completion."""
    map = objective.map
    if isinstance(map, BlockEntries) and not map.streamed:
        return composite_form(map, w, at_home(objective.C))
    return composite_form(at_home(map), host(w), at_home(objective.C))


def _vector_product(objective: Composite, w: Array) -> Callable[[Array], Array]:
    """v ↦ (𝒜*(w) + C)v, by one sparse matrix if both are sparse."""
    map, C = objective.map, objective.C
    if not objective.place.is_host:
        return _column_product(objective, w)
    if isinstance(map, Entries | PairDistances) and isinstance(C, Sparse):
        matrix = map.adjoint_sparse(w) + C.matrix
        return lambda v: matrix @ v
    if isinstance(map, WhitenedDistances) and isinstance(C, Rooted):
        return map.root.congruence(map.distances.adjoint_sparse(w), C.matrix)
    if isinstance(map, Mix | Stack):
        adjoint, linear = adjoint_parts(map, w), parts_of(C)
        if adjoint is not None and linear is not None:
            return (adjoint + linear).__matmul__
    quick = map.vector_product(w)
    if quick is not None:
        return lambda v: quick(v) + C @ v
    return _column_product(objective, w)


def _column_product(objective: Composite, w: Array) -> Callable[[Array], Array]:
    """v ↦ (𝒜*(w) + C)v, by products with matrices of one column."""
    return lambda v: objective.map.adjoint(w, v[:, None])[:, 0] + objective.C @ v
