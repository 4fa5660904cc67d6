"""The page: sections of words, tables and figures in one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gramian.report.figures import library, markup
from gramian.storage import replacing

STYLE = """
:root { --ink: #1d2733; --soft: #5b6b7b; --line: #e3e8ee; --paper: #fff; --back: #f5f7fa;
        --accent: #1f6feb; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
       font: 16px/1.55 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
header { background: var(--paper); border-bottom: 1px solid var(--line); padding: 1.2rem 2rem; }
header h1 { font-size: 1.35rem; margin: 0; }
header p { color: var(--soft); margin: .2rem 0 0; font-size: .85rem; }
main { max-width: 1080px; margin: 1.5rem auto; padding: 0 1rem; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
          padding: 1.1rem 1.4rem; margin-bottom: 1.2rem; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
.formula { font: 1.15rem/1.6 Cambria, Georgia, "Times New Roman", serif; margin: .2rem 0 .8rem; }
.verdict { border-left: 4px solid var(--accent); padding: .4rem .9rem; background: var(--back);
           margin: .6rem 0; }
.verdict.open { border-color: #c77700; }
table { border-collapse: collapse; font-size: .92rem; }
.scroll { max-height: 28rem; overflow: auto; }
.scroll thead th { position: sticky; top: 0; background: var(--paper); }
td, th { padding: .25rem .9rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
         vertical-align: top; }
th { color: var(--soft); font-weight: 500; }
td.number { font-variant-numeric: tabular-nums; }
.side { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; }
@media (max-width: 800px) { .side { grid-template-columns: minmax(0, 1fr); } }
figure { margin: 0; }
figcaption { color: var(--soft); font-size: .88rem; }
"""


@dataclass(frozen=True)
class Section:
    """A title and what stands below it, as HTML."""

    title: str
    body: str


def write_page(path: Path, title: str, sections: Sequence[Section]) -> Path:
    """Write the page, whole or not at all; returns where."""
    parts = "\n".join(
        f"<section><h2>{escape(s.title)}</h2>\n{s.body}\n</section>" for s in sections
    )
    text = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
<script>{library()}</script>
</head>
<body>
<header><h1>{escape(title)}</h1><p>gramian {escape(version("gramian"))}</p></header>
<main>
{parts}
</main>
</body>
</html>
"""
    with replacing(path) as file:
        file.write(text.encode())
    return path


def facts(told: Mapping[str, Any]) -> str:
    """A table of names and values; what is None is left out."""
    rows = "".join(
        f'<tr><th>{escape(str(name))}</th><td class="number">{escape(words(value))}</td></tr>'
        for name, value in told.items()
        if value is not None
    )
    return f"<table>{rows}</table>"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table with a head; a long one scrolls in its place."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td class="number">{escape(words(cell))}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def figure(drawn: Any, caption: str = "") -> str:
    """A drawn figure with words below it."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{markup(drawn)}{below}</figure>"


def beside(*parts: str) -> str:
    """Parts next to each other where the page is wide enough."""
    return '<div class="side">' + "".join(f"<div>{part}</div>" for part in parts) + "</div>"


def words(value: Any) -> str:
    """A number in six digits, anything else as it prints."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
