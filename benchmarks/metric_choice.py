"""The automatic choice between metric learners beside each of them, NCA and LDA: 3-NN errors.

Small training sets of every table, standardised, plain and with features of noise. The rule of
`AutoMetric` was chosen on the sets of odd place in the alphabet; the others confirm it.
"""

import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.report import Report, Table
from benchmarks.never_worse import BUNDLED, FEWEST, NEIGHBOURS
from gramian.metric import KTA, LMNN, AutoMetric, ClassCollapse, DMLEig, LMNNEig

TITLE = "The automatic choice between metric learners"
PAPER = "3-NN error as in DML-eig (Ying and Li 2012), Section 5; no paper prints this table"
SETS = (
    "a1a", "anneal", "australian", "bupa", "chess", "column3C", "contraceptive", "dermatology",
    "dna", "ecoli", "glass", "ionosphere", "letter", "magic", "mammographic", "mushrooms",
    "optdigits", "pendigits", "pima", "saheart", "satimage", "segment", "sonar", "spectrometer",
    "splice", "usps", "waveform", "winequality_red", "winequality_white",
)  # fmt: skip
"""Labelled sets of at most 300 features and at least 200 samples in the folder of data or its
folder `more`; those that are not there are left out, and named."""
HALVES = {
    "the sets on which the rule was chosen": SETS[::2],
    "the sets that confirm it": SETS[1::2],
    "the sets of scikit-learn": tuple(BUNDLED),
}
NOISE = (0, 30)
"""Features of noise added."""
TRAIN, TEST, MOST = 240, 1000, 5000
SPLITS, SPLITS_QUICK, FIRST_SEED = 3, 1, 2000
CHILD_LIMIT = 1800.0
SECONDS_LAST = ("usps", "dna", "a1a", "mushrooms", "spectrometer", "digits", "optdigits")
"""The sets with the longest fits, which are begun first."""

LEARNERS: dict[str, Callable[[], Any]] = {
    kind.__name__: kind for kind in (AutoMetric, KTA, DMLEig, LMNN, LMNNEig, ClassCollapse)
}
PEERS: dict[str, Callable[[], Any]] = {
    "NCA": partial(NeighborhoodComponentsAnalysis, random_state=0),
    "LDA": LinearDiscriminantAnalysis,
}
METHODS = ("Euclid", *LEARNERS, *PEERS)
NOTES = (
    f"{TRAIN} training samples (at most 70 % of a set), up to {TEST} test samples. Ranks are of "
    "mean errors over the splits, equal ones share their rank; CPU seconds of a fit, one thread. "
    "All methods with their defaults. Classes with fewer than 4 training "
    "samples, which LMNN and LMNNEig cannot use, are left out of training; their test samples "
    "count as errors.",
    "Above Euclid beyond chance: by more than two standard errors of the paired difference over "
    "the test samples of all splits. One cell in 44 is by chance alone.",
)

Wrong = dict[str, tuple[np.ndarray, float]]
"""By method, whether each test sample is misclassified, and CPU seconds of the fit."""
Cells = dict[tuple[str, int], list[Wrong]]
"""The splits of each set and number of features of noise."""


def run(ctx: Context) -> Report:
    """Every split of a set in a process of its own, with one thread."""
    folder = str(ctx.data_folder) if ctx.data_folder else ""
    names = [name for name in (*BUNDLED, *SETS) if name in BUNDLED or place_of(folder, name)]
    names.sort(key=lambda name: name not in SECONDS_LAST)
    seeds = range(FIRST_SEED, FIRST_SEED + (SPLITS_QUICK if ctx.quick else SPLITS))
    asked = [(name, seed) for name in names for seed in seeds]
    answers = ctx.at_once([
        partial(
            ctx.in_child, "benchmarks.metric_choice:measure",
            {"folder": folder, "name": name, "seed": seed}, CHILD_LIMIT, threads=1,
        )
        for name, seed in asked
    ])  # fmt: skip
    cells: Cells = {}
    notes = [f"{len(seeds)} splits of {len(names)} sets.", *NOTES]
    for (name, seed), answer in zip(asked, answers, strict=True):
        if not answer.ok:
            notes.append(f"Missing: {name}, split {seed}: {answer.error}")
            continue
        for noise in NOISE:
            cells.setdefault((name, noise), []).append(answer.value[noise])
    absent = [name for name in SETS if name not in names]
    notes += [f"Sets that were not there: {', '.join(absent)}."] if absent else []
    groups = {"all sets": tuple(names), **HALVES}
    tables = [ranks(cells, *group) for group in groups.items() if _present(cells, group[1])]
    return ctx.report([*tables, worse(cells), *(errors(cells, n) for n in NOISE)], notes)


