"""Symmetric matrices of an objective, given by products and a few properties.

Solvers only multiply by them; certificates need a lower bound on their eigenvalues, and
small problems the dense form.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol, TypeGuard

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from gramian.arrays.places import (
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
from gramian.common import clock
from gramian.common.types import Array
from gramian.objectives.base import SymmetricOperator
from gramian.proofs import (
    EXACT_ORDER,
    DenseForm,
    LowRank,
    SparseForm,
    eigen_seconds,
    gershgorin,
    lowest,
    rounded_sum,
)

BORDER = 64
"""Largest number of columns of a low-rank part in a sparse factorisation."""

FULL = 0.1
"""Density above which a sparse matrix counts as dense."""

DENSE_ORDER = 3000
"""Order up to which a full eigenvalue decomposition takes at most a few seconds."""

SMALL_ROUNDING = 1e-10
"""Relative rounding error of F below which bounds by norms suffice."""


class SymmetricMatrix(Protocol):
    """A symmetric matrix given by its products."""

    @property
    def order(self) -> int: ...

    @property
    def lower(self) -> float:
        """A valid lower bound on the smallest eigenvalue; −inf if unknown."""

    def __matmul__(self, V: Array) -> Array: ...

    def dense(self) -> Array: ...


class Dense(Placed):
    """A symmetric ndarray; `lower` avoids the eigenvalue computation if a bound is known.

    `floor` is another known bound, used if it is better than the computed one.
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

    In directions where R vanishes M may be very large, and the entries of RᵀR too inaccurate.
    """

    def __init__(self, root: Array) -> None:
        super().__init__(root.T @ root, floor=0.0)
        self.root = root

    def __matmul__(self, V: Array) -> Array:
        return self.root.T @ (self.root @ V)

    def square(self, L: Array) -> float:
        """‖RL‖² = ⟨RᵀR, LLᵀ⟩, at least 0."""
        image = self.root @ L
        return inner(image, image)

    def rounding(self, L: Array) -> float:
        """Rounding error of the computed ‖RL‖²."""
        unit = rounded_sum(max(self.root.shape))
        sizes = namespace(L).abs(self.root) @ namespace(L).abs(L)
        length, reach = norm(self.root @ L), norm(sizes)
        return float(4 * unit * reach * (length + unit * reach))


class SparsePlusLowRank(Placed):
    """cI + S + U diag(ω) Uᵀ: a multiple of I, a sparse and a low-rank part."""

    def __init__(
        self,
        order: int,
        scale: float = 0.0,
        sparse: Any = None,
        factor: Array | None = None,
        weights: Array | None = None,
    ) -> None:
        self.order, self.scale, self.sparse = int(order), float(scale), sparse
        self.factor = np.zeros((order, 0)) if factor is None else factor
        self.weights = np.ones(self.factor.shape[1]) if weights is None else weights

    def __add__(self, other: SparsePlusLowRank) -> SparsePlusLowRank:
        sparse = [part.sparse for part in (self, other) if part.sparse is not None]
        return SparsePlusLowRank(
            self.order,
            self.scale + other.scale,
            sum(sparse[1:], sparse[0]) if sparse else None,
            np.hstack([self.factor, other.factor]),
            np.concatenate([self.weights, other.weights]),
        )

    def times(self, number: float) -> SparsePlusLowRank:
        sparse = None if self.sparse is None else number * self.sparse
        return SparsePlusLowRank(
            self.order, number * self.scale, sparse, self.factor, number * self.weights
        )

    @property
    def columns(self) -> int:
        return int(self.factor.shape[1])

    @cached_property
    def lower(self) -> float:
        """The sum of c and of lower bounds on S and on the low-rank part."""
        bottom = self.scale + (0.0 if self.sparse is None else _sparse_lower(self.sparse))
        if not np.any(self.weights < 0):
            return bottom
        R: Array = scipy.linalg.qr(self.factor, mode="r")[0][: self.weights.size]
        part = (R * self.weights) @ R.T
        return bottom + min(float(np.linalg.eigvalsh(part)[0] - _roundoff(part)), 0.0)

    def __matmul__(self, V: Array) -> Array:
        product: Any = None
        if self.sparse is not None:
            product = backend(V).sparse_product(self.sparse, V)
        if self.scale or product is None:
            product = self.scale * V if product is None else product + self.scale * V
        if self.columns:
            product = product + (self.factor * self.weights) @ (self.factor.T @ V)
        return product

    def dense(self) -> Array:
        total: Array = self.scale * eye(self.order, self.place)
        if self.sparse is not None:
            total = total + self.sparse.toarray()
        return total + (self.factor * self.weights) @ self.factor.T if self.columns else total

    def diagonal(self) -> Array:
        entries = self.scale + self.factor**2 @ self.weights
        return entries if self.sparse is None else entries + self.sparse.diagonal()

    def absolute_sums(self) -> tuple[Array, float]:
        """The row sums of |S|, and the largest number of entries of a row."""
        if self.sparse is None:
            return np.zeros(self.order), 1.0
        sums = np.asarray(abs(self.sparse).sum(axis=1), dtype=float).ravel()
        return sums, float(np.max(np.diff(sp.csr_array(self.sparse).indptr), initial=1))

    def reach(self) -> tuple[Array, float]:
        """The row sums of |S| + |U||ω||U|ᵀ, and the largest number of terms of an entry."""
        (sums, longest), U = self.absolute_sums(), np.abs(self.factor)
        return sums + U @ (np.abs(self.weights) * U.sum(axis=0)), longest + self.columns

    def form(self) -> LowRank | SparseForm | None:
        """The form of proof for these parts, None if only the dense matrix is possible."""
        if self.sparse is None:
            wide = 2 * self.columns > self.order
            return None if wide else LowRank(self.scale, self.factor, np.diag(self.weights))
        if self.sparse.nnz > FULL * self.order**2 or self.columns > BORDER:
            return None
        diagonal = self.scale * sp.eye_array(self.order)
        return SparseForm(self.sparse + diagonal, self.factor, self.weights)


class Sparse(SparsePlusLowRank):
    """A symmetric scipy sparse matrix."""

    def __init__(self, matrix: Any) -> None:
        matrix = sp.csr_array(matrix)
        super().__init__(matrix.shape[0], sparse=matrix)

    @property
    def matrix(self) -> Any:
        return self.sparse


class LowRankPlusIdentity(SparsePlusLowRank):
    """s I + U diag(δ) Uᵀ; with no U, a multiple of the identity."""

    def __init__(
        self,
        order: int,
        scale: float = 0.0,
        factor: Array | None = None,
        weights: Array | None = None,
    ) -> None:
        factor = None if factor is None else np.asarray(factor, dtype=float)
        weights = None if weights is None else np.asarray(weights, dtype=float)
        super().__init__(order, scale, None, factor, weights)
        if self.factor.shape != (self.order, self.weights.size):
            raise ValueError(
                f"a low-rank part needs a factor of shape ({order}, k) and k weights, "
                f"got {self.factor.shape} and {self.weights.size}"
            )


def is_multiple_of_identity(matrix: Any) -> TypeGuard[LowRankPlusIdentity]:
    return isinstance(matrix, LowRankPlusIdentity) and not matrix.columns


def _sparse_lower(matrix: Any) -> float:
    """Gershgorin's bound if it suffices, as for D − W and diagonally dominant matrices."""
    discs, order = gershgorin(matrix), matrix.shape[0]
    if discs > 0 or order > min(DENSE_ORDER, EXACT_ORDER):
        return discs if discs > 0 else _proved_lower(matrix, SparseForm(matrix))
    return max(discs, Dense(matrix.toarray()).lower)


