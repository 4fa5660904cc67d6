"""Features of rows and columns: read by their ids, and standardized."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.samples import real_numbers
from gramian.common.storage import storable
from gramian.completion._ratings import Ids, Ratings, joined
from gramian.completion._reading import refuse_missing

Array = NDArray[np.floating]


@storable
@dataclass(frozen=True)
class Scaling:
    """Standardization of features; constant features become 0."""

    means: Array
    sizes: Array
    """Standard deviations, infinite for constant features."""

    @classmethod
    def of(cls, features: Array) -> Scaling:
        means, sizes = features.mean(axis=0), features.std(axis=0)
        sizes = np.where(sizes > 1e-12 * np.maximum(np.abs(means), 1e-300), sizes, np.inf)
        return cls(means, sizes)

    def __call__(self, features: Array, weight: float) -> Array:
        """Standardized features, the sum of whose squares in a row is `weight` on average."""
        live = max(int(np.isfinite(self.sizes).sum()), 1)
        found: Array = (features - self.means) / self.sizes * np.sqrt(weight / live)
        return found


def read(features: Any, name: str) -> tuple[Ids, Array]:
    """Ids and their features: a frame with ids as its index, (ids, array), or an array."""
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


def with_features(
    ratings: Ratings, side: int, given: Any, weight: float
) -> tuple[Ratings, Scaling]:
    """The ratings with standardized features of their rows (side 0) or columns (side 1).

    Ids with features and no entry become rows or columns. The features of ids without any are 0.
    """
    name = ("row_features", "col_features")[side]
    ids, table = read(given, name)
    own = ratings.ids(side)
    both, old, new = joined(own, ids)
    if len(both) == len(own) + len(ids):
        raise ValueError(
            f"{name} has none of the ids of the ratings, such as {own.names[0]}: "
            f"it has {ids.names[0]}"
        )
    scaling = Scaling.of(table)
    even = np.zeros((len(both), table.shape[1]))
    even[new] = scaling(table, 1.0)
    even *= np.sqrt(weight)
    place, features = old.astype(np.int32), ratings.features
    if side == 0:
        rows = place[ratings.rows]
        return replace(ratings, rows=rows, row_ids=both, features=(even, features[1])), scaling
    cols = place[ratings.cols]
    return replace(ratings, cols=cols, col_ids=both, features=(features[0], even)), scaling
