"""The form in which the gradient of a completion is proved: its block stays on the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._residual import Residual
from gramian.dask._spread import Spread
from gramian.proofs import Bipartite, rounded_sum
from gramian.proofs.base import UNIT

Array = NDArray[np.floating]

SPEED = 5e7
"""Products of two entries of a row that are added to BᵀB in a second."""


@dataclass(frozen=True)
class Blocks(Bipartite):
    """[aI, B; Bᵀ, aI] whose block is on the workers: BᵀB, a sum over them, comes to the driver.

    In the place of B stands the objective that knows where it is.
    """

    image: Any = None

    @property
    def order(self) -> int:
        return int(self.B.rated.shape[1])

    @property
    def tall(self) -> bool:
        return isinstance(self.image.X, Spread)

    @property
    def forming(self) -> float:
        """By operations, and for one worker: it must not depend on who is there."""
        return float(np.sum(np.square(self.B.rated.users.counts, dtype=float))) / SPEED

    def smaller(self) -> Any:
        return _Lifted(self.scale, self.B, self.image)


@dataclass(frozen=True)
class _Lifted:
    """a²I − BᵀB, formed from the sum over blocks where its entries are asked for."""

    a: float
    objective: Any
    image: Any

    @property
    def order(self) -> int:
        return int(self.objective.rated.shape[1])

    @property
    def residual(self) -> Residual:
        found: Residual = self.objective.residual(self.image)
        return found

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Array) -> Array:
        return self.a**2 * V - self.residual.gram_times(V)

    def dense(self) -> Array:
        return self.a**2 * np.eye(self.order) - self.residual.gram()

    def form(self) -> None:
        return None

    def slack(self) -> Array:
        """|E_ij| ≤ γ(|B|ᵀ|B|)_ij ≤ γ √(k_i k_j), k the diagonal of BᵀB, and a² beside it."""
        k = np.diagonal(self.residual.gram())
        longest = float(np.max(self.objective.rated.items.counts, initial=1))
        return rounded_sum(longest) * k + 4 * UNIT * (self.a**2 + k)
