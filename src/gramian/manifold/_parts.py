"""Each part of a graph unfolded by itself."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gramian.certificate import Certificate, relative
from gramian.neighbours import nearest

Array = NDArray[np.floating]

LEAST = 1e-3
"""Seconds that a part has where the others took all."""


def fit_parts(whole: Any, X: Any, side: Any) -> None:
    """Fit a copy of an estimator to each part of its graph and gather what they found."""
    labels = whole.graph_.labels
    members = [np.flatnonzero(labels == part) for part in range(whole.graph_.n_parts)]
    started, whole.parts_ = time.perf_counter(), []
    for points in members:
        part = _part(whole, points.size, time.perf_counter() - started)
        whole.parts_.append(part._fit(X[points], None if side is None else side[points]))
    ranks = [part.kernel_factor_.shape[1] for part in whole.parts_]
    whole.kernel_factor_ = np.zeros((X.shape[0], max(ranks)))
    for points, part in zip(members, whole.parts_, strict=True):
        whole.kernel_factor_[points] = widened(part.kernel_factor_, max(ranks))
    whole.certificate_ = together([part.certificate_ for part in whole.parts_])
    gaps = [part.certificate_.relative_gap for part in whole.parts_]
    worst = int(np.argmax([np.inf if gap is None else gap for gap in gaps]))
    whole.result_ = whole.parts_[worst].result_
    whole.nu_ = np.array([part.nu_ for part in whole.parts_])
    whole.n_iter_ = max(part.n_iter_ for part in whole.parts_)
    whole._describe(X)


def transform_parts(whole: Any, X: Any) -> tuple[Array, Array]:
    """Place each new sample in the part of its nearest one, and say how far off it is."""
    parts = whole.graph_.labels[nearest(whole.X_fit_, 1, queries=X).indices[:, 0]]
    rank = whole.kernel_factor_.shape[1]
    placed, error = np.zeros((X.shape[0], rank)), np.zeros(X.shape[0])
    for part in np.unique(parts):
        of = parts == part
        placed[of], error[of] = whole.parts_[part]._place(X[of], rank)
    return placed, error


def widened(factor: Array, columns: int) -> Array:
    """The leading columns, with zeros where there are fewer."""
    missing = max(0, columns - factor.shape[1])
    return np.ascontiguousarray(np.pad(factor[:, :columns], ((0, 0), (0, missing))))


def together(certificates: list[Certificate]) -> Certificate:
    """What is proved about the sum of problems that share nothing."""
    value = sum(c.value for c in certificates)
    complementarity = sum(c.complementarity for c in certificates)
    trace = sum(c.trace for c in certificates)
    lowest = min(c.lambda_min for c in certificates)
    scale = sum(c.scale for c in certificates)
    gaps = [c.gap for c in certificates if c.gap is not None]
    violation = max(c.violation for c in certificates)
    if len(gaps) < len(certificates):
        known = (value, lowest, complementarity)
        return Certificate(*known, None, None, "none", trace, scale=scale, violation=violation)
    gap = sum(gaps)
    worst = max(certificates, key=lambda c: c.miss)
    miss = min(1.0, sum(c.miss for c in certificates))
    return Certificate(
        value,
        lowest,
        complementarity,
        gap,
        relative(gap, value, scale),
        "sum over the parts",
        trace,
        worst.proof,
        miss,
        scale,
        violation,
    )


def _part(whole: Any, size: int, spent: float) -> Any:
    """A copy for one part, with what is left of the time."""
    limit = whole.time_limit
    return clone(whole).set_params(
        n_components=_columns(whole.n_components, size),
        n_neighbors=min(whole.n_neighbors, size - 1),
        connect="error",
        time_limit=None if limit is None else max(limit - spent, LEAST),
    )


def _columns(asked: Any, size: int) -> Any:
    return asked if isinstance(asked, str) else min(asked, size - 1)
