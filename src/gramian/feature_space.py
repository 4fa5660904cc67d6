"""Kernels and the feature space that the samples span."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from gramian._samples import far_means, shifted

Array = NDArray[np.floating]


def kernel_span(
    K: Array, *, center: bool, eps: float = float(np.finfo(float).eps)
) -> tuple[Array, Array] | None:
    """Coordinates UΣ of the samples whose kernel is K = UΣ²Uᵀ, and W = UΣ⁻¹.

    The columns of W are an orthonormal basis of the samples' span, as combinations of them: k(x)W
    are the coordinates of a new x with the kernel values k(x). None where K is zero.
    """
    if center:
        K = K - K.mean(axis=0)
        K = K - K.mean(axis=1, keepdims=True)
    values, U = np.linalg.eigh(0.5 * (K + K.T))
    kept = values > values[-1] * K.shape[0] * eps
    if not kept.any():
        return None
    sigma, U = np.sqrt(values[kept]), U[:, kept]
    return U * sigma, U / sigma


def linear_span(X: Any, *, center: bool) -> tuple[Array, Array] | None:
    """`kernel_span` of K = XXᵀ in the basis of the features, where the samples span them all.

    The features are combinations of the samples then, W = X(XᵀX)⁻¹. None where they are not.
    """
    n, d = X.shape
    samples = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    samples = samples - center * samples.mean(axis=0)
    U, sigma, Vt = np.linalg.svd(samples, full_matrices=False)
    if d > n or not sigma[-1] > sigma[0] * n * np.finfo(X.dtype).eps:
        return None
    return samples, (U / sigma) @ Vt


def check_kernel(kernel: Any) -> None:
    """Refuse what is neither a kernel of scikit-learn's by name nor a function."""
    if not callable(kernel) and kernel not in PAIRWISE_KERNEL_FUNCTIONS:
        raise ValueError(
            f"kernel must be None, a function of two sample matrices, or one of "
            f"{sorted(PAIRWISE_KERNEL_FUNCTIONS)}, got {kernel!r}"
        )


def with_bandwidth(kernel: Any, params: dict[str, Any] | None, X: Any) -> dict[str, Any]:
    """The parameters, with γ = 1/(d·var X) for a Gaussian that has none."""
    found = dict(params or {})
    if kernel == "rbf" and found.get("gamma") is None:
        spread = _variance(X)
        found["gamma"] = 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
    return found


def _variance(X: Any) -> float:
    """The variance of all entries, by their differences from the mean."""
    if not sp.issparse(X):
        return float(np.var(X, dtype=float))
    mean = float(X.mean(dtype=float))
    empty = X.shape[0] * X.shape[1] - X.nnz
    return float((np.sum(np.square(X.data - mean)) + empty * mean**2) / (X.nnz + empty))


def kernel_values(kernel: Any, params: dict[str, Any], X: Any, Z: Any) -> Array:
    """k(x, z) for all rows of X and Z."""
    if kernel == "rbf":  # of distances, which are computed from products and cancel far away
        shift = far_means(Z)
        X, Z = (shifted(X, shift), shifted(Z, shift)) if shift.any() else (X, Z)
    if callable(kernel):
        values = np.asarray(kernel(X, Z, **params), dtype=float)
    else:
        values = np.asarray(pairwise_kernels(X, Z, metric=kernel, **params), dtype=float)
    if values.shape != (X.shape[0], Z.shape[0]) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"the kernel must give {X.shape[0]} × {Z.shape[0]} finite numbers, got "
            f"{values.shape}" + ("" if np.all(np.isfinite(values)) else " with some not finite")
        )
    return values
