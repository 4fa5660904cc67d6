"""What comes out: unfoldings of manifolds that are known, of digits and of faces.

MVU, RegMVU and, where there are labels, ColoredMVU, against Isomap, locally linear embedding and
UMAP, in two dimensions: how well the coordinates tell the true parameters, and how well
neighbourhoods are kept.
"""

import time
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
from sklearn.datasets import make_s_curve, make_swiss_roll
from sklearn.manifold import Isomap, LocallyLinearEmbedding, trustworthiness
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.manifold import MVU, ColoredMVU, RegMVU

TITLE = "Unfoldings: MVU, RegMVU and ColoredMVU against Isomap, LLE and UMAP"
PAPER = "No table of a paper: manifolds with known parameters, digits and faces"
NEEDS_DATA = ("mnist", "orl_faces")

POINTS, POINTS_QUICK, MANY = 1000, 200, 5000
NEIGHBOURS, JUDGED = 12, 10
"""Of the graphs, and of trustworthiness and continuity."""
LIMIT, LIMIT_QUICK = 60.0, 20.0
TIMEOUT = 300.0
DIGIT = 2
SIDE, BLOBS = 24, 25
"""Pixels of a rendered image to a side, and the blobs of the object."""

OURS = {"MVU": MVU, "RegMVU": RegMVU, "ColoredMVU": ColoredMVU}
OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Isomap": (Isomap, {}),
    "LLE": (LocallyLinearEmbedding, {"random_state": 0}),
    "modified LLE": (LocallyLinearEmbedding, {"random_state": 0, "method": "modified"}),
}
METHODS = (*OURS, *OTHERS, "UMAP")

NOTES = (
    f"Graphs of {NEIGHBOURS} neighbours for all but UMAP, which has its default of 15; everything "
    "else as it comes. The MVU family is stopped after a limit; its gap says where it stood. "
    "An edge far shorter than the others can be off by many times its length.",
    "r is the absolute correlation of a parameter with the coordinate that the better of the two "
    "pairings gives it; R is that with the best linear combination of both coordinates.",
    "Parameters: arc length along and place across for the rolls and the S-curve; cosine and sine "
    "of the angle for the rotation, a closed loop.",
    f"Trustworthiness and continuity with {JUDGED} neighbours, by distances of the samples as they "
    "are given: near along the manifold and near in space are not the same for a roll.",
    f"Rotation: {BLOBS} blobs of random places and sizes, nearer ones brighter, drawn as "
    f"{SIDE} × {SIDE} images at equal angles about one axis.",
    "1-NN: of the labels, one sample left out at a time; ColoredMVU has seen them.",
    "Seconds are those of one fit with one thread, without imports; UMAP's after a first fit "
    "that compiles.",
)


@dataclass(frozen=True, eq=False)
class Samples:
    """Points, their true parameters in columns, and their labels, where known."""

    X: np.ndarray
    parameters: np.ndarray | None = None
    labels: np.ndarray | None = None
    color: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Embedded:
    """Two coordinates, and what they cost."""

    coordinates: np.ndarray
    seconds: float
    gap: float | None = None
    edge_error: float | None = None
    status: str = ""


Found = dict[str, dict[str, Embedded | str]]
"""By set and method: an embedding, or why there is none."""


def run(ctx: Context) -> Report:
    """Every method on every set."""
    sets = _sets(ctx, POINTS_QUICK if ctx.quick else POINTS)
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    calls = {
        (name, method): partial(_embedded, ctx, samples, method, limit)
        for name, samples in sorted(sets.items(), key=lambda item: -len(item[1].X))
        for method in (*OURS, *OTHERS)
        if method != "ColoredMVU" or samples.labels is not None
    }
    done = ctx.at_once([partial(_by_umap, ctx, sets), *calls.values()])
    found: Found = {name: {} for name in sets}
    for (name, method), embedded in zip(calls, done[1:], strict=True):
        found[name][method] = embedded
    for name, embedded in done[0].items():
        found[name]["UMAP"] = embedded
    _picture(ctx, sets, found)
    tables = [_table(name, sets[name], found[name]) for name in sets]
    return ctx.report([_summary(sets, found), *tables], (*NOTES, f"Limit: {limit:g} s a fit."))


