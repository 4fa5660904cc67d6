"""Ratings on a cluster, stored twice: by blocks of users and by blocks of items.

A block stores which blocks of the other side its ratings refer to; its tasks only receive the
factors of these blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.cpu import csr, index_array
from gramian.common.types import Array, Indices
from gramian.completion._ratings import Elsewhere, Ids, Ratings
from gramian.completion._recommender import Factorization, Offsets
from gramian.dask._cluster import Cluster
from gramian.dask._spread import Driver, SharedFolder

DRIVER_ENTRIES = 20_000_000
"""Number of ratings up to which the driver stores the known entries, for `recommend`, and the
gradient: 0.25 GB each."""


@dataclass(frozen=True)
class RatingBlock:
    """The ratings of some rows: of users, or of items if the matrix is transposed.

    Rows are numbered from the first row of the block. Columns are numbered within the concatenated
    blocks of the other side that the ratings refer to.
    """

    ends: tuple[int, int]
    """The first row of the block, and the first after it."""
    spans: list[tuple[int, int]]
    """The same of the blocks of the other side that the ratings refer to."""

    starts: Indices
    neighbour: NDArray[np.int32]
    values: Array
    held: NDArray[np.bool_]
    """Mask of the ratings that are held out to select λ."""
    weights: Array | None = None

    @property
    def rows(self) -> int:
        return self.starts.size - 1

    def part(self, kept: NDArray[np.bool_]) -> RatingBlock:
        """Some of the ratings, in the same rows."""
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts]
        return replace(
            self, starts=starts.astype(self.starts.dtype), neighbour=self.neighbour[kept],
            values=self.values[kept], held=self.held[kept],
            weights=None if self.weights is None else self.weights[kept],
        )  # fmt: skip

    def row_of(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(self.rows, dtype=np.int32), np.diff(self.starts))

    @property
    def columns(self) -> NDArray[np.int32]:
        """The columns of the block among all."""
        return np.concatenate([np.arange(*span, dtype=np.int32) for span in self.spans])

    def matrix(self, width: int, values: Array | None = None) -> sp.csr_array:
        """Values of the entries, default the ratings, in a sparse matrix with all columns."""
        given = self.values.astype(float) if values is None else values
        columns = self.columns[self.neighbour]
        return csr(given, columns, index_array(self.starts), (self.rows, width))

    def among_all(self, values: Array, size: int) -> Array:
        """The values of the columns of the block, among all columns."""
        found = np.zeros(size)
        found[self.columns] = values
        return found


@dataclass(frozen=True)
class StoredSide:
    """One of the two ways the ratings are stored."""

    blocks: list[Any]
    cuts: Indices
    """The first row of each block, and the end of the last block."""
    reached: list[Indices]
    """For each block, the blocks of the other side that its ratings refer to."""
    counts: Indices
    """Number of ratings of each row."""

    def pieces(self, rows: Array) -> list[Array]:
        """The rows of each block."""
        return [np.ascontiguousarray(rows[a:b]) for a, b in pairwise(self.cuts)]

    def entries(self, values: Array) -> list[Array]:
        """The entries of each block."""
        return np.split(values, np.append(0, np.cumsum(self.counts))[self.cuts[1:-1]])

    def near(self, other: list[Any]) -> list[list[Any]]:
        """For each block, the blocks of the other side that its ratings refer to."""
        return [[other[b] for b in some] for some in self.reached]


@dataclass(frozen=True)
class HeldOut:
    """The entries that are held out, or all others (`rest`), as marked in the blocks."""

    count: int
    rest: bool = False

    def __invert__(self) -> HeldOut:
        return replace(self, rest=not self.rest)

    def sum(self) -> int:
        return self.count


@dataclass(frozen=True)
class ClusterRatings:
    """Ratings on a cluster, with the interface of `Ratings`."""

    cluster: Cluster
    users: StoredSide
    items: StoredSide
    row_ids: Ids
    col_ids: Ids
    size: int
    total: float
    """Σ ω v over all ratings."""
    weight: float
    """Σ ω."""
    span: tuple[float, float]
    check: int
    """A checksum of values and their positions."""
    seed: int
    """Which ratings are held out."""
    home: Driver | SharedFolder = field(default_factory=Driver)
    """Copies states of the factors, through the driver or through files."""

    remote: ClassVar[bool] = True
    featured: ClassVar[bool] = False
    flat, offset_ridge = Ratings.flat, Ratings.offset_ridge

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_ids), len(self.col_ids)

    @property
    def mean(self) -> float:
        return self.total / self.weight

    @property
    def mark(self) -> dict[str, Any]:
        """Values that identify the ratings of a checkpoint."""
        data = [self.size, self.check, self.weight, self.seed]
        files = isinstance(self.home, SharedFolder)
        return {"shape": list(self.shape), "ratings": data, "factors": files}

    def ids(self, side: int) -> Ids:
        """The ids of the users (side 0) or of the items (side 1)."""
        return (self.row_ids, self.col_ids)[side]

    def counts(self, side: int) -> Indices:
        """The ratings of each user (side 0) or of each item (side 1)."""
        return (self.users, self.items)[side].counts

    def split(self, rng: Any, share: float) -> HeldOut:
        """The ratings that were drawn as held out when they were stored."""
        return HeldOut(int(self.cluster.sum("count", _held_out, self.users.blocks)))

    def part(self, held: HeldOut) -> ClusterRatings:
        """The held-out ratings by users, or all others by users and items, in new blocks."""
        sides, cluster = [self.users, self.items], self.cluster
        for k, side in enumerate(sides[: 1 + held.rest]):
            blocks = cluster.keep(cluster.each("part", _part, side.blocks, held.rest))
            counts = np.concatenate(cluster.gather(cluster.each("count", _counts, blocks)))
            sides[k] = replace(side, blocks=blocks, counts=counts)
        total, weight = cluster.sum("mean", _weighed, sides[0].blocks)
        return replace(
            self, users=sides[0], items=sides[1], size=int(sides[0].counts.sum()),
            total=float(total), weight=float(weight),
        )  # fmt: skip

    def sums(self, side: int) -> Array:
        """The sum of the values of each user (side 0), or of each item (side 1)."""
        blocks = (self.users, self.items)[side].blocks
        return np.concatenate(self.cluster.gather(self.cluster.each("sizes", _sums, blocks)))

    def mean_square(self, mean: float) -> float:
        """The mean of (v − μ)²."""
        return float(self.cluster.sum("sizes", _squares, self.users.blocks, mean)) / self.size

    def spread(self, ridge: float | None) -> float:
        """The root mean square of the values less the shrunken means of items, then of users."""
        if ridge is None:
            return float(np.sqrt(self.mean_square(0.0)))
        users, counts, sums = self.users, self.items.counts, self.sums(1)
        mean = float(np.sum(sums)) / self.size
        means = mean + (sums - mean * counts) / (counts + ridge)
        means += float(np.sum(sums - counts * means)) / self.size
        rest = self.cluster.sum("sizes", _beside_both, users.blocks, means, ridge)
        return float(np.sqrt(rest / self.size))

    def mean_error(self, found: Factorization, error: Any) -> float:
        """The mean of error(prediction, value) of the blocks of a state [P b; Q c], one round."""
        near = self.users.near(list(found.col_factors))
        total = self.cluster.sum(
            "held-out", _error, self.users.blocks, found.row_factors, near, found.offsets.mean,
            found.bounds, error,
        )  # fmt: skip
        return float(total) / max(self.size, 1)

    def kept(self, state: Any) -> Any:
        """The content of a checkpoint, computed when it is written."""
        return lambda: self.home.stored(state)

    def restored(self, stored: Any) -> Any:
        return self.home.restored(self, stored)

    @property
    def is_small(self) -> bool:
        return self.size <= DRIVER_ENTRIES

    def known(self) -> Any:
        """All ratings as a matrix; `Elsewhere` if there are too many for the driver."""
        if not self.is_small:
            starts = np.concatenate([[0], np.cumsum(self.users.counts)])
            return Elsewhere(self.size, starts, self.shape)
        made = self.cluster.each("known", RatingBlock.matrix, self.users.blocks, self.shape[1])
        return sp.csr_array(sp.vstack(self.cluster.gather(made)))


# --- tasks -------------------------------------------------------------------------------


def _held_out(block: RatingBlock) -> int:
    return int(np.count_nonzero(block.held))


def _part(block: RatingBlock, rest: bool) -> RatingBlock:
    return block.part(block.held ^ rest)


def _counts(block: RatingBlock) -> Indices:
    return np.diff(block.starts)


def _weighed(block: RatingBlock) -> Array:
    """Σ ω v and Σ ω."""
    omega = np.ones(block.values.size) if block.weights is None else block.weights
    return np.array([omega @ block.values.astype(float), omega.sum()])


def _squares(block: RatingBlock, mean: float) -> float:
    off = block.values.astype(float) - mean
    return float(off @ off)


def _sums(block: RatingBlock) -> Array:
    """Σ v of each row."""
    return np.bincount(block.row_of(), block.values, minlength=block.rows).astype(float)


def _beside_both(block: RatingBlock, means: Array, ridge: float) -> float:
    """Σ (v less the mean of its item and the shrunken mean of its user)²."""
    left = block.values - means[block.columns][block.neighbour]
    rows = block.row_of()
    sums = np.bincount(rows, left, minlength=block.rows)
    left -= (sums / (np.diff(block.starts) + ridge))[rows]
    return float(left @ left)


def _error(
    block: RatingBlock, top: Array, low: list[Array], mean: float, bounds: Any, error: Any
) -> float:
    """Σ error(prediction, value) of a matrix [P b; Q c]."""
    P, Q = top.astype(float), np.concatenate(low).astype(float)
    own, other = (np.ascontiguousarray(side[:, :-1]) for side in (P, Q))
    found = Factorization(own, other, Offsets(mean, P[:, -1], Q[:, -1]), bounds)
    return float(np.sum(error(found.values(block.row_of(), block.neighbour), block.values)))
