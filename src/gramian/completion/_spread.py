"""The size of ratings beside their offsets, by sums over blocks of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gramian.completion._ratings import Ratings

Array = NDArray[np.floating]
Told = Callable[[slice], Array]


def spread(ratings: Ratings, ridge: float | None) -> float:
    """The root mean square of ratings less shrunken means of columns, and then of rows.

    Means shrink as if each column and row had `ridge` entries more at the mean of all; without a
    ridge nothing is taken off.
    """
    told: Told = ratings.values.__getitem__
    if ridge is not None:
        for side in (1, 0):
            told = _beside(ratings, told, side, ridge)
    square = sum(float(np.sum(np.square(told(part)))) for part in ratings.parts())
    return float(np.sqrt(square / ratings.values.size))


def _beside(ratings: Ratings, told: Told, side: int, ridge: float) -> Told:
    """What is left of entries beside their mean and the means of one side."""
    index, sums = (ratings.rows, ratings.cols)[side], np.zeros(ratings.shape[side])
    for part in ratings.parts():
        sums += np.bincount(index[part], told(part), minlength=sums.size)
    counts, mean = ratings.counts(side), float(np.sum(sums)) / ratings.values.size
    means = (sums - mean * counts) / (counts + ridge)
    return lambda part: told(part) - mean - means[index[part]]