# --- the sets -------------------------------------------------------------------------


def _sets(ctx: Context, n: int) -> dict[str, Samples]:
    mnist, faces = ctx.load("mnist"), ctx.load("orl_faces")
    of_digit = np.random.default_rng(0).permutation(np.flatnonzero(mnist.y == DIGIT))[:n]
    digits = mnist.X[of_digit] / 255
    kept = slice(None) if n >= len(faces.y) else faces.y < n // 10
    people = faces.y[kept]
    large = {} if n < POINTS else {
        f"Swiss roll, {MANY}": roll(MANY, hole=False), f"S-curve, {MANY}": s_curve(MANY),
    }  # fmt: skip
    return {
        "Swiss roll": roll(n, hole=False),
        "S-curve": s_curve(n),
        "roll with a hole": roll(n, hole=True),
        "rotation": rotation(n),
        f"MNIST, digit {DIGIT}": Samples(digits, color=digits.mean(axis=1)),
        "ORL faces": Samples(faces.X[kept] / 255, labels=people, color=people),
    } | large


def roll(n: int, hole: bool) -> Samples:
    """A Swiss roll r = t, and its arc length."""
    X, t = make_swiss_roll(n, hole=hole, random_state=0)
    along = 0.5 * (t * np.sqrt(1 + t * t) + np.arcsinh(t))
    return Samples(X, np.column_stack([along, X[:, 1]]), color=along)


def s_curve(n: int) -> Samples:
    """Two half circles of radius 1, whose arc length is their parameter."""
    X, t = make_s_curve(n, random_state=0)
    return Samples(X, np.column_stack([t, X[:, 1]]), color=t)


def rotation(n: int) -> Samples:
    """Images of an asymmetric object that turns about the upright axis."""
    rng = np.random.default_rng(0)
    angles = 2 * np.pi * np.arange(n) / n
    places = rng.uniform(-0.6, 0.6, (BLOBS, 3))
    widths = rng.uniform(0.08, 0.2, BLOBS)
    images = np.array([_rendered(places, widths, angle) for angle in angles])
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return Samples(images, circle, color=angles)


def _rendered(places: np.ndarray, widths: np.ndarray, angle: float) -> np.ndarray:
    """One image: blobs seen from the front, their brightness growing towards the eye."""
    x, height, depth = places.T
    across = np.cos(angle) * x + np.sin(angle) * depth
    near = np.cos(angle) * depth - np.sin(angle) * x
    grid = np.linspace(-1, 1, SIDE)
    columns = np.exp(-0.5 * ((grid[:, None] - across) / widths) ** 2)
    rows = np.exp(-0.5 * ((grid[:, None] - height) / widths) ** 2)
    return np.einsum("rb,cb,b->rc", rows, columns, 1 + near).ravel()


# --- one fit, in a process of its own -------------------------------------------------


