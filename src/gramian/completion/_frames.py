"""Which columns of a data frame are the rows, columns and values of ratings."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from gramian._samples import real_numbers

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

ROLES = (
    ("user", "customer", "reader", "person", "reviewer"),
    ("item", "movie", "film", "product", "book", "song", "artist", "business", "asin"),
    ("rating", "stars", "score", "grade", "overall"),
)
"""What the columns of users, items and ratings are called."""


def plain(X: Any) -> Any:
    """Frames of polars as those of pandas, and a pivot table as triples of its known entries.

    A pivot table has names for both its axes, as `DataFrame.pivot` gives them.
    """
    if hasattr(X, "to_dict") and hasattr(X, "get_column"):
        columns = {name: X.get_column(name).to_numpy() for name in X.columns}
        return import_module("pandas").DataFrame(columns)
    if not _is_table(X) or X.index.name is None or X.columns.name is None:
        return X
    values = real_numbers(X, "ratings")
    rows, cols = np.nonzero(~np.isnan(values))
    return np.asarray(X.index)[rows], np.asarray(X.columns)[cols], values[rows, cols]


def is_frame(X: Any) -> bool:
    """Whether `gather` takes X as it is: a data frame of ratings, or a masked array."""
    if isinstance(X, np.ma.MaskedArray):
        return True
    return _is_table(X) and rating_columns(X) is not None


def _is_table(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


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


def by_role(names: Sequence[str]) -> dict[int, str]:
    """The columns whose names say user, item or rating, by role: 0, 1, 2; each one only."""
    found = [[name for name in names if any(w in name.lower() for w in words)] for words in ROLES]
    alone = {role: some[0] for role, some in enumerate(found) if len(some) == 1}
    return alone if len(set(alone.values())) == len(alone) else {}


def names_of(X: Any) -> tuple[str, ...] | None:
    """What row, column and value of a frame are called; None unless each has a name of its own."""
    places = rating_columns(X) if hasattr(X, "iloc") else None
    if places is None:
        return None
    names = tuple(X.columns[k] for k in places)
    return names if are_names(names) and len(set(names)) == len(names) else None


def are_names(columns: Any) -> bool:
    """Whether columns are called by names, not by places."""
    return columns is not None and all(isinstance(name, str) for name in columns)


def pair_columns(pairs: Any) -> tuple[Any, Any]:
    """Rows and columns of pairs: a frame or array of two columns, or two arrays."""
    if hasattr(pairs, "iloc"):
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
        raise ValueError(f"pairs must have shape (k, 2), got {table.shape}")
    return table[:, 0], table[:, 1]
