"""Validation of symmetric matrices passed by users."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from gramian.arrays.samples import with_short_indices
from gramian.objectives.matrices import (
    DENSE_ORDER,
    Dense,
    GramOperator,
    LowRankPlusIdentity,
    Operator,
    Sparse,
    SparsePlusLowRank,
    SymmetricMatrix,
    size_of,
)

ROUNDED = 64 * float(np.finfo(float).eps)
"""Rounding error of an eigenvalue near 0, in units of the order times the norm."""


def as_symmetric(value: Any, name: str, order: int | None = None) -> SymmetricMatrix:
    """Validate and wrap A, B or C; errors describe the problem.

    Takes a symmetric ndarray, a scipy sparse matrix or LinearOperator, one of the classes here,
    a number (that multiple of the identity) or None (zero), the last two if `order` is known.
    """
    if value is None or isinstance(value, Real):
        wrapped: Any = _multiple_of_identity(value, name, order)
    elif isinstance(value, LinearOperator):
        _check_square(value.shape, name)
        wrapped = Operator(value)
    elif sp.issparse(value):
        wrapped = _checked_sparse(value, name)
    elif all(hasattr(type(value), name) for name in ("lower", "dense", "__matmul__")):
        wrapped = value
    else:
        wrapped = _checked_dense(value, name)
    if order is not None and wrapped.order != order:
        raise ValueError(f"{name} has order {wrapped.order}, but the problem has order {order}")
    return wrapped


def require_psd(matrix: SymmetricMatrix, name: str) -> None:
    """Raise ValueError for a matrix that is known not to be PSD: the problem would not be convex.

    Only if λ_min is computed rather than bounded; rounding may make it slightly negative.
    """
    if isinstance(matrix, Dense | SparsePlusLowRank):
        size = size_of(matrix)
    elif isinstance(matrix, GramOperator) and matrix.order <= DENSE_ORDER:
        size = abs(matrix.lower)
    else:
        return
    if matrix.lower < -ROUNDED * matrix.order * size:
        raise ValueError(
            f"{name} must be positive semidefinite, but its smallest eigenvalue is about "
            f"{matrix.lower:.3g}; without that the problem is not convex"
        )


def _multiple_of_identity(value: Any, name: str, order: int | None) -> LowRankPlusIdentity:
    if order is None:
        raise ValueError(f"{name} is a number or None, and no matrix determines the order of M")
    scale = 0.0 if value is None else float(value)
    if not np.isfinite(scale):
        raise ValueError(f"{name} is {scale}, which is not finite")
    return LowRankPlusIdentity(order, scale)


def _checked_dense(value: Any, name: str) -> Dense:
    array = np.asarray(value)
    if array.dtype == object or np.iscomplexobj(array) or array.dtype.kind in "USmM":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    _check_square(array.shape, name)
    array = np.ascontiguousarray(array, dtype=float)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} contains NaN or infinity")
    if not np.allclose(array, array.T, rtol=1e-8, atol=1e-10 * np.max(np.abs(array), initial=0.0)):
        raise ValueError(f"{name} must be symmetric; pass ({name} + {name}.T) / 2 if that is meant")
    return Dense((array + array.T) / 2)


def _checked_sparse(value: Any, name: str) -> Sparse:
    _check_square(value.shape, name)
    if np.iscomplexobj(value) or value.dtype == object:
        raise ValueError(f"{name} must hold real numbers, got dtype {value.dtype}")
    matrix = sp.csr_array(with_short_indices(value), dtype=float)
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError(f"{name} contains NaN or infinity")
    skew = abs(matrix - matrix.T)
    if skew.nnz and skew.max() > 1e-8 * abs(matrix).max():
        raise ValueError(f"{name} must be symmetric")
    return Sparse(matrix)


def _check_square(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {tuple(shape)}")
    if shape[0] == 0:
        raise ValueError(f"{name} is empty")
