"""All triplets that a metric violates, computed in blocks on any device."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.places import (
    backend,
    largest,
    namespace,
    numbers,
    place_of,
    precision,
    row_squares,
)
from gramian.arrays.threads import blas_threads_for, in_parts
from gramian.common import clock
from gramian.common.types import Array, Indices

ROWS, COLUMNS = 1024, 2048
"""Block size of distances on the host, anchors × others: 8 MB."""

PAIRS = 2**20
"""Number of known pairs evaluated at a time."""

BLOCK, MAX_BLOCK = 2**27, 2**29
"""Number of distances per block on a device: 1 GB, and 4 GB of a large one."""

FREE_SHARE = 16
"""A block takes at most this part of a device's free memory, if it is larger than `BLOCK`."""

HOLD = 0.5
"""Relative excess of the radius of an anchor over its reach. Between the last two searches of
10,000 digits the metric moves by 7 %: with 0.3, 0.5 and 1, 56, 98 and 100 % of them need none."""

HELD = 200
"""Largest mean number of pairs stored per anchor: more cost as much as a search."""

MIN_SAFE = 0.3
"""Fraction of safe anchors below which all anchors are searched."""

SHRINKAGES = (1.0, 0.97, 0.93, 0.85)
"""Values of ρ, of which the best is used for each anchor."""

