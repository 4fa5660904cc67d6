"""Several leading Ritz pairs from one short Lanczos run: directions, not eigenvectors."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gramian.arrays.places import contiguous
from gramian.linalg._base import Array, CountedOperator, Operator, RandomState
from gramian.linalg._lanczos import LanczosBasis

LOOK = 20
"""Products after which a run is asked whether they are enough."""


class RitzPairs(NamedTuple):
    """The largest Ritz values, descending, with unit vectors and residual norms."""

    values: Array
    vectors: Array
    residuals: Array


def ritz_pairs(
    operator: Operator,
    k: int,
    *,
    steps: int,
    v0: Array | None = None,
    random_state: RandomState = None,
    enough: Callable[[int, float, float], bool] | None = None,
) -> RitzPairs:
    """Return the k largest Ritz pairs of a Lanczos run of so many steps from v0, or at random.

    A fixed number of products, wherever they lead, unless `enough` is given: it is shown their
    number, the largest value and its residual every `LOOK` of them, and may end the run. Copies of
    a multiple eigenvalue do not show.
    """
    counted = CountedOperator(operator)
    noise = counted.place.normal(np.random.default_rng(random_state), (counted.size,))
    start, most = noise if v0 is None else v0, min(steps, counted.size)
    basis = LanczosBasis(start, most, counted.precision, partial=True)
    while not basis.full:
        basis.extend(counted(basis.last))
        if enough is not None and basis.size % LOOK == 0:
            values, vectors = basis.ritz()
            if enough(basis.size, float(values[-1]), basis.residual(vectors[:, -1])):
                break
    values, vectors = basis.ritz()
    chosen = vectors[:, ::-1][:, :k]
    residuals = np.array([basis.residual(y) for y in chosen.T])
    found = contiguous(basis.combine(np.ascontiguousarray(chosen.T)).T)
    return RitzPairs(values[::-1][:k].copy(), found, residuals)
