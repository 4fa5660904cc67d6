"""How the seconds of nonparametric kernel learning grow with n: a1a … a9a, and 200,000 digits.

tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over Z ⪰ 0 with 0.6 n must-link and 0.6 n cannot-link pairs and the
diagonal, λ = 1, L a normalised Laplacian of 10 nearest neighbours, by `auto` to a certified
relative gap of 1e-4. The graph and the links are timed apart.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

import gramian as gm
from benchmarks._models import ADULT_NEIGHBOURS, links, normalised_laplacian
from benchmarks.harness.context import Context
from benchmarks.harness.data import Dataset
from benchmarks.harness.report import Report, Table
from gramian.graph import neighbor_graph

TITLE = "Kernel learning against n, from a1a to 200,000 digits: seconds, memory, certified gaps"
PAPER = "BiS (Hu and Kwok 2019), Section IV-A, for a1a … a9a; no paper has the larger ones"
ADULT, ADULT_QUICK = tuple(f"a{k}a" for k in range(1, 10)), ("a1a", "a2a", "a3a")
NEEDS_DATA = (*ADULT, "mnist")

SIZES = (12_500, 25_000, 50_000, 100_000, 200_000)
SIDE, SHIFT, DIMENSIONS = 28, 2, 50
LAM, TOL = 1.0, 1e-4
LIMIT, LIMIT_QUICK = 400.0, 30.0
"""Seconds of `auto` at most."""
FAMILIES = ("adult", "digits")

NOTES = (
    "Adult: a1a … a9a as in npkl_a9a, neighbours by dense brute force. Digits: random samples of "
    f"200,000 images, which are the 70,000 of MNIST, their 70,000 mirror images, and 60,000 of "
    f"them moved by {SHIFT} pixels, each with the label of the digit it was made from; reduced to "
    f"{DIMENSIONS} principal directions, neighbours approximate, weights exp(−d²/σ²), σ² the "
    "median of d² over the edges. 130,000 of the images are thus made, not drawn by hand.",
    "Seconds of auto are those of the whole call, certificates included, in a process of its own "
    "with one thread; a first step, not counted, compiles. Peak MB is that of the process, the "
    "problem and some 200 MB of libraries included. One draw of the pairs, one run.",
    "The slope is that of the logarithms over the sizes of a family: 1 is linear. Runs that the "
    "time limit ended count with the seconds they had.",
)


@dataclass(frozen=True)
class Model:
    """What `gm.problems.npkl` needs, and what it took to make it."""

    laplacian: sp.csr_array
    must_link: np.ndarray
    cannot_link: np.ndarray
    graph_seconds: float
    links_seconds: float


@dataclass(frozen=True)
class Fit:
    """One run of `auto` on one instance."""

    family: str
    name: str
    model_seconds: tuple[float, float]
    n: int
    seconds: float
    gap: float | None
    rank: int
    steps: int
    status: str
    megabytes: float


def run(ctx: Context) -> Report:
    """Every instance, each in processes of its own."""
    fits = []
    for name in ADULT_QUICK if ctx.quick else ADULT:
        model = _child(ctx, "adult", {"data": ctx.load(name)}).value
        fits.append(_solved(ctx, "adult", name, model))
    if not ctx.quick:
        X, y = _child(ctx, "digits", {"data": ctx.load("mnist")}).value
        for n in SIZES:
            model = _child(ctx, "sampled", {"X": X[:n], "y": y[:n]}).value
            fits.append(_solved(ctx, "digits", f"{n:,} digits", model))
    _draw(ctx, fits)
    limit = f"auto may take {_limit(ctx):.0f} s."
    return ctx.report([_times(fits), _slopes(fits)], (*NOTES, limit))


def _solved(ctx: Context, family: str, name: str, model: Model) -> Fit:
    answer = _child(ctx, "solve", {"model": model, "limit": _limit(ctx)})
    made = (model.graph_seconds, model.links_seconds)
    return Fit(family, name, made, model.laplacian.shape[0], *answer.value, answer.peak_mb)


def _limit(ctx: Context) -> float:
    return LIMIT_QUICK if ctx.quick else LIMIT


def _child(ctx: Context, function: str, kwargs: dict[str, Any]) -> Any:
    answer = ctx.in_child(f"benchmarks.npkl_scaling:{function}", kwargs, threads=1)
    if not answer.ok:
        raise RuntimeError(f"{function}: {answer.error}")
    return answer


# --- in processes of their own -------------------------------------------------------


def adult(data: Dataset) -> Model:
    """The Laplacian by dense brute force, and the links."""
    start = time.perf_counter()
    laplacian = normalised_laplacian(data.X.toarray())
    return _linked(laplacian, data.y, time.perf_counter() - start)


def digits(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Digits, their mirror images and moved ones in random order, by principal directions."""
    X = np.vstack([data.X, data.X_test]).astype(np.float32).reshape(-1, SIDE, SIDE)
    y = np.append(data.y, data.y_test)
    moved = np.roll(X[: data.y.size], (SHIFT, SHIFT), axis=(1, 2))
    images = np.concatenate([X, X[:, :, ::-1], moved]).reshape(-1, SIDE * SIDE)
    labels = np.concatenate([y, y, data.y])
    order = np.random.default_rng(0).permutation(labels.size)
    reduced = PCA(DIMENSIONS, svd_solver="covariance_eigh").fit_transform(images / 255)
    return reduced[order].astype(float), labels[order]


