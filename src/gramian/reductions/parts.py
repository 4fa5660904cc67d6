"""Problems that share nothing, each solved by itself: the parts of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import inner
from gramian.bounds import sum_of
from gramian.certificate import Certificate

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


@dataclass(frozen=True)
class Parts:
    """M of blocks, one for each part; their factors lie one below the other."""

    labels: Indices
    """The part of each point, numbered from 0."""

    @cached_property
    def members(self) -> list[Indices]:
        """The points of each part."""
        return [np.flatnonzero(self.labels == part) for part in range(int(self.labels.max()) + 1)]

    def factor(self, Y: Sequence[Array]) -> Array:
        """The rows of all parts, in as many columns as the widest has."""
        columns = max(part.shape[1] for part in Y)
        L = np.zeros((self.labels.size, columns))
        for points, part in zip(self.members, Y, strict=True):
            L[points] = widened(part, columns)
        return L

    def coordinates(self, L: Array) -> list[Array]:
        """The rows of each part."""
        return [L[points] for points in self.members]

    def certificate(self, found: Sequence[Certificate], L: Array) -> Certificate:
        """What is proved about the sum."""
        return replace(sum_of(found), trace=inner(L, L))


def widened(factor: Array, columns: int) -> Array:
    """The leading columns, with zeros where there are fewer."""
    missing = max(0, columns - factor.shape[1])
    return np.ascontiguousarray(np.pad(factor[:, :columns], ((0, 0), (0, missing))))
