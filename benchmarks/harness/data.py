"""Data sets of `gramian.app.datasets`, from the folder that a run is given."""

import os
from pathlib import Path

import numpy as np

from gramian.app import datasets
from gramian.app.datasets import DataMissingError, Dataset

__all__ = ["DataMissingError", "Dataset", "data_folder", "load_arrays", "load_set"]


def data_folder(option: str | None) -> Path | None:
    """The folder named by ``--data``, else by GRAMIAN_DATA, else None."""
    name = option or os.environ.get("GRAMIAN_DATA")
    return Path(name) if name else None


def load_arrays(name: str, folder: Path | None) -> dict[str, np.ndarray]:
    """Every array of a set as stored, for ratings and pairs; beware of small integer types."""
    try:
        return datasets.load_arrays(name, data=folder)
    except ValueError as error:
        raise DataMissingError(f"data set {name!r} cannot be had: {error}") from error


def load_set(name: str, folder: Path | None) -> Dataset:
    """A labelled set, dense or CSR, in float64."""
    return datasets.load(name, data=folder)
