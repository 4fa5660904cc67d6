"""Neighbourhoods kept in the plane: NeighborLayout and MVU, Isomap and UMAP.

Two dimensions keep neighbourhoods better than distances: MVU preserves distances, NeighborLayout
neighbourhoods.
"""

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap

from benchmarks._embeddings import (
    JUDGED,
    UMAP_NOTE,
    Samples,
    embedded,
    kept,
    left_out_accuracy,
    picture,
)
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.manifold import MVU, NeighborLayout

TITLE = "Layouts: NeighborLayout and MVU against Isomap and UMAP"
PAPER = "Not from a paper: preservation of neighbourhoods in two dimensions, digits and faces"
NEEDS_DATA = ("mnist", "orl_faces")

POINTS, POINTS_QUICK = 5000, 300
LIMIT, LIMIT_QUICK = 30.0, 10.0

NOTES = (
    f"Trustworthiness and continuity with {JUDGED} neighbours; 1-NN: of the labels, one sample "
    "left out at a time. NeighborLayout and UMAP with their defaults, MVU with 8 neighbours and a "
    "time limit.",
    "The certified relative gap of NeighborLayout is that of the picture to the optimum of any "
    "rank, for the weights of its last round; that of MVU is of its kernel, not of two columns.",
    UMAP_NOTE,
)


def run(ctx: Context) -> Report:
    """Every method on every set."""
    n, limit = (POINTS_QUICK, LIMIT_QUICK) if ctx.quick else (POINTS, LIMIT)
    methods: dict[str, tuple[Any, dict[str, Any]]] = {
        "NeighborLayout": (NeighborLayout, {"random_state": 0}),
        "NeighborLayout, 1 round": (NeighborLayout, {"random_state": 0, "rounds": 1}),
        "MVU": (MVU, {"n_neighbors": 8, "random_state": 0, "time_limit": limit}),
        "Isomap, 5 neighbours": (Isomap, {"n_neighbors": 5}),
        "Isomap, 8 neighbours": (Isomap, {"n_neighbors": 8}),
    }
    mnist, faces, digits = ctx.load("mnist"), ctx.load("orl_faces"), load_digits()
    some = np.random.default_rng(0).permutation(len(mnist.y))[:n]
    sets = {
        "digits": Samples(digits.data[:n], digits.target[:n]),
        "MNIST": Samples(mnist.X[some] / 255, mnist.y[some]),
        "ORL faces": Samples(faces.X[:n] / 255, faces.y[:n]),
    }
    if ctx.quick:
        del sets["MNIST"], sets["ORL faces"]
    found = embedded(ctx, sets, [(name, m, *how) for name in sets for m, how in methods.items()])
    caption = "Layouts, each to its own scale, coloured by label"
    picture(ctx, "layouts", caption, sets, found, (*methods, "UMAP"))
    columns = ("method", "trustworthiness", "continuity", "1-NN %", "seconds",
               "certified relative gap", "error")  # fmt: skip
    tables = []
    for name, samples in sets.items():
        shape = samples.X.shape
        tables.append(Table(f"{name}: {shape[0]} samples of {shape[1]} features", columns))
        for method, e in found[name].items():
            if isinstance(e, str):
                tables[-1].add(method, *[None] * 5, e)
            else:
                accuracy = left_out_accuracy(samples, e)
                tables[-1].add(method, *kept(samples, e), accuracy, e.seconds, e.gap, None)
    return ctx.report(tables, (*NOTES, f"Limit of MVU: {limit:g} s."))
