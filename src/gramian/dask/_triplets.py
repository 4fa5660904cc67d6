"""The margins of the triplets of a block, whose anchors lie at the origin."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._neighbours import Local
from gramian.losses import SmoothedHinge, SquaredHinge
from gramian.maps import Congruence, triplet_margins
from gramian.objectives import Composite

Array = NDArray[np.floating]


def _differences(block: Any) -> tuple[Array, Array, Any]:
    """(same − anchor), (other − anchor), and which of each belong together, an (e, 2) array."""
    if isinstance(block, Local):
        n, k, d = block.near.shape
        at = np.arange(n * k).reshape(n, k)
        pairs = np.column_stack([np.repeat(at, k, axis=1).ravel(), np.tile(at, (1, k)).ravel()])
        return block.near.reshape(-1, d), block.far.reshape(-1, d), pairs
    table = block[0]
    each = np.arange(len(table))
    return table[:, 1] - table[:, 0], table[:, 2] - table[:, 0], np.column_stack([each, each])


def _margins(block: Any, R: Array | None) -> Congruence:
    """The margins of triplets, whose anchors lie at the origin."""
    near, far, pairs = _differences(block)
    X = np.vstack([np.zeros((1, near.shape[1])), near, far])
    X = np.ascontiguousarray(X if R is None else X @ R)
    anchors = np.zeros(len(pairs), dtype=pairs.dtype)
    triplets = np.column_stack([anchors, 1 + pairs[:, 0], 1 + len(near) + pairs[:, 1]])
    return Congruence(triplet_margins(triplets, len(X)), X)


def hinged(block: Any, lam: float, mu: float, R: Array | None) -> Composite:
    """λ Σ h_μ(1 + d(i, j) − d(i, l)) over the triplets of a block."""
    return Composite(_margins(block, R), SmoothedHinge(mu=mu, weight=lam))


def squared(block: Any, lam: float, R: Array) -> Composite:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over the triplets of a block."""
    return Composite(_margins(block, R), SquaredHinge(margin=1.0, weight=lam))
