"""`python -m benchmarks._choosing`: writes docs/choosing-a-solver.md from saved results.

Every figure on the page is read from the JSON of a run of `auto_table`, and of the benchmarks in
`LARGER` where they have been run; the sentences about the solvers are those of the registry. The
underscore keeps this file out of the list of benchmarks.
"""

import argparse
import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import gramian as gm
from benchmarks.harness.cli import RESULTS
from benchmarks.harness.report import how

PAGE = Path(__file__).resolve().parents[1] / "docs" / "choosing-a-solver.md"
COMMAND = "python -m benchmarks._choosing"

SUMMARY, TIMES = "Seconds to a certified relative gap", "Seconds of every solver"
"""How the captions of the tables in `auto_table` begin."""

LARGER: dict[str, tuple[str, ...]] = {"regmvu_auto": ("Verdicts",), "npkl_a9a": ("", "Verdicts")}
"""Other benchmarks, and the captions of the tables to show; "" is the table of seconds."""

ADVICE = """\
`auto` is the default, and the place to start: it looks at the structure of the problem, runs the
solver that fits it, and says how far from the optimum its answer can be. Look further for one of
three reasons. To compare with a paper, take the paper's method by its name: it has the same limits,
history and certificate as the rest. Under a limit on the rank (`rank=`), the problem is no longer
convex: `auto` hands it to a method on factors of that size, another start or another such method
may find a better point, and the certificate says what the limit can cost. Where memory is short,
`lro`, `bis`, `gd` and `agd` keep few copies of a factor of the rank given, `lbfgs` keeps many, and
`projected-gradient`, `eigenbasis` and the conic solvers keep whole matrices of the problem's
order."""

Record = dict[str, Any]
Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Read the results, write the page."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--results", metavar="DIR", type=Path, default=RESULTS)
    parser.add_argument("--out", metavar="FILE", type=Path, default=PAGE)
    args = parser.parse_args(argv)
    records = read_records(args.results)
    if "auto_table" not in records:
        parser.error("no results of auto_table: run `python -m benchmarks run auto_table` first")
    args.out.write_text(page(records), encoding="utf-8")
    print(args.out.name)
    return 0


def read_records(results: Path) -> dict[str, Record]:
    """The saved results that the page is made from, by the benchmark's name."""
    files = {name: results / name / f"{name}.json" for name in ("auto_table", *LARGER)}
    return {
        name: json.loads(file.read_text(encoding="utf-8"))
        for name, file in files.items()
        if file.exists()
    }


def page(records: dict[str, Record]) -> str:
    """The page in Markdown, a function of the records and the registry alone."""
    main_record = records["auto_table"]
    summary = table_of(main_record, SUMMARY)["rows"]
    times = {row["problem"]: row for row in table_of(main_record, TIMES)["rows"]}
    made = f"Made by `{COMMAND}` from saved results; do not edit it by hand."
    parts = [
        "# Choosing a solver",
        f"*{made} {provenance(main_record)}*",
        ADVICE,
        "## By kind of problem",
        by_kind_words(summary, main_record),
        by_kind(summary, times),
        "## What each solver needs",
        needs(times),
        "## Every problem",
        every_problem(summary),
        *larger(records),
    ]
    return "\n\n".join(parts) + "\n"


def table_of(record: Record, beginning: str) -> Record:
    """The table of a record whose caption begins so."""
    return next(t for t in record["tables"] if t["caption"].startswith(beginning))


def provenance(record: Record) -> str:
    """When, how and on what a record was measured, and how busy it was where that is noted."""
    host = record["machine"]
    load = [note for note in record["notes"] if note.startswith("Load average")]
    return " ".join(
        [
            f"Measured {record['timestamp'][:10]} by `{record['command']}`{how(record)} on "
            f"{host['cpu']}, {host['cores']} cores, Python {host['python']}.",
            *load,
        ]
    )


# --- by kind -------------------------------------------------------------------------


def by_kind_words(summary: list[Row], record: Record) -> str:
    """What the columns mean, with the gap and the count of this run."""
    level = table_of(record, SUMMARY)["caption"].rpartition(" ")[2]
    ratios = [row["auto ÷ it"] for row in summary if row["auto ÷ it"] is not None]
    middle = f"the median over the problems is {statistics.median(ratios):.2f}" if ratios else ""
    certified = sum(is_seconds(row["auto s"]) for row in summary)
    return (
        f"Seconds are those until a relative gap of {level} is certified, and `auto` certified it "
        f"on {certified} of {len(summary)} problems. “auto ÷ fastest” compares it with the fastest "
        f"other solver, which may be one that `auto` itself runs: 1 is a tie, less is a win; "
        f"{middle}. The last columns name those that certified none, or not all, of the problems "
        "of the kind that they were tried on, in the time that the run gave them: "
        f"`{record['command']}` says in its report how much that is."
    )


