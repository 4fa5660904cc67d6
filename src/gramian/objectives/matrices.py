"""The symmetric matrices an objective is built from, as products and a few facts.

Solvers only multiply by them; certificates ask for a lower bound on their eigenvalues, and
small problems for the dense form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from gramian import clock
from gramian.backends.arrays import (
    HOST,
    Placed,
    at_home,
    backend,
    eye,
    host,
    inner,
    namespace,
    norm,
    place_of,
    size,
)
from gramian.proofs import (
    EXACT_ORDER,
    DenseForm,
    SparseForm,
    eigen_seconds,
    gershgorin,
    lowest,
    rounded_sum,
)

Array = NDArray[np.floating]

DENSE_ORDER = 3000
"""Up to this order a full eigenvalue computation takes a few seconds at most."""

ROUNDED = 64 * float(np.finfo(float).eps)
"""How far below 0, in units of the order and the norm, an eigenvalue can be for rounding alone."""


class SymmetricMatrix(Protocol):
    """A symmetric matrix known by its products."""

    @property
    def order(self) -> int: ...

    @property
    def lower(self) -> float:
        """A true lower bound on the smallest eigenvalue; −inf where none is known."""

    def __matmul__(self, V: Array) -> Array: ...

    def dense(self) -> Array: ...


class Dense(Placed):
    """A symmetric ndarray; `lower` saves the eigenvalues where a bound is known already.

    `floor` is a bound that is known, too, where a better one is of use.
    """

    def __init__(self, array: Array, *, lower: float | None = None, floor: float = -np.inf) -> None:
        self.array = array
        self.order = array.shape[0]
        self._lower, self._floor = lower, floor

    @cached_property
    def lower(self) -> float:
        if self._lower is not None:
            return self._lower
        if self.order > DENSE_ORDER:
            form = DenseForm(self.array, np.zeros(self.order))
            return max(self._floor, _proved_lower(self.array, form))
        clock.check(eigen_seconds(self.order))
        bottom = scipy.linalg.eigvalsh(self.array, subset_by_index=[0, 0])[0]
        return max(self._floor, float(bottom - _roundoff(self.array)))

    def __matmul__(self, V: Array) -> Array:
        return self.array @ V

    def dense(self) -> Array:
        return self.array


class Gram(Dense):
    """RᵀR by products with R, so that ⟨RᵀR, M⟩ = ‖RL‖² is not negative beyond rounding.

    In directions where R vanishes M may be very large, and the entries of RᵀR too coarse.
    """

    def __init__(self, root: Array) -> None:
        super().__init__(root.T @ root, floor=0.0)
        self.root = root

    def __matmul__(self, V: Array) -> Array:
        product: Array = self.root.T @ (self.root @ V)
        return product

    def square(self, L: Array) -> float:
        """‖RL‖² = ⟨RᵀR, LLᵀ⟩, at least 0."""
        image = self.root @ L
        return inner(image, image)

    def rounding(self, L: Array) -> float:
        """What the computed ‖RL‖² can be off by."""
        unit = rounded_sum(max(self.root.shape))
        sizes = namespace(L).abs(self.root) @ namespace(L).abs(L)
        length, reach = norm(self.root @ L), norm(sizes)
        return float(4 * unit * reach * (length + unit * reach))


class Sparse(Placed):
    """A symmetric scipy sparse matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csr_array(matrix)
        self.order = self.matrix.shape[0]

    @cached_property
    def lower(self) -> float:
        """Gershgorin's bound where it is enough, as for D − W and for what dominates its rows."""
        discs = gershgorin(self.matrix)
        if discs > 0 or self.order > min(DENSE_ORDER, EXACT_ORDER):
            return discs if discs > 0 else _proved_lower(self.matrix, SparseForm(self.matrix))
        return max(discs, Dense(self.dense()).lower)

    def __matmul__(self, V: Array) -> Array:
        product: Array = backend(V).sparse_product(self.matrix, V)
        return product

    def dense(self) -> Array:
        return self.matrix.toarray()


