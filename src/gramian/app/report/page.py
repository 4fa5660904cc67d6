"""The page: sections of words, tables and figures in one HTML file."""

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

from gramian.app.report.figures import Figure, markup
from gramian.common.storage import replacing

ENDINGS = (".html", ".htm")
LIBRARIES = ("numpy", "scipy", "scikit-learn")

SHORT, LONG = 24, 60
"""Letters up to which a cell of a table stays in one line, and from which on it is wide."""


@dataclass(frozen=True)
class Section:
    """A title and what stands below it, as HTML."""

    title: str
    body: str


def page_path(path: str | Path) -> Path:
    """Where a page goes, refused where the name says that it is something else."""
    named = Path(path)
    if named.suffix.lower() not in ENDINGS and not named.is_dir():  # which the writer refuses
        raise ValueError(f"{named}: a report is a page, so its name must end with .html")
    return named


def write_page(
    path: Path, title: str, sections: Sequence[Section], *, source: str | None = None
) -> Path:
    """Write the page, whole or not at all; returns where. `source` is the file it is about."""
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
    """Of what, when, and by which versions."""
    now = datetime.now(UTC)
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    told = [
        *([] if source is None else [source]),
        f"{now.day} {now:%B %Y, %H:%M} UTC",
        f"gramian {version('gramian')}",
        f"Python {platform.python_version()}, {libraries}",
    ]
    return " · ".join(told)


def facts(told: Mapping[str, Any]) -> str:
    """A table of names and values; what is None is left out."""
    rows = "".join(
        f'<tr><th>{escape(str(name))}</th><td class="number">{escape(words(value))}</td></tr>'
        for name, value in told.items()
        if value is not None
    )
    return f'<div class="scroll"><table>{rows}</table></div>'


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with a head; a long or wide one scrolls in its place."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join("<tr>" + "".join(_cell(words(cell)) for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _cell(text: str) -> str:
    """A cell; one of many words is broken into lines, a short one is not."""
    kind = "long" if len(text) > LONG else "short" if len(text) <= SHORT else ""
    return f'<td class="number {kind}">{escape(text)}</td>'


def figure(drawn: Figure, caption: str = "") -> str:
    """A drawn figure with words below it."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{markup(drawn)}{below}</figure>"


def beside(*parts: str) -> str:
    """Parts next to each other where the page is wide enough."""
    return '<div class="side">' + "".join(f"<div>{part}</div>" for part in parts) + "</div>"


def words(value: Any) -> str:
    """A number in six digits, anything else as it prints."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
