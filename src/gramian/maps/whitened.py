"""Distances along the edges of a graph, in coordinates where its Laplacian is the identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from gramian.backends import cpu
from gramian.maps.base import Floats, LinearMap, check_factors, check_matrix
from gramian.maps.distances import PairDistances


class GroundedRoot:
    """R (n × (n − 1)) with RᵀPR = I for the Laplacian P of a connected graph, and first row 0.

    P without its first row and column is CCᵀ, C sparse and lower triangular after a permutation
    that keeps it so: R = [0; C⁻ᵀ]. Placements Y of n − 1 rows become placements RY of the points
    with the first of them at 0, all of them up to a shift.
    """

    def __init__(self, laplacian: Any) -> None:
        grounded = sp.csc_array(laplacian)[1:, 1:]
        try:
            lu = splu(
                grounded,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
            pivots = lu.U.diagonal()
            definite = np.array_equal(lu.perm_r, lu.perm_c) and bool(np.all(pivots > 0))
        except RuntimeError:  # exactly singular
            definite = False
        if not definite:
            raise ValueError("the graph is not connected: its Laplacian has no such root")
        self.C = sp.csc_array(lu.L @ sp.diags_array(np.sqrt(pivots)))
        self.C.sort_indices()
        self.place = lu.perm_r
        self.n = laplacian.shape[0]
        self.order = self.n - 1

    def __matmul__(self, Y: Floats) -> Floats:
        """RY."""
        L = np.zeros((self.n, Y.shape[1]))
        L[1:] = cpu.triangular_solve(self.C, Y, transposed=True)[self.place]
        return L

    def transposed(self, V: Floats) -> Floats:
        """RᵀV."""
        B = np.empty((self.order, V.shape[1]))
        B[self.place] = V[1:]
        return cpu.triangular_solve(self.C, B)

    def coordinates(self, L: Floats) -> Floats:
        """Y with RY = L less its first row."""
        Z = np.empty((self.order, L.shape[1]))
        Z[self.place] = L[1:] - L[0]
        coordinates: Floats = self.C.T @ Z
        return coordinates


class WhitenedDistances(LinearMap):
    """𝒜(M) = the distances d(i, j) of RMRᵀ along the edges of a graph, R its grounded root.

    The adjoint of equal weights is the identity: 𝒜*(1) = RᵀPR = I.
    """

    def __init__(self, distances: PairDistances, root: GroundedRoot) -> None:
        self.distances, self.root = distances, root
        self.order, self.size = root.order, distances.size

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        check_factors(self.order, U, V)
        RU = self.root @ U
        return self.distances.bilinear(RU, RU if V is U else self.root @ V)

    def columns(self, W: Floats) -> NDArray[np.float64]:
        return self.distances.columns(self.root @ W)

    def fixed(self, L: Floats) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
        bilinear, adjoint = self.distances.fixed(self.root @ L)
        return lambda D: bilinear(self.root @ D), lambda w: self.root.transposed(adjoint(w))

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        """Rᵀ(Σ w_e (e_i − e_j)(e_i − e_j)ᵀ)RV."""
        check_factors(self.order, V)
        return self.root.transposed(self.distances.adjoint(w, self.root @ V))

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        check_matrix(self.order, M)
        return self.distances.of_matrix(self.root @ (self.root @ M).T)

    def identity_weights(self) -> NDArray[np.float64]:
        return np.ones(self.size)
