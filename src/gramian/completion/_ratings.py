"""Ratings as people have them: triples, a sparse matrix, a frame, a table with gaps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from gramian._samples import check_size, refuse_masked
from gramian.backends.cpu import counting_sort, index_array
from gramian.completion._checks import checked_weights, refuse_missing, refuse_values
from gramian.completion._frames import is_frame, rating_columns
from gramian.storage import storable

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

DUPLICATES = ("error", "mean", "sum", "last")

CHUNK = 2**18
"""Entries of a block."""

DENSE_NAMES = 4
"""Whole numbers within so many times as many as are given are looked up in a table."""

ROUNDING = 1e-13
"""Values that differ by less than this part of the largest are the same."""

COMPARED = {"i": "iuf", "u": "iuf", "f": "iuf", "U": "U"}
"""Kinds of names that are ordered together."""


@storable
@dataclass(frozen=True)
class Ids:
    """The names of rows or columns, any that can be compared for equality."""

    names: NDArray[Any]

    @classmethod
    def of(cls, given: NDArray[Any]) -> tuple[Ids, Indices]:
        """The distinct names, and the place of each given one among them."""
        if given.dtype.kind in "iu" and given.size:
            first, last = int(given.min()), int(given.max())
            if last - first <= DENSE_NAMES * given.size and max(last, -first) < 2**62:
                return cls._of_dense(given, first, last)
        try:
            names, place = np.unique(given, return_inverse=True)
        except TypeError:  # names that cannot be ordered
            order: dict[Any, int] = {}
            place = np.fromiter((order.setdefault(g, len(order)) for g in given), int, len(given))
            names = np.empty(len(order), dtype=object)
            names[:] = list(order)
        return cls(names), place.ravel()

    @classmethod
    def _of_dense(cls, given: NDArray[Any], first: int, last: int) -> tuple[Ids, Indices]:
        """The same for whole numbers that leave few gaps, by a table of them."""
        kind: Any = np.int32 if max(last, -first) < 2**30 else np.int64
        offsets: Any = given.astype(kind, copy=False) - kind(first)
        present = np.zeros(last - first + 1, dtype=bool)
        present[offsets] = True
        places = np.cumsum(present, dtype=np.int32) - np.int32(1)
        names = (np.flatnonzero(present) + first).astype(given.dtype)
        return cls(names), places[offsets]

    @classmethod
    def counted(cls, size: int) -> Ids:
        """0, 1, …"""
        return cls(np.arange(size))

    def find(self, given: ArrayLike) -> Indices:
        """The place of each name, −1 where it is unknown."""
        asked = np.asarray(given).ravel()
        if self.names.dtype.kind in COMPARED.get(asked.dtype.kind, ""):
            place = np.minimum(np.searchsorted(self.names, asked), len(self) - 1)
            return np.where(self.names[place] == asked, place, -1)
        return np.fromiter((self._places.get(g, -1) for g in asked.tolist()), int, asked.size)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {name: place for place, name in enumerate(self.names.tolist())}

    def __len__(self) -> int:
        return int(self.names.size)


@dataclass(frozen=True)
class Ratings:
    """Entries (i, j) of an m × n matrix, sorted by row and column, each once."""

    rows: Indices
    cols: Indices
    values: Array
    row_ids: Ids
    col_ids: Ids
    weights: Array | None = None
    """What each counts; 1 unless told."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_ids), len(self.col_ids)

    @property
    def flat(self) -> bool:
        """Whether all values are the same but for rounding: offsets describe them alone."""
        low, high = float(self.values.min()), float(self.values.max())
        return high - low <= ROUNDING * max(abs(low), abs(high))

    def counts(self, side: int) -> Indices:
        """How many entries each row has (side 0), or each column (side 1)."""
        index, found = (self.rows, self.cols)[side], np.zeros(self.shape[side], dtype=np.int64)
        for part in self.parts():
            found += np.bincount(index[part], minlength=found.size)
        return found

    def parts(self) -> list[slice]:
        """Blocks of entries: sums over them make no array of the length of all."""
        return [slice(start, start + CHUNK) for start in range(0, self.values.size, CHUNK)]

    @property
    def starts(self) -> Indices:
        """Where the entries of each row begin, and the last of them end."""
        return index_array(np.searchsorted(self.rows, np.arange(self.shape[0] + 1)))

    @cached_property
    def matrix(self) -> sp.csr_array:
        return sp.csr_array((self.values, self.cols, self.starts), shape=self.shape)

    def part(self, kept: NDArray[np.bool_]) -> Ratings:
        """Some of them, of the same rows and columns."""
        weights = None if self.weights is None else self.weights[kept]
        entries = self.rows[kept], self.cols[kept], self.values[kept]
        return Ratings(*entries, self.row_ids, self.col_ids, weights)


