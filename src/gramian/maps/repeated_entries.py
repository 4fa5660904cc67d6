"""Entries of a block that a loss sees several times, each of them formed once."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from gramian.arrays.places import namespace
from gramian.maps.base import Floats
from gramian.maps.block_entries import BlockEntries


class RepeatedEntries(BlockEntries):
    """Every entry of `BlockEntries` so many times, one after the other.

    Levels with thresholds between them ask for the same entry at each of those (Rennie and Srebro
    2005). `rows`, `cols` and the orders of a block are those of the entries themselves.
    """

    def __init__(
        self, rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int], repeat: int
    ) -> None:
        super().__init__(rows, cols, shape)
        if repeat < 1:
            raise ValueError(f"repeat must be at least 1, got {repeat}")
        self.repeat = int(repeat)
        self.size = self.rows.size * self.repeat

    def bilinear(self, U: Floats, V: Floats) -> NDArray[Any]:
        return self._repeated(super().bilinear(U, V))

    def columns(self, W: Floats) -> NDArray[Any]:
        return self._repeated(super().columns(W))

    def of_matrix(self, M: Floats) -> NDArray[Any]:
        return self._repeated(super().of_matrix(M))

    def _repeated(self, z: Floats) -> Floats:
        xp, count = namespace(z), z.shape[0]
        lines = xp.broadcast_to(z[:, None, ...], (count, self.repeat, *z.shape[1:]))
        every: Floats = xp.reshape(lines, (self.size, *z.shape[1:]))
        return every

    def _summed(self, w: Floats) -> Floats:
        """The sums of the weights of each entry, rounded once: λ_min is proved for them.

        Weights of either sign cancel; what a sum loses (Knuth's two-sum) is added at its end.
        """
        lines = namespace(w).reshape(w, (-1, self.repeat))
        total, lost = lines[:, 0], 0.0 * lines[:, 0]
        for k in range(1, self.repeat):
            term = lines[:, k]
            moved = total + term
            kept = moved - total
            lost = lost + ((total - (moved - kept)) + (term - kept))
            total = moved
        return total + lost
