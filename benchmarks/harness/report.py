"""Reports: NAME.json for programs, NAME.md for people, and PNG pictures.

A cell ``Versus(ours, paper)`` is one JSON entry and two neighbouring Markdown columns.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import machine, versions


@dataclass(frozen=True)
class Versus:
    """Our figure and the paper's (None where the paper gives none)."""

    ours: Any
    paper: Any = None


@dataclass
class Table:
    """Rows under named columns; a cell is a plain value, None, or ``Versus``."""

    caption: str
    columns: Sequence[str]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        """Append a row."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(cells)

    def judge(self, *cells: Any, value: Any, limit: float, least: bool = False) -> None:
        """Append cells, the value, the criterion ``≤ limit`` (``≥`` if `least`), and the verdict.

        NaN meets no criterion and has no verdict.
        """
        holds = None if math.isnan(value) else bool(value >= limit if least else value <= limit)
        self.add(*cells, value, f"{'≥' if least else '≤'} {limit:g}", holds)

    @classmethod
    def of(cls, caption: str, rows: Iterable[Any], columns: Mapping[str, Any]) -> "Table":
        """A table with one row per record.

        A column is a key of the records (None if a record lacks it), or a function of a record.
        """
        table = cls(caption, list(columns))
        for row in rows:
            table.add(*(c(row) if callable(c) else row.get(c) for c in columns.values()))
        return table


@dataclass(frozen=True)
class Plot:
    """A picture in the report's folder."""

    file: str
    caption: str


@dataclass
class Report:
    """The results of one benchmark. Built by ``Context.report``."""

    name: str
    title: str
    paper: str
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()
    notes: Sequence[str] = ()
    how: Sequence[str] = ()
    """Further conditions of the measurement."""


def write_report(report: Report, folder: Path, command: str) -> Path:
    """Write both forms into ``folder``; return the Markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    record = _record(report, command)
    (folder / f"{report.name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False))
    path = folder / f"{report.name}.md"
    path.write_text(_markdown(report, record))
    return path


def _record(report: Report, command: str) -> dict[str, Any]:
    return {
        "name": report.name,
        "title": report.title,
        "paper": report.paper,
        "command": command,
        "how": list(report.how),
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "tables": [_table_record(table) for table in report.tables],
        "plots": [{"file": plot.file, "caption": plot.caption} for plot in report.plots],
        "notes": list(report.notes),
    }


def _table_record(table: Table) -> dict[str, Any]:
    rows = [
        {column: _plain(cell) for column, cell in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]
    return {"caption": table.caption, "columns": list(table.columns), "rows": rows}


def _plain(cell: Any) -> Any:
    """A JSON value: numpy scalars unwrapped, infinities and NaN as strings."""
    if isinstance(cell, Versus):
        return {"ours": _plain(cell.ours), "paper": _plain(cell.paper)}
    if hasattr(cell, "item"):
        cell = cell.item()
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    return cell


def _markdown(report: Report, record: dict[str, Any]) -> str:
    parts = [f"# {report.title}", report.paper]
    parts += [_markdown_table(table) for table in report.tables]
    parts += [f"![{plot.caption}]({plot.file})\n\n*{plot.caption}*" for plot in report.plots]
    if report.notes:
        parts.append("\n".join(f"- {note}" for note in report.notes))
    parts.append(_provenance(record))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    compared = [
        any(isinstance(row[j], Versus) for row in table.rows) for j in range(len(table.columns))
    ]
    header: list[str] = []
    for column, versus in zip(table.columns, compared, strict=True):
        header += [column, f"{column} (paper)"] if versus else [column]
    lines = [header, ["---"] * len(header)]
    lines += [_markdown_row(row, compared) for row in table.rows]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"**{table.caption}**\n\n{body}"


def _markdown_row(row: tuple[Any, ...], compared: list[bool]) -> list[str]:
    cells: list[str] = []
    for cell, versus in zip(row, compared, strict=True):
        pair = cell if isinstance(cell, Versus) else Versus(cell)
        cells += [cell_text(pair.ours), cell_text(pair.paper)] if versus else [cell_text(pair.ours)]
    return cells


def cell_text(value: Any) -> str:
    """A cell as text: four significant digits, a dash for None."""
    value = _plain(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _provenance(record: dict[str, Any]) -> str:
    host = record["machine"]
    memory = f", {host['memory_gb']} GB" if host["memory_gb"] else ""
    blas = f", {'; '.join(host['blas'])}" if host["blas"] else ""
    software = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"Measured {record['timestamp']} by `{record['command']}`{how(record)} on {host['cpu']}, "
        f"{host['cores']} cores{memory}, {host['platform']}, Python {host['python']}, "
        f"{software}{blas}."
    )


def how(record: dict[str, Any]) -> str:
    """How the processes of a record ran, in brackets; empty in records of earlier harnesses."""
    return f" ({'; '.join(record['how'])})" if record.get("how") else ""
