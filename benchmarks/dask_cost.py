"""What a sweep of a completion costs on a cluster: bytes, tasks and seconds, and where it ends.

Factors stay on the workers: a half-sweep's task takes the blocks of the other side from those who
have them. With m users and n items, rank r, offsets, numbers of b = 4 bytes, B_u and B_i blocks, a
sweep has

    2 B_u + 3 B_i   tasks   and moves   8 (B_u + B_i)   bytes to the driver,

its part of F for each block; workers receive up to (m + n)(r + 1) b bytes each. Every eighth sweep
a state is planted anew, by way of the driver (2 (m + n)(r + 1) b bytes, B_u + B_i tasks) unless it
is written to a folder. Measured on one machine with a worker of one thread beside one thread at
home. The table for large clusters is that formula with the processor seconds of a rating, of a task
and of a byte measured here, and 10 Gbit/s for a link.
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
from gramian.objectives.halves import halves_of

TITLE = "A cluster: the cost of a sweep, measured and by formula"
PAPER = "Not from a paper"

SHAPE, RATINGS, FILES = (60_000, 4_000), 10_000_000, 10
QUICK_SHAPE, QUICK_RATINGS = (3_000, 600), 200_000
RANK, SWEEPS, BYTES = 32, 8, 4
FEWER = 10
"""A whole fit is measured with so many times fewer ratings, too."""
NETWORK = 10e9 / 8
"""Bytes a second of a link."""
TASKS, MEGABYTES = 2000, 32
"""Empty tasks, and the size of an array, to measure the seconds of a task and of a byte by."""
BLOCK = 4_000_000
"""Ratings of a block."""
LARGE = ((1e9, 1e7), (1e10, 1e8))
"""Ratings, and users and items together."""


def run(ctx: Context) -> Report:
    """One worker beside the sweeps and a fit at home, then the table by formula."""
    shape, count = (QUICK_SHAPE, QUICK_RATINGS) if ctx.quick else (SHAPE, RATINGS)
    measured = Table("One worker beside home, one thread each",
                     ["what", "ratings", "seconds there", "at home", "ratio",
                      "processor seconds there", "at home, processor", "ratio of those"],
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        files = rating_files(folder / "sweeps", *shape, count, FILES)
        fewer = rating_files(folder / "fits", *shape, count // FEWER, FILES)
        home = _home(_read(files))
        with workers(1) as client:
            there = _there(client, files)
            costs = _costs()
        measured.add(f"a sweep at rank {RANK}", there["size"], *_beside(there["sweep"], home))
        with workers(1, driver=True) as client:
            _fit(_dask(), fewer)  # what is compiled is there after it
            for some in (fewer, files):
                measured.add(f"a fit, rank={RANK}", *_fits(client, some))
    moved = Table("A sweep: what moves", ["what", "measured", "by formula"])
    moved.add("MB through the driver", there["moved"] / 1e6, there["formula"] / 1e6)
    moved.add("tasks", there["tasks"], there["formula tasks"])
    moved.add("milliseconds of a task without work", 1e3 * costs["task"], None)
    moved.add("nanoseconds of a byte", 1e9 * costs["byte"], None)
    rate = there["sweep"][1] / there["size"]
    return ctx.report([measured, moved, _large(rate, costs)], [
        "Processor seconds are those of the driver and the worker together: other work on the "
        "machine does not change them. Those of a task and of a byte are of the process that has "
        "driver and scheduler in it. Compute falls with the workers; what each of them receives, "
        "and the tasks that the scheduler hands out, do not, nor does what the driver sends and "
        "receives, which is 0 where factors are written to a folder. Sweeps stop scaling at about "
        "as many workers as the last column says: there both take as long."
    ])  # fmt: skip


def _large(rate: float, costs: dict[str, float]) -> Table:
    """Seconds of a sweep by formula."""
    table = Table(
        f"By formula: seconds a sweep at rank {RANK}",
        ["ratings", "users + items", "workers", "compute", "to each worker", "tasks", "driver",
         "total", "scales to about, workers"],
    )  # fmt: skip
    for ratings, rows in LARGE:
        received = rows * (RANK + 1) * BYTES * (1 / NETWORK + costs["byte"])
        driver = 2 * received / SWEEPS
        tasks = 5 * ratings / BLOCK * costs["task"]
        most = ratings * rate / (received + driver + tasks)
        for count in (10, 100, 1000):
            compute = ratings * rate / count
            total = compute + received + driver + tasks
            table.add(ratings, rows, count, compute, received, tasks, driver, total, round(most))
    return table


def _costs() -> dict[str, float]:
    """Processor seconds of driver and scheduler for a task that does nothing, and for a byte."""
    from gramian.dask._cluster import Cluster

    cluster = Cluster()
    cluster.gather(cluster.each("nothing", float, list(range(10))))
    numbers = list(range(TASKS))
    task = _spent(None, lambda: cluster.gather(cluster.each("nothing", float, numbers)))[1] / TASKS
    data = np.random.default_rng(0).random(MEGABYTES * 125_000)
    byte = _spent(None, lambda: cluster.gather(cluster.each("turned", np.negative, [data])))[1]
    return {"task": task, "byte": byte / (2 * data.nbytes)}


def _dask() -> Any:
    import gramian.dask as gd

    return gd


def _fit(where: Any, ratings: Any) -> None:
    """A fit from the files, or from a frame in memory, the λ given."""
    where.NuclearCompletion(lam=20.0, rank=RANK, duplicates="mean").fit(ratings)


def _fits(client: Any, files: str) -> list[float]:
    """Ratings, and what a fit of them costs there and at home."""
    there = _spent(client, lambda: _fit(_dask(), files))
    frame = _read(files)
    return [len(frame), *_beside(there, _spent(None, lambda: _fit(gm.completion, frame)))]


def _spent(client: Any, work: Any, times: int = 1) -> tuple[float, float]:
    """Seconds, and processor seconds of the driver and of workers."""

    def used() -> float:
        return time.process_time() + (
            0.0 if client is None else sum(client.run(time.process_time).values())
        )

    before, started = used(), time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - started) / times, (used() - before) / times


def _beside(there: tuple[float, float], home: tuple[float, float]) -> list[float]:
    return [there[0], home[0], there[0] / home[0], there[1], home[1], there[1] / home[1]]


def _there(client: Any, files: str) -> dict[str, Any]:
    from gramian.dask._cluster import Cluster
    from gramian.dask._completion import Completed, CompletionModel
    from gramian.dask._store import given_ratings, store

    cluster = Cluster()
    rated = store(given_ratings(cluster, files), duplicates="mean")
    m, n = rated.shape
    model = CompletionModel(rated.mean, 5.0, np.ones(m), np.ones(n))
    halves = halves_of(Completed(rated, model, 20.0), np.float32)
    state = halves.scattered(np.random.default_rng(0), RANK)
    _sweep(halves, state)
    blocks = len(rated.users.blocks) + len(rated.items.blocks)
    before = cluster.traffic.moved, cluster.traffic.tasks
    spent = _spent(client, lambda: _sweep(halves, state), SWEEPS)
    return {
        "size": rated.size,
        "sweep": spent,
        "moved": (cluster.traffic.moved - before[0]) / SWEEPS,
        "formula": 8 * blocks + 2 * (m + n) * (RANK + 1) * BYTES / SWEEPS,
        "tasks": (cluster.traffic.tasks - before[1]) / SWEEPS,
        "formula tasks": 2 * blocks + len(rated.items.blocks) + blocks / SWEEPS,
    }


def _sweep(halves: Any, state: Any) -> None:
    halves.refit_upper(state, 3)
    halves.refit_lower(state, 3)


def _read(files: str) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(f) for f in sorted(Path(files).parent.glob("*.parquet"))])


def _home(frame: pd.DataFrame) -> tuple[float, float]:
    frame = frame.groupby(["user", "item"], as_index=False)["rating"].mean()
    rows, cols = (np.unique(frame[name], return_inverse=True)[1] for name in ("user", "item"))
    m, n = int(rows.max()) + 1, int(cols.max()) + 1
    values = frame["rating"].to_numpy()
    problem = gm.problems.nuclear_completion(
        rows, cols, values - values.mean(), (m, n), 20.0, ridge=5.0
    )
    halves = halves_of(problem.objective, np.float32)
    state = np.zeros((m + n, RANK + 1), dtype=np.float32)
    state[m:, :-1] = np.random.default_rng(0).standard_normal((n, RANK), dtype=np.float32)
    _sweep(halves, state)
    return _spent(None, lambda: _sweep(halves, state), SWEEPS)
