"""`python -m benchmarks summary`: writes docs/results/ from the saved results of runs.

One page for each benchmark that has been run, with its tables and pictures, and a first page with
the place of every table and figure of the papers, and the figures in which others are better.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks._coverage import ITEMS, Item
from benchmarks._headlines import BESIDES, HEADLINES, Headline, own
from benchmarks.harness import registry
from benchmarks.harness.report import cell_text

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"

MISSED, LOST, FAILED = "", " lost to", " failed"
LOSSES = {
    MISSED: re.compile(r"^(no|false)$|\bmissed$", re.IGNORECASE),
    LOST: re.compile(r"\blost$", re.IGNORECASE),
    FAILED: re.compile(r"^(failed|timed out)\b|[A-Z][A-Za-z]*Error\b"),
}
"""Cells that report a missed criterion, a lost comparison, or a failed run."""

NO_VERDICTS = frozenset({"factor in cache", "≤ 1.5 (not run)"})
"""Columns of yes and no that are not verdicts."""

NAMING = frozenset(
    {"set", "n", "m", "method", "solver", "model", "ours", "theirs", "scaling", "what", "λ", "ν"}
)
"""Columns that, with the first one, identify a row."""

WHO = ("method", "solver", "model")
RIVALS = (
    "admm", "agd", "bilgo", "bis", "clarabel", "direct", "euclid", "frank-wolfe", "gd", "journ",
    "l-bfgs", "lbfgs", "lro", "metric-learn", "nesterov", "projected-gradient", "pydml", "random",
    "scikit-learn", "scs", "sqlp", "staircase",
)  # fmt: skip
"""Beginnings of the names of methods that are not our defaults, in lower case."""

SIGNS = ("<", "≤", ">", "≥")
"""Beginnings of the columns of verdicts about the column before."""

CLAIMS = "what the paper's text says"
CLAIM = "the paper:"
"""Tables and rows of statements of the papers, which do not count as losses."""

Record = dict[str, Any]


def write_pages(results: Path, out: Path = DOCS) -> Path:
    """Write the pages of the saved results; returns the first.

    Other pages are kept, and then so is the first, which summarises all of them.
    """
    records = read_records(results)
    if not records:
        raise LookupError(f"there are no results in {results}: run a benchmark first")
    out.mkdir(parents=True, exist_ok=True)
    for name in records:
        for picture in out.glob(f"{name}-*.png"):
            picture.unlink()
        _write_page(results / name, out, name)
    first = out / "index.md"
    if {page.stem for page in out.glob("*.md")} <= {first.stem, *records}:
        first.write_text(_index(records), encoding="utf-8")
    return first


def read_records(results: Path) -> dict[str, Record]:
    """The saved results by the benchmark's name, in the order of the list."""
    files = {name: results / name / f"{name}.json" for name in registry.names("benchmarks")}
    return {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}


def losses(record: Record) -> Iterator[str]:
    """The losses of our defaults, a line for each column of a table."""
    for table in record["tables"]:
        if CLAIMS in table["caption"].lower():
            continue
        found: dict[str, list[str]] = {}
        for row in table["rows"]:
            for column in _verdicts(row):
                how = _how_lost(own(row[column]))
                if how == LOST or (how is not None and not _is_rivals(row, column)):
                    bar = f"*{_bar(table['columns'], column)}*{how}"
                    found.setdefault(bar, []).append(_name(table["columns"], row, column))
        for bar, rows in found.items():
            yield f"{table['caption']}, {bar}: {'; '.join(dict.fromkeys(rows))}"


def _verdicts(row: Record) -> list[str]:
    """The columns that may contain one; none for a statement of a paper."""
    if any(isinstance(cell, str) and cell.startswith(CLAIM) for cell in row.values()):
        return []
    return [column for column in row if column not in NO_VERDICTS]


def _how_lost(cell: Any) -> str | None:
    if cell is False:
        return MISSED
    text = cell.strip() if isinstance(cell, str) else ""
    return next((how for how, says in LOSSES.items() if says.search(text)), None)


def _is_rivals(row: Record, column: str) -> bool:
    """Whether a row or a column is about another method than ours."""
    names = [column, *(str(row[who]) for who in WHO if who in row)]
    return any(name.lower().startswith(RIVALS) for name in names)


def _bar(columns: list[str], column: str) -> str:
    """The name of a verdict's column, after that of the column it judges."""
    judged = _judged(columns, column)
    return f"{judged} {column}" if judged and column.startswith(SIGNS) else column


def _judged(columns: list[str], column: str) -> str | None:
    """The column with the figure that a verdict judges, None if unknown."""
    if column.startswith(SIGNS):
        return columns[columns.index(column) - 1]
    return next((name for name in ("figure", "measured") if name in columns), None)


