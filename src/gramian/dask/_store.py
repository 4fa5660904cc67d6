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
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramian.arrays.cpu import counting_sort
from gramian.completion._ratings import TABLE_RATIO, Ids
from gramian.completion._reading import (
    DUPLICATES,
    by_row,
    merged,
    names_of,
    rating_columns,
)
from gramian.completion._selection import HELD_OUT_SHARE
from gramian.dask._cluster import Cluster
from gramian.dask._collections import (
    files_of,
    is_files,
    is_triple,
    ratings,
    refuse_mixed,
)
from gramian.dask._ratings import ClusterRatings, RatingBlock, StoredSide

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


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


class PartitionPieces:
    """The pieces of every partition, by side and group: futures on the workers."""

    def __init__(
        self, cluster: Cluster, split: list[Any], cuts: list[Indices], groups: list[Indices]
    ) -> None:
        self.cluster, self.cuts, self.groups = cluster, cuts, groups
        self.pieces = [self._of_partition(one) for one in split]

    def _of_partition(self, split: Any) -> list[list[Any]]:
        """The pieces of one partition, requested together: a worker releases the partition before
        it reads the next.
        """
        counts = [groups.size - 1 for groups in self.groups]
        places = [(side, k) for side in (0, 1) for k in range(counts[side])]
        sides, blocks = map(list, zip(*places, strict=True))
        nodes = self.cluster.each("piece", _piece_of_side, [split] * len(places), sides, blocks)
        kept = self.cluster.keep(nodes)
        return [kept[: counts[0]], kept[counts[0] :]]

    def of_side(self, side: int, batch: int) -> Iterator[list[Any]]:
        """The pieces of each block in the order of the partitions, `batch` of which are joined.

        The pieces of a group are released when they are used.
        """
        own, groups = self.cuts[side], self.groups[side]
        for g in range(groups.size - 1):
            pieces = [one[side][g] for one in self.pieces]
            for one in self.pieces:
                one[side][g] = None
            inner = own[(own >= groups[g]) & (own <= groups[g + 1])]
            if inner.size == 2:
                yield pieces
                continue
            batches = [pieces[k : k + batch] for k in range(0, len(pieces), batch)]
            made = [self._cut_again(one, inner) for one in batches]
            yield from map(list, zip(*made, strict=True))

    def _cut_again(self, pieces: list[Any], cuts: Indices) -> list[Any]:
        (whole,) = self.cluster.each("regroup", _regrouped, [pieces], cuts)
        places = list(range(cuts.size - 1))
        nodes = self.cluster.each("piece", _piece, [whole] * len(places), places)
        return self.cluster.keep(nodes)


def _regrouped(pieces: list[Entries], cuts: Indices) -> list[Entries]:
    return divided(tuple(joined(pieces)), cuts)


def _piece_of_side(split: list[list[Entries]], side: int, k: int) -> Entries:
    return _piece(split[side], k)


def _piece(parts: list[Entries], k: int) -> Entries:
    """A copy of one piece: a view would keep the whole partition in memory."""
    return tuple(None if field is None else field.copy() for field in parts[k])


ENTRIES = 2_000_000
"""Approximate maximum number of ratings of a block: 25 MB."""

FEW, SMALL = (2, 8), 100_000
"""Range of the minimum number of blocks, and ratings per block within it: enough tasks for several
workers, but not many small ones."""

MARK, MARKED = 7, 1 << 18
"""Seed of the weights of the checksum that identifies the ratings, and the number of ratings summed
at a time."""


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


