"""Cheap approximate inverses of the Hessian on the factor, if known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import as_double, at_home, namespace
from gramian.losses.base import Separable
from gramian.maps import Entries
from gramian.objectives.base import Objective, once
from gramian.objectives.composite import Composite
from gramian.objectives.matrix_sizes import diagonal_of
from gramian.objectives.pencil import pencil_root

Array = NDArray[np.floating]

LEAST_DIAGONAL = 0.8
"""Fraction of the mean of |∇F_ii| to which the preconditioner raises the diagonal of ∇F."""


def row_preconditioner(objective: Objective, image: Any) -> Callable[[Array], Array] | None:
    """The inverse of the diagonal blocks of the Hessian, one per row of the factor; for entries.

    A block is 2 G_ii I plus the curvature of the loss (`Entries.row_systems`), G = ∇F, with a
    diagonal that is raised if it is close to 0 or negative.
    """
    if not (isinstance(objective, Composite) and isinstance(objective.map, Entries)):
        return None
    own = _linear_diagonal(objective)
    if own is None or not isinstance(objective.loss, Separable):
        return None
    xp = namespace(image.z)
    diagonal = own + objective.map.adjoint_diagonal(objective.loss.gradient(image.z))
    least = LEAST_DIAGONAL * float(xp.mean(xp.abs(diagonal))) or 1.0
    bend = objective.loss.hessian(image.z)(xp.ones_like(image.z))
    raised = xp.where(diagonal > least, diagonal, least)
    return objective.map.row_systems(bend, 2.0 * raised, image.factor)


@once
def _linear_diagonal(objective: Composite) -> Array | None:
    """The diagonal of C, None if it is not available cheaply."""
    found = diagonal_of(at_home(objective.C))
    return None if found is None else as_double(objective.place.put(found))


def hessian_metric(objective: Objective) -> Array | None:
    """A definite P with ∇²F(M) close to P ⊗ P up to scale, None if none is known or it is large.

    𝒜*(1), a Laplacian for distances: ∇²F is a sum of (a_e a_eᵀ) ⊗ (a_e a_eᵀ) there.
    """
    root = pencil_root(objective) if isinstance(objective, Composite) else None
    if root is None or root.null.shape[1]:
        return None
    assert isinstance(objective, Composite)
    return objective.map.adjoint_matrix(objective.place.put(np.ones(objective.map.size)))
