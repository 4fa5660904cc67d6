"""The scaled triangle of a symmetric matrix: M as a vector with ⟨M, N⟩ = svec(M)ᵀ svec(N)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gramian.common.types import Array

Indices = NDArray[np.intp]


def triangle_size(order: int) -> int:
    """n(n+1)/2, the length of svec(M)."""
    return order * (order + 1) // 2


@lru_cache(maxsize=32)
def triangle(order: int) -> tuple[Indices, Indices, Array]:
    """The indices (i, j), i ≤ j, that svec reads, and their factors: 1 or √2."""
    j, i = np.tril_indices(order)
    parts = i, j, np.where(i == j, 1.0, np.sqrt(2.0))
    for part in parts:
        part.setflags(write=False)
    return parts


def svec(M: Array) -> Array:
    """The scaled upper triangle of a symmetric matrix, or of each of several, by columns."""
    i, j, scale = triangle(M.shape[-1])
    return scale * M[..., i, j]


def smat(s: Array, order: int) -> Array:
    """The symmetric matrix with svec(M) = s, or one for each of several s."""
    i, j, scale = triangle(order)
    M = np.zeros((*s.shape[:-1], order, order))
    M[..., i, j] = M[..., j, i] = s / scale
    return M


def symmetric_kron(P: Array, Q: Array) -> Array:
    """The matrix of svec(S) ↦ svec(½(PSQ + QSP)) for symmetric P and Q."""
    i, j, scale = triangle(P.shape[0])

    def products(A: Array, B: Array) -> Array:
        return A[:, i][i] * B[:, j][j] + A[:, j][i] * B[:, i][j]

    total = products(P, P) if P is Q else 0.5 * (products(P, Q) + products(Q, P))
    return 0.5 * np.outer(scale, scale) * total


def with_square(H: Array, P: Array) -> Array:
    """H + P ⊗ P, the matrix of svec(S) ↦ H svec(S) + svec(PSP): its lower triangle only."""
    i, j, scale = triangle(P.shape[0])
    first, second = P[:, i] * (scale * np.sqrt(0.5)), P[:, j]
    total = np.empty(H.shape)
    for k in range(P.shape[0]):
        above, upto = triangle_size(k), triangle_size(k + 1)
        block = first[: k + 1, :upto] * second[k, :upto]
        block += second[: k + 1, :upto] * first[k, :upto]
        block[k] *= np.sqrt(0.5)
        np.add(block, H[above:upto, :upto], out=total[above:upto, :upto])
    return total
