"""DML-eig and kernel-target alignment with a kernel, against the linear models and Euclid.

Four questions. Does a linear kernel give back the linear model? Does a Gaussian one separate what
no linear metric can: rings and XOR, whose class means agree? Is the error of 3 nearest neighbours
on real sets lower with it, and where not? What does it cost as the samples grow? All models run
with their defaults, the Gaussian at the default bandwidth γ = 1/(d·var X).
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.measured import peak_mb
from benchmarks.harness.report import Report, Table
from gramian.metric import KTA, DMLEig

TITLE = "Kernelised DML-eig and KTA against the linear models and Euclid"
PAPER = "No paper's table: the kernel forms of DML-eig (Ying, Li 2012) and BILGO eq. (5)"
NEEDS_DATA = ("ionosphere", "sonar", "glass", "pima", "optdigits")

Samples = tuple[np.ndarray, np.ndarray]
BUNDLED = {"wine": load_wine, "breast cancer": load_breast_cancer, "iris": load_iris}
SETS = (*BUNDLED, "ionosphere", "sonar", "glass", "pima")
QUICK_SETS = ("wine", "sonar", "glass")
LINEAR_SETS, QUICK_LINEAR_SETS = ("wine", "breast cancer", "sonar", "iris"), ("wine", "sonar")
GROWING = "optdigits"
SIZES, QUICK_SIZES = (250, 500, 1000, 2000, 4000), (125, 250)
LIMIT, QUICK_LIMIT = 100.0, 20.0
"""A size is tried where it is expected to take so many seconds at most."""
SPLITS, QUICK_SPLITS = 5, 2
EXACT = 1e-8
NEIGHBOURS = 3
CUBIC = 8.0
"""What twice the samples cost at most."""

LEARNERS: dict[str, Callable[..., Any]] = {"DMLEig": DMLEig, "KTA": KTA}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}{', rbf' if kernel else ''}": (name, {"kernel": kernel})
    for name in LEARNERS
    for kernel in (None, "rbf")
}
GROWING_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    **{label: (name, kernel) for label, (name, kernel) in MODELS.items() if kernel["kernel"]},
    "KTA, rbf, λ = 1": ("KTA", {"kernel": "rbf", "lam": 1.0}),
    "DMLEig, rbf, Euclid's neighbours": (
        "DMLEig",
        {"kernel": "rbf", "neighbor_metric": "euclidean"},
    ),
}
"""The last two without the choice of λ among held-out samples, for its share of the seconds."""

NOTES = (
    "Difference from the linear model: the largest of `transform` (a dash: other numbers of "
    "directions) and of all distances between samples, each relative to the largest entry. 'As "
    "they come' has the defaults, whose λ KTA takes by held-out samples; 'nothing to choose' has "
    "KTA with the linear fit's λ, and DMLEig with Euclid's neighbours instead of those after a "
    "KTA of its own. Where distances tie, as in iris, neighbours differ by rounding.",
    "Rings: two circles of noise 0.05, radii 1 and ½, among four features of noise. XOR: the class "
    "is the sign of a product of two features, among three of noise. 300 samples each, a quarter "
    "for the test.",
    f"Real sets: stratified splits, 70 % for training, standardised by it; error % of "
    f"{NEIGHBOURS}-NN, mean (deviation). A kernel loses where its mean is above that of its "
    "linear model.",
    f"Growing n: random samples of {GROWING}, one thread, a fresh process for each fit, its first "
    "compilation included; memory is counted above what the process has before the fit. A dash: "
    "left out, because cubic growth from the size before would take it past the limit. The slope "
    "is that of the logarithms over the sizes that ran, without the first where there are three.",
)


def run(ctx: Context) -> Report:
    """The four parts."""
    names = QUICK_SETS if ctx.quick else SETS
    sets = {name: _samples(ctx, name) for name in {*names, *LINEAR_SETS}}
    kept = QUICK_LINEAR_SETS if ctx.quick else LINEAR_SETS
    tables = [_linear({name: sets[name] for name in kept}), _separation()]
    splits = QUICK_SPLITS if ctx.quick else SPLITS
    found = {}
    for name in names:
        kwargs = {"X": sets[name][0], "y": sets[name][1], "splits": splits}
        child = ctx.in_child("benchmarks.kernel_metric:measure_errors", kwargs, threads=1)
        if not child.ok:
            raise RuntimeError(f"{name}: {child.error}")
        found[name] = child.value
    errors, verdict = _errors(found)
    return ctx.report([*tables, errors, *_growth(ctx)], (*NOTES, verdict))


def _samples(ctx: Context, name: str) -> Samples:
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return X, y
    data = ctx.load(name)
    return data.X, data.y


def _fitted(label: str, X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    """A fitted learner, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LEARNERS[label](**options).fit(X, y)


