"""Data several times as large as all workers together: moments, sweeps, and a fit to a gap.

Samples are generated block by block and ratings are read from Parquet; one or two workers run, each
with a limit of memory, beyond which it would be killed. Reported: the bytes of the data as arrays
(8 for a number, 24 for a rating) beside the workers' limit, the largest memory of a worker process
so far, seconds, and the certificate.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._cluster import rating_files, workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "A cluster: data larger than its memory"
PAPER = "Not from a paper"

LIMIT = 1000
"""Megabytes of a worker."""
FEATURES, BLOCK = 50, 125_000
GAP, RANK = 1e-2, 16
NOISE = 1.2
"""λ by both roots of counts. Noise and rounding have a deviation of 0.53, but popular items have
many times the mean count: with 0.55 a tenth of these ratings has a rank of 86, with this one of 6,
where 4 were planted."""

FULL = {
    "samples": 20_000_000,
    "stored": (100_000_000, 480_000, 17_770),
    "fitted": (20_000_000, 100_000, 4_000),
}
QUICK = {
    "samples": 1_000_000,
    "stored": (1_000_000, 10_000, 1_000),
    "fitted": (300_000, 4_000, 500),
}
"""Samples; ratings, users and items of one sweep and of a fit."""

BUDGET, SHORT = 1000.0, 240.0
"""Seconds for all of it: the last fit ends with the gap that it has then, but has four minutes."""

FILE = 1_000_000
"""Ratings of a file."""


def run(ctx: Context) -> Report:
    """Moments of samples, one sweep over ratings, and the same ratings to a gap of 1e-2."""
    sizes: dict[str, Any] = QUICK if ctx.quick else FULL
    table = Table("Memory", ["what", "data MB", "workers' limit MB", "times", "largest worker MB",
                             "seconds", "certified gap"])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        for step, count in ((_alignment, 2), (_sweep, 1), (_fit, 2)):
            sizes["left"] = BUDGET - (time.perf_counter() - started)
            with workers(count, memory=f"{LIMIT}MB") as client:
                for name, size, seconds, gap in step(sizes, Path(folder)):
                    row = (name, size / 1e6, count * LIMIT, size / 1e6 / count / LIMIT,
                           _largest(client), seconds, gap)  # fmt: skip
                    print(row, file=sys.stderr, flush=True)
                    table.add(*row)
    return ctx.report([table], [
        "Samples never lie anywhere as a whole: a block is generated, summed up and forgotten. "
        "Ratings are stored twice, 13 bytes each, on the workers' disks beyond their memory."
    ])  # fmt: skip


def _alignment(sizes: dict[str, Any], folder: Path) -> Any:
    """KTA: one pass over the moments, and its certificate."""
    import dask.array as da

    import gramian.dask as gd

    rows = sizes["samples"]
    X = da.random.RandomState(0).normal(size=(rows, FEATURES), chunks=(BLOCK, FEATURES))
    y = (X[:, 0] > 0).astype(int)
    started = time.perf_counter()
    model = gd.KTA(lam=1e-12).fit(X, y)
    seconds = time.perf_counter() - started
    yield f"KTA, {rows:,} samples", 8 * rows * FEATURES, seconds, model.certificate_.relative_gap


def _sweep(sizes: dict[str, Any], folder: Path) -> Any:
    """Ratings read and stored by users and by items with their moments; one sweep."""
    from gramian.dask._cluster import Cluster
    from gramian.dask._completion import Completed, CompletionModel
    from gramian.dask._store import given_ratings, store
    from gramian.objectives.halves import halves_of

    count, users, items = sizes["stored"]
    files = rating_files(folder / "stored", users, items, count, max(4, count // FILE))
    started = time.perf_counter()
    rated = store(given_ratings(Cluster(), files), duplicates="mean")
    rated.split(None, 0.1)
    size = 24 * rated.size
    yield f"read and stored, {rated.size:,} ratings", size, time.perf_counter() - started, None
    started = time.perf_counter()
    model = CompletionModel(rated.mean, 5.0, np.ones(rated.shape[0]), np.ones(rated.shape[1]))
    halves = halves_of(Completed(rated, model, 20.0), np.float32)
    state = halves.scattered(np.random.default_rng(0), RANK)
    halves.refit_upper(state, 3)
    halves.refit_lower(state, 3)
    yield f"one sweep at rank {RANK}", size, time.perf_counter() - started, None


def _fit(sizes: dict[str, Any], folder: Path) -> Any:
    """A completion to a certified gap."""
    import gramian.dask as gd

    count, users, items = sizes["fitted"]
    files = rating_files(folder / "fitted", users, items, count, max(4, count // FILE))
    started = time.perf_counter()
    lam = NOISE * float(np.sqrt(count / users) + np.sqrt(count / items))
    limit = max(sizes["left"], SHORT)
    model = gd.NuclearCompletion(lam=lam, tol=GAP, duplicates="mean", time_limit=limit).fit(files)
    seconds = time.perf_counter() - started
    name = f"NuclearCompletion to {GAP:g}, {count:,} ratings"
    yield name, 24 * count, seconds, model.certificate_.relative_gap


def _largest(client: Any) -> float:
    return max(client.run(_peak).values())


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
