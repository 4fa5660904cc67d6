"""Unfoldings of manifolds with known parameters, of digits and of faces.

MVU, RegMVU and, if there are labels, ColoredMVU, Isomap, locally linear embedding and UMAP, in two
dimensions: how well the coordinates give the true parameters, and how well neighbourhoods are kept.
"""

from itertools import permutations
from typing import Any

import numpy as np
from sklearn.datasets import make_s_curve, make_swiss_roll
from sklearn.manifold import Isomap, LocallyLinearEmbedding

from benchmarks._embeddings import (
    JUDGED,
    UMAP_NOTE,
    Embedded,
    Found,
    Samples,
    embedded,
    kept,
    left_out_accuracy,
    picture,
)
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.manifold import MVU, ColoredMVU, RegMVU

TITLE = "Unfoldings: MVU, RegMVU and ColoredMVU against Isomap, LLE and UMAP"
PAPER = "Not from a paper: manifolds with known parameters, digits and faces"
NEEDS_DATA = ("mnist", "orl_faces")

POINTS, MANY = (1000, 200), 5000
NEIGHBOURS = 12
LIMITS = 60.0, 10.0
DIGIT = 2
SIDE, BLOBS = 24, 25
"""Pixels of a rendered image to a side, and the blobs of the object."""

OURS = {"MVU": MVU, "RegMVU": RegMVU, "ColoredMVU": ColoredMVU}
OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Isomap": (Isomap, {"n_components": 2}),
    "LLE": (LocallyLinearEmbedding, {"random_state": 0}),
    "modified LLE": (LocallyLinearEmbedding, {"random_state": 0, "method": "modified"}),
}
METHODS = (*OURS, *OTHERS, "UMAP")

NOTES = (
    f"Graphs of {NEIGHBOURS} neighbours for all but UMAP, which has its default of 15; other "
    "parameters have their defaults. MVU, RegMVU and ColoredMVU have a time limit. An edge far "
    "shorter than the others can be off by many times its length.",
    "r is the absolute correlation of a parameter with the coordinate that the better of the two "
    "pairings gives it; R is that with the best linear combination of both coordinates.",
    "Parameters: arc length along and place across for the rolls and the S-curve; cosine and sine "
    "of the angle for the rotation, a closed loop.",
    f"Trustworthiness and continuity with {JUDGED} neighbours, by distances of the samples as they "
    "are given: near along the manifold and near in space are not the same for a roll.",
    f"Rotation: {BLOBS} blobs of random places and sizes, nearer ones brighter, drawn as "
    f"{SIDE} × {SIDE} images at equal angles about one axis.",
    "1-NN: of the labels, one sample left out at a time; ColoredMVU is fitted to them.",
    UMAP_NOTE,
)


def run(ctx: Context) -> Report:
    """Every method on every set."""
    sets, limit = _sets(ctx, ctx.pick(*POINTS)), ctx.pick(*LIMITS)
    if ctx.quick:
        sets = {name: sets[name] for name in ("Swiss roll", "ORL faces")}
    ours = {"time_limit": limit, "random_state": 0}
    methods = {name: (learner, ours) for name, learner in OURS.items()} | OTHERS
    calls = [
        (name, method, learner, {"n_neighbors": NEIGHBOURS, **options})
        for name, samples in sets.items()
        for method, (learner, options) in methods.items()
        if method != "ColoredMVU" or samples.labels is not None
    ]
    found = embedded(ctx, sets, calls)
    caption = (
        "Embeddings, each to its own scale: coloured by arc length or angle, ink (digits), "
        "person (faces)"
    )
    picture(ctx, "embeddings", caption, sets, found, METHODS)
    tables = [_summary(sets, found), *(_table(name, sets[name], found[name]) for name in sets)]
    return ctx.report(tables, (*NOTES, f"Limit: {limit:g} s a fit."))


# --- the sets -------------------------------------------------------------------------


def _sets(ctx: Context, n: int) -> dict[str, Samples]:
    mnist, faces = ctx.load("mnist"), ctx.load("orl_faces")
    of_digit = np.random.default_rng(0).permutation(np.flatnonzero(mnist.y == DIGIT))[:n]
    digits = mnist.X[of_digit] / 255
    people = slice(None) if n >= len(faces.y) else faces.y < n // 10
    sets = {
        "Swiss roll": roll(n, hole=False),
        "S-curve": s_curve(n),
        "roll with a hole": roll(n, hole=True),
        "rotation": rotation(n),
        f"MNIST, digit {DIGIT}": Samples(digits, color=digits.mean(axis=1)),
        "ORL faces": Samples(faces.X[people] / 255, labels=faces.y[people]),
    }
    if not ctx.quick:
        sets[f"Swiss roll, {MANY}"] = roll(MANY, hole=False)
        sets[f"S-curve, {MANY}"] = s_curve(MANY)
    return sets


