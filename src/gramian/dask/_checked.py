"""Blocks of samples, tuples and ratings as tasks read them: numbers, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gramian.arrays.samples import check_size, checked_samples, naming_text, refuse_odd_labels
from gramian.completion._reading import checked_values, checked_weights, refuse_missing
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
    elif column is not None:
        raise ValueError(f"y={column!r} names a column, and X has none: pass y as a Dask array")
    with naming_text(raw):
        X = checked_samples(raw, ensure_min_samples=0, input_name="X")
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
    refuse_missing(rows, "row")
    refuse_missing(cols, "column")
    numbers = checked_values(values)
    check_size(numbers, "the ratings", least=0.0)
    if weights is None:
        return rows, cols, numbers
    return rows, cols, numbers, checked_weights(weights, rows.size)


def in_partition(name: str, check: Any, *given: Any) -> Any:
    """What a check makes of a partition; its error names the partition."""
    try:
        return check(*given)
    except ValueError as reason:
        raise ValueError(f"{name}: {reason}") from reason


def refuse_mixed(a: Any, b: Any, name: str) -> None:
    """Refuse sorted names of which some are text and some are not: 1 and "1" are two things."""
    if a.size and b.size and isinstance(a[0], str) != isinstance(b[0], str):
        raise ValueError(
            f"{name} are text in some partitions and numbers in others ({a[0]!s} and {b[0]!s}): "
            "make them of one kind"
        )


def same_columns(a: Any, b: Any, width: int, other: int) -> None:
    """Raise ValueError if the names or the numbers of columns of two partitions differ."""
    if a is not None and b is not None and not np.array_equal(a, b):
        raise ValueError(
            f"partitions have the columns {_few(a)} and {_few(b)}: give all the same ones, in the "
            "same order"
        )
    if width != other:
        raise ValueError(f"blocks have {width} and {other} features: give all the same")


def _few(names: Any) -> str:
    """Names for a sentence."""
    shown = [str(name) for name in names]
    return f"{shown[:8]}" + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
