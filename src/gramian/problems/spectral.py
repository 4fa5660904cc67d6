"""Quadratic problems: LRO eq. (1) itself, and top-k eigenvalues, eq. (3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from gramian.objectives import GramQuadratic
from gramian.objectives.matrices import as_symmetric
from gramian.problem import Problem


def quadratic(A: Any, B: Any, C: Any) -> Problem:
    """min tr((AM)² + BM² + 2CM) over M ⪰ 0, LRO eq. (1).

    A and B are PSD and C is symmetric, each an array, a scipy sparse matrix or LinearOperator, a
    `LowRankPlusIdentity`, a number (that multiple of the identity) or None (zero).
    """
    return Problem(GramQuadratic(A, B, C), name="quadratic", formula="tr((AM)² + BM² + 2CM)")


def top_eigen(K: Any) -> Problem:
    """min ‖M − K‖² over M ⪰ 0, LRO eq. (3); ask for the k leading eigenvalues with ``rank=k``.

    The constant ‖K‖² is left out for a LinearOperator, whose entries are not known.
    """
    matrix = as_symmetric(K, "K")
    if isinstance(K, LinearOperator):
        square, formula = 0.0, "‖M − K‖² − ‖K‖²"
    else:
        square, formula = _squared_norm(K), "‖M − K‖²"
    minus_K = LinearOperator((matrix.order,) * 2, matvec=lambda v: -(matrix @ v), dtype=float)
    C: Any = minus_K if isinstance(K, LinearOperator) else -K if sp.issparse(K) else -np.asarray(K)
    return Problem(GramQuadratic(None, 1.0, C, constant=square), name="top_eigen", formula=formula)


def _squared_norm(K: Any) -> float:
    entries = K.data if sp.issparse(K) else np.asarray(K, dtype=float)
    return float(np.sum(np.square(entries)))
