"""The compiled sweep over rows of prescribed norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled


@compiled
def sweep_rows(indptr: Any, indices: Any, data: Any, lengths: Any, sweeps: int, L: Any) -> None:
    """Update the rows in order, each with the current values of the others."""
    rows, rank = L.shape
    g = np.empty(rank)
    for _ in range(sweeps):
        for i in range(rows):
            for k in range(rank):
                g[k] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                c, j = data[p], indices[p]
                for k in range(rank):
                    g[k] += c * L[j, k]
            square = 0.0
            for k in range(rank):
                square += g[k] * g[k]
            if square > 0.0:
                scale = -lengths[i] / np.sqrt(square)
                for k in range(rank):
                    L[i, k] = scale * g[k]