def gather(X: Any, *, duplicates: str = "error", weights: Any = None) -> Ratings:
    """Ratings from (row, col, value) arrays, a frame of such columns, or a matrix with gaps.

    `weights` has one number for each rating, or for each row of a matrix.
    """
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {DUPLICATES}, got {duplicates!r}")
    if isinstance(X, np.ma.MaskedArray):
        return _from_matrix(matrix_of(_with_gaps(X)), duplicates, weights)
    if is_frame(X):
        places = rating_columns(X)
        assert places is not None
        return _from_triples([np.asarray(X.iloc[:, k]) for k in places], duplicates, weights)
    if isinstance(X, tuple):
        if len(X) != 3:
            raise ValueError(f"pass (rows, cols, values), three arrays; got {len(X)}")
        for part, name in zip(X, ("rows", "cols", "values"), strict=True):
            refuse_masked(part, name)
        return _from_triples([np.asarray(part) for part in X], duplicates, weights)
    return _from_matrix(matrix_of(X), duplicates, weights)


def _with_gaps(X: np.ma.MaskedArray[Any, Any]) -> Array:
    """NaN where a masked array is masked."""
    if X.dtype.kind not in "iufb":
        raise ValueError(f"ratings must be numbers, got {X.dtype}")
    gaps = np.array(X.data, dtype=X.dtype if X.dtype.kind == "f" else float)
    gaps[np.ma.getmaskarray(X)] = np.nan
    return gaps


def matrix_of(X: Any) -> Any:
    """A sparse matrix of what is known, or a dense one with NaN where nothing is."""
    if sp.issparse(X):
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"the matrix of ratings must have rows and columns, got {X.shape}")
        coo = sp.coo_array(X)
        refuse_values(np.asarray(coo.data))
        return coo
    return check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")


def _from_triples(triples: list[NDArray[Any]], duplicates: str, weights: Any) -> Ratings:
    rows, cols, values = triples
    if not rows.ndim == cols.ndim == values.ndim == 1:
        raise ValueError("rows, cols and values must be one-dimensional")
    if not rows.size == cols.size == values.size:
        raise ValueError(
            f"rows, cols and values must be as many: {rows.size}, {cols.size} and {values.size}"
        )
    if rows.size == 0:
        raise ValueError("there are no ratings")
    refuse_missing(rows, "row")
    refuse_missing(cols, "column")
    row_ids, i = Ids.of(rows)
    col_ids, j = Ids.of(cols)
    omega = None if weights is None else checked_weights(weights, rows.size)
    return _sorted(i, j, refuse_values(values), row_ids, col_ids, duplicates, omega)


def _from_matrix(X: Any, duplicates: str, weights: Any) -> Ratings:
    m, n = X.shape
    if sp.issparse(X):
        i, j = X.coords
        values = np.asarray(X.data, dtype=float)
    else:
        i, j = np.nonzero(~np.isnan(X))
        values = X[i, j].astype(float)
    if values.size == 0:
        raise ValueError("there are no ratings: every entry of the matrix is missing")
    omega = None if weights is None else checked_weights(weights, m)[i]
    return _sorted(i, j, values, Ids.counted(m), Ids.counted(n), duplicates, omega)


