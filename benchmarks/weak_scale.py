"""Metrics from pairs and triplets: the same as from labels, at a million, and as the data grow.

(a) On the sets of DML-eig's Table 4, a fit to the pairs that labels make against the fit to the
labels. (b) A million pairs, or triplets, of 100,000 synthetic points in 100 dimensions, against
ITML of metric-learn, with as many pairs as it can take in the seconds of our DMLEig. (c) A fit that
starts from the one before 1 % and 10 % of the pairs or triplets were added.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks._peers import INSTALL, METRIC_LEARN
from benchmarks.dml_eig_tables45 import SETS, make_split
from benchmarks.harness.context import Context
from benchmarks.harness.learn import fitted
from benchmarks.harness.measured import peak_mb
from benchmarks.harness.report import Report, Table
from gramian.constraints import local_pairs, random_pairs, random_triplets
from gramian.metric import LMNN, DMLEig, LMNNEig, TripletMetric

TITLE = "Pairs and triplets: the same as labels, a million of them, and growing data"
PAPER = "Not from a paper: weak supervision with realistic numbers of pairs"
NEEDS_DATA = ("pima", "waveform", "segment", "optdigits", "orl_faces", "usps")

QUICK = ("wine", "iris")
EXACT, NEIGHBOURS = 1e-8, 3
DIMENSIONS, CLASSES, SUBSPACE, SPREAD = 100, 50, 20, 0.5
"""Of the synthetic points; SPREAD: the deviation of the means along each direction."""
POINTS, COUNT, TIME_LIMIT = (100_000, 2_000), (1_000_000, 3_000), (150.0, 5.0)
TESTED = 20_000
"""Test pairs, half of them the same, of points that no fit uses."""
SMALLEST, IMPORTS = 1_000, 20.0
GROWING, SHARES = (20_000, 600), (0.01, 0.10)
MODELS = {"DMLEig": DMLEig, "TripletMetric": TripletMetric, "LMNN": LMNN, "LMNNEig": LMNNEig}
LARGE = ("DMLEig", "TripletMetric", "LMNN")

NOTES = (
    f"(a) The training part of one split of 70 %. Labels: neighbor_metric='euclidean', "
    f"{NEIGHBOURS} neighbours; pairs: those of local_pairs. The difference is the largest entry of "
    "that of the two matrices M, relative to the largest of M.",
    f"(b) {CLASSES} classes with means in a subspace of {SUBSPACE} dimensions, of deviation "
    f"{SPREAD:g} in each, and noise that grows from 0.3 to 3 over the features. Half of the pairs "
    "are the same. Seconds of ours: the whole fit in a new process with one thread, compilation "
    "included; of ITML: without its imports. Peak memory includes the data, shown in the column "
    f"before it. AUC: 'the same or not' for {TESTED:,} pairs of new points. ITML has 1,000 pairs, "
    "then twice as many, until it takes longer than DMLEig for all; it has no triplets and no "
    "certificate.",
    "(c) One process and thread for a model, after an uncounted fit. λ and μ are those of the "
    "grown data, for both. Seconds are medians; the values of F agree up to a certified gap of "
    "1e-4.",
)


def run(ctx: Context) -> Report:
    """The three parts."""
    return ctx.report([_agreement(ctx), *_million(ctx), _growth(ctx)], NOTES)


# --- (a) pairs against labels ---------------------------------------------------------


def _agreement(ctx: Context) -> Table:
    table = Table(
        f"(a) DMLEig from pairs against DMLEig from labels (to be at most {EXACT:g})",
        ["set", "n", "d", "pairs", "difference of M", "holds", "gap, labels", "gap, pairs"],
    )
    for name in ctx.pick(SETS, QUICK):
        data = ctx.load(name)
        split = make_split(data.X, data.y, name, 0)
        pairs, difference, gaps = ctx.call(compare, X=split.X, y=split.y)
        table.add(name, *split.X.shape, pairs, difference, difference <= EXACT, *gaps)
    return table


def compare(X: np.ndarray, y: np.ndarray) -> tuple[int, float, list[float]]:
    """Fit from labels and from the pairs that they make: in a child process."""
    labelled, _ = fitted(DMLEig(neighbor_metric="euclidean", shrinkage=0.0), X, y)
    pairs, same = _joined(*local_pairs(X, y, NEIGHBOURS))
    paired, _ = fitted(DMLEig(shrinkage=0.0), pairs, same, method="fit_pairs", X=X)
    one, two = (model.get_mahalanobis_matrix() for model in (labelled, paired))
    difference = float(np.max(np.abs(one - two)) / np.max(np.abs(one)))
    return len(pairs), difference, [m.certificate_.relative_gap for m in (labelled, paired)]


def _joined(similar: np.ndarray, dissimilar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs, and whether each is the same."""
    same = np.arange(len(similar) + len(dissimilar)) < len(similar)
    return np.vstack([similar, dissimilar]), same


# --- (b) a million --------------------------------------------------------------------


