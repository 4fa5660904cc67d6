"""Dense linear algebra on the host, with a suitable number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import HOST, Place, host
from gramian.arrays.threads import blas_threads_for

UNTHREADED_ORDER = 40
"""Order up to which BLAS uses one thread by itself."""

DEVICE_ORDER = 200
"""Order from which a device decomposes faster: one of 784 takes 13 ms there and 41 on 16 cores;
200 itself was not measured."""

TIE_RATIO = 1 - 1e-6
"""Relative tolerance of ties: numbers that differ by less may be equal up to rounding."""


def eigh(A: NDArray[Any], there: Place = HOST) -> tuple[NDArray[Any], NDArray[Any]]:
    """Eigenvalues and eigenvectors of a symmetric matrix; a large one is decomposed `there`."""
    if not there.is_host and A.shape[0] >= DEVICE_ORDER:
        values, vectors = there.xp.linalg.eigh(there.put(A))
        return host(values), host(vectors)
    if A.shape[0] <= UNTHREADED_ORDER:
        values, vectors = np.linalg.eigh(A)
        return values, vectors
    with blas_threads_for(A.size):
        values, vectors = np.linalg.eigh(A)
    return values, vectors


def first_largest(rows: NDArray[Any]) -> NDArray[np.integer]:
    """The index of the largest number of each row, the first of those equal up to rounding."""
    return np.argmax(rows >= TIE_RATIO * np.max(rows, axis=1, keepdims=True), axis=1)


def row_signs(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The sign of the largest entry of each row, which normalises the sign of a row."""
    if rows.size == 0:
        return np.ones(rows.shape[0])
    largest = rows[np.arange(rows.shape[0]), first_largest(np.abs(rows))]
    return np.where(largest < 0, -1.0, 1.0)
