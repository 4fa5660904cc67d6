"""LRO, Fig. 2: seconds of learning a metric against the number of features.

(a) Dense samples: random ReLU features of MNIST's digits, odd against even. (b) Sparse ones: the
most frequent words of news20. LRO is run as the paper prints it, XᵀX and steps of conjugate
gradient until the paper's own test; and with certificates, the defaults of the library, and
full-rank learners.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks._peers import INSTALL, METRICS
from benchmarks.harness import learn
from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.learn import ratio, slope
from benchmarks.harness.plots import Panel
from benchmarks.harness.report import Report, Table, Versus
from gramian.metric import KTA, LMNN
from gramian.papers.lro import conjugate_gradient
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import moments

TITLE = "LRO on KTA: seconds against the number of features"
PAPER = "LRO (Yuan, Zhang, Ghanem, Hao 2013), Section 5.2, Fig. 2"
NEEDS_DATA = ("mnist", "news20")

RANK, EPSILON = 20, 1e-6
"""Rank of LRO, and ε of the paper's test."""
LIMIT, LMNN_LIMIT, PEER_LIMIT = 10.0, 40.0, 20.0
LRO_LIMIT = 40.0
"""Seconds of processor time; the others are wall times."""
CHILD_LIMIT = 3600.0
LARGE, FORMED = 500, 3000
"""Features from which a second slope is taken, and up to which XᵀX is formed."""
SAMPLES = {"dense": 3000, "sparse": 6000}
SIZES = {"dense": (100, 200, 500, 1000, 2000, 5000), "sparse": (500, 1000, 2000, 5000)}
SIZES_QUICK = {"dense": (100, 200), "sparse": (500,)}
AT_RANK = f"KTA, rank {RANK}"
METHODS: dict[str, dict[str, int]] = {
    "dense": {
        "LRO-KTA": 5000, "LRO-KTA, certified": 1000, AT_RANK: 2000, "KTA": 2000, "LMNN": 500,
    },
    "sparse": {"LRO-KTA": 5000, "LRO-KTA, dense": 5000, AT_RANK: 5000, "KTA": 5000},
}  # fmt: skip
"""By panel, the methods and the largest number of features that they are run with."""
ITML = "metric-learn ITML"
TITLES = {"dense": "(a) dense, 3000 samples", "sparse": "(b) sparse, 6000 samples"}
CLAIMS = {"LRO-KTA": "roughly 1", "LRO-KTA, dense": "roughly 1", "LMNN": "2", ITML: "2"}
"""Slopes by the paper's text: 'full-rank methods scale quadratically', 'low-rank ones roughly
linearly'."""

NOTES = (
    "The paper's sets, gisette and real-sim, are not available. Ours: (a) max(0, xᵀw_j) for "
    "Gaussian w_j, of 3000 of MNIST's digits, odd against even; (b) the n most frequent words in "
    "6000 samples of news20, as square roots with rows of length 1, 20 classes. The paper "
    "prints curves only. SURF, a MATLAB code, is not run.",
    f"LRO-KTA: XᵀX and steps from a random orthonormal factor of rank {RANK}, until F changes by "
    f"less than {EPSILON:g} (|F| + 1) or L by less than {EPSILON:g} √n, the paper's test; no "
    f"certificate. Beyond {FORMED} features XᵀX is not formed, and a step is two products with X. "
    "'certified': KTA(solver=\"lro\"), with its gap every 20 steps and at the end, relative to the "
    "optimum of all ranks.",
    f"λ of LRO-KTA: that of {AT_RANK} by held-out samples, or the last one; in the seconds of KTA "
    "only.",
    "Seconds: processor time of one thread, for ITML wall time. Limits: "
    f"{LRO_LIMIT:g} s of processor time for LRO-KTA; wall time {LMNN_LIMIT:g} s for LMNN, "
    f"{PEER_LIMIT:g} s for ITML with its start, after which it is not run further, {LIMIT:g} s for "
    "the solver of the others, without the selection of λ and the last certificate. *: a limit was "
    "reached, of time or of 1000 steps; not part of the slope, that of the logarithms. –: not run.",
    "KTA with up to 3000 features selects λ by up to seven decompositions, three quarters of its "
    "seconds. Beyond, λ is a rule and nothing is decomposed: hence the decrease in (b). (a) KTA is "
    "not run with 5000 features, where it would decompose matrices of order 3000.",
)


@dataclass(frozen=True)
class Fit:
    """One method with one number of features."""

    seconds: float
    limited: bool = False
    steps: int | None = None
    value: float | None = None
    gap: float | None = None
    outside: float | None = None
    """The share of the time outside the solver: moments, λ, the form of the result."""

    @property
    def text(self) -> str:
        return f"{self.seconds:.3g}{'*' if self.limited else ''}"


Found = dict[str, dict[int, Fit]]
"""By method and number of features."""


