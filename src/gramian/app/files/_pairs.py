"""Pairs of samples by their numbers, from any file."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import archive
from gramian.app.files._columns import EXACT
from gramian.app.files._errors import FileError, NameOfFile
from gramian.app.files._source import Format, locate
from gramian.app.files._tables import read_header, read_matrix

WEIGHTS = ("weight", "weights", "w")


def read_pairs(
    path: NameOfFile, format: Format = None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Read pairs of sample numbers, counted from 0, and their weights or None.

    A table or an array has two columns, or three with the weight; a column named weight or w is the
    weight, in any position. In a sparse matrix each stored nonzero is a pair (of a symmetric one
    those on and below the diagonal), and the values are the weights unless all are 1.
    """
    X: Any = read_matrix(path, format)
    if sp.issparse(X):
        entries = sp.coo_array(sp.tril(X) if X.shape[0] == X.shape[1] and not (X != X.T).nnz else X)
        entries.eliminate_zeros()
        pairs = np.column_stack([entries.row, entries.col]).astype(np.int64)
        return pairs, None if (entries.data == 1).all() else entries.data.astype(np.float64)
    header = read_header(path, format=format)
    names = [name.strip().lower() for name in header.names] if header and header.named else []
    if X.shape[1] not in (2, 3) or (len(names) == 3 and names[0] == "x0" and names[1] != "x1"):
        raise FileError(
            f"{path} has {X.shape[1]} columns, where the two of a pair belong, and perhaps a "
            "weight; an index does not belong to them"
        )
    place = next((k for k, name in enumerate(names) if name in WEIGHTS), 2)
    pairs, weights = X, X[:, 2:]
    if X.shape[1] == 3:
        pairs, weights = np.delete(X, place, axis=1), X[:, [place]]
    elif (source := locate(path, format)).format == "npz":
        with archive(source) as arrays:
            if "weights" in arrays.names:
                weights = arrays.array("weights").astype(np.float64)[:, None]
    if weights.size and len(weights) != len(pairs):
        raise FileError(f"{path} has {len(weights):,} weights for {len(pairs):,} pairs")
    for values, sound, what in (
        (pairs, (pairs >= 0) & (pairs < EXACT) & (pairs % 1 == 0), "a sample number, 0 or more,"),
        (weights, (weights >= 0) & np.isfinite(weights), "a weight, 0 or more,"),
    ):
        if not sound.all():
            row, column = np.argwhere(~sound)[0]
            raise FileError(f"{path}: pair {row} has {values[row, column]:g} where {what} belongs")
    return pairs.astype(np.int64), weights[:, 0] if weights.size else None
