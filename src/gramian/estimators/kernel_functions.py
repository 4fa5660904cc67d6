"""scikit-learn's kernels by name, and kernel functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.sparsefuncs import mean_variance_axis

from gramian.arrays.samples import far_means, shifted, varying_columns
from gramian.common.parameters import ABOVE_ZERO, FINITE, Rule, or_none
from gramian.common.types import Array

PARAMS = or_none(Rule("a dictionary", lambda value: isinstance(value, Mapping)))

OF_DISTANCES = ("rbf", "laplacian", "chi2")
"""Kernels exp(−γ d(x, z)), which are positive semidefinite only if γ > 0."""

ASYMMETRY = 1e-4
"""Largest difference of k(x, z) and k(z, x), relative to the largest value, in float32."""


def check_kernel(kernel: Any, params: Any) -> None:
    """Raise ValueError unless the kernel is a function or the name of a scikit-learn kernel, and
    `params` are parameters of it."""
    PARAMS.check(params, "kernel_params")
    if callable(kernel):
        return
    if kernel not in PAIRWISE_KERNEL_FUNCTIONS:
        raise ValueError(
            f"kernel must be None, a function of two sample matrices, or one of "
            f"{sorted(PAIRWISE_KERNEL_FUNCTIONS)}, got {kernel!r}"
        )
    known = sorted(KERNEL_PARAMS[kernel])
    for name, value in (params or {}).items():
        if name not in known:
            raise ValueError(
                f'kernel_params has {name!r}, but the parameters of kernel="{kernel}" are {known}'
            )
        if value is not None:
            rule = ABOVE_ZERO if kernel in OF_DISTANCES else FINITE
            rule.check(value, f"kernel_params[{name!r}]")


def with_bandwidth(kernel: Any, params: dict[str, Any] | None, X: Any) -> dict[str, Any]:
    """The parameters, with γ = 1/(sum of the variances of the columns) for "rbf" without γ.

    For centred samples this is 1/(n_features · var X). It is invariant to translations, rotations
    and constant columns.
    """
    found = dict(params or {})
    if kernel == "rbf" and found.get("gamma") is None:
        spread = float(np.sum(_column_variances(X)))
        found["gamma"] = 1.0 / spread if spread > 0 else 1.0
    return found


def _column_variances(X: Any) -> Array:
    """The variance of each column, from differences to its mean; exactly 0 for a constant."""
    if sp.issparse(X):
        variances = mean_variance_axis(sp.csc_array(X, dtype=float), axis=0)[1]
    else:
        variances = np.var(X, axis=0, dtype=float)
    return np.where(varying_columns(X), variances, 0.0)


def value_rounding(kernel: Any, params: dict[str, Any], X: Any) -> float:
    """The relative rounding error of k(x, z).

    A value exp(−γ‖x − z‖²) has the absolute error of its exponent, whose distance is computed from
    products of the shifted samples.
    """
    eps = float(np.finfo(float).eps)
    if kernel != "rbf":
        return eps
    X = shifted(X, far_means(X))
    squares = X.multiply(X) if sp.issparse(X) else np.square(X)
    return eps * (1.0 + 4.0 * params["gamma"] * float(np.max(squares.sum(axis=1))))


def kernel_values(kernel: Any, params: dict[str, Any], X: Any, Z: Any) -> Array:
    """k(x, z) for all rows of X and Z."""
    same = X is Z
    if kernel == "rbf":  # its distances are computed from products, which cancel far away
        shift = far_means(Z)
        if shift.any():
            Z = shifted(Z, shift)
            X = Z if same else shifted(X, shift)
    if callable(kernel):
        values = np.asarray(kernel(X, Z, **params), dtype=float)
    else:
        values = np.asarray(pairwise_kernels(X, Z, metric=kernel, **params), dtype=float)
    if values.shape != (X.shape[0], Z.shape[0]) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"the kernel must return {X.shape[0]} × {Z.shape[0]} finite numbers, got "
            f"{values.shape}" + ("" if np.all(np.isfinite(values)) else " with some not finite")
        )
    if same and np.max(np.abs(values - values.T)) > ASYMMETRY * np.max(np.abs(values)):
        raise ValueError("the kernel must be symmetric, but k(x, z) and k(z, x) differ")
    return values