def _sorted(
    i: Indices,
    j: Indices,
    values: Array,
    row_ids: Ids,
    col_ids: Ids,
    duplicates: str,
    weights: Array | None,
) -> Ratings:
    """The entries by row and column; one that comes twice as `duplicates` says.

    Those without weight are left out, and their rows and columns stay.
    """
    check_size(values, "the ratings", least=0.0)
    if weights is not None and not weights.all():
        live = weights > 0
        i, j, values, weights = i[live], j[live], values[live], weights[live]
    i, j = index_array(i), index_array(j)
    order = None if _in_order(i, j) else by_row(i, j, len(row_ids), len(col_ids))
    # Copies in any case: what is done to the arrays that were given must not change a model.
    i, j, values = _taken(i, order), _taken(j, order), _taken(values, order)
    weights = None if weights is None else _taken(weights, order)
    new = np.concatenate([[True], (i[1:] != i[:-1]) | (j[1:] != j[:-1])])
    if not new.all():
        first = np.flatnonzero(new)
        if duplicates == "error":
            _refuse_repeated(i, j, first, row_ids, col_ids)
        values, weights = merged(values, weights, first, duplicates)
        i, j = i[first], j[first]
    return Ratings(i, j, values, row_ids, col_ids, weights)


def _taken(each: Any, order: Indices | None) -> Any:
    return each.copy() if order is None else each[order]


def _in_order(i: Indices, j: Indices) -> bool:
    """Whether each entry comes after the one before it, or is the same."""
    later = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] >= j[:-1]))
    return bool(later.all())


def by_row(i: Indices, j: Indices, m: int, n: int) -> Indices:
    """The order by row and then column, of equals the first first, in linear time."""
    rows, (_, by_column) = index_array(i), counting_sort(index_array(j), n)
    return by_column[counting_sort(rows[by_column], m)[1]]


def merged(
    values: Array, weights: Array | None, first: Indices, duplicates: str
) -> tuple[Array, Array | None]:
    """One value, and one weight, for each run of equal entries that begins at `first`."""
    if duplicates == "last":
        ends = np.append(first[1:], values.size) - 1
        return values[ends], None if weights is None else weights[ends]
    shares = np.ones_like(values) if weights is None else weights
    totals = np.add.reduceat(shares, first)
    if duplicates == "sum":
        sums = np.add.reduceat(values, first)
        counts = np.diff(np.append(first, values.size))
        return sums, None if weights is None else totals / counts
    means = np.add.reduceat(shares * values, first) / totals
    return means, None if weights is None else totals


def _refuse_repeated(i: Indices, j: Indices, first: Indices, row_ids: Ids, col_ids: Ids) -> None:
    counts = np.diff(np.append(first, i.size))
    worst = first[np.argmax(counts)]
    row, col = int(i[worst]), int(j[worst])
    raise ValueError(
        f"row {row_ids.names[row]} and column {col_ids.names[col]} have {int(counts.max())} "
        f"ratings, and {i.size - first.size} are repetitions in all: pass "
        'duplicates="mean", "sum" (of counts) or "last"'
    )


def joined(known: Ids, new: Ids) -> tuple[Ids, Indices, Indices]:
    """Both together, and the places of each among them; those known keep their order."""
    if known.names.dtype == object or new.names.dtype == object:
        both = np.empty(len(known) + len(new), dtype=object)
        both[: len(known)], both[len(known) :] = known.names.tolist(), new.names.tolist()
    else:
        both = np.concatenate([known.names, new.names])
    ids, place = Ids.of(both)
    return ids, place[: len(known)], place[len(known) :]


@storable
@dataclass(frozen=True)
class Elsewhere:
    """Stands for the known entries of a fit where they are too many to keep with the model."""

    nnz: int
    indptr: Indices
    shape: tuple[int, int]

    def __getitem__(self, rows: Any) -> Any:
        raise ValueError(
            "the ratings of this fit stayed on the cluster, so that those that are known cannot be "
            "left out: pass exclude_seen=False"
        )
