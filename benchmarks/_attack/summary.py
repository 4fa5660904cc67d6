"""The results of an attack as tables."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks._attack.judge import KINDS
from benchmarks.harness.report import Table, cell_text

Record = dict[str, Any]
COLUMNS = ("instances", "refused", "certified points", *KINDS, "mean s")


def tables(records: Sequence[Record]) -> list[Table]:
    """Counts by family and by order; an instance counts once for each kind of alarm."""
    return [
        _table("By family", "family", records),
        _table("By order", "order_class", records),
        _worst(records),
    ]


def false(records: Iterable[Record]) -> int:
    """The number of instances with an alarm."""
    return sum(bool(record["alarms"]) for record in records)


def text(found: Iterable[Table]) -> str:
    """The tables for a terminal."""
    return "\n\n".join(_plain(table) for table in found)


def _table(caption: str, by: str, records: Sequence[Record]) -> Table:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.get(by, "?"), []).append(record)
    table = Table(caption, [by.replace("_", " "), *COLUMNS])
    for name in sorted(groups):
        table.add(name, *_row(groups[name]))
    table.add("all", *_row(records))
    return table


def _row(records: Sequence[Record]) -> list[Any]:
    alarms = Counter(kind for r in records for kind in {a["kind"] for a in r["alarms"]})
    seconds = [record["seconds"] for record in records if "seconds" in record]
    return [
        len(records),
        sum("refused" in record for record in records),
        sum(record.get("certified", 0) for record in records),
        *(alarms[kind] for kind in KINDS),
        sum(seconds) / max(1, len(seconds)),
    ]


def _worst(records: Sequence[Record], most: int = 40) -> Table:
    """The first alarm of each family, kind and claim."""
    table = Table("Alarms", ["instance", "family", "order", "kind", "claim", "reason"])
    seen: set[tuple[str, str, str]] = set()
    for record in records:
        for alarm in record["alarms"]:
            key = record["family"], alarm["kind"], alarm["by"].split(" {")[0]
            if key not in seen and len(table.rows) < most:
                seen.add(key)
                label = record.get("key", record["index"])
                table.add(label, key[0], record.get("order"), key[1], key[2], alarm["reason"])
    return table


def _plain(table: Table) -> str:
    rows = [list(table.columns), *([cell_text(cell) for cell in row] for row in table.rows)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(table.columns))]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(r, widths, strict=True)) for r in rows]
    return "\n".join([table.caption, *(line.rstrip() for line in lines)])
