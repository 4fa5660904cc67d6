"""An order of rows and columns that depends on the ratings alone, not on names or on their order.

Random starts, splits and sums depend on the places of rows and columns. A fit therefore works in
this order, and its answers are put back into that of the names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.completion._ratings import Ids, Ratings
from gramian.result import Result

Array = NDArray[np.floating]
Indices = NDArray[np.integer]
Words = NDArray[np.uint64]
Sides = tuple[Words, Words]
Places = tuple[slice, slice]
Features = tuple[Array | None, Array | None]

ROUNDS = 8
"""How often colours are refined at most; two or three rounds tell nearly all rows apart."""

STEPS = 2.0**20
"""Values are compared in so many steps between the least and the largest: the last digits of the
values do not change the order."""

ODD = np.uint64(0x9E3779B97F4A7C15)
MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = np.uint64(31)
"""Constants of SplitMix64 (Steele, Lea and Flood 2014)."""


@dataclass(frozen=True)
class Canonical:
    """Ratings in the canonical order, and the way back.

    Attributes
    ----------
    ratings : Ratings
        Row k is row `rows[k]` of the ratings given, and columns likewise.
    rows, cols : index arrays
    equal : (array, array)
        For each row, and for each column, the first one that has the same entries.
    """

    ratings: Ratings
    rows: Indices
    cols: Indices
    equal: tuple[Indices, Indices]

    def evened(self, result: Result, places: Places) -> Result:
        """The result with the mean of equal rows, and of equal columns, in its factor.

        Names decide the order of equal rows, and the mean does not depend on it. F at the mean is
        not larger: it is convex in the rows for given columns, and symmetric in equal rows.
        """
        factor = result.factor.copy()
        for side, where in enumerate(places):
            factor[where] = self._means(side, factor[where])
        return replace(result, factor=factor)

    def _means(self, side: int, lines: Array) -> Array:
        """The lines of rows or columns, those of equal ones their mean."""
        first = self.equal[side]
        counts = np.bincount(first, minlength=first.size)[first]
        several = np.flatnonzero(counts > 1)
        sums, found = np.zeros_like(lines), lines.copy()
        np.add.at(sums, first[several], lines[several])
        found[several] = (sums[first[several]].T / counts[several]).T
        return found

    def result(self, result: Result, places: Places) -> Result:
        """The result with its factor, and its dual vector, in the order of the names."""
        factor, dual = result.factor.copy(), result.dual
        for side, where in enumerate(places):
            factor[where] = self.restored(side, factor[where])
        if dual is not None:
            each = dual.reshape(self.ratings.values.size, -1)
            entries = np.arange(len(each), dtype=np.int32)
            dual = each[self._by_name(entries).data].reshape(dual.shape)
        return replace(result, factor=factor, dual=dual)

    def restored(self, side: int, lines: NDArray[Any]) -> NDArray[Any]:
        """Lines of rows (side 0) or columns (side 1) in the order of the names."""
        found = np.empty_like(lines)
        found[(self.rows, self.cols)[side]] = lines
        return found

    def offsets(self, side: int, lines: Array) -> Array:
        """Offsets in the order of the names, those of equal rows or columns their mean."""
        return self.restored(side, self._means(side, lines))

    def names(self, side: int) -> Ids:
        """The names of rows or columns, in their own order."""
        ids = (self.ratings.row_ids, self.ratings.col_ids)[side]
        return Ids(self.restored(side, ids.names))

    def known(self) -> sp.csr_array:
        """The matrix of the ratings in the order of the names."""
        return self._by_name(self.ratings.values)

    def _by_name(self, entries: NDArray[Any]) -> sp.csr_array:
        cols, rows = self.cols[self.ratings.cols], _inverse(self.rows)
        return _reordered(entries, cols, self.ratings.starts, rows, self.ratings.shape)


def canonical(ratings: Ratings, features: Features = (None, None)) -> Canonical:
    """Ratings with rows and columns in the order of their colours, those of one colour by name.

    Colour refinement cannot tell rows of the same colour apart: they have the same values in
    columns of the same colours, which nearly always means in the same columns.
    """
    start = _of_features(features[0], ratings.shape[0]), _of_features(features[1], ratings.shape[1])
    colours, count = start, 0
    for _ in range(ROUNDS):
        colours = _refined(ratings, start, colours)
        last, count = count, sum(np.unique(side).size for side in colours)
        if count in (last, sum(ratings.shape)):
            break
    rows, cols = (np.argsort(side, kind="stable").astype(np.int32) for side in colours)
    placed = _placed(ratings, rows, cols)
    equal: Any = tuple(np.arange(size) for size in placed.shape)
    if count < sum(ratings.shape):
        equal = _equal(placed, (start[0][rows], start[1][cols]))
    return Canonical(placed, rows, cols, equal)


def _refined(ratings: Ratings, start: Sides, colours: Sides) -> Sides:
    """Colours by the values of rows and columns, and the colours that they meet there.

    Sums of whole numbers modulo 2⁶⁴ do not depend on the order of the ratings.
    """
    by_row, by_col = start[0].copy(), start[1].copy()
    low = float(ratings.values.min())
    span = 0.0 if ratings.flat else float(ratings.values.max()) - low
    heaviest = 1.0 if ratings.weights is None else float(ratings.weights.max())
    for part in ratings.parts():
        rows, cols = ratings.rows[part], ratings.cols[part]
        told = _mixed(_stepped(ratings.values[part] - low, span))
        if ratings.weights is not None:
            told = _mixed(told + _stepped(ratings.weights[part], heaviest))
        np.add.at(by_row, rows, _mixed(told + colours[1][cols]))
        np.add.at(by_col, cols, _mixed(told + colours[0][rows]))
    return by_row, by_col


def _equal(placed: Ratings, start: Sides) -> tuple[Indices, Indices]:
    """For each row and each column the first one that has the same entries and features."""
    m, n = placed.shape
    places = _mixed(np.arange(m, dtype=np.uint64)), _mixed(np.arange(n, dtype=np.uint64))
    found = [
        np.unique(words, return_index=True, return_inverse=True)
        for words in _refined(placed, start, places)
    ]
    rows, cols = (first[inverse.ravel()] for _, first, inverse in found)
    return rows, cols


def _of_features(features: Array | None, size: int) -> Words:
    """The first colours of rows that have features; 0 where there are none."""
    found = np.zeros(size, dtype=np.uint64)
    if features is not None:
        largest = float(np.max(np.abs(features), initial=0.0))
        for column in features.T:
            found = _mixed(found + _stepped(column, largest))
    return found


def _stepped(values: Array, size: float) -> Words:
    """Whole numbers for values of at most that size."""
    if size == 0.0:
        return np.zeros(values.shape, dtype=np.uint64)
    return np.rint(values / size * STEPS).astype(np.int64).view(np.uint64)


def _mixed(words: Words) -> Words:
    """A hash of 64 bits for each."""
    found = (words + ODD) * ODD
    for shift, factor in MIXERS:
        found ^= found >> np.uint64(shift)
        found *= np.uint64(factor)
    found ^= found >> LAST_SHIFT
    return found


def _placed(ratings: Ratings, rows: Indices, cols: Indices) -> Ratings:
    """The ratings with rows and columns in another order."""
    places = _inverse(cols)[ratings.cols]

    def turned(each: Array) -> sp.csr_array:
        return _reordered(each, places, ratings.starts, rows, ratings.shape)

    values = turned(ratings.values)
    return Ratings(
        np.repeat(np.arange(rows.size, dtype=np.int32), np.diff(values.indptr)),
        values.indices,
        values.data,
        Ids(ratings.row_ids.names[rows]),
        Ids(ratings.col_ids.names[cols]),
        None if ratings.weights is None else turned(ratings.weights).data,
    )


def _reordered(
    entries: NDArray[Any],
    cols: Indices,
    starts: Indices,
    rows: Indices,
    shape: tuple[int, int],
) -> sp.csr_array:
    """A matrix of entries in these columns with its rows in another order, sorted by columns."""
    found = sp.csr_array((entries, cols, starts), shape=shape)[rows]
    found.sort_indices()
    return found


def _inverse(order: Indices) -> Indices:
    places = np.empty_like(order)
    places[order] = np.arange(order.size, dtype=order.dtype)
    return places
