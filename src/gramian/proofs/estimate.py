"""λ_min by Lanczos if no proof is possible, with a bound on the probability of a miss."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, column_squares, host, namespace, norm
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg import ritz_pairs
from gramian.proofs.base import UNIT, Bottom, place_of_matrix, typical_size

LIVE = 1e-2
"""Columns below this fraction of the longest are ignored: they may vanish, and ∇F need not be 0
on them."""

NEGATIVE_RTOL = 1e-3
"""Sufficient relative accuracy of a negative eigenvalue."""

SUFFICIENT_RESIDUAL = 0.1
"""Relative residual of an eigenvalue at which the rest hardly affects the bound."""

MIN_DEFLATED_LENGTH = 1e-5
"""Columns shorter than this fraction of the longest are not deflated."""

MAX_DEFLATED_RESIDUAL = 1e-3
"""Largest residual of a deflated Ritz vector, as a fraction of the spread of the spectrum."""

MAX_MISS = 1e-6
"""Sufficiently small probability of having missed an eigenvalue."""

MIN_PRODUCTS, MAX_PRODUCTS = 60, 480
"""Smallest and largest number of products per start."""


@dataclass(frozen=True)
class ComplementSplit:
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
    def along(
        cls, matrix: Any, L: Array, *, live: float = LIVE, off: float = np.inf
    ) -> ComplementSplit:
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
        """The smallest c ≤ `most` with least(c) ≥ least(most) − `room`, by bisection."""
        low, high = self.least(most) - room, most
        goal = low
        for _ in range(40):
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
        return v - self.Q @ (self.Q.T @ v)

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


def estimated(
    matrix: Any,
    wanted: float,
    *,
    deadline: float = np.inf,
    start: Any = None,
    starts: int = 2,
    most: int = MAX_PRODUCTS,
    chance: bool = True,
    known: Any = None,
) -> Bottom:
    """The lowest Ritz value of several Lanczos runs, minus its residual.

    The residual proves that an eigenvalue is near, not that none is lower. For a random start
    Kuczyński and Woźniakowski (1992, Theorem 4.1) bound the probability that k steps miss λ_min by
    more than ε times the spread of the spectrum by 1.648 √n exp(−(2k − 1)√ε). Here ε corresponds to
    the amount subtracted, which is at least the wanted accuracy. `start` is used for an additional
    run, which the bound does not count. Without `chance` the probability is not computed. The seed
    depends on the matrix (`_seed`), so results are reproducible and no matrix can defeat it.

    With columns `known`, on whose span the matrix is near 0 or known exactly, the runs use the
    orthogonal complement (`ComplementSplit`). The lowest eigenvalue there may be far above 0, and
    then a low accuracy suffices.
    """
    rng = np.random.default_rng(_seed(matrix))
    place = place_of_matrix(matrix)
    columns = place.zeros((matrix.order, 0)) if known is None else known
    spread = max(_spread(matrix, rng), 1e-300) if chance else np.inf
    split = ComplementSplit.along(
        matrix, columns, live=MIN_DEFLATED_LENGTH, off=MAX_DEFLATED_RESIDUAL * spread
    )
    # Above this value the complement lowers the bound by less than the wanted accuracy.
    floor = split.needed(wanted, spread) if chance and known is not None else np.inf
    best, residual, counts = np.inf, np.inf, []
    vector: Array | None = None
    runs = [None] * starts if start is None else [start, *[None] * starts]

    def miss_by(count: int, above: float) -> float:
        return _miss(matrix.order, count, above / spread)

    for given in runs:
        look = _Look(wanted, deadline, floor, miss_by, split)
        first = split.beside(place.normal(rng, (matrix.order,)) if given is None else given)
        if given is not None and not norm(first) > UNIT**0.5 * norm(given):
            continue  # the part orthogonal to the columns is rounding error
        found = ritz_pairs(split, 2, steps=most, v0=first, enough=look)
        lowest, rest = -float(found.values[0]), float(found.residuals[0])
        if lowest - rest < best - residual or best == np.inf:
            best, residual, vector = lowest, rest, found.vectors[:, 0]
        counts += [look.count] if given is None else []
        if (look.sure and given is None) or clock.passed(deadline):
            break
    lower = best - max(residual, wanted if chance else 0.0)
    lower = floor if best - residual >= floor else lower
    miss = float(np.prod([miss_by(count, best - lower) for count in counts])) if chance else 1.0
    hope = None
    if split.A.size and split.A[0, 0] < best:  # the lowest eigenvector is in the known span
        vector, hope = split.Q[:, 0], split.least(best)
    return Bottom(split.least(lower), "Lanczos", min(max(miss, 1e-300), 1.0), vector, hope)


@dataclass
class _Look:
    """Stopping criterion of a run."""

    wanted: float
    deadline: float
    floor: float
    miss: Callable[[int, float], float]
    split: ComplementSplit
    count: int = 0
    sure: bool = False
    """Whether a random start almost excludes an eigenvalue below `floor`."""

    def __call__(self, count: int, highest: float, rest: float) -> bool:
        self.count = count
        above = -highest - self.floor
        self.sure = bool(rest <= above) and self.miss(count, above) <= MAX_MISS
        near = rest <= max(self.wanted, NEGATIVE_RTOL * max(0.0, highest)) or self._matters_little(
            -highest, rest
        )
        late = clock.passed(self.deadline)
        return late or (count >= MIN_PRODUCTS and (near or self.sure))

    def _matters_little(self, lowest: float, rest: float) -> bool:
        """Whether the eigenvalue on the complement is as accurate as the bound needs."""
        if not rest <= SUFFICIENT_RESIDUAL * lowest:
            return False
        return self.split.least(lowest) - self.split.least(lowest - rest) <= self.wanted


def _seed(matrix: Any) -> int:
    """A hash of three digits of a few entries of a product, insensitive to rounding errors."""
    place = place_of_matrix(matrix)
    image = matrix @ place.put(np.random.default_rng(2).standard_normal(matrix.order))
    few = host(image[:16])
    scale = float(np.max(np.abs(few), initial=0.0)) or 1.0
    return zlib.crc32(np.rint(1000 * (few / scale)).astype(np.int64).tobytes())


def _miss(order: int, steps: int, share: float) -> float:
    """Bound on the probability that one random start errs by more than this share."""
    lost = np.exp(-(2 * steps - 1) * np.sqrt(max(share, 0.0)))
    return float(min(1.0, 1.648 * np.sqrt(order) * lost))


def _spread(matrix: Any, rng: np.random.Generator) -> float:
    """λ_max − λ_min, estimated as twice the spread found by ten products."""
    high = ritz_pairs(_Signed(matrix, 1.0), 1, steps=10, random_state=rng)
    low = ritz_pairs(_Signed(matrix, -1.0), 1, steps=10, random_state=rng)
    reach = high.values[0] + high.residuals[0] + low.values[0] + low.residuals[0]
    return 2 * float(reach)


class _Signed:
    """±G as an operator."""

    def __init__(self, matrix: Any, sign: float) -> None:
        self.matrix, self.sign, self.shape = matrix, sign, (matrix.order, matrix.order)
        self.place = place_of_matrix(matrix)

    def __matmul__(self, v: Array) -> Array:
        return self.sign * (self.matrix @ v)
