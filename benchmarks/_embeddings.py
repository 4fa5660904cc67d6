"""Two-dimensional embeddings: each in a process of its own, their quality, and their picture."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import get_tags

from benchmarks.harness.context import Context

JUDGED = 10
"""Neighbours of trustworthiness and continuity."""
TIMEOUT = 600.0
UMAP_NOTE = (
    "Seconds are those of one fit with one thread, without imports; UMAP's after a first fit that "
    "compiles."
)


@dataclass(frozen=True, eq=False)
class Samples:
    """Points with their true parameters in columns, labels and colours, if known."""

    X: np.ndarray
    labels: np.ndarray | None = None
    parameters: np.ndarray | None = None
    color: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Embedded:
    """Two coordinates, and their cost."""

    coordinates: np.ndarray
    seconds: float
    gap: float | None = None
    edge_error: float | None = None
    status: str | None = None


Found = dict[str, dict[str, Embedded | str]]
"""By set and method: an embedding, or the reason why there is none."""


def embedded(
    ctx: Context, sets: Mapping[str, Samples], calls: Sequence[tuple[str, str, Any, dict[str, Any]]]
) -> Found:
    """The calls (set, method, estimator, options), and UMAP of each set."""
    longest = sorted(calls, key=lambda call: -len(sets[call[0]].X))
    jobs = [partial(_in_child, ctx, sets[name], *rest) for name, _, *rest in longest]
    umap, *done = ctx.at_once([partial(_by_umap, ctx, sets), *jobs])
    found: Found = {name: {} for name in sets}
    results = {call[:2]: result for call, result in zip(longest, done, strict=True)}
    for name, method, *_ in calls:
        found[name][method] = results[name, method]
    for name in sets:
        found[name]["UMAP"] = umap[name]
    return found


def _in_child(ctx: Context, samples: Samples, learner: Any, options: Any) -> Embedded | str:
    kwargs = {"X": samples.X, "learner": learner, "options": options}
    if get_tags(learner()).target_tags.required:  # others must not see the labels
        kwargs["y"] = samples.labels
    answer = ctx.in_child("benchmarks._embeddings:fit", kwargs, TIMEOUT, threads=1)
    return answer.value if answer.ok else str(answer.error)


def fit(X: np.ndarray, learner: Any, options: dict[str, Any], y: Any = None) -> Embedded:
    """One embedding, in its process."""
    model = learner(**options)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coordinates = model.fit_transform(X, y)
    seconds = time.perf_counter() - start
    if not hasattr(model, "certificate_"):
        return Embedded(coordinates, seconds)
    error, status = getattr(model, "edge_error_", None), model.result_.status.name
    return Embedded(coordinates, seconds, model.certificate_.relative_gap, error, status)


def _by_umap(ctx: Context, sets: Mapping[str, Samples]) -> dict[str, Embedded | str]:
    """Every set, in one process."""
    given = {name: samples.X for name, samples in sets.items()}
    peer = ctx.peer("umap_embed", given, TIMEOUT, threads=1)
    if not peer.ok:
        return dict.fromkeys(sets, str(peer.error))
    seconds = peer.value["seconds"]
    return {name: Embedded(peer.value[name].astype(float), seconds[name]) for name in sets}


def kept(samples: Samples, found: Embedded) -> tuple[float, float]:
    """Trustworthiness, and continuity: the same with the roles exchanged."""
    X, Z = samples.X, found.coordinates
    one, two = (trustworthiness(a, b, n_neighbors=JUDGED) for a, b in ((X, Z), (Z, X)))
    return float(one), float(two)


def left_out_accuracy(samples: Samples, found: Embedded) -> float | None:
    """% of samples whose nearest other sample has their label."""
    if samples.labels is None:
        return None
    search = KNeighborsClassifier(1).fit(found.coordinates, samples.labels)
    near = search.kneighbors(return_distance=False).ravel()
    return 100 * float(np.mean(samples.labels[near] == samples.labels))


def picture(
    ctx: Context, name: str, caption: str, sets: Mapping[str, Samples], found: Found, methods: Any
) -> None:
    """Sets in rows, methods in columns."""
    shape = {"nrows": len(sets), "ncols": len(methods), "squeeze": False}
    size = (2.2 * len(methods), 2.3 * len(sets))
    with ctx.figure(name, caption, figsize=size, **shape) as (_, axes):
        for row, (of, samples) in zip(axes, sets.items(), strict=True):
            for ax, method in zip(row, methods, strict=True):
                ax.set_axis_off()
                embedding = found[of].get(method)
                if isinstance(embedding, Embedded):
                    colors = "Spectral" if samples.labels is None else "tab20"
                    color = samples.color if samples.labels is None else samples.labels
                    x, y = embedding.coordinates.T
                    ax.scatter(x, y, c=color, s=3, cmap=colors, linewidths=0)
                    ax.set_title(f"{method}\n{of}", fontsize=8)