# --- a linear kernel ------------------------------------------------------------------


def _linear(sets: dict[str, Samples]) -> Table:
    table = Table(
        f"A linear kernel against the linear model (to be at most {EXACT:g})",
        ["set", "model", "settings", "transform", "distances", "λ linear", "λ kernel", "holds"],
    )
    for name, (X, y) in sets.items():
        X = StandardScaler().fit_transform(X)
        for label in LEARNERS:
            plain = _fitted(label, X, y)
            _compare(table, name, label, "as they come", X, plain, _fitted_linear(label, X, y))
            if label == "KTA":
                settings: dict[str, Any] = {"lam": plain.lam_}
            else:
                settings = {"neighbor_metric": "euclidean"}
            plain = _fitted(label, X, y, **settings)
            kernel = _fitted_linear(label, X, y, **settings)
            _compare(table, name, label, "nothing to choose", X, plain, kernel)
    return table


def _fitted_linear(label: str, X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    return _fitted(label, X, y, kernel="linear", **options)


def _compare(
    table: Table, name: str, label: str, settings: str, X: np.ndarray, plain: Any, kernel: Any
) -> None:
    one, two = plain.transform(X), kernel.transform(X)
    directions = _difference(one, two) if one.shape == two.shape else None
    distances = _difference(pdist(one), pdist(two))
    weights = (getattr(model, "lam_", None) for model in (plain, kernel))
    holds = directions is not None and max(directions, distances) <= EXACT
    table.add(name, label, settings, directions, distances, *weights, holds)


def _difference(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.max(np.abs(one - two)) / np.max(np.abs(one)))


# --- what no linear metric can --------------------------------------------------------


def rings() -> Samples:
    """Two rings among four features of noise."""
    circles, y = make_circles(300, noise=0.05, factor=0.5, random_state=0)
    noise = np.random.default_rng(0).normal(scale=0.5, size=(300, 4))
    return np.hstack([circles, noise]), y


def xor() -> Samples:
    """The sign of a product, among three features of noise."""
    rng = np.random.default_rng(1)
    points = rng.uniform(0.2, 1.0, (300, 2)) * rng.choice([-1, 1], (300, 2))
    X = np.hstack([points, rng.normal(scale=0.5, size=(300, 3))])
    return X, (points.prod(axis=1) > 0).astype(int)


def _separation() -> Table:
    columns = ["set", "model", "nearest mean, accuracy %", "3-NN, accuracy %"]
    table = Table("Rings and XOR, where the means of the classes agree", columns)
    for name, draw in {"rings": rings, "XOR": xor}.items():
        train, test, y, y_test = train_test_split(*draw(), random_state=0)
        maps: dict[str, Any] = {"Euclid": lambda Z: Z}
        for label, (learner, options) in MODELS.items():
            maps[label] = _fitted(learner, train, y, **options).transform
        for label, mapped in maps.items():
            scores = [
                100 * float(model.fit(mapped(train), y).score(mapped(test), y_test))
                for model in (NearestCentroid(), KNeighborsClassifier(NEIGHBOURS))
            ]
            table.add(name, label, *scores)
    return table


# --- real sets ------------------------------------------------------------------------


def measure_errors(X: np.ndarray, y: np.ndarray, splits: int) -> dict[str, list[float]]:
    """Error % of 3-NN by model and split: what a child process does."""
    found: dict[str, list[float]] = {label: [] for label in ("Euclid", *MODELS)}
    for seed in range(splits):
        train, test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=seed
        )
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)

        def error(mapped: Any, data: Any = (train, test, y_train, y_test)) -> float:
            train, test, y, y_test = data
            neighbours = KNeighborsClassifier(NEIGHBOURS).fit(mapped(train), y)
            return 100 * (1 - float(neighbours.score(mapped(test), y_test)))

        found["Euclid"].append(error(lambda Z: Z))
        for label, (name, options) in MODELS.items():
            found[label].append(error(_fitted(name, train, y_train, **options).transform))
    return found