def fit(X: np.ndarray, y: np.ndarray | None, method: str, limit: float) -> Embedded:
    """Embed the samples by one of the methods at hand."""
    if method in OURS:
        model = OURS[method](n_neighbors=NEIGHBOURS, time_limit=limit, random_state=0)
    else:
        learner, options = OTHERS[method]
        model = learner(n_neighbors=NEIGHBOURS, n_components=2, **options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coordinates = model.fit_transform(X, y)
    seconds = time.perf_counter() - start
    if method not in OURS:
        return Embedded(coordinates, seconds)
    gap, status = model.certificate_.relative_gap, model.result_.status.name
    return Embedded(coordinates, seconds, gap, model.edge_error_, status)


def _embedded(ctx: Context, samples: Samples, method: str, limit: float) -> Embedded | str:
    """The embedding, or why there is none."""
    kwargs = {"X": samples.X, "y": samples.labels, "method": method, "limit": limit}
    timeout = limit + TIMEOUT
    answer = ctx.in_child("benchmarks.unfoldings:fit", kwargs, timeout, threads=1)
    return answer.value if answer.ok else str(answer.error)


def _by_umap(ctx: Context, sets: dict[str, Samples]) -> dict[str, Embedded | str]:
    """Every set by UMAP, in one process."""
    kwargs = {name: samples.X for name, samples in sets.items()}
    peer = ctx.peer("umap_embed", kwargs, TIMEOUT, threads=1)
    if not peer.ok:
        return dict.fromkeys(sets, str(peer.error))
    seconds = peer.value["seconds"]
    return {name: Embedded(peer.value[name].astype(float), seconds[name]) for name in sets}


# --- how good it is -------------------------------------------------------------------


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


def left_out_accuracy(coordinates: np.ndarray, labels: np.ndarray) -> float:
    """% of samples whose nearest other one has their label."""
    search = KNeighborsClassifier(1).fit(coordinates, labels)
    near = search.kneighbors(return_distance=False).ravel()
    return 100 * float(np.mean(labels[near] == labels))


def _kept(samples: Samples, embedded: Embedded) -> tuple[float, float]:
    """Trustworthiness, and continuity: the same with the roles exchanged."""
    X, Z = samples.X, embedded.coordinates
    return (
        float(trustworthiness(X, Z, n_neighbors=JUDGED)),
        float(trustworthiness(Z, X, n_neighbors=JUDGED)),
    )


# --- tables and pictures --------------------------------------------------------------


def _table(name: str, samples: Samples, embeddings: dict[str, Embedded | str]) -> Table:
    columns = (
        "method", "r 1", "r 2", "R 1", "R 2", "trustworthiness", "continuity", "1-NN %",
        "seconds", "certified relative gap", "largest edge error", "status",
    )  # fmt: skip
    table = Table(f"{name}: {len(samples.X)} samples of {samples.X.shape[1]} features", columns)
    for method, embedded in embeddings.items():
        if isinstance(embedded, str):
            table.add(method, *[None] * 10, embedded)
            continue
        Z, known = embedded.coordinates, samples.parameters
        told: list[float | None] = [None] * 4
        if known is not None:
            told = [*paired_correlations(known, Z), *multiple_correlations(known, Z)]
        labels = samples.labels
        table.add(
            method,
            *told,
            *_kept(samples, embedded),
            None if labels is None else left_out_accuracy(Z, labels),
            embedded.seconds,
            embedded.gap,
            embedded.edge_error,
            embedded.status or None,
        )
    return table


def _summary(sets: dict[str, Samples], found: Found) -> Table:
    """The lesser R of the two parameters, and the mean of trustworthiness and continuity."""
    known = [name for name, samples in sets.items() if samples.parameters is not None]
    columns = ("method", *(f"lesser R, {name}" for name in known), *(f"kept, {n}" for n in sets))
    table = Table("Lesser R of the two parameters; mean of trustworthiness and continuity", columns)
    for method in METHODS:
        cells: list[float | None] = []
        for name in (*known, *sets):
            embedded, parameters = found[name].get(method), sets[name].parameters
            if not isinstance(embedded, Embedded):
                cells.append(None)
            elif parameters is not None and len(cells) < len(known):
                cells.append(min(multiple_correlations(parameters, embedded.coordinates)))
            else:
                cells.append(float(np.mean(_kept(sets[name], embedded))))
        table.add(method, *cells)
    return table


def _picture(ctx: Context, sets: dict[str, Samples], found: Found) -> None:
    """Sets in rows, methods in columns."""
    shape = {"nrows": len(sets), "ncols": len(METHODS)}
    size = (2.0 * shape["ncols"], 2.1 * shape["nrows"])
    caption = (
        "Embeddings, each to its own scale: coloured by arc length or angle, ink (digits), "
        "person (faces)"
    )
    with ctx.figure("embeddings", caption, figsize=size, **shape) as (_, axes):
        for row, (name, embeddings) in zip(axes, found.items(), strict=True):
            for ax, method in zip(row, METHODS, strict=True):
                ax.set_axis_off()
                embedded = embeddings.get(method)
                if not isinstance(embedded, Embedded):
                    continue
                colors = "tab20" if sets[name].labels is not None else "Spectral"
                x, y = embedded.coordinates.T
                ax.scatter(x, y, c=sets[name].color, s=3, cmap=colors, linewidths=0)
                ax.set_title(f"{method}\n{name}", fontsize=8)
