"""The same objective in single precision, or with a smoother loss."""

from __future__ import annotations

from gramian.arrays.places import altered, in_single
from gramian.maps import BlockEntries, Congruence, Entries, Mix, PairDistances
from gramian.objectives import Composite, Objective
from gramian.objectives.base import once


@once
def single_precision(objective: Objective) -> Objective | None:
    """F with X and C in float32, for descent steps; None if that is not cheaper.

    The image of the map is still summed in float64.
    """
    if not isinstance(objective, Composite):
        return None
    base = objective.map.base if isinstance(objective.map, Congruence) else objective.map
    base = base.base if isinstance(base, Mix) else base
    if not isinstance(base, Entries | PairDistances | BlockEntries):
        return None
    return altered(objective, map=in_single(objective.map), C=in_single(objective.C))


def smoothed(objective: Objective, mu: float) -> Composite | None:
    """F with its loss smoothed by μ, None if the loss has no such parameter."""
    if not isinstance(objective, Composite):
        return None
    loss, C = objective.loss.smoothed(mu), objective.C
    return None if loss is None else Composite(objective.map, loss, C, constant=objective.constant)
