"""λ_min of [aI, B; Bᵀ, aI], from a bound on the largest singular value of B."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gramian.arrays.places import HOST, PART, Place, backend, host, namespace, place_of
from gramian.common.types import Array
from gramian.proofs.base import UNIT, rounded_sum


@dataclass(frozen=True)
class Bipartite:
    """[aI, B; Bᵀ, aI] with a sparse B = sN (m × n): its smallest eigenvalue is a − ‖B‖.

    s is a power of two, so that scaling is exact and N is not copied. N is a sparse matrix, or a
    matrix in blocks with the attributes `gram` (NᵀN), `gram_times(V)` (NᵀNV), `longest` and
    `forming` (the time in seconds to form NᵀN).
    """

    scale: float
    block: Any
    """N."""
    share: float = field(default=1.0, kw_only=True)
    """s."""

    @property
    def B(self) -> Any:
        return self.block if self.share == 1.0 else self.share * self.block

    @property
    def order(self) -> int:
        """The order of the smaller of BᵀB and BBᵀ, of BᵀB if B is in blocks."""
        return int(self.block.shape[1]) if self.tall else min(self.block.shape)

    @property
    def tall(self) -> bool:
        """Whether B has too many rows for vectors of that length; estimates then use BᵀB."""
        return hasattr(self.block, "gram_times")

    @property
    def forming(self) -> float:
        """Time in seconds to form BᵀB, 0 if negligible."""
        return float(getattr(self.block, "forming", 0.0))

    def smaller(self) -> LiftedGram:
        """a²I − BᵀB or a²I − BBᵀ, whose λ_min is a² − ‖B‖²."""
        N = self.block if self.block.shape[1] == self.order else self.block.T.tocsr()
        return LiftedGram(N, self.scale, self.share)

    def from_smaller(self, bottom: float) -> float:
        """The bound on λ_min that follows from such a bound for `smaller`."""
        square = self.scale**2 * (1 + 2 * UNIT) - bottom
        return self.scale - float(np.sqrt(max(square, 0.0))) * (1 + 4 * UNIT)


@dataclass(frozen=True)
class LiftedGram:
    """a²I − s²NᵀN, formed on request."""

    N: Any
    a: float
    s: float

    @property
    def order(self) -> int:
        return int(self.N.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Array) -> Array:
        quick = getattr(self.N, "gram_times", None)
        product = self.N.T @ (self.N @ V) if quick is None else quick(V)
        return self.a**2 * V - self.s**2 * product

    @property
    def place(self) -> Place:
        return place_of(self.N.data) if hasattr(self.N, "data") else HOST

    def _gram(self) -> Array:
        if hasattr(self.N, "gram"):
            return self.s**2 * self.N.gram
        gram: Array = backend(self.N.data).gram(self.N)
        gram *= self.s**2
        return gram

    def dense(self) -> Array:
        return self._formed[0]

    @cached_property
    def _formed(self) -> tuple[Array, Array]:
        """The matrix, which replaces s²NᵀN in memory, and the diagonal of s²NᵀN on the host."""
        found = self._gram()
        k = host(namespace(found).linalg.diagonal(found)).copy()
        every = namespace(found).arange(self.order, device=self.place.device)
        found *= -1.0
        found[every, every] += self.a**2
        return found, k

    def form(self) -> None:
        return None

    def slack(self) -> Array:
        """|E_ij| ≤ γ(|B|ᵀ|B|)_ij ≤ γ √(k_i k_j), k the diagonal of BᵀB, plus the rounding of a²."""
        k = self._formed[1]
        return rounded_sum(self.longest) * k + 4 * UNIT * (self.a**2 + k)

    @property
    def longest(self) -> int:
        """The largest number of entries of a column of N."""
        if hasattr(self.N, "longest"):
            return int(self.N.longest)
        indices, counts = host(self.N.indices), np.zeros(self.order, dtype=int)
        for start in range(0, indices.size, PART):
            counts += np.bincount(indices[start : start + PART], minlength=self.order)
        return int(np.max(counts, initial=1))
