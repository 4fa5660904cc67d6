"""The estimators on 1, 2 and 4 worker processes against those at home, and against themselves.

For each: F on the cluster and at home, the certified gaps, whether the two differ by more than
those allow, whether a second fit on one worker has the same bits, and whether those on more have.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
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
PAPER = "Not from a paper"

COLUMNS = ["estimator", "workers", "F there", "F at home", "gap there", "gap at home",
           "within the gaps", "same bits again", "same bits as with one worker",
           "seconds there", "at home"]  # fmt: skip

Fits = dict[str, tuple[Callable[[], Any], Callable[[], Any]]]


def run(ctx: Context) -> Report:
    """Every estimator on clusters of 1, 2 and 4 processes."""
    counts = (2,) if ctx.quick else (1, 2, 4)
    table = Table("Equality", COLUMNS)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cases = _cases(Path(folder), ctx.quick)
        home = {name: _timed(fit) for name, (_, fit) in cases.items()}
        first: dict[str, Any] = {}
        for count in counts:
            with workers(count):
                for name, (there, _) in cases.items():
                    cells, factor = _compared(there, *home[name], first.get(name))
                    first.setdefault(name, factor)
                    table.add(name, count, *cells)
                    print(name, count, *cells, file=sys.stderr, flush=True)
    return ctx.report([table], [
        "The same problem on both sides: λ is given where it would be chosen in another way, and "
        "nothing is shrunk. Small data on purpose: rounds of tasks are most of the seconds."
    ])  # fmt: skip


def _cases(folder: Path, quick: bool) -> Fits:
    """A fit on the cluster and one at home, by name."""
    import dask.array as da

    import gramian.dask as gd

    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::3], y[::3]
    sharded = da.from_array(X, chunks=(20, X.shape[1]))
    ratings = ratings_of(0, 500, 80, 12_000)
    stars = _files(folder / "stars", ratings)
    cases: Fits = {
        "KTA": (
            lambda: gd.KTA(lam=0.01).fit(sharded, y),
            lambda: gm.metric.KTA(lam=0.01).fit(X, y),
        ),
        "LinearSeparation": (
            lambda: gd.LinearSeparation(lam=1e-3).fit(sharded, y),
            lambda: gm.metric.LinearSeparation(lam=1e-3).fit(X, y),
        ),
        "NuclearCompletion": (
            lambda: gd.NuclearCompletion(lam=12.0, tol=1e-4).fit(stars),
            lambda: gm.completion.NuclearCompletion(lam=12.0, tol=1e-4).fit(ratings),
        ),
    }
    return cases if quick else cases | _metrics(X, y, sharded) | _others(folder, ratings)


def _metrics(X: Any, y: Any, sharded: Any) -> Fits:
    """Metric learners over pairs and triplets."""
    import dask.array as da

    import gramian.dask as gd

    triplets = X[gm.constraints.random_triplets(y, 150, random_state=0)]
    blocks = da.from_array(triplets, chunks=(50, 3, X.shape[1]))
    fits: Fits = {
        name: (partial(_plain, gd, name, sharded, y), partial(_plain, gm.metric, name, X, y))
        for name in ("TripletMetric", "DMLEig", "LMNN")
    }
    fits["LMNN (triplets)"] = (
        lambda: gd.LMNN(shrinkage=0.0, tol=1e-3).fit_triplets(blocks),
        lambda: gm.metric.LMNN(shrinkage=0.0, tol=1e-3).fit_triplets(triplets),
    )
    return fits


def _plain(where: Any, name: str, X: Any, y: Any) -> Any:
    return getattr(where, name)(shrinkage=0.0, tol=1e-3).fit(X, y)


def _others(folder: Path, ratings: pd.DataFrame) -> Fits:
    """A kernel of links, and signs."""
    import dask.array as da

    import gramian.dask as gd

    X, y = make_moons(450, noise=0.08, random_state=0)
    labels = np.where(np.arange(len(X)) < 20, y, -1)
    points = da.from_array(X, chunks=(150, 2))
    given = {"lam": 10.0, "shrinkage": 0.0, "tol": 1e-3, "random_state": 0}
    signs = ratings.assign(rating=np.where(ratings["rating"] > 3, 1.0, -1.0))
    marks = _files(folder / "signs", signs)
    return {
        "NPKL": (
            lambda: gd.NPKL(**given).fit(points, labels),
            lambda: gm.kernel.NPKL(**given).fit(X, labels),
        ),
        "MMMF": (
            lambda: gd.MMMF(lam=20.0, tol=1e-3).fit(marks),
            lambda: gm.completion.MMMF(lam=20.0, tol=1e-3).fit(signs),
        ),
    }


def _files(folder: Path, frame: pd.DataFrame) -> str:
    folder.mkdir()
    order = np.random.default_rng(0).permutation(len(frame))
    for k, part in enumerate(np.array_split(order, 4)):
        frame.iloc[part].to_parquet(folder / f"{k}.parquet")
    return str(folder)


def _timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return fit(), time.perf_counter() - started


def _compared(
    fit: Callable[[], Any], home: Any, seconds: float, first: Any
) -> tuple[list[Any], Any]:
    found, taken = _timed(fit)
    factor = found.result_.factor
    again = None if first is not None else bool(np.array_equal(factor, fit().result_.factor))
    gaps = found.certificate_.gap + home.certificate_.gap
    apart = abs(found.result_.value - home.result_.value)
    alike = None if first is None else bool(np.array_equal(factor, first))
    cells = [
        found.result_.value, home.result_.value, found.certificate_.gap, home.certificate_.gap,
        bool(apart <= gaps), again, alike, taken, seconds,
    ]  # fmt: skip
    return cells, factor
