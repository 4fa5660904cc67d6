"""λ_min of a multiple of the identity beside an off-diagonal block: its largest singular value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import Place, backend, eye, host, namespace, place_of
from gramian.proofs.base import UNIT, rounded_sum

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Bipartite:
    """[aI, B; Bᵀ, aI] with a sparse B (m × n): its smallest eigenvalue is a − ‖B‖."""

    scale: float
    B: Any

    @property
    def order(self) -> int:
        """That of the smaller of BᵀB and BBᵀ."""
        return min(self.B.shape)

    @property
    def tall(self) -> bool:
        """Whether vectors for B's rows are too many to keep: an estimate then looks at BᵀB."""
        return False

    @property
    def forming(self) -> float:
        """Seconds that BᵀB takes to form, where they count."""
        return 0.0

    def smaller(self) -> _LiftedGram:
        """a²I − BᵀB or a²I − BBᵀ, whose λ_min is a² − ‖B‖²: near 0 where that of the whole is."""
        B = self.B
        return _LiftedGram(B if B.shape[1] <= B.shape[0] else B.T.tocsr(), self.scale)

    def from_smaller(self, bottom: float) -> float:
        """The bound on λ_min that one on that of the smaller matrix gives."""
        square = self.scale**2 * (1 + 2 * UNIT) - bottom
        return self.scale - float(np.sqrt(max(square, 0.0))) * (1 + 4 * UNIT)


@dataclass(frozen=True)
class _LiftedGram:
    """a²I − BᵀB, formed where it is asked for."""

    B: Any
    a: float

    @property
    def order(self) -> int:
        return int(self.B.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Array) -> Array:
        return self.a**2 * V - self.B.T @ (self.B @ V)

    @property
    def place(self) -> Place:
        return place_of(self.B.data)

    @cached_property
    def _gram(self) -> Array:
        gram: Array = backend(self.B.data).gram(self.B)
        return gram

    def dense(self) -> Array:
        return self.a**2 * eye(self.order, self.place) - self._gram

    def form(self) -> None:
        return None

    def slack(self) -> Array:
        """|E_ij| ≤ γ(|B|ᵀ|B|)_ij ≤ γ √(k_i k_j), k the diagonal of BᵀB, and a² beside it."""
        counts = np.bincount(host(self.B.indices), minlength=self.order)
        k = host(namespace(self._gram).linalg.diagonal(self._gram))
        return rounded_sum(float(np.max(counts, initial=1))) * k + 4 * UNIT * (self.a**2 + k)