def store(
    cluster: Cluster, X: Any, *, duplicates: str = "error", weights: Any = None, seed: int = 0
) -> ClusterRatings:
    """Read the ratings, and store them by users and by items."""
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {DUPLICATES}, got {duplicates!r}")
    columns, names = columns_of(X, weights)
    shards = ratings(cluster, X, columns, weights)
    found = cluster.sum("names", _names, shards, join=_both)
    row_ids, col_ids = Ids(found[0].names), Ids(found[1].names)
    if not found[0].counts.sum():
        raise ValueError("there are no ratings")
    cuts = [_cuts(side.counts) for side in found]
    ids = cluster.keep([cluster.shared("names", side.names) for side in found])
    groups = [groups_of(one) for one in cuts]
    split = cluster.each("split", _split, shards, *ids, *groups, seed)
    pieces = PartitionPieces(cluster, split, cuts, groups)
    sides = []
    for side, group in enumerate(groups):
        piece = found[0].counts.sum() / (len(shards) * (group.size - 1))
        batch = int(max(2, ENTRIES // max(piece, 1.0)))
        sides.append(_stored(cluster, pieces, side, batch, duplicates))
    del pieces
    facts = cluster.sum("count", _facts, sides[0][0], join=_join_facts)
    if facts["repeated"] and duplicates == "error":
        i, j = facts["example"]
        raise ValueError(
            f"row {row_ids.names[i]} and column {col_ids.names[j]} have several ratings, and "
            f'{facts["repeated"]} are repetitions in all: pass duplicates="mean" or "last"'
        )
    if not facts["weight"] > 0:
        raise ValueError("every sample_weight is zero: nothing is left to fit")
    users, items = (_side(cluster, *made) for made in sides)
    return ClusterRatings(
        cluster, users, items, row_ids, col_ids, facts["size"], facts["total"], facts["weight"],
        facts["span"], facts["mark"], seed, names,
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


def _stored(
    cluster: Cluster, pieces: PartitionPieces, side: int, batch: int, duplicates: str
) -> tuple[list[Any], Indices, Any]:
    """The blocks of one side, each gathered from its pieces in the order of the partitions."""
    own, other = pieces.cuts[side], pieces.cuts[1 - side]
    blocks = [
        cluster.keep(cluster.each("store", _gathered, [parts], own[k : k + 2], other, duplicates))
        for k, parts in enumerate(pieces.of_side(side, batch))
    ]
    return [block for (block,) in blocks], own, other


def _side(cluster: Cluster, blocks: list[Any], cuts: Indices, other: Indices) -> StoredSide:
    answers = cluster.gather(cluster.each("count", _reached, blocks))
    reached, counts = zip(*answers, strict=True)
    plain = cluster.keep(cluster.each("block", itemgetter("block"), blocks))
    return StoredSide(plain, cuts, list(reached), np.concatenate(counts))


def _cuts(counts: Indices) -> Indices:
    """The first rows of blocks with about equal numbers of ratings."""
    size, rows = int(counts.sum()), counts.size
    blocks = min(max(-(-size // ENTRIES), int(np.clip(size // SMALL, *FEW))), rows)
    ends = np.searchsorted(np.cumsum(counts), np.linspace(0, size, blocks + 1)[1:-1]) + 1
    inner = np.unique(np.clip(ends, 1, rows - 1)) if rows > 1 else np.zeros(0, dtype=int)
    return np.concatenate([[0], inner, [rows]]).astype(np.int64)


# --- tasks -------------------------------------------------------------------------------


def _names(block: Sequence[Any]) -> tuple[Names, Names]:
    rows, cols = block[:2]
    try:
        return _counted(rows), _counted(cols)
    except TypeError:
        raise ValueError("ids are text and numbers at once: make them of one kind") from None


def _counted(given: NDArray[Any]) -> Names:
    if given.dtype.kind not in "iu":
        return Names(*np.unique(given, return_counts=True))
    ids, place = Ids.of(given)
    return Names(ids.names, np.bincount(place, minlength=len(ids)))


def _places(names: NDArray[Any], given: NDArray[Any]) -> Indices:
    """The positions of given names among the sorted ones; by a lookup table for dense integers."""
    if names.dtype.kind in "iu" and given.dtype.kind in "iu" and names.size:
        first, last = int(names[0]), int(names[-1])
        if last - first <= TABLE_RATIO * names.size and max(last, -first) < 2**62:
            table = np.zeros(last - first + 1, dtype=np.intp)
            table[names.astype(np.int64) - first] = np.arange(names.size)
            return table[given.astype(np.int64) - first]
    return np.searchsorted(names, given)


def _both(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1]


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


def _gathered(pieces: list[Any], cut: Indices, other: Indices, duplicates: str) -> dict[str, Any]:
    """A block from its pieces, sorted by row and column, with duplicate entries merged.

    Uses 32-bit integers throughout to limit the memory of a worker to the pieces and the block.
    """
    begin, width = int(cut[0]), int(other[-1])
    weights: Array | None
    own, across, values, held, weights = _fields(pieces)
    own -= begin
    order = by_row(own, across, int(cut[1]) - begin, width)
    own, across, values, held = own[order], across[order], values[order], held[order]
    weights = None if weights is None else weights[order]
    new = _differ(own, across)
    repeated, example = new.size - int(new.sum()), None
    if repeated:
        again = int(np.argmin(new))
        example = int(own[again]) + begin, int(across[again])
        kind = "mean" if duplicates == "error" else duplicates
        values, weights = merged(values, weights, np.flatnonzero(new), kind)
        own, across, held = own[new], across[new], held[new]
    rows = np.arange(cut[1] - begin + 1, dtype=own.dtype)
    reached, neighbour = _among(across, other)
    starts = np.searchsorted(own, rows).astype(np.int64)
    return {
        "block": RatingBlock(starts, neighbour, values, held, weights), "reached": reached,
        "repeated": repeated, "example": example,
        "mark": _mark(own, across, values, begin, width),
    }  # fmt: skip


def _fields(pieces: list[Any]) -> list[Any]:
    """The columns of all pieces, without entries of weight 0."""
    fields = joined(pieces)
    if fields[-1] is None or fields[-1].min(initial=1.0) > 0:
        return fields
    counted = fields[-1] > 0
    return [field[counted] for field in fields]


def _differ(own: Indices, across: Indices) -> NDArray[np.bool_]:
    """Whether each sorted entry differs from the previous one."""
    new = np.ones(own.size, dtype=bool)
    np.not_equal(own[1:], own[:-1], out=new[1:])
    new[1:] |= across[1:] != across[:-1]
    return new


def _mark(own: Indices, across: Indices, values: Array, begin: int, width: int) -> float:
    """A checksum: the sum of the ratings with random weights of their positions."""
    mark = 0.0
    for start in range(0, own.size, MARKED):
        part = slice(start, start + MARKED)
        key = (own[part].astype(np.int64) + begin) * width + across[part]
        mark += float(values[part] @ chance(key, MARK))
    return mark


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


def _reached(made: dict[str, Any]) -> tuple[Indices, Indices]:
    return made["reached"], np.diff(made["block"].starts)


def _facts(made: dict[str, Any]) -> dict[str, Any]:
    block: RatingBlock = made["block"]
    values = block.values.astype(float)
    omega = np.ones(values.size) if block.weights is None else block.weights
    ends = (float(values.min()), float(values.max())) if values.size else (np.inf, -np.inf)
    return {
        "size": values.size, "total": float(omega @ values), "weight": float(omega.sum()),
        "span": ends, "repeated": made["repeated"], "example": made["example"],
        "mark": made["mark"],
    }  # fmt: skip


def _join_facts(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    summed = {name: a[name] + b[name] for name in ("size", "total", "weight", "repeated", "mark")}
    span = min(a["span"][0], b["span"][0]), max(a["span"][1], b["span"][1])
    return summed | {"span": span, "example": a["example"] or b["example"]}


def chance(keys: Indices, seed: int) -> Array:
    """A number in [0, 1) for each key, the same on every machine (SplitMix64)."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(float) * 2.0**-53
