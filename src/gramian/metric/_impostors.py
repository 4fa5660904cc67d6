"""All triplets that a metric violates, computed in blocks on any device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import backend, largest, namespace, place_of, precision, row_squares
from gramian.arrays.threads import blas_threads_for, in_parts
from gramian.common import clock

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ROWS, COLUMNS = 1024, 2048
"""Block size of distances on the host, anchors × others: 8 MB."""

PAIRS = 2**20
"""Number of known pairs evaluated at a time."""

BLOCK = 2**27
"""Number of distances per block on a device: 1 GB."""


@dataclass(frozen=True)
class Found:
    """The violated triplets of some anchors."""

    keys: Any
    """(i n + l) k + t of (i, near[i, t], l), only the largest violations if there are too many."""
    push: float
    """Σ max(0, 1 + d(i, j) − d(i, l))² over all of them."""
    count: int
    pairs: Any = None
    """i n + l of all pairs within reach, if they are stored."""


@dataclass(frozen=True)
class Impostors:
    """Triplets (i, j, l) with 1 + d(i, j) − d(i, l) > 0: anchor i, its target neighbour j, and l of
    another class; d is the squared distance of rows of Z.

    Candidates come from one product, on the host in float32 with a bound on its rounding error, and
    are recomputed in full precision. With a `margin` above 1 the keys include triplets that are
    nearly violated.
    """

    Z: Any
    classes: Indices
    near: Any
    anchors: Indices
    margin: float = 1.0
    most: float = np.inf
    """Largest mean number of keys per anchor of a block."""
    hold: float = 0.0
    """Distance beyond the margin up to which pairs are stored."""

    def blocks(self) -> list[Found]:
        """The triplets, block by block of anchors."""
        tasks = [(group, start) for group in self._groups for start in range(0, *group.steps)]
        found: list[Any] = [None] * len(tasks)

        def take(first: int, last: int) -> None:
            for place in range(first, last):
                clock.check()
                found[place] = self._of(*tasks[place])

        if not place_of(self.Z).is_host:
            take(0, len(tasks))
            return found
        with blas_threads_for(0):
            in_parts(take, len(tasks), self.anchors.size * self.Z.shape[0])
        return found

    @cached_property
    def _close(self) -> Any:
        """d(i, j) of the anchors and their targets."""
        Z, k = self.Z, self.near.shape[1]
        there = place_of(Z)
        i = there.put(np.repeat(self.anchors, k).astype(np.int32))
        j = namespace(Z).reshape(self.near[there.put(self.anchors), :], (-1,))
        found = backend(Z).gather_distances(Z, Z, i, namespace(Z).astype(j, i.dtype))
        return namespace(Z).reshape(found, (-1, k))

    @cached_property
    def reach(self) -> Any:
        """The distance of each anchor within which pairs are considered."""
        return self.margin + self.hold + namespace(self.Z).max(self._close, axis=1)

    @cached_property
    def _groups(self) -> list[_Group]:
        own = self.classes[self.anchors]
        return [
            _Group.of(self, np.flatnonzero(own == c), np.flatnonzero(self.classes != c), self.reach)
            for c in np.unique(own)
        ]

    def _of(self, group: _Group, start: int) -> Found:
        """The triplets of some anchors of one class."""
        row, column = group.candidates(start)
        place = group.mine[row + start]
        most = self.most * min(group.steps[1], int(group.mine.shape[0]) - start)
        return self._count(place, group.anchors[row + start], group.rest[column], most)

    def counted(self, pairs: Indices) -> list[Found]:
        """The triplets of known pairs i n + l, if all samples are anchors."""
        parts = np.split(pairs, np.arange(PAIRS, pairs.size, PAIRS)) if pairs.size else []
        found = []
        for part in parts:
            clock.check()
            i, l = np.divmod(part, self.Z.shape[0])
            found.append(self._count(i, i, l, np.inf))
        return found

    def _count(self, place: Any, i: Any, l: Any, most: float) -> Found:
        """The triplets of pairs of anchors, with known `place`, and others."""
        Z, (n, k), xp = self.Z, self.near.shape, namespace(self.Z)
        far = backend(Z).gather_distances(Z, Z, *(xp.astype(end, xp.int32) for end in (i, l)))
        margins = 1.0 + self._close[place] - far[:, None]
        broken = margins > 0
        push = float(xp.sum(xp.where(broken, margins, xp.zeros_like(margins)) ** 2))
        kept, t = _places(margins > 1.0 - self.margin)
        pair = i * n + l
        keys = pair[kept] * k + t
        if keys.shape[0] > max(k, most):
            strongest = xp.argsort(-margins[kept, t], stable=True)
            keys = keys[strongest[: max(k, int(most))]]
        count = int(xp.sum(xp.astype(broken, xp.int64)))
        return Found(keys, push, count, pair if self.hold else None)


@dataclass(frozen=True)
class _Group:
    """The anchors of one class: their indices among the anchors, and the samples of other classes.

    (left @ right)_il = d(i, l) − reach_i − error bound: candidates are negative.
    """

    mine: Any
    anchors: Any
    rest: Any
    left: Any
    right: Any

    @classmethod
    def of(cls, task: Impostors, mine: Indices, rest: Indices, reach: Any) -> _Group:
        Z, there, xp = task.Z, place_of(task.Z), namespace(task.Z)
        mine, rest, anchors = (there.put(part) for part in (mine, rest, task.anchors[mine]))
        kind = xp.float32 if there.is_host else xp.float64
        squares, reach = row_squares(Z), reach[mine]
        room = 4 * (Z.shape[1] + 2) * precision(xp.zeros(1, dtype=kind))
        room *= largest(squares) + largest(reach)
        below = (squares[anchors] - reach - room)[:, None]
        left = xp.concat([-2 * Z[anchors, :], below, xp.ones_like(below)], axis=1)
        others = squares[rest][None, :]
        right = xp.concat([Z[rest, :].T, xp.ones_like(others), others], axis=0)
        return cls(mine, anchors, rest, xp.astype(left, kind), xp.astype(right, kind))

    @property
    def steps(self) -> tuple[int, int]:
        """The number of anchors, and the number per block."""
        host, others = isinstance(self.left, np.ndarray), int(self.rest.shape[0])
        return int(self.mine.shape[0]), ROWS if host else max(1, BLOCK // max(1, others))

    def candidates(self, start: int) -> tuple[Any, Any]:
        """Rows and columns of negative entries of the product, for some anchors."""
        xp, width = namespace(self.left), int(self.right.shape[1])
        left, found = self.left[start : start + self.steps[1]], []
        step = COLUMNS if isinstance(left, np.ndarray) else width
        for first in range(0, width, step):
            row, column = _places(left @ self.right[:, first : first + step] < 0)
            found.append((row, column + first))
        rows, columns = (xp.concat(part) for part in zip(*found, strict=True))
        return rows, columns


def _places(marks: Any) -> tuple[Any, Any]:
    """Rows and columns of a mask; NumPy finds them ten times as fast along one axis."""
    if not isinstance(marks, np.ndarray):
        found: tuple[Any, Any] = namespace(marks).nonzero(marks)
        return found
    return np.divmod(np.flatnonzero(marks), marks.shape[1])
