"""The page: sections of text, tables and figures in one HTML file."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.common.html import words
from gramian.common.storage import replacing

ENDINGS = (".html", ".htm")
LIBRARIES = ("numpy", "scipy", "scikit-learn")

SHORT, LONG = 24, 60
"""Letters up to which a cell of a table is not wrapped, and from which on it is wide."""


@dataclass(frozen=True)
class Section:
    """A title and the HTML below it."""

    title: str
    body: str


def page_path(path: str | Path) -> Path:
    """The path of a page; another ending than .html is refused."""
    named = Path(path)
    if named.suffix.lower() not in ENDINGS and not named.is_dir():  # the writer refuses a folder
        raise ValueError(f"{named}: a report is a page, so its name must end with .html")
    return named


def write_page(
    path: Path, title: str, sections: Sequence[Section], *, source: str | None = None
) -> Path:
    """Write a page about the file `source`, completely or not at all; returns its path."""
    folder = files("gramian.app.report")
    style, script = (
        folder.joinpath(name).read_text("utf-8") for name in ("page.css", "figures.js")
    )
    parts = "\n".join(
        f"<section><h2>{escape(s.title)}</h2>\n{s.body}\n</section>" for s in sections
    )
    text = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><p>{escape(_made(source))}</p></header>
<main>
{parts}
</main>
<script>{script}</script>
</body>
</html>
"""
    with replacing(path) as file:
        file.write(text.encode())
    return path


def _made(source: str | None) -> str:
    """The source, the time and the versions."""
    now = datetime.now(UTC)
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    parts = [
        *([] if source is None else [source]),
        f"{now.day} {now:%B %Y, %H:%M} UTC",
        f"gramian {version('gramian')}",
        f"Python {platform.python_version()}, {libraries}",
    ]
    return " · ".join(parts)


def facts(values: Mapping[str, Any]) -> str:
    """A table of names and values; values of None are omitted."""
    rows = "".join(
        f'<tr><th>{escape(str(name))}</th><td class="number">{escape(words(value))}</td></tr>'
        for name, value in values.items()
        if value is not None
    )
    return f'<div class="scroll"><table>{rows}</table></div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with a header, which scrolls if it is large."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join("<tr>" + "".join(_cell(words(cell)) for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def confusion(counts: NDArray[np.integer], names: Sequence[str], title: str) -> str:
    """A table of counts, true classes in rows, with cells coloured by their counts."""
    most = max(int(counts.max()), 1)
    head = "".join(f"<th>{escape(name)}</th>" for name in ("true ↓ predicted →", *names))
    rows = [
        "".join(f'<td style="--share: {60 * n / most:.0f}%">{n}</td>' for n in row)
        for row in counts
    ]
    named = zip(names, rows, strict=True)
    body = "".join(f"<tr><th>{escape(name)}</th>{row}</tr>" for name, row in named)
    return (
        f'<div class="scroll"><table class="counts"><caption>{escape(title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    """A cell, with a class for short text (not wrapped) or long text (wide)."""
    kind = "long" if len(text) > LONG else "short" if len(text) <= SHORT else ""
    return f'<td class="number {kind}">{escape(text)}</td>'


def figure(drawn: str, caption: str = "") -> str:
    """A drawing with a caption."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{drawn}{below}</figure>"


def side_by_side(*parts: str) -> str:
    """Parts next to each other if the page is wide enough."""
    return '<div class="side">' + "".join(f"<div>{part}</div>" for part in parts) + "</div>"
