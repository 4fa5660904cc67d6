"""Dense algebra of the host, by as many threads as pay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.threads import blas_threads_for

TINY = 40
"""The order up to which BLAS takes one thread by itself."""


def eigh(A: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    if A.shape[0] <= TINY:
        values, vectors = np.linalg.eigh(A)
        return values, vectors
    with blas_threads_for(A.size):
        values, vectors = np.linalg.eigh(A)
    return values, vectors
