"""Several leading Ritz pairs from one short Lanczos run, used as directions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gramian.arrays.places import contiguous
from gramian.linalg._base import Array, CountedOperator, Operator, RandomState
from gramian.linalg._lanczos import LanczosBasis

LOOK = 20
"""Products between two checks of the stopping criterion."""


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
    """Return the k largest Ritz pairs of a Lanczos run with `steps` steps from v0 or at random.

    The number of products is fixed unless `enough` is given, which is called every `LOOK` products
    with their number, the largest value and its residual, and may end the run. Multiple eigenvalues
    are found once.
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
