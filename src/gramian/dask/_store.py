"""Ratings are read once and redistributed to blocks of users and of items.

Partitions are processed in their order. If a side has few blocks, a partition is divided into all
of them at once. If it has many (K), it is first divided into about √K groups of neighbouring
blocks; the groups of several partitions are joined, up to the number of ratings of a block, and
divided again. For n partitions this gives n√K pieces instead of nK, and a partition on disk is read
about 2√K times instead of 2K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar
from zlib import crc32

import fsspec
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramian.arrays.entries import counting_sort
from gramian.common.types import Array, Indices
from gramian.completion._ratings import Ids, Ratings
from gramian.completion._reading import (
    merged,
    names_of,
    ordered,
    rating_columns,
)
from gramian.completion._selection import HELD_OUT_SHARE
from gramian.dask._cluster import Cluster, node
from gramian.dask._collections import (
    files_of,
    is_files,
    is_triple,
    ratings,
    refuse_mixed,
)
from gramian.dask._ratings import ClusterRatings, RatingBlock, StoredSide

AT_ONCE = 16
"""Number of blocks up to which a partition is divided in one step."""

Entries = tuple[Any, ...]
"""Arrays: index on this side, index on the other side, value, held-out mask, weights or None."""


def groups_of(cuts: Indices) -> Indices:
    """The first block of each group, for about √K groups of K blocks; K groups if K is small."""
    count = cuts.size - 1
    if count <= AT_ONCE:
        return cuts
    groups = int(np.ceil(np.sqrt(count)))
    return cuts[np.linspace(0, count, groups + 1).round().astype(int)]


def divided(entries: Entries, cuts: Indices) -> list[Entries]:
    """The entries of each block, in their original order."""
    place = np.asarray(np.searchsorted(cuts, entries[0], side="right") - 1, dtype=np.int32)
    order = counting_sort(place, cuts.size - 1)[1]
    ends = np.searchsorted(place[order], np.arange(1, cuts.size - 1))
    return [tuple(None if field is None else field[k] for field in entries)
            for k in np.split(order, ends)]  # fmt: skip


def joined(pieces: list[Entries]) -> list[Any]:
    """The fields of all pieces, concatenated."""
    return [None if parts[0] is None else np.concatenate(parts)
            for parts in zip(*pieces, strict=True)]  # fmt: skip


Pieces = list[list[list[Any]]]
"""The pieces of every partition, by side and group: futures on the workers."""


def pieces_of(cluster: Cluster, split: list[Any], groups: list[Indices]) -> Pieces:
    """The pieces of one partition are requested together: a worker releases the partition before
    it reads the next.
    """
    count = groups[0].size - 1
    sides = [0] * count + [1] * (groups[1].size - 1)
    places = [*range(count), *range(groups[1].size - 1)]
    made = [
        cluster.keep(cluster.each("piece", _piece, [one] * len(places), sides, places))
        for one in split
    ]
    return [[kept[:count], kept[count:]] for kept in made]


def by_block(
    cluster: Cluster, pieces: Pieces, side: int, own: Indices, groups: Indices, batch: int
) -> Iterator[list[Any]]:
    """The pieces of each block in the order of the partitions, `batch` of which are joined.

    The pieces of a group are released when they are used.
    """
    for g in range(groups.size - 1):
        parts = [one[side][g] for one in pieces]
        for one in pieces:
            one[side][g] = None
        inner = own[(own >= groups[g]) & (own <= groups[g + 1])]
        if inner.size == 2:
            yield parts
            continue
        places, made = list(range(inner.size - 1)), []
        for k in range(0, len(parts), batch):
            (whole,) = cluster.each("regroup", _regrouped, [parts[k : k + batch]], inner)
            nodes = cluster.each("piece", _piece, [whole] * len(places), 0, places)
            made.append(cluster.keep(nodes))
        yield from map(list, zip(*made, strict=True))


def _regrouped(pieces: list[Entries], cuts: Indices) -> list[list[Entries]]:
    return [divided(tuple(joined(pieces)), cuts)]


def _piece(split: list[list[Entries]], side: int, k: int) -> Entries:
    """A copy of one piece: a view would keep the whole partition in memory."""
    return tuple(None if field is None else field.copy() for field in split[side][k])


ENTRIES = 2_000_000
"""Approximate maximum number of ratings of a block: 25 MB."""

FEW, SMALL = (2, 8), 100_000
"""Range of the minimum number of blocks, and ratings per block within it: enough tasks for several
workers, but not many small ones."""


@dataclass(frozen=True)
class Names:
    """The users and items that occur in some ratings, with their counts."""

    names: NDArray[Any]
    counts: Indices

    def __add__(self, other: Names) -> Names:
        if not (self.names.size and other.names.size):
            return self if self.names.size else other
        refuse_mixed(self.names, other.names, "ids")
        names, place = np.unique(np.concatenate([self.names, other.names]), return_inverse=True)
        counts = np.bincount(place.ravel(), np.concatenate([self.counts, other.counts]))
        return Names(names, counts.astype(np.int64))


@dataclass(frozen=True)
class GivenRatings:
    """Ratings in the partitions of the input, which were read once to count them."""

    cluster: Cluster
    shards: list[Any]
    users: Names
    items: Names
    span: tuple[float, float]
    columns: Any = None

    flat: ClassVar[Any] = Ratings.flat

    @property
    def shape(self) -> tuple[int, int]:
        return self.users.names.size, self.items.names.size

    @property
    def size(self) -> int:
        return int(self.users.counts.sum())


def given_ratings(cluster: Cluster, X: Any, weights: Any = None) -> GivenRatings:
    """The ratings of a Dask frame, Dask arrays or files; one pass."""
    columns, names = columns_of(X, weights)
    shards = ratings(cluster, X, columns, weights)
    users, items, low, high = cluster.sum("names", _names, shards, join=_both)
    if not users.counts.sum():
        raise ValueError("there are no ratings")
    return GivenRatings(cluster, shards, users, items, (low, high), names)


def store(given: GivenRatings, *, duplicates: str = "error", seed: int = 0) -> ClusterRatings:
    """Store the ratings by users and by items."""
    cluster, shards, found = given.cluster, given.shards, (given.users, given.items)
    row_ids, col_ids = (Ids(side.names) for side in found)
    cuts = [_cuts(side.counts) for side in found]
    ids = cluster.keep([cluster.shared("names", side.names) for side in found])
    groups = [groups_of(one) for one in cuts]
    split = cluster.each("split", _split, shards, *ids, *groups, seed)
    pieces, stored, reports = pieces_of(cluster, split, groups), [], []
    for side, other in ((0, 1), (1, 0)):
        piece = given.size / (len(shards) * (groups[side].size - 1))
        batch = int(max(2, ENTRIES // max(piece, 1.0)))
        parts = by_block(cluster, pieces, side, cuts[side], groups[side], batch)
        made = []
        for k, some in enumerate(parts):
            own = cuts[side][k : k + 2]
            made += cluster.keep([node("store", _gathered, some, own, cuts[other], duplicates)])
        reports.append(cluster.gather(cluster.each("count", itemgetter(1), made)))
        blocks = cluster.keep(cluster.each("block", itemgetter(0), made))
        reached, counts = ([one[name] for one in reports[side]] for name in ("reached", "counts"))
        stored.append(StoredSide(blocks, cuts[side], reached, np.concatenate(counts)))
    del pieces
    facts = {name: [one[name] for one in reports[0]] for name in reports[0][0]}
    repeated, weight = sum(facts["repeated"]), sum(facts["weight"])
    if repeated and duplicates == "error":
        i, j = next(pair for pair in facts["example"] if pair is not None)
        raise ValueError(
            f"row {row_ids.names[i]} and column {col_ids.names[j]} have several ratings, and "
            f'{repeated} are repetitions in all: pass duplicates="mean", "sum" (of counts) or '
            '"last"'
        )
    if not weight > 0:
        raise ValueError("every sample_weight is zero: nothing is left to fit")
    return ClusterRatings(
        cluster, stored[0], stored[1], row_ids, col_ids, int(stored[0].counts.sum()),
        sum(facts["total"]), weight, (min(facts["low"]), max(facts["high"])), sum(facts["mark"]),
        seed,
    )  # fmt: skip


def columns_of(X: Any, weights: Any) -> tuple[Any, Any]:
    """The names of the columns of user, item and rating (and weight) in frames, and those that the
    model stores."""
    if is_triple(X):
        if isinstance(weights, str):
            raise ValueError("the ratings are arrays: pass sample_weight as an array, as long")
        return None, None
    if weights is not None and not isinstance(weights, str):
        raise ValueError(
            "sample_weight of a frame or of files is the name of the column that has them"
        )
    if is_files(X):
        first = files_of(X)[0]
        if first.endswith(".npz"):
            extra = () if weights is None else (weights,)
            return ("rows", "cols", "values", *extra), None
        try:
            with fsspec.open(first, "rb") as file:
                empty = pq.read_schema(file).empty_table().to_pandas()
        except (FileNotFoundError, ValueError) as reason:
            raise ValueError(f"{first} cannot be read: {reason}") from reason
    elif hasattr(X, "columns"):
        empty = pd.DataFrame(columns=list(X.columns))
    else:
        return None, None
    if weights is not None:
        if weights not in empty.columns:
            raise ValueError(f"there is no column {weights!r}, only {list(empty.columns)}")
        empty = empty.drop(columns=weights)
    places = rating_columns(empty)
    if places is None:
        raise ValueError("ratings need the columns user, item and rating")
    chosen = tuple(empty.columns[k] for k in places)
    return (*chosen, *(() if weights is None else (weights,))), names_of(empty)


def _cuts(counts: Indices) -> Indices:
    """The first rows of blocks with about equal numbers of ratings."""
    size, rows = int(counts.sum()), counts.size
    blocks = min(max(-(-size // ENTRIES), int(np.clip(size // SMALL, *FEW))), rows)
    ends = np.searchsorted(np.cumsum(counts), np.linspace(0, size, blocks + 1)[1:-1]) + 1
    inner = np.unique(np.clip(ends, 1, rows - 1)) if rows > 1 else np.zeros(0, dtype=int)
    return np.concatenate([[0], inner, [rows]]).astype(np.int64)


# --- tasks -------------------------------------------------------------------------------


def _names(block: Sequence[Any]) -> tuple[Names, Names, float, float]:
    rows, cols, values = block[:3]
    try:
        users, items = _counted(rows), _counted(cols)
    except TypeError:
        raise ValueError("ids are text and numbers at once: make them of one kind") from None
    return users, items, values.min(initial=np.inf), values.max(initial=-np.inf)


def _counted(given: NDArray[Any]) -> Names:
    if given.dtype.kind not in "iu":
        return Names(*np.unique(given, return_counts=True))
    ids, place = Ids.of(given)
    return Names(ids.names, np.bincount(place, minlength=len(ids)))


def _places(names: NDArray[Any], given: NDArray[Any]) -> Indices:
    """The positions of given names among the sorted ones."""
    own, place = Ids.of(given)
    return np.searchsorted(names, own.names)[place]


def _both(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1], min(a[2], b[2]), max(a[3], b[3])


def _split(
    block: Sequence[Any], rows: Any, cols: Any, row_cuts: Indices, col_cuts: Indices, seed: int
) -> list[list[Any]]:
    """The ratings of a partition by the blocks they belong to, of users and of items."""
    i, j = _places(rows, block[0]), _places(cols, block[1])
    short_index = np.int32 if max(len(rows), len(cols)) < 2**31 else np.int64
    values = block[2]
    short = values.astype(np.float32)
    values = short if np.array_equal(short, values) else values
    weights = block[3] if len(block) > 3 else None
    held = chance(i * len(cols) + j, seed) < HELD_OUT_SHARE
    shared = values, held, weights
    i, j = i.astype(short_index), j.astype(short_index)
    return [divided((i, j, *shared), row_cuts), divided((j, i, *shared), col_cuts)]


def _gathered(
    pieces: list[Any], ends: Indices, other: Indices, duplicates: str
) -> tuple[RatingBlock, dict[str, Any]]:
    """A block from its pieces, sorted by row and column, with duplicate entries merged, and facts.

    Uses 32-bit integers throughout to limit the memory of a worker to the pieces and the block.
    """
    begin, end, width = int(ends[0]), int(ends[1]), int(other[-1])
    own, *fields = joined(pieces)
    own -= begin
    entries, new = ordered((own, *fields), end - begin, width)
    own, across, values, held, weights = entries
    repeated, example = new.size - int(new.sum()), None
    if repeated:
        again = int(np.argmin(new))
        example = int(own[again]) + begin, int(across[again])
        kind = "mean" if duplicates == "error" else duplicates
        values, weights = merged(values, weights, np.flatnonzero(new), kind)
        own, across, held = own[new], across[new], held[new]
    reached, neighbour = _among(across, other)
    starts = np.searchsorted(own, np.arange(end - begin + 1, dtype=own.dtype)).astype(np.int64)
    numbers = values.astype(float)
    omega = np.ones(values.size) if weights is None else weights
    mark = 0
    for part in (starts, across, numbers):
        mark = crc32(part.tobytes(), mark)
    spans = [(int(other[b]), int(other[b + 1])) for b in reached]
    block = RatingBlock((begin, end), spans, starts, neighbour, values, held, weights)
    return block, {
        "reached": reached, "counts": np.diff(starts), "repeated": repeated, "example": example,
        "mark": mark, "total": float(omega @ numbers), "weight": float(omega.sum()),
        "low": float(numbers.min(initial=np.inf)), "high": float(numbers.max(initial=-np.inf)),
    }  # fmt: skip


def _among(columns: Indices, cuts: Indices) -> tuple[Indices, NDArray[np.int32]]:
    """The blocks of the other side that contain the columns (the first block if there are no
    columns), and the indices of the columns within the concatenation of these blocks.
    """
    sizes = np.diff(cuts)
    block = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
    present = np.zeros(sizes.size, dtype=bool)
    present[block[columns]] = True
    present[0] |= not columns.size
    begin = np.concatenate([[0], np.cumsum(np.where(present, sizes, 0))])[:-1]
    place = np.arange(cuts[-1]) + (begin - cuts[:-1])[block]
    return np.flatnonzero(present), place.astype(np.int32)[columns]


def chance(keys: Indices, seed: int) -> Array:
    """A number in [0, 1) for each key, the same on every machine (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(float) * 2.0**-53
