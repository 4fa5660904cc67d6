"""Clusters from must-link and cannot-link pairs: accuracy by method and number of links.

2,000 images of USPS and six other sets; random pairs, half must-link and half cannot-link.
"""

import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.preprocessing import StandardScaler

from benchmarks._models import random_pairs
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.graph import neighbor_graph
from gramian.kernel import NPKL, PCP, AutoKernel, RegPCP

TITLE = "Clustering with must-link and cannot-link pairs: accuracy against their number"
PAPER = "SQLP (Wu 2011), Sections 3.1.2 and 3.4, for PCP and RegPCP; BiS eq. (4) for NPKL"
NEEDS_DATA = ("usps", "segment", "optdigits", "letter", "orl_faces")

MAIN, LARGEST = "usps", (2000, 300)
"""The set of the picture, and the samples of a set at most."""
COUNTS, LINKS = ((50, 100, 200, 400, 1000, 2000), (50,)), ((100, 400), (100,))
"""Links of the images and of the other sets."""
OTHERS = ("iris", "wine", "segment", "optdigits", "letter", "orl_faces"), ("iris",)
BUNDLED = {"iris": load_iris, "wine": load_wine}
SCALED = ("iris", "wine", "segment")
NEIGHBOURS = 10
LIMITS = 60.0, 5.0
"""Seconds of a solve at most."""
SEEDS = 2
"""Seeds of methods without links at most: spectral clustering of a graph in parts takes minutes."""

FEW_WAVES = 15
OURS: dict[str, Any] = {
    "AutoKernel": AutoKernel,
    "NPKL": NPKL,
    "NPKL, merged": lambda **options: NPKL(merge=True, **options),
    "PCP": PCP,
    "RegPCP": RegPCP,
    f"RegPCP, m = {FEW_WAVES}": lambda **options: RegPCP(n_basis=FEW_WAVES, **options),
}
UNLINKED = ("k-means", "spectral clustering")
COP = "COP-k-means"
COP_DIMENSIONS, COP_STARTS, COP_ITERATIONS, COP_SECONDS = 20, 2, 50, 4.0
COP_TIMEOUT = 45.0

NOTES = (
    "All but k-means and COP-k-means see the same graph: 10 nearest neighbours, symmetric, weights "
    "exp(−d²/σ²), σ² the median of d² over the edges; it is made before the clock runs. iris, wine "
    f"and segment are standardised; of larger sets {LARGEST[0]} random samples are "
    "taken. The graph of segment falls into several parts, where spectral clustering fails.",
    "Means over draws of the links; the links are right, and scores count all samples, linked or "
    "not. All take the true number of classes, and the best of 10 starts of k-means, but for "
    "COP-k-means. One thread; seconds include that k-means.",
    f"COP-k-means is that of the package htcopkmeans 1.5, plain Python: on the {COP_DIMENSIONS} "
    f"leading principal directions where there are more features, {COP_ITERATIONS} steps at most, "
    f"the best of up to {COP_STARTS} starts, none after {COP_SECONDS:g} s. A dash: no start found "
    "clusters that keep all links, or none in time.",
    f"k-means and spectral clustering without links: the mean of {SEEDS} seeds at most.",
    "Gap: the largest certified relative gap of the draws. Off: the "
    "largest |Z_ij − T_ij| over links and diagonal, the mean of the draws.",
)


@dataclass
class Scores:
    """One method with one number of links, by draw."""

    accuracy: list[float] = field(default_factory=list)
    rand: list[float] = field(default_factory=list)
    mutual: list[float] = field(default_factory=list)
    broken: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)

    def add(self, y: np.ndarray, labels: np.ndarray, pairs: Any, seconds: float) -> None:
        """Judge the clusters of one draw."""
        self.accuracy.append(100 * matched(y, labels))
        self.rand.append(float(adjusted_rand_score(y, labels)))
        self.mutual.append(float(normalized_mutual_info_score(y, labels)))
        apart, together = (labels[p[:, 0]] != labels[p[:, 1]] for p in pairs)
        wrong = np.concatenate([apart, ~together])
        self.broken.append(100 * float(np.mean(wrong)) if wrong.size else np.nan)
        self.seconds.append(seconds)


