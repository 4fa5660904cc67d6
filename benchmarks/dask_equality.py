"""The estimators on 1, 2 and 4 worker processes against those at home, and against themselves.

For each: F on the cluster and at home, the certified gap, whether the two differ by more than the
gaps allow, and whether a second fit on the same cluster has the same bits.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import gramian as gm
from benchmarks._cluster import ratings_of, workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "A cluster: the same optimum on 1, 2 and 4 worker processes"
PAPER = "No table of a paper"

COLUMNS = ["estimator", "workers", "F there", "F at home", "gap there", "within the gaps",
           "same bits again", "seconds there", "at home"]  # fmt: skip


def run(ctx: Context) -> Report:
    """Every estimator on clusters of 1, 2 and 4 processes."""
    counts = (2,) if ctx.quick else (1, 2, 4)
    table = Table("Equality", COLUMNS)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cases = _cases(Path(folder), ctx.quick)
        home = {name: _timed(fit) for name, (_, fit) in cases.items()}
        for count in counts:
            with workers(count):
                for name, (there, _) in cases.items():
                    table.add(name, count, *_compared(there, *home[name]))
    return ctx.report([table], ["Small data on purpose: rounds of tasks are most of the seconds."])


def _cases(folder: Path, quick: bool) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """A fit on the cluster and one at home, by name."""
    import dask.array as da

    import gramian.dask as gd

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    sharded = da.from_array(X, chunks=(45, X.shape[1]))
    triplets = X[gm.constraints.random_triplets(y, 400, random_state=0)]
    blocks = da.from_array(triplets, chunks=(100, 3, X.shape[1]))
    ratings = ratings_of(0, 600, 120, 20_000)
    signs = ratings.assign(rating=np.where(ratings["rating"] > 3, 1.0, -1.0))
    stars, marks = _files(folder / "stars", ratings), _files(folder / "signs", signs)
    moons, halves = make_moons(300, noise=0.08, random_state=0)
    labels = np.where(np.arange(300) < 20, halves, -1)
    points = da.from_array(moons, chunks=(100, 2))
    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "KTA": (lambda: gd.KTA().fit(sharded, y), lambda: gm.metric.KTA().fit(X, y)),
        "LinearSeparation": (
            lambda: gd.LinearSeparation().fit(sharded, y),
            lambda: gm.metric.LinearSeparation().fit(X, y),
        ),
        "NuclearCompletion": (
            lambda: gd.NuclearCompletion(lam=12.0, tol=1e-3).fit(stars),
            lambda: gm.completion.NuclearCompletion(lam=12.0, tol=1e-3).fit(ratings),
        ),
    }
    if quick:
        return cases
    return cases | {
        "TripletMetric": (
            lambda: gd.TripletMetric().fit(sharded, y), lambda: gm.metric.TripletMetric().fit(X, y)
        ),
        "DMLEig": (lambda: gd.DMLEig().fit(sharded, y), lambda: gm.metric.DMLEig().fit(X, y)),
        "LMNN": (lambda: gd.LMNN().fit(sharded, y), lambda: gm.metric.LMNN().fit(X, y)),
        "LMNN (triplets)": (
            lambda: gd.LMNN().fit_triplets(blocks), lambda: gm.metric.LMNN().fit_triplets(triplets)
        ),
        "NPKL": (
            lambda: gd.NPKL(random_state=0).fit(points, labels),
            lambda: gm.kernel.NPKL(random_state=0).fit(moons, labels),
        ),
        "MMMF": (
            lambda: gd.MMMF(lam=20.0).fit(marks), lambda: gm.completion.MMMF(lam=20.0).fit(signs)
        ),
    }  # fmt: skip


def _files(folder: Path, frame: pd.DataFrame) -> str:
    folder.mkdir()
    order = np.random.default_rng(0).permutation(len(frame))
    for k, part in enumerate(np.array_split(order, 4)):
        frame.iloc[part].to_parquet(folder / f"{k}.parquet")
    return str(folder)


def _timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return fit(), time.perf_counter() - started


def _compared(fit: Callable[[], Any], home: Any, seconds: float) -> list[Any]:
    found, taken = _timed(fit)
    again = fit()
    gaps = found.certificate_.gap + home.certificate_.gap
    apart = abs(found.result_.value - home.result_.value)
    same = np.array_equal(found.result_.factor, again.result_.factor)
    return [
        found.result_.value, home.result_.value, found.certificate_.gap, bool(apart <= gaps),
        bool(same), taken, seconds,
    ]  # fmt: skip
