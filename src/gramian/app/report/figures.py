"""Figures of a page, as plain SVG: drawn without a script, asked and zoomed by a small one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.app.report import drawing
from gramian.app.report.drawing import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, axis
from gramian.app.report.thumbnails import Sheet
from gramian.estimators.plotting import categorical, spread

Array = NDArray[np.floating]

COLOURS = 10
"""Colours of a page, by number; those of a class repeat beyond."""

MOST_POINTS, MOST_EDGES, MOST_ON_CURVES = 20_000, 10_000, 300
"""What a page shows at most: it has to be sent and drawn."""

LEAST_ON_CURVES = 3
"""Points from which on a curve is drawn: two have no shape."""

SCALE = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")
SHADES = 24
"""Colours of a scale, from its least value to its largest."""

FLAT = 8.0
"""Ratio of the two directions of a cloud from which on each axis has its own unit."""

LETTER, LINE = 10.0, 20.0
"""Width of a letter and height of a line beside a matrix, at the largest size of the letters."""

LINKS = {"must-link": "must", "cannot-link": "cannot"}


@dataclass(frozen=True)
class Figure:
    """A drawing, and the names that switch its parts off."""

    title: str
    body: str
    names: tuple[tuple[str, str], ...] = ()
    """Name and class of style of each part."""
    below: str = ""
    points: bool = False
    """Whether points say who they are, and a rectangle zooms."""
    images: Sheet | None = None
    """What they look like."""


def markup(drawn: Figure) -> str:
    """A figure as HTML."""
    title = escape(drawn.title)
    words = f'<text class="title" x="{WIDTH / 2:.0f}" y="18" text-anchor="middle">{title}</text>'
    buttons = "".join(
        f'<button type="button" class="{style}" data-part="{place}" aria-pressed="true"><i></i>'
        f"{escape(name)}</button>"
        for place, (name, style) in enumerate(drawn.names)
    )
    legend = f'<div class="legend">{buttons}</div>' if buttons else ""
    kind = "drawing points" if drawn.points else "drawing"
    return (
        f'<div class="{kind}"{_sheet(drawn.images)}><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title or "figure"}">{words}{drawn.body}</svg>{legend}{drawn.below}</div>'
    )


def _sheet(images: Sheet | None) -> str:
    if images is None:
        return ""
    size = f"{images.width} {images.height} {images.columns}"
    return f' data-tile="{size}" data-sheet="{images.address}"'


def lines(
    curves: Sequence[tuple[str, Array, Array]], *, xaxis: dict[str, Any], yaxis: dict[str, Any]
) -> Figure:
    """Curves by name, each switched on and off by its name; axes have a title and a type."""
    across = _axis([x for _, x, _ in curves], LEFT, WIDTH - RIGHT, xaxis)
    up = _axis([y for _, _, y in curves], HEIGHT - BOTTOM, TOP, yaxis)
    parts = [drawing.frame(across, up)]
    names = []
    for place, (name, x, y) in enumerate(curves):
        some = spread(len(x), MOST_ON_CURVES)
        a, b = across.at(np.asarray(x)[some]), up.at(np.asarray(y)[some])
        style = f"c{place % COLOURS}"
        told = "".join(
            f'<circle cx="{p:.1f}" cy="{q:.1f}" r="2.5"><title>{escape(name)}: {u:.4g}, {v:.6g}'
            "</title></circle>"
            for p, q, u, v in zip(a, b, np.asarray(x)[some], np.asarray(y)[some], strict=True)
        )
        parts.append(
            f'<g class="curve {style}" data-part="{place}"><path d="{drawing.through(a, b)}"/>'
            f"{told}</g>"
        )
        names.append((name, style))
    return Figure("", "".join(parts), tuple(names) if len(curves) > 1 else ())


def bars(heights: ArrayLike, *, xaxis: dict[str, Any], yaxis: dict[str, Any]) -> Figure:
    """Bars, numbered from 1."""
    values = np.asarray(heights, dtype=float)
    numbers = np.arange(1, values.size + 1)
    across = drawing.Axis(0.4, values.size + 0.6, LEFT, WIDTH - RIGHT, title=xaxis["title"])
    up = axis([values], HEIGHT - BOTTOM, TOP, title=yaxis["title"], zero=True)
    half = 0.4 * (WIDTH - LEFT - RIGHT) / max(values.size, 1)
    ground = float(up.at(0.0))
    drawn = "".join(
        f'<rect x="{x - half:.1f}" y="{min(y, ground):.1f}" width="{2 * half:.1f}" '
        f'height="{abs(ground - y):.1f}"><title>{n}: {value:.6g}</title></rect>'
        for n, x, y, value in zip(numbers, across.at(numbers), up.at(values), values, strict=True)
    )
    return Figure("", f'{drawing.frame(across, up)}<g class="bars c0">{drawn}</g>')


def points(
    places: Array,
    *,
    color: ArrayLike | None = None,
    edges: NDArray[np.integer] | None = None,
    links: dict[str, NDArray[np.integer]] | None = None,
    images: Sheet | None = None,
    title: str = "",
    upward: bool = True,
) -> Figure:
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
    box = f"{LEFT} {TOP} {WIDTH - LEFT - RIGHT} {HEIGHT - TOP - BOTTOM}"
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    inner = (
        f'<svg class="plot" x="{LEFT}" y="{TOP}" width="{width}" height="{height}" '
        f'viewBox="{box}"><rect class="ground" x="{LEFT}" y="{TOP}" width="{width}" '
        f'height="{height}"/><g class="all">{"".join(parts)}</g></svg>'
    )
    listed = tuple(names) if len(names) > 1 else ()
    body = drawing.frame(across, up, upward=upward) + inner
    return Figure(title, body, listed, below, points=True, images=images)


def matrix(counts: Array, names: Sequence[str], title: str) -> Figure:
    """A table of counts as colours, rows the truth; columns have numbers where names are long."""
    values = np.asarray(counts)
    size = len(names)
    left, below = 200, 30
    side = min((WIDTH - left - RIGHT) / size, (HEIGHT - TOP - below) / size)
    most = max(float(values.max()), 1.0)
    parts = ['<g class="cells">']
    for i, j in np.ndindex(values.shape):
        x, y = left + j * side, TOP + i * side
        told = f"is {escape(names[i])}, called {escape(names[j])}: {values[i, j]}"
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" '
            f'fill-opacity="{values[i, j] / most:.3f}"><title>{told}</title></rect>'
        )
        if size <= 12:
            parts.append(
                f'<text x="{x + side / 2:.1f}" y="{y + side / 2 + 5:.1f}" text-anchor="middle" '
                f'class="{"full" if values[i, j] > most / 2 else ""}">{values[i, j]}</text>'
            )
    parts.append('</g><g class="grid">')
    short = max(map(len, names)) * LETTER < side
    for k, name in enumerate(names if size <= 40 else []):
        middle = TOP + (k + 0.5) * side
        parts.append(_wrapped(name if short else f"{k + 1} {name}", name, left - 8, middle, side))
        parts.append(
            f'<text x="{left + (k + 0.5) * side:.1f}" y="{TOP + size * side + 20:.1f}" '
            f'text-anchor="middle">{escape(name) if short else k + 1}'
            f"<title>{escape(name)}</title></text>"
        )
    parts.append(f'<text x="16" y="{TOP - 12}">is ↓ called →</text></g>')
    return Figure(title, "".join(parts))


def _wrapped(text: str, name: str, x: float, middle: float, room: float) -> str:
    """A text in as many lines as have room, all ending at x."""
    count = max(1, int(room / LINE))
    lines = textwrap.wrap(text, int((x - 4) / LETTER), max_lines=count, placeholder="…")
    first = middle + 5 - LINE / 2 * (len(lines) - 1)
    spans = "".join(
        f'<tspan x="{x}" y="{first + LINE * k:.1f}">{escape(line)}</tspan>'
        for k, line in enumerate(lines)
    )
    return f'<text text-anchor="end"><title>{escape(name)}</title>{spans}</text>'


def _axis(values: Sequence[Array], start: float, end: float, told: dict[str, Any]) -> drawing.Axis:
    return axis(values, start, end, log=told.get("type") == "log", title=told["title"])


def _alike(places: Array) -> tuple[drawing.Axis, drawing.Axis]:
    """Axes with equal units, unless one direction is so short that all points were on a line."""
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


def _groups(
    color: ArrayLike | None, shown: NDArray[np.integer]
) -> tuple[list[tuple[str, NDArray[np.integer], str, str]], str]:
    """Name, members, style and colour of each group of points, and the scale below them."""
    if color is None:
        return [("", shown, "c0", "")], ""
    values = np.asarray(color)
    if not categorical(values):
        return _shaded(values.astype(float), shown)
    found = enumerate(np.unique(values))
    groups = [(str(k), shown[values[shown] == k], f"c{place % COLOURS}", "") for place, k in found]
    return groups, ""


def _shaded(
    values: Array, shown: NDArray[np.integer]
) -> tuple[list[tuple[str, NDArray[np.integer], str, str]], str]:
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
