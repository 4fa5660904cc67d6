"""QR decomposition of a matrix with few columns."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from gramian.common.types import Array

MAX_GRAM_ERROR = 0.1
"""Largest distance of QᵀQ from I, after one Cholesky factor, at which a second one suffices."""


def thin_qr(A: Array) -> tuple[Array, Array]:
    """Q and R of a matrix on the host, by Cholesky factors of its Gram matrix.

    With two of them Q is orthogonal up to rounding (CholeskyQR2; Yamamoto, Nakatsukasa, Yanagisawa
    and Fukaya 2015). 6040 × 224 numbers take 0.05 s, by reflections 0.11 s. Nearly dependent
    columns need the latter.
    """
    try:
        Q, R = _by_cholesky(A, A.T @ A)
        gram = Q.T @ Q
        if np.max(np.abs(gram - np.eye(len(gram))), initial=0.0) <= MAX_GRAM_ERROR:
            Q, S = _by_cholesky(Q, gram)
            return Q, S @ R
    except np.linalg.LinAlgError:
        pass
    Q, R = np.linalg.qr(A)
    return Q, R


def _by_cholesky(A: Array, gram: Array) -> tuple[Array, Array]:
    """AR⁻¹ and R, the Cholesky factor of AᵀA = RᵀR."""
    lower = np.linalg.cholesky(gram)
    return solve_triangular(lower, A.T, lower=True, check_finite=False).T, lower.T
