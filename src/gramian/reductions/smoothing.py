"""The same objective with a smoother loss."""

from __future__ import annotations

from gramian.objectives import Composite, Objective


def smoothed(objective: Objective, mu: float) -> Composite | None:
    """F with its loss smoothed by μ, None where no μ is part of it."""
    loss = objective.loss.smoothed(mu) if isinstance(objective, Composite) else None
    if loss is None or not isinstance(objective, Composite):
        return None
    return Composite(objective.map, loss, objective.C, constant=objective.constant)