class GramOperator(Placed):
    """s Xᵀ diag(w) X by products with X, if it is too large to form; default w = 1."""

    def __init__(self, X: Any, scale: float = 1.0, weights: Array | None = None) -> None:
        self.X, self.scale, self.weights = X, float(scale), weights
        self.order = X.shape[1]

    @cached_property
    def lower(self) -> float:
        """0 if s·w ≥ 0; otherwise a bound from the rows with s·w < 0."""
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
    """A scipy LinearOperator, assumed to be symmetric."""

    def __init__(self, operator: LinearOperator, *, lower: float = -np.inf) -> None:
        self.operator, self.lower = operator, lower
        self.order = operator.shape[0]

    def __matmul__(self, V: Array) -> Array:
        """Product on the host, also if V is on a device."""
        return place_of(V).put(self.operator @ host(V)) if size(V) else 0.0 * V

    def dense(self) -> Array:
        return self @ eye(self.order, self.place)


def _roundoff(array: Array) -> float:
    """Error bound of a backward-stable eigenvalue."""
    return float(8 * np.finfo(float).eps * np.linalg.norm(array))


def _proved_lower(matrix: Any, form: Any) -> float:
    """A proved lower bound on λ_min, −inf if no proof applies."""

    def dense() -> Array:
        return matrix.toarray() if sp.issparse(matrix) else matrix

    known = SymmetricOperator(matrix.shape[0], matrix.__matmul__, dense, lambda: form)
    found = lowest(known)
    return found.value if found.proved else -np.inf


