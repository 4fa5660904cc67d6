"""Compiled kernels of `row_systems`; importing this module imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled


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
def _substitute(A: Any, W: Any) -> None:
    """W ← A⁻¹W for a lower triangular A."""
    for a in range(A.shape[0]):
        for k in range(a):
            for c in range(W.shape[1]):
                W[a, c] -= A[a, k] * W[k, c]
        for c in range(W.shape[1]):
            W[a, c] /= A[a, a]


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
    """The rows W of each system's inverse; see `row_systems`."""
    rank = V.shape[1]
    scratch = np.empty((rank, rank))
    for i in range(start, stop):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        order = min(count, rank)
        A, W = scratch[:order, :order], out[places[i] : places[i + 1]]
        A[:] = 0.0
        for c in range(order):
            A[c, c] = base[i]
        if count <= rank:
            for a in range(count):
                j = np.uint32(neighbour[first + a])
                root = np.sqrt(weights[first + a] / base[i])
                for c in range(rank):
                    W[a, c] = root * V[j, c]
            for a in range(count):
                for b in range(a + 1):
                    dot = 0.0
                    for c in range(rank):
                        dot += np.float64(W[a, c]) * np.float64(W[b, c])
                    A[a, b] += base[i] * dot
        else:
            W[:] = 0.0
            for c in range(rank):
                W[c, c] = 1.0
            for h in range(first, first + count):
                j = np.uint32(neighbour[h])
                for a in range(rank):
                    for b in range(a + 1):
                        A[a, b] += weights[h] * np.float64(V[j, a]) * np.float64(V[j, b])
        _decompose(A)
        _substitute(A, W)


@compiled
def solve_rows(
    start: int, stop: int, indptr: Any, base: Any, places: Any, W: Any, R: Any, out: Any
) -> None:
    """M_i⁻¹r_i for every row."""
    rank = R.shape[1]
    none, one = R.dtype.type(0.0), R.dtype.type(1.0)
    for i in range(start, stop):
        few = indptr[i + 1] - indptr[i] <= rank
        own = one / R.dtype.type(base[i]) if few else none
        for c in range(rank):
            out[i, c] = own * R[i, c]
        for a in range(places[i], places[i + 1]):
            dot = none
            for c in range(rank):
                dot += W[a, c] * R[i, c]
            dot = -dot if few else dot
            for c in range(rank):
                out[i, c] += dot * W[a, c]
