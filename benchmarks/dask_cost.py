"""What a sweep of a completion costs on a cluster: bytes, tasks and seconds, and where it ends.

A half-sweep sends the state of one side, (m or n)(r + 1) numbers, to every worker that has a block,
and takes that of the other side home: with W workers and numbers of b bytes, a sweep moves

    (W + 1)(m + n)(r + 1) b   bytes over the network,   (m + n)(r + 1) 2b   of them by the driver,

beside one task for each block and one for each piece of the state. Measured on one machine; the
table for large clusters is the formula with the seconds of a rating measured here, 10 Gbit/s for
the driver, and 1 ms of the scheduler for a task.
"""

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gramian as gm
from benchmarks._cluster import rating_files, workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "A cluster: the cost of a sweep, measured and by formula"
PAPER = "No table of a paper"

SHAPE, RATINGS, FILES = (60_000, 6_000), 10_000_000, 20
QUICK_SHAPE, QUICK_RATINGS = (3_000, 600), 200_000
RANK, SWEEPS, BYTES = 32, 3, 4
NETWORK, TASK = 10e9 / 8, 1e-3
"""Bytes a second of a link, and seconds of the scheduler for a task."""
ENTRIES = 4_000_000
"""Ratings of a block."""


def run(ctx: Context) -> Report:
    """One worker beside the sweeps at home, then the table by formula."""
    shape, count = (QUICK_SHAPE, QUICK_RATINGS) if ctx.quick else (SHAPE, RATINGS)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = rating_files(Path(folder), *shape, count, FILES)
        with workers(1) as client:
            there = _there(client, files)
        home = _home(files)
    measured = Table(
        "One worker", ["ratings", "seconds a sweep there", "at home", "ratio",
                       "MB by the driver a sweep", "by formula", "tasks a sweep"],
    )  # fmt: skip
    measured.add(
        there["size"], there["seconds"], home, there["seconds"] / home, there["moved"] / 1e6,
        there["formula"] / 1e6, there["tasks"],
    )  # fmt: skip
    rate = home / there["size"]
    large = Table(
        "By formula: seconds a sweep at rank 32",
        ["ratings", "users + items", "workers", "compute", "driver's network", "tasks", "total"],
    )
    for ratings, rows in ((1e9, 1e7), (1e10, 1e8)):
        for count in (10, 100, 1000):
            large.add(ratings, rows, count, *_predicted(ratings, rows, count, rate))
    return ctx.report([measured, large], [
        "Compute falls with the workers, what the driver sends and receives does not: sweeps stop "
        "scaling where the state of all users and items takes as long on its link as the ratings "
        "do on the workers."
    ])  # fmt: skip


def _predicted(ratings: float, rows: float, workers: int, rate: float) -> list[float]:
    compute = ratings * rate / workers
    network = 2 * rows * (RANK + 1) * BYTES / NETWORK
    tasks = 2 * TASK * max(ratings / ENTRIES, 1) * 2
    return [compute, network, tasks, compute + network + tasks]


def _there(client: Any, files: str) -> dict[str, float]:
    from gramian.dask._cluster import Cluster
    from gramian.dask._completion import Completed, Model
    from gramian.dask._ratings import store

    cluster = Cluster()
    rated = store(cluster, files, duplicates="mean")
    m, n = rated.shape
    halves = Completed(rated, Model(rated.mean, 5.0, np.ones(m), np.ones(n)), 20.0).halves("f4")
    state = halves.scattered(np.random.default_rng(0), RANK)
    halves.refit_upper(state, 3)
    halves.refit_lower(state, 3)
    before = cluster.traffic.moved, cluster.traffic.tasks
    started = time.perf_counter()
    for _ in range(SWEEPS):
        halves.refit_upper(state, 3)
        halves.refit_lower(state, 3)
    return {
        "size": rated.size,
        "seconds": (time.perf_counter() - started) / SWEEPS,
        "moved": (cluster.traffic.moved - before[0]) / SWEEPS,
        "formula": 2 * (m + n) * (RANK + 1) * BYTES,
        "tasks": (cluster.traffic.tasks - before[1]) / SWEEPS,
    }


def _home(files: str) -> float:
    frame = pd.concat([pd.read_parquet(f) for f in sorted(Path(files).parent.glob("*.parquet"))])
    frame = frame.groupby(["user", "item"], as_index=False)["rating"].mean()
    rows, cols = (np.unique(frame[name], return_inverse=True)[1] for name in ("user", "item"))
    m, n = int(rows.max()) + 1, int(cols.max()) + 1
    values = frame["rating"].to_numpy()
    problem = gm.problems.nuclear_completion(
        rows, cols, values - values.mean(), (m, n), 20.0, ridge=5.0
    )
    halves = problem.objective.halves(np.float32)
    state = np.zeros((m + n, RANK + 1), dtype=np.float32)
    state[m:, :-1] = np.random.default_rng(0).standard_normal((n, RANK), dtype=np.float32)
    halves.refit_upper(state, 3)
    halves.refit_lower(state, 3)
    started = time.perf_counter()
    for _ in range(SWEEPS):
        halves.refit_upper(state, 3)
        halves.refit_lower(state, 3)
    return (time.perf_counter() - started) / SWEEPS
