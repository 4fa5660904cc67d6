"""Data sets: the ones the papers use, and small ones that need no file.

``load(name)`` looks for ``name.npz`` in the folder ``data=``, then in the folder that the
environment variable GRAMIAN_DATA names, then among earlier downloads; with ``download=True`` a
set that has a public home is fetched from there. Sets that are built in need none of this.

A file holds plain arrays: `X` with samples in rows and `y` with classes 0, 1, …, and `X_test` and
`y_test` where a test part is standard. A sparse X is kept as `data`, `indices`, `indptr` and
`shape` of a CSR matrix, that of the test part with the prefix ``test_``. Ratings are `user`,
`item`, `rating` and `timestamp`. A file of your own in that form is loaded by its name too.
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