def sampled(X: np.ndarray, y: np.ndarray) -> Model:
    """The Laplacian by approximate neighbours, and the links."""
    start = time.perf_counter()
    graph = neighbor_graph(X, ADULT_NEIGHBOURS, approximate=True, connect="components")
    laplacian = graph.laplacian(graph.weights(), normalized=True)
    return _linked(laplacian, y, time.perf_counter() - start)


def _linked(laplacian: sp.csr_array, y: np.ndarray, graph_seconds: float) -> Model:
    start = time.perf_counter()
    must, cannot = links(y)
    return Model(laplacian, must, cannot, graph_seconds, time.perf_counter() - start)


def solve(model: Model, limit: float) -> tuple[float, float | None, int, int, str]:
    """`auto` until its certified gap is small enough."""
    problem = gm.problems.npkl(model.laplacian, model.must_link, model.cannot_link, LAM)
    gm.minimize(problem, max_iter=1)  # compiles
    result = gm.minimize(problem, tol=TOL, time_limit=limit)
    gap = result.certificate.relative_gap
    return result.seconds, gap, result.rank, result.iterations, result.status.name


# --- tables --------------------------------------------------------------------------


def _times(fits: list[Fit]) -> Table:
    columns = (
        "instance", "n", "seconds for the graph", "seconds for the links", "seconds of auto",
        "ms per point", "certified relative gap", "rank", "steps", "peak MB", "status",
    )  # fmt: skip
    table = Table(f"auto to a relative gap of {TOL:g}", columns)
    for fit in fits:
        table.add(
            fit.name,
            fit.n,
            *fit.model_seconds,
            fit.seconds,
            1e3 * fit.seconds / fit.n,
            fit.gap,
            fit.rank,
            fit.steps,
            fit.megabytes,
            fit.status,
        )
    return table


def _slopes(fits: list[Fit]) -> Table:
    columns = ("family", "sizes", "slope of the seconds", "slope of the peak MB", "all certified")
    table = Table("Slopes of the logarithms against that of n", columns)
    groups = {family: [fit for fit in fits if fit.family == family] for family in FAMILIES}
    for family, kept in groups.items():
        if len(kept) < 2:
            continue
        certified = all(fit.gap is not None and fit.gap <= TOL for fit in kept)
        table.add(family, len(kept), _slope(kept, "seconds"), _slope(kept, "megabytes"), certified)
    return table


def _slope(fits: list[Fit], what: str) -> float:
    n, values = np.log([(fit.n, getattr(fit, what)) for fit in fits]).T
    return float(np.polyfit(n, values, 1)[0])


def _draw(ctx: Context, fits: list[Fit]) -> None:
    caption = "Seconds and peak memory of auto against n"
    with ctx.figure("scaling", caption, nrows=1, ncols=2, figsize=(11, 4.6)) as (_, axes):
        for ax, what, unit in zip(
            axes, ("seconds", "megabytes"), ("seconds of auto", "peak MB"), strict=True
        ):
            for family in FAMILIES:
                kept = [fit for fit in fits if fit.family == family]
                values = [getattr(fit, what) for fit in kept]
                ax.plot([fit.n for fit in kept], values, marker="o", label=family)
            ends = np.array([fits[0].n, fits[-1].n])
            line = getattr(fits[0], what) * ends / ends[0]
            ax.plot(ends, line, color="black", linewidth=0.8, linestyle=":", label="slope 1")
            ax.set(xlabel="n", ylabel=unit, xscale="log", yscale="log")
            ax.grid(alpha=0.3)
            ax.legend()
