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

from gramian.arrays.places import HOST, Place, as_double, host, largest, norm
from gramian.arrays.samples import refuse_masked
from gramian.objectives.matrices import Dense, Operator, Sparse, SymmetricMatrix
from gramian.problems.nearest import ASYMMETRY

Array = NDArray[np.float64]

_FEW_COLUMNS = 3
_POWER_STEPS = 4
_SQUARABLE = 400
"""Powers of 2 up to which sums of squares neither overflow nor underflow."""


class SymmetricArray:
    """Products with a symmetric C-contiguous array.

    Few columns are multiplied one by one using one triangle, which halves the memory traffic: at
    order 5000 BLAS takes 4 ms per column this way, 7 ms by a general product, and as a matrix
    product 17 ms for two columns, 21 ms for eight.
    """

    def __init__(self, array: Array) -> None:
        self.array = array

    def __matmul__(self, V: Array) -> Array:
        if V.ndim == 1:
            return dsymv(1.0, self.array.T, V, lower=1)
        if V.shape[1] <= _FEW_COLUMNS:
            return np.array([dsymv(1.0, self.array.T, v, lower=1) for v in V.T]).T
        return (V.T @ self.array).T


@dataclass(frozen=True)
class Given:
    """A validated K: its products, its internal representation, and the dense array if any."""

    order: int
    operator: Any
    matrix: SymmetricMatrix | None = None
    dense: Array | None = None
    place: Place = HOST

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Any) -> Any:
        return self.operator @ V

    @property
    def unit(self) -> float:
        """A power of 2 to divide K by: 1 unless squares of its products overflow or underflow."""
        size = largest(self @ self.place.put(_probe(self.order)))
        power = max(int(np.frexp(size)[1]), -1000)
        return 2.0**power if size > 0 and abs(power) > _SQUARABLE else 1.0

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


def given(K: Any, there: Place) -> Given:
    """Validate and wrap K; errors state what to pass instead."""
    if isinstance(K, Dense):
        K = K.array
    elif isinstance(K, Sparse):
        K = K.matrix
    refuse_masked(K, "K")
    operator = isinstance(K, LinearOperator)
    if operator and not there.is_host:
        raise ValueError("a LinearOperator is multiplied on the processor: leave device out")
    if all(hasattr(type(K), name) for name in ("lower", "dense", "__matmul__")):
        return _checked_operator(K, K, K.order)
    if there.is_host and not (operator or sp.issparse(K)):
        K = np.asarray(K)
    _check_shape(tuple(K.shape))
    n = K.shape[0]
    if operator or sp.issparse(K) or isinstance(K, np.ndarray):
        _check_real(K.dtype)
    if operator:
        return _checked_operator(K, Operator(K), n)
    if not there.is_host:
        K = there.sparse(K.astype(np.float64)) if sp.issparse(K) else as_double(there.put(K))
        found = Given(n, K, place=there)
    elif sp.issparse(K):
        K = sp.csr_array(K, dtype=np.float64)
        found = Given(n, K, Sparse(K))
    else:
        K = np.ascontiguousarray(K, dtype=np.float64)
        found = Given(n, SymmetricArray(K), Dense(K), K)
    v = there.put(_probe(n))
    with np.errstate(invalid="ignore", over="ignore"):
        image, transposed = host(K @ v), host(K.T @ v)
    _check_finite(image, transposed)
    if np.max(np.abs(image - transposed)) > ASYMMETRY * np.max(np.abs(image)):
        raise ValueError("K must be symmetric; pass (K + K.T) / 2 if that is meant")
    return found


def _checked_operator(operator: Any, matrix: SymmetricMatrix, n: int) -> Given:
    """For an operator without a transpose only xᵀKy = yᵀKx can be tested."""
    x, y = _probe(n), _probe(n, seed=1)
    with np.errstate(invalid="ignore", over="ignore"):
        Kx, Ky = (np.asarray(operator @ v, dtype=np.float64) for v in (x, y))
    _check_finite(Kx)
    size = float(np.linalg.norm(x) * np.linalg.norm(Ky) + np.linalg.norm(y) * np.linalg.norm(Kx))
    if abs(float(x @ Ky - y @ Kx)) > ASYMMETRY * size:
        raise ValueError("K must be symmetric, but this operator has xᵀKy ≠ yᵀKx")
    return Given(n, operator, matrix)


def _probe(n: int, seed: int = 0) -> Array:
    """Random numbers of both signs, none close to zero."""
    rng = np.random.default_rng(seed)
    return rng.choice([-1.0, 1.0], n) * rng.uniform(1.0, 2.0, n)


def _check_finite(*images: Array) -> None:
    if not all(np.isfinite(image).all() for image in images):
        raise ValueError("K contains NaN or infinity (or numbers too large to add)")


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
