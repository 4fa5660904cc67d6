"""The base class of linear maps, and checks of the index arrays that define them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays import cpu
from gramian.arrays.places import Placed, beside, columns_at, eye, namespace, precision
from gramian.arrays.samples import integers
from gramian.linalg.svec import triangle

Floats = NDArray[np.floating[Any]]

ROUNDINGS = 8
"""Error bound of an entry of an image, in units of its rounding error."""


class LinearMap(Placed, ABC):
    """A linear map 𝒜 from symmetric n × n matrices to R^p, with its adjoint 𝒜*.

    ⟨𝒜(M), w⟩ = ⟨M, 𝒜*(w)⟩ for every symmetric M and every w. Only `of_matrix` and
    `adjoint_matrix` use dense n × n matrices.
    """

    order: int  # n
    size: int  # p
    dense_numbers: int = 0
    """Size of the dense matrix that multiplies factors, 0 if there is none."""

    @property
    def apart(self) -> dict[tuple[int, ...], int]:
        """Shapes of arrays whose rows may stay on the host if the device has too little memory,
        and the number of rows of each that belong together."""
        return {}

    @abstractmethod
    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """𝒜(½ (U Vᵀ + V Uᵀ)) for factors of shape (n, r); cheaper when `V is U`."""

    @abstractmethod
    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """𝒜*(w) V for w of shape (p,) and V of shape (n, k)."""

    @abstractmethod
    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        """𝒜(M) for a dense symmetric M."""

    def of_factor(self, L: Floats) -> NDArray[np.float64]:
        """𝒜(L Lᵀ)."""
        return self.bilinear(L, L)

    def adjoint_matrix(self, w: Floats) -> Floats:
        """𝒜*(w) as a dense symmetric n × n matrix."""
        return self.adjoint(w, eye(self.order, self.place))

    def columns(self, W: Floats) -> NDArray[np.float64]:
        """𝒜(W S Wᵀ) as a (p, k(k+1)/2) matrix acting on svec(S)."""
        places = zip(*triangle(W.shape[1]), strict=True)
        columns = [W[:, i : i + 1] for i in range(W.shape[1])]
        found = [float(scale) * self.bilinear(columns[i], columns[j]) for i, j, scale in places]
        return namespace(W).stack(found, axis=1)

    def seen(self, L: Floats) -> Any:
        """The part of a product that depends on L alone, for `of_seen` and `adjoint_of_seen`."""
        return L

    def of_seen(self, seen: Any, other: Any) -> NDArray[np.float64]:
        """𝒜(½ (U Vᵀ + V Uᵀ)) from `seen` of U and of V."""
        return self.bilinear(seen, other)

    def adjoint_of_seen(self, w: Floats, seen: Any) -> Floats:
        """𝒜*(w) L from `seen` of L."""
        return self.adjoint(w, seen)

    def fixed(self, L: Floats) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        """D ↦ 𝒜(½(LDᵀ + DLᵀ)) and w ↦ 𝒜*(w)L for one fixed L."""
        seen = self.seen(L)
        return lambda D: self.of_seen(seen, self.seen(D)), lambda w: self.adjoint_of_seen(w, seen)

    def vector_product(self, w: Floats) -> Callable[[Floats], Floats] | None:
        """v ↦ 𝒜*(w)v for a fixed w, None if this is not faster than `adjoint`."""
        return None

    def identity_weights(self) -> NDArray[np.float64] | None:
        """A w with 𝒜*(w) = I, None if none is known."""
        return None

    def reach(self, w: Floats) -> tuple[Floats, float] | None:
        """Upper bounds on the row sums of |𝒜*(w)| and on the terms of an entry, or None."""
        return None

    def error(self, L: Floats, z: Floats) -> NDArray[np.float64]:
        """Bound on the floating point error of each entry of z = 𝒜(LLᵀ)."""
        return ROUNDINGS * precision(z) * namespace(z).abs(z)

    def error_along(self, w: Floats, L: Floats, z: Floats) -> float:
        """Bound on the resulting error of ⟨w, z⟩."""
        return float(namespace(z).abs(w) @ self.error(L, z))

    def error_of_rows(self, off: Floats, L: Floats, z: Floats) -> NDArray[np.float64]:
        """The same as `error` if row i of L itself has an error of norm off_i."""
        widest = float(namespace(L).max(off * (2 * row_norms(L) + off)))
        return self.error(L, z) + 4 * widest

    def __repr__(self) -> str:
        return f"{type(self).__name__}(order={self.order}, size={self.size})"


def row_norms(L: Floats) -> Floats:
    """‖l_i‖ of every row."""
    return namespace(L).linalg.vector_norm(L, axis=1)


def symmetric_products(left: Floats, right: Floats) -> NDArray[np.float64]:
    """scale · ½ (l_a r_b + l_b r_a) for every pair of rows l, r and every a ≤ b (see `columns`)."""
    a, b, scale = triangle(left.shape[1])
    products = columns_at(left, a) * columns_at(right, b)
    products += columns_at(left, b) * columns_at(right, a)
    return products * beside(left, 0.5 * scale)


def check_factors(order: int, *factors: Floats) -> None:
    """Raise ValueError for factors with a wrong number of rows or different shapes."""
    for factor in factors:
        if factor.ndim != 2 or factor.shape[0] != order:
            raise ValueError(f"expected a factor of shape ({order}, r), got {factor.shape}")
    if len({factor.shape for factor in factors}) > 1:
        raise ValueError(f"factors differ in shape: {[factor.shape for factor in factors]}")


def check_weights(size: int, w: Floats) -> None:
    """Raise ValueError if w is not in R^p."""
    if w.shape != (size,):
        raise ValueError(f"expected weights of shape ({size},), got {w.shape}")


def check_matrix(order: int, M: Floats) -> None:
    """Raise ValueError if M is not n × n."""
    if M.shape != (order, order):
        raise ValueError(f"expected a matrix of shape ({order}, {order}), got {M.shape}")


def check_order(n: int) -> int:
    """Raise ValueError unless n is a positive integer below 2³¹."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"n must be a positive integer, got {n!r}")
    if n > np.iinfo(np.int32).max:
        raise ValueError(f"n must be below 2**31, got {n}")
    return int(n)


def index_columns(tuples: ArrayLike, n: int, width: int, name: str) -> list[cpu.Indices]:
    """Validated columns of a (p, width) array of indices into 0..n−1."""
    table = np.asarray(tuples)
    if table.ndim != 2 or table.shape[1] != width:
        raise ValueError(f"{name} must have shape (p, {width}), got {table.shape}")
    if table.shape[0] == 0:
        raise ValueError(f"{name} must not be empty")
    table = integers(table, name)
    if table.min() < 0 or table.max() >= n:
        outside = (table.min(axis=1) < 0) | (table.max(axis=1) >= n)
        refuse_rows(table, outside, name, f"has an index outside 0..{n - 1}")
    return [cpu.index_array(column) for column in table.T]


def refuse_rows(table: NDArray[Any], bad: NDArray[np.bool_], name: str, fault: str) -> None:
    """Raise ValueError for the first bad row of an index array, if any."""
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(f"{name}[{first}] = {table[first].tolist()} {fault}")
