"""Load data sets by name from a folder, from earlier downloads, or from their public sources."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.datasets._arrays import SPARSE, Arrays, matrix, read, write
from gramian.app.datasets._catalogue import CATALOGUE, Entry, unknown
from gramian.app.datasets._download import DownloadError
from gramian.app.datasets._homes import Home

Folder = str | os.PathLike[str]

LABELLED = {"X", "y", "X_test", "y_test", *SPARSE, *("test_" + key for key in SPARSE)}
RATED = {"user", "item", "rating", "timestamp"}


class DataMissingError(RuntimeError):
    """A data set was not found."""


@dataclass(frozen=True)
class Dataset:
    """Labelled samples.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features), float64
    y : array of shape (n_samples,), int64
        Classes 0, 1, …
    X_test, y_test : the same for the standard test set, None if there is none
    extra : dict of arrays
        Other arrays: `parameters` of a Swiss roll or another surface, `must_link` and
        `cannot_link`, or `pairs` of images of faces.
    """

    name: str
    X: Any
    y: NDArray[np.int64]
    X_test: Any = None
    y_test: NDArray[np.int64] | None = None
    description: str = ""
    extra: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Ratings:
    """Ratings of items by users, one per row; ids are numbers or strings.

    `timestamp` is in Unix seconds, None if it is not known.
    """

    name: str
    user: NDArray[Any]
    item: NDArray[Any]
    rating: NDArray[np.float64]
    timestamp: NDArray[np.int64] | None = None
    description: str = ""
    extra: Arrays = field(default_factory=dict)

    @property
    def triples(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """(users, items, ratings), the input format of the estimators of `gramian.completion`."""
        return self.user, self.item, self.rating


def load(name: str, *, data: Folder | None = None, download: bool = False) -> Dataset:
    """Load a labelled data set.

    Parameters
    ----------
    name : str
        A name in `available()`, or the name of your own file ``name.npz``.
    data : path
        A folder of npz files, searched before that of GRAMIAN_DATA and earlier downloads.
    download : bool
        Download a data set that is not found in these folders, verify it, and store it in the
        folder given by GRAMIAN_CACHE, by default the user's cache.
    """
    arrays = load_arrays(name, data=data, download=download)
    if "user" in arrays:
        raise ValueError(f"data set {name!r} has ratings: call load_ratings({name!r})")
    if "y" not in arrays:
        raise ValueError(f"data set {name!r} has no labels y: call load_arrays({name!r})")
    try:
        return _dataset(name, arrays)
    except ValueError as error:
        raise ValueError(f"data set {name!r} is invalid: {error}") from error


def load_ratings(name: str, *, data: Folder | None = None, download: bool = False) -> Ratings:
    """Load ratings; the parameters are those of `load`."""
    arrays = load_arrays(name, data=data, download=download)
    if not {"user", "item", "rating"} <= arrays.keys():
        raise ValueError(f"data set {name!r} has no ratings: call load({name!r})")
    if len({arrays[key].shape for key in RATED & arrays.keys()}) > 1 or arrays["user"].ndim != 1:
        raise ValueError(f"data set {name!r} is invalid: its columns differ in length")
    time = arrays.get("timestamp")
    return Ratings(
        name,
        user=_wide(arrays["user"]),
        item=_wide(arrays["item"]),
        rating=arrays["rating"].astype(np.float64),
        timestamp=None if time is None else time.astype(np.int64),
        description=_description(name),
        extra=_others(arrays, RATED),
    )


def load_arrays(
    name: str, *, data: Folder | None = None, download: bool = False
) -> dict[str, NDArray[Any]]:
    """All arrays of a data set with their stored dtypes.

    Convert small integer types before computing with them, because they overflow.
    """
    entry = CATALOGUE.get(name) if isinstance(name, str) else None
    if entry is not None and entry.make is not None:
        return entry.make()
    if entry is None and not (isinstance(name, str) and re.fullmatch(r"\w[\w.-]*", name)):
        raise unknown(name)
    folders = _folders(name, data)
    for folder in folders:
        if (folder / f"{name}.npz").exists():
            return read(folder / f"{name}.npz")
    if entry is None:
        raise unknown(name)
    if not download or entry.home is None:
        raise DataMissingError(_what_to_do(entry, folders))
    return _downloaded(name, entry.home)


def _dataset(name: str, arrays: Arrays) -> Dataset:
    X, y = _part(arrays, "")
    X_test, y_test = _part(arrays, "test") if "y_test" in arrays else (None, None)
    if X_test is not None and X_test.shape[1] != X.shape[1]:
        raise ValueError(f"{X.shape[1]} features, but {X_test.shape[1]} of the test part")
    others = _others(arrays, LABELLED)
    return Dataset(name, X, y, X_test, y_test, _description(name), others)


def _part(arrays: Arrays, part: str) -> tuple[Any, NDArray[np.int64]]:
    X, y = matrix(arrays, part), arrays["y_test" if part else "y"]
    if y.shape != (X.shape[0],):
        raise ValueError(f"{X.shape[0]} samples, but labels of shape {y.shape}")
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float64), y.astype(np.int64)
    return X.astype(np.float64), y.astype(np.int64)


def _others(arrays: Arrays, known: set[str]) -> Arrays:
    return {key: _wide(values) for key, values in arrays.items() if key not in known}


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def _description(name: str) -> str:
    return CATALOGUE[name].description if name in CATALOGUE else ""


def _folders(name: str, data: Folder | None) -> list[Path]:
    """The folders that are searched, in order."""
    if data is not None and not Path(data).is_dir():
        raise DataMissingError(f"data set {name!r} was not loaded: data={data} is not a folder")
    named = [data, os.environ.get("GRAMIAN_DATA")]
    return [Path(folder) for folder in named if folder] + [_cache()]


def _cache() -> Path:
    """The folder of earlier downloads."""
    if named := os.environ.get("GRAMIAN_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "gramian"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/gramian"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gramian"


def _downloaded(name: str, home: Home) -> Arrays:
    try:
        arrays = home.download()
    except DownloadError as error:
        raise DownloadError(
            f"data set {name!r} could not be downloaded: {error}. Nothing was stored; try again "
            f"later, or set GRAMIAN_DATA to a folder that contains {name}.npz"
        ) from error
    try:
        write(_cache() / f"{name}.npz", arrays)
    except OSError as error:
        raise DownloadError(
            f"data set {name!r} was downloaded but could not be stored ({error}): set "
            "GRAMIAN_CACHE to a folder that can be written to"
        ) from error
    return arrays


def _what_to_do(entry: Entry, folders: list[Path]) -> str:
    places = ", ".join(str(f) if f.is_dir() else f"{f} (not a folder)" for f in folders)
    way = (
        f"pass download=True to fetch it from {entry.home.base}, or"
        if entry.home
        else f"it cannot be downloaded automatically, but is available at {entry.by_hand};"
    )
    return (
        f"data set {entry.name!r} is not in {places}: {way} set GRAMIAN_DATA (or pass data=) to a "
        f"folder that contains it as {entry.name}.npz"
    )