def _errors(found: dict[str, dict[str, list[float]]]) -> tuple[Table, str]:
    """The table, and where kernels lose."""
    labels = ("Euclid", *MODELS)
    splits = len(next(iter(found.values()))["Euclid"])
    table = Table(f"Real sets: error % of 3-NN, {splits} splits", ["set", *labels])
    means = {name: {label: round(float(np.mean(e)), 6) for label, e in fits.items()}
             for name, fits in found.items()}  # fmt: skip
    for name, fits in found.items():
        table.add(name, *(f"{np.mean(fits[at]):.2f} ({np.std(fits[at]):.2f})" for at in labels))
    over = [float(np.mean([mean[label] for mean in means.values()])) for label in labels]
    table.add("mean of the sets", *(f"{mean:.2f}" for mean in over))
    parts = []
    for name in LEARNERS:
        lost = [at for at, mean in means.items() if mean[f"{name}, rbf"] > mean[name]]
        worse = [at for at, mean in means.items() if mean[f"{name}, rbf"] > mean["Euclid"]]
        parts.append(
            f"{name} with the Gaussian loses to the linear one on {len(lost)} of {len(means)} "
            f"sets ({', '.join(lost) or 'none'}) and to Euclid on {len(worse)} "
            f"({', '.join(worse) or 'none'})"
        )
    return table, "; ".join(parts) + "."


# --- growing n ------------------------------------------------------------------------


def fit_once(label: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit one model: what a child process does."""
    learner, options = GROWING_MODELS[label]
    before = peak_mb()
    started = time.perf_counter()
    model = _fitted(learner, X, y, **options)
    spent = time.perf_counter() - started
    gap = model.certificate_.relative_gap
    return {"seconds": spent, "gap": gap, "megabytes": peak_mb() - before}


def _growth(ctx: Context) -> list[Table]:
    """Seconds and peak memory by n, with the slopes."""
    data = ctx.load(GROWING)
    X, y = data.X / data.X.std(), data.y
    if data.X_test is not None and data.y_test is not None:
        X = np.vstack([X, data.X_test / data.X.std()])
        y = np.concatenate([y, data.y_test])
    order = np.random.default_rng(0).permutation(len(y))
    sizes = QUICK_SIZES if ctx.quick else SIZES
    limit = QUICK_LIMIT if ctx.quick else LIMIT
    columns = ["model", *(f"n = {n}" for n in sizes), "slope"]
    times = Table("Seconds of a fit by n", [*columns, "largest certified gap"])
    memory = Table("Peak MB of a fit by n", columns)
    for label in list(GROWING_MODELS)[: 2 if ctx.quick else None]:
        seconds: list[float] = []
        peaks: list[float] = []
        gaps: list[float] = []
        for n in sizes:
            if seconds and CUBIC * seconds[-1] > limit:
                break
            kwargs = {"label": label, "X": X[order[:n]], "y": y[order[:n]]}
            child = ctx.in_child("benchmarks.kernel_metric:fit_once", kwargs, threads=1)
            if not child.ok:
                raise RuntimeError(f"{label}, n = {n}: {child.error}")
            seconds.append(child.value["seconds"])
            gaps.append(child.value["gap"])
            peaks.append(child.value["megabytes"])
        left = [None] * (len(sizes) - len(seconds))
        times.add(label, *seconds, *left, _slope(sizes, seconds), max(gaps))
        memory.add(label, *peaks, *left, _slope(sizes, peaks))
    return [times, memory]


def _slope(sizes: tuple[int, ...], values: list[float]) -> float | None:
    """Of the logarithms, without the first of three or more; None where there is one."""
    skip = 1 if len(values) > 2 else 0
    if len(values) < 2:
        return None
    n = np.log(sizes[skip : len(values)])
    return float(np.polyfit(n, np.log(values[skip:]), 1)[0])
