"""Figures of a page as SVG; a small script adds names under the pointer, and zooming."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.app.report import drawing
from gramian.app.report.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, axis
from gramian.app.report.thumbnails import Sheet
from gramian.common.types import Array
from gramian.estimators.plotting import categorical, spread

Group = tuple[str, NDArray[np.integer], str, str]
"""Name, members, style and colour of some points."""

COLOURS = 10
"""Number of colours of a page; with more classes they repeat."""

MOST_POINTS, MOST_EDGES, MOST_ON_CURVES = 20_000, 10_000, 300
"""Largest numbers of points and edges in a figure, and of points on a curve."""

LEAST_ON_CURVES = 3
"""Points from which on a curve is drawn."""

SCALE = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")
SHADES = 24
"""Number of colours of a scale."""

FLAT = 8.0
"""Ratio of the extents of the points from which on each axis has its own unit."""

LINKS = {"must-link": "must", "cannot-link": "cannot"}


def _drawing(
    body: str,
    title: str = "",
    names: Sequence[tuple[str, str]] = (),
    below: str = "",
    images: Sheet | None = None,
    *,
    points: bool = False,
) -> str:
    """A drawing as HTML, with a button for each of its parts: their names and classes of style.

    In a drawing of points, these show their names, and a rectangle zooms.
    """
    title = escape(title)
    words = f'<text class="title" x="{WIDTH / 2:.0f}" y="18" text-anchor="middle">{title}</text>'
    buttons = "".join(
        f'<button type="button" class="{style}" data-part="{place}" aria-pressed="true"><i></i>'
        f"{escape(name)}</button>"
        for place, (name, style) in enumerate(names if len(names) > 1 else ())
    )
    legend = f'<div class="legend">{buttons}</div>' if buttons else ""
    sheet = ""
    if images is not None:
        size = f"{images.width} {images.height} {images.columns}"
        sheet = f' data-tile="{size}" data-sheet="{images.address}"'
    return (
        f'<div class="drawing{" points" if points else ""}"{sheet}>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title or "figure"}">'
        f"{words}{body}</svg>{legend}{below}</div>"
    )


def lines(
    curves: Sequence[tuple[str, Array, Array]],
    x_title: str,
    y_title: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Curves by name, each switched on and off by its name."""
    across = axis([x for _, x, _ in curves], LEFT, WIDTH - RIGHT, log=log_x, title=x_title)
    up = axis([y for _, _, y in curves], HEIGHT - BOTTOM, TOP, log=log_y, title=y_title)
    parts = [drawing.frame(across, up)]
    names = []
    for place, (name, x, y) in enumerate(curves):
        chosen = spread(len(x), MOST_ON_CURVES)
        x, y = np.asarray(x)[chosen], np.asarray(y)[chosen]
        a, b = across.at(x), up.at(y)
        style = f"c{place % COLOURS}"
        marks = "".join(
            f'<circle cx="{p:.1f}" cy="{q:.1f}" r="2.5"><title>{escape(name)}: {u:.4g}, {v:.6g}'
            "</title></circle>"
            for p, q, u, v in zip(a, b, x, y, strict=True)
        )
        parts.append(
            f'<g class="curve {style}" data-part="{place}"><path d="{drawing.through(a, b)}"/>'
            f"{marks}</g>"
        )
        names.append((name, style))
    return _drawing("".join(parts), names=names)


def bars(heights: ArrayLike, x_title: str, y_title: str) -> str:
    """Bars, numbered from 1; with few of them, there is room for more on the right."""
    values = np.asarray(heights, dtype=float)
    numbers, room = np.arange(1, values.size + 1), max(values.size, drawing.TICKS)
    across = drawing.Axis(0.4, room + 0.6, LEFT, WIDTH - RIGHT, title=x_title)
    up = axis([values], HEIGHT - BOTTOM, TOP, title=y_title, zero=True)
    half = 0.4 * (WIDTH - LEFT - RIGHT) / room
    ground = float(up.at(0.0))
    drawn = "".join(
        f'<rect x="{x - half:.1f}" y="{min(y, ground):.1f}" width="{2 * half:.1f}" '
        f'height="{abs(ground - y):.1f}"><title>{n}: {value:.6g}</title></rect>'
        for n, x, y, value in zip(numbers, across.at(numbers), up.at(values), values, strict=True)
    )
    return _drawing(f'{drawing.frame(across, up)}<g class="bars c0">{drawn}</g>')


