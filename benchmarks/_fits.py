"""Whole fits of data sets, measured by `gpu`, `threads` and `_beside`.

Each function reads its data and returns a fit, called with options of the estimator.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.data import load_arrays, load_set

LIMIT = 150.0
"""Seconds of a fit, at which it stops with what it has."""

Fit = Callable[..., Any]
Given = Callable[[Path | None], Fit]


def _samples(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    data = load_arrays(name, folder)
    return data["X"].astype(float), data["y"]


def metric(learner: str, name: str) -> Given:
    """A metric learner on a labelled set; MNIST for LMNN by its 100 principal components."""

    def given(folder: Path | None) -> Fit:
        from sklearn.decomposition import PCA

        from gramian import metric as learners

        X, y = _samples(name, folder)
        if (learner, name) == ("LMNN", "mnist"):
            X = PCA(100, random_state=0).fit_transform(X / 255.0)
        make = getattr(learners, learner)
        limits = {} if learner == "KTA" else {"random_state": 0, "time_limit": LIMIT}
        return lambda **options: make(**limits, **options).fit(X, y)

    return given


def unfolding(n: int, neighbours: int | None = None) -> Given:
    """MVU of the first n digits of MNIST."""

    def given(folder: Path | None) -> Fit:
        from gramian.manifold import MVU

        X = load_arrays("mnist", folder)["X"][:n].astype(float)
        graph = {} if neighbours is None else {"n_neighbors": neighbours}
        return lambda **options: MVU(**graph, random_state=0, time_limit=LIMIT, **options).fit(X)

    return given


def kernel(name: str) -> Given:
    """NPKL of an adult set, 400 labels known."""

    def given(folder: Path | None) -> Fit:
        from gramian.kernel import NPKL

        data = load_set(name, folder)
        known = np.full(len(data.y), -1)
        shown = np.random.default_rng(0).choice(len(known), 400, replace=False)
        known[shown] = (data.y[shown] > 0).astype(int)
        settings = {"n_clusters": 2, "random_state": 0, "time_limit": LIMIT}
        return lambda **options: NPKL(**settings, **options).fit(data.X, known)

    return given


def completion(name: str) -> Given:
    """All ratings of MovieLens."""

    def given(folder: Path | None) -> Fit:
        from gramian.completion import NuclearCompletion

        data = load_arrays(name, folder)
        ratings = (data["user"], data["item"], data["rating"].astype(float))
        settings = {"random_state": 0, "time_limit": LIMIT}
        return lambda **options: NuclearCompletion(**settings, **options).fit(ratings)

    return given
