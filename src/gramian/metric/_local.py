"""What the learners of local metrics share: dense coordinates, and where neighbours are sought."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.metric._coordinates import coordinates
from gramian.metric.kta import KTA

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

NEIGHBOR_METRICS = ("kta", "euclidean")

MATRICES = 6
"""Square matrices of the order of the features that a fit holds at once."""


def dense_coordinates(X: Any, name: str) -> tuple[Array, Array | None]:
    """Centred samples as a dense array, in their span where that is smaller, and its basis.

    Distances are all that a local metric sees, so the span loses nothing.
    """
    n, d = X.shape
    X = X.astype(float, copy=False)
    view = coordinates(X, center=True)
    if view.basis is not None:
        return np.ascontiguousarray(view.X, dtype=float), view.basis
    need = 8 * (2 * n * d + MATRICES * d * d)
    if need > _memory() / 2:
        raise ValueError(
            f"{name} works on dense samples and {d} × {d} matrices, which here need "
            f"{need / 1e9:.1f} GB of the {_memory() / 1e9:.1f} GB of this machine: reduce the "
            "features first, for example with sklearn.decomposition.TruncatedSVD"
        )
    samples = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    return samples - samples.mean(axis=0), None


def neighbor_metric(X: Array, classes: Indices, metric: str) -> Array:
    """A factor L of the metric to seek neighbours in: KTA's, or Euclid's.

    Neighbours by Euclid's distance follow whatever features are largest; alignment with the
    labels, which costs one product XᵀX, makes better targets of them. It takes the samples at
    unit size, so that their scale changes nothing.
    """
    size = float(np.sqrt(np.mean(X * X)))
    if metric == "euclidean" or size == 0:
        return np.eye(X.shape[1])
    return KTA(tol=1e-2).fit(X / size, classes).components_.T / size


def check_neighbor_metric(metric: str) -> None:
    if metric not in NEIGHBOR_METRICS:
        raise ValueError(f"neighbor_metric must be one of {NEIGHBOR_METRICS}, got {metric!r}")


def joined(basis: Array | None, R: Array) -> Array:
    """The way from whitened coordinates back to the features."""
    return R if basis is None else basis @ R


def _memory() -> float:
    """Bytes of this machine's memory; unlimited where it cannot be told."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return np.inf