def run(ctx: Context) -> Report:
    """Each panel in its own process, ITML in its own environment."""
    given = {"folder": str(ctx.data_folder), "quick": ctx.quick}
    found: dict[str, Found] = {
        panel: ctx.call(measure, CHILD_LIMIT, panel=panel, **given) for panel in METHODS
    }
    found["dense"][ITML], failure = _itml(ctx)
    _draw(ctx, found)
    tables = [_seconds(found[panel], panel, ctx.quick) for panel in found]
    skipped = [] if failure is None else [f"{ITML} is skipped: {failure}."]
    tables += [_slopes(found), _steps(found), _quality(found)]
    return ctx.report(tables, (*NOTES, *skipped))


# --- samples -------------------------------------------------------------------------


def samples(folder: str, panel: str, quick: bool) -> Iterator[tuple[Any, np.ndarray]]:
    """The samples and classes of a panel at every size."""
    data = load_set("mnist" if panel == "dense" else "news20", Path(folder))
    rows = np.random.default_rng(0).permutation(data.y.size)[: SAMPLES[panel]]
    X, y = data.X[rows], data.y[rows].astype(int)
    if panel == "dense":
        X, y = X / data.X.std(), y % 2
    else:
        order = np.argsort(-np.diff(X.tocsc().indptr), kind="stable")
    for n in (SIZES_QUICK if quick else SIZES)[panel]:
        if panel == "dense":
            W = np.random.default_rng(n).standard_normal((X.shape[1], n)) / np.sqrt(X.shape[1])
            yield np.maximum(0.0, X @ W), y
        else:
            yield normalize(np.sqrt(X[:, order[:n]])), y


# --- fits ----------------------------------------------------------------------------


def measure(folder: str, panel: str, quick: bool) -> Found:
    """Every method of a panel with every number of features: in a child process."""
    found: Found = {label: {} for label in METHODS[panel]}
    lam = np.nan
    for k, (X, y) in enumerate(samples(folder, panel, quick)):
        n = X.shape[1]
        if k == 0:  # compiles
            for model in (KTA(rank=2, max_iter=1), LMNN(max_iter=1))[: 1 + (panel == "dense")]:
                fitted(model, X[:200], y[:200])
        tried = [label for label, most in METHODS[panel].items() if n <= most]
        if AT_RANK in tried:
            at_rank = KTA(rank=RANK, time_limit=None if quick else LIMIT)
            found[AT_RANK][n], model = fitted(at_rank, X, y)
            lam = getattr(model, "lam_", lam)
        for label in tried:
            if label != AT_RANK:
                found[label][n] = _fit(label, X, y, lam, quick)
    return found


def _fit(label: str, X: Any, y: np.ndarray, lam: float, quick: bool) -> Fit:
    if label in ("LRO-KTA", "LRO-KTA, dense"):
        dense = X.toarray() if label.endswith("dense") else X
        return descend(dense, y, RANK, lam, LRO_LIMIT)[0]
    limit = None if quick else LIMIT
    model = {
        "LRO-KTA, certified": KTA(solver="lro", rank=RANK, lam=lam, time_limit=limit),
        "KTA": KTA(time_limit=limit),
        "LMNN": LMNN(time_limit=LMNN_LIMIT),
    }[label]
    return fitted(model, X, y)[0]


def fitted(model: Any, X: Any, y: np.ndarray) -> tuple[Fit, Any]:
    """The processor time and certificate of a fit, and the model."""
    clock, start = time.process_time(), time.perf_counter()
    try:
        model, seconds = learn.fitted(model, X, y, clock=time.process_time)
    except TimeoutError:  # without a certificate within the limit
        return Fit(time.process_time() - clock, limited=True), model
    waited, result = time.perf_counter() - start, model.result_
    limited = result.status.name in ("TIME_LIMIT", "MAX_ITER")
    fit = Fit(seconds, limited, model.n_iter_, result.value, result.certificate.relative_gap,
              1 - result.seconds / waited)  # fmt: skip
    return fit, model


def descend(X: Any, y: np.ndarray, rank: int, lam: float, limit: float) -> tuple[Fit, np.ndarray]:
    """LRO's Algorithm 1 on KTA, from its random orthonormal start to its own test; the factor."""
    classes = np.unique(y, return_inverse=True)[1]
    started = time.process_time()
    data = moments(X, classes, center=True)
    forming = time.process_time() - started
    objective = kta_from_moments(data, lam).objective  # decomposes XᵀX too, for certificates
    started = time.process_time()
    start = np.random.default_rng(0).standard_normal((data.order, rank))
    factor, value, steps, limited = np.linalg.qr(start)[0], np.inf, 0, False
    for steps, (image, _) in enumerate(conjugate_gradient(objective, factor)):
        change, moved = abs(objective.value(image) - value), np.linalg.norm(image.factor - factor)
        factor, value = image.factor, objective.value(image)
        if steps and (change < EPSILON * (abs(value) + 1) or moved < EPSILON * np.sqrt(data.order)):
            break
        if time.process_time() - started > limit:
            limited = True
            break
    return Fit(forming + time.process_time() - started, limited, steps, value), factor


