"""What the learners of local metrics share: where neighbours are sought, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.common.parameters import NOT_NEGATIVE, one_of, or_auto
from gramian.metric.kta import KTA

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

LOCAL_RULES = {
    "neighbor_metric": one_of("kta", "euclidean"),
    "ridge": or_auto(NOT_NEGATIVE),
}

RIDGE, CROWDED = 1e-3, 1.0
"""What is added to the scatter of similar pairs, in units of its mean eigenvalue: by default, and
with more than half as many directions as samples, where that scatter says little of most."""


def neighbor_metric(
    X: Array, classes: Indices, metric: str, *, units: float | None = None, device: Any = None
) -> tuple[Array, float | None]:
    """A factor L of the metric to seek neighbours in, KTA's or Euclid's, and KTA's λ in its units.

    Neighbours by Euclid's distance follow whatever features are largest; alignment with the
    labels, which costs one product XᵀX, makes better targets of them. It takes the samples at
    unit size, so that their scale changes nothing. It is found on the host, but for held-out
    neighbours, which are the same anywhere: targets must not depend on the device. A λ that is
    told, in `units`, needs no choice.
    """
    size = float(np.sqrt(np.mean(X * X)))
    if metric == "euclidean" or size == 0:
        return np.eye(X.shape[1]), None
    learner = KTA(tol=1e-2)._fit(X / size, classes, units=units, votes_on=device)
    return learner.components_.T / size, learner.lam_ / learner._unit


def neighbor_space(
    samples: Array,
    classes: Indices,
    metric: str,
    *,
    units: float | None = None,
    device: Any = None,
) -> tuple[Array, float | None]:
    """Where to seek neighbours, the samples themselves or as KTA maps them, and KTA's λ."""
    if metric == "euclidean":
        return samples, None
    factor, units = neighbor_metric(samples, classes, metric, units=units, device=device)
    return samples @ factor, units


def targets_of(triplets: Indices) -> Indices:
    """The pairs (anchor, same) of triplets, each once."""
    pairs: Indices = np.unique(triplets[:, :2], axis=0)
    return pairs


def ridge_for(ridge: float | str, samples: Array) -> float:
    """The ridge; "auto" is larger where directions are nearly as many as samples."""
    if ridge != "auto":
        return float(ridge)
    n, order = samples.shape
    return CROWDED if 2 * order > n else RIDGE
