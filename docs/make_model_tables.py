"""`python docs/make_model_tables.py`: writes docs/choosing-a-model.md from saved benchmark results.

Every figure on the page is read from the JSON of a run; a benchmark that has not been run is left
out. Beside it, `python -m benchmarks._choosing` writes choosing-a-solver.md.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "benchmarks" / "results"
COMMAND = "python docs/make_model_tables.py"

Record = dict[str, Any]


def metrics(record: Record) -> str:
    """Errors and seconds of the learners with their defaults."""
    errors, seconds = (table["rows"] for table in record["tables"][:2])
    names = ["KTA", "LMNN", "DMLEig"]
    time_of = {row["set"]: row for row in seconds}
    rows = []
    for row in errors:
        taken = time_of[row["set"]]
        cells = [_error(_ours(row[name])) for name in ["Euclid", *names]]
        rows.append([row["set"], *cells, *(_seconds(_ours(taken[name])) for name in names)])
    head = ["set", "Euclidean", *names, *(f"{name}, s" for name in names)]
    words = (
        "The error of 3 nearest neighbours, in %, on samples held out (mean and deviation over the "
        "splits where there are several), and the seconds of a fit. All parameters are the "
        "defaults but for a time limit; * says that it was reached, – that the run has no figure."
    )
    return f"{words}\n\n{_table(head, rows)}"


def clusters(record: Record) -> str:
    """Accuracy by the number of links, and of other sets."""
    tables = {table["caption"]: table for table in record["tables"]}
    main = next(table for caption, table in tables.items() if "accuracy % by" in caption)
    data = next(caption for caption in tables if "accuracy % by" in caption).split(":")[0]
    rows = [[row[name] for name in main["columns"]] for row in main["rows"]]
    parts = [f"Accuracy in % on {data}, by the number of links that are known:"]
    parts.append(_table(main["columns"], rows, number=lambda x: f"{x:.1f}"))
    other = tables.get("Other sets: accuracy %")
    if other:
        rows = [[row[name] for name in other["columns"]] for row in other["rows"]]
        parts.append("And on other sets of $n$ samples:")
        parts.append(_table(other["columns"], rows, number=lambda x: f"{x:.1f}"))
    return "\n\n".join(parts)


def unfoldings(record: Record) -> str:
    """How well the coordinates of known sheets are found again."""
    first, *rest = record["tables"]
    wanted = [name for name in first["columns"] if name.startswith("lesser R")]
    seconds = {}
    for table in rest:
        title = table["caption"].split(":")[0]
        seconds[title] = {row["method"]: row["seconds"] for row in table["rows"]}
    sets = [name.removeprefix("lesser R, ") for name in wanted]
    rows = []
    for row in first["rows"]:
        if all(row[name] is None for name in wanted):
            continue
        taken = [seconds.get(title, {}).get(row["method"]) for title in sets]
        rows.append([row["method"], *(row[name] for name in wanted), *taken])
    head = ["method", *sets, *(f"{title}, s" for title in sets)]
    words = (
        "Sheets with known coordinates: how well the two directions of the embedding explain the "
        "coordinate that they explain less (the multiple correlation R, 1 is perfect), and the "
        "seconds of a fit."
    )
    return f"{words}\n\n{_table(head, rows, number=_significant)}"


PARTS: dict[str, tuple[str, Callable[[Record], str]]] = {
    "metric_tables": ("Metrics", metrics),
    "constrained_clustering": ("Clusters from links", clusters),
    "unfoldings": ("Embeddings", unfoldings),
}


def page(results: Path) -> str:
    """The page in Markdown, a function of the records alone."""
    parts = [
        "# Models on data",
        f"*Made by `{COMMAND}` from saved results of the benchmarks; do not edit it by hand.*",
        "These tables say how the models did on data, what they lose on included. "
        "[Which model](choosing.md) says what each is for.",
    ]
    for name, (title, words) in PARTS.items():
        file = results / name / f"{name}.json"
        if not file.exists():
            continue
        record = json.loads(file.read_text(encoding="utf-8"))
        machine = record["machine"]
        made = (
            f"*Measured {record['timestamp'][:10]} by `{record['command']}` on {machine['cpu']}, "
            f"{machine['cores']} cores, Python {machine['python']}.*"
        )
        parts += [f"## {title}", words(record), made]
    return "\n\n".join(parts) + "\n"


def _ours(cell: Any) -> Any:
    return cell["ours"] if isinstance(cell, dict) else cell


def _error(cell: Any) -> str:
    return "–" if cell is None or "failed" in str(cell) else str(cell)


def _seconds(cell: Any) -> str:
    text = str(cell)
    return "–" if cell is None or "failed" in text else text


def _significant(value: float) -> str:
    return f"{value:.3g}"


def _table(
    head: Sequence[str], rows: Sequence[Sequence[Any]], number: Callable[[float], str] = str
) -> str:
    lines = [head, ["---"] * len(head)]
    for row in rows:
        lines.append(
            ["–" if x is None else number(x) if isinstance(x, float) else str(x) for x in row]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Read the results, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", metavar="DIR", type=Path, default=RESULTS)
    parser.add_argument("--out", metavar="FILE", type=Path, default=HERE / "choosing-a-model.md")
    args = parser.parse_args()
    args.out.write_text(page(args.results), encoding="utf-8")


if __name__ == "__main__":
    main()
