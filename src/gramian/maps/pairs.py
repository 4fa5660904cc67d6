"""Entries and squared distances of pairs of points of a Gram matrix."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.places import (
    as_double,
    at_home,
    backend,
    beside,
    columns_at,
    namespace,
    place_of,
)
from gramian.arrays.row_systems import dense_row_systems, row_systems
from gramian.linalg.svec import triangle
from gramian.maps.base import (
    Floats,
    LinearMap,
    check_factors,
    check_matrix,
    check_order,
    check_weights,
    index_columns,
    refuse_rows,
    row_norms,
    symmetric_products,
)

MIN_COMPILED_NUMBERS = 250_000
"""Numbers in the rows of one product from which compiled code is used at once if hundreds follow:
for 3,568 edges and 24 columns a gather and a scatter take 0.27 ms compiled, 0.59 ms in NumPy."""

MAX_PLAIN_NUMBERS = 80_000_000
"""Numbers in the rows of all products of a map after which compiled code is used. The compiled code
would have saved the time of the import of the compiler, 0.5 s."""


class PairMap(LinearMap):
    """A map with one value per pair (i, j), rows of the (p, 2) integer array `pairs`."""

    touched: float
    """Sum of |𝒜*(w)| over one of the two rows of a pair, for |w_e| = 1."""

    def __init__(self, pairs: ArrayLike, n: int) -> None:
        self.order = check_order(n)
        self.rows, self.cols = index_columns(pairs, self.order, 2, "pairs")
        self.size = self.rows.size

    @cached_property
    def pattern(self) -> cpu.Pattern:
        """The sparsity pattern of 𝒜*(w), built at the first adjoint."""
        return backend(self.rows).pattern(self.rows, self.cols, self.order)

    @abstractmethod
    def adjoint_sparse(self, w: Floats) -> sparse.csr_array:
        """𝒜*(w) as a sparse matrix."""

    def adjoint_matrix(self, w: Floats) -> Floats:
        if self.place.is_host:
            return self.adjoint_sparse(w).toarray()
        return self._dense_there(w)

    @abstractmethod
    def _dense_there(self, w: Floats) -> Floats:
        """𝒜*(w) as a dense matrix on a device."""

    def reach(self, w: Floats) -> tuple[Floats, float]:
        """Row sums of |𝒜*(w)| by the weights of the pairs of each point."""
        sizes, library = namespace(w).abs(w), backend(w)
        sums = library.group_sums(self.rows, sizes, self.order)
        sums = sums + library.group_sums(self.cols, sizes, self.order)
        starts = self.pattern.indptr
        return self.touched * sums, float((starts[1:] - starts[:-1]).max()) + 1.0


class PairDistances(PairMap):
    """𝒜(K)_e = K_ii + K_jj − 2 K_ij for the pairs e = (i, j), rows of the (p, 2) array `pairs`.

    With K = L Lᵀ this is ‖l_i − l_j‖². The adjoint 𝒜*(w) = Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ is
    the Laplacian of the weighted graph.
    """

    touched = 2.0
    compiled: bool | None = None
    """Whether products on the host use compiled code; None decides by the size of a product."""
    plain_numbers: int | None = None
    """Numbers that may still be multiplied without compiled code; None if they are not counted."""

    def __init__(self, pairs: ArrayLike, n: int) -> None:
        super().__init__(pairs, n)
        loops = self.rows == self.cols
        refuse_rows(np.asarray(pairs), loops, "pairs", "joins a point to itself, at distance zero")

    @classmethod
    def of(cls, rows: Any, cols: Any, order: int) -> PairDistances:
        """The map of valid index arrays on any device, without checks."""
        made = cls.__new__(cls)
        made.rows, made.cols, made.order, made.size = rows, cols, order, int(rows.shape[0])
        made.place = place_of(rows)
        return made

    def for_many_products(
        self, columns: int, *, least: int = MIN_COMPILED_NUMBERS
    ) -> PairDistances:
        """A copy of the map for hundreds of products with the given number of columns."""
        often = copy(self)
        often.compiled = True if self.size * columns > least else None
        return often

    def counted(self, columns: int) -> PairDistances:
        """`for_many_products`; after `MAX_PLAIN_NUMBERS` it uses compiled code in any case."""
        often = self.for_many_products(columns)
        often.plain_numbers = None if often.compiled else MAX_PLAIN_NUMBERS
        return often

    def recount(self) -> None:
        """Count from 0 again: equal runs then use the same code, and have the same bits."""
        if self.plain_numbers is not None:
            self.plain_numbers = MAX_PLAIN_NUMBERS

    def _how(self, columns: int) -> dict[str, bool]:
        """The option `compiled` of the next product."""
        if self.plain_numbers is not None:
            self.plain_numbers -= self.size * columns
            self.compiled = self.plain_numbers <= 0
        if self.compiled is None or not self.place.is_host:
            return {}
        return {"compiled": self.compiled}

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """(u_i − u_j)·(v_i − v_j) for every pair."""
        check_factors(self.order, U, V)
        return backend(U).gather_distances(U, V, self.rows, self.cols, **self._how(U.shape[1]))

    def columns(self, W: Floats) -> NDArray[np.float64]:
        """scale · (w_ia − w_ja)(w_ib − w_jb) for every pair (i, j) and every a ≤ b."""
        check_factors(self.order, W)
        a, b, scale = triangle(W.shape[1])
        differences = W[self.rows] - W[self.cols]
        products: NDArray[np.float64] = columns_at(differences, a) * columns_at(differences, b)
        return products * beside(W, scale)

    def error_of_rows(self, off: Floats, L: Floats, z: Floats) -> NDArray[np.float64]:
        """|δ‖l_i − l_j‖²| ≤ 2‖l_i − l_j‖(o_i + o_j) + (o_i + o_j)²."""
        xp, both = namespace(z), off[self.rows] + off[self.cols]
        return both * (2 * xp.sqrt(xp.abs(z)) + both) + self.error(L, z)

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ V."""
        check_weights(self.size, w)
        check_factors(self.order, V)
        return backend(V).scatter_distances(w, V, self.pattern, **self._how(V.shape[1]))

    def adjoint_sparse(self, w: Floats) -> sparse.csr_array:
        """𝒜*(w), a Laplacian, as a sparse matrix."""
        check_weights(self.size, w)
        return cpu.laplacian_matrix(w, self.pattern)

    def _dense_there(self, w: Floats) -> Floats:
        return backend(w).laplacian_dense(w, self.pattern)

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        """M_ii + M_jj − 2 M_ij for every pair."""
        check_matrix(self.order, M)
        M = as_double(M)
        diagonal = namespace(M).linalg.diagonal(M)
        return diagonal[self.rows] + diagonal[self.cols] - 2 * M[self.rows, self.cols]


