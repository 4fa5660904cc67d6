"""Axes, ticks and paths of SVG drawings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from gramian.common.types import Array

WIDTH, HEIGHT = 640, 420
LEFT, RIGHT, TOP, BOTTOM = 96, 14, 30, 56
"""Margins of a drawing in pixels."""

TICKS, DECADES = 5, 6
"""Approximate number of ticks, and largest number of powers of ten on a logarithmic axis."""


@dataclass(frozen=True)
class Axis:
    """A map of values to coordinates of a drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    title: str = ""

    def at(self, values: Any) -> Array:
        """The coordinates of values."""
        given = np.asarray(values, dtype=float)
        low, high = self.low, self.high
        if self.log:
            given, low, high = np.log10(given), math.log10(low), math.log10(high)
        return self.start + (given - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Coordinates and labels of round values."""
        values = _decades(self.low, self.high) if self.log else round_values(self.low, self.high)
        return [(float(self.at(value)), written(value)) for value in values]


def axis(
    values: Sequence[Any],
    start: float,
    end: float,
    *,
    log: bool = False,
    title: str = "",
    zero: bool = False,
) -> Axis:
    """The axis of all values with a margin; if `zero`, it contains 0."""
    joined = np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in values])
    known = joined[np.isfinite(joined) & ((joined > 0) | (not log))]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if log:
        low, high = (low or 1e-300), max(high, low * 1.0001)
        room = (high / low) ** 0.04
        low, high = (low / room, high * room) if high / low > 1.01 else (low / 2, high * 2)
    else:
        low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
        room = 0.04 * (high - low) or max(abs(high), 1.0) * 0.5
        low, high = (low if zero and low == 0 else low - room), high + room
    return Axis(low, high, start, end, log, title)


def round_values(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= 0.8 * rough)
    first = math.ceil(low / step)
    return [round(k * step, 12) for k in range(first, math.floor(high / step) + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    if last <= first:  # less than two powers of ten
        return [value for value in round_values(low, high) if value > 0]
    step = max(1, math.ceil((last - first) / DECADES))
    return [10.0**k for k in range(first, last + 1, step)]


def written(value: float) -> str:
    """The label of a number on an axis."""
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e5:
        digits, power = f"{value:.1e}".split("e")
        lead = digits.removesuffix(".0")
        raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{raised}" if lead == "1" else f"{lead}·10{raised}"
    return f"{value:.4g}".replace("-", "−")


def frame(across: Axis, up: Axis, *, upward: bool = True) -> str:
    """Grid lines with their values (vertical ones only if `upward`), and titles of the axes."""
    parts = ['<g class="grid">']
    for x, text in across.ticks():
        parts.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{text}</text>'
        )
    for y, text in up.ticks() if upward else []:
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(across.title)}</text>"
    )
    height = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text transform="translate(18 {height:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(up.title)}</text></g>"
    )
    return "".join(parts)


def dots(x: Array, y: Array) -> str:
    """Points as one path of lines of length 0, which are drawn with round ends."""
    return "".join(f"M{a:.2f} {b:.2f}h0" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def segments(ends: Array) -> str:
    """Lines from (x, y) to (x', y'), one for each row, as one path."""
    return "".join(f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" for a, b, c, d in ends.tolist())


def through(x: Array, y: Array) -> str:
    """A line through points."""
    places = [f"{a:.1f} {b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return "M" + "L".join(places) if places else ""
