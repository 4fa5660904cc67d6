"""Seconds of nonparametric kernel learning against n: a1a … a9a, and up to 200,000 digits.

tr(ZL) + λ/2 Σ (Z_ij − T_ij)² over Z ⪰ 0 with 0.6 n must-link and 0.6 n cannot-link pairs and the
diagonal, λ = 1, L a normalised Laplacian of 10 nearest neighbours, by `auto` to a certified
relative gap of 1e-4. The graph and the links are timed separately.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

import gramian as gm
from benchmarks._models import ADULT_NEIGHBOURS, KernelModel, adult_model, kernel_model
from benchmarks.harness.context import Context
from benchmarks.harness.data import Dataset
from benchmarks.harness.learn import Run, slope
from benchmarks.harness.plots import Panel
from benchmarks.harness.report import Report, Table
from gramian.graph import neighbor_graph

TITLE = "Kernel learning against n, from a1a to 200,000 digits: seconds, memory, certified gaps"
PAPER = "BiS (Hu and Kwok 2019), Section IV-A, for a1a … a9a; the larger ones are not in a paper"
ADULT, ADULT_QUICK = tuple(f"a{k}a" for k in range(1, 10)), ("a1a", "a2a", "a3a")
NEEDS_DATA = (*ADULT, "mnist")

SIZES = (12_500, 25_000, 50_000, 100_000, 200_000)
SIDE, SHIFT, DIMENSIONS = 28, 2, 50
TOL = 1e-4
LIMITS = 400.0, 30.0

NOTES = (
    "Adult: a1a … a9a as in npkl_a9a, neighbours by dense brute force. Digits: random samples of "
    "200,000 images, the 70,000 of MNIST, their 70,000 mirror images, and 60,000 of them shifted "
    f"by {SHIFT} pixels, with the labels of the originals; {DIMENSIONS} principal components, "
    "approximate neighbours, weights exp(−d²/σ²), σ² the median of d² over the edges.",
    "Seconds of auto: the whole call, certificates included, in a process with one thread; an "
    "uncounted step before it compiles. Peak MB: the process, with the problem and about 200 MB of "
    f"libraries. One draw of the pairs, one run, limit {LIMITS[0]:g} s ({LIMITS[1]:g} s in a quick "
    "run), which counts as the seconds of a run that reaches it.",
)

Fit = dict[str, Any]


def run(ctx: Context) -> Report:
    """Every instance in processes of its own."""
    fits = []
    for name in ctx.pick(ADULT, ADULT_QUICK):
        data = ctx.load(name)
        fits.append(_solved(ctx, "adult", name, ctx.call(adult_model, X=data.X, y=data.y)))
    if not ctx.quick:
        X, y = ctx.call(digits, data=ctx.load("mnist"))
        for n in SIZES:
            model = ctx.call(sampled, X=X[:n], y=y[:n])
            fits.append(_solved(ctx, "digits", f"{n:,} digits", model))
    _draw(ctx, fits)
    columns = {
        "instance": "instance", "n": "n", "seconds for the graph": "graph",
        "seconds for the links": "links", "seconds of auto": "seconds",
        "ms per point": lambda fit: 1e3 * fit["seconds"] / fit["n"],
        "certified relative gap": "gap", "rank": "rank", "steps": "steps", "peak MB": "megabytes",
        "status": "status",
    }  # fmt: skip
    times = Table.of(f"auto to a relative gap of {TOL:g}", fits, columns)
    return ctx.report([times, _slopes(fits)], NOTES)


def _solved(ctx: Context, family: str, name: str, model: KernelModel) -> Fit:
    answer = ctx.child(solve, model=model, limit=ctx.pick(*LIMITS))
    if not answer.ok:
        raise RuntimeError(f"{name}: {answer.error}")
    return {
        "family": family, "instance": name, "n": model.y.size, "graph": model.graph_seconds,
        "links": model.links_seconds, "megabytes": answer.peak_mb, **answer.value,
    }  # fmt: skip


# --- in processes of their own -------------------------------------------------------


def digits(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Digits, their mirror images and shifted ones in random order, by principal components."""
    X = np.vstack([data.X, data.X_test]).astype(np.float32).reshape(-1, SIDE, SIDE)
    y = np.append(data.y, data.y_test)
    moved = np.roll(X[: data.y.size], (SHIFT, SHIFT), axis=(1, 2))
    images = np.concatenate([X, X[:, :, ::-1], moved]).reshape(-1, SIDE * SIDE)
    labels = np.concatenate([y, y, data.y])
    order = np.random.default_rng(0).permutation(labels.size)
    reduced = PCA(DIMENSIONS, svd_solver="covariance_eigh").fit_transform(images / 255)
    return reduced[order].astype(float), labels[order]


def sampled(X: np.ndarray, y: np.ndarray) -> KernelModel:
    """The model with approximate neighbours."""

    def laplacian(X: np.ndarray) -> sp.csr_array:
        graph = neighbor_graph(X, ADULT_NEIGHBOURS, approximate=True, connect="components")
        return graph.laplacian(graph.weights(), normalized=True)

    return kernel_model(X, y, laplacian)


def solve(model: KernelModel, limit: float) -> Fit:
    """`auto` to its certified gap."""
    problem = model.problem()
    gm.minimize(problem, max_iter=1)  # compiles
    result = gm.minimize(problem, tol=TOL, time_limit=limit)
    return vars(Run.of(result))


# --- tables --------------------------------------------------------------------------


def _by_size(fits: list[Fit], family: str, what: str) -> dict[int, float]:
    return {fit["n"]: fit[what] for fit in fits if fit["family"] == family}


def _slopes(fits: list[Fit]) -> Table:
    columns = ("family", "sizes", "slope of the seconds", "slope of the peak MB", "all certified")
    table = Table("Slopes of the logarithms against that of n", columns)
    for family in ("adult", "digits"):
        seconds, peaks = (_by_size(fits, family, what) for what in ("seconds", "megabytes"))
        if len(seconds) > 1:
            gaps = _by_size(fits, family, "gap").values()
            certified = all(gap is not None and gap <= TOL for gap in gaps)
            table.add(family, len(seconds), slope(seconds), slope(peaks), certified)
    return table


def _draw(ctx: Context, fits: list[Fit]) -> None:
    def panel(what: str, unit: str) -> Panel:
        curves = {}
        for family in dict.fromkeys(fit["family"] for fit in fits):
            found = _by_size(fits, family, what)
            curves[family] = (list(found), list(found.values()))
        ends = np.array([fits[0]["n"], fits[-1]["n"]])
        curves["slope 1"] = (ends, fits[0][what] * ends / ends[0])
        return Panel(curves, "n", unit, logx=True, logy=True, dashed=["slope 1"])

    caption = "Seconds and peak memory of auto against n"
    ctx.panels("scaling", caption, panel("seconds", "seconds of auto"),
               panel("megabytes", "peak MB"))  # fmt: skip
