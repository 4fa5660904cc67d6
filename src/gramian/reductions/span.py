"""Samples in coordinates of their span, if its dimension is smaller than that of the features.

A regulariser such as ‖M − I‖² determines M exactly outside the span of the samples, and distances
do not depend on it there. With fewer samples than features, and in the feature space of a kernel,
M = BSBᵀ with an orthonormal basis B of the span, and S is learned from the samples XB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.arrays.dense import eigh
from gramian.arrays.samples import column_sums, near_origin
from gramian.common.memory import check_memory
from gramian.common.types import Array
from gramian.objectives.matrices import DENSE_ORDER
from gramian.reductions.base import Substitution

MAX_BASIS_ENTRIES = 50_000_000
"""Largest basis of the span to form: 400 MB."""

MATRICES = 6
"""Number of square matrices of the order of the coordinates that a fit stores."""


@dataclass(frozen=True)
class Span(Substitution):
    """Samples in the chosen coordinates, and the basis (d × k), None for the identity."""

    X: Any
    centered: bool

    @property
    def exact(self) -> bool:
        """Whether matrices of this order can be decomposed."""
        return self.X.shape[1] <= DENSE_ORDER


def span_of(X: Any, *, center: bool, shift: Array | None = None) -> Span:
    """The features themselves, or the span if there are fewer samples and its basis fits.

    If translations do not matter, samples far from the origin are shifted: their products would
    lose digits. `shift` is `far_means`, if known.
    """
    n, d = X.shape
    X = near_origin(X, shift) if center else X
    if d <= n or n > DENSE_ORDER or n * d > MAX_BASIS_ENTRIES:
        return Span(None, X, centered=False)
    return _smaller(X, center)


def _smaller(X: Any, center: bool) -> Span:
    """From the n × n Gram matrix XXᵀ: coordinates UΣ and basis XᵀUΣ⁻¹."""
    product = X @ X.T
    K = np.asarray(product.toarray() if sp.issparse(product) else product, dtype=float)
    found = kernel_span(K, center=center, eps=float(np.finfo(X.dtype).eps))
    if found is None:
        return Span(None, X, centered=False)
    rows, W = found
    basis = np.asarray(X.T @ W, dtype=float)
    if center:
        basis -= np.outer(column_sums(X, squares=False)[0] / X.shape[0], W.sum(axis=0))
    return Span(basis, rows, centered=center)


def dense_span(X: Any, name: str, shift: Array | None = None) -> Span:
    """Centred samples as a dense array, in their span if that is smaller.

    A local metric depends on distances only, so the span loses nothing. `shift` is `far_means`, if
    known.
    """
    n, d = X.shape
    X = X.astype(float, copy=False)
    view = span_of(X, center=True, shift=shift)
    if view.matrix is not None:
        return Span(view.matrix, np.ascontiguousarray(view.X, dtype=float), centered=True)
    check_memory(
        8 * (2 * n * d + MATRICES * d * d),
        f"{name} works on dense samples and {d} × {d} matrices",
        "reduce the features first, for example with sklearn.decomposition.TruncatedSVD",
    )
    samples = np.asarray(view.X.toarray() if sp.issparse(view.X) else view.X, dtype=float)
    return Span(None, samples - samples.mean(axis=0), centered=True)


def kernel_span(
    K: Array, *, center: bool, eps: float = float(np.finfo(float).eps)
) -> tuple[Array, Array] | None:
    """Coordinates UΣ of the samples whose kernel is K = UΣ²Uᵀ, and W = UΣ⁻¹.

    The columns of W are coefficients of an orthonormal basis of the samples' span: k(x)W are the
    coordinates of a new x with the kernel values k(x). None if K has no positive eigenvalue.
    """
    if center:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1, keepdims=True)
    values, U = eigh(0.5 * (K + K.T))
    kept = values > max(values[-1], -values[0]) * K.shape[0] * eps
    if not kept.any():
        return None
    sigma, U = np.sqrt(values[kept]), U[:, kept]
    return U * sigma, U / sigma


def linear_span(X: Any, *, center: bool) -> tuple[Array, Array] | None:
    """`kernel_span` of K = XXᵀ in the basis of the features, if the samples span all of them.

    The features are then combinations of the samples, W = X(XᵀX)⁻¹. Otherwise None.
    """
    n, d = X.shape
    samples = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    samples = samples - center * samples.mean(axis=0)
    U, sigma, Vt = np.linalg.svd(samples, full_matrices=False)
    if d > n or not sigma[-1] > sigma[0] * n * np.finfo(X.dtype).eps:
        return None
    return samples, (U / sigma) @ Vt
