"""Coordinates of a small M in which F has similar curvature, without directions it ignores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian.maps import Congruence, LinearMap, WhitenedDistances
from gramian.objectives.base import once
from gramian.objectives.pencil import PENCIL_ORDER

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite

Array = NDArray[np.floating]

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
    T: Array = turn[seen].T * sizes[seen] ** -power / lengths[:, None]
    return T


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
