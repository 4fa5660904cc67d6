"""Many leading singular vectors of a sparse matrix, to a low accuracy, by Chebyshev filters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays.cpu import sparse_product

Array = NDArray[np.floating]

DEGREE, FILTERS = 4, 2
"""Degree of a filter, and number of filters. With more products the vectors are more accurate."""

MIN_FLOOR = 1e-3
"""Smallest floor relative to the Frobenius norm, so that filters do not overflow in float32."""


def leading_singular(
    matrix: sparse.csr_array, count: int, floor: float, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Approximations of the `count` largest singular values with their vectors U and V, in float32.

    A filter is a Chebyshev polynomial of AᵀA, small on [0, floor²] and large above it, applied to
    a block of random vectors. A block finds multiple and close values as well, which a single
    vector does not, and its products take a fraction of the time of those with single vectors.
    """
    floor = max(floor, MIN_FLOOR * float(np.linalg.norm(matrix.data)))
    A = matrix.astype(np.float32) / np.float32(floor)
    At = sparse.csr_array(A.T)
    V = rng.standard_normal((matrix.shape[1], count), dtype=np.float32)
    for _ in range(FILTERS):
        last, filtered = V, 2 * sparse_product(At, sparse_product(A, V)) - V
        for _ in range(DEGREE - 1):
            image = 2 * sparse_product(At, sparse_product(A, filtered)) - filtered
            last, filtered = filtered, 2 * image - last
        V = np.linalg.qr(filtered)[0]
    image = sparse_product(A, V)
    squares, turn = np.linalg.eigh(image.T @ image)
    sizes, turn = np.sqrt(np.maximum(squares[::-1], 1e-12)), turn[:, ::-1]
    return image @ turn / sizes, floor * sizes, V @ turn
