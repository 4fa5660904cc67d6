"""Maps to look at: how well neighbourhoods are kept in the plane.

NeighborLayout and MVU against Isomap and UMAP, on digits, MNIST and faces. Two dimensions keep
distances badly and neighbourhoods well: MVU is for the first, NeighborLayout for the second.
"""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap, trustworthiness

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from benchmarks.unfoldings import left_out_accuracy
from gramian.manifold import MVU, NeighborLayout

TITLE = "Layouts: NeighborLayout and MVU against Isomap and UMAP"
PAPER = "No table of a paper: neighbourhoods kept in two dimensions, digits and faces"
NEEDS_DATA = ("mnist", "orl_faces")

POINTS, POINTS_QUICK = 5000, 300
JUDGED = 10
LIMIT, LIMIT_QUICK = 30.0, 10.0
TIMEOUT = 600.0

METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "NeighborLayout": (NeighborLayout, {"random_state": 0}),
    "NeighborLayout, 1 round": (NeighborLayout, {"random_state": 0, "rounds": 1}),
    "MVU": (MVU, {"n_neighbors": 8, "random_state": 0}),
    "Isomap, 5 neighbours": (Isomap, {"n_neighbors": 5}),
    "Isomap, 8 neighbours": (Isomap, {"n_neighbors": 8}),
}

NOTES = (
    f"Trustworthiness and continuity with {JUDGED} neighbours; 1-NN: of the labels, one sample "
    "left out at a time. NeighborLayout and UMAP as they come, MVU with 8 neighbours and a limit.",
    "The certified relative gap of NeighborLayout is that of the picture to the optimum of any "
    "rank, for the weights of its last round; of MVU, that of its kernel, not of two columns.",
    "Seconds are those of one fit with one thread, without imports; UMAP's after a first fit that "
    "compiles.",
)


@dataclass(frozen=True, eq=False)
class Embedded:
    """Two coordinates, and what they cost."""

    coordinates: np.ndarray
    seconds: float
    gap: float | None = None


def run(ctx: Context) -> Report:
    """Every method on every set."""
    sets = _sets(ctx, POINTS_QUICK if ctx.quick else POINTS)
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    umap = _by_umap(ctx, sets)
    found = {
        name: {method: _embedded(ctx, X, method, limit) for method in METHODS}
        | {"UMAP": umap[name]}
        for name, (X, _) in sets.items()
    }
    _picture(ctx, sets, found)
    tables = [_table(name, *sets[name], found[name]) for name in sets]
    return ctx.report(tables, (*NOTES, f"Limit of MVU: {limit:g} s."))


def _sets(ctx: Context, n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Samples and their labels."""
    mnist, faces, digits = ctx.load("mnist"), ctx.load("orl_faces"), load_digits()
    some = np.random.default_rng(0).permutation(len(mnist.y))[:n]
    return {
        "digits": (digits.data[:n], digits.target[:n]),
        "MNIST": (mnist.X[some] / 255, mnist.y[some]),
        "ORL faces": (faces.X[:n] / 255, faces.y[:n]),
    }


def fit(X: np.ndarray, method: str, limit: float) -> Embedded:
    """Embed the samples by one of the methods at hand."""
    learner, options = METHODS[method]
    if learner is MVU:
        options = {**options, "time_limit": limit}
    model = learner(**options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coordinates = model.fit_transform(X)
    seconds = time.perf_counter() - start
    certificate = getattr(model, "certificate_", None)
    return Embedded(coordinates, seconds, None if certificate is None else certificate.relative_gap)


def _embedded(ctx: Context, X: np.ndarray, method: str, limit: float) -> Embedded | str:
    """The embedding, or why there is none."""
    kwargs = {"X": X, "method": method, "limit": limit}
    answer = ctx.in_child("benchmarks.layouts:fit", kwargs, limit + TIMEOUT, threads=1)
    return answer.value if answer.ok else str(answer.error)


def _by_umap(ctx: Context, sets: dict[str, Any]) -> dict[str, Embedded | str]:
    """Every set by UMAP, in one process."""
    peer = ctx.peer("umap_embed", {name: X for name, (X, _) in sets.items()}, TIMEOUT, threads=1)
    if not peer.ok:
        return dict.fromkeys(sets, str(peer.error))
    seconds = peer.value["seconds"]
    return {name: Embedded(peer.value[name].astype(float), seconds[name]) for name in sets}


def _table(name: str, X: np.ndarray, y: np.ndarray, embeddings: dict[str, Embedded | str]) -> Table:
    columns = (
        "method", "trustworthiness", "continuity", "1-NN %", "seconds", "certified relative gap",
        "error",
    )  # fmt: skip
    table = Table(f"{name}: {len(X)} samples of {X.shape[1]} features", columns)
    for method, embedded in embeddings.items():
        if isinstance(embedded, str):
            table.add(method, *[None] * 5, embedded)
            continue
        Z = embedded.coordinates
        table.add(
            method,
            float(trustworthiness(X, Z, n_neighbors=JUDGED)),
            float(trustworthiness(Z, X, n_neighbors=JUDGED)),
            left_out_accuracy(Z, y),
            embedded.seconds,
            embedded.gap,
            None,
        )
    return table


def _picture(ctx: Context, sets: dict[str, Any], found: dict[str, Any]) -> None:
    """Sets in rows, methods in columns."""
    methods = (*METHODS, "UMAP")
    shape = {"nrows": len(sets), "ncols": len(methods)}
    size = (2.4 * shape["ncols"], 2.5 * shape["nrows"])
    caption = "Layouts, each to its own scale, coloured by label"
    with ctx.figure("layouts", caption, figsize=size, **shape) as (_, axes):
        for row, (name, embeddings) in zip(axes, found.items(), strict=True):
            for ax, method in zip(row, methods, strict=True):
                ax.set_axis_off()
                embedded = embeddings[method]
                if isinstance(embedded, str):
                    continue
                x, y = embedded.coordinates.T
                ax.scatter(x, y, c=sets[name][1], s=2, cmap="tab20", linewidths=0)
                ax.set_title(f"{method}\n{name}", fontsize=8)
