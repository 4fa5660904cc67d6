"""Passes over ratings, distances and triplets against the bytes that they move.

    python -m benchmarks.passes [--threads 1 4 16] [--ranks 8 16 32 64 128 256]

A pass is what one step of a first-order method takes of the data: the image of a factor, and the
gradient of all its rows. Each rating (pair, triplet) reads the rows of the factor that it names,
once for its value and once for either end of the gradient; with the indices and numbers that go
along those are the bytes. The bandwidth is that of a copy of 256 MB in the same process, read and
written: rows that are found in a cache come faster, and a share above 1 says so.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.context import Context
from benchmarks.harness.machine import cores
from benchmarks.harness.report import Report, Table
from benchmarks.harness.timing import in_child
from benchmarks.threads import repeated

TITLE = "Passes over data against the bytes they move"
PAPER = "No table of a paper"

COUNTS = (1, 2, 4, 8, 16)
RANKS = (8, 16, 32, 64, 128, 256)
KINDS = ("ratings", "distances", "triplets")
PRECISIONS = ("float64", "float32")
SIZE = 10**6
COLUMNS = ["pass", "rank", "threads", "float64, s", "float32, s", "float32 / float64",
           "float64, GB/s", "copy, GB/s", "share of the copy"]  # fmt: skip


def run(ctx: Context) -> Report:
    """All passes, with as many threads as there are cores and fewer."""
    counts = [count for count in COUNTS if count <= cores()]
    ranks = RANKS[:2] if ctx.quick else RANKS
    table = Table(f"{SIZE:,} ratings, pairs and triplets", COLUMNS)
    for kind in KINDS:
        for rank in ranks:
            for count in counts[:1] if ctx.quick else counts:
                table.add(*measured(kind, rank, count))
    return ctx.report([table], [f"{cores()} cores."])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for and print a line for each pass."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--threads", nargs="+", type=int, default=list(COUNTS))
    parser.add_argument("--ranks", nargs="+", type=int, default=list(RANKS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args(argv)
    print(*COLUMNS, sep="  ")
    for kind in options.kinds:
        for rank in options.ranks:
            for count in options.threads:
                if count <= cores():
                    told = measured(kind, rank, count)
                    print(*(f"{x:.4g}" if isinstance(x, float) else x for x in told), sep="  ",
                          flush=True)  # fmt: skip
    return 0


def measured(kind: str, rank: int, threads: int) -> list[Any]:
    """A row of the table, in a process of its own with so many threads."""
    told = {"kind": kind, "rank": rank}
    double, single, copy, moved = in_child("benchmarks.passes:seconds", told, threads=threads).value
    speed = moved / double / 1e9
    return [kind, rank, threads, double, single, single / double, speed, copy, speed / copy]


def seconds(kind: str, rank: int) -> list[float]:
    """Those of the pass in both precisions, the bandwidth of a copy, and the bytes moved."""
    map, bytes_of = MAPS[kind]()
    L = np.random.default_rng(1).standard_normal((map.order, rank))
    taken = [repeated(_pass(map, L.astype(kind))) for kind in PRECISIONS]
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

    pairs = _pairs(np.random.default_rng(0), 20_000)
    return PairDistances(pairs, 20_000), lambda rank: SIZE * (4 * 8 * rank + 8 + 8 + 2 * 16)


def _triplets() -> tuple[Any, Callable[[int], float]]:
    """A million triplets of 20,000 points, two distances each."""
    from gramian.maps import triplet_margins

    rng = np.random.default_rng(0)
    triplets = np.column_stack([_pairs(rng, 20_000), rng.integers(0, 20_000, SIZE)])
    whole = (triplets[:, 2] != triplets[:, 0]) & (triplets[:, 2] != triplets[:, 1])
    map = triplet_margins(triplets[whole], 20_000)
    pairs = map.base.size
    return map, lambda rank: pairs * (4 * 8 * rank + 8 + 8 + 2 * 16) + 2 * 24 * map.size


def _pairs(rng: np.random.Generator, n: int) -> np.ndarray:
    first = rng.integers(0, n, SIZE)
    return np.column_stack([first, (first + rng.integers(1, n, SIZE)) % n])


MAPS = {"ratings": _ratings, "distances": _distances, "triplets": _triplets}


if __name__ == "__main__":
    raise SystemExit(main())
