"""The common eigenvectors of two commuting matrices, in which a quadratic is diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.places import Placed, norm
from gramian.common import clock
from gramian.objectives.matrices import LowRankPlusIdentity
from gramian.proofs import eigen_seconds

Array = NDArray[np.floating]


def lowered(eigenvalues: Array) -> Array:
    """Eigenvalues minus their rounding error, at least 0: a lower bound on A."""
    reach = float(np.max(np.abs(eigenvalues), initial=0.0))
    lost = 4 * np.finfo(float).eps * np.sqrt(eigenvalues.size) * reach
    return np.maximum(eigenvalues - lost, 0.0)


@dataclass(frozen=True)
class Eigenbasis(Placed):
    """A ⪰ V diag(a) Vᵀ and B ⪰ V diag(b) Vᵀ, with which 𝓗M = AMA + ½(BM + MB) is diagonal.

    Equal up to rounding, which is subtracted (`lowered`): ⟨M, 𝓗M⟩, and hence F, is at least its
    value in this basis.
    """

    V: Array
    a: Array
    b: Array

    @cached_property
    def H(self) -> Array:
        """𝓗 as elementwise weights a_i a_j + ½(b_i + b_j) on VᵀMV."""
        return self.a[:, None] * self.a + 0.5 * (self.b[:, None] + self.b)


def common_eigenbasis(A: Any, B: Any) -> Eigenbasis | None:
    """An eigenbasis of both matrices, None if they do not commute."""
    order = A.order
    if is_multiple_of_identity(A) and is_multiple_of_identity(B):
        return Eigenbasis(np.eye(order), np.full(order, A.scale), np.full(order, B.scale))
    clock.check(2 * eigen_seconds(order))
    if is_multiple_of_identity(B):
        a, V = eigh(A.dense())
        return Eigenbasis(V, lowered(a), np.full(order, B.scale))
    b, V = eigh(B.dense())
    if is_multiple_of_identity(A):
        return Eigenbasis(V, np.full(order, A.scale), lowered(b))
    # Within an eigenspace of B any basis diagonalises B: the sum with A selects one that suits A.
    A_dense, B_dense = A.dense(), B.dense()
    if not A_dense.any():
        return Eigenbasis(V, np.zeros(order), lowered(b))
    if not B_dense.any():
        a, V = eigh(A_dense)
        return Eigenbasis(V, lowered(a), np.zeros(order))
    size = norm(A_dense) * norm(B_dense)
    if norm(A_dense @ B_dense - B_dense @ A_dense) > 1e-12 * size:
        return None
    mix = A_dense / norm(A_dense) + np.sqrt(0.5) * B_dense / norm(B_dense)
    _, V = eigh(mix)
    rotated_A, rotated_B = V.T @ A_dense @ V, V.T @ B_dense @ V
    a, b = np.diag(rotated_A).copy(), np.diag(rotated_B).copy()
    off = norm(rotated_A - np.diag(a)) * norm(B_dense)
    off += norm(rotated_B - np.diag(b)) * norm(A_dense)
    if off > 1e-11 * size:
        return None
    # The off-diagonal remainder counts as rounding of both.
    left_A = norm(rotated_A - np.diag(a))
    left_B = norm(rotated_B - np.diag(b))
    return Eigenbasis(V, lowered(a - left_A), lowered(b - left_B))


def is_multiple_of_identity(matrix: Any) -> TypeGuard[LowRankPlusIdentity]:
    return isinstance(matrix, LowRankPlusIdentity) and matrix.weights.shape[0] == 0
