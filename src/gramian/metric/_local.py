"""Common parts of local metric learners: the metric of the neighbour search, and the ridge."""

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
"""Ridge of the scatter of similar pairs, relative to its mean eigenvalue: by default, and with more
than half as many directions as samples, where the scatter is poorly determined."""


def neighbor_metric(
    X: Array, classes: Indices, metric: str, *, units: float | None = None, device: Any = None
) -> tuple[Array, float | None]:
    """A factor L of the metric for the neighbour search, KTA's or Euclidean, and KTA's λ in units.

    Euclidean neighbours depend on the features with the largest scale; alignment with the labels,
    which needs one product XᵀX, gives better target neighbours. It uses the samples at unit size,
    so that their scale has no effect. It is computed on the host, except for held-out neighbours,
    which are the same everywhere: targets must not depend on the device. A given λ, in `units`,
    needs no selection.
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
    """Samples for the neighbour search, original or mapped by KTA, and KTA's λ."""
    if metric == "euclidean":
        return samples, None
    factor, units = neighbor_metric(samples, classes, metric, units=units, device=device)
    return samples @ factor, units


def targets_of(triplets: Indices) -> Indices:
    """The pairs (anchor, same) of triplets without duplicates."""
    pairs: Indices = np.unique(triplets[:, :2], axis=0)
    return pairs


def ridge_for(ridge: float | str, samples: Array) -> float:
    """The ridge; "auto" is larger if there are nearly as many directions as samples."""
    if ridge != "auto":
        return float(ridge)
    n, order = samples.shape
    return CROWDED if 2 * order > n else RIDGE