def place_of(folder: str, name: str) -> Path | None:
    """The folder that has a set, if any."""
    places = (Path(folder), Path(folder) / "more") if folder else ()
    return next((place for place in places if (place / f"{name}.npz").exists()), None)


def measure(folder: str, name: str, seed: int) -> dict[int, Wrong]:
    """All methods on one split of a set, plain and with noise."""
    X, y = samples(folder, name)
    found: dict[int, Wrong] = {}
    for noise in NOISE:
        A, a, B, b = split(X, y, noise, seed)
        found[noise] = {"Euclid": (wrong(A, a, B, b), 0.0)}
        for label, make in {**LEARNERS, **PEERS}.items():
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make().fit(A, a)
            taken = time.process_time() - started
            found[noise][label] = wrong(model.transform(A), a, model.transform(B), b), taken
    return found


def samples(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most `MOST` dense samples and their classes, those of few samples left out."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        data = load_set(name, place_of(folder, name))
        X, y = data.X, data.y
    some = np.random.default_rng(0).permutation(y.size)[:MOST]
    X, y = X[some], np.asarray(y)[some]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    y = np.unique(y, return_inverse=True)[1]
    large = np.bincount(y)[y] >= FEWEST
    return X[large], np.unique(y[large], return_inverse=True)[1]


def split(X: np.ndarray, y: np.ndarray, noise: int, seed: int) -> tuple[np.ndarray, ...]:
    """Training samples, their labels, test samples, and theirs."""
    added = np.random.default_rng(seed).standard_normal((y.size, noise))
    X = np.hstack([StandardScaler().fit_transform(X), added])
    train = min(max(TRAIN, FEWEST * (int(y.max()) + 1)), int(0.7 * y.size))
    A, B, a, b = train_test_split(
        X, y, train_size=train, test_size=min(TEST, y.size - train), stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(A)
    kept = np.bincount(a)[a] > LMNN().n_neighbors
    return scaler.transform(A)[kept], a[kept], scaler.transform(B), b


def wrong(A: Any, a: np.ndarray, B: Any, b: np.ndarray) -> np.ndarray:
    """Whether 3 nearest neighbours misclassify each test sample."""
    found: np.ndarray = (
        KNeighborsClassifier(NEIGHBOURS, algorithm="brute").fit(A, a).predict(B) != b
    )
    return found


def _present(cells: Cells, names: Iterable[str]) -> list[str]:
    return [name for name in names if (name, 0) in cells]


def _means(runs: list[Wrong]) -> list[float]:
    """The mean error of each method in %."""
    return [100 * float(np.mean([one[label][0].mean() for one in runs])) for label in METHODS]


def ranks(cells: Cells, group: str, names: Iterable[str]) -> Table:
    """Mean ranks and errors over some sets, and CPU seconds of a fit."""
    present = _present(cells, names)
    head, columns = ["method"], [list(METHODS)]
    for noise in NOISE:
        runs = [cells[name, noise] for name in present]
        found = np.array([_means(one) for one in runs])
        seconds = [np.mean([s[label][1] for one in runs for s in one]) for label in METHODS]
        kind = f", {noise} noise features" if noise else ""
        head += [f"mean rank{kind}", f"error %{kind}", f"CPU s{kind}"]
        # rounded, so that equal errors share their rank
        placed = np.mean([rankdata(line) for line in np.round(found, 9)], axis=0)
        columns += [placed.tolist(), found.mean(axis=0).tolist(), [float(s) for s in seconds]]
    rows = [tuple(row) for row in zip(*columns, strict=True)]
    return Table(f"Mean ranks over {group} ({len(present)})", head, rows)


def worse(cells: Cells) -> Table:
    """The cells where a method has a larger error than Euclid beyond chance."""
    rows: list[tuple[Any, ...]] = []
    for label in METHODS[1:]:
        found = []
        for (name, noise), runs in cells.items():
            gap = np.concatenate([1.0 * one[label][0] - one["Euclid"][0] for one in runs])
            mean, doubt = 100 * gap.mean(), 100 * gap.std() / np.sqrt(gap.size)
            if mean > 2 * doubt:
                kind = " with noise" if noise else ""
                found.append(f"{name}{kind} {mean:+.1f} ± {doubt:.1f}")
        rows.append((label, len(cells), len(found), "; ".join(found)))
    head = ["method", "cells", "above", "points above, ± standard error"]
    return Table("Above Euclid's error beyond chance", head, rows)


def errors(cells: Cells, noise: int) -> Table:
    """Mean errors of every set."""
    kind = f"with {noise} features of noise" if noise else "plain"
    rows = [(name, *_means(runs)) for (name, one), runs in cells.items() if one == noise]
    return Table(f"3-NN error in %, {kind}", ["set", *METHODS], rows)