MEASURES = {
    "accuracy": "accuracy %",
    "rand": "adjusted Rand index",
    "mutual": "NMI",
    "broken": "% of the links that the clusters break",
    "seconds": "seconds",
    "gap": "certified relative gap, mean of the draws",
}

Found = dict[tuple[str, int], Scores]
"""By method and number of links."""


def matched(y: np.ndarray, labels: np.ndarray) -> float:
    """The share of samples in the cluster matched with their class, by the best matching."""
    table = contingency_matrix(y, labels)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / y.size)


def drawn(y: np.ndarray, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Must-link and cannot-link pairs, half of the count each."""
    rng = np.random.default_rng(seed)
    must, cannot = (random_pairs(y, same, count // 2, rng).astype(int) for same in (True, False))
    return must, cannot


def run(ctx: Context) -> Report:
    """The images by number of links, then the other sets."""
    counts, links = ctx.pick(*COUNTS), ctx.pick(*LINKS)
    numbers = {MAIN: counts} | dict.fromkeys(ctx.pick(*OTHERS), links)
    sets = {name: _samples(ctx, name) for name in numbers}
    every = _cluster(ctx, sets, numbers)
    found = every.pop(MAIN)
    _draw(ctx, found, counts)
    tables = [
        _by_count(found, counts, what, f"{MAIN}: {MEASURES[what]} by the number of links")
        for what in ("accuracy", "mutual", "rand", "broken", "seconds")
    ]
    columns = ["method", *(f"gap, {c}" for c in counts), *(f"off, {c}" for c in counts)]
    gaps = Table(f"{MAIN}: certified gaps, and distance of the kernel to its targets", columns)
    for label in OURS:
        cells = [found[label, count] for count in counts]
        gaps.add(label, *(max(c.gap) for c in cells), *(_mean(c.off) for c in cells))
    methods = (*UNLINKED, COP, *OURS)
    others = []
    for what, title in MEASURES.items():
        table = Table(f"Other sets: {title}", ["set", "n", "links", *methods])
        for name, scores in every.items():
            for count in links:
                cells = [scores[label, 0 if label in UNLINKED else count] for label in methods]
                n = sets[name][1].size
                table.add(name, n, count, *(_mean(getattr(cell, what)) for cell in cells))
        others.append(table)
    notes = (*NOTES, f"{ctx.repeat} draw(s) of the links.", _verdict(found, counts))
    return ctx.report([*tables, gaps, *others], notes)


def _samples(ctx: Context, name: str) -> tuple[np.ndarray, np.ndarray]:
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
    else:
        data = ctx.load(name)
        chosen = np.random.default_rng(0).permutation(data.y.size)[: ctx.pick(*LARGEST)]
        X, y = data.X[chosen], data.y[chosen]
    return (StandardScaler().fit_transform(X) if name in SCALED else X), y


def _cluster(
    ctx: Context, sets: dict[str, Any], numbers: dict[str, tuple[int, ...]]
) -> dict[str, Found]:
    """Every set, method and number of links in a process of its own."""
    given = {"draws": ctx.repeat, "limit": ctx.pick(*LIMITS)}
    calls: dict[Any, Any] = {}
    for label in (COP, *reversed(OURS), *UNLINKED):  # long ones first: no core waits at the end
        for name, (X, y) in sets.items():
            for count in (0,) if label in UNLINKED else reversed(numbers[name]):
                own = {"X": X, "y": y, "count": count}
                calls[name, label, count] = partial(_cop_kmeans, ctx, **own)
                if label != COP:
                    calls[name, label, count] = partial(
                        ctx.call, measure, label=label, **own, **given
                    )
    found: dict[str, Found] = {name: {} for name in sets}
    for (name, label, count), scores in ctx.each(calls).items():
        found[name][label, count] = scores
    return found


def _cop_kmeans(ctx: Context, X: np.ndarray, y: np.ndarray, count: int) -> Scores:
    few = min(COP_DIMENSIONS, X.shape[1])
    reduced = PCA(few, random_state=0).fit_transform(X)
    scores = Scores()
    for draw in range(ctx.repeat):
        must, cannot = drawn(y, count, draw)
        kwargs = {"X": reduced, "must_link": must, "cannot_link": cannot, "seed": draw}
        kwargs |= {"k": int(np.unique(y).size), "starts": COP_STARTS}
        kwargs |= {"max_iter": COP_ITERATIONS, "seconds": COP_SECONDS}
        answer = ctx.peer("cop_kmeans", kwargs, COP_TIMEOUT, threads=1)
        if answer.ok and answer.value["found"]:
            labels = answer.value["labels"]
            scores.add(y, labels, (must, cannot), answer.value["fit_seconds"])
    return scores


# --- in a process of its own ---------------------------------------------------------


def measure(
    label: str, count: int, X: np.ndarray, y: np.ndarray, draws: int, limit: float
) -> Scores:
    """A method on every draw of so many links."""
    graph = neighbor_graph(X, min(NEIGHBOURS, len(X) - 1), connect="components")
    affinities = graph.adjacency(graph.weights())
    k, scores = int(np.unique(y).size), Scores()
    for draw in range(min(draws, SEEDS) if label in UNLINKED else draws):
        must, cannot = drawn(y, count, draw)
        model, given, links = _model(label, k, draw, limit), sp.csr_matrix(affinities), {}
        if label in OURS:
            given, links = affinities, {"must_link": must, "cannot_link": cannot}
        start = time.perf_counter()
        with warnings.catch_warnings():  # of no convergence, and of a graph in several parts
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X if label == "k-means" else given, **links)
        scores.add(y, model.labels_, (must, cannot), time.perf_counter() - start)
        if label in OURS:
            gap = model.certificate_.relative_gap
            scores.gap.append(np.inf if gap is None else gap)
            scores.off.append(model.constraint_violation_)
    return scores


def _model(label: str, k: int, seed: int, limit: float) -> Any:
    if label == "k-means":
        return KMeans(k, n_init=10, random_state=seed)
    settings = {"n_clusters": k, "affinity": "precomputed", "random_state": seed}
    if label in OURS:
        return OURS[label](**settings, time_limit=limit)
    return SpectralClustering(**settings)


# --- tables --------------------------------------------------------------------------


def _by_count(found: Found, counts: Any, what: str, caption: str) -> Table:
    table = Table(caption, ["method", *(f"{count} links" for count in counts)])
    for label in UNLINKED:
        if what != "broken":
            table.add(label, *[_mean(getattr(found[label, 0], what))] * len(counts))
    for label in (COP, *OURS):
        table.add(label, *(_mean(getattr(found[label, count], what)) for count in counts))
    return table


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _verdict(found: Found, counts: Any) -> str:
    """Who is best with how many links, and from when on links beat their absence."""
    best = {
        count: max(
            (label for label in (COP, *OURS) if found[label, count].accuracy),
            key=lambda label, count=count: np.mean(found[label, count].accuracy),
        )
        for count in counts
    }
    shown = ", ".join(f"{label} with {count}" for count, label in best.items())
    spectral = np.mean(found["spectral clustering", 0].accuracy)
    parts = []
    for label in (COP, *OURS):
        above = [c for c in counts if (_mean(found[label, c].accuracy) or 0) > spectral]
        parts.append(f"{label} {'never' if not above else 'with ' + ', '.join(map(str, above))}")
    return (
        f"{MAIN}, most accurate of those with links: {shown}. More accurate than spectral "
        f"clustering without links: {'; '.join(parts)}."
    )


def _draw(ctx: Context, found: Found, counts: Any) -> None:
    caption = f"{MAIN}, {LARGEST[0]} images: accuracy and NMI against the number of links"
    with ctx.figure("links", caption, nrows=1, ncols=2, figsize=(12, 5)) as (fig, axes):
        for ax, what in zip(axes, ("accuracy", "mutual"), strict=True):
            for label, style in zip(UNLINKED, (":", "--"), strict=True):
                level = _mean(getattr(found[label, 0], what))
                ax.axhline(level, color="black", linestyle=style, label=label)
            for label in (COP, *OURS):
                cells = [(c, getattr(found[label, c], what)) for c in counts]
                cells = [(c, values) for c, values in cells if values]
                means, spread = ([f(values) for _, values in cells] for f in (np.mean, np.std))
                ax.errorbar([c for c, _ in cells], means, spread, marker="o", label=label)
            ax.set(xlabel="links", xscale="log")
            ax.grid(alpha=0.3)
        axes[0].set_ylabel("accuracy %")
        axes[1].set_ylabel("NMI")
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
