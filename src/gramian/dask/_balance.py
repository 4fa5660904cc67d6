"""[P; Q] turned so that the columns of both are orthogonal, falling and as long, block by block.

With P = XS and Q = YT, S and T triangular, and the decomposition STᵀ = UΣVᵀ, the halves wanted are
XUΣ^½ = P TᵀVΣ^-½ and YVΣ^½ = Q SᵀUΣ^-½: only r × r matrices come to the driver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._cluster import Cluster
from gramian.dask._spread import Spread

Array = NDArray[np.floating]

DEAD = 1e-10
"""Singular values below this part of the largest are left out, as at home."""


def balanced(factor: Spread) -> Spread:
    """The same product PQᵀ with the least trace."""
    cluster = factor.cluster
    S, T = (_triangle(cluster, side) for side in (factor.upper, factor.lower))
    U, values, Vt = np.linalg.svd(S @ T.T)
    kept = values > DEAD * max(float(values[0]), 1e-300)
    kept[0] = True
    roots = np.sqrt(np.maximum(values[kept], 1e-300))
    upper, lower = (
        cluster.keep(cluster.each("balance", _turned, side, turn / roots))
        for side, turn in (
            (factor.upper, T.T @ Vt.T[:, kept]),
            (factor.lower, S.T @ U[:, kept]),
        )
    )
    return replace(factor, upper=upper, lower=lower, columns=int(kept.sum()))


def _triangle(cluster: Cluster, blocks: list[Any]) -> Array:
    """R of a QR decomposition of all blocks, one below another."""
    found: Array = cluster.sum("triangle", _upper, blocks, join=_both)
    return found


def _upper(rows: Array) -> Array:
    """R, of as many rows as columns."""
    columns = rows.shape[1]
    lacking = max(0, columns - rows.shape[0])
    return _triangular(np.vstack([rows, np.zeros((lacking, columns))]))


def _both(a: Array, b: Array) -> Array:
    return _triangular(np.vstack([a, b]))


def _triangular(rows: Array) -> Array:
    found: Any = np.linalg.qr(rows, mode="r")
    return np.asarray(found)


def _turned(rows: Array, turn: Array) -> Array:
    return np.ascontiguousarray(rows @ turn)
