"""DML-eig, Figure 1: error of 3-NN and training seconds on the AT&T faces by PCA dimension.

Random splits of the 400 images of 40 persons, 70 % for training. The PCA of the training part is
cut at several dimensions, and every method learns from the same samples. The software of others
fits each in a process of its own that a time limit ends.
"""

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from benchmarks.dml_eig_tables45 import INSTALL, PAPER_TABLE_4, PAPER_TABLE_5, Split
from benchmarks.dml_eig_tables45 import Fits as SetFits
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.metric import LMNN, DMLEig, LMNNEig

TITLE = "DML-eig on the AT&T faces: error of 3-NN and seconds by PCA dimension"
PAPER = "DML-eig (Ying, Li 2012), Section 5.1, Figure 1"
NEEDS_DATA = ("orl_faces",)

DIMENSIONS, DIMENSIONS_QUICK = (20, 40, 64, 90, 120), (20, 64)
PAPER_DIMENSION = 64
"""That of the faces in Tables 4 and 5."""
SPLITS, SPLITS_QUICK = 3, 1
LIMIT, LIMIT_QUICK = 60.0, 5.0
"""Seconds of a fit at most."""
LOCAL_PAIRS = 840
"""Similar pairs of the faces in the paper's Table 3, 3 for each training image."""

OURS: dict[str, Callable[..., Any]] = {"DMLEig": DMLEig, "LMNNEig": LMNNEig, "LMNN": LMNN}
FEW_PAIRS = f"metric-learn ITML, {LOCAL_PAIRS} pairs"
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "metric-learn LMNN": ("metric_learn_all", {"model": "LMNN"}),
    "metric-learn ITML": ("metric_learn_all", {"model": "ITML_Supervised"}),
    FEW_PAIRS: ("metric_learn_all", {"model": "ITML_Supervised", "n_constraints": LOCAL_PAIRS}),
    "pyDML DML_eig": ("pydml_dml_eig", {}),
}
PEERS_QUICK = ("metric-learn LMNN", FEW_PAIRS)
EUCLID = "Euclid"
SCIKIT = ("LDA", "NCA")
LEARNERS = (*SCIKIT, *PEERS, *OURS)
METHODS = (EUCLID, *LEARNERS)
UNTRIED = "not tried"

NOTES = (
    "Figure 1 is a picture, and the text prints neither its dimensions nor its numbers: the "
    "dimensions here are ours. What the text says of the seconds: LMNN, BoostMetric, LMNN-eig and "
    "DML-eig are faster than ITML and Xing's method; the four are similar when the dimension is "
    "low; as it increases DML-eig and mLMNN are faster; LMNN-eig is slower than mLMNN, which has "
    "ball trees and an active set. Of the errors: almost every method is better than Euclid, "
    "DML-eig slightly better than the others; DML-eig, BoostMetric and ITML are relatively stable "
    "across the dimensions, LMNN and Xing's method vary.",
    "Every method runs with its defaults (the paper tunes ITML, LMNN and LMNN-eig by "
    "cross-validation, and has other smoothing and no floor in DML-eig), one thread. BoostMetric, "
    "Xing's method and mLMNN are not run. Our LMNN works on active triplets, as mLMNN does.",
    "The images have all 112 × 92 pixels (the paper: 2576). Splits are stratified: 280 images of "
    "40 persons train. PCA is that of the training part, exact, so a dimension holds those below "
    "it; samples are divided by one number, the standard deviation of all training entries.",
    f"One test image of 120 is 0.83 %, and {SPLITS} splits do not tell apart learners whose means "
    "differ by less than about 2 %. Deviations are those of a sample.",
    "metric-learn's ITML takes 20 pairs of each kind for the square of the number of classes, "
    f"32,000 here; the paper gives all methods the same local pairs. '{FEW_PAIRS}' has as many of "
    "each kind as the paper, random ones.",
    "Seconds are medians over the splits that finished. Ours and scikit-learn's share a process, "
    "and a first fit of each, which imports and compiles, is not counted; each fit of the others "
    "has a fresh process, imports not counted.",
)


