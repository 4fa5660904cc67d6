"""Every metric learner with its defaults compared with the Euclidean metric: is any one worse?

3-NN error on held-out samples of small training sets, standardised, as they come, with 50 features
of noise, and with shuffled labels, which are independent of the features.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.report import Report, Table
from gramian.metric import KTA, LMNN, DMLEig, LinearSeparation, LMNNEig, TripletMetric

TITLE = "Metric learners compared with the Euclidean metric"
PAPER = "3-NN error as in DML-eig (Ying and Li 2012), Section 5; no paper prints this table"
NEEDS_DATA = (
    "sonar", "glass", "ionosphere", "soybean_small", "pima", "segment", "waveform", "optdigits",
    "pendigits", "satimage", "splice", "letter", "usps",
)  # fmt: skip
BUNDLED: dict[str, Callable[..., Any]] = {
    "iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}  # fmt: skip
SETS = (*BUNDLED, *NEEDS_DATA)
VARIANTS = ("standardised", "as it comes", "noise", "shuffled")
NOISE = 50
TRAIN, TRAIN_QUICK, TEST = 400, 150, 1000
SPLITS, SPLITS_QUICK = 5, 2
VOTES, MOST_SPLITS = 1500, 20
"""Small sets are split until their test sets have this many samples in total; maximum of splits."""
FEWEST = 8
"""Minimum number of samples of a class; smaller classes are left out."""
NEIGHBOURS = 3
LIMIT, PEER_LIMIT, CHILD_LIMIT = 20.0, 60.0, 3600.0
ROOM, ROOM_SHUFFLED = 0.5, 1.0
"""Allowed difference from the error of the Euclidean metric, in percentage points."""

OURS: dict[str, Any] = {
    learner.__name__: learner
    for learner in (KTA, LinearSeparation, LMNN, DMLEig, LMNNEig, TripletMetric)
}
OTHERS = ("NCA", "LDA")
PEERS = {
    "metric-learn LMNN": "LMNN",
    "metric-learn ITML": "ITML_Supervised",
    "metric-learn LSML": "LSML_Supervised",
}

Errors = dict[str, list[float]]
"""Error % by method and split; NaN where a method failed."""

Seconds = dict[str, list[float]]
"""Those of a fit, by method and split."""


def run(ctx: Context) -> Report:
    """Every set in a process of its own, with one thread."""
    found: dict[tuple[str, str], Errors] = {}
    seconds: dict[tuple[str, str], Seconds] = {}
    for name in SETS:
        kwargs = {"folder": str(ctx.data_folder), "name": name, "quick": ctx.quick}
        answer = ctx.in_child("benchmarks.never_worse:measure", kwargs, CHILD_LIMIT, threads=1)
        if not answer.ok:
            raise RuntimeError(f"{name}: {answer.error}")
        for variant, (errors, spent) in answer.value.items():
            found[name, variant], seconds[name, variant] = errors, spent
            if not ctx.quick:
                _add_peers(ctx, errors, spent, name, variant)
    tables = [_verdicts(found), _ranks(found, seconds), _errors(found)]
    if not ctx.quick:
        tables.insert(2, beside_metric_learn(found, seconds))
    return ctx.report(tables, _notes(ctx))


def measure(folder: str, name: str, quick: bool) -> dict[str, tuple[Errors, Seconds]]:
    """Errors and seconds of all but the peers on every variant of a set."""
    return {variant: _measure(folder, name, variant, quick) for variant in VARIANTS}


def _measure(folder: str, name: str, variant: str, quick: bool) -> tuple[Errors, Seconds]:
    methods = {
        **OURS,
        "NCA": lambda **_: NeighborhoodComponentsAnalysis(random_state=0, max_iter=50),
        "LDA": lambda **_: LinearDiscriminantAnalysis(),
    }
    errors: Errors = {label: [] for label in ("Euclid", *methods)}
    seconds: Seconds = {label: [] for label in methods}
    for seed in range(splits_of(folder, name, quick)):
        X, y, X_test, y_test = split(folder, name, variant, seed, quick)
        errors["Euclid"].append(neighbour_error(X, y, X_test, y_test))
        for label, make in methods.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make(**({"time_limit": LIMIT} if label in OURS else {})).fit(X, y)
            seconds[label].append(time.perf_counter() - start)
            mapped = model.transform(X), y, model.transform(X_test), y_test
            errors[label].append(neighbour_error(*mapped))
    return errors, seconds


def splits_of(folder: str, name: str, quick: bool) -> int:
    """How often a set is split."""
    if quick:
        return SPLITS_QUICK
    held = split(folder, name, "standardised", 0, quick)[3].size
    return int(np.clip(-(-VOTES // held), SPLITS, MOST_SPLITS))


def split(
    folder: str, name: str, variant: str, seed: int, quick: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test samples and labels of a variant of a set."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        data = load_set(name, Path(folder))
        X, y = np.asarray(data.X, dtype=float), data.y
    large = np.bincount(y)[y] >= FEWEST
    X, y = X[large], np.unique(y[large], return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    if variant == "shuffled":
        y = rng.permutation(y)
    if variant == "noise":
        X = np.hstack([StandardScaler().fit_transform(X), rng.standard_normal((y.size, NOISE))])
    classes = int(y.max()) + 1
    train = min(max(TRAIN_QUICK if quick else TRAIN, FEWEST * classes), int(0.7 * y.size))
    test = min(TEST, y.size - train)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=train, test_size=test, stratify=y, random_state=seed
    )
    if variant == "as it comes":
        return X, y, X_test, y_test
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def neighbour_error(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> float:
    """Error % of 3 nearest neighbours."""
    neighbours = KNeighborsClassifier(NEIGHBOURS, algorithm="brute").fit(X, y)
    return 100 * (1 - float(neighbours.score(X_test, y_test)))


def _add_peers(ctx: Context, errors: Errors, seconds: Seconds, name: str, variant: str) -> None:
    for label, model in PEERS.items():
        errors[label] = []
        for seed in range(len(errors["Euclid"])):
            if not np.all(np.isfinite(errors[label])):
                break  # what failed once is not tried again
            X, y, X_test, y_test = split(str(ctx.data_folder), name, variant, seed, ctx.quick)
            answer = ctx.peer(
                "metric_learn_all", {"model": model, "X": X, "y": y}, PEER_LIMIT, threads=1
            )
            if not answer.ok:
                errors[label] = [float("nan")] * len(errors["Euclid"])
                continue
            L = answer.value["components"].T
            errors[label].append(neighbour_error(X @ L, y, X_test @ L, y_test))
            seconds.setdefault(label, []).append(answer.value["fit_seconds"])


def _above(errors: Errors, method: str) -> tuple[float, float]:
    """Mean error minus that of the Euclidean metric on the same splits, in percentage points, and
    twice its standard error over the splits.
    """
    gaps = np.array(errors[method]) - np.array(errors["Euclid"])
    return float(np.mean(gaps)), 2 * float(np.std(gaps, ddof=1)) / float(np.sqrt(gaps.size))


def _verdicts(found: dict[tuple[str, str], Errors]) -> Table:
    table = Table(
        f"Mean error minus the Euclidean one in points: maxima, and number of sets above {ROOM} "
        f"({ROOM_SHUFFLED} with shuffled labels), by chance and beyond it",
        ("method", *(f"{v}: largest" for v in VARIANTS), "where", "sets", "above the room",
         "beyond chance"),
    )  # fmt: skip
    for method in _methods(found):
        above = {key: _above(errors, method) for key, errors in found.items()
                 if np.all(np.isfinite(errors.get(method, [np.nan])))}  # fmt: skip
        worst = [max((a for (_, v), (a, _) in above.items() if v == variant), default=None)
                 for variant in VARIANTS]  # fmt: skip
        room = {key: ROOM_SHUFFLED if key[1] == "shuffled" else ROOM for key in above}
        harmed = [key for key, (a, _) in above.items() if a > room[key]]
        clear = [key for key in harmed if above[key][0] - above[key][1] > room[key]]
        where = max(above, key=lambda key: above[key][0] - room[key])
        table.add(method, *worst, ", ".join(where), len(above), len(harmed), len(clear))
    return table


def _ranks(found: dict[tuple[str, str], Errors], seconds: dict[tuple[str, str], Seconds]) -> Table:
    """Mean ranks where labels mean something, and the median seconds of a fit."""
    methods = ("Euclid", *_methods(found))
    rows = [errors for (_, variant), errors in found.items() if variant != "shuffled"]
    whole = [
        [np.mean(errors[m]) for m in methods]
        for errors in rows
        if all(m in errors and np.all(np.isfinite(errors[m])) for m in methods)
    ]
    ranks = np.mean([rankdata(row) for row in whole], axis=0)
    gains = [float(np.mean([np.mean(errors[m]) - np.mean(errors["Euclid"]) for errors in rows
                            if np.all(np.isfinite(errors.get(m, [np.nan])))]))
             for m in methods]  # fmt: skip
    table = Table(
        f"Mean rank by mean error over {len(whole)} sets (not the shuffled ones)",
        ("method", "mean rank", "mean points above Euclid", "median seconds of a fit"),
    )
    for place in np.argsort(ranks):
        times = [time for spent in seconds.values() for time in spent.get(methods[place], [])]
        table.add(methods[place], float(ranks[place]), gains[place],
                  float(np.median(times)) if times else None)  # fmt: skip
    return table


def beside_metric_learn(
    found: dict[tuple[str, str], Errors], seconds: dict[tuple[str, str], Seconds]
) -> Table:
    """Errors and seconds of a fit of LMNN and of metric-learn's LMNN on each set."""
    theirs = "metric-learn LMNN"
    table = Table(
        f"LMNN and metric-learn's LMNN on the standardised sets: error in % (target: at most "
        f"{ROOM} points above), median seconds of a fit (target: at most a tenth)",
        ("set", "LMNN", theirs, "points above", "LMNN, s", f"{theirs}, s", "times as fast"),
    )
    for (name, variant), errors in found.items():
        if variant != "standardised" or not np.all(np.isfinite(errors.get(theirs, [np.nan]))):
            continue
        mine, other = (float(np.mean(errors[m])) for m in ("LMNN", theirs))
        spent = [float(np.median(seconds[name, variant][m])) for m in ("LMNN", theirs)]
        table.add(name, mine, other, mine - other, *spent, spent[1] / spent[0])
    return table