BOUND_ROUNDING = 1e-11
"""Error of the bound, relative to the largest possible distances."""


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
    def squares(self) -> Any:
        """‖z‖² of all samples."""
        return row_squares(self.Z)

    @cached_property
    def longest(self) -> float:
        """The largest square plus the largest reach, the scale of rounding errors."""
        return largest(self.squares) + largest(self.reach)

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
        push = xp.sum(xp.where(broken, margins, xp.zeros_like(margins)) ** 2)
        kept, t = _places(margins > 1.0 - self.margin)
        pair = i * n + l
        keys = pair[kept] * k + t
        if keys.shape[0] > max(k, most):
            strongest = xp.argsort(-margins[kept, t], stable=True)
            keys = keys[strongest[: max(k, int(most))]]
        count = xp.sum(xp.astype(broken, xp.float64))
        push, violated = numbers(push, count)
        return Found(keys, push, int(violated), pair if self.hold else None)


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
        squares, reach = task.squares, reach[mine]
        room = 4 * (Z.shape[1] + 2) * precision(xp.zeros(1, dtype=kind))
        room *= task.longest
        below = (squares[anchors] - reach - room)[:, None]
        left = xp.concat([-2 * Z[anchors, :], below, xp.ones_like(below)], axis=1)
        others = squares[rest][None, :]
        right = xp.concat([Z[rest, :].T, xp.ones_like(others), others], axis=0)
        return cls(mine, anchors, rest, xp.astype(left, kind), xp.astype(right, kind))

    @cached_property
    def steps(self) -> tuple[int, int]:
        """The number of anchors, and the number per block."""
        count, others = int(self.mine.shape[0]), max(1, int(self.rest.shape[0]))
        if isinstance(self.left, np.ndarray):
            return count, ROWS
        block = BLOCK
        if count * others > BLOCK:
            free = int(place_of(self.left).free_memory() // (8 * FREE_SHARE))
            block = max(BLOCK, min(MAX_BLOCK, free))
        return count, max(1, block // others)

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


@dataclass
class Standing:
    """The stored pairs of the last searches: anchors are searched again only if necessary.

    A search stores, for each anchor i, all pairs (i, l) within a radius c_i of the metric M₀ at
    that time. For another metric M let M − ρM₀ = P − EEᵀ with P ⪰ 0. Then every other l has

        d_M(i, l) ≥ ρ d_{M₀}(i, l) − ‖Eᵀ(x_i − x_l)‖² ≥ ρ c_i − (‖Eᵀx_i‖ + max_l ‖Eᵀx_l‖)².

    If this exceeds the distance of its farthest target plus the margin, i only has triplets of its
    stored pairs. ρ < 1 is for metrics that have shrunk slightly in many directions.
    """

    pairs: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """i n + l."""
    radius: Array = field(default_factory=lambda: np.empty(0))
    """c, reduced by the rounding error; −∞ for an anchor without pairs."""
    search: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The factor with which each anchor was last searched."""
    factors: list[Array] = field(default_factory=list)
    asked: Array | None = None
    """The factor of the last search for all anchors."""
    answer: Any = None
    """Its result."""
    seconds: float = 0.0
    """Its time in seconds."""

    def remember(self, factor: Array, answer: Any, seconds: float) -> None:
        """Store the result of a search for all anchors."""
        self.asked, self.answer, self.seconds = factor, answer, seconds

    def answers(self, factor: Array) -> bool:
        """Whether the last search used this factor, as if a solve had no time to change it."""
        return self.asked is not None and np.array_equal(self.asked, factor)

    def blocks(self, asked: Impostors, X: Array, factor: Array) -> list[Found]:
        """The triplets of all anchors; only anchors that are not safe are searched."""
        n = X.shape[0]
        sure = self.sure(X, factor, asked.reach)
        if np.mean(sure) < MIN_SAFE:
            sure = np.zeros(n, dtype=bool)
        kept = self.pairs[sure[self.pairs // n]] if self.pairs.size else self.pairs
        found, left = [], np.flatnonzero(~sure)
        if left.size:
            wider = replace(asked, anchors=left, hold=HOLD)
            found = wider.blocks()
            self._renew(sure, kept, found, wider, factor)
        return [*found, *asked.counted(kept)]

    def sure(self, X: Array, factor: Array, reach: Array) -> NDArray[np.bool_]:
        """The anchors whose stored pairs contain everything within their reach."""
        if self.radius.size == 0:
            return np.zeros(X.shape[0], dtype=bool)
        centred = X - X.mean(axis=0)
        largest = float(np.max(np.einsum("ij,ij->i", centred, centred)))
        beyond = np.full(X.shape[0], -np.inf)
        M = factor @ factor.T
        for number in np.unique(self.search):
            mine = self.search == number
            before = self.factors[number] @ self.factors[number].T
            room = BOUND_ROUNDING * 4 * largest * float(np.trace(M) + np.trace(before))
            for share in SHRINKAGES:
                values, vectors = eigh(M - share * before)
                fallen = vectors * np.sqrt(np.maximum(-values, 0.0))
                lost = np.linalg.norm(centred @ fallen, axis=1)
                bound = share * self.radius - (lost + lost.max()) ** 2 - room
                beyond[mine] = np.maximum(beyond, bound)[mine]
        return beyond >= reach

    def _renew(
        self,
        sure: NDArray[np.bool_],
        kept: Indices,
        found: list[Found],
        asked: Impostors,
        factor: Array,
    ) -> None:
        """Replace the stored pairs of the searched anchors."""
        n = sure.size
        most = min(HELD, asked.most / asked.near.shape[1]) * n
        if kept.size + sum(part.pairs.shape[0] for part in found) > most:
            self.pairs, self.radius = self.pairs[:0], self.radius[:0]
            return
        if not np.any(sure):
            self.radius, self.search = np.full(n, -np.inf), np.zeros(n, dtype=np.intp)
            self.factors = []
        self.factors.append(factor)
        self.search[~sure] = len(self.factors) - 1
        self.radius[~sure] = asked.reach
        self.pairs = np.concatenate([kept, *(part.pairs for part in found)])


def _places(marks: Any) -> tuple[Any, Any]:
    """Rows and columns of a mask; NumPy finds them ten times as fast along one axis."""
    if not isinstance(marks, np.ndarray):
        return namespace(marks).nonzero(marks)
    return np.divmod(np.flatnonzero(marks), marks.shape[1])
