"""Metrics from pairs and triplets: the same as from labels, at a million, and as the data grow.

(a) On the sets of DML-eig's Table 4, a fit to the pairs that labels make against the fit to the
labels. (b) A million pairs, or triplets, of 100,000 synthetic points in 100 dimensions, against
ITML of metric-learn, which gets as many pairs as it can take in the seconds of our DMLEig. (c) A
fit that starts from the one before 1 % and 10 % of the pairs or triplets were added.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from benchmarks.dml_eig_tables45 import BUNDLED, SETS, make_split
from benchmarks.harness.context import Context
from benchmarks.harness.measured import peak_mb
from benchmarks.harness.report import Report, Table
from gramian.constraints import local_pairs, random_pairs, random_triplets
from gramian.metric import LMNN, DMLEig, LMNNEig, TripletMetric

TITLE = "Pairs and triplets: the same as labels, a million of them, and growing data"
PAPER = "No paper's table: weak supervision at the sizes that pairs come in"
NEEDS_DATA = ("pima", "waveform", "segment", "optdigits", "orl_faces", "usps")

SLOW = ("usps", "optdigits", "waveform", "segment", "orl_faces")
"""Left out of a quick run."""
EXACT = 1e-8
NEIGHBOURS = 3

DIMENSIONS, CLASSES, SUBSPACE = 100, 50, 20
SPREAD = 0.5
"""Deviation of the means, along each direction of the subspace."""
POINTS, QUICK_POINTS = 100_000, 2_000
COUNT, QUICK_COUNT = 1_000_000, 3_000
TESTED = 20_000
"""Pairs to verify, half of them the same, of points that no fit sees."""
TIME_LIMIT, QUICK_TIME_LIMIT = 150.0, 5.0
PEER, SMALLEST, IMPORTS = "metric_learn_itml_pairs", 1_000, 20.0
INSTALL = 1200.0

GROWING, QUICK_GROWING = 20_000, 600
SHARES = (0.01, 0.10)

MODELS: dict[str, Callable[..., Any]] = {
    "DMLEig": DMLEig,
    "TripletMetric": TripletMetric,
    "LMNN": LMNN,
    "LMNNEig": LMNNEig,
}
LARGE = ("DMLEig", "TripletMetric", "LMNN")

NOTES = (
    f"(a) The training part of one split of 70 %. Labels: neighbor_metric='euclidean', "
    f"{NEIGHBOURS} neighbours; pairs: those of local_pairs. The difference is the largest entry of "
    "that of the two matrices M, relative to the largest of M.",
    f"(b) {CLASSES} classes with means in a subspace of {SUBSPACE} dimensions, of deviation "
    f"{SPREAD:g} in each, and noise that grows from 0.3 to 3 over the features. Pairs are half the "
    "same and half not. Seconds of ours are those of the whole fit in a fresh process with one "
    "thread, compilation included; those of ITML leave its imports out. Peak memory includes the "
    "data, which the column before has.",
    f"AUC is that of 'the same or not' for {TESTED:,} pairs of points that no fit saw.",
    "ITML is given 1,000 pairs, then twice as many, until it takes longer than DMLEig took for "
    "all. It has no triplets and no certificate.",
    "(c) One process and thread for a model; a first fit, not counted, compiles. λ and μ are those "
    "that the grown data give, for both. Seconds are medians; F is the objective, whose values "
    "agree up to the tolerance of a certified gap of 1e-4.",
)


def run(ctx: Context) -> Report:
    """The three parts."""
    tables = [_agreement(ctx), *_million(ctx), _growth(ctx)]
    return ctx.report(tables, NOTES)


def _fitted(model: Any, method: str, *data: Any, **samples: Any) -> Any:
    """The model fitted by one of its methods, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return getattr(model, method)(*data, **samples)


# --- (a) pairs against labels ---------------------------------------------------------


