"""Compiled kernels of `row_systems`; importing this module imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.backends._kernels import compiled


@compiled
def _weight(row: Any, other: Any, told: Any) -> Any:
    """What a half-edge counts: both halves of a diagonal entry are in one row, and count twice."""
    return 2.0 * told if row == other else told


@compiled
def _decompose(A: Any) -> None:
    """A ← its lower Cholesky factor, in place; the pivots are positive by construction."""
    order = A.shape[0]
    for j in range(order):
        for k in range(j):
            for i in range(j, order):
                A[i, j] -= A[i, k] * A[j, k]
        pivot = np.sqrt(A[j, j])
        for i in range(j, order):
            A[i, j] /= pivot


@compiled
def _solve(A: Any, x: Any) -> None:
    """x ← (AAᵀ)⁻¹x for a lower triangular A."""
    order = A.shape[0]
    for i in range(order):
        for k in range(i):
            x[i] -= A[i, k] * x[k]
        x[i] /= A[i, i]
    for i in range(order - 1, -1, -1):
        for k in range(i + 1, order):
            x[i] -= A[k, i] * x[k]
        x[i] /= A[i, i]


@compiled
def decompose_rows(
    start: int,
    stop: int,
    indptr: Any,
    neighbour: Any,
    weights: Any,
    base: Any,
    V: Any,
    places: Any,
    out: Any,
) -> None:
    """The Cholesky factor of each row's system, or of its smaller twin; see `row_systems`."""
    rank = V.shape[1]
    for i in range(start, stop):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        order = min(count, rank)
        A = out[places[i] : places[i + 1]].reshape(order, order)
        A[:] = 0.0
        for c in range(order):
            A[c, c] = base[i]
        if count <= rank:
            for a in range(count):
                j = np.uint32(neighbour[first + a])
                left = np.sqrt(_weight(i, j, weights[first + a]))
                for b in range(a + 1):
                    k = np.uint32(neighbour[first + b])
                    dot = 0.0
                    for c in range(rank):
                        dot += V[j, c] * V[k, c]
                    A[a, b] += left * np.sqrt(_weight(i, k, weights[first + b])) * dot
        else:
            for h in range(first, first + count):
                j = np.uint32(neighbour[h])
                weight = _weight(i, j, weights[h])
                for a in range(rank):
                    for b in range(a + 1):
                        A[a, b] += weight * V[j, a] * V[j, b]
        _decompose(A)


@compiled
def solve_rows(
    start: int,
    stop: int,
    indptr: Any,
    neighbour: Any,
    weights: Any,
    base: Any,
    V: Any,
    places: Any,
    factors: Any,
    R: Any,
    out: Any,
) -> None:
    """M_i⁻¹r_i for every row."""
    rank = V.shape[1]
    small = np.empty(rank)
    for i in range(start, stop):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        order = min(count, rank)
        A = factors[places[i] : places[i + 1]].reshape(order, order)
        for c in range(rank):
            out[i, c] = R[i, c]
        if count > rank:
            _solve(A, out[i])
            continue
        for a in range(count):
            j = np.uint32(neighbour[first + a])
            dot = 0.0
            for c in range(rank):
                dot += V[j, c] * R[i, c]
            small[a] = np.sqrt(_weight(i, j, weights[first + a])) * dot
        _solve(A, small[:count])
        for a in range(count):
            j = np.uint32(neighbour[first + a])
            share = np.sqrt(_weight(i, j, weights[first + a])) * small[a]
            for c in range(rank):
                out[i, c] -= share * V[j, c]
        for c in range(rank):
            out[i, c] /= base[i]
