"""Maps to two and five dimensions: errors of 3 nearest neighbours on held-out samples.

`ClassCollapse` with its defaults against PCA, LDA and NCA of scikit-learn and supervised UMAP, on
the same splits; beside them the other metric learners with `n_components`, which solve for this
number of columns, and two maps that are not linear, as UMAP's: `ClassCollapse` with a Gaussian
kernel and `NeighborLayout` with classes.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Report, Table
from benchmarks.never_worse import neighbour_error
from gramian.manifold import NeighborLayout
from gramian.metric import KTA, LMNN, ClassCollapse, DMLEig, LMNNEig, TripletMetric

TITLE = "Maps to few dimensions"
PAPER = "No table of a paper: 3-NN error in two and five dimensions"
NEEDS_DATA = (
    "sonar", "glass", "ionosphere", "pima", "segment", "waveform", "optdigits", "pendigits",
    "satimage", "splice", "letter", "usps",
)  # fmt: skip
MORE = (
    "anneal", "australian", "bupa", "chess", "column3C", "contraceptive", "dermatology", "ecoli",
    "magic", "mammographic", "saheart", "spectrometer", "winequality_red",
)  # fmt: skip
"""Sets in the folder `more` of the data, used where they are there."""
BUNDLED: dict[str, Callable[..., Any]] = {
    "iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer,
}  # fmt: skip
DIMENSIONS = (2, 5)
SAMPLES, TRAIN, SPLITS, SPLITS_QUICK = 600, 0.5, 10, 2
FEWEST = 8
"""Samples of a class at least; smaller classes are left out."""
DIGITS_TRAIN = 0.7
CHILD_LIMIT = 3600.0
ROUNDING = 1e-9
"""Points of error up to which two means are equal."""

METHODS: dict[str, Callable[[int], Any]] = {
    "ClassCollapse": lambda k: ClassCollapse(n_components=k),
    "ClassCollapse, rbf": lambda k: ClassCollapse(n_components=k, kernel="rbf"),
    "NCA": lambda k: NeighborhoodComponentsAnalysis(k, random_state=0),
    "LDA": lambda k: LinearDiscriminantAnalysis(),
    "PCA": lambda k: PCA(k, random_state=0),
    "KTA": lambda k: KTA(n_components=k),
    "LMNN": lambda k: LMNN(n_components=k),
    "DMLEig": lambda k: DMLEig(n_components=k),
    "LMNNEig": lambda k: LMNNEig(n_components=k),
    "TripletMetric": lambda k: TripletMetric(n_components=k),
    "NeighborLayout": lambda k: NeighborLayout(n_components=k, random_state=0),
}
UMAP = "supervised UMAP"
PEERS = ("NCA", "LDA", "PCA", UMAP)
COMPARED = ("ClassCollapse", *PEERS)
ALL = (*METHODS, UMAP)
NOTES = (
    f"Stratified splits, the same for all methods: {TRAIN:.0%} of at most {SAMPLES} samples of a "
    f"set for training, the others for the test, standardised by the training samples. Classes of "
    f"fewer than {FEWEST} samples are left out, and sets with no more features than dimensions.",
    "All methods with their defaults. LDA has at most one dimension fewer than classes. Supervised "
    "UMAP (umap-learn) and NeighborLayout are fitted to the training samples and their classes and "
    "place the others by `transform`. Times are CPU seconds of one thread, those of UMAP after a "
    "first fit that compiles.",
    "Lost: sets where one of these peers has a smaller mean error than ClassCollapse, with the "
    "difference and its standard error over the splits, in points of error.",
)

Measured = dict[tuple[int, str], list[tuple[float, float]]]
"""(error %, CPU seconds) of each split by dimensions and method."""


def run(ctx: Context) -> Report:
    """Every split of a set in a process of its own, with one thread."""
    splits, folder = SPLITS_QUICK if ctx.quick else SPLITS, str(ctx.data_folder)
    names = ("digits", *BUNDLED, *NEEDS_DATA, *MORE)
    calls: dict[tuple[str, Any], Callable[[], ChildResult]] = {
        (name, seed): partial(
            ctx.in_child, "benchmarks.few_dimensions:measure",
            {"folder": folder, "name": name, "seed": seed}, CHILD_LIMIT, threads=1,
        )
        for name in names for seed in range(splits)
    }  # fmt: skip
    calls |= {(name, UMAP): partial(_umap, ctx, folder, name, splits) for name in names}
    answers = ctx.each(calls)
    found: dict[str, Measured] = {}
    failures = {}
    for (name, which), answer in answers.items():
        if not answer.ok:
            failures[answer.error] = f"Missing: {which} of {name}: {answer.error}."
        for key, pairs in answer.value.items() if answer.ok else ():
            found.setdefault(name, {}).setdefault(key, []).extend(pairs)
    digits = found.pop("digits")
    tables = [_digits(digits), *(_ranks(found, k, COMPARED) for k in DIMENSIONS)]
    tables += [_ranks(found, k, ALL) for k in DIMENSIONS]
    tables += [_errors(found, k) for k in DIMENSIONS]
    tables += [_lost(found, k) for k in DIMENSIONS]
    return ctx.report(tables, (f"{splits} splits of each set.", *NOTES, *failures.values()))


def measure(folder: str, name: str, seed: int) -> Measured:
    """Error and CPU seconds of all methods but UMAP on a split."""
    A, a, B, b = _split(folder, name, seed)
    return {
        (k, label): [_fit(make(k), k, A, a, B, b)]
        for k in DIMENSIONS
        if A.shape[1] > k
        for label, make in METHODS.items()
    }


def _umap(ctx: Context, folder: str, name: str, splits: int) -> ChildResult:
    """Error and CPU seconds of supervised UMAP on all splits, which it compiles for once."""
    parts = [_split(folder, name, seed) for seed in range(splits)]
    A, a, B, b = map(np.array, zip(*parts, strict=True))
    dimensions = [k for k in DIMENSIONS if A.shape[2] > k]
    kwargs = {"dimensions": dimensions, "A": A, "a": a, "B": B}
    answer = ctx.peer("umap_supervised", kwargs, CHILD_LIMIT, threads=1)
    if not answer.ok:
        return answer
    maps = answer.value
    found = {
        (k, UMAP): list(zip(map(neighbour_error, maps[f"A{k}"], a, maps[f"B{k}"], b),
                            maps["seconds"][str(k)], strict=True))
        for k in dimensions
    }  # fmt: skip
    return replace(answer, value=found)


def _fit(
    model: Any, k: int, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray
) -> tuple[float, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(A, a)
    seconds = time.process_time() - start
    return neighbour_error(model.transform(A)[:, :k], a, model.transform(B)[:, :k], b), seconds


def _samples(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        return load_digits(return_X_y=True)
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        data = load_set(name, Path(folder) / "more" if name in MORE else Path(folder))
        X, y = data.X, data.y
    some = np.random.default_rng(0).permutation(y.size)[:SAMPLES]
    X, y = np.asarray(X[some], dtype=float), np.unique(y[some], return_inverse=True)[1]
    large = np.bincount(y)[y] >= FEWEST
    return X[large], np.unique(y[large], return_inverse=True)[1]


def _split(folder: str, name: str, seed: int) -> tuple[np.ndarray, ...]:
    X, y = _samples(folder, name)
    train = DIGITS_TRAIN if name == "digits" else TRAIN
    A, B, a, b = train_test_split(X, y, train_size=train, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(A)
    return scaler.transform(A), a, scaler.transform(B), b


def _digits(found: Measured) -> Table:
    table = Table(
        f"Digits, {DIGITS_TRAIN:.0%} for training: mean 3-NN error in %, its standard error, and "
        "CPU seconds of a fit",
        ("dimensions", "method", "error %", "±", "CPU seconds"),
    )
    for (k, label), rows in found.items():
        errors, seconds = np.array(rows).T
        table.add(k, label, float(errors.mean()), _deviation(errors), float(seconds.mean()))
    return table


def _sets(found: dict[str, Measured], k: int) -> dict[str, Measured]:
    """The sets that have maps to k dimensions."""
    return {name: part for name, part in found.items() if (k, "PCA") in part}


def _labels(rows: dict[str, Measured], k: int, labels: Sequence[str]) -> list[str]:
    """The methods that were measured on every set."""
    return [label for label in labels if all((k, label) in part for part in rows.values())]


def _ranks(found: dict[str, Measured], k: int, methods: Sequence[str]) -> Table:
    rows = _sets(found, k)
    labels = _labels(rows, k, methods)
    errors = np.array([[_mean(part, k, label) for label in labels] for part in rows.values()])
    ranks = np.mean([rankdata(row) for row in errors], axis=0)
    table = Table(
        f"{k} dimensions, {len(rows)} sets, {len(labels)} methods: mean rank by mean error, mean "
        "error, CPU seconds of all fits",
        ("method", "mean rank", "mean error %", "CPU seconds"),
    )
    for place in np.argsort(ranks):
        label = labels[place]
        seconds = sum(spent for part in rows.values() for _, spent in part[k, label])
        table.add(label, float(ranks[place]), float(errors[:, place].mean()), seconds)
    return table


def _errors(found: dict[str, Measured], k: int) -> Table:
    rows = _sets(found, k)
    labels = _labels(rows, k, ALL)
    table = Table(f"{k} dimensions: mean 3-NN error in %", ("set", *labels))
    for name, part in rows.items():
        table.add(name, *(_mean(part, k, label) for label in labels))
    return table


def _lost(found: dict[str, Measured], k: int) -> Table:
    table = Table(f"{k} dimensions: lost", ("set", "to", "points", "±"))
    rows = _sets(found, k)
    for name, part in rows.items():
        for label in _labels(rows, k, PEERS):
            gaps = np.array(part[k, "ClassCollapse"])[:, 0] - np.array(part[k, label])[:, 0]
            if gaps.mean() > ROUNDING:
                table.add(name, label, float(gaps.mean()), _deviation(gaps))
    return table


def _mean(part: Measured, k: int, label: str) -> float:
    return float(np.mean([error for error, _ in part[k, label]]))


def _deviation(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(values.size))
