"""Coordinates to learn a metric in: the features, or the span of the samples where it is smaller.

A regulariser such as ‖M − I‖² leaves M as it is outside the span of the data, exactly, so with
fewer samples than features the problem lives in the span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian._samples import near_origin
from gramian.feature_space import kernel_span
from gramian.memory import check_memory
from gramian.objectives.matrices import DENSE_ORDER
from gramian.problems.moments import column_means

Array = NDArray[np.floating]

SPAN_ENTRIES = 50_000_000
"""Largest basis of the span to form: 400 MB."""

MATRICES = 6
"""Square matrices of the order of the coordinates that a fit holds at once."""


@dataclass(frozen=True)
class Coordinates:
    """Samples in the coordinates to use, and the basis (d × k) that leads back, None for none."""

    X: Any
    basis: Array | None
    centered: bool

    @property
    def exact(self) -> bool:
        """Whether matrices of this order can be decomposed."""
        return self.X.shape[1] <= DENSE_ORDER


def coordinates(X: Any, *, center: bool) -> Coordinates:
    """The features themselves, or the span where samples are fewer and its basis fits.

    Where a shift does not count, samples far from the origin are shifted to it: their products
    would keep few digits.
    """
    n, d = X.shape
    X = near_origin(X) if center else X
    if d <= n or n > DENSE_ORDER or n * d > SPAN_ENTRIES:
        return Coordinates(X, None, centered=False)
    return _span(X, center)


def _span(X: Any, center: bool) -> Coordinates:
    """From the n × n Gram matrix XXᵀ: coordinates UΣ and basis XᵀUΣ⁻¹."""
    product = X @ X.T
    K = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=float)
    found = kernel_span(K, center=center, eps=float(np.finfo(X.dtype).eps))
    if found is None:
        return Coordinates(X, None, centered=False)
    rows, W = found
    basis = np.asarray(X.T @ W, dtype=float)
    if center:
        basis -= np.outer(column_means(X), W.sum(axis=0))
    return Coordinates(rows, basis, centered=center)


def dense_coordinates(X: Any, name: str) -> tuple[Array, Array | None]:
    """Centred samples as a dense array, in their span where that is smaller, and its basis.

    Distances are all that a local metric sees, so the span loses nothing.
    """
    n, d = X.shape
    X = X.astype(float, copy=False)
    view = coordinates(X, center=True)
    if view.basis is not None:
        return np.ascontiguousarray(view.X, dtype=float), view.basis
    check_memory(
        8 * (2 * n * d + MATRICES * d * d),
        f"{name} works on dense samples and {d} × {d} matrices",
        "reduce the features first, for example with sklearn.decomposition.TruncatedSVD",
    )
    samples = np.asarray(view.X.toarray() if sp.issparse(view.X) else view.X, dtype=float)
    return samples - samples.mean(axis=0), None


def row_keys(X: Any) -> Array:
    """One number for each row: the same for equal rows, and hardly ever for others."""
    v = np.cos(np.arange(X.shape[1]) + 1.0).astype(X.dtype)
    return X @ v if sp.issparse(X) else np.einsum("ij,j->i", X, v)
