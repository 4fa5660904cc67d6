"""What Anderson's mixing asks of the points that a map goes through, and of how it changes them.

Points may lie in blocks: products are sums over those, and a mixture is one of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def products(changes: Sequence[Array]) -> Array:
    """⟨d_k, d_l⟩ for the differences d of one change from the last, and ⟨d_k, the last change⟩ in
    a column behind them.
    """
    steps = [b - a for a, b in pairwise(changes)]
    found = np.empty((len(steps), len(steps) + 1), dtype=changes[-1].dtype)
    for k, step in enumerate(steps):
        found[k] = [np.vdot(step, other) for other in (*steps, changes[-1])]
    return found


def mixture(points: Sequence[Array], weights: Array) -> Array:
    """The last point less each move from one to the next, as often as its weight says."""
    found = points[-1].copy()
    for weight, (a, b) in zip(weights, pairwise(points), strict=True):
        found -= weight * (b - a)
    return found
