"""Figures of embeddings, links and metrics, drawn by matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from gramian.common import clock
from gramian.common.html import pyplot, shown_once
from gramian.common.types import Array, Indices

CATEGORIES = 20
"""Integers with at most this many different values are treated as labels."""

SHOWN = 20
"""Maximum number of eigenvalues or features drawn."""


def unfolding(
    points: Array, shares: Array, edges: Indices | None, color: ArrayLike | None, title: str
) -> Any:
    """A figure of embedded points with their graph, and of the spectrum of their kernel."""
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
    """Draw points in two or three dimensions, coloured by labels or numbers, and their edges."""
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
    """Draw the leading eigenvalues of a kernel, divided by its trace."""
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
    """At most `most` evenly spaced indices of a list of the given size."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).astype(np.intp))


def flat(points: Array) -> Array:
    """The first two coordinates of points; the second is 0 if the points have only one."""
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
    """Two plots of the same points, coloured by two labellings, with links between them."""
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
    """Samples in two dimensions before and after learning, and the feature importances."""
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


# --- plots during a fit -----------------------------------------------------------------

FRAMES, EVERY = 60, 1.0
"""Maximum number of stored frames, and minimum number of seconds between two drawn frames."""


class Picture(clock.Watcher):
    """The two leading dimensions of samples during a fit.

    A frame is stored every few steps. If there are too many frames, every second one is deleted and
    the interval doubled. `draw` is called with the latest frame at most once per EVERY seconds.
    """

    def __init__(
        self,
        draw: Callable[[Any], None] | None = None,
        *,
        color: ArrayLike | None = None,
        title: str = "",
    ) -> None:
        self.frames: list[Array] = []
        self._draw, self._color, self._title = draw, color, title
        self._count, self._each, self._last = 0, 1, -np.inf
        self._figure: Any = None

    def frame(self, places: Callable[[], Any]) -> None:
        self._count += 1
        if (self._count - 1) % self._each:
            return
        self.frames.append(leading_two(places()))
        if len(self.frames) > FRAMES:
            self.frames, self._each = self.frames[::2], 2 * self._each
        if self._draw is not None and clock.elapsed(self._last) >= EVERY:
            self._draw(self.drawn(self.frames[-1]))
            self._last = clock.now()

    def end(self, places: Array | None = None) -> None:
        """Draw the final points; default: the last frame."""
        if places is not None:
            self.frames.append(flat(places))
        if self._draw is not None and self.frames:
            self._draw(self.drawn(self.frames[-1]))

    def drawn(self, points: Array) -> Any:
        """The figure, with the given points drawn."""
        if self._figure is None:
            self._figure = pyplot().figure(figsize=(6, 6))
        self._figure.clear()
        axes = self._figure.add_axes((0.02, 0.02, 0.96, 0.92))
        fits = self._color is not None and len(np.asarray(self._color)) == len(points)
        scatter(axes, points, color=self._color if fits else None)
        axes.set(title=self._title, xticks=[], yticks=[])
        return self._figure

    def gif(self, *, rate: int = 12) -> bytes:
        """All frames as a GIF, each rotated to match the next; the last one is shown for 1 s."""
        turned = turned_alike(self.frames)
        writer = import_module("matplotlib.animation").PillowWriter(fps=rate)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "frames.gif"
            with writer.saving(self.drawn(turned[-1]), path, dpi=80):
                for points in [*turned, *turned[-1:] * rate]:
                    self.drawn(points)
                    writer.grab_frame()
            return signed(path.read_bytes())

    def close(self) -> None:
        """Close the figure."""
        if self._figure is not None:
            pyplot().close(self._figure)


def signed(gif: bytes) -> bytes:
    """The image with a comment that names the software."""
    words = b"Matplotlib, by gramian"
    return gif[:-1] + b"\x21\xfe" + bytes([len(words)]) + words + b"\x00" + gif[-1:]


def leading_two(places: Array) -> Array:
    """The two leading principal components of the points."""
    centred = np.asarray(places, dtype=float) - np.mean(places, axis=0)
    if centred.shape[1] <= 2:
        return flat(centred)
    _, turn = np.linalg.eigh(centred.T @ centred)
    return centred @ turn[:, :-3:-1]


def turned_alike(frames: list[Array]) -> list[Array]:
    """The frames, each rotated to match the next one if both have the same number of points."""
    turned = frames[-1:]
    for points in frames[-2::-1]:
        same = points.shape == turned[0].shape
        turned.insert(0, turned_to(points, turned[0]) if same else points)
    return turned


def turned_to(points: Array, target: Array) -> Array:
    """Centred points, rotated or reflected to match the target (orthogonal Procrustes)."""
    points, target = (flat(p) - flat(p).mean(axis=0) for p in (points, target))
    left, _, right = np.linalg.svd(points.T @ target)
    return points @ (left @ right)


@contextmanager
def pictured(title: str) -> Iterator[Picture]:
    """Plot the fit inside the block while it runs, in a notebook or a window."""
    picture = Picture(_in_sight(), title=title)
    with clock.watched_by(clock.Watchers(clock.watcher(), picture)):
        yield picture
    picture.end()
    picture.close()


def _in_sight() -> Callable[[Any], None]:
    """A function that draws a figure or updates the drawn one, in a notebook or a window."""
    shell = sys.modules.get("IPython")
    if shell is None or shell.get_ipython() is None:
        return _in_a_window
    display = import_module("IPython.display").display
    handles: list[Any] = []

    def show(figure: Any) -> None:
        if handles:
            handles[0].update(figure)
        else:
            handles.append(display(figure, display_id=True))

    return show


def _in_a_window(figure: Any) -> None:
    if figure.canvas.required_interactive_framework is not None:
        pyplot().pause(1e-3)
