"""DML-eig and kernel-target alignment with a kernel, against the linear models and Euclid.

Four questions. Does a linear kernel reproduce the linear model? Does a Gaussian one separate what
no linear metric can: rings and XOR, whose class means agree? Is the error of 3 nearest neighbours
on real sets lower with it? What does it cost as the samples grow? All models have their defaults,
the Gaussian the default bandwidth γ = 1/(d·var X).
"""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import make_circles
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.learn import Split, all_samples, fitted, random_split, slope
from benchmarks.harness.measured import peak_mb
from benchmarks.harness.report import Report, Table
from gramian.metric import KTA, DMLEig

TITLE = "Kernelised DML-eig and KTA against the linear models and Euclid"
PAPER = "Not from a paper: the kernel forms of DML-eig (Ying, Li 2012) and BILGO eq. (5)"
NEEDS_DATA = ("ionosphere", "sonar", "glass", "pima", "optdigits")

SETS = ("wine", "breast cancer", "iris", *NEEDS_DATA[:4]), ("wine", "glass")
LINEAR_SETS = ("wine", "breast cancer", "sonar", "iris"), ("wine",)
SIZES, LIMITS, SPLITS = ((250, 500, 1000, 2000, 4000), (125, 250)), (100.0, 20.0), (5, 1)
EXACT = 1e-8
CUBIC = 8.0
"""A size is run if this times the seconds of half of it is within the limit."""

LEARNERS = {"DMLEig": DMLEig, "KTA": KTA}
UNCHOSEN: dict[str, dict[str, Any]] = {
    "DMLEig": {"neighbor_metric": "euclidean"}, "KTA": {"lam": 1.0},
}  # fmt: skip
"""Options with which nothing is selected by held-out samples."""
MODELS = {
    f"{name}{', rbf' if kernel else ''}": (name, {"kernel": kernel})
    for name in LEARNERS
    for kernel in (None, "rbf")
}
GROWING_MODELS = {
    "DMLEig, rbf": MODELS["DMLEig, rbf"],
    "KTA, rbf": MODELS["KTA, rbf"],
    "KTA, rbf, λ = 1": ("KTA", {"kernel": "rbf", **UNCHOSEN["KTA"]}),
    "DMLEig, rbf, Euclid's neighbours": ("DMLEig", {"kernel": "rbf", **UNCHOSEN["DMLEig"]}),
}

NOTES = (
    "Difference from the linear model: the largest of `transform` (a dash: other numbers of "
    "directions) and of all distances between samples, each relative to the largest entry. 'As "
    "they come': the defaults, where KTA selects λ by held-out samples; 'nothing to choose': KTA "
    "with the λ of the linear fit, DMLEig with Euclid's neighbours instead of those after its own "
    "KTA. Where distances tie, as in iris, neighbours differ by rounding.",
    "Rings: two circles of noise 0.05, radii 1 and ½, and four features of noise. XOR: the class "
    "is the sign of a product of two features; three features of noise. 300 samples each, a "
    "quarter for the test.",
    "Real sets: stratified splits, 70 % for training, standardised by it; error % of 3-NN, mean "
    "(deviation).",
    "Growing n: random samples of optdigits, one thread, a new process for each fit, compilation "
    "included; memory is that above the process before the fit. A dash: not run, because cubic "
    "growth would exceed the limit. The slope is that of the logarithms, without the first of "
    "three or more sizes.",
)


def run(ctx: Context) -> Report:
    """The four parts."""
    linear = {name: ctx.load(name) for name in ctx.pick(*LINEAR_SETS)}
    found = {}
    for name in ctx.pick(*SETS):
        data = ctx.load(name)
        found[name] = ctx.call(measure_errors, X=data.X, y=data.y, splits=ctx.pick(*SPLITS))
    tables = [_linear(linear), _separation(), _errors(found), *_growth(ctx)]
    return ctx.report(tables, NOTES)


