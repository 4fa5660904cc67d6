"""Attracted points, in coordinates where the attraction is the trace.

With P the Laplacian of the edges ω and of edges ρ from every point to one at the origin, the
attraction Σ_e ω_e d_M(e) + ρ tr M is ⟨P, M⟩. With RᵀPR = I and M = RSRᵀ it is tr S. The condition
number of P no longer affects the steps, and a dual vector becomes feasible by a scaling with λ_min
instead of a shift that is divided by the smallest eigenvalue of P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.maps import GroundedDistances, PairDistances
from gramian.objectives import Composite
from gramian.objectives.matrices import Sparse
from gramian.problem import Problem
from gramian.reductions.base import carried

OMITTED_FRACTION = 5e-10
"""Fraction of the attraction that is omitted: more than the rounding error of RᵀPR − I, so that the
reduced F, and hence its bounds, lie below the original F everywhere."""


@dataclass(frozen=True)
class Attraction:
    """The problem with the trace as its linear term."""

    problem: Problem
    map: GroundedDistances
    given: Problem

    def factor(self, Y: Array) -> Array:
        """The points RY without the origin."""
        return np.ascontiguousarray((self.map.root @ Y)[1:])

    def coordinates(self, L: Array) -> Array:
        """Y with RY = L."""
        return np.ascontiguousarray(self.map.root.coordinates(np.vstack([np.zeros_like(L[:1]), L])))

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound, for the value of F itself."""
        rounding = self.given.objective.rounding(self.given.objective.image(L))
        return carried(found, L).at(self.given.value(L), float(np.sum(L * L)), rounding)


def attraction(problem: Problem) -> Attraction | None:
    """The problem in these coordinates, None unless it has distances and a sparse C ≻ 0."""
    F = problem.objective
    if not isinstance(F, Composite) or problem.domain.bounded or not F.place.is_host:
        return None
    if not isinstance(F.map, PairDistances) or not isinstance(F.C, Sparse) or F.C.lower <= 0:
        return None
    n = problem.order
    shifted = np.column_stack([F.map.rows, F.map.cols]) + 1
    edge = sp.csr_array((1, n))
    pull = (1 - OMITTED_FRACTION) * F.C.matrix
    bordered = sp.block_array([[sp.csr_array((1, 1)), edge], [edge.T, pull]], format="csr")
    map = GroundedDistances(PairDistances(shifted, n + 1), bordered)
    inner = Composite(map, F.loss, 1.0, constant=F.constant)
    return Attraction(Problem(inner, problem.domain, name=problem.name), map, problem)
