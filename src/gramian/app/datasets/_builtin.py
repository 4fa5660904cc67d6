"""Data sets that need no file: generated, or bundled with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled

from gramian.app.datasets._arrays import Arrays
from gramian.common.types import Array

POINTS = 1000
LINKS = 100


def swiss_roll(hole: bool = False) -> Arrays:
    X, t = bundled.make_swiss_roll(POINTS, random_state=0, hole=hole)
    # the length of the spiral (t cos t, t sin t) from 0 to t
    return _sheet(X, (t * np.sqrt(1 + t * t) + np.arcsinh(t)) / 2)


def s_curve() -> Arrays:
    X, angle = bundled.make_s_curve(POINTS, random_state=0)
    return _sheet(X, angle)  # two half circles of radius 1: the angle is the length


def two_moons() -> Arrays:
    X, y = bundled.make_moons(400, noise=0.08, random_state=0)
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.permutation(len(X))[: 2 * LINKS].reshape(-1, 2), axis=1)
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return {"X": X, "y": y, "must_link": pairs[same], "cannot_link": pairs[~same]}


def _from_scikit_learn(name: str) -> Arrays:
    """A data set of scikit-learn, by the name of its loader."""
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    return {"X": X, "y": y}


def synthetic_ratings() -> Arrays:
    """A noisy matrix of rank 3, rounded to stars; few users and items have most of the ratings."""
    users, items, known = 200, 120, 5000
    rng = np.random.default_rng(0)
    taste, trait = rng.standard_normal((users, 3)), rng.standard_normal((items, 3))
    stars = 3.5 + 0.7 * taste @ trait.T + 0.3 * rng.standard_normal((users, items))
    popularity = np.outer((1.0 + np.arange(users)) ** -0.5, (1.0 + np.arange(items)) ** -0.8)
    share = popularity.ravel() / popularity.sum()
    user, item = np.divmod(rng.choice(users * items, known, replace=False, p=share), items)
    return {
        "user": _ids("user", user),
        "item": _ids("item", item),
        "rating": np.clip(np.rint(stars[user, item]), 1, 5),
        "timestamp": np.arange(known),
    }


def _sheet(X: Array, length: Array) -> Arrays:
    """Samples of a rolled sheet in four classes along it, with their coordinates on the sheet."""
    quarter = np.digitize(length, np.quantile(length, [0.25, 0.5, 0.75]))
    return {"X": X, "y": quarter, "parameters": np.column_stack([length, X[:, 1]])}


def _ids(kind: str, numbers: NDArray[np.integer]) -> NDArray[Any]:
    return np.array([f"{kind}-{number:03d}" for number in numbers])


BUILT_IN: dict[str, Callable[[], Arrays]] = {
    "swiss_roll": swiss_roll,
    "swiss_roll_hole": partial(swiss_roll, hole=True),
    "s_curve": s_curve,
    "two_moons": two_moons,
    "synthetic_ratings": synthetic_ratings,
    **{
        name: partial(_from_scikit_learn, name)
        for name in ("digits", "iris", "wine", "breast_cancer")
    },
}
