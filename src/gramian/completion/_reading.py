"""Reading ratings (triples, frames, sparse matrices, arrays with gaps) and features by ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from gramian.arrays.cpu import index_array, taken
from gramian.arrays.entries import sorted_entries
from gramian.arrays.samples import (
    check_size,
    is_missing,
    real_numbers,
    refuse_masked,
    refuse_no_samples,
)
from gramian.arrays.threads import in_parts
from gramian.common.storage import storable
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.completion._ratings import Ids, Ratings, joined

SUM = 8
"""Cost of an entry of a sum of runs, in multiplications."""

DUPLICATES = ("error", "mean", "sum", "last")

MATRIX_COLUMNS = 8
"""A frame with fewer columns may be a list of ratings with additional columns."""

COLUMN_NAMES = (
    {"user", "userid", "uid", "row", "rowid", "customer", "customerid", "reviewer", "reviewerid"},
    {
        "item", "itemid", "iid", "movie", "movieid", "product", "productid", "book", "bookid",
        "isbn", "track", "trackid", "artist", "artistid", "song", "songid", "column", "col", "asin",
    },
    {"rating", "ratings", "score", "stars", "value", "overall"},
)  # fmt: skip
"""Usual names of the columns for row, column and value; in lower case, letters only."""

ROLES = (
    ("user", "customer", "reader", "person", "reviewer"),
    ("item", "movie", "film", "product", "book", "song", "artist", "business", "asin"),
    ("rating", "stars", "score", "grade", "overall"),
)
"""Words in the names of columns of users, items and ratings."""


def plain(X: Any) -> Any:
    """A polars frame as a pandas frame, and a pivot table as triples of its known entries.

    A pivot table has names for both its axes, as `DataFrame.pivot` gives them, or rows with strings
    as labels, as after reading it from a file. One column with an index of two levels, as `groupby`
    gives it, becomes a frame of three columns.
    """
    if getattr(getattr(X, "index", None), "nlevels", 1) == 2 and X.size == len(X):
        return X.reset_index()
    if hasattr(X, "to_dict") and hasattr(X, "get_column"):
        columns = {name: X.get_column(name).to_numpy() for name in X.columns}
        return import_module("pandas").DataFrame(columns)
    if not (is_table(X) and _is_pivot(X)):
        return X
    values = real_numbers(X, "ratings")
    rows, cols = np.nonzero(~np.isnan(values))
    return np.asarray(X.index)[rows], np.asarray(X.columns)[cols], values[rows, cols]


def _is_pivot(X: Any) -> bool:
    if X.index.name is not None and X.columns.name is not None:
        return True
    labelled = len(X) > 0 and all(isinstance(label, str) for label in X.index)
    return labelled and rating_columns(X) is None


def is_table(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def rating_columns(X: Any) -> tuple[int, int, int] | None:
    """The positions of row, column and value in a frame of ratings; None for a matrix.

    A frame of three columns is a list of ratings; in a wider frame the columns are found by their
    names. A narrow frame with two or more columns without gaps might be a list with other names.
    It is rejected, since its completion as a matrix would be meaningless.
    """
    roles = [_role(name) for name in X.columns]
    if X.shape[1] == 3:
        if 2 in roles and roles.index(2) != 2:
            raise ValueError(
                f"a frame of ratings has its columns in the order row, column, value, and this "
                f"one has {_listed(X)}: select them in that order"
            )
        return 0, 1, 2
    if all(roles.count(role) == 1 for role in range(3)):
        return roles.index(0), roles.index(1), roles.index(2)
    known = {role for role in roles if role is not None}
    whole = int(np.sum(~np.asarray(X.isna()).any(axis=0)))
    if len(known) > 1 or (X.shape[1] < MATRIX_COLUMNS and whole > 1 and X.shape[0] > 0):
        raise ValueError(
            f"the frame has {X.shape[1]} columns ({_listed(X)}): for a list of ratings select "
            "three, row, column and value, as in frame[['user', 'item', 'rating']]; for a matrix "
            "with gaps pass frame.to_numpy()"
        )
    return None


def _role(name: Any) -> int | None:
    """0 for the name of a column of rows, 1 of columns, 2 of values, None for any other."""
    plain = "".join(letter for letter in str(name).lower() if letter.isalpha())
    return next((k for k, names in enumerate(COLUMN_NAMES) if plain in names), None)


def _listed(X: Any) -> str:
    names = [str(name) for name in X.columns]
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _refuse_text(X: Any) -> None:
    """Reject a list of triples and a frame with text: they are ratings, not a matrix."""
    if isinstance(X, list) and X and all(isinstance(r, tuple) and len(r) == 3 for r in X):
        raise ValueError("pass a list of (row, col, value) as three arrays: tuple(zip(*ratings))")
    if is_table(X) and hasattr(X, "dtypes"):
        kinds = zip(X.columns, X.dtypes, strict=True)
        text = [str(name) for name, kind in kinds if kind.kind not in "iufb"]
        if text:
            raise ValueError(
                f"a frame of ratings has three columns, row, column and value, and this one has "
                f"{X.shape[1]} ({', '.join(text)} not of numbers): pass three of them"
            )


def by_role(names: Sequence[str]) -> dict[int, str]:
    """The columns of users (0), items (1) and ratings (2), where only one has such a name."""
    found = [[name for name in names if any(w in name.lower() for w in words)] for words in ROLES]
    alone = {role: some[0] for role, some in enumerate(found) if len(some) == 1}
    return alone if len(set(alone.values())) == len(alone) else {}


def names_of(X: Any) -> tuple[str, ...] | None:
    """The names of the columns for row, column and value; None unless they are distinct strings."""
    places = rating_columns(X) if is_table(X) else None
    if places is None:
        return None
    names = tuple(X.columns[k] for k in places)
    return names if are_names(names) and len(set(names)) == len(names) else None


def are_names(columns: Any) -> bool:
    """Whether columns are given by names, not by positions."""
    return columns is not None and all(isinstance(name, str) for name in columns)


def pair_columns(pairs: Any) -> tuple[Any, Any]:
    """Rows and columns of pairs: a frame or array of two columns, or two arrays."""
    if is_table(pairs):
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs must have two columns, row and column, got {pairs.shape[1]}")
        return pairs.iloc[:, 0].to_numpy(), pairs.iloc[:, 1].to_numpy()
    if isinstance(pairs, tuple) and len(pairs) == 2:
        rows, cols = np.atleast_1d(np.asarray(pairs[0])), np.atleast_1d(np.asarray(pairs[1]))
        if rows.shape != cols.shape or rows.ndim != 1:
            raise ValueError(f"as many rows as columns are needed, got {rows.shape}, {cols.shape}")
        return rows, cols
    table = np.asarray(pairs)
    if table.ndim != 2 or table.shape[1] != 2:
        one = ": one pair is [(row, column)]" if table.shape == (2,) else ""
        raise ValueError(f"pairs must have shape (k, 2), got {table.shape}{one}")
    if isinstance(pairs, (list, tuple)) and table.dtype.kind == "U":
        users, items = zip(*pairs, strict=True)  # NumPy turns numbers into text if others are text
        return np.asarray(users), np.asarray(items)
    return table[:, 0], table[:, 1]


def read(estimator: Any, X: Any, weights: Any = None, *, reset: bool = True) -> Ratings:
    """The ratings given to an estimator; a matrix is validated as scikit-learn does."""
    if not has_own_ids(X):
        if reset:
            refuse_no_samples(X)
            _refuse_text(X)
        X = validate_data(
            estimator, X, accept_sparse=("csr", "coo"), dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan", reset=reset,
        )  # fmt: skip
        if reset and _look_like_triples(X):
            warn(
                f"X is read as a matrix of {X.shape[0]} rows and 3 columns, all entries known: if "
                "its lines are (row, column, rating), pass three arrays, tuple(X.T)",
            )
    return gather(X, duplicates=estimator.duplicates, weights=weights)


def _look_like_triples(X: Any) -> bool:
    """Whether a matrix of three columns has pairs of whole numbers that rarely occur twice."""
    if sp.issparse(X) or X.shape[1] != 3 or X.shape[0] < 10 or np.isnan(X).any():
        return False
    ids = X[:, :2]
    whole = bool(np.all((ids >= 0) & (ids == np.round(ids))))
    return whole and 2 * len(np.unique(ids, axis=0)) > len(ids)


def is_log(X: Any) -> bool:
    """Whether X holds actions without values: two arrays, or a table of two columns of ids."""
    if isinstance(X, tuple):
        return len(X) == 2
    if is_table(X):
        return X.shape[1] == 2 and all(kind.kind not in "fc" for kind in X.dtypes)
    refuse_no_samples(X)
    if sp.issparse(X) or np.ndim(X) != 2:
        return False
    table = np.asarray(X)
    return table.shape[1] == 2 and table.dtype.kind not in "fc"


def with_ones(log: Any) -> Any:
    """Actions without values as triples of row, column and 1."""
    rows, cols = pair_columns(log)
    return rows, cols, np.ones(len(rows))


def has_own_ids(X: Any) -> bool:
    """Whether X is read as it is: triples, a data frame of ratings, or a masked array."""
    if isinstance(X, tuple | np.ma.MaskedArray):
        return True
    return is_table(X) and rating_columns(X) is not None


def gather(X: Any, *, duplicates: str = "error", weights: Any = None) -> Ratings:
    """Ratings from (row, col, value) arrays, a frame of such columns, or a matrix with gaps.

    `weights` has one number for each rating, or for each row of a matrix.
    """
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {DUPLICATES}, got {duplicates!r}")
    if isinstance(X, tuple):
        if len(X) != 3:
            raise ValueError(f"pass (rows, cols, values), three arrays; got {len(X)}")
        for part, name in zip(X, ("rows", "cols", "values"), strict=True):
            refuse_masked(part, name)
        return _from_triples([np.asarray(part) for part in X], duplicates, weights)
    places = rating_columns(X) if is_table(X) else None
    if places is not None:
        return _from_triples([np.asarray(X.iloc[:, k]) for k in places], duplicates, weights)
    return _from_matrix(X, duplicates, weights)


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
    return by_row_and_column(i, j, checked_values(values), row_ids, col_ids, duplicates, omega)


def _from_matrix(X: Any, duplicates: str, weights: Any) -> Ratings:
    """The stored entries of a sparse matrix, or those of an array that are not NaN or masked."""
    if sp.issparse(X):
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"the matrix of ratings must have rows and columns, got {X.shape}")
        X = sp.coo_array(X)
        i, j = X.coords
        values = checked_values(np.asarray(X.data))
    else:
        if isinstance(X, np.ma.MaskedArray):
            if X.dtype.kind not in "iufb":
                raise ValueError(f"ratings must be numbers, got {X.dtype}")
            X = np.ma.filled(X.astype(X.dtype if X.dtype.kind == "f" else float), np.nan)
        X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        i, j = np.nonzero(~np.isnan(X))
        values = X[i, j].astype(float)
    if values.size == 0:
        raise ValueError("there are no ratings: every entry of the matrix is missing")
    m, n = X.shape
    omega = None if weights is None else checked_weights(weights, m)[i]
    return by_row_and_column(i, j, values, Ids(np.arange(m)), Ids(np.arange(n)), duplicates, omega)


def by_row_and_column(
    i: Indices,
    j: Indices,
    values: Array,
    row_ids: Ids,
    col_ids: Ids,
    duplicates: str,
    weights: Array | None = None,
) -> Ratings:
    """The entries by row and column, repeated ones merged as `duplicates` says.

    Entries of weight 0 are left out; their rows and columns remain.
    """
    check_size(values, "the ratings", least=0.0)
    given = values.size
    (i, j, values, weights), new = ordered((i, j, values, weights), len(row_ids), len(col_ids))
    if values.size == 0 < given:
        raise ValueError("every sample_weight is zero: nothing is left to fit")
    if not new.all():
        first = np.flatnonzero(new)
        if duplicates == "error":
            _refuse_repeated(i, j, first, row_ids, col_ids)
        values, weights = merged(values, weights, first, duplicates)
        i, j = taken(i, first), taken(j, first)
    if weights is not None and np.all(weights == 1.0):  # the same fit as without weights
        weights = None
    return Ratings(i, j, values, row_ids, col_ids, weights)


def ordered(entries: tuple[Any, ...], m: int, n: int) -> tuple[tuple[Any, ...], NDArray[np.bool_]]:
    """Arrays (i, j, …, weights or None) by row and then column, in linear time, without entries of
    weight 0; and whether each entry differs from the previous one.
    """
    *fields, weights = entries
    if weights is not None and not weights.all():
        live = weights > 0
        fields, weights = [field[live] for field in fields], weights[live]
    i, j = map(index_array, fields[:2])
    others, lines = fields[2:], sorted_entries(i, j, (m, n))
    if lines is not None:
        starts, j, order = lines
        i = np.repeat(np.arange(m, dtype=np.int32), np.diff(starts))
        others = [taken(field, order) for field in others]
        weights = None if weights is None else taken(weights, order)
    new = np.ones(i.size, dtype=bool)
    np.not_equal(i[1:], i[:-1], out=new[1:])
    new[1:] |= j[1:] != j[:-1]
    return (i, j, *others, weights), new


def merged(
    values: Array, weights: Array | None, first: Indices, duplicates: str
) -> tuple[Array, Array | None]:
    """One value, and one weight, for each run of equal entries that begins at `first`."""
    if duplicates == "last":
        ends = np.append(first[1:], values.size) - 1
        return values[ends], None if weights is None else weights[ends]
    counts = run_lengths(first, values.size)
    totals: Any = counts if weights is None else run_sums(weights, first)
    if duplicates == "sum":
        return run_sums(values, first), None if weights is None else totals / counts
    means = run_sums(values if weights is None else weights * values, first)
    means /= totals
    return means, None if weights is None else totals


def run_lengths(first: Indices, size: int) -> Indices:
    """The length of each run that begins at `first`."""
    found = np.empty_like(first)
    np.subtract(first[1:], first[:-1], out=found[:-1])
    found[-1] = size - first[-1]
    return found


def run_sums(values: Array, first: Indices) -> Array:
    """The sum of each run of values that begins at `first`."""
    found = np.empty(first.size)

    def add(start: int, stop: int) -> None:
        begin = first[start]
        end = first[stop] if stop < first.size else values.size
        np.add.reduceat(values[begin:end], first[start:stop] - begin, out=found[start:stop])

    in_parts(add, first.size, SUM * values.size)
    return found


def _refuse_repeated(i: Indices, j: Indices, first: Indices, row_ids: Ids, col_ids: Ids) -> None:
    counts = np.diff(np.append(first, i.size))
    worst = first[np.argmax(counts)]
    row, col = int(i[worst]), int(j[worst])
    raise ValueError(
        f"row {row_ids.names[row]} and column {col_ids.names[col]} have {int(counts.max())} "
        f"ratings, and {i.size - first.size} are repetitions in all: pass "
        'duplicates="mean", "sum" (of counts) or "last"'
    )


def checked_values(values: NDArray[Any]) -> Array:
    """Finite numbers, or an error that names the first that is not."""
    if values.dtype.kind == "c":
        raise ValueError(f"ratings must be numbers, got {values.dtype}")
    try:
        numbers = values.astype(float, copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"ratings must be numbers, got {values.dtype}") from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(f"rating {first} is {numbers[first]}: leave out unknown ratings")
    return numbers


def checked_weights(given: Any, count: int) -> Array:
    """`count` weights, finite and none below 0; all may be 0, as in a part of the ratings."""
    weights = real_numbers(given, "sample_weight")
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must have shape ({count},), got {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be finite and not below 0")
    return weights


def refuse_missing(ids: NDArray[Any], name: str) -> None:
    """Reject ids that are NaN or None."""
    if ids.dtype == object:
        missing = np.array([is_missing(g) for g in ids.tolist()], dtype=bool)
    else:
        missing = np.isnan(ids) if ids.dtype.kind == "f" else np.zeros(ids.shape, dtype=bool)
    if missing.any():
        raise ValueError(f"rating {int(missing.argmax())} has no {name} id")


@storable
@dataclass(frozen=True)
class Scaling:
    """Standardization of features; constant features become 0."""

    means: Array
    sizes: Array
    """Standard deviations, infinite for constant features."""

    @classmethod
    def of(cls, features: Array) -> Scaling:
        means, sizes = features.mean(axis=0), features.std(axis=0)
        sizes = np.where(sizes > 1e-12 * np.maximum(np.abs(means), 1e-300), sizes, np.inf)
        return cls(means, sizes)

    def __call__(self, features: Array, weight: float) -> Array:
        """Standardized features, the sum of whose squares in a row is `weight` on average."""
        live = max(int(np.isfinite(self.sizes).sum()), 1)
        return (features - self.means) / self.sizes * np.sqrt(weight / live)


def read_features(features: Any, name: str) -> tuple[Ids, Array]:
    """Ids and their features: a frame with ids as its index, (ids, array), or an array."""
    if isinstance(features, tuple) and len(features) == 2:
        names, table = np.asarray(features[0]), features[1]
    elif hasattr(features, "iloc"):
        names, table = np.asarray(features.index), features.to_numpy()
    else:
        table = features
        names = np.arange(len(table))
    numbers = real_numbers(table, name)
    if numbers.ndim != 2 or 0 in numbers.shape:
        raise ValueError(f"{name} must be a table of rows and features, got shape {numbers.shape}")
    if names.shape != (len(numbers),):
        raise ValueError(f"{name} has {len(numbers)} rows, but {names.size} ids")
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} has gaps or infinite numbers: fill them, with means say")
    refuse_missing(names, name)
    ids, place = Ids.of(names)
    if len(ids) < names.size:
        raise ValueError(f"{name} has the features of an id twice: keep one of them")
    return ids, numbers[np.argsort(place)]


def _refuse_counted_from_one(own: Ids, features: Any, count: int, name: str) -> None:
    """Raise ValueError if features are numbered from 0 and the ids of the ratings from 1."""
    numbered = not isinstance(features, tuple)
    if hasattr(features, "iloc"):
        numbered = type(features.index).__name__ == "RangeIndex" and features.index.name is None
    if numbered and own.names.dtype.kind in "iuf" and own.names[0] > 0 and count in own.names:
        raise ValueError(
            f"{name} has the features of ids 0 to {count - 1}, and the ids of the ratings seem to "
            f"count from 1, up to {own.names[-1]}: name the ids by the index of a frame, or pass "
            "(ids, array)"
        )


def with_features(
    ratings: Ratings, side: int, given: Any, weight: float
) -> tuple[Ratings, Scaling]:
    """The ratings with standardized features of their rows (side 0) or columns (side 1).

    Ids with features and no entry become rows or columns. The features of ids without any are 0.
    """
    name = ("row_features", "col_features")[side]
    ids, table = read_features(given, name)
    own = ratings.ids(side)
    _refuse_counted_from_one(own, given, len(ids), name)
    both, old, new = joined(own, ids)
    if len(both) == len(own) + len(ids):
        raise ValueError(
            f"{name} has none of the ids of the ratings, such as {own.names[0]}: "
            f"it has {ids.names[0]}"
        )
    scaling = Scaling.of(table)
    even = np.zeros((len(both), table.shape[1]))
    even[new] = scaling(table, 1.0)
    even *= np.sqrt(weight)
    place, features = old.astype(np.int32), ratings.features
    if side == 0:
        rows = place[ratings.rows]
        return replace(ratings, rows=rows, row_ids=both, features=(even, features[1])), scaling
    cols = place[ratings.cols]
    return replace(ratings, cols=cols, col_ids=both, features=(features[0], even)), scaling
