"""Distances along a connected graph, in coordinates where its Laplacian is the identity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.maps import PairDistances, Stack
from gramian.objectives import Composite, LowRankPlusIdentity, Objective
from gramian.objectives.base import Whitening
from gramian.objectives.matrices import MatrixSum

Array = NDArray[np.floating]

ALIKE = 1e-10
"""How far C1 may be from a multiple of 1, relative to C."""


def centred_whitening(objective: Objective) -> Whitening | None:
    """Coordinates of the centred factors, for F = g(distances) + ⟨C, M⟩ with C1 = c1, c ≥ 0.

    Distances do not see the centre, and c 1ᵀM1/n is least, 0, where it is the origin: with C less
    c 11ᵀ/n the objective is blind to shifts, as whitened coordinates need it.
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
    if c < -ALIKE * usual or np.linalg.norm(along - c * ones) > ALIKE * usual:
        return None
    blind = MatrixSum(C, LowRankPlusIdentity(n, 0.0, ones, np.array([-c])))
    white = Composite(maps[0], objective.loss, blind, constant=objective.constant).whitened()
    if white is None:
        return None

    def factor(Y: Array) -> Array:
        L = white.factor(Y)
        centred: Array = L - L.mean(axis=0)
        return centred

    return Whitening(white.objective, factor, white.coordinates)
