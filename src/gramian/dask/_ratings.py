"""Ratings on a cluster, stored twice: by blocks of users and by blocks of items.

A block knows which blocks of the other side its ratings reach, and its tasks take the factors of
those alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.completion._ratings import Elsewhere, Ids, Ratings
from gramian.dask._cluster import Cluster

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


@dataclass(frozen=True)
class Block:
    """The ratings of some rows: of users, or of items where the matrix is turned.

    Rows and columns are counted from the first of the block, columns among the parts of the other
    side that the block reaches.
    """

    starts: Indices
    neighbour: NDArray[np.int32]
    values: Array
    held: NDArray[np.bool_]
    """Those held out to choose λ."""
    weights: Array | None = None

    @property
    def rows(self) -> int:
        return self.starts.size - 1

    def part(self, train: bool) -> Block:
        """All ratings, or those that are not held out."""
        return self._kept(~self.held) if train else self

    def test(self) -> Block:
        """The ratings held out."""
        return self._kept(self.held)

    def _kept(self, kept: NDArray[np.bool_]) -> Block:
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        weights = None if self.weights is None else self.weights[kept]
        entries = self.neighbour[kept], self.values[kept], self.held[kept]
        return Block(starts.astype(self.starts.dtype), *entries, weights)

    def row_of(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(self.starts))

    def matrix(self, data: Array, columns: int) -> sp.csr_array:
        return sp.csr_array((data, self.neighbour, self.starts), shape=(self.rows, columns))


@dataclass(frozen=True)
class Side:
    """One of the two ways the ratings are stored."""

    blocks: list[Any]
    cuts: Indices
    """Where the rows of each block begin, and the last of them end."""
    reached: list[Indices]
    """For each block, which blocks of the other side its ratings reach."""
    counts: Indices
    """The ratings of each row."""

    def pieces(self, rows: Array) -> list[Array]:
        """The rows of each block."""
        return [np.ascontiguousarray(rows[a:b]) for a, b in self.ends()]

    def ends(self) -> list[list[int]]:
        """The first row of each block, and the first after it."""
        return [[int(a), int(b)] for a, b in zip(self.cuts[:-1], self.cuts[1:], strict=True)]

    def ranges(self, other: Side) -> list[list[list[int]]]:
        """For each block the rows of the other side that its ratings reach."""
        ends = other.ends()
        return [[ends[b] for b in some] for some in self.reached]


@dataclass(frozen=True)
class Rated:
    """Ratings on a cluster, and what the driver knows of them."""

    cluster: Cluster
    users: Side
    items: Side
    row_ids: Ids
    col_ids: Ids
    size: int
    total: float
    """Σ ω v over all ratings."""
    weight: float
    """Σ ω."""
    span: tuple[float, float]
    mark: float
    """Σ χ v with a number χ for each place: other ratings have another sum."""
    seed: int
    """Which ratings are held out."""
    columns: Any = None
    home: Any = None
    """Where states on the workers are planted anew from: the driver unless told (`_spread`)."""
    tests: list[Any] | None = None
    """Blocks of users with what was held out, of those that it was taken from."""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_ids), len(self.col_ids)

    @property
    def mean(self) -> float:
        return self.total / self.weight

    def counts(self, train: bool) -> tuple[Indices, Indices]:
        """The ratings of each user and of each item, or of those that are not held out."""
        if not train:
            return self.users.counts, self.items.counts
        told = [
            np.concatenate(self.cluster.gather(self.cluster.each("count", _trained, side.blocks)))
            for side in (self.users, self.items)
        ]
        return told[0], told[1]

    def trained(self) -> Rated:
        """The ratings that are not held out, in blocks of their own: many rounds are over those."""
        parts, cluster = [], self.cluster
        for side, counts in zip((self.users, self.items), self.counts(True), strict=True):
            blocks = cluster.keep(cluster.each("train", _train, side.blocks))
            parts.append(replace(side, blocks=blocks, counts=counts))
        users, items = parts
        total, weight = cluster.sum("mean", weighed, users.blocks)
        tests = cluster.keep(cluster.each("held-out", _test, self.users.blocks))
        return replace(
            self, users=users, items=items, size=int(users.counts.sum()), total=float(total),
            weight=float(weight), tests=tests,
        )  # fmt: skip

    def levels(self, most: int) -> Array:
        """The different ratings, where they are no more than that."""
        found: Array = self.cluster.sum("levels", _levels, self.users.blocks, most, join=_union)
        return found

    def known(self, most: int) -> Any:
        """All ratings as a matrix, or what stands for it where they are too many to bring home."""
        starts = np.concatenate([[0], np.cumsum(self.users.counts)])
        if self.size > most:
            return Elsewhere(self.size, starts, self.shape)
        told = self.cluster.gather(
            self.cluster.each("known", _known, self.users.blocks, self.users.ranges(self.items))
        )
        cols, values = (np.concatenate(part) for part in zip(*told, strict=True))
        return sp.csr_array((values, cols, starts.astype(np.int32)), shape=self.shape)

    def gathered(self) -> Ratings:
        """All ratings on the driver."""
        ends, ranges = self.users.ends(), self.users.ranges(self.items)
        told = self.cluster.gather(
            self.cluster.each("known", _every, self.users.blocks, ends, ranges)
        )
        rows, cols, values, weights = (np.concatenate(part) for part in zip(*told, strict=True))
        own = None if np.all(weights == 1.0) else weights
        return Ratings(rows, cols, values, self.row_ids, self.col_ids, own)

    def taken(self, rows: Array, other: Side, name: str) -> list[Any]:
        """A node for each block of rows of a side, which workers pass to each other."""
        return [self.cluster.shared(name, piece) for piece in other.pieces(rows)]


# --- what tasks do -----------------------------------------------------------------------


def _trained(block: Block) -> Indices:
    return np.diff(block.part(True).starts)


def _train(block: Block) -> Block:
    return block.part(True)


def _test(block: Block) -> Block:
    return block.test()


def weighed(block: Block) -> Array:
    """Σ ω v and Σ ω."""
    omega = np.ones(block.values.size) if block.weights is None else block.weights
    return np.array([omega @ block.values.astype(float), omega.sum()])


def _levels(block: Block, most: int) -> Array:
    return np.unique(block.values.astype(float))[: most + 1]


def _union(a: Array, b: Array) -> Array:
    return np.union1d(a, b)


def _known(block: Block, reached: list[list[int]]) -> tuple[Indices, Array]:
    items = np.concatenate([np.arange(a, b, dtype=np.int32) for a, b in reached])
    return items[block.neighbour], block.values.astype(float)


def _every(block: Block, ends: list[int], reached: list[list[int]]) -> tuple[Any, ...]:
    cols, values = _known(block, reached)
    weights = np.ones(values.size) if block.weights is None else block.weights
    return block.row_of() + np.int32(ends[0]), cols, values, weights
