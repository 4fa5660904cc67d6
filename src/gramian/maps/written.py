"""A map of a small M as one dense matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.linalg.svec import triangle
from gramian.maps.base import Floats, LinearMap

NUMBERS = 100_000
"""Largest size of the matrix; a product takes as long as a few NumPy calls. For 80 triplets of 20
points, gather and scatter take 0.2 ms and this product 0.05 ms."""


class Written(LinearMap):
    """𝒜(M) = R vec(M). The entries of M are rounded, so small distances lose digits."""

    def __init__(self, map: LinearMap) -> None:
        self.order, self.size = map.order, map.size
        i, j, scale = triangle(map.order)
        rows = map.columns(np.eye(map.order)) / scale
        R = np.zeros((map.size, map.order, map.order))
        R[:, i, j] = R[:, j, i] = rows
        self.R: NDArray[np.float64] = R.reshape(map.size, -1)
        self.turned = np.ascontiguousarray(self.R.T)

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        return self.of_matrix(U @ V.T)

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        found: Floats = self.adjoint_matrix(w) @ V
        return found

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        return self.R @ M.reshape(-1)

    def adjoint_matrix(self, w: Floats) -> Floats:
        return (self.turned @ w).reshape(self.order, self.order)


def is_small(map: LinearMap) -> bool:
    """Whether a dense matrix is the fastest way to evaluate a map."""
    return map.place.is_host and 0 < map.size * map.order**2 <= NUMBERS
