"""A nuclear norm problem as a PSD problem, BiS eq. (33).

‖X‖_* = ½ min tr M over M = [·, X; Xᵀ, ·] ⪰ 0: with M = [P; Q][P; Q]ᵀ of order m + n and
U = A^{-½}PQᵀB^{-½}, λ‖A^½UB^½‖_* is the minimum of λ/2 tr M. Both agree if the columns of P and Q
are orthogonal and of equal length, as they are at an optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.arrays.places import HOST, Place, host
from gramian.certificate import Certificate
from gramian.common.types import Array, Indices
from gramian.linalg.thin_qr import thin_qr
from gramian.linalg.tolerances import ZERO
from gramian.maps import BlockEntries, RepeatedEntries
from gramian.reductions.base import carried


@dataclass(frozen=True)
class BlockEmbedding:
    """U (m × n) as the block of M, scaled by the diagonals of A and B."""

    row_scale: Array
    col_scale: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.row_scale.size, self.col_scale.size

    def map(self, i: Indices, j: Indices, repeat: int = 1) -> BlockEntries:
        """The map of the entries (PQᵀ)_ij, each `repeat` times."""
        if repeat == 1:
            return BlockEntries(i, j, self.shape)
        return RepeatedEntries(i, j, self.shape, repeat)

    def units(self, i: Indices, j: Indices) -> Array:
        """The factors by which entries of PQᵀ are multiplied to give those of U."""
        return (self.row_scale[i] * self.col_scale[j]) ** -0.5

    @property
    def sides(self) -> tuple[Array, Array]:
        """Factors of rows and columns whose products are the `units`."""
        return self.row_scale**-0.5, self.col_scale**-0.5

    def halves(self, Y: Array) -> tuple[Array, Array]:
        """A^{-½}P and B^{-½}Q, whose product is U."""
        m = self.row_scale.size
        return Y[:m] / np.sqrt(self.row_scale)[:, None], Y[m:] / np.sqrt(self.col_scale)[:, None]

    def factor(self, Y: Array) -> Array:
        """The two halves, stacked."""
        return np.vstack(self.halves(Y))

    def coordinates(self, L: Array) -> Array:
        """[A^½P; B^½Q]."""
        return np.sqrt(np.concatenate([self.row_scale, self.col_scale]))[:, None] * L

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound for U."""
        return carried(found, L)


def balanced(factor: Array, m: int, there: Place = HOST) -> Array:
    """[P; Q] rotated so that P and Q have orthogonal columns of equal, decreasing lengths.

    P and Q are decomposed `there`.
    """
    if factor.shape[1] == 0:
        return np.zeros((factor.shape[0], 1))
    qr = thin_qr if there.is_host else there.xp.linalg.qr
    (left, S), (right, T) = (qr(there.put(half)) for half in (factor[:m], factor[m:]))
    U, values, V = product_svd(host(S), host(T))
    roots = np.sqrt(values)
    return np.vstack([host(left @ there.put(U * roots)), host(right @ there.put(V * roots))])


def product_svd(S: Array, T: Array) -> tuple[Array, Array, Array]:
    """U, Σ and V of STᵀ = UΣVᵀ, at least one of Σ, without those that are 0 up to rounding."""
    U, values, Vt = np.linalg.svd(S @ T.T, full_matrices=False)
    count = max(1, int(np.sum(values > ZERO * max(float(values[0]), 1e-300))))
    return U[:, :count], values[:count], Vt[:count].T