def points(
    places: Array,
    *,
    color: ArrayLike | None = None,
    edges: NDArray[np.integer] | None = None,
    links: dict[str, NDArray[np.integer]] | None = None,
    images: Sheet | None = None,
    title: str = "",
    upward: bool = True,
) -> str:
    """Points of the plane with their names under the pointer, and lines between them.

    Without `upward` the vertical axis has no values.
    """
    across, up = _alike(places)
    x, y = across.at(places[:, 0]), up.at(places[:, 1])
    shown = spread(len(places), MOST_POINTS)
    names: list[tuple[str, str]] = []
    parts: list[str] = []
    drawn = {} if edges is None else {"graph": edges}
    for name, pairs in {**drawn, **(links or {})}.items():
        some = pairs[spread(len(pairs), MOST_EDGES)]
        style = LINKS.get(name, "edges")
        ends = np.column_stack([x[some[:, 0]], y[some[:, 0]], x[some[:, 1]], y[some[:, 1]]])
        parts.append(
            f'<path class="{style}" data-part="{len(names)}" d="{drawing.segments(ends)}"/>'
        )
        names.append((name, style))
    groups, below = _groups(color, shown)
    size = 5 if len(shown) <= 1000 else 3.5 if len(shown) <= 5000 else 2.5
    for name, of, style, colour in groups:
        who = " ".join(map(str, of.tolist()))
        fixed = f' style="stroke:{colour}"' if colour else ""
        parts.append(
            f'<path class="dots {style}" data-part="{len(names) if name else ""}" '
            f'data-name="{escape(name)}" data-who="{who}" stroke-width="{size}"{fixed} '
            f'd="{drawing.dots(x[of], y[of])}"/>'
        )
        if name:
            names.append((name, style))
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    place = f'x="{LEFT}" y="{TOP}" width="{width}" height="{height}"'
    inner = (
        f'<svg class="plot" {place} viewBox="{LEFT} {TOP} {width} {height}">'
        f'<rect class="ground" {place}/><g class="all">{"".join(parts)}</g></svg>'
    )
    body = drawing.frame(across, up, upward=upward) + inner
    return _drawing(body, title, names, below, images, points=True)


def _alike(places: Array) -> tuple[drawing.Axis, drawing.Axis]:
    """Axes with equal units, unless all points would then almost be on a line."""
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    room = np.array([WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM], dtype=float)
    units = np.ptp(places, axis=0) / room * 1.06
    if units.min() * FLAT > units.max():
        units[:] = units.max()
    half = room * np.where(units > 0, units, units.max() or 1.0 / WIDTH) / 2
    return (
        drawing.Axis(middle[0] - half[0], middle[0] + half[0], LEFT, WIDTH - RIGHT),
        drawing.Axis(middle[1] - half[1], middle[1] + half[1], HEIGHT - BOTTOM, TOP),
    )


def _groups(color: ArrayLike | None, shown: NDArray[np.integer]) -> tuple[list[Group], str]:
    """Groups of points by colour, and the scale below them."""
    if color is None:
        return [("", shown, "c0", "")], ""
    values = np.asarray(color)
    if not categorical(values):
        return _shaded(values.astype(float), shown)
    found = enumerate(np.unique(values))
    groups = [(str(k), shown[values[shown] == k], f"c{place % COLOURS}", "") for place, k in found]
    return groups, ""


def _shaded(values: Array, shown: NDArray[np.integer]) -> tuple[list[Group], str]:
    """Groups of points by the colours of a scale, and the scale."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    place = np.nan_to_num((values - low) / ((high - low) or 1.0)) * (SHADES - 1)
    shade = np.round(place).astype(int)
    groups = [
        ("", shown[shade[shown] == k], "", _shade(k / (SHADES - 1)))
        for k in np.unique(shade[shown])
    ]
    colours = ", ".join(SCALE)
    below = (
        f'<p class="scale"><span>{drawing.written(low)}</span>'
        f'<i style="background: linear-gradient(90deg, {colours})"></i>'
        f"<span>{drawing.written(high)}</span></p>"
    )
    return groups, below


def _shade(part: float) -> str:
    """A colour between those of the scale."""
    stops = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in SCALE], dtype=float)
    at = np.linspace(0, 1, len(SCALE))
    return "#" + "".join(f"{round(np.interp(part, at, stops[:, k])):02x}" for k in range(3))
