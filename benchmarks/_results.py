"""`python -m benchmarks summary`: writes docs/results/ from the saved results of runs.

One page for each benchmark that has been run, with its tables and pictures, and a first page that
says where every table and figure of the papers is, and lists what we lose.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._coverage import ITEMS
from benchmarks.harness import registry

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"

LOST = re.compile(r"^(no|missed|lost|false)$|\b(missed|lost)$", re.IGNORECASE)
"""How a cell says that a bar was not reached or a peer was better."""

CLAIMS = "what the paper's text says"
"""Tables of the papers' own claims, which are not ours to lose."""

MOST_CELLS = 3
"""The first cells of a row, which say what it is about."""

Record = dict[str, Any]


def write_pages(results: Path, out: Path = DOCS) -> Path:
    """Write all pages; returns the first."""
    records = read_records(results)
    if not records:
        raise LookupError(f"there are no results in {results}: run a benchmark first")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in records:
        _write_page(results / name, out, name)
    first = out / "index.md"
    first.write_text(_index(records), encoding="utf-8")
    return first


def read_records(results: Path) -> dict[str, Record]:
    """The saved results by the benchmark's name, in the order of the list."""
    files = {name: results / name / f"{name}.json" for name in registry.names("benchmarks")}
    return {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}


def losses(record: Record) -> Iterator[str]:
    """The rows with a cell that says we lost, a line for each such column of a table."""
    for table in record["tables"]:
        if CLAIMS in table["caption"].lower():
            continue
        found: dict[str, list[str]] = {}
        for row in table["rows"]:
            about = [_words(cell) for cell in list(row.values())[:MOST_CELLS] if _names(cell)]
            for column, cell in row.items():
                if _is_loss(cell):
                    found.setdefault(column, []).append(", ".join(about))
        for column, rows in found.items():
            yield f"{table['caption']}, *{column}*: {'; '.join(dict.fromkeys(rows))}"


def _names(cell: Any) -> bool:
    return isinstance(cell, str | int | float) and not isinstance(cell, bool)


def _words(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _is_loss(cell: Any) -> bool:
    return cell is False or (isinstance(cell, str) and bool(LOST.search(cell.strip())))


def _write_page(folder: Path, out: Path, name: str) -> None:
    text = (folder / f"{name}.md").read_text()
    for picture in folder.glob("*.png"):
        target = f"{name}-{picture.name}"
        if f"]({picture.name})" in text:
            _shrink(picture, out / target)
            text = text.replace(f"]({picture.name})", f"]({target})")
    (out / f"{name}.md").write_text(text, encoding="utf-8")


def _shrink(source: Path, target: Path) -> None:
    """A copy with few colours: curves need no more."""
    from PIL import Image

    with Image.open(source) as image:
        flat = image.convert("RGB").quantize(colors=48)
        flat.save(target, optimize=True)


def _index(records: dict[str, Record]) -> str:
    pages = "\n".join(records)
    return f"""# Results

Every table and figure of the five papers, ours beside theirs. Each page has the command that made
it, the machine and the versions; the figures in it are those of the run. Seconds are of one core of
a small machine that did other things too: compare them within a table.

{_coverage(records)}

## What we lose

Rows of the tables in which a bar was not reached, or somebody else was better; a few are of rivals.

{_lost(records)}

## All pages

{_list(records)}

```{{toctree}}
:hidden:

{pages}
```
"""


def _coverage(records: dict[str, Record]) -> str:
    lines = ["| paper | where | what | here |", "| --- | --- | --- | --- |"]
    for item in ITEMS:
        lines.append(
            f"| {_short(item.paper)} | {item.place} | {item.shows} | {_here(item, records)} |"
        )
    return "\n".join(lines)


def _short(paper: str) -> str:
    """A paper by the name of its method."""
    return paper.split(" (")[0]


def _here(item: Any, records: dict[str, Record]) -> str:
    if item.benchmark is None:
        return item.remark
    page = f"[{item.benchmark}]({item.benchmark}.md)"
    if item.benchmark not in records:
        page = f"{item.benchmark} (not run for this page)"
    return f"{page}; {item.remark}" if item.remark else page


def _lost(records: dict[str, Record]) -> str:
    parts = []
    for name, record in records.items():
        found = list(dict.fromkeys(losses(record)))
        if found:
            rows = "\n".join(f"- {line}" for line in found)
            parts.append(f"**[{record['title']}]({name}.md)**\n\n{rows}")
    return "\n\n".join(parts) or "Nothing in these runs."


def _list(records: dict[str, Record]) -> str:
    return "\n".join(
        f"- [{record['title']}]({name}.md) ({record['timestamp'][:10]})"
        for name, record in records.items()
    )
