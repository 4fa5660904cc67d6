"""Theta numbers written with a border, solved in their form with a trace.

The form (`reductions.theta_border`) is of an order less by one, its rows are orthogonal, and every
slack can be lifted by the trace. Its points are made feasible there, and told as those of the
problem that was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramian.constrained.augmented_lagrangian import augmented_lagrangian, crowded
from gramian.constrained.certify import accuracy
from gramian.constrained.dual import Repair
from gramian.constrained.dual_newton import dual_newton
from gramian.constrained.model import DENSE_ORDER, Model
from gramian.constrained.points import Candidate, Guide
from gramian.methods.base import Settings

Array = NDArray[np.floating]

INSIDE = 1e-9
"""The part of t by which the slack is kept above 0, so that it is after rounding too."""


def refusal(model: Model) -> str | None:
    """Why a problem is none of these."""
    if model.bordered is None:
        return "it takes theta numbers with a border: X_00 = 1, X_ii = X_0i, X_ij = 0 on edges"
    return None


def theta_form(
    model: Model, factor: Array, y: Array, settings: Settings, guide: Guide
) -> Iterator[Candidate]:
    """The points of the form with a trace, each led back."""
    form = model.bordered
    assert form is not None
    inner, own = Model.of(form.problem), Guide()
    repair = Repair(inner)
    dense = crowded(inner) and inner.order <= DENSE_ORDER
    # Of a stable set most rows are 0 or not: their lengths are far apart.
    run = dual_newton if dense else partial(augmented_lagrangian, uneven=True)
    V = form.coordinates_of(factor) if factor.shape[1] else np.zeros((inner.order, 0))
    start = form.multipliers_of(y) if np.any(y) else np.zeros(inner.bounds.size)
    for found in run(inner, V, start, settings, own):
        image = inner.objective.image(found.factor)
        wanted = accuracy(inner, image, settings.tol)
        point = repair(image, found.y, wanted=wanted, prove=False)
        own.vector, own.least = repair.vector, repair.least
        bound = found.y.copy() if point is None else point.dual.copy()
        bound[0] *= 1 + INSIDE
        L = form.factor(found.factor)
        yield Candidate(L, form.multipliers(bound), found.trace, sure=found.sure)
