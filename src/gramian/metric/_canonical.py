"""A canonical order of samples and classes, determined by their content.

A fit first sorts its samples by this order. All results (sums, ties of nearest neighbours, folds)
are then independent of the order of the rows and the names of the classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.metric._weak_input import blocks

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


def canonical_rows(X: Any) -> Indices:
    """The order of the rows by two projections; only rows equal in both keep their order."""
    first, second = projections(X)
    return np.lexsort((second, first))


def canonical_labels(
    X: Any, classes: Indices, weights: Array | None = None
) -> tuple[Indices, Indices]:
    """The order of labelled rows, and the number of each class in a canonical order.

    Identical rows are ordered by their class, and then by their weight.
    """
    first, second = projections(X)
    _, place = np.unique(first, return_inverse=True)
    number = _class_numbers(place, classes)
    last = np.zeros(classes.size) if weights is None else weights
    return np.lexsort((last, number[classes], second, first)), number


def _class_numbers(place: Indices, classes: Indices) -> Indices:
    """Numbers of the classes by size, ties broken by the positions of their rows."""
    members = np.split(place[np.lexsort((place, classes))], np.cumsum(np.bincount(classes))[:-1])
    ranked = sorted(range(len(members)), key=lambda c: (members[c].size, members[c].tolist()))
    number = np.empty(len(ranked), dtype=np.intp)
    number[ranked] = np.arange(len(ranked))
    return number


def projections(X: Any) -> tuple[Array, Array]:
    """Two numbers per row: equal for equal rows, and rarely both equal for different rows.

    Each is a sum over the entries of its row only. Constant columns do not count.
    """
    columns = varying_columns(X)
    used = np.arange(X.shape[1]) if columns is None else columns
    directions = np.zeros((2, X.shape[1]))
    angles = np.arange(used.size) + 1.0
    directions[0, used], directions[1, used] = np.cos(angles), np.sin(angles)
    if sp.issparse(X):
        cosines, sines = (X.astype(float, copy=False) @ v for v in directions)
        return cosines, sines
    found = np.empty((2, X.shape[0]))
    for rows in blocks(X.shape[0], X.shape[1]):
        part = np.ascontiguousarray(X[rows], dtype=float)
        for place, v in enumerate(directions):
            found[place, rows] = np.einsum("ij,j->i", part, v)
    return found[0], found[1]


def varying_columns(X: Any) -> NDArray[np.intp] | None:
    """The columns that are not constant; None if these are all columns, or none."""
    if sp.issparse(X):
        most, least = (end.toarray().ravel() for end in (X.max(axis=0), X.min(axis=0)))
    else:
        most, least = X.max(axis=0), X.min(axis=0)
    found = np.flatnonzero(most > least)
    return None if found.size in (0, X.shape[1]) else found
