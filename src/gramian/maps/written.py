"""A map of a small M as one dense matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.linalg.svec import triangle
from gramian.maps.base import Floats, LinearMap

NUMBERS = 100_000
"""Those of the matrix, at most: so many are multiplied with in the time that a few calls of numpy
take. Gathering and scattering 80 triplets of 20 points take 0.2 ms, this 0.05 ms."""


class Written(LinearMap):
    """𝒜(M) = R vec(M), with every entry of M rounded: small distances lose digits by it."""

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
    """Whether one matrix is the quickest way to the values of a map."""
    return map.place.is_host and 0 < map.size * map.order**2 <= NUMBERS