def _itml(ctx: Context) -> tuple[dict[int, Fit], str | None]:
    """ITML up to the size that takes too long; the error if it is not available."""
    found: dict[int, Fit] = {}
    peer, options = METRICS[ITML]
    for X, y in samples(str(ctx.data_folder), "dense", ctx.quick):
        kwargs = {**options, "X": X, "y": y, "random_state": 0}
        if not found:
            tiny = ctx.peer(peer, {**kwargs, "X": X[:50, :5], "y": y[:50]}, INSTALL, threads=1)
            if not tiny.ok:
                return found, tiny.error
        answer = ctx.peer(peer, kwargs, PEER_LIMIT, threads=1)
        if not answer.ok:
            found[X.shape[1]] = Fit(PEER_LIMIT, limited=True)
            return found, None if answer.timed_out else answer.error
        found[X.shape[1]] = Fit(answer.value["fit_seconds"])
    return found, None


# --- tables --------------------------------------------------------------------------


def _seconds(found: Found, panel: str, quick: bool) -> Table:
    sizes = (SIZES_QUICK if quick else SIZES)[panel]
    table = Table(f"Seconds of a fit, {TITLES[panel]}", ["method", *(f"n = {n}" for n in sizes)])
    for label, fits in found.items():
        table.add(label, *(fits[n].text if n in fits else None for n in sizes))
    return table


def _slopes(found: dict[str, Found]) -> Table:
    table = Table(
        "Slope of log seconds against log n, of the fits that no limit ended",
        ["panel", "method", f"n ≤ {FORMED}", f"{LARGE} ≤ n ≤ {FORMED}", "all n", "fits",
         "ended by a limit", "share outside the solver, largest n"],
    )  # fmt: skip
    for panel, label, fits in _lines(found):
        kept = {n: fit.seconds for n, fit in fits.items() if not fit.limited}
        ended = [str(n) for n, fit in fits.items() if fit.limited]
        table.add(
            TITLES[panel], label, Versus(slope(kept, most=FORMED), CLAIMS.get(label)),
            slope(kept, LARGE, FORMED), slope(kept), len(kept), ", ".join(ended) or "none",
            fits[max(fits)].outside if fits else None,
        )  # fmt: skip
    return table


def _steps(found: dict[str, Found]) -> Table:
    table = Table(
        "LRO-KTA: steps to the paper's test, and milliseconds a step, with the share of XᵀX",
        ["panel", "method", "n", "steps", "ms a step", "slope of ms a step up to here"],
    )
    for panel, label, fits in _lines(found):
        if label.startswith("LRO"):
            each = {n: 1e3 * fit.seconds / max(fit.steps or 0, 1) for n, fit in fits.items()}
            for n, fit in fits.items():
                steps = f"{fit.steps}{'*' if fit.limited else ''}"
                table.add(TITLES[panel], label, n, steps, each[n], slope(each, most=n))
    return table


def _quality(found: dict[str, Found]) -> Table:
    """F of the same model at the same λ and rank, and the gaps."""
    table = Table(
        f"What they found: F relative to that of {AT_RANK}, and certified relative gaps",
        ["panel", "n", "F of LRO-KTA, above", f"gap of {AT_RANK}", "gap of LRO-KTA, certified",
         "gap of KTA"],
    )  # fmt: skip
    for panel, by_method in found.items():
        for n, reference in by_method[AT_RANK].items():
            others = [by_method.get(label, {}).get(n) for label in ("LRO-KTA, certified", "KTA")]
            share = ratio(by_method["LRO-KTA"][n].value, reference.value)
            excess = None if share is None else share - 1
            gaps = [None if fit is None else fit.gap for fit in others]
            table.add(TITLES[panel], n, excess, reference.gap, *gaps)
    return table


def _lines(found: dict[str, Found]) -> Iterator[tuple[str, str, dict[int, Fit]]]:
    for panel, by_method in found.items():
        for label, fits in by_method.items():
            yield panel, label, fits


def _draw(ctx: Context, found: dict[str, Found]) -> None:
    panels = []
    for panel, by_method in found.items():
        curves: dict[str, Any] = {
            label: (list(fits), [fit.seconds for fit in fits.values()])
            for label, fits in by_method.items()
        }
        sizes, seconds = map(np.array, curves["LRO-KTA"])
        guides = {f"slope {p}": (sizes, seconds[0] * (sizes / sizes[0]) ** p) for p in (1, 2)}
        panels.append(Panel(curves | guides, "features n", "seconds", TITLES[panel], logx=True,
                            logy=True, dashed=list(guides)))  # fmt: skip
    ctx.panels("seconds", "Seconds of a fit against the number of features", *panels)