def _agreement(ctx: Context) -> Table:
    table = Table(
        f"(a) DMLEig from pairs against DMLEig from labels (to be at most {EXACT:g})",
        ["set", "n", "d", "pairs", "difference of M", "holds", "gap, labels", "gap, pairs"],
    )
    for name in SETS:
        if ctx.quick and name in SLOW:
            continue
        if name in BUNDLED:
            X, y = BUNDLED[name](return_X_y=True)
        else:
            data = ctx.load(name)
            X, y = data.X, data.y
        split = make_split(X, y, name, 0)
        child = ctx.in_child(
            "benchmarks.weak_scale:compare", {"X": split.X, "y": split.y}, threads=1
        )
        if not child.ok:
            raise RuntimeError(f"{name}: {child.error}")
        found = child.value
        holds = found["difference"] <= EXACT
        table.add(name, *split.X.shape, found["pairs"], found["difference"], holds, *found["gaps"])
    return table


def compare(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit from labels and from the pairs that they make: what a child process does."""
    labelled = _fitted(DMLEig(neighbor_metric="euclidean", shrinkage=0.0), "fit", X, y)
    pairs, same = _joined(*local_pairs(X, y, NEIGHBOURS))
    paired = _fitted(DMLEig(shrinkage=0.0), "fit_pairs", pairs, same, X=X)
    one, two = (model.get_mahalanobis_matrix() for model in (labelled, paired))
    return {
        "pairs": len(pairs),
        "difference": float(np.max(np.abs(one - two)) / np.max(np.abs(one))),
        "gaps": [model.certificate_.relative_gap for model in (labelled, paired)],
    }


def _joined(similar: np.ndarray, dissimilar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, and whether each is the same."""
    same = np.arange(len(similar) + len(dissimilar)) < len(similar)
    return np.vstack([similar, dissimilar]), same


# --- (b) a million --------------------------------------------------------------------


def synthetic(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n points of 50 classes; the seed draws the points, never the classes' means."""
    rng = np.random.default_rng(12345)
    basis = np.linalg.qr(rng.standard_normal((DIMENSIONS, SUBSPACE)))[0]
    means = SPREAD * rng.standard_normal((CLASSES, SUBSPACE)) @ basis.T
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    noise = rng.standard_normal((n, DIMENSIONS)) * np.geomspace(0.3, 3.0, DIMENSIONS)
    return means[y] + noise, y


def constraints(label: str, y: np.ndarray, count: int) -> tuple[str, tuple[Any, ...]]:
    """The method to fit with, and so many random pairs or triplets for it, in random order."""
    if label != "DMLEig":
        return "fit_triplets", (random_triplets(y, count, random_state=0),)
    pairs, same = _joined(*random_pairs(y, count // 2, random_state=0))
    order = np.random.default_rng(0).permutation(len(same))
    return "fit_pairs", (pairs[order], same[order])


def fit_large(label: str, n: int, count: int, limit: float) -> dict[str, Any]:
    """Draw the data and fit one model: what a child process does."""
    X, y = synthetic(n)
    method, given = constraints(label, y, count)
    before, started = peak_mb(), time.perf_counter()
    model = _fitted(MODELS[label](time_limit=limit), method, *given, X=X)
    return {
        "seconds": time.perf_counter() - started,
        "before": before,
        "gap": model.certificate_.relative_gap,
        "status": model.result_.status.name,
        "rank": model.result_.rank,
        "components": model.components_,
    }


def _million(ctx: Context) -> list[Table]:
    n, count = (QUICK_POINTS, QUICK_COUNT) if ctx.quick else (POINTS, COUNT)
    limit = QUICK_TIME_LIMIT if ctx.quick else TIME_LIMIT
    table = Table(
        f"(b) {n:,} points in {DIMENSIONS} dimensions",
        ["method", "learned from", "number", "seconds", "certified gap", "rank", "ended",
         "MB before", "peak MB", "AUC"],
    )  # fmt: skip
    auc = _auc()
    table.add("Euclid", *([None] * 8), auc(np.eye(DIMENSIONS)))
    spent = 0.0
    for label in LARGE:
        kwargs = {"label": label, "n": n, "count": count, "limit": limit}
        child = ctx.in_child("benchmarks.weak_scale:fit_large", kwargs, threads=1)
        if not child.ok:
            raise RuntimeError(f"{label}: {child.error}")
        found = child.value
        spent = spent or found["seconds"]
        kind = "pairs" if label == "DMLEig" else "triplets"
        table.add(label, kind, count, found["seconds"], found["gap"], found["rank"],
                  found["status"], found["before"], child.peak_mb,
                  auc(found["components"]))  # fmt: skip
    peer = Table(
        "ITML of metric-learn on growing numbers of pairs",
        ["pairs", "seconds", "sweeps", "peak MB", "AUC", "in the time of DMLEig"],
    )
    _add_peer(ctx, n, count, spent, auc, peer)
    return [table, peer]


def _auc() -> Callable[[np.ndarray], float]:
    """The AUC of verification by a metric's components, on pairs of new points."""
    X, y = synthetic(TESTED, seed=1)
    pairs, same = _joined(*random_pairs(y, TESTED // 2, random_state=1))

    def of(components: np.ndarray) -> float:
        Z = X @ np.asarray(components).T
        gaps = Z[pairs[:, 0]] - Z[pairs[:, 1]]
        return float(roc_auc_score(same, -np.sum(gaps * gaps, axis=1)))

    return of


def _add_peer(
    ctx: Context, n: int, most: int, seconds: float, auc: Callable[..., float], table: Table
) -> None:
    """Twice as many pairs again and again, until the seconds are spent."""
    X, y = synthetic(n)
    _, (pairs, same) = constraints("DMLEig", y, most)
    tiny = {"pairs": X[pairs[:50]], "same": np.where(same[:50], 1, -1)}
    why = ctx.peer(PEER, tiny, INSTALL, threads=1).error
    if why is not None:
        table.add(None, None, None, None, None, f"skipped: {why}")
        return
    count = SMALLEST
    while count <= most:
        kwargs = {"pairs": X[pairs[:count]], "same": np.where(same[:count], 1, -1)}
        child = ctx.peer(PEER, kwargs, seconds + IMPORTS, threads=1)
        found = child.value or {}
        spent = found.get("fit_seconds")
        in_time = spent is not None and spent <= seconds
        verdict = in_time if child.ok else "timed out" if child.timed_out else "failed"
        components = found.get("components")
        table.add(count, spent, found.get("sweeps"), child.peak_mb,
                  None if components is None else auc(components), verdict)  # fmt: skip
        if not in_time:
            break
        count *= 2


# --- (c) growing data -----------------------------------------------------------------


def fit_growing(label: str, count: int, repeat: int) -> list[dict[str, float]]:
    """Cold and warm fits to grown constraints: what a child process does."""
    X, y = synthetic(count // 2)
    method, given = constraints(label, y, round(count * (1 + max(SHARES))))

    def fit(rows: int, init: Any) -> tuple[Any, float]:
        started = time.perf_counter()
        model = _fitted(MODELS[label](init=init), method, *(part[:rows] for part in given), X=X)
        return model, time.perf_counter() - started

    first, _ = fit(count, None)
    found = []
    for share in SHARES:
        rows = round(count * (1 + share))
        fits = [(fit(rows, None), fit(rows, first)) for _ in range(repeat)]
        cold, warm = fits[-1][0][0], fits[-1][1][0]
        found.append({
            "cold": float(np.median([one[1] for one, _ in fits])),
            "warm": float(np.median([two[1] for _, two in fits])),
            "difference": warm.result_.value / cold.result_.value - 1,
            "gap, cold": cold.certificate_.relative_gap,
            "gap, warm": warm.certificate_.relative_gap,
        })  # fmt: skip
    return found


def _growth(ctx: Context) -> Table:
    count = QUICK_GROWING if ctx.quick else GROWING
    table = Table(
        f"(c) From {count:,} pairs or triplets of {count // 2:,} points to more",
        ["model", "added", "seconds cold", "seconds warm", "warm ÷ cold", "F warm ÷ F cold − 1",
         "gap, cold", "gap, warm"],
    )  # fmt: skip
    for label in MODELS:
        kwargs = {"label": label, "count": count, "repeat": ctx.repeat}
        child = ctx.in_child("benchmarks.weak_scale:fit_growing", kwargs, threads=1)
        if not child.ok:
            raise RuntimeError(f"{label}: {child.error}")
        for share, found in zip(SHARES, child.value, strict=True):
            ratio = found["warm"] / found["cold"]
            table.add(label, f"{share:.0%}", found["cold"], found["warm"], ratio,
                      found["difference"], found["gap, cold"], found["gap, warm"])  # fmt: skip
    return table
