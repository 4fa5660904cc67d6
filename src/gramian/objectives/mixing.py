"""Operations on the iterates of a fixed-point map for Anderson mixing.

Points may be in blocks: products are sums over blocks, and a mixture is computed block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def products(changes: Sequence[Array]) -> Array:
    """⟨d_k, d_l⟩ for the differences d of each change from the last, with ⟨d_k, last change⟩ as an
    additional column.
    """
    steps = [b - a for a, b in pairwise(changes)]
    found = np.empty((len(steps), len(steps) + 1), dtype=changes[-1].dtype)
    for k, step in enumerate(steps):
        found[k] = [np.vdot(step, other) for other in (*steps, changes[-1])]
    return found


def mixture(points: Sequence[Array], weights: Array) -> Array:
    """The last point minus the weighted differences of consecutive points."""
    found = points[-1].copy()
    for weight, (a, b) in zip(weights, pairwise(points), strict=True):
        found -= weight * (b - a)
    return found
