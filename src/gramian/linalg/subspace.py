"""Leading eigenpairs by block conjugate gradients (LOBPCG) from a known subspace.

Products with blocks use memory better than those with single vectors, and on a device they need
fewer launches. A subspace that contains the leading eigenvectors approximately, as the range of a
factor does near an optimum, replaces most of the products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, column_squares, contiguous, host, namespace, norm
from gramian.linalg._lanczos import CountedOperator, RitzPairs

Array = NDArray[np.float64]


def subspace_pairs(
    operator: Any, basis: Any, count: int, *, rounds: int, enough: float = 0.0
) -> RitzPairs:
    """Approximations of the `count` largest eigenpairs, with the norms of their residuals.

    They start from the Ritz pairs of the span of `basis`, which may find fewer pairs. Each round
    takes the Ritz pairs of the span of the vectors, their residuals and the last changes (Knyazev
    2001), until the residual of the largest is at most `enough`.
    """
    counted = CountedOperator(operator)
    concat = namespace(basis).concat
    values, V, images = _ritz(counted, basis, count)
    rest = images - V * beside(V, values)
    change = V[:, :0]
    for _ in range(rounds):
        if float(norm(rest[:, 0])) <= enough:
            break
        before = V
        space = concat([V, *_units(rest), *_units(change)], axis=1)
        values, V, images = _ritz(counted, space, count)
        change = V - before @ (before.T @ V)
        rest = images - V * beside(V, values)
    return RitzPairs(values, contiguous(V), np.sqrt(host(column_squares(rest))))


def _ritz(counted: CountedOperator, space: Array, count: int) -> tuple[Array, Array, Array]:
    """The largest Ritz values, with vectors and their images."""
    Q = contiguous(namespace(space).linalg.qr(space)[0])
    images = counted(Q)
    small = host(Q.T @ images)
    values, turn = np.linalg.eigh(0.5 * (small + small.T))
    best = beside(Q, np.ascontiguousarray(turn[:, ::-1][:, :count]))
    return values[::-1][:count].copy(), Q @ best, images @ best


def _units(columns: Array) -> list[Array]:
    """The columns that are not 0, with unit norm."""
    lengths = np.sqrt(host(column_squares(columns)))
    kept = np.flatnonzero(lengths > 0)
    return [columns[:, kept] / beside(columns, lengths[kept])] if kept.size else []
