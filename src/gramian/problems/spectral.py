"""Quadratic problems: LRO eq. (1) itself, and top-k eigenvalues, eq. (3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_matrix
from gramian.objectives import GramQuadratic, LowRankPlusIdentity
from gramian.objectives.matrices import Dense, Operator, Scaled, Sparse, SymmetricMatrix
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem


@under_own_errstate
def quadratic(A: Any, B: Any, C: Any) -> Problem:
    """min tr((AM)² + BM² + 2CM) over M ⪰ 0, LRO eq. (1).

    A and B are PSD and C is symmetric, each an array, a scipy sparse matrix or LinearOperator, a
    `LowRankPlusIdentity`, a number (that multiple of the identity) or None (zero).
    """
    for matrix, name in ((A, "A"), (B, "B"), (C, "C")):
        check_matrix(matrix, name)
    return Problem(GramQuadratic(A, B, C), name="quadratic", formula="tr((AM)² + BM² + 2CM)")


@under_own_errstate
def top_eigen(K: Any) -> Problem:
    """min ‖M − K‖² over M ⪰ 0, LRO eq. (3); ``rank=k`` gives the k leading eigenvalues.

    The constant ‖K‖² is omitted for a LinearOperator, whose entries are unknown.
    """
    check_matrix(K, "K")
    matrix = as_symmetric(K, "K")
    known = not isinstance(matrix, Operator)
    return Problem(
        GramQuadratic(None, 1.0, _negative(matrix), constant=_squared_norm(matrix) if known else 0),
        name="top_eigen",
        formula="‖M − K‖²" if known else "‖M − K‖² − ‖K‖²",
    )


def _negative(matrix: SymmetricMatrix) -> SymmetricMatrix:
    """−K in a form whose smallest eigenvalue can be bounded if that of K can."""
    if isinstance(matrix, Dense):
        return Dense(-matrix.array)
    if isinstance(matrix, Sparse):
        return Sparse(-matrix.matrix)
    if isinstance(matrix, LowRankPlusIdentity):
        return LowRankPlusIdentity(matrix.order, -matrix.scale, matrix.factor, -matrix.weights)
    return Scaled(matrix, -1.0)


def _squared_norm(matrix: SymmetricMatrix) -> float:
    entries = matrix.matrix.data if isinstance(matrix, Sparse) else matrix.dense()
    return float(np.sum(np.square(entries)))
