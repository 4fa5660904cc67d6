"""Ordered levels: an entry is to be on the right side of every threshold between two of them.

The all-threshold loss of Rennie and Srebro (2005): an entry of K levels is K − 1 signs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.problem import Problem
from gramian.problems.completion import mmmf

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

MOST_LEVELS = 50


def checked_levels(values: Array) -> Array:
    """The different values, ascending, refused where they are no levels."""
    levels: Array = np.unique(values)
    if not 1 < levels.size <= MOST_LEVELS:
        # Shards tell no more of them than decide this.
        found = levels.size if levels.size <= MOST_LEVELS else f"more than {MOST_LEVELS}"
        raise ValueError(
            f"MMMF predicts two to {MOST_LEVELS} levels, and the entries have {found} different "
            "values: NuclearCompletion predicts numbers"
        )
    return levels


def midway(count: int) -> Array:
    """Thresholds in margins: levels k − (K − 1)/2 times 2, so their half gap is 1."""
    return 2.0 * np.arange(1, count) - count


def all_thresholds(
    rows: Indices,
    cols: Indices,
    places: Indices,
    shape: tuple[int, int],
    lam: float,
    *,
    offset: Array,
    thresholds: Array,
    learned: bool = False,
    weights: Array | None = None,
    **options: Any,
) -> Problem:
    """MMMF of entries whose levels are in these places, beside offsets of the score of each.

    `learned` makes the thresholds part of the problem; further options are those of
    `gramian.problems.mmmf`.
    """
    repeat = thresholds.size
    signs = np.where(places[:, None] > np.arange(repeat), 1.0, -1.0)
    margins = 1.0 - signs * (offset[:, None] - thresholds)
    return mmmf(
        rows,
        cols,
        signs.ravel(),
        shape,
        lam,
        margin=margins.ravel(),
        weights=None if weights is None else np.repeat(weights, repeat),
        repeat=repeat,
        groups=np.tile(np.arange(repeat), places.size) if learned else None,
        **options,
    )
