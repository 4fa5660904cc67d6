"""A matrix of m + n rows whose blocks stay on the workers: those of users, and those of items.

Blocks are results of tasks. What is made of them is made by tasks again, one for each block, and
only sums come to the driver. A worker that is lost takes blocks with it, and the scheduler makes
them again from what they were made of; so that this never reaches far back, a matrix is planted
anew every few sweeps (`replanted`), by way of the driver or of files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._cluster import Cluster

if TYPE_CHECKING:
    from gramian.dask._ratings import Rated

Array = NDArray[np.floating]

SWEEPS = 8
"""Sweeps after which a state is planted anew: so many are made again at most, and as many as are
mixed."""


@dataclass
class Spread:
    """The blocks of a matrix, and what they have to be made again from."""

    rated: Rated
    upper: list[Any]
    lower: list[Any]
    columns: int
    roots: frozenset[Any] = field(default_factory=frozenset)
    """What keeps the files that its blocks come from; they go when nothing is made of them."""
    age: int = 0
    """Sweeps since it was planted."""

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rated.shape), self.columns

    @property
    def cluster(self) -> Cluster:
        return self.rated.cluster

    @property
    def blocks(self) -> list[Any]:
        return [*self.upper, *self.lower]

    def copy(self) -> Spread:
        """Another that changes without this one; blocks never change."""
        return replace(self, upper=list(self.upper), lower=list(self.lower))

    def below(self) -> Spread:
        """The rows of items alone."""
        return replace(self, upper=[], lower=list(self.lower))

    def mapped(self, name: str, function: Callable[..., Any], *columns: Any) -> Spread:
        """A task for each block, users above items; a list has one for each."""
        made = self.cluster.keep(self.cluster.each(name, function, self.blocks, *columns))
        count = len(self.upper)
        return replace(self, upper=made[:count], lower=made[count:])

    def sum(self, name: str, function: Callable[..., Any], *columns: Any) -> Any:
        """What a task for each block gives, added in their order."""
        return self.cluster.sum(name, function, self.blocks, *columns)

    def pieces(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """The part of each block of something with m + n rows on the driver."""
        m = self.rated.shape[0]
        return [*self.rated.users.pieces(rows[:m]), *self.rated.items.pieces(rows[m:])]

    def gathered(self) -> Array:
        """All of it on the driver."""
        return np.concatenate(self.cluster.gather(self.blocks))

    def square(self) -> float:
        """The sum of the squares of all entries."""
        return float(self.sum("norm", _square))


def spread(rated: Rated, rows: Array) -> Spread:
    """A matrix of the driver in blocks on the workers."""
    m = rated.shape[0]
    nodes = [
        rated.taken(part, side, "factor")
        for part, side in ((rows[:m], rated.users), (rows[m:], rated.items))
    ]
    upper, lower = (rated.cluster.keep(part) for part in nodes)
    return Spread(rated, upper, lower, rows.shape[1])


def roots_of(matrices: Sequence[Spread]) -> frozenset[Any]:
    """What all of them come from."""
    return frozenset().union(*(one.roots for one in matrices))


def home_of(rated: Rated) -> Any:
    """Where states of these ratings are planted anew from."""
    return Driver() if rated.home is None else rated.home


class Driver:
    """The driver holds what a state can be planted from: `factors=None`."""

    def replanted(self, state: Spread) -> Spread:
        """The same state, which needs nothing of what it was made of."""
        return spread(state.rated, state.gathered())

    def stored(self, state: Spread) -> Any:
        """What a checkpoint keeps of a state."""
        return state.gathered()

    def restored(self, rated: Rated, stored: Any) -> Spread:
        return spread(rated, np.array(stored))


def _square(rows: Array) -> float:
    return float(np.sum(np.square(rows), dtype=float))
