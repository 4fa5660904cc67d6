"""Data sets of `gramian.app.datasets` in a folder, and those that scikit-learn bundles."""

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from gramian.app import datasets
from gramian.app.datasets import DataMissingError, Dataset

__all__ = ["DataMissingError", "Dataset", "data_folder", "load_arrays", "load_set"]

BUNDLED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def data_folder(option: str | None) -> Path | None:
    """The folder named by ``--data``, else by GRAMIAN_DATA, else None."""
    name = option or os.environ.get("GRAMIAN_DATA")
    return Path(name) if name else None


def load_arrays(name: str, folder: Path | None) -> dict[str, np.ndarray]:
    """The stored arrays of a set, which may be of small integer types."""
    try:
        return datasets.load_arrays(name, data=folder)
    except ValueError as error:
        raise DataMissingError(f"data set {name!r} is not available: {error}") from error


def load_set(name: str, folder: Path | None) -> Dataset:
    """A labelled set, dense or CSR, in float64."""
    if name in BUNDLED:
        return Dataset(name, *BUNDLED[name](return_X_y=True))
    return datasets.load(name, data=folder)
