"""A small system of equations for every row of a factor, from the rows that it meets."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gramian.backends.cpu import Floats, Pattern, worth_compiling
from gramian.backends.threads import in_parts

Array = NDArray[np.floating]


def row_systems(
    pattern: Pattern, weights: Floats, base: Array, V: Floats, *, compiled: bool | None = None
) -> Callable[[Floats], Floats]:
    """R ↦ the rows M_i⁻¹r_i, M_i = b_i I + Σ_j w_ij v_j v_jᵀ + 4 w_ii v_i v_iᵀ.

    The sum is over the pairs (i, j) of the pattern, `weights` at least 0 and `base` b above it.
    This is the part of the Hessian of Σ_e w_e/2 (v_i·v_j − t_e)² that stays within a row, beside
    b_i I. A row of fewer pairs m than columns r has the inverse by an m × m matrix,
    (I − U(b_i I + UᵀU)⁻¹Uᵀ)/b_i with U the √w_j v_j, so that min(m, r)² numbers a row are kept.
    """
    V = np.ascontiguousarray(V, dtype=np.float64)
    halves = np.asarray(weights, dtype=np.float64)[pattern.edge]
    if not worth_compiling(compiled, pattern.size * V.shape[1]):
        return _plain(pattern, halves, base, V)
    kernels = importlib.import_module("gramian.backends._row_kernels")
    orders = np.minimum(np.diff(pattern.indptr).astype(np.int64), V.shape[1])
    places = np.concatenate([[0], np.cumsum(orders**2)])
    factors, n = np.empty(places[-1]), pattern.order
    system = (pattern.indptr, pattern.neighbour, halves, base, V, places, factors)
    in_parts(kernels.decompose_rows, n, int(np.sum(orders**3)), *system)

    def solve(R: Floats) -> Floats:
        R = np.ascontiguousarray(R, dtype=np.float64)
        out = np.empty_like(R)
        in_parts(kernels.solve_rows, n, 2 * halves.size * V.shape[1], *system, R, out)
        return out

    return solve


def _plain(pattern: Pattern, halves: Array, base: Array, V: Array) -> Callable[[Floats], Floats]:
    """The same by dense matrices of all rows at once."""
    n, rank = V.shape
    own = pattern.neighbour == np.repeat(np.arange(n, dtype=np.int32), np.diff(pattern.indptr))
    shared = pattern.matrix(np.ones(pattern.size))
    shared.data = np.where(own, 2.0, 1.0) * halves
    M = (shared @ (V[:, :, None] * V[:, None, :]).reshape(n, -1)).reshape(n, rank, rank)
    M += base[:, None, None] * np.eye(rank)
    inverse = np.linalg.inv(M)
    return lambda R: np.einsum("nab,nb->na", inverse, R)