class LowRankPlusIdentity(Placed):
    """s I + U diag(δ) Uᵀ; with no U, a multiple of the identity."""

    def __init__(
        self,
        order: int,
        scale: float = 0.0,
        factor: Array | None = None,
        weights: Array | None = None,
    ) -> None:
        self.order = int(order)
        self.scale = float(scale)
        self.factor = np.zeros((order, 0)) if factor is None else np.asarray(factor, dtype=float)
        rank = self.factor.shape[1]
        self.weights = np.ones(rank) if weights is None else np.asarray(weights, dtype=float)
        if self.factor.shape != (self.order, self.weights.size):
            raise ValueError(
                f"a low-rank part needs a factor of shape ({order}, k) and k weights, "
                f"got {self.factor.shape} and {self.weights.size}"
            )

    @cached_property
    def lower(self) -> float:
        """s plus the smallest eigenvalue of the low-rank part, which is one of a small matrix."""
        if not np.any(self.weights < 0):
            return self.scale
        R: Array = scipy.linalg.qr(self.factor, mode="r")[0][: self.weights.size]
        part = (R * self.weights) @ R.T
        return self.scale + min(float(np.linalg.eigvalsh(part)[0] - _roundoff(part)), 0.0)

    def __matmul__(self, V: Array) -> Array:
        product = self.scale * V
        if self.weights.shape[0]:
            product = product + (self.factor * self.weights) @ (self.factor.T @ V)
        return product

    def dense(self) -> Array:
        low: Array = (self.factor * self.weights) @ self.factor.T
        return self.scale * eye(self.order, self.place) + low


class GramOperator(Placed):
    """s Xᵀ diag(w) X by products with X alone, for X too wide to form it; w = 1 unless told."""

    def __init__(self, X: Any, scale: float = 1.0, weights: Array | None = None) -> None:
        self.X, self.scale, self.weights = X, float(scale), weights
        self.order = X.shape[1]

    @cached_property
    def lower(self) -> float:
        """0 where s·w ≥ 0; otherwise what the rows with s·w < 0 can take away at most."""
        below = np.minimum(self.scale * (np.ones(1) if self.weights is None else self.weights), 0.0)
        if not below.any():
            return 0.0
        if self.order <= DENSE_ORDER:
            return Dense(self.dense()).lower
        norms = self.X.multiply(self.X).sum(axis=1) if sp.issparse(self.X) else (self.X**2).sum(1)
        return float(np.sum(below * np.ravel(norms)))

    def __matmul__(self, V: Array) -> Array:
        XV = self.X @ V
        if self.weights is not None:
            XV = (XV.T * self.weights).T
        return self.scale * (self.X.T @ XV)

    def dense(self) -> Array:
        return self @ eye(self.order, self.place)


class MatrixSum:
    """The sum of symmetric matrices, each kept in its own form."""

    def __init__(self, *parts: SymmetricMatrix, lower: float | None = None) -> None:
        self.parts = parts
        self.order = parts[0].order
        self._lower = lower

    @property
    def lower(self) -> float:
        return sum(part.lower for part in self.parts) if self._lower is None else self._lower

    def __matmul__(self, V: Array) -> Array:
        return sum((part @ V for part in self.parts[1:]), self.parts[0] @ V)

    def dense(self) -> Array:
        return sum((part.dense() for part in self.parts[1:]), self.parts[0].dense())


class Scaled:
    """A multiple of a symmetric matrix."""

    def __init__(self, matrix: SymmetricMatrix, scale: float) -> None:
        self.matrix, self.scale = matrix, float(scale)
        self.order = matrix.order
        self.shape = (self.order, self.order)

    @property
    def lower(self) -> float:
        if self.scale == 0:
            return 0.0
        return self.scale * self.matrix.lower if self.scale > 0 else -np.inf

    def __matmul__(self, V: Array) -> Array:
        return self.scale * (self.matrix @ V)

    def dense(self) -> Array:
        return self.scale * self.matrix.dense()


class Rooted(Placed):
    """RᵀCR for a root R given by its products."""

    lower = -np.inf

    def __init__(self, matrix: SymmetricMatrix, root: Any) -> None:
        self.matrix, self.root, self.order = matrix, root, root.order
        self.place = root.place

    def __matmul__(self, V: Array) -> Array:
        columns = V[:, None] if V.ndim == 1 else V
        product: Array = self.root.transposed(self.matrix @ (self.root @ columns))
        return product[:, 0] if V.ndim == 1 else product

    def dense(self) -> Array:
        return self._dense

    @cached_property
    def _dense(self) -> Array:
        return self @ eye(self.order, self.place)


