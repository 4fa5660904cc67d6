"""λ_min by Lanczos, where no proof fits: what it found, and how likely it is to have missed."""

from __future__ import annotations

import time
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import host
from gramian.eigen import ritz_pairs
from gramian.proofs.base import Bottom, place_of_matrix

Array = NDArray[np.floating]

STARTS = 2
"""Random starts that have to agree."""

COARSE = 1e-3
"""The part of a negative eigenvalue that it need not be known better than."""

LEAST, MOST = 60, 480
"""Products of each start, until the residual is what is wanted."""


def estimated(
    matrix: Any,
    wanted: float,
    *,
    deadline: float = np.inf,
    start: Any = None,
    starts: int = STARTS,
    most: int = MOST,
    chance: bool = True,
) -> Bottom:
    """The lowest Ritz value of several Lanczos runs, less its residual.

    The residual proves an eigenvalue near, not that none is lower. For a random start Kuczyński and
    Woźniakowski (1992, Theorem 4.1) bound the probability that k steps miss λ_min by more than ε
    of the spread of the spectrum by 1.648 √n exp(−(2k − 1)√ε); here ε is the share of the accuracy
    that is wanted, and so much is taken off. `start` joins as a further run, which the bound does
    not count. Without `chance` that probability is not looked for. The starts are those of a seed
    made from a product with the matrix: they repeat, and no matrix is made to hide from them.
    """
    rng = np.random.default_rng(_seed(matrix))
    best, residual, vector, miss = np.inf, np.inf, None, 1.0
    runs = [None] * starts if start is None else [start, *[None] * starts]
    for given in runs:
        steps = 0

        def enough(count: int, highest: float, rest: float) -> bool:
            nonlocal steps
            steps = count
            near = max(wanted, COARSE * max(0.0, highest))
            return (rest <= near and count >= LEAST) or time.perf_counter() >= deadline

        found = ritz_pairs(
            _Signed(matrix, -1.0), 2, steps=most, v0=given, random_state=rng, enough=enough
        )
        lowest, rest = -float(found.values[0]), float(found.residuals[0])
        if lowest - rest < best - residual or best == np.inf:
            best, residual, vector = lowest, rest, found.vectors[:, 0]
        if given is None and chance:
            spread = max(_spread(matrix, rng), 1e-300)
            miss *= _miss(matrix.order, steps, max(wanted, 1e-300) / spread)
        if time.perf_counter() >= deadline:
            break
    taken_off = max(residual, wanted) if chance else residual
    return Bottom(best - taken_off, "Lanczos", min(max(miss, 1e-300), 1.0), vector)


def _seed(matrix: Any) -> int:
    ones = place_of_matrix(matrix).put(np.ones(matrix.order))
    return zlib.crc32(np.ascontiguousarray(host(matrix @ ones)).tobytes())


def _miss(order: int, steps: int, share: float) -> float:
    """The bound on the probability that one random start errs by more than this share."""
    return float(min(1.0, 1.648 * np.sqrt(order) * np.exp(-(2 * steps - 1) * np.sqrt(share))))


def _spread(matrix: Any, rng: np.random.Generator) -> float:
    """λ_max − λ_min, twice what ten products show of it: they show too little."""
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
