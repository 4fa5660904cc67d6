"""λ_min of a sparse matrix, beside one of low rank, by the signs of its pivots."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import splu

from gramian.proofs.base import UNIT, Factor

Array = NDArray[np.floating]

SHRINK = 1e-11
"""The part of the diagonal given up for rounding: what is measured has to stay below it."""

TRIAL, GROWTH = 4000, 4
"""Nodes of the first trial factorisation, and how many times more the next one has."""

FILLED = 3.0
"""The power of its order that the time of a factor grows with where it fills in."""


class SparseForm:
    """S + U diag(ω) Uᵀ, tested against multiples of the identity, or of another sparse P ⪰ 0.

    With the low-rank part, [S − tP, U; Uᵀ, −1/ω] has the negative eigenvalues of G − tP and as
    many more as there are ω > 0 (Haynsworth): so the signs of the pivots of that sparse matrix
    tell those of G − tP.
    """

    how = "sparse Cholesky"

    def __init__(
        self,
        S: Any,
        U: Array | None = None,
        weights: Array | None = None,
        *,
        unit: Any = None,
    ) -> None:
        self.S = sp.csr_array(S)
        self.order = self.S.shape[0]
        self.plain = unit is None
        self.unit = sp.eye_array(self.order, format="csr") if self.plain else sp.csr_array(unit)
        live = np.zeros(0, dtype=bool) if weights is None else np.asarray(weights) != 0
        self.U = np.zeros((self.order, 0)) if U is None else np.asarray(U, dtype=float)[:, live]
        self.weights = np.zeros(0) if weights is None else np.asarray(weights, dtype=float)[live]

    @cached_property
    def seconds(self) -> float:
        """Told by parts of the graph around its busiest node, four times larger each."""
        pattern = abs(self.S) + abs(self.unit)
        degree = np.diff(sp.csr_array(pattern).indptr)
        near = breadth_first_order(
            pattern, int(np.argmax(degree)), directed=False, return_predecessors=False
        )
        shifted = sp.csr_array(pattern + sp.diags_array(2.0 * pattern.sum(axis=1)))
        size, taken = TRIAL, 0.0
        while size < near.size and taken < 1.0:
            part = shifted[near[:size]][:, near[:size]]
            started = time.perf_counter()
            splu(sp.csc_array(part), **_SYMMETRIC)
            taken = time.perf_counter() - started
            size *= GROWTH
        size = min(size, near.size) if taken == 0 else size // GROWTH
        return 0.1 if taken == 0 else taken * (self.order / size) ** FILLED

    def above(self, t: float) -> Factor:
        """LDLᵀ of the matrix with its diagonal made smaller by more than the factor is off by.

        With Ã = L diag(d) Lᵀ for the pivots d of a computed LU and |A − Ã| ≤ |L||U − DLᵀ| +
        γ|L||U|, the row sums of the right side stay below what the diagonal was shrunk by, or
        nothing is proved. Rows and columns are first scaled by powers of 2, which is exact.
        """
        if not np.isfinite(t):
            return Factor(False)
        A = sp.csr_array(self.S - t * self.unit)
        bordered = A
        if self.weights.size:
            U = sp.csr_array(self.U)
            bordered = sp.csr_array(
                sp.block_array([[A, U], [U.T, sp.diags_array(-1.0 / self.weights)]])
            )
        size = np.abs(bordered.diagonal())
        size = np.where(size > 0, size, np.max(size, initial=1.0))
        power = np.exp2(-np.round(0.5 * np.log2(size)))
        scale = sp.diags_array(power)
        scaled = sp.csc_array(scale @ bordered @ scale)
        # The rounding of the entries themselves, that of S − tP above all.
        rows = (abs(scale @ self._entries(t) @ scale)).sum(axis=1)
        shrink = SHRINK + 8 * UNIT * np.asarray(rows).ravel()
        scaled = sp.csc_array(scaled - sp.diags_array(shrink))
        try:
            lu = splu(scaled, **_SYMMETRIC)
        except (RuntimeError, MemoryError):  # exactly singular, or too large
            return Factor(False)
        if not np.array_equal(lu.perm_r, lu.perm_c) or not _small_error(lu):
            return Factor(False)
        negative = int(np.sum(lu.U.diagonal() <= 0))
        if negative > int(np.sum(self.weights > 0)):
            return Factor(False)
        n, full = self.order, bordered.shape[0]

        def solve(b: Array) -> Array:
            padded = np.zeros(full)
            padded[:n] = b
            found: Array = (power * lu.solve(power * padded))[:n]
            return found

        return Factor(True, solve if self.plain else None)

    def _entries(self, t: float) -> Any:
        """The sizes of what the shifted matrix is added up from."""
        size = abs(self.S) + abs(t) * abs(self.unit)
        if not self.weights.size:
            return size
        U = abs(sp.csr_array(self.U))
        return sp.block_array([[size, U], [U.T, sp.diags_array(1.0 / np.abs(self.weights))]])


_SYMMETRIC: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}


def _small_error(lu: Any) -> bool:
    """Whether |A − LDLᵀ| has row sums below the part of the diagonal that was given up."""
    L, U = lu.L, lu.U
    pivots = U.diagonal()
    if not np.all(np.isfinite(pivots)):
        return False
    lopsided = abs(U - sp.diags_array(pivots) @ L.T).sum(axis=1)
    longest = max(int(np.max(np.diff(sp.csr_array(L).indptr), initial=1)), 1)
    rounding = 2 * (longest + 4) * UNIT * np.asarray(abs(U).sum(axis=1)).ravel()
    error = abs(L) @ (np.asarray(lopsided).ravel() + rounding)
    return bool(np.all(np.isfinite(error)) and np.max(error, initial=0.0) <= SHRINK)


def gershgorin(matrix: Any) -> float:
    """min over rows of a_ii − Σ|a_ij|, less its rounding: exact for a Laplacian."""
    diagonal = matrix.diagonal()
    others = np.asarray(abs(matrix).sum(axis=1)).ravel() - np.abs(diagonal)
    longest = float(np.max(np.diff(sp.csr_array(matrix).indptr), initial=1))
    rounding = (longest + 2) * UNIT * (np.abs(diagonal) + others)
    return float(np.min(diagonal - others - rounding))
