"""A bound on λ_min from the exact part on a few columns and a bound on their complement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, column_squares, host, namespace
from gramian.proofs.base import place_of_matrix, typical_size

Array = NDArray[np.floating]

LIVE = 1e-2
"""Columns below this fraction of the longest are ignored: they may vanish, and ∇F need not be 0
on them."""

HALVINGS = 40
"""Bisection steps for the smallest sufficient bound on the complement."""


@dataclass(frozen=True)
class Split:
    """−G on the orthogonal complement of columns Q, as an operator, and the part of G on Q.

    With A = QᵀGQ, B = (I − QQᵀ)GQ, R² = BᵀB and G ⪰ cI on the complement, λ_min(G) is at least that
    of [A, R; R, cI]. At an optimum ∇F is 0 on the range of L. The lowest eigenvalues of ∇F, which
    are hard to separate for Lanczos, are then those of a small matrix, and only c is left to it.
    """

    matrix: Any
    Q: Array
    A: Array
    """Diagonal, ascending."""
    R: Array
    level: float
    """Eigenvalue assigned to Q, inside the spectrum: with 0, below the rest, rounding errors would
    reintroduce Q."""

    @classmethod
    def along(cls, matrix: Any, L: Array, *, live: float = LIVE, off: float = np.inf) -> Split:
        """The split by the span of the columns of L that are not shorter than `live` · longest.

        Only Ritz vectors q with ‖Gq − θq‖ ≤ `off` are used: those of short columns, on which ∇F
        is not 0, would couple the two parts.
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
        """A lower bound on λ_min(G) if G ⪰ cI on the complement of Q."""
        rank = self.A.shape[0]
        if rank == 0 or not np.isfinite(c):
            return c if rank == 0 or c < 0 else float(np.linalg.eigvalsh(self.A)[0])
        whole = np.block([[self.A, self.R], [self.R, c * np.eye(rank)]])
        return min(c, float(np.linalg.eigvalsh(whole)[0]))

    def needed(self, room: float, most: float) -> float:
        """The smallest c ≤ `most` for which `least` is at most `room` below its value at `most`."""
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
        """The component of a vector orthogonal to Q."""
        found: NDArray[np.float64] = v - self.Q @ (self.Q.T @ v)
        return found

    def __matmul__(self, v: Array) -> Array:
        rest: Array = -self.beside(self.matrix @ v)
        return rest - self.level * (self.Q @ (self.Q.T @ v)) if self.level else rest


def _range(L: Array, live: float) -> Array:
    """An orthonormal basis of the span of the columns, without the short ones."""
    if L.shape[1] == 0:
        return L
    U, sizes, _ = namespace(L).linalg.svd(L, full_matrices=False)
    sizes = host(sizes)
    return U[:, : int(np.sum(sizes > live * sizes[0]))]
