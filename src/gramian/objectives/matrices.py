"""Symmetric matrices of an objective, given by products and a few properties.

Solvers only multiply by them; certificates need a lower bound on their eigenvalues, and
small problems the dense form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from gramian.arrays.places import (
    Placed,
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
"""Order up to which a full eigenvalue decomposition takes at most a few seconds."""


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
        product: Array = self.root.T @ (self.root @ V)
        return product

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


class Sparse(Placed):
    """A symmetric scipy sparse matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csr_array(matrix)
        self.order = self.matrix.shape[0]

    @cached_property
    def lower(self) -> float:
        """Gershgorin's bound if it suffices, as for D − W and diagonally dominant matrices."""
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
        """s plus the smallest eigenvalue of the low-rank part, from a small matrix."""
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
        product: Array = place_of(V).put(self.operator @ host(V)) if size(V) else 0.0 * V
        return product

    def dense(self) -> Array:
        return self @ eye(self.order, self.place)


def _roundoff(array: Array) -> float:
    """Error bound of a backward-stable eigenvalue."""
    return float(8 * np.finfo(float).eps * np.linalg.norm(array))


@dataclass(frozen=True)
class _Known:
    """A matrix and its structure, as the argument of a proof."""

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
    """A proved lower bound on λ_min, −inf if no proof applies."""
    found = lowest(_Known(matrix, form))
    return found.value if found.proved else -np.inf