def _errors(found: dict[tuple[str, str], Errors]) -> Table:
    methods = ("Euclid", *_methods(found))
    table = Table("Mean error of 3-NN in %", ("set", "variant", *methods))
    for (name, variant), errors in found.items():
        table.add(name, variant, *(float(np.mean(errors[m])) if m in errors else None
                                   for m in methods))  # fmt: skip
    return table


def _methods(found: dict[tuple[str, str], Errors]) -> tuple[str, ...]:
    seen = {method for errors in found.values() for method in errors}
    return tuple(m for m in (*OURS, *OTHERS, *PEERS) if m in seen)


def _notes(ctx: Context) -> tuple[str, ...]:
    splits, train = (SPLITS_QUICK, TRAIN_QUICK) if ctx.quick else (SPLITS, TRAIN)
    return (
        f"{splits} stratified splits, the same for all methods (up to {MOST_SPLITS} of small sets, "
        f"until their tests have {VOTES} samples together): {train} training samples (more "
        f"where classes would have fewer than {FEWEST}, 70 % of smaller sets), at most {TEST} for "
        f"the test. Classes of fewer than {FEWEST} samples are left out. Beyond chance: by more "
        "than two standard errors of the mean over the splits.",
        f"Noise: {NOISE} normal features in addition to the standardised ones. Shuffled: "
        "standardised, with the labels of all samples permuted.",
        f"Learners of gramian have their defaults and time_limit={LIMIT:g}; NCA has 50 iterations; "
        f"LDA and metric-learn have their defaults and a limit of {PEER_LIMIT:g} s. A method that "
        "takes longer on one split of a set has no figure there.",
        *(["Quick: without metric-learn's."] if ctx.quick else []),
    )