def roll(n: int, hole: bool) -> Samples:
    """A Swiss roll r = t, and its arc length."""
    X, t = make_swiss_roll(n, hole=hole, random_state=0)
    along = 0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t))
    return Samples(X, parameters=np.column_stack([along, X[:, 1]]), color=along)


def s_curve(n: int) -> Samples:
    """Two half circles of radius 1, whose arc length is their parameter."""
    X, t = make_s_curve(n, random_state=0)
    return Samples(X, parameters=np.column_stack([t, X[:, 1]]), color=t)


def rotation(n: int) -> Samples:
    """Images of an asymmetric object that turns about the upright axis."""
    rng = np.random.default_rng(0)
    angles = 2 * np.pi * np.arange(n) / n
    places = rng.uniform(-0.6, 0.6, (BLOBS, 3))
    widths = rng.uniform(0.08, 0.2, BLOBS)
    images = np.array([_rendered(places, widths, angle) for angle in angles])
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return Samples(images, parameters=circle, color=angles)


def _rendered(places: np.ndarray, widths: np.ndarray, angle: float) -> np.ndarray:
    """One image: blobs seen from the front, their brightness growing towards the eye."""
    x, height, depth = places.T
    across = np.cos(angle) * x + np.sin(angle) * depth
    near = np.cos(angle) * depth - np.sin(angle) * x
    grid = np.linspace(-1, 1, SIDE)
    columns = np.exp(-0.5 * ((grid[:, None] - across) / widths) ** 2)
    rows = np.exp(-0.5 * ((grid[:, None] - height) / widths) ** 2)
    return np.einsum("rb,cb,b->rc", rows, columns, 1 + near).ravel()


# --- correlations ------------------------------------------------------------------------


def paired_correlations(parameters: np.ndarray, coordinates: np.ndarray) -> list[float]:
    """|r| of each parameter with a coordinate of its own, in the best pairing."""
    q = parameters.shape[1]
    each = np.abs(np.corrcoef(parameters.T, coordinates.T)[:q, q:])
    best = max(permutations(range(q)), key=lambda turn: sum(each[i, turn[i]] for i in range(q)))
    return [float(each[i, best[i]]) for i in range(q)]


def multiple_correlations(parameters: np.ndarray, coordinates: np.ndarray) -> list[float]:
    """R of each parameter with a linear combination of the coordinates."""
    A = coordinates - coordinates.mean(axis=0)
    B = parameters - parameters.mean(axis=0)
    left = B - A @ np.linalg.lstsq(A, B, rcond=None)[0]
    share = 1 - np.sum(left**2, axis=0) / np.sum(B**2, axis=0)
    return [float(r) for r in np.sqrt(np.maximum(share, 0.0))]


# --- tables ----------------------------------------------------------------------------


def _table(name: str, samples: Samples, embeddings: dict[str, Embedded | str]) -> Table:
    columns = (
        "method", "r 1", "r 2", "R 1", "R 2", "trustworthiness", "continuity", "1-NN %",
        "seconds", "certified relative gap", "largest edge error", "status",
    )  # fmt: skip
    table = Table(f"{name}: {len(samples.X)} samples of {samples.X.shape[1]} features", columns)
    for method, e in embeddings.items():
        if isinstance(e, str):
            table.add(method, *[None] * 10, e)
            continue
        Z, known = e.coordinates, samples.parameters
        r: list[float | None] = [None] * 4
        if known is not None:
            r = [*paired_correlations(known, Z), *multiple_correlations(known, Z)]
        cells = left_out_accuracy(samples, e), e.seconds, e.gap, e.edge_error, e.status
        table.add(method, *r, *kept(samples, e), *cells)
    return table


def _summary(sets: dict[str, Samples], found: Found) -> Table:
    """The lesser R of the two parameters, and the mean of trustworthiness and continuity."""
    known = [name for name, samples in sets.items() if samples.parameters is not None]
    columns = ("method", *(f"lesser R, {name}" for name in known), *(f"kept, {n}" for n in sets))
    table = Table("Lesser R of the two parameters; mean of trustworthiness and continuity", columns)
    for method in METHODS:
        done = {n: e for n in sets if isinstance(e := found[n].get(method), Embedded)}
        R = {n: multiple_correlations(sets[n].parameters, done[n].coordinates)
             for n in known if n in done}  # fmt: skip
        mean = {n: float(np.mean(kept(sets[n], e))) for n, e in done.items()}
        lesser = (min(R[n]) if n in R else None for n in known)
        table.add(method, *lesser, *(mean.get(n) for n in sets))
    return table