def synthetic(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n points of 50 classes; the seed draws the points, the means of the classes are fixed."""
    rng = np.random.default_rng(12345)
    basis = np.linalg.qr(rng.standard_normal((DIMENSIONS, SUBSPACE)))[0]
    means = SPREAD * rng.standard_normal((CLASSES, SUBSPACE)) @ basis.T
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    noise = rng.standard_normal((n, DIMENSIONS)) * np.geomspace(0.3, 3.0, DIMENSIONS)
    return means[y] + noise, y


def constraints(label: str, y: np.ndarray, count: int) -> tuple[str, tuple[Any, ...]]:
    """The method to fit with, and random pairs or triplets for it, in random order."""
    if label != "DMLEig":
        return "fit_triplets", (random_triplets(y, count, random_state=0),)
    pairs, same = _joined(*random_pairs(y, count // 2, random_state=0))
    order = np.random.default_rng(0).permutation(len(same))
    return "fit_pairs", (pairs[order], same[order])


def fit_large(label: str, n: int, count: int, limit: float) -> dict[str, Any]:
    """Draw the data and fit one model: in a child process."""
    X, y = synthetic(n)
    method, given = constraints(label, y, count)
    before = peak_mb()
    model, seconds = fitted(MODELS[label](time_limit=limit), *given, method=method, X=X)
    return {
        "seconds": seconds, "gap": model.certificate_.relative_gap, "rank": model.result_.rank,
        "status": model.result_.status.name, "before": before, "peak": peak_mb(),
        "components": model.components_,
    }  # fmt: skip


def _million(ctx: Context) -> list[Table]:
    n, count, limit = ctx.pick(*POINTS), ctx.pick(*COUNT), ctx.pick(*TIME_LIMIT)
    table = Table(
        f"(b) {n:,} points in {DIMENSIONS} dimensions",
        ["method", "learned from", "number", "seconds", "certified gap", "rank", "ended",
         "MB before", "peak MB", "AUC"],
    )  # fmt: skip
    auc = _auc()
    table.add("Euclid", *[None] * 8, auc(np.eye(DIMENSIONS)))
    found = {label: ctx.call(fit_large, label=label, n=n, count=count, limit=limit)
             for label in LARGE}  # fmt: skip
    for label, row in found.items():
        components = row.pop("components")
        kind = "pairs" if label == "DMLEig" else "triplets"
        table.add(label, kind, count, *row.values(), auc(components))
    return [table, _itml(ctx, n, count, found["DMLEig"]["seconds"], auc)]


def _auc() -> Callable[[np.ndarray], float]:
    """The AUC of verification by a metric's components, on pairs of new points."""
    X, y = synthetic(TESTED, seed=1)
    pairs, same = _joined(*random_pairs(y, TESTED // 2, random_state=1))

    def of(components: np.ndarray) -> float:
        Z = X @ np.asarray(components).T
        gaps = Z[pairs[:, 0]] - Z[pairs[:, 1]]
        return float(roc_auc_score(same, -np.sum(gaps * gaps, axis=1)))

    return of


def _itml(
    ctx: Context, n: int, most: int, seconds: float, auc: Callable[[np.ndarray], float]
) -> Table:
    """ITML with twice as many pairs again and again, until the seconds are spent."""
    table = Table(
        "ITML of metric-learn on growing numbers of pairs",
        ["pairs", "seconds", "sweeps", "peak MB", "AUC", "in the time of DMLEig"],
    )
    X, y = synthetic(n)
    _, (pairs, same) = constraints("DMLEig", y, most)

    def call(count: int, limit: float) -> Any:
        samples = {"X": X[pairs[:count]], "y": np.where(same[:count], 1, -1)}
        return ctx.peer(METRIC_LEARN, {"model": "ITML", **samples}, limit, threads=1)

    failure = call(50, INSTALL).error
    if failure is not None:
        table.add(*[None] * 5, f"skipped: {failure}")
    count, in_time = SMALLEST, failure is None
    while in_time and count <= most:
        child = call(count, seconds + IMPORTS)
        found = child.value or {}
        spent, components = found.get("fit_seconds"), found.get("components")
        in_time = spent is not None and spent <= seconds
        verdict = in_time if child.ok else "timed out" if child.timed_out else "failed"
        area = None if components is None else auc(components)
        table.add(count, spent, found.get("sweeps"), child.peak_mb, area, verdict)
        count *= 2
    return table


# --- (c) growing data -----------------------------------------------------------------


def fit_growing(label: str, count: int, repeat: int) -> list[tuple[float, ...]]:
    """Cold and warm fits to grown constraints: in a child process."""
    X, y = synthetic(count // 2)
    method, given = constraints(label, y, round(count * (1 + max(SHARES))))

    def fit(rows: int, init: Any) -> tuple[Any, float]:
        parts = (part[:rows] for part in given)
        return fitted(MODELS[label](init=init), *parts, method=method, X=X)

    first, _ = fit(count, None)
    found = []
    for share in SHARES:
        rows = round(count * (1 + share))
        fits = [(fit(rows, None), fit(rows, first)) for _ in range(repeat)]
        (cold, _), (warm, _) = fits[-1]
        seconds = [float(np.median([pair[k][1] for pair in fits])) for k in (0, 1)]
        found.append((
            *seconds, seconds[1] / seconds[0], warm.result_.value / cold.result_.value - 1,
            cold.certificate_.relative_gap, warm.certificate_.relative_gap,
        ))  # fmt: skip
    return found


def _growth(ctx: Context) -> Table:
    count = ctx.pick(*GROWING)
    table = Table(
        f"(c) From {count:,} pairs or triplets of {count // 2:,} points to more",
        ["model", "added", "seconds cold", "seconds warm", "warm ÷ cold", "F warm ÷ F cold − 1",
         "gap, cold", "gap, warm"],
    )  # fmt: skip
    for label in MODELS:
        found = ctx.call(fit_growing, label=label, count=count, repeat=ctx.repeat)
        for share, row in zip(SHARES, found, strict=True):
            table.add(label, f"{share:.0%}", *row)
    return table
