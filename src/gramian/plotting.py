"""Pictures: the one place that needs matplotlib."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

CATEGORIES = 20
"""Values of whole numbers up to which they are labels, told apart by colour."""

SHOWN = 20
"""Eigenvalues drawn."""


def pyplot() -> Any:
    """matplotlib.pyplot, or a message that says how to get it."""
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'gramian[plot]'") from error


def shown_once(figure: Any) -> Any:
    """The figure, which a notebook shows where it is returned, and not again at the cell's end."""
    if "inline" in str(import_module("matplotlib").get_backend()):
        pyplot().close(figure)
    return figure


def unfolding(
    points: Array, shares: Array, edges: Indices | None, color: ArrayLike | None, title: str
) -> Any:
    """A figure of embedded points with their graph, beside the spectrum of their kernel."""
    solid = points.shape[1] >= 3
    figure = pyplot().figure(figsize=(10, 4.5), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=[3, 1])
    left = figure.add_subplot(grid[0], projection="3d" if solid else None)
    right = figure.add_subplot(grid[1])
    scatter(left, points[:, :3] if solid else flat(points), edges=edges, color=color)
    left.set_title(title)
    spectrum(right, shares)
    return shown_once(figure)


def scatter(
    axes: Any, points: Array, *, edges: Indices | None = None, color: ArrayLike | None = None
) -> None:
    """Points in two or three dimensions, coloured by labels or numbers, and lines between them."""
    if edges is not None:
        axes.add_collection(_lines(points, edges))
    size = float(np.clip(2e4 / len(points), 2, 25))
    where = tuple(points.T)
    if color is None:
        axes.scatter(*where, s=size, linewidths=0)
    elif categorical(values := np.asarray(color)):
        check_consistent_length(points, values)
        for k, label in enumerate(np.unique(values)):
            of = values == label
            axes.scatter(*points[of].T, s=size, linewidths=0, color=f"C{k % 10}", label=str(label))
        axes.legend(markerscale=2, frameon=False)
    else:
        check_consistent_length(points, values)
        drawn = axes.scatter(*where, s=size, linewidths=0, c=values)
        axes.figure.colorbar(drawn, ax=axes)
    if points.shape[1] == 2:
        axes.set_aspect("equal", adjustable="datalim")


def spectrum(axes: Any, shares: Array) -> None:
    """The leading eigenvalues of a kernel as shares of its trace."""
    shown = shares[:SHOWN]
    axes.bar(np.arange(1, shown.size + 1), shown)
    axes.set(xlabel="eigenvalue", ylabel="share of the variance", title="spectrum")
    axes.xaxis.get_major_locator().set_params(integer=True)


def categorical(values: NDArray[Any]) -> bool:
    """Whether values are labels rather than measurements."""
    if values.dtype.kind in "fc":
        return False
    return values.dtype.kind not in "iu" or np.unique(values).size <= CATEGORIES


def spread(size: int, most: int) -> Indices:
    """The places of at most so many of a list, evenly spread over it."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.intp))


def flat(points: Array) -> Array:
    """Points in the plane, whatever they were: on a line where they have one coordinate."""
    missing = max(0, 2 - points.shape[1])
    return np.pad(points[:, :2], ((0, 0), (0, missing)))


def _lines(points: Array, edges: Indices) -> Any:
    style = {"colors": "0.8", "linewidths": 0.4, "zorder": 0}
    if points.shape[1] == 3:
        return import_module("mpl_toolkits.mplot3d.art3d").Line3DCollection(points[edges], **style)
    return import_module("matplotlib.collections").LineCollection(points[edges], **style)


def before_and_after(
    points: Array,
    labels: tuple[NDArray[Any], NDArray[Any]],
    titles: tuple[str, str],
    links: dict[str, Indices],
) -> Any:
    """Two pictures of the same points, coloured by two labellings, with links between them."""
    figure, panels = pyplot().subplots(
        1, 2, figsize=(10, 4.5), layout="constrained", sharex=True, sharey=True
    )
    for axes, values, title in zip(panels, labels, titles, strict=True):
        _draw_links(axes, points, links)
        size = float(np.clip(2e4 / len(points), 4, 25))
        axes.scatter(*points.T, s=size, linewidths=0, color=[f"C{k % 10}" for k in values])
        kept = [f"{name}s kept {_kept(name, values, pairs):.0%}" for name, pairs in links.items()]
        axes.set_title(f"{title}\n{', '.join(kept)}")
    return shown_once(figure)


def metric_views(
    views: tuple[Array, Array], color: ArrayLike | None, shares: Array, names: list[str]
) -> Any:
    """Samples before and after a metric, by two directions each, beside what features count."""
    figure, panels = pyplot().subplots(
        1, 3, figsize=(13, 4.5), layout="constrained", width_ratios=[3, 3, 2]
    )
    titles = ("before: two leading directions", "after")
    for axes, points, title in zip(panels, views, titles, strict=False):
        scatter(axes, flat(points), color=color)
        axes.set(title=title, xticks=[], yticks=[])
    best = np.argsort(-shares)[:SHOWN][::-1]
    panels[2].barh([names[k] for k in best], shares[best])
    panels[2].set(title="share of the metric")
    return shown_once(figure)


LINK_STYLES = {"must-link": ("-", "0.3"), "cannot-link": (":", "C3")}


def _draw_links(axes: Any, points: Array, links: dict[str, Indices]) -> None:
    lines = import_module("matplotlib.collections").LineCollection
    for name, pairs in links.items():
        style, color = LINK_STYLES[name]
        axes.add_collection(
            lines(points[pairs], linestyles=style, colors=color, linewidths=0.8, zorder=0)
        )


def _kept(name: str, values: NDArray[Any], pairs: Indices) -> float:
    same = values[pairs[:, 0]] == values[pairs[:, 1]]
    kept = same if name == "must-link" else ~same
    return float(np.mean(kept)) if kept.size else 1.0