def _name(columns: list[str], row: Record, column: str) -> str:
    """The identification of a row, and the judged figure."""
    naming = [name for name in columns if name in NAMING or name == columns[0]]
    about = ", ".join(_named(name, own(row[name])) for name in naming)
    judged = _judged(columns, column)
    return f"{about} ({cell_text(own(row[judged]))})" if judged else about


def _named(column: str, cell: Any) -> str:
    """Words alone, numbers and the values of symbols with their column."""
    bare = isinstance(cell, str) and len(column) > 1
    return cell_text(cell) if bare else f"{column} = {cell_text(cell)}"


def _write_page(folder: Path, out: Path, name: str) -> None:
    text = (folder / f"{name}.md").read_text()
    for picture in folder.glob("*.png"):
        target = f"{name}-{picture.name}"
        if f"]({picture.name})" in text:
            _shrink(picture, out / target)
            text = text.replace(f"]({picture.name})", f"]({target})")
    (out / f"{name}.md").write_text(text, encoding="utf-8")


def _shrink(source: Path, target: Path) -> None:
    """Copy a picture with few colours."""
    from PIL import Image

    with Image.open(source) as image:
        flat = image.convert("RGB").quantize(colors=48)
        flat.save(target, optimize=True)


def _index(records: dict[str, Record]) -> str:
    pages = "\n".join(records)
    return f"""# Results

Every table and figure of the five papers, with our figures and those of the paper. Each page states
the command, the machine and the versions of its run. Times are those of one core of a small machine
that also ran other programs: compare them only within a table.

{_coverage(records)}

## Other questions

{_besides(records)}

## Where gramian is worse

Figures of the two tables above in which a paper or another program is better. The times of the
papers are those of their machines.

{_beaten(records)}

Rows of the pages in which a default of gramian missed a target, was worse than another method or
failed. The figure is in brackets, with a dash if the run ended before it was computed.

{_lost(records)}

## All pages

{_list(records)}

```{{toctree}}
:hidden:

{pages}
```
"""


def _coverage(records: dict[str, Record]) -> str:
    """A row for every item, and one more for every further headline of it."""
    lines = [("where", "what", "one figure of it", "theirs", "peers", "gramian")]
    for item in ITEMS:
        found = [_compared(line, record) for line, record in _headlines(item, records)]
        first, *more = found or [("",) * 4]
        lines.append((_where(item, records), _what(item), *first))
        lines += [("", "", *figures) for figures in more]
    return _table(lines)


def _besides(records: dict[str, Record]) -> str:
    """The headlines of benchmarks without an item of a paper."""
    lines = [("figure", "theirs", "peers", "gramian", "here")]
    for name, headlines in BESIDES.items():
        page = _page(name, records)
        lines += [(*_compared(line, records.get(name)), page) for line in headlines]
    return _table(lines)


def _beaten(records: dict[str, Record]) -> str:
    """The headlines in which another figure is better than ours."""
    headlines = [
        (f"{_short(item.paper)}, {item.place}", line, record)
        for item in ITEMS
        for line, record in _headlines(item, records)
    ]
    headlines += [
        (_page(name, records), line, records.get(name))
        for name, lines in BESIDES.items()
        for line in lines
    ]
    rows = [("where", "figure", "gramian", "better")]
    for where, line, record in headlines:
        better = [f"{cell_text(figure)} ({who})" for who, figure in line.lost_to(record).items()]
        if better:
            ours = cell_text(line.figures(record).ours)
            rows.append((where, line.what, ours, "; ".join(better)))
    return _table(rows) if len(rows) > 1 else "None in these runs."


def _headlines(item: Item, records: dict[str, Record]) -> Iterator[tuple[Headline, Record | None]]:
    """The headlines of an item with the results they refer to."""
    for line in HEADLINES.get((item.paper, item.place), ()):
        yield line, records.get(line.benchmark or item.benchmark or "")


def _compared(line: Headline, record: Record | None) -> tuple[str, str, str, str]:
    """The comparison, the paper's figure, the best peer's and ours."""
    found = line.figures(record)
    peers = f"{cell_text(found.peers)} ({found.peer})" if found.peer else cell_text(None)
    return line.what, cell_text(found.paper), peers, cell_text(found.ours)


def _table(lines: Sequence[Sequence[str]]) -> str:
    """Markdown of the lines; the first has the names of the columns."""
    head, *rows = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def _short(paper: str) -> str:
    """The name of a paper's method."""
    return paper.split(" (")[0]


def _where(item: Item, records: dict[str, Record]) -> str:
    """The paper and the place in it, with a link to our page."""
    place = f"{_short(item.paper)}, {item.place}"
    if item.benchmark is None or item.benchmark in records:
        return f"[{place}]({item.benchmark}.md)" if item.benchmark else place
    return f"{place} ({item.benchmark} was not run for this page)"


def _what(item: Item) -> str:
    return f"{item.shows} *({item.remark})*" if item.remark else item.shows


def _page(name: str, records: dict[str, Record]) -> str:
    return f"[{name}]({name}.md)" if name in records else f"{name} (not run for this page)"


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
