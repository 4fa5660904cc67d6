"""A completion whose factor is larger than what the driver may use: it stays on the workers.

A fit of given λ and rank, its factors kept in a folder and the driver's memory limited to what it
has and half the factor's bytes. Reported: the bytes of the factor, by how much the driver's process
grew at most (looked at twenty times a second), seconds, the certified gap, and the error of
predictions for a file of the ratings.
"""

import resource
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._cluster import rating_files, workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "A cluster: a factor larger than the driver's memory"
PAPER = "Not from a paper"

FULL = {"users": 500_000, "items": 500, "ratings": 1_000_000, "rank": 128}
QUICK = {"users": 20_000, "items": 300, "ratings": 200_000, "rank": 64}
WORKERS, LOOK = 2, 0.05
LARGE = 5e8
"""Bytes of a factor from which the driver is limited: below it threads and compiled code count."""


def run(ctx: Context) -> Report:
    """One fit, its factors in a folder."""
    sizes = QUICK if ctx.quick else FULL
    table = Table("One fit", ["users + items", "rank", "MB of the factor",
                              "MB that the driver may add", "MB that it added", "seconds",
                              "relative gap", "RMSE"])  # fmt: skip
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        files = rating_files(
            folder / "ratings", sizes["users"], sizes["items"], sizes["ratings"], 6
        )
        with workers(WORKERS):
            table.add(*_measured(files, sizes, folder / "factors"))
    return ctx.report([table], ["The driver and the scheduler are one process here."])


def _measured(files: str, sizes: dict[str, int], kept: Path) -> list[Any]:
    import gramian.dask as gd

    rows, rank = sizes["users"] + sizes["items"], sizes["rank"]
    size = 8 * rows * rank
    allowed = None if size < LARGE else size // 2
    model = gd.NuclearCompletion(lam=4.0, rank=rank, duplicates="mean", random_state=0)
    started = time.perf_counter()
    with _limited(allowed), _growth() as grown:
        model.fit(files, factors=kept)
    seconds = time.perf_counter() - started
    part = pd.read_parquet(sorted(Path(files).parent.glob("*.parquet"))[0])
    error = model.predict(part[["user", "item"]]) - part["rating"]
    rmse = np.sqrt(np.mean(np.square(error)))
    return [
        rows, model.result_.factor.shape[1], size / 1e6,
        None if allowed is None else allowed / 1e6, max(grown) / 1e6, seconds,
        model.certificate_.relative_gap, float(rmse),
    ]  # fmt: skip


@contextmanager
def _limited(more: int | None) -> Iterator[None]:
    """A limit on the memory that this process takes, beside what it has."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    if more is not None:
        status = Path("/proc/self/status").read_text()
        used = next(int(line.split()[1]) for line in status.splitlines() if "VmData" in line)
        resource.setrlimit(resource.RLIMIT_DATA, (1024 * used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@contextmanager
def _growth() -> Iterator[list[int]]:
    """By how much this process is larger than now, at every look."""
    import psutil

    process, grown, done = psutil.Process(), [0], threading.Event()
    first = process.memory_info().rss

    def look() -> None:
        while not done.wait(LOOK):
            grown.append(process.memory_info().rss - first)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield grown
    finally:
        done.set()
        watcher.join()
