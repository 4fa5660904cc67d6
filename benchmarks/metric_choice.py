"""The automatic choice between metric learners beside each of them: 3-NN errors and ranks.

Small training sets of every table, standardised, plain and with 30 features of noise.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.report import Report, Table
from benchmarks.never_worse import BUNDLED, FEWEST, neighbour_error
from gramian.metric import KTA, LMNN, AutoMetric, DMLEig, LMNNEig

TITLE = "The automatic choice between metric learners"
PAPER = "3-NN error as in DML-eig (Ying and Li 2012), Section 5; no paper prints this table"
NEEDS_DATA = (
    "sonar", "glass", "ionosphere", "pima", "segment", "waveform", "optdigits", "pendigits",
    "satimage", "splice", "letter", "usps",
)  # fmt: skip
LEARNERS = {kind.__name__: kind for kind in (AutoMetric, KTA, DMLEig, LMNN, LMNNEig)}
NOISE = (0, 30)
"""Features of noise added."""
TRAIN, TEST = 240, 1000
SPLITS, SPLITS_QUICK = 2, 1
CHILD_LIMIT = 3600.0

Found = dict[int, dict[str, list[tuple[float, float]]]]
"""By features of noise and method, error in % and CPU seconds of every split."""


def run(ctx: Context) -> Report:
    """Every set in a process of its own, with one thread."""
    found: dict[str, Found] = {}
    for name in (*BUNDLED, *NEEDS_DATA):
        kwargs = {"folder": str(ctx.data_folder), "name": name, "quick": ctx.quick}
        answer = ctx.in_child("benchmarks.metric_choice:measure", kwargs, CHILD_LIMIT, threads=1)
        if not answer.ok:
            raise RuntimeError(f"{name}: {answer.error}")
        found[name] = answer.value
    notes = [
        f"{TRAIN} training samples (at most 70 % of a set), up to {TEST} test samples, "
        f"{SPLITS_QUICK if ctx.quick else SPLITS} splits; ranks are of mean errors, equal ones "
        "share their rank; CPU seconds of a fit, one thread."
    ]
    return ctx.report([ranks(found), *(errors(found, noise) for noise in NOISE)], notes)


def measure(folder: str, name: str, quick: bool) -> Found:
    """Errors and CPU seconds on all splits of a set."""
    found: Found = {noise: {label: [] for label in ("Euclid", *LEARNERS)} for noise in NOISE}
    for noise in NOISE:
        for seed in range(SPLITS_QUICK if quick else SPLITS):
            X, y, X_test, y_test = split(folder, name, noise, seed)
            found[noise]["Euclid"].append((neighbour_error(X, y, X_test, y_test), 0.0))
            for label, kind in LEARNERS.items():
                started = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = kind().fit(X, y)
                taken = time.process_time() - started
                error = neighbour_error(model.transform(X), y, model.transform(X_test), y_test)
                found[noise][label].append((error, taken))
    return found


def split(folder: str, name: str, noise: int, seed: int) -> tuple[Any, ...]:
    """Training and test samples and labels."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        data = load_set(name, Path(folder))
        X, y = np.asarray(data.X, dtype=float), data.y
    large = np.bincount(y)[y] >= FEWEST
    X, y = X[large], np.unique(y[large], return_inverse=True)[1]
    added = np.random.default_rng(seed).standard_normal((y.size, noise))
    X = np.hstack([StandardScaler().fit_transform(X), added])
    train = min(max(TRAIN, FEWEST * (int(y.max()) + 1)), int(0.7 * y.size))
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=train, test_size=min(TEST, y.size - train), stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def means(found: dict[str, Found], noise: int) -> np.ndarray:
    """Mean errors, a row for each set and a column for each method."""
    return np.array([
        [np.mean([error for error, _ in runs]) for runs in one[noise].values()]
        for one in found.values()
    ])  # fmt: skip


def ranks(found: dict[str, Found]) -> Table:
    """Mean ranks and errors over all sets, and CPU seconds of a fit."""
    rows = []
    for k, label in enumerate(("Euclid", *LEARNERS)):
        row: list[Any] = [label]
        for noise in NOISE:
            errors_ = means(found, noise)
            placed = np.mean([rankdata(line) for line in errors_], axis=0)
            spent = np.mean([taken for one in found.values() for _, taken in one[noise][label]])
            row += [placed[k], errors_[:, k].mean(), spent]
        rows.append(tuple(row))
    head = ["method"]
    for noise in NOISE:
        told = f", {noise} noise features" if noise else ""
        head += [f"mean rank{told}", f"error %{told}", f"CPU s{told}"]
    return Table("Mean ranks over all sets", head, rows)


def errors(found: dict[str, Found], noise: int) -> Table:
    """Mean errors of every set."""
    told = f"with {noise} features of noise" if noise else "plain"
    rows = [(name, *line) for name, line in zip(found, means(found, noise), strict=True)]
    return Table(f"3-NN error in %, {told}", ["set", "Euclid", *LEARNERS], rows)