def by_kind(summary: list[Row], times: dict[str, Row]) -> str:
    """A row for each kind, in the order of the run."""
    kinds = dict.fromkeys(row["kind"] for row in summary)
    rows = []
    for kind in kinds:
        members = [row for row in summary if row["kind"] == kind]
        seconds = [times[row["problem"]] for row in members]
        none, some = failures(seconds)
        rows.append(
            [
                kind,
                span([row["order"] for row in members]),
                listed({part for row in members for part in row["auto ran"].split(" + ")}),
                span([row["auto s"] for row in members]),
                counted(row["fastest other"] for row in members),
                span([row["auto ÷ it"] for row in members]),
                listed(none),
                listed(some),
            ]
        )
    columns = ["kind", "order", "auto runs", "auto's seconds", "fastest other", "auto ÷ fastest",
               "certify none", "certify some"]  # fmt: skip
    return markdown(columns, rows)


def failures(rows: list[Row]) -> tuple[list[str], list[str]]:
    """The solvers tried that certified none of these problems, and those that missed some."""
    none, some = [], []
    for solver in gm.solvers.available():
        tried = [row[solver] for row in rows if row.get(solver) is not None]
        reached = sum(is_seconds(cell) for cell in tried)
        if tried and reached == 0:
            none.append(solver)
        elif reached < len(tried):
            some.append(f"{solver} ({reached} of {len(tried)})")
    return none, some


def is_seconds(cell: Any) -> bool:
    """Whether a cell is a time; a word says what happened instead."""
    return isinstance(cell, int | float)


def span(cells: Iterable[Any]) -> str:
    """The least and the greatest number; words stand for themselves."""
    cells = list(cells)
    numbers = sorted(cell for cell in cells if is_seconds(cell))
    ends = dict.fromkeys(figure(number) for number in (*numbers[:1], *numbers[-1:]))
    words = dict.fromkeys(cell for cell in cells if isinstance(cell, str))
    return ", ".join([" to ".join(ends)] * bool(ends) + list(words)) or "–"


def counted(names: Iterable[str | None]) -> str:
    """Names with how often each, the most frequent first."""
    counts = Counter(name or "none" for name in names)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) == 1:
        return ordered[0][0]
    return ", ".join(f"{name} ({count})" for name, count in ordered)


def listed(names: Iterable[str]) -> str:
    names = list(names)
    order = list(gm.solvers.available())
    places = {name: k for k, name in enumerate(order)}
    return ", ".join(sorted(names, key=lambda name: places.get(name.split(" ")[0], 0))) or "–"


# --- the other tables ----------------------------------------------------------------


def needs(times: dict[str, Row]) -> str:
    """What each solver does and accepts, as it says itself, and how often it certified."""
    rows = []
    for name, does, accepts in gm.solvers.available().rows:
        tried = [row[name] for row in times.values() if row.get(name) is not None]
        reached = sum(is_seconds(cell) for cell in tried)
        rows.append([f"`{name}`", does, accepts, f"{reached} of {len(tried)}" if tried else "–"])
    return markdown(["solver", "what it does", "what it accepts", "certified here"], rows)


def every_problem(summary: list[Row]) -> str:
    """The table of the run, without the columns that only its authors need."""
    rows = [
        [
            row["problem"],
            row["order"],
            row["rank"],
            row["auto s"],
            row["fastest other"],
            row["its s"],
            row["auto ÷ it"],
            f"{row['others that got there']} of {row['others tried']}",
        ]
        for row in summary
    ]
    columns = ["problem", "order", "rank found", "auto s", "fastest other", "its s",
               "auto ÷ fastest", "others that certified"]  # fmt: skip
    return markdown(columns, rows)


def larger(records: dict[str, Record]) -> list[str]:
    """The tables of the benchmarks at larger sizes that have been run."""
    parts = ["## Larger problems"] * any(name in records for name in LARGER)
    for name, captions in LARGER.items():
        if name in records:
            record = records[name]
            parts.append(f"**{record['title']}.** {provenance(record)}")
            tables = [timings(record) if not c else table_of(record, c) for c in captions]
            parts += [record_table(table) for table in tables]
    return parts


def timings(record: Record) -> Record:
    """The first table with a column of seconds by method."""
    return next(t for t in record["tables"] if {"method", "seconds"} <= set(t["columns"]))


def record_table(table: Record) -> str:
    """A saved table under its caption, with our figures but not those of a paper."""
    rows = [[ours(row[column]) for column in table["columns"]] for row in table["rows"]]
    return f"{table['caption']}:\n\n{markdown(table['columns'], rows)}"


def ours(cell: Any) -> Any:
    return cell["ours"] if isinstance(cell, dict) else cell


# --- Markdown ------------------------------------------------------------------------


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(figure(cell) for cell in line) + " |" for line in lines)


def figure(cell: Any) -> str:
    """Two significant digits for what varies from run to run; a dash for nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and math.isfinite(cell):
        return f"{cell:.2g}" if abs(cell) < 100 else f"{cell:.0f}"
    return str(cell).replace("|", "\\|")


if __name__ == "__main__":
    raise SystemExit(main())
