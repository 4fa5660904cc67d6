"""Rounds of tasks over the blocks of users, each with the rows of the factors that it needs.

Factors are arrays of the driver, or lie on the workers (`Spread`).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._ratings import Rated
from gramian.dask._scene import Model, in_scene
from gramian.dask._spread import Spread

Array = NDArray[np.floating]
Factor = Array | Spread


class Rounds:
    """The ratings, the model that tasks need beside them, and what is asked of all blocks."""

    def __init__(self, rated: Rated, model: Model) -> None:
        self.rated, self.model, self.cluster = rated, model, rated.cluster

    @property
    def order(self) -> int:
        return sum(self.rated.shape)

    @cached_property
    def model_there(self) -> Any:
        """The model on the workers: made again from the graph where it is lost."""
        return self.cluster.keep([self.cluster.shared("model", self.model)])[0]

    def tasks(self, name: str, function: Any, X: Factor, Y: Factor, *more: Any) -> list[Any]:
        """A task for each block of users with its rows of X and Y, and of the items it reaches."""
        tops, lows = self.pieces(X), self._reaching(X)
        others = (None, None) if Y is X else (self.pieces(Y), self._reaching(Y))
        users = self.rated.users
        return self.cluster.each(
            name, in_scene, function, users.blocks, self.model_there, users.ends(),
            users.ranges(self.rated.items), tops, lows, *others, *more,
        )  # fmt: skip

    def sum(self, name: str, function: Any, X: Factor, Y: Factor, *more: Any) -> Any:
        """What the tasks come to together."""
        nodes = self.tasks(name, function, X, Y, *more)
        return self.cluster.gather([self.cluster.tree(name, nodes)])[0]

    def sum_plain(self, name: str, function: Any, *more: Any, size: float = 0.0) -> Any:
        """The same of tasks that need no factor."""
        nothing = np.zeros((self.order, 0))
        nodes = self.tasks(name, function, nothing, nothing, *more)
        return self.cluster.gather([self.cluster.tree(name, nodes, each=size)])[0]

    def pieces(self, X: Factor) -> list[Any]:
        """The rows of X of each block of users."""
        if isinstance(X, Spread):
            return X.upper
        return self.rated.users.pieces(X[: self.rated.shape[0]])

    def _reaching(self, X: Factor) -> list[Any]:
        if isinstance(X, Spread):
            nodes = X.lower
        else:
            nodes = self.rated.taken(X[self.rated.shape[0] :], self.rated.items, "factor")
        return [[nodes[b] for b in some] for some in self.rated.users.reached]
