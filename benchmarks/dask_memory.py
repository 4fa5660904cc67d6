"""Data several times as large as all workers together: moments, and a completion to a gap.

Samples are generated block by block and ratings are read from Parquet; a worker has a limit of
memory and two of them run. Reported: the bytes of the data beside the workers' limit, the largest
memory of a worker process, seconds, and the certificate.
"""

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
PAPER = "No table of a paper"

LIMIT, BYTES = "1GB", 10**9
QUICK_LIMIT, QUICK_BYTES = "700MB", 7 * 10**8
WORKERS = 2
FEATURES, BLOCK = 50, 125_000
RATINGS, SHAPE, FILES, GAP = 20_000_000, (100_000, 4_000), 40, 1e-2
QUICK_RATINGS, QUICK_SHAPE = 300_000, (4_000, 500)


def run(ctx: Context) -> Report:
    """The moments of samples four times as large as the workers, and ratings to a gap of 1e-2."""
    import dask.array as da

    import gramian.dask as gd

    limit, bytes_each = (QUICK_LIMIT, QUICK_BYTES) if ctx.quick else (LIMIT, BYTES)
    ratings, shape = (QUICK_RATINGS, QUICK_SHAPE) if ctx.quick else (RATINGS, SHAPE)
    wanted = (1 if ctx.quick else 4) * WORKERS * bytes_each
    rows = int(wanted // (8 * FEATURES * BLOCK) + 1) * BLOCK
    table = Table(
        "Memory", ["fit", "data MB", "workers' limit MB", "largest worker MB", "seconds", "gap"]
    )
    allowed = WORKERS * bytes_each / 1e6
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = rating_files(Path(folder), *shape, ratings, FILES)
        with workers(WORKERS, memory=limit) as client:
            X = da.random.RandomState(0).normal(size=(rows, FEATURES), chunks=(BLOCK, FEATURES))
            y = (X[:, 0] > 0).astype(int)
            for name, size, fit in (
                ("alignment", rows * FEATURES * 8, lambda: gd.KTA(lam=1e-12).fit(X, y)),
                ("completion", 24 * ratings, lambda: gd.NuclearCompletion(
                    lam=0.5 * np.sqrt(ratings / shape[1]), tol=GAP, duplicates="mean").fit(files)),
            ):  # fmt: skip
                started = time.perf_counter()
                model = fit()
                seconds = time.perf_counter() - started
                gap = model.certificate_.relative_gap
                table.add(name, size / 1e6, allowed, _largest(client), seconds, gap)
    return ctx.report([table], [
        "Samples never lie anywhere as a whole: a block is generated, summed up and forgotten. "
        "Ratings are stored twice, 12 bytes each, and spilled to disk beyond the limit."
    ])  # fmt: skip


def _largest(client: Any) -> float:
    return max(client.run(_peak).values())


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
