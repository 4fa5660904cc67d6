"""Distances along a connected graph, in coordinates where its Laplacian is the identity.

The Hessian of a sum over edges is close to the square of their Laplacian P, whose condition number
grows with the number of points; with RᵀPR = I and M = RSRᵀ it is close to the identity. The reduced
F is in `objectives/whitened.py`; a bound of the objective uses the same coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.linalg.tolerances import ZERO
from gramian.maps import PairDistances, Stack
from gramian.objectives import Composite, LowRankPlusIdentity, Objective
from gramian.objectives.matrices import MatrixSum
from gramian.objectives.pencil import Whitening, whitening
from gramian.problem import Problem
from gramian.reductions.base import carried


@dataclass(frozen=True)
class GraphWhitening(Whitening):
    """The problem in whitened coordinates: the first point is at 0."""

    problem: Problem

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound."""
        return carried(found, L)


def graph_whitening(problem: Problem) -> GraphWhitening | None:
    """The whitened problem, None if it does not apply.

    It applies to distances along the edges of a connected graph, over M ⪰ 0, and an objective that
    is invariant to translations of all points.
    """
    white = None if problem.domain.bounded else whitening(problem.objective)
    if white is None:
        return None
    reduced = Problem(white.objective, problem.domain, name=problem.name)
    return GraphWhitening(white.objective, white.factor, white.coordinates, reduced)


def centred_whitening(objective: Objective) -> Whitening | None:
    """Coordinates of the centred factors, for F = g(distances) + ⟨C, M⟩ with C1 = c1, c ≥ 0.

    Distances do not depend on the centre, and c 1ᵀM1/n has its minimum 0 at the origin: with C
    minus c 11ᵀ/n the objective is invariant to translations, as whitened coordinates require.
    """
    if not isinstance(objective, Composite) or not isinstance(objective.map, Stack):
        return None
    maps = objective.map.maps
    if len(maps) != 1 or not isinstance(maps[0], PairDistances):
        return None
    n, C = objective.order, objective.C
    ones = np.full((n, 1), n**-0.5)
    along = C @ ones
    c = float(np.sum(ones * along))
    usual = np.linalg.norm(C @ np.random.default_rng(0).standard_normal((n, 1))) / np.sqrt(n)
    if c < -ZERO * usual or np.linalg.norm(along - c * ones) > ZERO * usual:
        return None
    blind = MatrixSum(C, LowRankPlusIdentity(n, 0.0, ones, np.array([-c])))
    white = whitening(Composite(maps[0], objective.loss, blind, constant=objective.constant))
    if white is None:
        return None

    def factor(Y: Array) -> Array:
        L = white.factor(Y)
        return L - L.mean(axis=0)

    return Whitening(white.objective, factor, white.coordinates)
