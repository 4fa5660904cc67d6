"""Independent problems that are solved separately: the components of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gramian.arrays.places import inner
from gramian.bounds import sum_of
from gramian.certificate import Certificate
from gramian.common.types import Array, Indices


@dataclass(frozen=True)
class Components:
    """Block-diagonal M, one block per component; the factors are stacked."""

    labels: Indices
    """The component of each point, numbered from 0."""

    @cached_property
    def members(self) -> list[Indices]:
        """The points of each component."""
        return [np.flatnonzero(self.labels == part) for part in range(int(self.labels.max()) + 1)]

    def factor(self, Y: Sequence[Array]) -> Array:
        """The rows of all components, padded to the largest number of columns."""
        columns = max(part.shape[1] for part in Y)
        L = np.zeros((self.labels.size, columns))
        for points, part in zip(self.members, Y, strict=True):
            L[points] = widened(part, columns)
        return L

    def coordinates(self, L: Array) -> list[Array]:
        """The rows of each component."""
        return [L[points] for points in self.members]

    def certificate(self, found: Sequence[Certificate], L: Array) -> Certificate:
        """The certificate of the sum."""
        return replace(sum_of(found), trace=inner(L, L))


def widened(factor: Array, columns: int) -> Array:
    """The leading columns, padded with zeros."""
    missing = max(0, columns - factor.shape[1])
    return np.ascontiguousarray(np.pad(factor[:, :columns], ((0, 0), (0, missing))))
