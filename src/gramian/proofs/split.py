"""A symmetric matrix in two parts: in full on a few columns, and from below beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, column_squares, host, namespace
from gramian.proofs.base import place_of_matrix, typical_size

Array = NDArray[np.floating]

LIVE = 1e-2
"""Columns shorter than this part of the longest may be dying, and ∇F need not vanish on them."""

HALVINGS = 40
"""Steps of the bisection that finds how low the part beside the columns may lie."""


@dataclass(frozen=True)
class Split:
    """−G beside the range of orthonormal columns Q, as an operator, and what G is on them.

    With A = QᵀGQ, B = (I − QQᵀ)GQ, R² = BᵀB and G ⪰ cI beside Q, λ_min(G) is at least that of
    [A, R; R, cI]. At an optimum ∇F is 0 on the range of L: the lowest eigenvalues of ∇F, which
    Lanczos can hardly tell apart, are those of a small matrix, and only c is left to it.
    """

    matrix: Any
    Q: Array
    A: Array
    """Diagonal, by ascending numbers."""
    R: Array
    level: float
    """What Q is given as an eigenvalue, inside the spectrum: at 0, below the rest, rounding would
    bring it back."""

    @classmethod
    def along(cls, matrix: Any, L: Array, *, live: float = LIVE, off: float = np.inf) -> Split:
        """On what the columns of L span, without those shorter than this part of the longest.

        Of that, Ritz vectors q with ‖Gq − θq‖ ≤ `off`: those of short columns, which ∇F does not
        vanish on, would tie the two parts together.
        """
        Q = _range(L, live)
        image = matrix @ Q if Q.shape[1] else Q
        inside = host(Q.T @ image)
        values, turn = np.linalg.eigh(0.5 * (inside + inside.T))
        Q, image = Q @ beside(Q, turn), image @ beside(Q, turn)
        rest = image - Q * beside(Q, values)
        still = np.flatnonzero(np.sqrt(host(column_squares(rest))) <= off)
        Q, rest = Q[:, still], rest[:, still]
        squares, turn = np.linalg.eigh(host(rest.T @ rest))
        root = (turn * np.sqrt(np.maximum(squares, 0.0))) @ turn.T
        level = typical_size(matrix) if still.size else 0.0
        return cls(matrix, Q, np.diag(values[still]), root, level)

    def least(self, c: float) -> float:
        """A lower bound on λ_min(G) where G ⪰ cI beside Q."""
        rank = self.A.shape[0]
        if rank == 0 or not np.isfinite(c):
            return c if rank == 0 or c < 0 else float(np.linalg.eigvalsh(self.A)[0])
        whole = np.block([[self.A, self.R], [self.R, c * np.eye(rank)]])
        return min(c, float(np.linalg.eigvalsh(whole)[0]))

    def needed(self, room: float, most: float) -> float:
        """The least c up to `most` at which `least` has fallen by no more than this from there."""
        low, high = self.least(most) - room, most
        goal = low
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.least(middle) >= goal else (middle, high)
        return high

    @property
    def shape(self) -> tuple[int, int]:
        order = self.matrix.order
        return order, order

    @property
    def place(self) -> Any:
        return place_of_matrix(self.matrix)

    def beside(self, v: Array) -> NDArray[np.float64]:
        """What of a vector lies beside Q."""
        found: NDArray[np.float64] = v - self.Q @ (self.Q.T @ v)
        return found

    def __matmul__(self, v: Array) -> Array:
        rest: Array = -self.beside(self.matrix @ v)
        return rest - self.level * (self.Q @ (self.Q.T @ v)) if self.level else rest


def _range(L: Array, live: float) -> Array:
    """An orthonormal basis of what the columns span, without the short ones."""
    if L.shape[1] == 0:
        return L
    U, sizes, _ = namespace(L).linalg.svd(L, full_matrices=False)
    sizes = host(sizes)
    return U[:, : int(np.sum(sizes > live * sizes[0]))]