@dataclass
class Fits(SetFits):
    """One method in one dimension: what it did split by split, and why it went no further."""

    ranks: list[int] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return float(np.mean(self.errors))

    @property
    def spread(self) -> str:
        """Mean ± deviation of the errors."""
        deviation = f" ± {np.std(self.errors, ddof=1):.2f}" if len(self.errors) > 1 else ""
        return f"{self.mean:.2f}{deviation}"

    def told(self, text: Callable[["Fits"], str]) -> str | None:
        """`text` of the splits that finished, and whether some did not; or why none did."""
        if not self.errors:
            return self.failure
        partly = "" if self.failure is None else f" [{len(self.errors)} split(s)]"
        return text(self) + partly


Splits = dict[int, list[Split]]
"""By dimension."""
Found = dict[str, dict[int, Fits]]
"""By method, by dimension."""


def run(ctx: Context) -> Report:
    """Ours and scikit-learn's in one process, then each of the others."""
    dimensions = DIMENSIONS_QUICK if ctx.quick else DIMENSIONS
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    data = ctx.load("orl_faces")
    splits: Splits = {d: [] for d in dimensions}
    for seed in range(SPLITS_QUICK if ctx.quick else SPLITS):
        for d, split in make_splits(data.X, data.y, dimensions, seed).items():
            splits[d].append(split)
    found = _here(ctx, splits, limit)
    labels = PEERS_QUICK if ctx.quick else tuple(PEERS)
    unavailable = _unavailable(ctx, labels)
    for label, (peer, _) in PEERS.items():
        reason = "left out" if label not in labels else "skipped" if peer in unavailable else None
        found[label] = _peer(ctx, label, splits, limit, reason)
    found = {method: found[method] for method in METHODS}
    _draw(ctx, found, limit)
    tables = [_errors(found), _seconds(found), _certificates(found), _summary(found)]
    rules = (
        f"The software of others: a fit is ended after {limit:g} s, imports included. That method "
        "is then tried on no further split of the dimension, and in no further dimension unless "
        f"a fit of it has finished before (`dml_eig_tables45` has their defaults at "
        f"{PAPER_DIMENSION}). Ours have time_limit={limit:g}."
    )
    skipped = [f"{peer} is skipped: {why}." for peer, why in unavailable.items()]
    return ctx.report(tables, (*NOTES, rules, _printed(), *skipped))


def make_splits(
    X: np.ndarray, y: np.ndarray, dimensions: Sequence[int], seed: int
) -> dict[int, Split]:
    """The split of a seed in each dimension, scaled by what the training part knows."""
    train, test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, stratify=y, random_state=seed
    )
    pca = PCA(max(dimensions), svd_solver="full").fit(train)
    train, test = pca.transform(train), pca.transform(test)
    found = {}
    for d in dimensions:
        scale = train[:, :d].std()
        found[d] = Split(train[:, :d] / scale, y_train, test[:, :d] / scale, y_test)
    return found


def _here(ctx: Context, splits: Splits, limit: float) -> Found:
    kwargs = {"splits": splits, "limit": limit}
    answer = ctx.in_child("benchmarks.dml_eig_fig1:measure", kwargs, threads=1)
    if not answer.ok:
        raise RuntimeError(f"measure: {answer.error}")
    found: Found = answer.value
    return found


def measure(splits: Splits, limit: float) -> Found:
    """Euclid, scikit-learn's and ours on everything: what the child process does."""
    first = min(splits)
    for label in (*SCIKIT, *OURS):
        _fit(label, splits[first][0], 0, limit)  # imports and compiles
    found: Found = {label: {d: Fits() for d in splits} for label in (EUCLID, *SCIKIT, *OURS)}
    for d, parts in splits.items():
        for seed, split in enumerate(parts):
            found[EUCLID][d].add(split.error(lambda Z: Z), 0.0)
            for label in (*SCIKIT, *OURS):
                learner, seconds = _fit(label, split, seed, limit)
                found[label][d].add(split.error(learner.transform), seconds)
                if label in OURS:
                    _certify(found[label][d], learner)
    return found


