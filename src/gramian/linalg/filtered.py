"""Many leading singular vectors to a low accuracy, by Chebyshev filters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian.common.types import Array

Product = Callable[[Array], Array]

DEGREE, FILTERS = 4, 2
"""Degree of a filter, and number of filters. With more products the vectors are more accurate."""


def leading_singular(times: Product, adjoint: Product, random: Array) -> tuple[Array, Array, Array]:
    """Approximations of the largest singular values of A above 1, with their vectors U and V.

    `times` and `adjoint` are products with A and Aᵀ, and `random` is a block with a column for each
    value. A filter is a Chebyshev polynomial of AᵀA, small on [0, 1] and large above it. A block
    finds multiple and close values as well, which a single vector does not, and its products take a
    fraction of the time of those with single vectors.
    """
    V: Array = random
    for _ in range(FILTERS):
        last, now = V, 2 * adjoint(times(V)) - V
        for _ in range(DEGREE - 1):
            image = 2 * adjoint(times(now)) - now
            last, now = now, 2 * image - last
        V = np.linalg.qr(now)[0]
    found = times(V)
    squares, turn = np.linalg.eigh(found.T @ found)
    sizes, turn = np.sqrt(np.maximum(squares[::-1], 1e-12)), turn[:, ::-1]
    return found @ turn / sizes, sizes, V @ turn
