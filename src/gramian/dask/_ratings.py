"""Ratings on a cluster, stored twice: by blocks of users and by blocks of items.

Every file or partition is read once, split by the block that a rating belongs to, and gathered
there, in the order of the partitions. A block knows which blocks of the other side its ratings
reach, and its tasks take the factors of those alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import scipy.sparse as sp
from dask.base import is_dask_collection
from numpy.typing import NDArray

from gramian.completion._checks import refuse_missing
from gramian.completion._frames import names_of, rating_columns
from gramian.completion._ratings import Elsewhere, Ids, Ratings, merged
from gramian.dask._cluster import Cluster
from gramian.dask._collections import files_of, is_files, open_file, ratings

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ENTRIES = 4_000_000
"""Ratings of a block at most, about: 50 MB."""

FEW, SMALL = (2, 8), 100_000
"""Blocks at least, one for so many ratings, within these: tasks for several workers, no crowd of
small ones."""

HELD_OUT = 0.1
"""The share of the ratings held out to choose λ and the end of the sweeps."""


@dataclass(frozen=True)
class Names:
    """Which users and items some ratings have, and how many there are of each."""

    names: NDArray[Any]
    counts: Indices

    def __add__(self, other: Names) -> Names:
        names, place = np.unique(np.concatenate([self.names, other.names]), return_inverse=True)
        counts = np.bincount(place.ravel(), np.concatenate([self.counts, other.counts]))
        return Names(names, counts.astype(np.int64))


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
    columns: Any = None

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


def store(
    cluster: Cluster, X: Any, *, duplicates: str = "error", weights: Any = None, seed: int = 0
) -> Rated:
    """Read the ratings, and store them by users and by items."""
    columns, names = columns_of(X, weights)
    shards = ratings(cluster, X, columns, weights)
    found = cluster.sum("names", _names, shards, join=_both)
    row_ids, col_ids = Ids(found[0].names), Ids(found[1].names)
    if not found[0].counts.sum():
        raise ValueError("there are no ratings")
    cuts = [_cuts(side.counts) for side in found]
    ids = [cluster.shared("names", side.names) for side in found]
    split = cluster.keep(cluster.each("split", _split, shards, *ids, *cuts, seed))
    shape = len(row_ids), len(col_ids)
    sides = [_stored(cluster, split, side, cuts, shape[1], duplicates) for side in (0, 1)]
    facts = cluster.sum("count", _facts, sides[0][0], join=_join_facts)
    if facts["repeated"] and duplicates == "error":
        i, j = facts["example"]
        raise ValueError(
            f"row {row_ids.names[i]} and column {col_ids.names[j]} have several ratings, and "
            f'{facts["repeated"]} are repetitions in all: pass duplicates="mean" or "last"'
        )
    users, items = (_side(cluster, *made) for made in sides)
    return Rated(
        cluster, users, items, row_ids, col_ids, facts["size"], facts["total"], facts["weight"],
        facts["span"], names,
    )  # fmt: skip


def columns_of(X: Any, weights: Any) -> tuple[Any, Any]:
    """The columns of user, item and rating (and weight) in frames, and what the model keeps."""
    if isinstance(X, tuple) and all(is_dask_collection(part) for part in X):
        return None, None
    if is_files(X):
        first = files_of(X)[0]
        if first.endswith(".npz"):
            extra = () if weights is None else (weights,)
            return ("rows", "cols", "values", *extra), None
        with open_file(first) as file:
            empty = pq.read_schema(file).empty_table().to_pandas()
    elif hasattr(X, "columns"):
        empty = pd.DataFrame(columns=list(X.columns))
    else:
        return None, None
    if isinstance(weights, str):
        empty = empty.drop(columns=weights)
    places = rating_columns(empty)
    if places is None:
        raise ValueError("ratings need the columns user, item and rating")
    chosen = tuple(empty.columns[k] for k in places)
    return (*chosen, *(() if weights is None else (weights,))), names_of(empty)


def _stored(
    cluster: Cluster, split: list[Any], side: int, cuts: list[Indices], width: int, duplicates: str
) -> tuple[list[Any], Indices, Any]:
    """The blocks of one side, each gathered from its pieces in the order of the partitions."""
    own, other = cuts[side], cuts[1 - side]
    blocks = []
    for k in range(own.size - 1):
        pieces = cluster.each("piece", _piece, split, side, k)
        blocks += cluster.each("store", _gathered, [pieces], own[k : k + 2], other, duplicates)
    return cluster.keep(blocks), own, other


def _side(cluster: Cluster, blocks: list[Any], cuts: Indices, other: Indices) -> Side:
    told = cluster.gather(cluster.each("count", _reached, blocks))
    reached, counts = zip(*told, strict=True)
    plain = cluster.keep(cluster.each("block", _plain_block, blocks))
    return Side(plain, cuts, list(reached), np.concatenate(counts))


def _cuts(counts: Indices) -> Indices:
    """Where blocks of about as many ratings begin."""
    size, rows = int(counts.sum()), counts.size
    blocks = min(max(-(-size // ENTRIES), int(np.clip(size // SMALL, *FEW))), rows)
    ends = np.searchsorted(np.cumsum(counts), np.linspace(0, size, blocks + 1)[1:-1]) + 1
    inner = np.unique(np.clip(ends, 1, rows - 1)) if rows > 1 else np.zeros(0, dtype=int)
    return np.concatenate([[0], inner, [rows]]).astype(np.int64)


# --- what tasks do -----------------------------------------------------------------------


def _names(block: Sequence[Any]) -> tuple[Names, Names]:
    rows, cols = block[:2]
    refuse_missing(rows, "row")
    refuse_missing(cols, "column")
    return tuple(Names(*np.unique(side, return_counts=True)) for side in (rows, cols))  # type: ignore[return-value]


def _both(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


def _split(
    block: Sequence[Any], rows: Any, cols: Any, row_cuts: Indices, col_cuts: Indices, seed: int
) -> list[list[Any]]:
    """The ratings of a partition by the blocks they belong to, of users and of items."""
    i = np.searchsorted(rows, block[0]).astype(np.int64)
    j = np.searchsorted(cols, block[1]).astype(np.int64)
    values = block[2]
    short = values.astype(np.float32)
    values = short if np.array_equal(short, values) else values
    weights = block[3] if len(block) > 3 else None
    held = chance(i * len(cols) + j, seed) < HELD_OUT
    sides = []
    for own, other, cuts in ((i, j, row_cuts), (j, i, col_cuts)):
        place = np.searchsorted(cuts, own, side="right") - 1
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(1, cuts.size - 1))
        sides.append([
            (own[k].astype(np.int64), other[k].astype(np.int64), values[k], held[k],
             None if weights is None else weights[k])
            for k in np.split(order, ends)
        ])  # fmt: skip
    return sides


def _piece(split: list[list[Any]], side: int, k: int) -> Any:
    return split[side][k]


def _gathered(pieces: list[Any], cut: Indices, other: Indices, duplicates: str) -> dict[str, Any]:
    """A block of its pieces, sorted by row and column, an entry that comes twice made one."""
    own, across, values, held = (np.concatenate(part) for part in [*zip(*pieces, strict=True)][:4])
    weights = None if pieces[0][4] is None else np.concatenate([piece[4] for piece in pieces])
    if weights is not None:
        live = weights > 0
        own, across, values, held = own[live], across[live], values[live], held[live]
        weights = weights[live]
    key = (own - cut[0]) * other[-1] + across
    order = np.argsort(key, kind="stable")
    key, values, held = key[order], values[order], held[order]
    weights = None if weights is None else weights[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    repeated = key.size - first.size
    example = None
    if repeated:
        twice = key[1:][np.diff(key) == 0][0]
        example = int(twice // other[-1] + cut[0]), int(twice % other[-1])
        values, weights = merged(values, weights, first, "mean" if duplicates == "error" else
                                 duplicates)  # fmt: skip
        key, held = key[first], held[first]
    rows, columns = np.divmod(key, other[-1])
    parts = np.searchsorted(other, columns, side="right") - 1
    reached, place = np.unique(parts, return_inverse=True)
    sizes = np.diff(other)[reached]
    shift = np.concatenate([[0], np.cumsum(sizes)])[:-1] - other[reached]
    neighbour = (columns + shift[place.ravel()]) if columns.size else columns
    starts = np.searchsorted(rows, np.arange(cut[1] - cut[0] + 1)).astype(np.int64)
    block = Block(starts, neighbour.astype(np.int32), values, held, weights)
    return {"block": block, "reached": reached, "repeated": repeated, "example": example}


def _plain_block(made: dict[str, Any]) -> Block:
    block: Block = made["block"]
    return block


def _reached(made: dict[str, Any]) -> tuple[Indices, Indices]:
    return made["reached"], np.diff(made["block"].starts)


def _facts(made: dict[str, Any]) -> dict[str, Any]:
    block: Block = made["block"]
    values = block.values.astype(float)
    omega = np.ones(values.size) if block.weights is None else block.weights
    ends = (float(values.min()), float(values.max())) if values.size else (np.inf, -np.inf)
    return {
        "size": values.size, "total": float(omega @ values), "weight": float(omega.sum()),
        "span": ends, "repeated": made["repeated"], "example": made["example"],
    }  # fmt: skip


def _join_facts(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    summed = {name: a[name] + b[name] for name in ("size", "total", "weight", "repeated")}
    span = min(a["span"][0], b["span"][0]), max(a["span"][1], b["span"][1])
    return summed | {"span": span, "example": a["example"] or b["example"]}


def _trained(block: Block) -> Indices:
    return np.diff(block.part(True).starts)


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


def chance(keys: Indices, seed: int) -> Array:
    """A number in [0, 1) for each key, the same wherever it is asked for (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(float) * 2.0**-53
