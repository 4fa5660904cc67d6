"""Ratings on their way to the blocks of users or of items that they belong to.

Where a side has few blocks a partition is cut into all of them at once. Where it has K of them,
many, it is first cut into about √K groups of neighbouring blocks; the groups of several partitions
are put together, as many as a block has ratings, and cut again. That makes n√K pieces instead of
nK, and a partition that lies on disk is read about 2√K times instead of 2K.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.cpu import counting_sort
from gramian.dask._cluster import Cluster

Indices = NDArray[np.integer]

AT_ONCE = 16
"""Blocks that a partition is cut into in one step."""

Entries = tuple[Any, ...]
"""Own index, index across, value, whether it is held out, and weight or None, as arrays."""


def groups_of(cuts: Indices) -> Indices:
    """Where groups of blocks begin, about as many as each has blocks; the blocks where few."""
    count = cuts.size - 1
    if count <= AT_ONCE:
        return cuts
    groups = int(np.ceil(np.sqrt(count)))
    return cuts[np.linspace(0, count, groups + 1).round().astype(int)]


def divided(entries: Entries, cuts: Indices) -> list[Entries]:
    """The entries by the block that they are in, in their order there."""
    place = np.asarray(np.searchsorted(cuts, entries[0], side="right") - 1, dtype=np.int32)
    order = counting_sort(place, cuts.size - 1)[1]
    ends = np.searchsorted(place[order], np.arange(1, cuts.size - 1))
    return [tuple(None if field is None else field[k] for field in entries)
            for k in np.split(order, ends)]  # fmt: skip


def joined(pieces: list[Entries]) -> list[Any]:
    """The fields of all pieces, one below another."""
    return [None if parts[0] is None else np.concatenate(parts)
            for parts in zip(*pieces, strict=True)]  # fmt: skip


class Parts:
    """The pieces of every partition, by side and group: futures on the workers."""

    def __init__(
        self, cluster: Cluster, split: list[Any], cuts: list[Indices], groups: list[Indices]
    ) -> None:
        self.cluster, self.cuts, self.groups = cluster, cuts, groups
        self.pieces = [self._of_partition(one) for one in split]

    def _of_partition(self, split: Any) -> list[list[Any]]:
        """What is asked for first is done first: a worker forgets the whole of a partition before
        it reads the next.
        """
        counts = [groups.size - 1 for groups in self.groups]
        places = [(side, k) for side in (0, 1) for k in range(counts[side])]
        sides, blocks = map(list, zip(*places, strict=True))
        nodes = self.cluster.each("piece", _piece_of_side, [split] * len(places), sides, blocks)
        kept = self.cluster.keep(nodes)
        return [kept[: counts[0]], kept[counts[0] :]]

    def of_side(self, side: int, batch: int) -> Iterator[list[Any]]:
        """For each block its pieces, in the order of the partitions, `batch` of which are put
        together; a group is given up as its pieces are.
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
    """Copies: views would keep all that was read with them in memory, uncounted."""
    return tuple(None if field is None else field.copy() for field in parts[k])
