"""LRO, Fig. 2: seconds of learning a metric against the number of features.

(a) Dense samples: random ReLU features of MNIST's digits, odd against even. (b) Sparse ones: the
most frequent words of news20. LRO is run as the paper prints it, XᵀX and steps of conjugate
gradient until the paper's own test; beside it what the library makes of it, with certificates, the
library's defaults and full-rank learners.
"""

import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from benchmarks.harness.context import Context
from benchmarks.harness.data import load_set
from benchmarks.harness.report import Report, Table, Versus
from gramian.metric import KTA, LMNN
from gramian.papers.lro import conjugate_gradient
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import moments

TITLE = "LRO on KTA: seconds against the number of features"
PAPER = "LRO (Yuan, Zhang, Ghanem, Hao 2013), Section 5.2, Fig. 2"
NEEDS_DATA = ("mnist", "news20")

RANK = 20
EPSILON = 1e-6
"""Of the paper's test."""
LIMIT, LMNN_LIMIT, PEER_LIMIT = 10.0, 40.0, 20.0
"""Seconds by the clock."""
LRO_LIMIT = 40.0
"""Seconds of the processor."""
QUICK_LIMIT = 2.0
INSTALL, CHILD_LIMIT = 1200.0, 3600.0
LARGE, FORMED = 500, 3000
"""Features from which a second slope is taken, and up to which XᵀX is formed."""
SAMPLES = {"dense": 3000, "sparse": 6000}
SIZES = {"dense": (100, 200, 500, 1000, 2000, 5000), "sparse": (500, 1000, 2000, 5000)}
SIZES_QUICK = {"dense": (100, 200), "sparse": (500,)}
AT_RANK = f"KTA, rank {RANK}"
METHODS: dict[str, dict[str, int]] = {
    "dense": {
        "LRO-KTA": 5000,
        "LRO-KTA, certified": 1000,
        AT_RANK: 2000,
        "KTA": 2000,
        "LMNN": 500,
    },
    "sparse": {"LRO-KTA": 5000, "LRO-KTA, dense": 5000, AT_RANK: 5000, "KTA": 5000},
}
"""By panel, what runs there and the most features it is tried with."""
PEER, ITML = "metric_learn_all", "metric-learn ITML"
TITLES = {"dense": "(a) dense, 3000 samples", "sparse": "(b) sparse, 6000 samples"}
CLAIMS = {"LRO-KTA": "roughly 1", "LRO-KTA, dense": "roughly 1", "LMNN": "2", ITML: "2"}
"""The slopes that the paper's text has: 'full-rank methods scale quadratically', 'low-rank ones
roughly linearly'."""

