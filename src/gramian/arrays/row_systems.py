"""One small linear system for each row of a factor, from the rows that it is paired with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from gramian.arrays.cpu import COMPILED_ROW_WORK, Floats, Pattern, csr, worth_compiling
from gramian.arrays.places import backend, eye, namespace, place_of
from gramian.arrays.threads import in_parts
from gramian.common.types import Array

MAX_DEVICE_ELEMENTS = 2**28
"""Largest total number of elements of all systems on a device."""


def row_systems(
    pattern: Pattern, weights: Floats, base: Array, V: Floats, *, compiled: bool | None = None
) -> Callable[[Floats], Floats]:
    """R ↦ the rows M_i⁻¹r_i, M_i = b_i I + Σ_j w_ij v_j v_jᵀ + 4 w_ii v_i v_iᵀ.

    The sum is over the pairs (i, j) of the pattern; `weights` ≥ 0 and `base` b > 0. This is b_i I
    plus the diagonal block of row i of the Hessian of Σ_e w_e/2 (v_i·v_j − t_e)². Everything is in
    the precision of V.

    A row with m pairs, m at most the number of columns r, has M_i⁻¹ = I/b_i − WᵀW, where the m rows
    of W are those of (b_i I + UᵀU)^(−1/2) Uᵀ/√b_i, U has columns √w_j v_j, and the root is that of
    Cholesky. A row with more pairs has M_i⁻¹ = WᵀW with r rows.
    """
    V = np.ascontiguousarray(V)
    met = _met(pattern, np.asarray(weights, dtype=np.float64))
    n, rank = V.shape
    orders = np.minimum(np.diff(met.indptr).astype(np.int64), rank)
    places = np.concatenate([[0], np.cumsum(orders)])
    W = np.empty((places[-1], rank), dtype=V.dtype)
    if not worth_compiling(compiled, pattern.size * rank, COMPILED_ROW_WORK):
        _decompose(met, base, V, places, W)
        return _plain(met, base, places, W)
    kernels = importlib.import_module("gramian.arrays._kernels")
    system = (met.indptr, met.indices, met.data, base, V, places, W)
    in_parts(kernels.decompose_rows, n, int(np.sum(orders**2)) * rank, *system)

    def solve(R: Floats) -> Floats:
        R = np.ascontiguousarray(R, dtype=V.dtype)
        out = np.empty_like(R)
        in_parts(kernels.solve_rows, n, 2 * W.size, met.indptr, base, places, W, R, out)
        return out

    return solve


def _met(pattern: Pattern, weights: Array) -> Any:
    """The weights of the pairs of each row, including itself, as a sparse matrix.

    Both halves of a diagonal entry are in one row and count twice; repeated pairs are summed.
    """
    own = pattern.neighbour == np.repeat(np.arange(pattern.order), np.diff(pattern.indptr))
    halves = np.where(own, 2.0, 1.0) * weights[pattern.edge]
    arrays = (halves, pattern.neighbour.copy(), pattern.indptr.copy())
    met = sparse.csr_array(arrays, shape=(pattern.order,) * 2)
    met.sum_duplicates()
    return met


def _decompose(met: Any, base: Array, V: Array, places: Any, W: Array) -> None:
    """The rows W in NumPy, for all rows with equally many pairs at once."""
    counts, rank = np.diff(met.indptr), V.shape[1]
    for count in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == count)
        halves = met.indptr[rows][:, None] + np.arange(count)
        b = base[rows][:, None, None]
        U = np.sqrt(met.data[halves])[:, :, None] * V[met.indices[halves]]
        few = count <= rank
        A = U @ U.mT if few else U.mT @ U
        A = A + b * np.eye(A.shape[1])
        right = U / np.sqrt(b) if few else np.broadcast_to(np.eye(rank), A.shape)
        order = np.arange(min(count, rank))
        W[places[rows][:, None] + order] = np.linalg.solve(np.linalg.cholesky(A), right)


def _plain(met: Any, base: Array, places: Any, W: Array) -> Callable[[Floats], Floats]:
    """Products with the inverses by NumPy."""
    n, counts = places.size - 1, np.diff(met.indptr)
    few, rows = counts <= W.shape[1], np.repeat(np.arange(places.size - 1), np.diff(places))
    own, sign = np.where(few, 1.0 / base, 0.0)[:, None], np.where(few, -1.0, 1.0)[rows]

    def solve(R: Floats) -> Floats:
        along = sign * np.einsum("ac,ac->a", W, R[rows])
        beside = csr(along, np.arange(rows.size, dtype=np.int32), places, (n, rows.size)) @ W
        return (own * R + beside).astype(W.dtype, copy=False)

    return solve


def dense_row_systems(
    pattern: Any, weights: Any, own: Any, base: Any, V: Any
) -> Callable[[Any], Any] | None:
    """`row_systems` on the device of V; `own` marks diagonal entries. None if it is too large."""
    n, rank = V.shape
    if n * rank**2 > MAX_DEVICE_ELEMENTS:
        return None
    xp = namespace(V)
    counted = xp.where(own, 2.0 * weights, weights)
    M = 2.0 * backend(V).scatter_entries(counted, _products(V), pattern)
    M = xp.reshape(M, (n, rank, rank)) + base[:, None, None] * eye(rank, place_of(V))
    inverse = xp.astype(xp.linalg.inv(M), V.dtype)
    return lambda R: (inverse @ R[:, :, None])[:, :, 0]


def _products(V: Any) -> Any:
    """The flattened v_i v_iᵀ of every row."""
    return namespace(V).reshape(V[:, :, None] * V[:, None, :], (V.shape[0], -1))