def diagonal_of(matrix: SymmetricMatrix) -> Array | None:
    """The diagonal, None if it is not available cheaply."""
    if isinstance(matrix, Dense):
        return np.diagonal(matrix.array)
    return matrix.diagonal() if isinstance(matrix, SparsePlusLowRank) else None


def dense_numbers(matrix: SymmetricMatrix) -> int:
    """Number of elements of the dense arrays that a product reads."""
    if isinstance(matrix, MatrixSum):
        return max(dense_numbers(part) for part in matrix.parts)
    if isinstance(matrix, Scaled | Rooted):
        return dense_numbers(matrix.matrix)
    if isinstance(matrix, SparsePlusLowRank):
        return size(matrix.factor)
    if isinstance(matrix, GramOperator):
        return 0 if sp.issparse(matrix.X) else size(matrix.X)
    return matrix.order**2


def size_of(matrix: Any) -> float:
    """An upper bound on ‖A‖, or an estimate if only products are known."""
    if not isinstance(matrix, Dense | SparsePlusLowRank | Scaled | MatrixSum | GramOperator):
        probe = np.random.default_rng(0).standard_normal((matrix.order, 1))
        return norm(matrix @ getattr(matrix, "place", HOST).put(probe))
    matrix = at_home(matrix)
    if isinstance(matrix, Dense):
        return float(np.linalg.norm(matrix.array))
    if isinstance(matrix, SparsePlusLowRank):
        sparse = 0.0 if matrix.sparse is None else float(np.linalg.norm(matrix.sparse.data))
        low = float(np.sum(np.abs(matrix.weights) * matrix.factor**2))
        return abs(matrix.scale) + sparse + low
    if isinstance(matrix, Scaled):
        return abs(matrix.scale) * size_of(matrix.matrix)
    if isinstance(matrix, MatrixSum):
        return sum(size_of(part) for part in matrix.parts)
    values = matrix.X.data if sp.issparse(matrix.X) else np.asarray(matrix.X)
    weight = 1.0 if matrix.weights is None else float(np.max(np.abs(matrix.weights)))
    return abs(matrix.scale) * weight * float(np.sum(np.square(values, dtype=float)))


def absolute_product(matrix: Any, V: Array) -> Array:
    """An upper bound on |A|V for V ≥ 0, to bound the rounding error of AV."""
    xp = namespace(V)
    if isinstance(matrix, Gram):
        root = xp.abs(matrix.root)
        return root.T @ (root @ V)
    if isinstance(matrix, Dense):
        return xp.abs(matrix.array) @ V
    if isinstance(matrix, SparsePlusLowRank):
        found = abs(matrix.scale) * V
        if matrix.sparse is not None:
            found += abs(matrix.sparse) @ V
        if matrix.columns:
            U = xp.abs(matrix.factor)
            found += (U * xp.abs(matrix.weights)) @ (U.T @ V)
        return found
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