class Operator(Placed):
    """A scipy LinearOperator that its owner says is symmetric."""

    def __init__(self, operator: LinearOperator, *, lower: float = -np.inf) -> None:
        self.operator, self.lower = operator, lower
        self.order = operator.shape[0]

    def __matmul__(self, V: Array) -> Array:
        """On the host, wherever V is: the operator is its owner's."""
        product: Array = place_of(V).put(self.operator @ host(V)) if size(V) else 0.0 * V
        return product

    def dense(self) -> Array:
        return self @ eye(self.order, self.place)


def diagonal_of(matrix: SymmetricMatrix) -> Array | None:
    """The diagonal, where it is at hand."""
    if isinstance(matrix, Sparse):
        return np.asarray(matrix.matrix.diagonal())
    if isinstance(matrix, Dense):
        return np.diagonal(matrix.array)
    if isinstance(matrix, LowRankPlusIdentity):
        return matrix.scale + np.einsum("ik,ik,k->i", matrix.factor, matrix.factor, matrix.weights)
    return None


def dense_numbers(matrix: SymmetricMatrix) -> int:
    """How many numbers the dense arrays hold that a product with it goes through."""
    if isinstance(matrix, MatrixSum):
        return max(dense_numbers(part) for part in matrix.parts)
    if isinstance(matrix, Scaled | Rooted):
        return dense_numbers(matrix.matrix)
    if isinstance(matrix, LowRankPlusIdentity):
        return matrix.factor.size
    if isinstance(matrix, GramOperator):
        return 0 if sp.issparse(matrix.X) else matrix.X.size
    return 0 if isinstance(matrix, Sparse) else matrix.order**2


def as_symmetric(value: Any, name: str, order: int | None = None) -> SymmetricMatrix:
    """Wrap what a user may pass for A, B or C, or say what is wrong with it.

    Takes a symmetric ndarray, a scipy sparse matrix or LinearOperator, one of the classes here,
    a number (that multiple of the identity) or None (zero), the last two where `order` is known.
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
    """Refuse a matrix that is known not to be PSD: with it the problem is not convex.

    Only where λ_min is computed rather than bounded; rounding may leave it a little below 0.
    """
    if isinstance(matrix, Dense):
        size = float(np.linalg.norm(matrix.array))
    elif isinstance(matrix, Sparse):
        size = float(np.linalg.norm(matrix.matrix.data))
    elif isinstance(matrix, GramOperator) and matrix.order <= DENSE_ORDER:
        size = abs(matrix.lower)
    elif isinstance(matrix, LowRankPlusIdentity):
        size = abs(matrix.scale) + float(np.sum(np.abs(matrix.weights) * matrix.factor**2))
    else:
        return
    if matrix.lower < -ROUNDED * matrix.order * size:
        raise ValueError(
            f"{name} must be positive semidefinite, but its smallest eigenvalue is about "
            f"{matrix.lower:.3g}; without that the problem is not convex"
        )


def _multiple_of_identity(value: Any, name: str, order: int | None) -> LowRankPlusIdentity:
    if order is None:
        raise ValueError(f"{name} is a number or None, and nothing else says the order of M")
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
    matrix = sp.csr_array(value, dtype=float)
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


def _roundoff(array: Array) -> float:
    """What a backward-stable eigenvalue can be off by."""
    return float(8 * np.finfo(float).eps * np.linalg.norm(array))


@dataclass(frozen=True)
class _Known:
    """A matrix and its form, as a proof takes them."""

    matrix: Any
    structure: Any

    @property
    def order(self) -> int:
        return int(self.matrix.shape[0])

    def __matmul__(self, v: Array) -> Array:
        return self.matrix @ v

    def dense(self) -> Array:
        return self.matrix.toarray() if sp.issparse(self.matrix) else self.matrix

    def form(self) -> Any:
        return self.structure

    def slack(self) -> Array:
        return np.zeros(self.order)


def _proved_lower(matrix: Any, form: Any) -> float:
    """A lower bound on λ_min that is proved, −inf where no proof fits."""
    found = lowest(_Known(matrix, form))
    return found.value if found.proved else -np.inf


def size_of(matrix: Any) -> float:
    """An upper bound on ‖A‖, or about that where only products are known."""
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
    """|A|V for V ≥ 0, or more than that: what the rounding of AV is measured by."""
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
