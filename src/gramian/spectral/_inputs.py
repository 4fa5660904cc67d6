"""Validation of the matrix K and its conversion to an operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator

from gramian.arrays.places import Place, as_double, host, norm
from gramian.objectives.matrices import Dense, Operator, Sparse, SymmetricMatrix

Array = NDArray[np.float64]

_FEW_COLUMNS = 3
_ASYMMETRY = 1e-8
_POWER_STEPS = 4


class SymmetricArray:
    """Products with a symmetric C-contiguous array.

    Few columns are multiplied one by one using one triangle, which halves the memory traffic: at
    order 5000 BLAS takes 4 ms per column this way, 7 ms by a general product, and as a matrix
    product 17 ms for two columns, 21 ms for eight.
    """

    def __init__(self, array: Array) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __matmul__(self, V: Array) -> Array:
        if V.ndim == 1:
            return dsymv(1.0, self.array.T, V, lower=1)
        if V.shape[1] <= _FEW_COLUMNS:
            return np.array([dsymv(1.0, self.array.T, v, lower=1) for v in V.T]).T
        return (V.T @ self.array).T


@dataclass(frozen=True)
class Given:
    """A validated K: its products, its internal representation, and the dense array if any."""

    operator: Any
    matrix: SymmetricMatrix
    dense: Array | None = None

    @property
    def order(self) -> int:
        return self.matrix.order

    @cached_property
    def norm(self) -> float:
        """‖Kv‖/‖v‖ after a few power iterations, a lower bound on ‖K‖."""
        v = _probe(self.order)
        size = 0.0
        for _ in range(_POWER_STEPS):
            v = self.operator @ (v / np.linalg.norm(v))
            size = float(np.linalg.norm(v))
            if size == 0.0:
                break
        return size


def given(K: Any) -> Given:
    """Validate and wrap K; errors state what to pass instead."""
    if isinstance(K, Dense):
        K = K.array
    elif isinstance(K, Sparse):
        K = K.matrix
    if isinstance(K, LinearOperator):
        _check_shape(K.shape)
        _check_real(K.dtype)
        return _checked(K, Operator(K))
    if sp.issparse(K):
        _check_shape(K.shape)
        _check_real(K.dtype)
        return _checked_sparse(K)
    if all(hasattr(type(K), name) for name in ("lower", "dense", "__matmul__")):
        return _checked(_Shaped(K), K)
    return _checked_dense(K)


class There:
    """A symmetric matrix on a device, dense or sparse, validated by its products."""

    def __init__(self, matrix: Any, there: Place) -> None:
        self.matrix, self.place, self.shape = matrix, there, tuple(matrix.shape)
        self.order = self.shape[0]

    def __matmul__(self, V: Any) -> Any:
        return self.matrix @ V

    @cached_property
    def norm(self) -> float:
        """‖Kv‖/‖v‖ after a few power iterations, a lower bound on ‖K‖."""
        v, size = self.place.put(_probe(self.order)), 0.0
        for _ in range(_POWER_STEPS):
            v = self @ (v / norm(v))
            size = norm(v)
            if size == 0.0:
                break
        return size


def there_matrix(K: Any, there: Place) -> There:
    """K on a device; ValueError unless it is real, symmetric and finite."""
    if isinstance(K, LinearOperator):
        raise ValueError("a LinearOperator is multiplied on the processor: leave device out")
    _check_shape(tuple(K.shape))
    if sp.issparse(K) or isinstance(K, np.ndarray):
        _check_real(K.dtype)
    matrix = there.sparse(K.astype(np.float64)) if sp.issparse(K) else as_double(there.put(K))
    v = there.put(_probe(matrix.shape[0]))
    _check_images(host(matrix @ v), host(matrix.T @ v))
    return There(matrix, there)


class _Shaped:
    """A matrix of this library with a `shape`."""

    def __init__(self, matrix: SymmetricMatrix) -> None:
        self._matrix, self.shape = matrix, (matrix.order, matrix.order)

    def __matmul__(self, V: Array) -> Any:
        return self._matrix @ V


def _checked_dense(K: Any) -> Given:
    array = np.asarray(K)
    _check_real(array.dtype)
    _check_shape(array.shape)
    array = np.ascontiguousarray(array, dtype=np.float64)
    v = _probe(array.shape[0])
    with np.errstate(invalid="ignore", over="ignore"):
        _check_images(array @ v, v @ array)
    return Given(SymmetricArray(array), Dense(array), array)


def _checked_sparse(K: Any) -> Given:
    matrix = sp.csr_array(K, dtype=np.float64)
    v = _probe(matrix.shape[0])
    with np.errstate(invalid="ignore", over="ignore"):
        _check_images(matrix @ v, matrix.T @ v)
    return Given(matrix, Sparse(matrix))


def _checked(operator: Any, matrix: SymmetricMatrix) -> Given:
    """For an operator without a transpose only xᵀKy = yᵀKx can be tested."""
    x, y = _probe(matrix.order), _probe(matrix.order, seed=1)
    with np.errstate(invalid="ignore", over="ignore"):
        Kx, Ky = (np.asarray(operator @ v, dtype=np.float64) for v in (x, y))
    _check_images(Kx, Kx)
    size = float(np.linalg.norm(x) * np.linalg.norm(Ky) + np.linalg.norm(y) * np.linalg.norm(Kx))
    if abs(float(x @ Ky - y @ Kx)) > _ASYMMETRY * size:
        raise ValueError("K must be symmetric, but this operator has xᵀKy ≠ yᵀKx")
    return Given(operator, matrix)


def _probe(n: int, seed: int = 0) -> Array:
    """Random numbers of both signs, none close to zero."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], n) * rng.uniform(1.0, 2.0, n)


def _check_images(image: Array, transposed: Array) -> None:
    """Compare Kv with Kᵀv, which differ if K ≠ Kᵀ, and test that they are finite."""
    if not (np.isfinite(image).all() and np.isfinite(transposed).all()):
        raise ValueError("K contains NaN or infinity (or numbers too large to add)")
    if np.max(np.abs(image - transposed)) > _ASYMMETRY * np.max(np.abs(image)):
        raise ValueError("K must be symmetric; pass (K + K.T) / 2 if that is meant")


def _check_real(dtype: Any) -> None:
    kind = np.dtype(dtype if dtype is not None else np.float64).kind
    if kind == "c":
        raise ValueError(
            "K must be real, got complex numbers; a Hermitian A + iB has the eigenvalues of the "
            "real [[A, -B], [B, A]], each twice"
        )
    if kind not in "fiub":
        raise ValueError(f"K must hold real numbers, got dtype {dtype}")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"K must be a square matrix, got shape {tuple(shape)}")
    if shape[0] == 0:
        raise ValueError("K is empty: it has no eigenvalues")