NOTES = (
    "The paper's sets, gisette and real-sim, could not be had. Ours: (a) max(0, xᵀw_j) for "
    "Gaussian w_j, of 3000 of MNIST's digits, odd against even; (b) the n words that most of 6000 "
    "samples of news20 have, as square roots with rows of length 1, in 20 classes. The paper "
    "prints curves only, no seconds. SURF, a MATLAB code, is not run.",
    f"LRO-KTA: XᵀX and steps from a random orthonormal factor of rank {RANK}, until F changes by "
    f"less than {EPSILON:g} (|F| + 1) or L by less than {EPSILON:g} √n, which is the paper's test. "
    "No certificate, nothing else in its seconds. Beyond 3000 features XᵀX is not formed, and a "
    "step is two products with X. 'certified': KTA(solver=\"lro\"), which measures its gap every "
    "20 steps and at the end; the gap is to the optimum of all ranks.",
    f"λ of LRO-KTA: the one that {AT_RANK} finds on held-out samples, for the same model; where "
    "that is not run, the last one found. Its seconds do not count it; those of KTA do.",
    "Seconds are processor time of one thread, which other work on the machine does not lengthen, "
    "save for ITML, whose own clock is shown. Limits: "
    f"{LRO_LIMIT:g} s of the processor for LRO-KTA; by the clock {LMNN_LIMIT:g} s for LMNN, "
    f"{PEER_LIMIT:g} for ITML with its start, after which it is tried no further, {LIMIT:g} for "
    "the solver of the others; finding λ, and a certificate that has begun, come on top. *: a "
    "limit was reached, of time or of 1000 steps, and the fit is left out of the slope, that of "
    "the logarithms. –: not tried.",
    "KTA with up to 3000 features finds λ on held-out samples by up to seven decompositions, "
    "three quarters of its seconds. Beyond, where samples are more too, λ is a rule and nothing is "
    "decomposed: hence the fall in (b), and slopes over all n that say nothing of KTA. (a) KTA is "
    "not tried with 5000 features, where it works in the span of the 3000 samples and decomposes "
    "matrices of that order.",
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
    """The share of the time that is not the solver's: moments, λ, the form of the result."""


Found = dict[str, dict[int, Fit]]
"""By method, by number of features."""


@dataclass(frozen=True)
class Descent:
    """Where LRO stopped, and what it took."""

    factor: np.ndarray
    value: float
    steps: int
    seconds: float
    limited: bool


def run(ctx: Context) -> Report:
    """Each panel in a process of its own, ITML in its own environment."""
    found: dict[str, Found] = {}
    for panel in METHODS:
        kwargs = {"folder": str(ctx.data_folder), "panel": panel, "quick": ctx.quick}
        child = ctx.in_child("benchmarks.lro_fig2:measure", kwargs, CHILD_LIMIT, threads=1)
        if not child.ok:
            raise RuntimeError(f"{panel}: {child.error}")
        found[panel] = child.value
    found["dense"][ITML], why = _itml(ctx)
    _draw(ctx, found)
    tables = [_seconds(found[panel], panel, ctx.quick) for panel in found]
    tables += [_slopes(found), _steps(found), _quality(found)]
    skipped = [] if why is None else [f"{ITML} is skipped: {why}."]
    return ctx.report(tables, (*NOTES, *skipped))


# --- samples -------------------------------------------------------------------------


def dense_samples(folder: str, sizes: tuple[int, ...]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random ReLU features of MNIST, and whether the digit is odd, for every size."""
    data = load_set("mnist", Path(folder))
    rows = np.random.default_rng(0).permutation(data.y.size)[: SAMPLES["dense"]]
    X, y = data.X[rows] / data.X.std(), data.y[rows].astype(int) % 2
    for n in sizes:
        W = np.random.default_rng(n).standard_normal((X.shape[1], n)) / np.sqrt(X.shape[1])
        yield np.maximum(0.0, X @ W), y


def sparse_samples(folder: str, sizes: tuple[int, ...]) -> Iterator[tuple[Any, np.ndarray]]:
    """The most frequent words of a part of news20, for every size."""
    data = load_set("news20", Path(folder))
    rows = np.random.default_rng(0).permutation(data.y.size)[: SAMPLES["sparse"]]
    X, y = data.X[rows], data.y[rows].astype(int)
    order = np.argsort(-np.diff(X.tocsc().indptr), kind="stable")
    for n in sizes:
        yield normalize(np.sqrt(X[:, order[:n]])), y


# --- fits ----------------------------------------------------------------------------


def measure(folder: str, panel: str, quick: bool) -> Found:
    """Every method of a panel with every number of features: what the child process does."""
    sizes = (SIZES_QUICK if quick else SIZES)[panel]
    samples = dense_samples if panel == "dense" else sparse_samples
    found: Found = {label: {} for label in METHODS[panel]}
    lam = np.nan
    for X, y in samples(folder, sizes):
        n = X.shape[1]
        if n == sizes[0]:
            _compile(X, y, panel)
        tried = [label for label, most in METHODS[panel].items() if n <= most]
        if AT_RANK in tried:
            found[AT_RANK][n], model = fitted(KTA(rank=RANK, time_limit=_limit(LIMIT, quick)), X, y)
            lam = model.lam_
        for label in tried:
            if label != AT_RANK:
                found[label][n] = _fit(label, X, y, lam, quick)
    return found


def _fit(label: str, X: Any, y: np.ndarray, lam: float, quick: bool) -> Fit:
    if label in ("LRO-KTA", "LRO-KTA, dense"):
        samples = X.toarray() if label.endswith("dense") else X
        descent = descend(samples, y, RANK, lam, _limit(LRO_LIMIT, quick))
        return Fit(descent.seconds, descent.limited, descent.steps, descent.value)
    model = {
        "LRO-KTA, certified": KTA(
            solver="lro", rank=RANK, lam=lam, time_limit=_limit(LIMIT, quick)
        ),
        "KTA": KTA(time_limit=_limit(LIMIT, quick)),
        "LMNN": LMNN(time_limit=_limit(LMNN_LIMIT, quick)),
    }[label]
    return fitted(model, X, y)[0]


def _limit(seconds: float, quick: bool) -> float:
    return min(seconds, QUICK_LIMIT) if quick else seconds


def _compile(X: Any, y: np.ndarray, panel: str) -> None:
    """A first fit of each kind, whose compilation is not to be counted."""
    models = [KTA(rank=2, time_limit=1.0), *([LMNN(time_limit=1.0)] if panel == "dense" else [])]
    for model in models:
        fitted(model, X[:200], y[:200])


def fitted(model: Any, X: Any, y: np.ndarray) -> tuple[Fit, Any]:
    """Fit a learner of the library; its processor time and what it says of itself."""
    clock, start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds, waited = time.process_time() - start, time.perf_counter() - clock
    result = model.result_
    fit = Fit(
        seconds,
        result.status.name in ("TIME_LIMIT", "MAX_ITER"),
        model.n_iter_,
        result.value,
        result.certificate.relative_gap,
        1 - result.seconds / waited,
    )
    return fit, model


def descend(X: Any, y: np.ndarray, rank: int, lam: float, limit: float) -> Descent:
    """LRO's Algorithm 1 on KTA, from its random orthonormal start to its own test."""
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
    return Descent(factor, value, steps, forming + time.process_time() - started, limited)


def _itml(ctx: Context) -> tuple[dict[int, Fit], str | None]:
    """ITML of metric-learn until it takes too long, and why not where it cannot be had."""
    sizes = (SIZES_QUICK if ctx.quick else SIZES)["dense"]
    found: dict[int, Fit] = {}
    for X, y in dense_samples(str(ctx.data_folder), sizes):
        kwargs = {"model": "ITML_Supervised", "X": X, "y": y, "random_state": 0}
        if not found:
            tried = ctx.peer(PEER, {**kwargs, "X": X[:50, :5], "y": y[:50]}, INSTALL, threads=1)
            if not tried.ok:
                return found, tried.error
        answer = ctx.peer(PEER, kwargs, PEER_LIMIT, threads=1)
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
        table.add(label, *(_text(fits.get(n)) for n in sizes))
    return table


def _text(fit: Fit | None) -> str | None:
    return None if fit is None else f"{fit.seconds:.3g}{'*' if fit.limited else ''}"


def slope(points: Mapping[int, float], least: float = 0, most: float = np.inf) -> float | None:
    """Of the logarithms, between two ends; None for fewer than two points."""
    kept = [(at, value) for at, value in points.items() if least <= at <= most and value > 0]
    if len(kept) < 2:
        return None
    x, y = np.log(kept).T
    return float(np.polyfit(x, y, 1)[0])


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
            TITLES[panel],
            label,
            Versus(slope(kept, most=FORMED), CLAIMS.get(label)),
            slope(kept, LARGE, FORMED),
            slope(kept),
            len(kept),
            ", ".join(ended) or "none",
            fits[max(fits)].outside if fits else None,
        )
    return table


def _steps(found: dict[str, Found]) -> Table:
    """LRO taken apart: the steps to the paper's test, and the price of one."""
    table = Table(
        "LRO-KTA: steps to the paper's test, and milliseconds a step, with the share of XᵀX",
        ["panel", "method", "n", "steps", "ms a step", "slope of ms a step up to here"],
    )
    for panel, label, fits in _lines(found):
        if not label.startswith("LRO"):
            continue
        each = {n: 1e3 * fit.seconds / max(fit.steps or 0, 1) for n, fit in fits.items()}
        for n, fit in fits.items():
            so_far = {m: ms for m, ms in each.items() if m <= n}
            steps = f"{fit.steps}{'*' if fit.limited else ''}"
            table.add(TITLES[panel], label, n, steps, each[n], slope(so_far))
    return table


def _quality(found: dict[str, Found]) -> Table:
    """What the seconds bought: the same model at the same λ and rank."""
    table = Table(
        f"What they found: F relative to that of {AT_RANK}, and certified relative gaps",
        ["panel", "n", "F of LRO-KTA, above", f"gap of {AT_RANK}", "gap of LRO-KTA, certified",
         "gap of KTA"],
    )  # fmt: skip
    for panel, by_method in found.items():
        for n, reference in by_method[AT_RANK].items():
            others = [by_method.get(label, {}).get(n) for label in ("LRO-KTA, certified", "KTA")]
            table.add(
                TITLES[panel],
                n,
                by_method["LRO-KTA"][n].value / reference.value - 1,
                reference.gap,
                *(None if fit is None else fit.gap for fit in others),
            )
    return table


def _lines(found: dict[str, Found]) -> Iterator[tuple[str, str, dict[int, Fit]]]:
    for panel, by_method in found.items():
        for label, fits in by_method.items():
            yield panel, label, fits


def _draw(ctx: Context, found: dict[str, Found]) -> None:
    caption = "Seconds of a fit against the number of features; hollow: ended by a time limit"
    labels = list(dict.fromkeys(label for _, label, _ in _lines(found)))
    with ctx.figure("seconds", caption, nrows=1, ncols=2, figsize=(12, 5)) as (_, axes):
        for ax, (panel, by_method) in zip(axes, found.items(), strict=True):
            for label, fits in by_method.items():
                color = f"C{labels.index(label)}"
                ax.plot([*fits], [fit.seconds for fit in fits.values()], color=color, label=label)
                for n, fit in fits.items():
                    fill = "white" if fit.limited else color
                    ax.plot(n, fit.seconds, "o", color=color, markerfacecolor=fill, markersize=5)
            _guides(ax, by_method["LRO-KTA"])
            ax.set(xlabel="features n", ylabel="seconds", xscale="log", yscale="log",
                   title=TITLES[panel])  # fmt: skip
            ax.grid(alpha=0.3)
            ax.legend(fontsize="small")


def _guides(ax: Any, fits: dict[int, Fit]) -> None:
    """Lines of slope 1 and 2 through LRO's first point."""
    sizes = np.array([*fits], dtype=float)
    first = fits[int(sizes[0])].seconds
    for power, style in ((1, ":"), (2, "--")):
        line = first * (sizes / sizes[0]) ** power
        ax.plot(sizes, line, style, color="grey", linewidth=0.8, label=f"slope {power}")
