"""Data sets: those used in the papers, and small ones that need no file.

``load(name)`` looks for ``name.npz`` in the folder ``data=``, then in the folder that the
environment variable GRAMIAN_DATA names, then among earlier downloads. With ``download=True`` a
data set is downloaded from its public source if it has one. Built-in data sets need no file.

A file contains arrays: `X` with samples in rows, `y` with classes 0, 1, …, and `X_test` and
`y_test` if there is a standard test set. A sparse X is stored as `data`, `indices`, `indptr` and
`shape` of a CSR matrix, with the prefix ``test_`` for the test set. Ratings are stored as `user`,
`item`, `rating` and `timestamp`. Your own files in this format can also be loaded by name.
"""

from gramian.app.datasets._catalogue import Entry, available
from gramian.app.datasets._download import DownloadError
from gramian.app.datasets._load import (
    DataMissingError,
    Dataset,
    Ratings,
    load,
    load_arrays,
    load_ratings,
)

__all__ = [
    "DataMissingError",
    "Dataset",
    "DownloadError",
    "Entry",
    "Ratings",
    "available",
    "load",
    "load_arrays",
    "load_ratings",
]
