"""Regression by 5 nearest neighbours in a learned metric: R² on held-out samples.

`MetricRegressor` with its defaults is compared with the Euclidean metric, metric-learn's MLKR and
ridge regression on the same splits.
"""

import csv
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.report import Report, Table
from gramian.metric import MetricRegressor

TITLE = "Regression in a learned metric"
PAPER = "Not from a paper: R² of predictions by 5 nearest neighbours"
NEEDS_DATA = ()
STORED = ("winequality_red", "winequality_white")
"""Sets in the folder `more` of the data, whose classes are numbers; omitted if missing."""
FEATURES = {"wine": 0, "breast_cancer": 29, "bupa": 5, "saheart": 2}
"""Sets in which a feature replaces the target, and its column: alcohol, fractal dimension, drinks
per day, cholesterol. The first two are part of scikit-learn, the others in the folder `more`."""
FILES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "cars": ("cars.json", "", "Miles_per_Gallon",
             ("Cylinders", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration")),
    "penguins": ("penguins-raw.csv", ",", "Body Mass (g)",
                 ("Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)",
                  "Delta 15 N (o/oo)", "Delta 13 C (o/oo)")),
    "weather": ("seattle-weather.csv", ",", "temp_max", ("precipitation", "temp_min", "wind")),
    "modechoice": ("modechoice.csv", ";", "gc", ("ttme", "invc", "invt", "hinc", "psize")),
}  # fmt: skip
"""File in the folder `more/files`, delimiter, target and features; rows with gaps are left out."""
BUILT_IN = ("diabetes", "friedman1", "friedman2", "friedman3")
NEIGHBOURS, SAMPLES, SPLITS, SPLITS_QUICK = 5, 400, 3, 2
NOISE = {"friedman1": 1.0, "friedman2": 100.0, "friedman3": 0.1}
CHILD_LIMIT, PEER_LIMIT = 3600.0, 300.0
EUCLID, OURS, RIDGE, MLKR = "Euclid", "MetricRegressor", "ridge", "MLKR"
METHODS: dict[str, Callable[[], Any]] = {
    EUCLID: lambda: KNeighborsRegressor(NEIGHBOURS),
    OURS: lambda: MetricRegressor(n_neighbors=NEIGHBOURS),
    RIDGE: lambda: RidgeCV(np.geomspace(1e-3, 1e3, 13)),
}
NOTES = (
    f"At most {SAMPLES} samples of each set are divided into random halves, the same for all "
    "methods, and standardised by the mean and variance of the training half. "
    "R² is that of the other half.",
    "All methods have their default parameters; the penalty of ridge regression is selected by "
    f"generalised cross-validation. {MLKR} is that of metric-learn, with predictions by the "
    f"{NEIGHBOURS} nearest neighbours. Times are CPU seconds of one thread.",
    "The last table lists R² minus the R² of the Euclidean metric, ± the standard error over "
    "splits.",
    f"In {', '.join(FEATURES)} the target is a feature: alcohol, fractal dimension, drinks per day "
    "and cholesterol.",
)

Measured = dict[str, list[tuple[float, float]]]
"""(R², CPU seconds) of each split by method."""


def run(ctx: Context) -> Report:
    """Every set in a process of its own, with one thread."""
    splits = SPLITS_QUICK if ctx.quick else SPLITS
    found: dict[str, Measured] = {}
    for name in (*BUILT_IN, *FEATURES, *STORED, *FILES):
        kwargs = {"folder": str(ctx.data_folder), "name": name, "splits": splits}
        answer = ctx.in_child("benchmarks.regression:measure", kwargs, CHILD_LIMIT, threads=1)
        if answer.ok:
            found[name] = answer.value
            _with_mlkr(ctx, name, splits, found[name])
    tables = [_ranks(found), _errors(found), _differences(found)]
    return ctx.report(tables, (f"{splits} splits of each set.", *NOTES))


def measure(folder: str, name: str, splits: int) -> Measured:
    """R² and CPU seconds of all methods except MLKR."""
    X, y = _samples(folder, name)
    found: Measured = {label: [] for label in METHODS}
    for seed in range(splits):
        A, a, B, b = _split(X, y, seed)
        for label, make in METHODS.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make().fit(A, a)
            found[label].append((float(model.score(B, b)), time.process_time() - start))
    return found


def _with_mlkr(ctx: Context, name: str, splits: int, found: Measured) -> None:
    """Add the rows of MLKR if it can be installed and is fast enough."""
    X, y = _samples(str(ctx.data_folder), name)
    rows = []
    for seed in range(splits):
        A, a, B, b = _split(X, y, seed)
        kwargs = {"model": MLKR, "X": A, "y": a, "random_state": seed}
        answer = ctx.peer("metric_learn_all", kwargs, PEER_LIMIT, threads=1)
        if not answer.ok:
            return
        L = answer.value["components"].T
        model = KNeighborsRegressor(NEIGHBOURS).fit(A @ L, a)
        rows.append((float(model.score(B @ L, b)), float(answer.value["fit_cpu_seconds"])))
    found[MLKR] = rows


def _samples(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    elif name in FEATURES:
        bundled = {"wine": load_wine, "breast_cancer": load_breast_cancer}.get(name)
        data = bundled().data if bundled else load_set(name, Path(folder) / "more").X
        X, y = np.delete(data, FEATURES[name], axis=1), data[:, FEATURES[name]]
    elif name in NOISE:
        made = {"friedman1": make_friedman1, "friedman2": make_friedman2,
                "friedman3": make_friedman3}[name]  # fmt: skip
        X, y = made(n_samples=SAMPLES, noise=NOISE[name], random_state=0)
    elif name in STORED:
        stored = load_set(name, Path(folder) / "more")
        X, y = stored.X, stored.y.astype(float)
    else:
        X, y = _of_file(Path(folder) / "more" / "files", *FILES[name])
    some = np.random.default_rng(0).permutation(len(y))[:SAMPLES]
    return np.asarray(X, dtype=float)[some], np.asarray(y, dtype=float)[some]


def _of_file(
    folder: Path, file: str, delimiter: str, target: str, features: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    text = (folder / file).read_text()
    rows = list(csv.DictReader(text.splitlines(), delimiter=delimiter)) if delimiter else (
        json.loads(text)
    )  # fmt: skip
    table = []
    for row in rows:
        try:
            table.append([float(row[column]) for column in (*features, target)])
        except (TypeError, ValueError):  # a gap
            continue
    numbers = np.array(table)
    return numbers[:, :-1], numbers[:, -1]


def _split(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    A, B, a, b = train_test_split(X, y, train_size=0.5, random_state=seed)
    scaler = StandardScaler().fit(A)
    return scaler.transform(A), a, scaler.transform(B), b


def _labels(found: dict[str, Measured]) -> list[str]:
    """The methods that were measured on every set."""
    return [label for label in (*METHODS, MLKR) if all(label in part for part in found.values())]


def _ranks(found: dict[str, Measured]) -> Table:
    labels = _labels(found)
    scores = np.array([[_mean(part[label]) for label in labels] for part in found.values()])
    ranks = np.mean([rankdata(-row) for row in scores], axis=0)
    table = Table(
        f"Means over {len(found)} sets of the rank by R² and of R²; CPU seconds of all fits",
        ("method", "mean rank", "mean R²", "CPU seconds"),
    )
    for place in np.argsort(ranks):
        label = labels[place]
        seconds = sum(spent for part in found.values() for _, spent in part[label])
        table.add(label, float(ranks[place]), float(scores[:, place].mean()), seconds)
    return table


def _errors(found: dict[str, Measured]) -> Table:
    labels = [*METHODS, MLKR]
    table = Table("Mean R²", ("set", *labels))
    for name, part in found.items():
        table.add(name, *(_mean(part[label]) if label in part else None for label in labels))
    return table


def _differences(found: dict[str, Measured]) -> Table:
    table = Table("R² minus that of the Euclidean metric", ("set", "method", "difference", "±"))
    for name, part in found.items():
        for label in (OURS, MLKR):
            if label in part:
                gaps = np.array(part[label])[:, 0] - np.array(part[EUCLID])[:, 0]
                error = float(np.std(gaps, ddof=1) / np.sqrt(gaps.size))
                table.add(name, label, float(gaps.mean()), error)
    return table


def _mean(rows: list[tuple[float, float]]) -> float:
    return float(np.mean([score for score, _ in rows]))
