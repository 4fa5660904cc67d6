"""The matrices A_k of a map as rows of a sparse matrix, if these are sparse or small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.common.types import Indices
from gramian.linalg.svec import triangle
from gramian.maps.base import LinearMap
from gramian.maps.matrices import Squares
from gramian.maps.mix import Mix
from gramian.maps.pairs import Entries, PairDistances
from gramian.maps.stack import Stack

MAX_NUMBERS = 30_000_000
"""Largest number of entries: 0.4 GB with their indices."""

MAX_DENSE_ORDER = 120
"""Order up to which a map without a sparse form is evaluated entry by entry."""


@dataclass(frozen=True)
class Rows:
    """The rows vec(A_k) of 𝒜(M)_k = ⟨A_k, M⟩, without columns that are zero in all A_k."""

    matrix: sparse.csr_array
    """(m × e)"""
    places: NDArray[np.int64]
    """The index i·n + j of each column in vec, ascending; contains (j, i) if it contains (i, j)."""
    order: int

    @classmethod
    def of(
        cls, k: Indices, place: Indices, values: NDArray[np.floating], shape: tuple[int, int]
    ) -> Rows:
        """From the row, the index in vec and the value of every entry."""
        places, column = np.unique(place, return_inverse=True)
        m, n = shape
        matrix = sparse.coo_array((values, (k, column)), shape=(m, places.size))
        return cls(sparse.csr_array(matrix), places.astype(np.int64), n)

    def whole(self) -> sparse.csr_array:
        """The same matrix with all n² columns."""
        entries = sparse.coo_array(self.matrix)
        flat = (entries.coords[0], self.places[entries.coords[1]])
        shape = (self.matrix.shape[0], self.order**2)
        return sparse.csr_array(sparse.coo_array((entries.data, flat), shape=shape))

    @property
    def diagonal(self) -> NDArray[np.bool_]:
        """Mask of the columns of diagonal entries."""
        return self.places % (self.order + 1) == 0


def rows_of(map: LinearMap) -> Rows | None:
    """The matrices of a map, None if they are too large."""
    n, every = map.order, np.arange(map.size)
    if isinstance(map, Mix):
        base = rows_of(map.base)
        if base is None:
            return None
        return Rows(sparse.csr_array(map.weights @ base.matrix), base.places, n)
    if isinstance(map, Stack):
        return _stacked(map)
    if isinstance(map, Entries):
        return _symmetric(every, map.rows, map.cols, np.ones(map.size), (map.size, n))
    if isinstance(map, PairDistances):
        i, j = map.rows, map.cols
        ends = (np.concatenate([i, j, i]), np.concatenate([i, j, j]))
        weights = np.repeat([1.0, 1.0, -2.0], map.size)
        return _symmetric(np.tile(every, 3), *ends, weights, (map.size, n))
    if isinstance(map, Squares):
        return _squares(map)
    if n > MAX_DENSE_ORDER:
        return None
    above, right, scale = triangle(n)
    columns = map.columns(np.eye(n)) * scale
    k, e = np.nonzero(columns)
    return _symmetric(k, above[e], right[e], columns[k, e], (map.size, n))


def _stacked(map: Stack) -> Rows | None:
    k, places, values, first = [], [], [], 0
    for inner in map.maps:
        rows = rows_of(inner)
        if rows is None:
            return None
        entries = sparse.coo_array(rows.matrix)
        k.append(entries.coords[0] + first)
        places.append(rows.places[entries.coords[1]])
        values.append(entries.data)
        first += inner.size
    if not values:
        return Rows(sparse.csr_array((0, 0)), np.zeros(0, dtype=np.int64), map.order)
    whole = np.concatenate(k), np.concatenate(places), np.concatenate(values)
    return Rows.of(*whole, (map.size, map.order))


def _squares(map: Squares) -> Rows | None:
    live = [np.flatnonzero(v) for v in map.vectors.T]
    if sum(rows.size**2 for rows in live) > MAX_NUMBERS:
        return None
    n = map.order
    places = [(rows[:, None].astype(np.int64) * n + rows).ravel() for rows in live]
    values = [
        np.outer(v[rows], v[rows]).ravel() for v, rows in zip(map.vectors.T, live, strict=True)
    ]
    k = np.repeat(np.arange(map.size), [part.size for part in places])
    return Rows.of(k, np.concatenate(places), np.concatenate(values), (map.size, n))


def _symmetric(
    k: Indices, i: Indices, j: Indices, values: NDArray[np.floating], shape: tuple[int, int]
) -> Rows:
    """½(e_i e_jᵀ + e_j e_iᵀ) times `values`, in row k."""
    n, off = shape[1], i != j
    halves = np.where(off, 0.5, 1.0) * values
    there = i.astype(np.int64) * n + j
    back = j[off].astype(np.int64) * n + i[off]
    places = np.concatenate([there, back])
    return Rows.of(
        np.concatenate([k, k[off]]), places, np.concatenate([halves, halves[off]]), shape
    )
