"""Entries of a Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.places import as_double, at_home, backend, beside, columns_at, namespace
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
    row_norms,
    sizes_of_ends,
)


class Entries(LinearMap):
    """𝒜(K)_e = K_ij for the pairs e = (i, j), rows of the (p, 2) integer array `pairs`.

    Diagonal entries (i, i) and repeated pairs are allowed. The adjoint is
    𝒜*(w) = Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ).
    """

    def __init__(self, pairs: ArrayLike, n: int) -> None:
        self.order = check_order(n)
        self.rows, self.cols = index_columns(pairs, self.order, 2, "pairs")
        self.size = self.rows.size

    @cached_property
    def pattern(self) -> cpu.Pattern:
        """The sparsity pattern of 𝒜*(w), built at the first adjoint."""
        found: cpu.Pattern = backend(self.rows).pattern(self.rows, self.cols, self.order)
        return found

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        """½ (u_i·v_j + u_j·v_i) for every pair."""
        check_factors(self.order, U, V)
        return backend(U).gather_entries(U, V, self.rows, self.cols)

    def columns(self, W: Floats) -> NDArray[np.float64]:
        """scale · ½ (w_ia w_jb + w_ib w_ja) for every pair (i, j) and every a ≤ b."""
        check_factors(self.order, W)
        a, b, scale = triangle(W.shape[1])
        left, right = W[self.rows], W[self.cols]
        products = columns_at(left, a) * columns_at(right, b)
        products += columns_at(left, b) * columns_at(right, a)
        return products * beside(W, 0.5 * scale)

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

    def reach(self, w: Floats) -> tuple[Floats, float]:
        """½ Σ |w_e| over the entries of a row."""
        sums, longest = sizes_of_ends(self, w)
        return 0.5 * sums, longest

    def adjoint_sparse(self, w: Floats) -> sparse.csr_array:
        """𝒜*(w) as a sparse matrix."""
        check_weights(self.size, w)
        return cpu.entries_matrix(w, self.pattern)

    def adjoint_matrix(self, w: Floats) -> Floats:
        if not self.place.is_host:
            there: Floats = backend(w).entries_dense(w, self.pattern)
            return there
        dense: Floats = self.adjoint_sparse(w).toarray()
        return dense

    def adjoint_diagonal(self, w: Floats) -> NDArray[np.float64]:
        """The diagonal of 𝒜*(w)."""
        xp = namespace(w)
        one = self.place.put(np.ones((self.order, 1)))
        own = xp.where(self._own, w, 0.0 * w)
        found: NDArray[np.float64] = backend(one).scatter_entries(own, one, self.pattern)[:, 0]
        return found

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
        diagonal = np.flatnonzero(self.rows == self.cols)
        found, first = np.unique(self.rows[diagonal], return_index=True)
        if found.size < self.order:
            return None
        weights = np.zeros(self.size)
        weights[diagonal[first]] = 1.0
        return weights
