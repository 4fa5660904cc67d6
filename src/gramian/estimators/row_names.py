"""Rows of a data frame given by the labels of its index."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.samples import integers
from gramian.common.warnings import warn


def row_names(X: Any) -> NDArray[Any] | None:
    """The labels of the index of a frame if they are strings, or integers other than 0, 1, …, n."""
    if not (hasattr(X, "index") and hasattr(X, "columns")):
        return None
    labels = list(X.index)
    if labels and all(isinstance(label, str) for label in labels):
        return np.array(labels)
    index = np.asarray(X.index)
    shifted = index.dtype.kind in "iu" and not np.array_equal(index, np.arange(index.size))
    return index if shifted else None


def numbered(given: Any, names: NDArray[Any] | None, name: str) -> Any:
    """Tuples of labels converted to row numbers; row numbers are unchanged.

    `names` are those of `row_names`. Integers are row numbers, also as digits, and for an index of
    integers: a warning says so.
    """
    if given is None or sp.issparse(given) or isinstance(given, np.ma.MaskedArray):
        return given
    try:
        table = np.asarray(given)
    except ValueError:
        raise ValueError(f"the rows of {name} differ in length") from None
    words = _are_words(table)
    shifted = names is not None and names.dtype.kind in "iu"
    if words and (names is None or shifted):
        try:
            given, words = integers(table, name), False
        except ValueError:
            raise ValueError(
                f"{name} has labels like {str(table.flat[0])!r}, and X is no frame with such an "
                "index: pass a frame, or the numbers of its rows"
            ) from None
    if names is not None and shifted and table.size and not words:
        warn(
            f"{name} holds row numbers, counted from 0, but the index of X is not 0, 1, 2, …: "
            f"row 0 has the label {names[0]}. If {name} holds labels, convert them by "
            "X.index.get_indexer(…); X.reset_index(drop=True) silences this warning",
        )
    if names is None or not words:
        return given
    place = {label: row for row, label in enumerate(names.tolist())}
    if len(place) < names.size:
        raise ValueError(f"{name} has labels, and the index of X has some twice: make it unique")
    for label in table.ravel().tolist():
        if label not in place:
            raise ValueError(f"{name} has {label!r}, which is not in the index of X")
    return np.vectorize(place.__getitem__)(table)


def _are_words(table: NDArray[Any]) -> bool:
    words = table.dtype.kind not in "iufb" and table.size > 0
    return words and all(isinstance(label, str) for label in table.ravel().tolist())
