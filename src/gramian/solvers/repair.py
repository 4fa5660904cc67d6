"""A dual vector repaired: the smallest change that makes it feasible where it is worst.

One scalar that scales or shifts the whole of w pays for its worst eigenvector everywhere. Instead,
with V the lowest eigenvectors of 𝒜*(w) + C, the small convex problem

    min over S ⪰ 0 of F(M + V S Vᵀ)

has a solution at which Vᵀ(𝒜*(w') + C)V ⪰ 0 for its own w' = ∇g (a spectral bundle); the scalar
then pays for what is left beside V.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import contiguous, size
from gramian.eigen import ritz_pairs
from gramian.objectives import Objective
from gramian.search.cone_quadratic import cone_quadratic

Array = NDArray[np.floating]

COLUMNS, STEPS = 16, 100
"""Eigenvectors of the repair, and the products that look for them. MovieLens 100K, gap before and
after at six points of a run: 865 → 434, 210 → 205, 108 → 62, 56 → 9, 19 → 7, 18 → 1.4."""

ROOM = 60_000_000
"""Numbers that the columns of the map may hold."""

DEVICE_COPIES = 48
"""Bytes that the repair needs on a device for each of those numbers: six copies."""


def repaired(objective: Objective, image: Any, rng: np.random.Generator) -> Any:
    """The image of M + V S Vᵀ, whose dual vector is repaired; None where there is no such."""
    w = objective.dual(image)
    place = objective.place
    room = ROOM if place.is_host else place.free_memory() / DEVICE_COPIES
    if w is None or size(w) * COLUMNS * (COLUMNS + 1) // 2 > room:
        return None
    operator = objective.dual_operator(w)
    count = min(COLUMNS, operator.order)
    V = ritz_pairs(-operator, count, steps=STEPS, random_state=rng).vectors
    model = objective.beside(image, contiguous(V))
    if model is None or not np.any(np.diag(model.hessian) > 0):
        return None
    best = cone_quadratic(model.hessian, model.gradient, np.zeros(model.gradient.size), None)
    return model.image(best.S)
