"""Squares of distances written as squares of quadratic forms uᵀMu, with the data of their dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.common.types import Array
from gramian.losses.base import least_squares_of
from gramian.maps import WhitenedDistances
from gramian.objectives import Composite, Objective
from gramian.objectives.matrices import Rooted


@dataclass(frozen=True)
class SquaredForms:
    """F(M) = ½ Σ_e (u_eᵀMu_e − t_e)²/b_e + ⟨C, M⟩ up to a constant, with the data of its dual.

    −g*(w) = −½ Σ b_e w_e² − Σ t_e w_e bounds F if S(w) = C + Σ_e w_e u_eu_eᵀ ⪰ 0.
    """

    U: Any
    """u_e as rows, sparse or dense."""
    softness: Array
    """b."""
    targets: Array
    """t."""
    C: Array
    unit: Array
    """Weights with Σ_e unit_e u_eu_eᵀ ≻ 0."""


def squared_forms(objective: Objective) -> SquaredForms | None:
    """A sum of squares of distances in whitened coordinates, on the host; None for other F.

    M excludes the first point.
    """
    if not isinstance(objective, Composite) or not objective.place.is_host:
        return None
    squares, map, linear = least_squares_of(objective.loss), objective.map, objective.C
    if squares is None or squares.ridge is not None:
        return None
    if not isinstance(map, WhitenedDistances) or not isinstance(linear, Rooted):
        return None
    scale = np.broadcast_to(squares.scale, map.kept.shape)
    C = linear.matrix.dense()[1:, 1:]
    return SquaredForms(
        map.form_vectors(), scale**-2.0, squares.targets / scale, 0.5 * (C + C.T), map.kept
    )
