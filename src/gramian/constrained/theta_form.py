"""Theta numbers with a border, solved in their form with a trace.

The form (`reductions.theta_border`) has an order smaller by one and orthogonal rows, and every
slack can be shifted by the trace. Its points are made feasible there and converted to points of the
given problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gramian.common.types import Array
from gramian.constrained.augmented_lagrangian import augmented_lagrangian, crowded
from gramian.constrained.certify import accuracy
from gramian.constrained.dual import Repair
from gramian.constrained.dual_newton import dual_newton
from gramian.constrained.model import DENSE_ORDER, Model
from gramian.constrained.points import Candidate, Guide
from gramian.linalg.tolerances import ZERO
from gramian.methods.base import Settings


def refusal(model: Model) -> str | None:
    """The reason why the method does not accept a problem; None if it accepts it."""
    if model.bordered is None:
        return "it needs theta numbers with a border: X_00 = 1, X_ii = X_0i, X_ij = 0 on edges"
    return None


def theta_form(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """The points of the form with a trace, each converted back."""
    form = model.bordered
    assert form is not None
    inner, own = Model.of(form.problem), Guide()
    repair = Repair(inner)
    dense = crowded(inner) and inner.order <= DENSE_ORDER
    # For stable sets, rows are either nearly 0 or not: their lengths differ strongly.
    run = dual_newton if dense else partial(augmented_lagrangian, uneven=True)
    V = form.coordinates_of(factor) if factor.shape[1] else np.zeros((inner.order, 0))
    start = form.multipliers_of(y) if np.any(y) else np.zeros(inner.bounds.size)
    for found in run(inner, V, start, settings, own):
        image = inner.objective.image(found.factor)
        wanted = accuracy(inner, image, settings.tol)
        point = repair(image, found.y, wanted=wanted, prove=False)
        own.vector, own.least = repair.vector, repair.least
        bound = found.y.copy() if point is None else point.dual.copy()
        bound[0] *= 1 + ZERO  # covers the rounding of the slack
        L = form.factor(found.factor)
        yield Candidate(L, form.multipliers(bound), found.trace, sure=found.sure)
