"""Sums over all ratings that λ, starts and held-out errors are measured by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._ratings import Block
from gramian.dask._rounds import Factor, Rounds
from gramian.dask._scene import Model, entries, scene_of

Array = NDArray[np.floating]


def sizes(rounds: Rounds) -> tuple[float, float]:
    """The mean squares of the targets and of the scales of entries."""
    count, _, targets, scales = rounds.sum_plain("sizes", _sizes)
    return float(targets / count), float(scales / count)


def scores(rounds: Rounds) -> Array:
    """How many ratings count, and the sum of what is fitted of them."""
    found: Array = rounds.sum_plain("sizes", _scores)
    return found


def spread(rounds: Rounds, counts: NDArray[np.integer], ridge: float) -> float:
    """The squares of ratings beside shrunken means of items, then, with offsets, of users."""
    if rounds.model.ridge is None:
        return float(sizes(rounds)[0] * np.sum(counts))
    count, total, *_ = rounds.sum_plain("sizes", _sizes)
    mean = float(total / count)
    means = mean + rounds.sum_plain("sizes", _item_sums, mean) / (counts + ridge)
    rest = float(rounds.sum_plain("sizes", _beside_items, means)) / count
    return float(rounds.sum_plain("sizes", _beside_both, means + rest, ridge))


def errors(rounds: Rounds, state: Factor, bounds: Any) -> Array:
    """How many ratings are held out, and what a state [P b; Q c] is off by for them in all:
    squares, or levels.
    """
    found: Array = rounds.sum("held-out", _errors, state, state, bounds, blocks=rounds.rated.tests)
    return found


# --- what tasks do -----------------------------------------------------------------------


def _sizes(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = scene_of(block, model, ends, reached, top, low)
    t, s = scene.targets, scene.scale
    return np.array([t.size, t.sum(), t @ t, s @ s])


def _scores(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = scene_of(block, model, ends, reached, top, low)
    omega = np.broadcast_to(np.asarray(scene.omega, dtype=float), scene.rows.shape)
    return np.array([omega.sum(), omega @ model.scores(scene.block.values)])


def _item_sums(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    mean: float,
) -> Array:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    count = sum(b - a for a, b in scene.reached)
    return scene.whole(np.bincount(scene.block.neighbour, scene.targets - mean, minlength=count))


def _beside_items(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    means: Array,
) -> float:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    return float(np.sum(scene.targets - scene.own(means)[scene.block.neighbour]))


def _beside_both(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    means: Array, ridge: float,
) -> float:  # fmt: skip
    scene = scene_of(block, model, ends, reached, top, low)
    left = scene.targets - scene.own(means)[scene.block.neighbour]
    sums = np.bincount(scene.rows, left, minlength=scene.block.rows)
    left -= (sums / (np.diff(scene.block.starts) + ridge))[scene.rows]
    return float(left @ left)


def _errors(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    bounds: Any,
) -> Array:  # fmt: skip
    """Of the ratings held out: how many, and Σ (prediction − rating)², for a state [P b; Q c]."""
    test, whole = block.test(), replace(model, train=False)
    scene = scene_of(test, whole, ends, reached, np.asarray(top, dtype=float), low)
    low_rows = scene.low.astype(float)
    found = model.mean + entries(scene, scene.top[:, :-1], low_rows[:, :-1])
    found += scene.top[scene.rows, -1] + low_rows[test.neighbour, -1]
    if model.levels is not None:  # levels that a prediction is off by
        K = model.levels.size
        steps = np.searchsorted(2.0 * np.arange(1, K) - K, found)
        return np.array(
            [found.size, np.sum(np.abs(steps - np.searchsorted(model.levels, test.values)))]
        )
    off = (found if bounds is None else np.clip(found, *bounds)) - test.values
    return np.array([off.size, off @ off])