class Entries(PairMap):
    """𝒜(K)_e = K_ij for the pairs e = (i, j), rows of the (p, 2) integer array `pairs`.

    Diagonal entries (i, i) and repeated pairs are allowed. The adjoint is
    𝒜*(w) = Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ).
    """

    touched = 0.5

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """½ (u_i·v_j + u_j·v_i) for every pair."""
        check_factors(self.order, U, V)
        return backend(U).gather_entries(U, V, self.rows, self.cols)

    def columns(self, W: Floats) -> NDArray[np.float64]:
        check_factors(self.order, W)
        return symmetric_products(W[self.rows], W[self.cols])

    def error_of_rows(self, off: Floats, L: Floats, z: Floats) -> NDArray[np.float64]:
        """|δ(l_i·l_j)| ≤ o_i ‖l_j‖ + o_j ‖l_i‖ + o_i o_j."""
        rows = row_norms(L)
        i, j = self.rows, self.cols
        return off[i] * rows[j] + off[j] * rows[i] + off[i] * off[j] + self.error(L, z)

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ) V."""
        check_weights(self.size, w)
        check_factors(self.order, V)
        return backend(V).scatter_entries(w, V, self.pattern)

    def adjoint_sparse(self, w: Floats) -> sparse.csr_array:
        check_weights(self.size, w)
        return cpu.entries_matrix(w, self.pattern)

    def _dense_there(self, w: Floats) -> Floats:
        return backend(w).entries_dense(w, self.pattern)

    def adjoint_diagonal(self, w: Floats) -> NDArray[np.float64]:
        """The diagonal of 𝒜*(w)."""
        xp = namespace(w)
        one = self.place.put(np.ones((self.order, 1)))
        own = xp.where(self._own, w, 0.0 * w)
        return backend(one).scatter_entries(own, one, self.pattern)[:, 0]

    @property
    def _own(self) -> NDArray[np.bool_]:
        """Which entries are on the diagonal."""
        return self.rows == self.cols

    def row_systems(self, w: Floats, base: Floats, V: Floats) -> Callable[[Floats], Floats] | None:
        """D ↦ its rows times the inverses of b_i I plus blocks of 4𝒜*(w ∘ 𝒜(sym(V·ᵀ)))V.

        Needs w ≥ 0 and b > 0.
        """
        if self.place.is_host:
            return row_systems(self.pattern, w, base, V)
        return dense_row_systems(self.pattern, w, self._own, base, V)

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        """M_ij for every pair."""
        check_matrix(self.order, M)
        return as_double(M[self.rows, self.cols])

    def identity_weights(self) -> NDArray[np.float64] | None:
        """1 on one copy of each diagonal entry, None unless all of them are in the map."""
        if not self.place.is_host:
            known = at_home(self).identity_weights()
            return None if known is None else self.place.put(known)
        diagonal = np.flatnonzero(self._own)
        found, first = np.unique(self.rows[diagonal], return_index=True)
        if found.size < self.order:
            return None
        weights = np.zeros(self.size)
        weights[diagonal[first]] = 1.0
        return weights
