"""How notebooks show things: small tables, in the colours of the notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


def facts(title: str, told: Mapping[str, Any]) -> str:
    """A title above names and values; what is None is left out."""
    rows = [(name, value) for name, value in told.items() if value is not None]
    return _table(title, None, rows)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A title above a table with a head."""
    return _table(title, columns, rows)


def _table(title: str, columns: Sequence[str] | None, rows: Iterable[Sequence[Any]]) -> str:
    left = ' style="text-align: left"'
    head = "" if columns is None else _row("th", columns, left)
    body = "".join(_row("td", row, left) for row in rows)
    return f"<table><caption{left}><b>{escape(title)}</b></caption>{head}{body}</table>"


def _row(tag: str, cells: Iterable[Any], style: str) -> str:
    return "<tr>" + "".join(f"<{tag}{style}>{escape(_words(c))}</{tag}>" for c in cells) + "</tr>"


def _words(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
