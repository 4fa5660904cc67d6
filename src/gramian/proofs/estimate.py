"""λ_min by Lanczos, where no proof fits: what it found, and how likely it is to have missed."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import host, norm
from gramian.common import clock
from gramian.linalg import ritz_pairs
from gramian.proofs.base import Bottom, place_of_matrix
from gramian.proofs.split import Split

Array = NDArray[np.floating]

STARTS = 2
"""Random starts that have to agree."""

COARSE = 1e-3
"""The part of a negative eigenvalue that it need not be known better than."""

NEARLY = 0.1
"""The part of an eigenvalue that its residual may be where the rest hardly matters to the bound."""

SHORT = 1e-5
"""Columns shorter than this part of the longest are not looked beside."""

STILL = 1e-3
"""The part of the spread that a column may be off an eigenvector by to be looked beside."""

WITHIN = 1e-8
"""The part of a start beside the columns below which it is rounding."""

RARE = 1e-6
"""A probability of having missed an eigenvalue that is small enough."""

SEEDING, DIGITS = 16, 1000
"""Entries of a product that the seed of the random starts depends on, and the part of the largest
of them that each is rounded to."""

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
    known: Any = None,
) -> Bottom:
    """The lowest Ritz value of several Lanczos runs, less its residual.

    The residual proves an eigenvalue near, not that none is lower. For a random start Kuczyński and
    Woźniakowski (1992, Theorem 4.1) bound the probability that k steps miss λ_min by more than ε
    of the spread of the spectrum by 1.648 √n exp(−(2k − 1)√ε); here ε is the share of what is taken
    off, the accuracy that is wanted or more. `start` joins as a further run, which the bound does
    not count. Without `chance` that probability is not computed. The random starts depend on the
    matrix (`_seed`), so that they are reproducible and no matrix can be built to defeat them.

    With columns `known`, on whose span the matrix is near 0 or at least known in full, the runs
    look beside them (`Split`): there the lowest eigenvalue may be well above 0, and then need not
    be known well.
    """
    rng = np.random.default_rng(_seed(matrix))
    place = place_of_matrix(matrix)
    columns = place.zeros((matrix.order, 0)) if known is None else known
    spread = max(_spread(matrix, rng), 1e-300) if chance else np.inf
    split = Split.along(matrix, columns, live=SHORT, off=STILL * spread)
    # From here on the part beside the columns does not lower the bound by more than is wanted.
    floor = split.needed(wanted, spread) if chance and known is not None else np.inf
    best, residual, counts = np.inf, np.inf, []
    vector: Array | None = None
    runs = [None] * starts if start is None else [start, *[None] * starts]

    def miss_by(count: int, above: float) -> float:
        return _miss(matrix.order, count, above / spread)

    for given in runs:
        look = _Look(wanted, deadline, floor, miss_by, split)
        first = split.beside(place.normal(rng, (matrix.order,)) if given is None else given)
        if given is not None and not norm(first) > WITHIN * norm(given):
            continue
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
    if split.A.size and split.A[0, 0] < best:  # the lowest eigenvector found is a known column
        vector, hope = split.Q[:, 0], split.least(best)
    return Bottom(split.least(lower), "Lanczos", min(max(miss, 1e-300), 1.0), vector, hope)


@dataclass
class _Look:
    """Whether the products of a run are enough."""

    wanted: float
    deadline: float
    floor: float
    miss: Callable[[int, float], float]
    split: Split
    count: int = 0
    sure: bool = False
    """Whether a random start all but rules an eigenvalue below `floor` out."""

    def __call__(self, count: int, highest: float, rest: float) -> bool:
        self.count = count
        above = -highest - self.floor
        self.sure = bool(rest <= above) and self.miss(count, above) <= RARE
        near = rest <= max(self.wanted, COARSE * max(0.0, highest)) or self._matters_little(
            -highest, rest
        )
        late = clock.passed(self.deadline)
        return late or (count >= LEAST and (near or self.sure))

    def _matters_little(self, lowest: float, rest: float) -> bool:
        """Whether an eigenvalue beside the columns is known as well as the bound needs it."""
        if not rest <= NEARLY * lowest:
            return False
        return self.split.least(lowest) - self.split.least(lowest - rest) <= self.wanted


def _seed(matrix: Any) -> int:
    """A hash of a few digits of a product with the matrix: rounding errors do not change it."""
    place = place_of_matrix(matrix)
    image = matrix @ place.put(np.random.default_rng(2).standard_normal(matrix.order))
    few = host(image[:SEEDING])
    scale = float(np.max(np.abs(few), initial=0.0)) or 1.0
    return zlib.crc32(np.rint(DIGITS * (few / scale)).astype(np.int64).tobytes())


def _miss(order: int, steps: int, share: float) -> float:
    """The bound on the probability that one random start errs by more than this share."""
    lost = np.exp(-(2 * steps - 1) * np.sqrt(max(share, 0.0)))
    return float(min(1.0, 1.648 * np.sqrt(order) * lost))


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
