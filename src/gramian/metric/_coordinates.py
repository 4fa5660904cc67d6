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

from gramian.objectives.matrices import DENSE_ORDER
from gramian.problems.moments import column_means

Array = NDArray[np.floating]

SPAN_ENTRIES = 50_000_000
"""Largest basis of the span to form: 400 MB."""


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
    """The features themselves, or the span where samples are fewer and its basis fits."""
    n, d = X.shape
    if d <= n or n > DENSE_ORDER or n * d > SPAN_ENTRIES:
        return Coordinates(X, None, centered=False)
    return _span(X, center)


def _span(X: Any, center: bool) -> Coordinates:
    """From the n × n Gram matrix K = UΣ²Uᵀ: coordinates UΣ and basis XᵀUΣ⁻¹."""
    kernel = X @ X.T
    K = np.asarray(kernel.toarray() if sp.issparse(kernel) else kernel, dtype=float)
    if center:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1, keepdims=True)
    values, U = np.linalg.eigh(0.5 * (K + K.T))
    kept = values > values[-1] * K.shape[0] * np.finfo(X.dtype).eps
    if not kept.any():
        return Coordinates(X, None, centered=False)
    sigma, U = np.sqrt(values[kept]), U[:, kept]
    basis = np.asarray(X.T @ (U / sigma), dtype=float)
    if center:
        basis -= np.outer(column_means(X), (U / sigma).sum(axis=0))
    return Coordinates(U * sigma, basis, centered=center)
