"""Kernels of scikit-learn's, by name, and functions in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from gramian._samples import far_means, shifted

Array = NDArray[np.floating]


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
