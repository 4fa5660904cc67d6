"""Blocks of samples, tuples and ratings as tasks read them: numbers, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.api.types import is_numeric_dtype

from gramian.arrays.samples import check_size, refuse_masked, refuse_odd_labels
from gramian.metric._weak_input import marks as checked_marks

NAMES = {2: "pairs", 3: "triplets"}
"""What NPZ files call tuples of so many vectors."""


class Sample:
    """A block of samples: X dense or CSR, their labels where there are any, their columns."""

    def __init__(self, X: Any, y: Any = None, names: Any = None) -> None:
        self.X, self.y, self.names = X, y, names


def sample_of(raw: Any, labels: Any, column: str | None) -> Sample:
    """A block as numbers, checked."""
    names = None
    if isinstance(raw, dict):
        if "X" not in raw:
            raise ValueError(f"an NPZ file of samples has an array X, got {sorted(raw)}")
        labels = _named(raw, column, sorted(raw)) if column is not None else labels
        raw = raw["X"]
    elif isinstance(raw, pd.DataFrame):
        if column is not None:
            labels = _named(raw, column, list(raw.columns)).to_numpy()
            raw = raw.drop(columns=column)
        names = np.asarray(raw.columns, dtype=object)
        raw = _numbers(raw)
    elif column is not None:
        raise ValueError(f"y={column!r} names a column, and X has none: pass y as a Dask array")
    X = sp.csr_array(raw) if sp.issparse(raw) else np.asarray(raw)
    refuse_masked(raw, "X")
    if X.ndim != 2 or X.dtype.kind not in "iufb":
        raise ValueError(f"samples must be a table of numbers, got shape {X.shape} of {X.dtype}")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(float)
    entries = X.data if sp.issparse(X) else X
    if not np.all(np.isfinite(entries)):
        raise ValueError("X contains NaN or infinity")
    check_size(X, "X")
    y = None if labels is None else np.asarray(labels)
    if y is not None:
        _check_labels(y, X.shape[0])
    return Sample(X, y, names)


def _check_labels(y: Any, count: int) -> None:
    refuse_odd_labels(y)
    if y.shape != (count,):
        raise ValueError(f"a block has {count} samples and labels of shape {y.shape}")
    if y.dtype.kind == "f":
        if np.any(np.isnan(y)):
            raise ValueError("y contains NaN: leave out the samples that have no label")
        if np.any(y != np.floor(y)):
            raise ValueError(
                "y has numbers with fractions, which are no classes: Unknown label type"
            )


def _named(raw: Any, column: str, names: list[Any]) -> Any:
    if column not in names:
        raise ValueError(f"there is no column {column!r}, only {_few(names)}")
    return raw[column]


def _numbers(frame: pd.DataFrame) -> Any:
    """The columns of a frame as one table: numbers of several kinds become floating ones."""
    table = frame.to_numpy()
    if table.dtype != object:
        return table
    text = [name for name in frame.columns if not is_numeric_dtype(frame[name])]
    if text:
        raise ValueError(
            f"samples must be numbers, and the columns {_few(text)} are not: leave them out, or "
            "encode them"
        )
    return frame.to_numpy(dtype=float, na_value=np.nan)


def tuples_of(raw: Any, marks: Any, width: int) -> tuple[Any, Any]:
    if isinstance(raw, dict):
        marks = raw.get("same", marks)
        raw = _named(raw, NAMES[width], sorted(raw))
    table = np.asarray(raw, dtype=float)
    if table.ndim != 3 or table.shape[1] != width:
        raise ValueError(
            f"a block must have shape (t, {width}, n_features), vectors and no indices: "
            f"got {table.shape}"
        )
    if not np.all(np.isfinite(table)):
        raise ValueError("pairs and triplets must not contain NaN or infinity")
    if width == 3 and np.any(np.all(table[:, 0] == table[:, 2], axis=1)):
        raise ValueError(
            "a triplet has one vector as anchor and as other: no metric can tell them apart. "
            "Leave it out"
        )
    if marks is None:
        return table, None
    same = np.asarray(marks)
    checked_marks(same, len(table))
    return table, same


def triple_of(*arrays: Any) -> tuple[Any, ...]:
    return _checked_ratings(*(np.asarray(part) for part in arrays))


def ratings_of(raw: Any, columns: Any) -> tuple[Any, ...]:
    if isinstance(raw, dict):
        raw = pd.DataFrame(raw)
    if not isinstance(raw, pd.DataFrame):
        raise ValueError("ratings are a frame with a user, an item and a rating in each row")
    names = list(raw.columns)
    return _checked_ratings(*(_named(raw, column, names).to_numpy() for column in columns))


def _checked_ratings(rows: Any, cols: Any, values: Any, weights: Any = None) -> tuple[Any, ...]:
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError("users, items and ratings must be as many")
    numbers = _as_numbers(values, "ratings")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(f"the rating of user {rows[bad[0]]} and item {cols[bad[0]]} is "
                         f"{values[bad[0]]}: leave out what is not known")  # fmt: skip
    check_size(numbers, "the ratings", least=0.0)
    if weights is None:
        return rows, cols, numbers
    omega = _as_numbers(weights, "weights")
    if omega.shape != rows.shape or not np.all(np.isfinite(omega) & (omega >= 0)):
        raise ValueError("weights must be as many as the ratings, finite and at least 0")
    return rows, cols, numbers, omega


def _as_numbers(values: Any, name: str) -> Any:
    try:
        if not np.iscomplexobj(values):
            return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be numbers, got {values[:3].tolist()}")


def refuse_mixed(a: Any, b: Any, name: str) -> None:
    """Refuse sorted names of which some are text and some are not: 1 and "1" are two things."""
    if a.size and b.size and isinstance(a[0], str) != isinstance(b[0], str):
        raise ValueError(
            f"{name} are text in some partitions and numbers in others ({a[0]!s} and {b[0]!s}): "
            "make them of one kind"
        )


def same_columns(a: Any, b: Any) -> None:
    """Refuse partitions whose columns differ, or are in another order."""
    if a is not None and b is not None and not np.array_equal(a, b):
        raise ValueError(
            f"partitions have the columns {_few(a)} and {_few(b)}: give all the same ones, in the "
            "same order"
        )


def _few(names: Any) -> str:
    """Names for a sentence."""
    shown = [str(name) for name in names]
    return f"{shown[:8]}" + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