def _fit(label: str, split: Split, seed: int, limit: float) -> tuple[Any, float]:
    """A learner with its defaults, and the seconds of its fit."""
    learner: Any
    if label == "LDA":
        learner = LinearDiscriminantAnalysis()
    elif label == "NCA":
        learner = NeighborhoodComponentsAnalysis(random_state=seed)
    else:
        learner = OURS[label](time_limit=limit)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(split.X, split.y)
    return learner, time.perf_counter() - start


def _certify(fits: Fits, learner: Any) -> None:
    """Note what a fit of ours proves of itself."""
    fits.gaps.append(learner.certificate_.relative_gap)
    fits.ranks.append(len(learner.components_))
    fits.ended.append(learner.result_.status.name)
    if hasattr(learner, "max_min_"):
        fits.max_min_gaps.append(learner.max_min_.relative_gap)


def _unavailable(ctx: Context, labels: Sequence[str]) -> dict[str, str]:
    """The peers that cannot run here, found by calls of no interest that also set them up."""
    X, y = load_iris(return_X_y=True)
    found = {}
    firsts = {PEERS[label][0]: PEERS[label][1] for label in reversed(labels)}
    for peer, options in firsts.items():
        error = ctx.peer(peer, {"X": X[::5], "y": y[::5], **options}, INSTALL, threads=1).error
        if error is not None:
            found[peer] = error
    return found


def _peer(
    ctx: Context, label: str, splits: Splits, limit: float, reason: str | None
) -> dict[int, Fits]:
    """One of the others in every dimension, or until it shows that it never finishes."""
    if reason is not None:
        return {d: Fits(failure=reason) for d in splits}
    found: dict[int, Fits] = {}
    for d, parts in splits.items():
        hopeless = bool(found) and not any(fits.errors for fits in found.values())
        found[d] = Fits(failure=UNTRIED) if hopeless else _peer_fits(ctx, label, parts, limit)
    return found


def _peer_fits(ctx: Context, label: str, parts: Sequence[Split], limit: float) -> Fits:
    """Fit split after split until one fails or takes too long."""
    peer, options = PEERS[label]
    fits = Fits()
    for seed, split in enumerate(parts):
        seeded = {"random_state": seed} if peer == "metric_learn_all" else {}
        answer = ctx.peer(peer, {"X": split.X, "y": split.y, **options, **seeded}, limit, threads=1)
        if not answer.ok:
            fits.timed_out = answer.timed_out
            fits.failure = f"> {limit:g} s" if answer.timed_out else "failed"
            if not answer.timed_out:  # to the terminal only: it may name paths
                print(answer.error, file=sys.stderr)
            break
        components = answer.value["components"]
        if not np.all(np.isfinite(components)):
            fits.failure = "components not finite"
            break
        fits.add(split.error(lambda Z, L=components.T: Z @ L), answer.value["fit_seconds"])
    return fits


def _errors(found: Found) -> Table:
    caption = "Figure 1, right: error of 3-NN in %, mean ± deviation over the splits"
    table = Table(caption, ("dimension", *METHODS))
    for d in found[EUCLID]:
        table.add(d, *(found[method][d].told(lambda f: f.spread) for method in METHODS))
    return table


def _seconds(found: Found) -> Table:
    table = Table("Figure 1, left: seconds of a fit, median", ("dimension", *LEARNERS))
    for d in found[EUCLID]:
        cells = (found[method][d].told(lambda f: f"{f.median:.3g}") for method in LEARNERS)
        table.add(d, *cells)
    return table


def _certificates(found: Found) -> Table:
    columns = ("dimension", "method", "certified gap", "max–min gap", "rank", "ended")
    table = Table("Ours: largest certified relative gaps over the splits, median rank", columns)
    for d in found[EUCLID]:
        for method in OURS:
            fits = found[method][d]
            max_min = max(fits.max_min_gaps) if fits.max_min_gaps else None
            ended = ", ".join(sorted(set(fits.ended)))
            table.add(d, method, max(fits.gaps), max_min, int(np.median(fits.ranks)), ended)
    return table


