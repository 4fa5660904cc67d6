"""Separate unfolding of the components of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gramian.bounds import sum_of
from gramian.common import clock
from gramian.reductions.parts import Parts

Array = NDArray[np.floating]

LEAST = 1e-3
"""Smallest time limit of a component in seconds."""


def fit_parts(whole: Any, X: Any, side: Any) -> None:
    """Fit a copy of an estimator to each component of its graph and combine the results."""
    parts = Parts(whole.graph_.labels)
    started, whole.parts_ = clock.now(), []
    for points in parts.members:
        part = _part(whole, points.size, clock.elapsed(started))
        own = whole._space(X).part(X, points)
        whole.parts_.append(part._fit(own, None if side is None else side[points]))
    whole.kernel_factor_ = parts.factor([part.kernel_factor_ for part in whole.parts_])
    whole.certificate_ = sum_of([part.certificate_ for part in whole.parts_])
    gaps = [part.certificate_.relative_gap for part in whole.parts_]
    worst = int(np.argmax([np.inf if gap is None else gap for gap in gaps]))
    whole.result_ = whole.parts_[worst].result_
    whole.nu_ = np.array([part.nu_ for part in whole.parts_])
    whole.n_iter_ = max(part.n_iter_ for part in whole.parts_)
    whole._describe(X)


def transform_parts(whole: Any, X: Any) -> tuple[Array, Array]:
    """Place each new sample in the component of its nearest one; also return the errors."""
    space, labels = whole._space(whole.X_fit_), whole.graph_.labels
    parts = labels[space.near(whole.X_fit_, 1, X).indices[:, 0]]
    rank = whole.kernel_factor_.shape[1]
    placed, error = np.zeros((X.shape[0], rank)), np.zeros(X.shape[0])
    for part in np.unique(parts):
        of = parts == part
        seen = space.of_part(X[of], np.flatnonzero(labels == part))
        placed[of], error[of] = whole.parts_[part]._place(seen, rank)
    return placed, error


def _part(whole: Any, size: int, spent: float) -> Any:
    """A copy for one component, with the remaining time."""
    limit = whole.time_limit
    return clone(whole).set_params(
        n_components=_columns(whole.n_components, size),
        n_neighbors=min(whole.n_neighbors, size - 1),
        connect="error",
        progress=whole.progress != "plot" and bool(whole.progress),
        time_limit=None if limit is None else max(limit - spent, LEAST),
    )


def _columns(asked: Any, size: int) -> Any:
    return asked if isinstance(asked, str) else min(asked, size - 1)
