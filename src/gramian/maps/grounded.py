"""Distances of pairs, in coordinates where the Laplacian of another graph is the identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.maps.base import Floats
from gramian.maps.distances import PairDistances
from gramian.maps.whitened import GroundedRoot, WhitenedDistances


class GroundedDistances(WhitenedDistances):
    """𝒜(M) = the distances of RMRᵀ, where RᵀPR = I for the Laplacian P of another graph.

    The first point of that graph is at the origin.
    """

    def __init__(self, distances: PairDistances, laplacian: Any) -> None:
        self.distances, self.root = distances, GroundedRoot(laplacian)
        self.unit = sp.csr_array(laplacian)[1:, 1:]
        self.order, self.size = self.root.order, distances.size

    def adjoint_grounded(self, w: Floats) -> sp.csr_array:
        """The Laplacian of w without the point at the origin, before multiplication by R."""
        return sp.csr_array(self.distances.adjoint_sparse(w)[1:, 1:])

    def vector_product(self, w: Floats) -> Callable[[Floats], Floats]:
        return self.root.congruence(self.distances.adjoint_sparse(w))

    def identity_weights(self) -> NDArray[np.float64] | None:
        return None
