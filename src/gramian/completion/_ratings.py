"""Ratings as people have them: triples, a sparse matrix, a frame, a table with gaps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from gramian._samples import check_size, is_missing, refuse_masked
from gramian.storage import storable

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

DUPLICATES = ("error", "mean", "last")

COMPARED = {"i": "iuf", "u": "iuf", "f": "iuf", "U": "U"}
"""Kinds of names that are ordered together."""

ROW = {"user", "userid", "uid", "row", "rowid", "customer", "customerid", "reviewer", "reviewerid"}
COLUMN = {
    "item", "itemid", "iid", "movie", "movieid", "product", "productid", "book", "bookid", "isbn",
    "track", "trackid", "artist", "artistid", "song", "songid", "column", "col", "asin",
}  # fmt: skip
VALUE = {"rating", "ratings", "score", "stars", "value", "overall"}
"""What the columns of ratings are called, in lower case and without what is no letter."""

VALUE_PLACE = 2

NARROW = 8
"""A frame of fewer columns may be a list of ratings with other things beside them."""


@storable
@dataclass(frozen=True)
class Ids:
    """The names of rows or columns, any that can be compared for equality."""

    names: NDArray[Any]

    @classmethod
    def of(cls, given: NDArray[Any]) -> tuple[Ids, Indices]:
        """The distinct names, and the place of each given one among them."""
        try:
            names, place = np.unique(given, return_inverse=True)
        except TypeError:  # names that cannot be ordered
            order: dict[Any, int] = {}
            place = np.fromiter((order.setdefault(g, len(order)) for g in given), int, len(given))
            names = np.empty(len(order), dtype=object)
            names[:] = list(order)
        return cls(names), place.ravel()

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

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_ids), len(self.col_ids)

    @cached_property
    def matrix(self) -> sp.csr_array:
        starts = np.searchsorted(self.rows, np.arange(self.shape[0] + 1))
        return sp.csr_array((self.values, self.cols, starts), shape=self.shape)

    def part(self, kept: NDArray[np.bool_]) -> Ratings:
        """Some of them, of the same rows and columns."""
        return Ratings(
            self.rows[kept], self.cols[kept], self.values[kept], self.row_ids, self.col_ids
        )


def gather(X: Any, *, duplicates: str = "error") -> Ratings:
    """Ratings from (row, col, value) arrays, a frame of such columns, or a matrix with gaps."""
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {DUPLICATES}, got {duplicates!r}")
    if isinstance(X, np.ma.MaskedArray):
        return _from_matrix(matrix_of(_with_gaps(X)), duplicates)
    if is_frame(X):
        places = rating_columns(X)
        assert places is not None
        return _from_triples([np.asarray(X.iloc[:, k]) for k in places], duplicates)
    if isinstance(X, tuple):
        if len(X) != 3:
            raise ValueError(f"pass (rows, cols, values), three arrays; got {len(X)}")
        for part, name in zip(X, ("rows", "cols", "values"), strict=True):
            refuse_masked(part, name)
        return _from_triples([np.asarray(part) for part in X], duplicates)
    return _from_matrix(matrix_of(X), duplicates)


def is_frame(X: Any) -> bool:
    """Whether `gather` takes X as it is: a data frame of ratings, or a masked array."""
    if isinstance(X, np.ma.MaskedArray):
        return True
    return _is_table(X) and rating_columns(X) is not None


def _is_table(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _with_gaps(X: np.ma.MaskedArray[Any, Any]) -> Array:
    """NaN where a masked array is masked."""
    if X.dtype.kind not in "iufb":
        raise ValueError(f"ratings must be numbers, got {X.dtype}")
    gaps = np.array(X.data, dtype=X.dtype if X.dtype.kind == "f" else float)
    gaps[np.ma.getmaskarray(X)] = np.nan
    return gaps


def rating_columns(X: Any) -> tuple[int, int, int] | None:
    """Where a frame has row, column and value of each rating; None where it is the matrix itself.

    Three columns are a list of ratings, and of more those that are called so. A narrow frame with
    two columns or more that have no gap might be a list under other names: it is refused, for
    completed as a matrix it would be wrong without a word.
    """
    roles = [_role(name) for name in X.columns]
    if X.shape[1] == 3:
        if VALUE_PLACE in roles and roles.index(VALUE_PLACE) != VALUE_PLACE:
            raise ValueError(
                f"a frame of ratings has its columns in the order row, column, value, and this "
                f"one has {_listed(X)}: select them in that order"
            )
        return 0, 1, 2
    if all(roles.count(role) == 1 for role in range(3)):
        return roles.index(0), roles.index(1), roles.index(2)
    known = {role for role in roles if role is not None}
    whole = int(np.sum(~np.asarray(X.isna()).any(axis=0)))
    if len(known) > 1 or (X.shape[1] < NARROW and whole > 1 and X.shape[0] > 0):
        raise ValueError(
            f"the frame has {X.shape[1]} columns ({_listed(X)}): for a list of ratings select "
            "three, row, column and value, as in frame[['user', 'item', 'rating']]; for a matrix "
            "with gaps pass frame.to_numpy()"
        )
    return None


def _role(name: Any) -> int | None:
    """0 for the name of a column of rows, 1 of columns, 2 of values, None for any other."""
    plain = "".join(letter for letter in str(name).lower() if letter.isalpha())
    return next((k for k, names in enumerate((ROW, COLUMN, VALUE)) if plain in names), None)


def _listed(X: Any) -> str:
    names = [str(name) for name in X.columns]
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def refuse_text(X: Any) -> None:
    """A frame with text in it is meant as ratings, and those have three columns."""
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        text = [
            str(name)
            for name, kind in zip(X.columns, X.dtypes, strict=True)
            if kind.kind not in "iufb"
        ]
        if text:
            raise ValueError(
                f"a frame of ratings has three columns, row, column and value, and this one has "
                f"{X.shape[1]} ({', '.join(text)} not of numbers): pass three of them"
            )


def matrix_of(X: Any) -> Any:
    """A sparse matrix of what is known, or a dense one with NaN where nothing is."""
    if sp.issparse(X):
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"the matrix of ratings must have rows and columns, got {X.shape}")
        coo = sp.coo_array(X)
        refuse_values(np.asarray(coo.data))
        return coo
    return check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")


def refuse_values(values: NDArray[Any]) -> Array:
    """Finite numbers, or an error that names the first that is not."""
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"ratings must be numbers, got {values.dtype}") from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(f"rating {first} is {numbers[first]}: leave out what is not known")
    return numbers


def _from_triples(triples: list[NDArray[Any]], duplicates: str) -> Ratings:
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
    return _sorted(i, j, refuse_values(values), row_ids, col_ids, duplicates)


def refuse_missing(ids: NDArray[Any], name: str) -> None:
    """NaN and None name nothing."""
    if ids.dtype == object:
        missing = np.array([is_missing(g) for g in ids.tolist()], dtype=bool)
    else:
        missing = np.isnan(ids) if ids.dtype.kind == "f" else np.zeros(ids.shape, dtype=bool)
    if missing.any():
        raise ValueError(f"rating {int(missing.argmax())} has no {name} id")


def _from_matrix(X: Any, duplicates: str) -> Ratings:
    m, n = X.shape
    if sp.issparse(X):
        i, j = X.coords
        values = np.asarray(X.data, dtype=float)
    else:
        i, j = np.nonzero(~np.isnan(X))
        values = X[i, j].astype(float)
    if values.size == 0:
        raise ValueError("there are no ratings: every entry of the matrix is missing")
    return _sorted(i, j, values, Ids.counted(m), Ids.counted(n), duplicates)


def _sorted(
    i: Indices, j: Indices, values: Array, row_ids: Ids, col_ids: Ids, duplicates: str
) -> Ratings:
    """The entries by row and column; one that comes twice as `duplicates` says."""
    check_size(values, "the ratings", least=0.0)
    keys = np.asarray(i, dtype=np.int64) * len(col_ids) + j
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if first.size < keys.size:
        values = _merged(keys, values, first, row_ids, col_ids, duplicates)
    rows, cols = np.divmod(keys[first], len(col_ids))
    return Ratings(rows.astype(np.int32), cols.astype(np.int32), values, row_ids, col_ids)


def _merged(
    keys: Indices, values: Array, first: Indices, row_ids: Ids, col_ids: Ids, duplicates: str
) -> Array:
    ends = np.append(first[1:], keys.size)
    if duplicates == "mean":
        return np.add.reduceat(values, first) / (ends - first)
    if duplicates == "last":
        return values[ends - 1]
    row, col = divmod(int(keys[first[np.argmax(ends - first)]]), len(col_ids))
    raise ValueError(
        f"row {row_ids.names[row]} and column {col_ids.names[col]} have "
        f"{int((ends - first).max())} ratings, and {keys.size - first.size} are repetitions in "
        'all: pass duplicates="mean" or "last"'
    )
