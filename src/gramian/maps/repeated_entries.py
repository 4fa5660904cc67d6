"""Entries of a block that are repeated in the image, each computed once."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from gramian.arrays.places import namespace
from gramian.maps.base import Floats
from gramian.maps.block_entries import BlockEntries


class RepeatedEntries(BlockEntries):
    """Every entry of `BlockEntries` repeated a given number of times in succession.

    Ordinal levels compare the same entry with each threshold (Rennie and Srebro 2005). `rows`,
    `cols` and the orders of a block refer to the entries without repetition.
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
        """The sums of the weights of each entry, rounded once, as the proof of λ_min requires.

        Weights of both signs may cancel; compensated summation (Knuth's two-sum) corrects this.
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
