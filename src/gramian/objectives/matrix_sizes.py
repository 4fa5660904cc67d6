"""Sizes of symmetric matrices: norms, products of absolute values, diagonals, dense elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.places import HOST, at_home, namespace, norm
from gramian.objectives.matrices import (
    Dense,
    Gram,
    GramOperator,
    LowRankPlusIdentity,
    MatrixSum,
    Rooted,
    Scaled,
    Sparse,
    SymmetricMatrix,
)

Array = NDArray[np.floating]

SMALL_ROUNDING = 1e-10
"""Relative rounding error of F below which bounds by norms suffice."""


def diagonal_of(matrix: SymmetricMatrix) -> Array | None:
    """The diagonal, None if it is not available cheaply."""
    if isinstance(matrix, Sparse):
        return np.asarray(matrix.matrix.diagonal())
    if isinstance(matrix, Dense):
        return np.diagonal(matrix.array)
    if isinstance(matrix, LowRankPlusIdentity):
        return matrix.scale + np.einsum("ik,ik,k->i", matrix.factor, matrix.factor, matrix.weights)
    return None


def dense_numbers(matrix: SymmetricMatrix) -> int:
    """Number of elements of the dense arrays that a product reads."""
    if isinstance(matrix, MatrixSum):
        return max(dense_numbers(part) for part in matrix.parts)
    if isinstance(matrix, Scaled | Rooted):
        return dense_numbers(matrix.matrix)
    if isinstance(matrix, LowRankPlusIdentity):
        return matrix.factor.size
    if isinstance(matrix, GramOperator):
        return 0 if sp.issparse(matrix.X) else matrix.X.size
    return 0 if isinstance(matrix, Sparse) else matrix.order**2


def size_of(matrix: Any) -> float:
    """An upper bound on ‖A‖, or an estimate if only products are known."""
    matrix = at_home(matrix)
    if isinstance(matrix, Dense):
        return float(np.linalg.norm(matrix.array))
    if isinstance(matrix, Sparse):
        return float(np.linalg.norm(matrix.matrix.data))
    if isinstance(matrix, LowRankPlusIdentity):
        return abs(matrix.scale) + float(np.sum(np.abs(matrix.weights) * matrix.factor**2))
    if isinstance(matrix, Scaled):
        return abs(matrix.scale) * size_of(matrix.matrix)
    if isinstance(matrix, MatrixSum):
        return sum(size_of(part) for part in matrix.parts)
    if isinstance(matrix, GramOperator):
        values = matrix.X.data if sp.issparse(matrix.X) else np.asarray(matrix.X)
        weight = 1.0 if matrix.weights is None else float(np.max(np.abs(matrix.weights)))
        return abs(matrix.scale) * weight * float(np.sum(np.square(values, dtype=float)))
    probe = np.random.default_rng(0).standard_normal((matrix.order, 1))
    return norm(matrix @ getattr(matrix, "place", HOST).put(probe))


def absolute_product(matrix: Any, V: Array) -> Array:
    """An upper bound on |A|V for V ≥ 0, to bound the rounding error of AV."""
    xp = namespace(V)
    if isinstance(matrix, Gram):
        root = xp.abs(matrix.root)
        return root.T @ (root @ V)
    if isinstance(matrix, Dense):
        return xp.abs(matrix.array) @ V
    if isinstance(matrix, Sparse):
        return abs(matrix.matrix) @ V
    if isinstance(matrix, LowRankPlusIdentity):
        U = xp.abs(matrix.factor)
        return abs(matrix.scale) * V + (U * xp.abs(matrix.weights)) @ (U.T @ V)
    if isinstance(matrix, Scaled):
        return abs(matrix.scale) * absolute_product(matrix.matrix, V)
    if isinstance(matrix, MatrixSum):
        return sum((absolute_product(part, V) for part in matrix.parts), 0.0 * V)
    if isinstance(matrix, GramOperator):
        X = abs(matrix.X)
        image = X @ V
        image = image if matrix.weights is None else xp.abs(matrix.weights)[:, None] * image
        return abs(matrix.scale) * (X.T @ image)
    lengths: Array = xp.linalg.vector_norm(V, axis=0) * xp.ones_like(V[:, :1])
    return size_of(matrix) * lengths
