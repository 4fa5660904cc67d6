"""F(LLᵀ) of a block PQᵀ as least squares in P for a given Q, and in Q for a given P."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.backends.cpu import RowFits
from gramian.losses import Loss, SquaredWithOffsets
from gramian.losses.base import LeastSquares
from gramian.maps import BlockEntries

Array = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Halves:
    """½ Σ_e (s_e p_i·q_j + b_i + c_j − t_e)² + λ/2 (‖P‖² + ‖Q‖²) + κ/2 (‖b‖² + ‖c‖²).

    A *state* is [P b; Q c], of one column more than the factor [P; Q]; without offsets that column
    is 0 and stays so. With one half held, every row of the other is a small problem of its own.
    """

    split: int
    """How many rows P has."""
    upper: RowFits
    lower: RowFits
    lam: float
    ridge: float
    offsets: Callable[[Array], Array]
    """The best b and c for a factor, one after the other."""

    @classmethod
    def of(cls, map: BlockEntries, loss: Loss, squares: LeastSquares, lam: float) -> Halves:
        """Those of a sum of squares of some entries beside λ/2 tr M."""

        def offsets(factor: Array) -> Array:
            if not isinstance(loss, SquaredWithOffsets):
                return np.zeros(map.order)
            return np.concatenate(loss.offsets(map.bilinear(factor, factor)))

        free = squares.ridge is not None
        scale, targets = (
            np.ascontiguousarray(np.broadcast_to(part, map.rows.shape), dtype=float)
            for part in (squares.scale, squares.targets)
        )
        upper, lower = (
            RowFits(starts, neighbour, scale[entry], targets[entry], free)
            for starts, neighbour, entry in (map.by_row(), map.by_column())
        )
        ridge = 1.0 if squares.ridge is None else squares.ridge
        return cls(map.shape[0], upper, lower, lam, ridge, offsets)

    def state(self, factor: Array) -> Array:
        """[P b; Q c] with the best offsets, as an array of its own."""
        return np.column_stack([factor, self.offsets(factor)])

    def refit_upper(self, state: Array, steps: int) -> float:
        """Better P and b for these Q and c, in place; F before."""
        return self._refit(self.upper, state[: self.split], state[self.split :], steps)

    def refit_lower(self, state: Array, steps: int) -> float:
        """Better Q and c for these P and b, in place; F before."""
        return self._refit(self.lower, state[self.split :], state[: self.split], steps)

    def _refit(self, fits: RowFits, own: Array, other: Array, steps: int) -> float:
        penalty = np.full(own.shape[1], self.lam)
        penalty[-1] = self.ridge
        norms = sum(np.einsum("ij,ij->j", half, half) for half in (own, other))
        before = 0.5 * float(penalty @ norms)
        return before + fits.refit(own, other, penalty, steps)