def _fit(label: str, X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    return fitted(LEARNERS[label](**options), X, y)[0]


# --- a linear kernel ------------------------------------------------------------------


def _linear(sets: dict[str, Any]) -> Table:
    table = Table(
        f"A linear kernel against the linear model (to be at most {EXACT:g})",
        ["set", "model", "settings", "transform", "distances", "λ linear", "λ kernel", "holds"],
    )
    for name, data in sets.items():
        X, y = StandardScaler().fit_transform(data.X), data.y
        for label in LEARNERS:
            settings: dict[str, Any] = {}
            for how in ("as they come", "nothing to choose"):
                plain = _fit(label, X, y, **settings)
                kernel = _fit(label, X, y, kernel="linear", **settings)
                one, two = plain.transform(X), kernel.transform(X)
                directions = _difference(one, two) if one.shape == two.shape else None
                distances = _difference(pdist(one), pdist(two))
                holds = directions is not None and max(directions, distances) <= EXACT
                weights = [getattr(model, "lam_", None) for model in (plain, kernel)]
                table.add(name, label, how, directions, distances, *weights, holds)
                settings = {"lam": plain.lam_} if label == "KTA" else UNCHOSEN[label]
    return table


def _difference(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.max(np.abs(one - two)) / np.max(np.abs(one)))


# --- sets that no linear metric separates ---------------------------------------------


def rings() -> tuple[np.ndarray, np.ndarray]:
    """Two rings, and four features of noise."""
    circles, y = make_circles(300, noise=0.05, factor=0.5, random_state=0)
    noise = np.random.default_rng(0).normal(scale=0.5, size=(300, 4))
    return np.hstack([circles, noise]), y


def xor() -> tuple[np.ndarray, np.ndarray]:
    """The sign of a product, and three features of noise."""
    rng = np.random.default_rng(1)
    points = rng.uniform(0.2, 1.0, (300, 2)) * rng.choice([-1, 1], (300, 2))
    X = np.hstack([points, rng.normal(scale=0.5, size=(300, 3))])
    return X, (points.prod(axis=1) > 0).astype(int)


def _separation() -> Table:
    columns = ["set", "model", "nearest mean, accuracy %", "3-NN, accuracy %"]
    table = Table("Rings and XOR, where the means of the classes agree", columns)
    for name, draw in {"rings": rings, "XOR": xor}.items():
        train, test, y, y_test = train_test_split(*draw(), random_state=0)
        split = Split(train, y, test, y_test)
        maps: dict[str, Any] = {"Euclid": lambda Z: Z}
        for label, (learner, options) in MODELS.items():
            maps[label] = _fit(learner, train, y, **options).transform
        for label, mapped in maps.items():
            mean = NearestCentroid().fit(mapped(train), y).score(mapped(test), y_test)
            table.add(name, label, 100 * float(mean), 100 - split.error(mapped))
    return table


# --- real sets ------------------------------------------------------------------------


def measure_errors(X: np.ndarray, y: np.ndarray, splits: int) -> dict[str, list[float]]:
    """Error % of 3-NN by model and split: in a child process."""
    found: dict[str, list[float]] = {label: [] for label in ("Euclid", *MODELS)}
    for seed in range(splits):
        split = random_split(X, y, seed).standardised()
        found["Euclid"].append(split.error())
        for label, (name, options) in MODELS.items():
            model = _fit(name, split.X, split.y, **options)
            found[label].append(split.error(model.transform))
    return found


def _errors(found: dict[str, dict[str, list[float]]]) -> Table:
    labels = ("Euclid", *MODELS)
    splits = len(next(iter(found.values()))["Euclid"])
    table = Table(f"Real sets: error % of 3-NN, {splits} splits", ["set", *labels])
    for name, fits in found.items():
        table.add(name, *(f"{np.mean(fits[at]):.2f} ({np.std(fits[at]):.2f})" for at in labels))
    means = ([np.mean(fits[label]) for fits in found.values()] for label in labels)
    table.add("mean of the sets", *(f"{np.mean(values):.2f}" for values in means))
    return table


# --- growing n ------------------------------------------------------------------------


def fit_once(label: str, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit one model: in a child process."""
    learner, options = GROWING_MODELS[label]
    before = peak_mb()
    model, seconds = fitted(LEARNERS[learner](**options), X, y)
    gap = model.certificate_.relative_gap
    return {"seconds": seconds, "gap": gap, "megabytes": peak_mb() - before}


def _growth(ctx: Context) -> list[Table]:
    """Seconds and peak memory by n, with the slopes."""
    data = ctx.load("optdigits")
    X, y = all_samples(data)
    X, order = X / data.X.std(), np.random.default_rng(0).permutation(len(y))
    sizes = ctx.pick(*SIZES)
    columns = ["model", *(f"n = {n}" for n in sizes), "slope"]
    times = Table("Seconds of a fit by n", [*columns, "largest certified gap"])
    memory = Table("Peak MB of a fit by n", columns)
    for label in list(GROWING_MODELS)[: ctx.pick(None, 2)]:
        fits: dict[int, dict[str, Any]] = {}
        for n in sizes:
            if fits and CUBIC * list(fits.values())[-1]["seconds"] > ctx.pick(*LIMITS):
                break
            fits[n] = ctx.call(fit_once, label=label, X=X[order[:n]], y=y[order[:n]])
        least = sizes[1] if len(fits) > 2 else 0
        for table, part in ((times, "seconds"), (memory, "megabytes")):
            values = {n: fits.get(n, {}).get(part) for n in sizes}
            extra = [max(fit["gap"] for fit in fits.values())] if part == "seconds" else []
            table.add(label, *values.values(), slope(values, least), *extra)
    return [times, memory]
