"""Features of rows and columns: read by their ids, and made even."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian._samples import real_numbers
from gramian.completion._checks import refuse_missing
from gramian.completion._ratings import Ids, Ratings, joined
from gramian.storage import storable

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


@storable
@dataclass(frozen=True)
class Scaling:
    """Features less their means, over their deviations; one that does not vary is left out."""

    means: Array
    sizes: Array
    """Deviations, infinite for what does not vary."""

    @classmethod
    def of(cls, features: Array) -> Scaling:
        means, sizes = features.mean(axis=0), features.std(axis=0)
        sizes = np.where(sizes > 1e-12 * np.maximum(np.abs(means), 1e-300), sizes, np.inf)
        return cls(means, sizes)

    def __call__(self, features: Array, weight: float) -> Array:
        """Even features whose squares have the mean `weight` in a row."""
        live = max(int(np.isfinite(self.sizes).sum()), 1)
        found: Array = (features - self.means) / self.sizes * np.sqrt(weight / live)
        return found


def read(features: Any, name: str) -> tuple[Ids, Array]:
    """Whose features they are, and what: a frame by its index, (ids, array), or an array alone."""
    if isinstance(features, tuple) and len(features) == 2:
        names, table = np.asarray(features[0]), features[1]
    elif hasattr(features, "iloc"):
        names, table = np.asarray(features.index), features.to_numpy()
    else:
        table = features
        names = np.arange(len(table))
    numbers = real_numbers(table, name)
    if numbers.ndim != 2 or 0 in numbers.shape:
        raise ValueError(f"{name} must be a table of rows and features, got shape {numbers.shape}")
    if names.shape != (len(numbers),):
        raise ValueError(f"{name} has {len(numbers)} rows, but {names.size} ids")
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} has gaps or infinite numbers: fill them, with means say")
    refuse_missing(names, name)
    ids, place = Ids.of(names)
    if len(ids) < names.size:
        raise ValueError(f"{name} tells the features of an id twice: keep one of them")
    return ids, numbers[np.argsort(place)]


def with_features(ratings: Ratings, side: int, features: Any) -> tuple[Ratings, Array, Scaling]:
    """The ratings with a row (side 0) or column (side 1) for all that have features.

    Beside them their even features, 0 for what has none, and how they were made even.
    """
    name = ("row_features", "col_features")[side]
    ids, table = read(features, name)
    own = (ratings.row_ids, ratings.col_ids)[side]
    both, old, new = joined(own, ids)
    if len(both) == len(own) + len(ids):
        raise ValueError(
            f"{name} has none of the ids of the ratings, such as {own.names[0]}: "
            f"it has {ids.names[0]}"
        )
    scaling = Scaling.of(table)
    even = np.zeros((len(both), table.shape[1]))
    even[new] = scaling(table, 1.0)
    if side == 0:
        return replace(ratings, rows=_places(old, ratings.rows), row_ids=both), even, scaling
    return replace(ratings, cols=_places(old, ratings.cols), col_ids=both), even, scaling


def _places(old: Indices, index: Indices) -> Indices:
    """Places among all, which are in the same order."""
    found: Indices = old.astype(np.int32)[index]
    return found
