"""An order of rows and columns that depends on the ratings alone, not on ids or on their order.

Random starts, splits and sums depend on the positions of rows and columns. A fit therefore works in
this order, and its results are put back into the order of the ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.cpu import index_array, taken
from gramian.arrays.entries import NO_VALUES, Lines, are_many, hashed, permuted
from gramian.common.types import Array, Indices
from gramian.completion._ratings import Ids, Ratings
from gramian.result import Result

Words = NDArray[np.uint64]
Sides = tuple[Words, Words]

VALUE_STEPS = 2.0**20
"""Number of steps between the least and the largest value in which values are compared, so that
rounding errors of the values do not change the order."""

HASHED = 2**15
"""Entries hashed at a time: their words stay in the cache, which halves the time."""


@dataclass(frozen=True)
class Canonical:
    """Ratings in the canonical order, and the order of their ids.

    Row k is row `order[0][k]` of the ratings given, and columns likewise.
    """

    ratings: Ratings
    order: tuple[Indices, Indices]
    equal: tuple[Indices, Indices]
    """For each row, and for each column, the first one that has the same entries."""

    @property
    def _lines(self) -> tuple[slice, slice]:
        """The lines of rows and of columns in a factor; each are followed by those of features."""
        m, n = self.ratings.shape
        features = self.ratings.features[0]
        start = m if features is None else m + features.shape[1]
        return slice(0, m), slice(start, start + n)

    def averaged(self, result: Result) -> Result:
        """The result with the mean of equal rows, and of equal columns, in its factor.

        The order of equal rows depends on their ids, and the mean does not. F at the mean is not
        larger: F is convex in the rows for given columns, and symmetric in equal rows.
        """
        factor = result.factor.copy()
        for side, lines in enumerate(self._lines):
            factor[lines] = self._means(side, factor[lines])
        return replace(result, factor=factor)

    def _means(self, side: int, lines: Array) -> Array:
        """The lines of rows or columns, with the mean of those that are equal."""
        first = self.equal[side]
        counts = np.bincount(first, minlength=first.size)[first]
        several = np.flatnonzero(counts > 1)
        sums, found = np.zeros_like(lines), lines.copy()
        np.add.at(sums, first[several], lines[several])
        found[several] = (sums[first[several]].T / counts[several]).T
        return found

    def result(self, result: Result) -> Result:
        """The result with its factor, and its dual vector, in the order of the ids."""
        factor, dual = result.factor.copy(), result.dual
        for side, lines in enumerate(self._lines):
            factor[lines] = self.restored(side, factor[lines])
        if dual is not None:
            each = dual.reshape(self.ratings.values.size, -1)
            dual = taken(each, self._by_id[2]).reshape(dual.shape)
        return replace(result, factor=factor, dual=dual)

    def restored(self, side: int, lines: NDArray[Any]) -> NDArray[Any]:
        """Lines of rows (side 0) or columns (side 1) in the order of the ids."""
        return lines[np.argsort(self.order[side])]

    def offsets(self, side: int, lines: Array) -> Array:
        """Offsets in the order of the ids, with the mean of equal rows or columns."""
        return self.restored(side, self._means(side, lines))

    def ids(self, side: int) -> Ids:
        """The ids of rows or columns, in their own order."""
        return Ids(self.restored(side, self.ratings.ids(side).names))

    def known(self) -> sp.csr_array:
        """The matrix of the ratings in the order of the ids."""
        starts, cols, order = self._by_id
        values = taken(self.ratings.values, order)
        return sp.csr_array((values, cols, starts), shape=self.ratings.shape)

    @cached_property
    def _by_id(self) -> Lines:
        """The start of each row, the columns and the indices of the entries in the order of ids."""
        rows, cols = self.order
        source, back = (self.ratings.starts, self.ratings.cols), index_array(np.argsort(rows))
        return permuted(source, back, cols, cols.size)


def canonical(ratings: Ratings) -> Canonical:
    """Ratings with rows and columns in the order of their colours, those of one colour by id.

    Rows of the same colour have the same values in columns of the same colours, which nearly always
    means in the same columns. Colour refinement cannot tell them apart. Two or three rounds
    separate nearly all rows; as many are allowed as the number of rows and columns has bits.
    """
    first, second = (_of_features(each, size) for each, size in zip(
        ratings.features, ratings.shape, strict=True
    ))  # fmt: skip
    colours, count, order = (first, second), 0, sum(ratings.shape)
    for _ in range(order.bit_length()):
        colours = _refined(ratings, (first, second), colours)
        last, count = count, sum(np.unique(side).size for side in colours)
        if count in (last, order):
            break
    rows, cols = (np.argsort(side, kind="stable").astype(np.int32) for side in colours)
    placed = _placed(ratings, rows, cols)
    equal: Any = tuple(np.arange(size) for size in placed.shape)
    if count < order:
        equal = _equal(placed, (first[rows], second[cols]))
    return Canonical(placed, (rows, cols), equal)


def _refined(ratings: Ratings, start: Sides, colours: Sides) -> Sides:
    """Colours of rows by their values and the colours of their columns, and vice versa.

    Sums of integers modulo 2⁶⁴ do not depend on the order of the ratings.
    """
    low = float(ratings.values.min())
    span = 0.0 if ratings.flat else float(ratings.values.max()) - low
    heaviest = 1.0 if ratings.weights is None else float(ratings.weights.max())
    if are_many(ratings.cols):
        weights = NO_VALUES if ratings.weights is None else ratings.weights
        more = hashed(
            ratings.starts, ratings.cols, (ratings.values, weights),
            (VALUE_STEPS, low, span, heaviest), colours,
        )  # fmt: skip
        return start[0] + more[0], start[1] + more[1]
    by_row, by_col = start[0].copy(), start[1].copy()
    for part in ratings.parts(HASHED):
        rows, cols = ratings.rows[part], ratings.cols[part]
        words = _mixed(_stepped(ratings.values[part] - low, span))
        if ratings.weights is not None:
            words = _mixed(words + _stepped(ratings.weights[part], heaviest))
        np.add.at(by_row, rows, _mixed(words + colours[1][cols]))
        np.add.at(by_col, cols, _mixed(words + colours[0][rows]))
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
    """The first colours of rows with features; 0 without any."""
    found = np.zeros(size, dtype=np.uint64)
    if features is not None:
        largest = float(np.max(np.abs(features), initial=0.0))
        for column in features.T:
            found = _mixed(found + _stepped(column, largest))
    return found


def _stepped(values: Array, size: float) -> Words:
    """Integers for values of at most that size."""
    if size == 0.0:
        return np.zeros(values.shape, dtype=np.uint64)
    return np.rint(values / size * VALUE_STEPS).astype(np.int64).view(np.uint64)


def _mixed(words: Words) -> Words:
    """A hash of 64 bits for each word: SplitMix64 (Steele, Lea and Flood 2014)."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    found = (words + odd) * odd
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found ^= found >> np.uint64(shift)
        found *= np.uint64(factor)
    found ^= found >> np.uint64(31)
    return found


def _placed(ratings: Ratings, rows: Indices, cols: Indices) -> Ratings:
    """The ratings with rows and columns in another order."""
    source, places = (ratings.starts, ratings.cols), index_array(np.argsort(cols))
    starts, columns, order = permuted(source, rows, places, cols.size)
    of_rows, of_cols = ratings.features
    return Ratings(
        np.repeat(np.arange(rows.size, dtype=np.int32), np.diff(starts)),
        columns,
        taken(ratings.values, order),
        Ids(ratings.row_ids.names[rows]),
        Ids(ratings.col_ids.names[cols]),
        None if ratings.weights is None else taken(ratings.weights, order),
        (None if of_rows is None else of_rows[rows], None if of_cols is None else of_cols[cols]),
    )
