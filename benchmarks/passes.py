"""Passes over ratings, distances and triplets, relative to the bytes that they move.

A pass computes the image of a factor and the gradient of all its rows. Each rating (pair, triplet)
reads the rows of the factor that it names, once for its value and once for each end of the
gradient; these rows, the indices and the numbers are the bytes. The bandwidth is that of a copy of
256 MB in the same process, read and written: rows in a cache are faster, so a share can exceed 1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.context import Context
from benchmarks.harness.machine import cores
from benchmarks.harness.report import Report, Table
from benchmarks.threads import COUNTS, repeated

TITLE = "Passes over data against the bytes they move"
PAPER = "Not from a paper"

RANKS = (8, 16, 32, 64, 128, 256)
SIZE, POINTS = 10**6, 20_000
COLUMNS = ["pass", "rank", "threads", "float64, s", "float32, s", "float32 / float64",
           "float64, GB/s", "copy, GB/s", "share of the copy"]  # fmt: skip


def run(ctx: Context) -> Report:
    """All passes, for each number of threads."""
    table = Table(f"{SIZE:,} ratings, pairs and triplets", COLUMNS)
    for kind in MAPS:
        for rank in ctx.pick(RANKS, RANKS[:2]):
            for count in ctx.pick(COUNTS, COUNTS[:1]):
                given = {"kind": kind, "rank": rank}
                double, single, copy, moved = ctx.in_child(seconds, given, threads=count).value
                speed = moved / double / 1e9
                cells = double, single, single / double, speed, copy, speed / copy
                table.add(kind, rank, count, *cells)
    return ctx.report([table], [f"{cores()} cores."])


def seconds(kind: str, rank: int) -> list[float]:
    """Seconds of the pass in both precisions, the bandwidth of a copy, and the bytes moved."""
    map, bytes_of = MAPS[kind]()
    L = np.random.default_rng(1).standard_normal((map.order, rank))
    taken = [repeated(_pass(map, L.astype(kind))) for kind in ("float64", "float32")]
    big = np.ones(2**25)
    other = np.empty_like(big)
    copy = 2 * big.nbytes / repeated(lambda: np.copyto(other, big)) / 1e9
    return [*taken, copy, float(bytes_of(rank) + 4 * L.nbytes)]


def _pass(map: Any, L: np.ndarray) -> Callable[[], Any]:
    return lambda: map.adjoint(map.bilinear(L, L), L)


def _ratings() -> tuple[Any, Callable[[int], float]]:
    """A million ratings of 6,040 users and 3,706 items."""
    from gramian.maps import BlockEntries

    rng, shape = np.random.default_rng(0), (6040, 3706)
    rows, cols = np.sort(rng.integers(0, shape[0], SIZE)), rng.integers(0, shape[1], SIZE)
    map = BlockEntries(rows, cols, shape)
    return map, lambda rank: SIZE * (3 * 8 * rank + 8 + 8 + 16 + 16)


def _distances() -> tuple[Any, Callable[[int], float]]:
    """A million pairs of 20,000 points."""
    from gramian.maps import PairDistances

    pairs = _pairs(np.random.default_rng(0))
    return PairDistances(pairs, POINTS), lambda rank: SIZE * (4 * 8 * rank + 8 + 8 + 2 * 16)


def _triplets() -> tuple[Any, Callable[[int], float]]:
    """A million triplets of 20,000 points, two distances each."""
    from gramian.maps import triplet_margins

    rng = np.random.default_rng(0)
    i, j, l = *_pairs(rng).T, rng.integers(0, POINTS, SIZE)
    map = triplet_margins(np.column_stack([i, j, l])[(l != i) & (l != j)], POINTS)
    pairs = map.base.size
    return map, lambda rank: pairs * (4 * 8 * rank + 8 + 8 + 2 * 16) + 2 * 24 * map.size


def _pairs(rng: np.random.Generator) -> np.ndarray:
    first = rng.integers(0, POINTS, SIZE)
    return np.column_stack([first, (first + rng.integers(1, POINTS, SIZE)) % POINTS])


MAPS = {"ratings": _ratings, "distances": _distances, "triplets": _triplets}
