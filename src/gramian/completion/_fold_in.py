"""Rows that come later: their factors for columns that are known."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.backends import cpu

Array = NDArray[np.floating]

STEPS, ACCURACY = 300, 1e-12


def ridge_rows(R: sp.csr_array, Q: Array, penalty: Array) -> Array:
    """P with rows that minimise ½ Σ_j (p·q_j − R_ij)² + ½ Σ_k penalty_ik p_ik² over the known j.

    Conjugate gradients for all rows at once, each with steps of its own: two sparse products with
    the pattern of R a step, and no matrix of a row.
    """
    rows = cpu.index_array(np.repeat(np.arange(R.shape[0]), np.diff(R.indptr)))
    cols, Q = cpu.index_array(R.indices), np.ascontiguousarray(Q, dtype=float)

    def product(P: Array) -> Array:
        z = cpu.gather_products(P, Q, rows, cols)
        return cpu.sparse_product(sp.csr_array((z, R.indices, R.indptr), shape=R.shape), Q) + (
            penalty * P
        )

    right = np.asarray(R @ Q)
    P, left = np.zeros_like(right), right.copy()
    direction, square = left.copy(), np.sum(left * left, axis=1)
    enough = ACCURACY**2 * np.maximum(square, np.finfo(float).tiny)
    for _ in range(STEPS):
        live = square > enough
        if not live.any():
            break
        bent = product(direction)
        curvature = np.sum(direction * bent, axis=1)
        step = np.where(live, square / np.where(live, curvature, 1.0), 0.0)[:, None]
        P += step * direction
        left -= step * bent
        new = np.sum(left * left, axis=1)
        direction = left + np.where(live, new / np.where(live, square, 1.0), 0.0)[:, None] * (
            direction
        )
        square = new
    return P
