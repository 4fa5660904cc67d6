"""HTML for notebooks: small tables in the colours of the notebook, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any


def pyplot() -> Any:
    """matplotlib.pyplot, or ImportError with instructions."""
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'gramian[plot]'") from error


def shown_once(figure: Any) -> Any:
    """The figure, closed so that a notebook shows it once where it is returned."""
    if "inline" in str(import_module("matplotlib").get_backend()):
        pyplot().close(figure)
    return figure


def facts(title: str, values: Mapping[str, Any]) -> str:
    """A title above names and values; None values are omitted."""
    return table(title, (), [row for row in values.items() if row[1] is not None])


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A title above a table, with a header if columns are named."""
    left = ' style="text-align: left"'
    head = _row("th", columns, left) if columns else ""
    body = "".join(_row("td", row, left) for row in rows)
    return f"<table><caption{left}><b>{escape(title)}</b></caption>{head}{body}</table>"


def _row(tag: str, cells: Iterable[Any], style: str) -> str:
    return "<tr>" + "".join(f"<{tag}{style}>{escape(words(c))}</{tag}>" for c in cells) + "</tr>"


def words(value: Any) -> str:
    """A number in six digits, anything else as it prints."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
