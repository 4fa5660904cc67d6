"""Reconstruction of points from their neighbours, as in locally linear embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

RIDGE = 1e-3
"""Ridge of a local Gram matrix, relative to its trace."""


def barycentric(X: Array, reference: Any, near: Indices) -> Array:
    """Weights with sum 1 that reconstruct each row of X from its neighbours, with a ridge."""
    k = near.shape[1]
    weights = np.empty(near.shape)
    step = max(1, 4_000_000 // (k * X.shape[1]))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        around = dense(reference[near[rows].ravel()]).reshape(-1, k, X.shape[1])
        gaps = around - X[rows][:, None]
        squares = np.sum(gaps * gaps, axis=2)
        weights[rows] = barycentric_weights(gaps @ gaps.transpose(0, 2, 1), squares)
    return weights


def barycentric_weights(grams: Array, squares: Array) -> Array:
    """The same from the inner products of the neighbours relative to each point, and distances.

    A point that equals one of its neighbours gets the weight 1 for it.
    """
    k = squares.shape[1]
    traces = np.trace(grams, axis1=1, axis2=2)
    ridge = RIDGE * np.where(traces > 0, traces, 1.0) / k
    grams = grams + ridge[:, None, None] * np.eye(k)
    found = np.linalg.solve(grams, np.ones((len(grams), k, 1)))[:, :, 0]
    found = found / found.sum(axis=1, keepdims=True)
    known = squares.min(axis=1) == 0
    found[known] = np.eye(k)[np.argmin(squares[known], axis=1)]
    return found


def dense(X: Any) -> Array:
    """Samples as an array of floats."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