def _summary(found: Found) -> Table:
    """The paper's claims in figures: against Euclid, across dimensions, and growth of seconds."""
    table = Table(
        "By method, over the dimensions and splits it finished",
        ("method", "fits", "mean error %", "Euclid there %", "dimensions better than Euclid",
         "largest − smallest mean error", "seconds, last ÷ first dimension"),
    )  # fmt: skip
    for method in METHODS:
        by_dimension = {d: fits for d, fits in found[method].items() if fits.errors}
        if not by_dimension:
            table.add(method, 0, *([None] * 5))
            continue
        plain = {d: found[EUCLID][d].errors[: len(f.errors)] for d, f in by_dimension.items()}
        means = [fits.mean for fits in by_dimension.values()]
        better = sum(fits.mean < np.mean(plain[d]) for d, fits in by_dimension.items())
        fits = list(by_dimension.values())
        table.add(
            method,
            sum(len(f.errors) for f in fits),
            float(np.mean([e for f in fits for e in f.errors])),
            float(np.mean([e for errors in plain.values() for e in errors])),
            None if method == EUCLID else f"{better} of {len(means)}",
            max(means) - min(means) if len(means) > 1 else None,
            _growth(found[method]),
        )
    return table


def _growth(by_dimension: dict[int, Fits]) -> float | None:
    """Seconds of the last dimension by those of the first, None where either has none."""
    first, last = by_dimension[min(by_dimension)], by_dimension[max(by_dimension)]
    if not (first.errors and last.errors and first.median > 0):
        return None
    return last.median / first.median


def _printed() -> str:
    """What the paper prints of its own fits in one of the dimensions."""
    errors, seconds = PAPER_TABLE_4["orl_faces"], PAPER_TABLE_5["orl_faces"]
    cells = (
        f"{name} {error:.2f} %" + (f" in {seconds[name]:g} s" if name in seconds else "")
        for name, (error, _) in errors.items()
    )
    return (
        f"The paper's Tables 4 and 5, at {PAPER_DIMENSION} dimensions and over 10 splits: "
        f"{', '.join(cells)}, seconds on the authors' machine."
    )


def _draw(ctx: Context, found: Found, limit: float) -> None:
    """Two pictures; in that of the seconds a triangle is a fit that the limit ended."""
    pictures = (
        ("error", "error of 3-NN, %", METHODS, "AT&T faces: mean error against PCA dimension"),
        ("seconds", "seconds of a fit", LEARNERS, "AT&T faces: median seconds against PCA "
         f"dimension; a triangle is a fit that the limit of {limit:g} s ended"),
    )  # fmt: skip
    for name, ylabel, methods, caption in pictures:
        with ctx.figure(name, caption, figsize=(8.5, 4.2)) as (fig, ax):
            for method in methods:
                _draw_method(ax, method, found[method], name, limit)
            ax.set(xlabel="PCA dimension", ylabel=ylabel)
            if name == "seconds":
                ax.set_yscale("log")
            ax.grid(alpha=0.3)
            fig.legend(loc="outside right upper", fontsize="small")


def _draw_method(
    ax: Any, method: str, by_dimension: dict[int, Fits], name: str, limit: float
) -> None:
    """The curve of one method: ours solid, the others dashed."""
    style = {"color": f"C{METHODS.index(method)}", "linestyle": "-" if method in OURS else "--"}
    done = {d: fits for d, fits in by_dimension.items() if fits.errors}
    values = [fits.mean if name == "error" else fits.median for fits in done.values()]
    label = method
    if done:
        ax.plot(list(done), values, marker="o", markersize=3, label=label, **style)
        label = "_"
    late = [d for d, fits in by_dimension.items() if fits.timed_out]
    if name == "seconds" and late:
        size = 4 + 2 * (METHODS.index(method) % 4)  # one within the other where they meet
        ax.plot(late, [limit] * len(late), "^", label=label, color=style["color"],
                fillstyle="none", markersize=size)  # fmt: skip
