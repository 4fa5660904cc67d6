"""Completion on a Dask cluster compared with ALS of Spark MLlib in local mode, on the same machine.

Both read the same Parquet files of MovieLens 1M, of which a tenth is held out at random, and use
two processes or cores. Predictions for unknown users or items are the mean rating, and all
predictions are clipped to [1, 5]. dask-ml has no matrix completion, so it is not compared.
"""

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._cluster import workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "Completion on a cluster: gramian compared with Spark MLlib's ALS"
PAPER = "Not from a paper"

CORES, FILES, PATIENCE = 2, 8, 900
SETTINGS = [
    {},
    {"rank": 10, "regParam": 0.05, "maxIter": 20},
    {"rank": 32, "regParam": 0.05, "maxIter": 20},
    {"rank": 64, "regParam": 0.05, "maxIter": 20},
]
"""Settings of Spark: the defaults (rank 10, λ = 0.1, 10 iterations) and others."""


def run(ctx: Context) -> Report:
    """Fit and evaluate both on MovieLens 1M (100K in a quick run)."""
    train, test = _split(ctx.arrays("movielens_100k" if ctx.quick else "movielens_1m"))
    table = Table("Ratings", ["method", "test RMSE", "seconds of a fit", "certified gap"])
    mean = float(train["rating"].mean())

    def rmse(predicted: Any) -> float:
        filled = np.clip(np.where(np.isnan(predicted), mean, predicted), 1, 5)
        return float(np.sqrt(np.mean((filled - test["rating"]) ** 2)))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "train"
        folder.mkdir()
        for k, part in enumerate(np.array_split(np.arange(len(train)), FILES)):
            train.iloc[part].to_parquet(folder / f"{k}.parquet")
        for label, predicted, seconds, gap in _ours(str(folder), test):
            table.add(label, rmse(predicted), seconds, gap)
        settings = SETTINGS[:2] if ctx.quick else SETTINGS
        answer = ctx.peer("spark_als", {
            "train": str(folder), "users": test["user"].to_numpy(),
            "items": test["item"].to_numpy(), "cores": CORES, "settings": settings,
        }, PATIENCE)  # fmt: skip
    for k, options in enumerate(settings):
        label = f"Spark ALS {options or 'defaults'}"
        if answer.error:
            table.add(label, answer.error, None, None)
            continue
        found = answer.value
        table.add(label, rmse(found[f"predicted_{k}"]), float(found[f"seconds_{k}"]), None)
    return ctx.report([table], [
        "gramian selects λ by held-out ratings, and its times include this selection; for Spark, λ "
        "is given. Times do not include the start of processes and imports: they are those of the "
        "second fit of each method."
    ])  # fmt: skip


def _split(arrays: dict[str, np.ndarray]) -> tuple[pd.DataFrame, pd.DataFrame]:
    whole = pd.DataFrame({
        "user": arrays["user"].astype(np.int32), "item": arrays["item"].astype(np.int32),
        "rating": arrays["rating"].astype(np.float64),
    })  # fmt: skip
    held = np.random.default_rng(0).random(len(whole)) < 0.1
    return whole[~held], whole[held]


def _ours(folder: str, test: pd.DataFrame) -> list[tuple[str, Any, float, float]]:
    import gramian.dask as gd

    rows = []
    with workers(CORES), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label, options in (
            ("gramian.dask.NuclearCompletion()", {}),
            ("gramian.dask.NuclearCompletion(rank=32)", {"rank": 32}),
        ):
            gd.NuclearCompletion(**options).fit(folder)
            started = time.perf_counter()
            model = gd.NuclearCompletion(**options).fit(folder)
            seconds = time.perf_counter() - started
            predicted = model.predict(test[["user", "item"]])
            rows.append((label, predicted, seconds, model.certificate_.relative_gap))
    return rows
