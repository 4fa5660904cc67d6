"""The page on choosing a solver: its generator, and that the committed one is not stale."""

import json
import re
from pathlib import Path

import pytest

import gramian as gm
from benchmarks._choosing import PAGE, main, page

SUMMARY_COLUMNS = (
    "problem", "kind", "order", "auto s", "rank", "auto ran", "fastest other", "its s",
    "auto ÷ it", "others that got there", "others tried",
)  # fmt: skip


def record(name: str, tables: list[dict], **more) -> dict:
    host = {"cpu": "A processor", "cores": 2, "python": "3.11.0"}
    return {
        "name": name,
        "title": f"The title of {name}",
        "command": f"python -m benchmarks run {name}",
        "timestamp": "2001-02-03T04:05:06+00:00",
        "machine": host,
        "notes": ["Load average of the machine: 0.50 before, 0.75 after."],
        "tables": tables,
        **more,
    }


def table(caption: str, columns: tuple[str, ...], *rows: tuple) -> dict:
    filled = [dict(zip(columns, row, strict=True)) for row in rows]
    return {"caption": caption, "columns": list(columns), "rows": filled}


@pytest.fixture
def records() -> dict[str, dict]:
    summary = table(
        "Seconds to a certified relative gap of 1e-06",
        SUMMARY_COLUMNS,
        ("easy", "toy", 6, 0.02, 3, "staircase", "lbfgs", 0.01, 2.0, 1, 2),
        ("hard", "toy", 64, 0.5, 9, "staircase", None, None, None, 0, 2),
        ("lost", "other", 8, "> 20", 1, "eigenbasis + staircase", "bilgo", 3.0, None, 1, 2),
    )
    times = table(
        "Seconds of every solver",
        ("problem", "auto", "lbfgs", "bilgo"),
        ("easy", 0.02, 0.01, "> 1"),
        ("hard", 0.5, "stalled", "> 1.5"),
        ("lost", "> 20", None, 3.0),
    )
    return {"auto_table": record("auto_table", [summary, times])}


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its header."""
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_page_lists_fastest_and_failing_solvers(records):
    toy, other = rows_of(page(records), "By kind of problem")
    assert toy == [
        "toy", "6 to 64", "staircase", "0.02 to 0.5", "lbfgs (1), none (1)", "2", "bilgo",
        "lbfgs (1 of 2)",
    ]  # fmt: skip
    assert other == ["other", "8", "staircase, eigenbasis", "> 20", "bilgo", "–", "auto", "–"]


def test_the_page_counts_what_each_solver_certified(records):
    certified = {row[0]: row[-1] for row in rows_of(page(records), "What each solver needs")}
    assert certified["`auto`"] == "2 of 3"
    assert certified["`lbfgs`"] == "1 of 2"
    assert certified["`journee`"] == "–"


def test_the_page_names_the_run(records):
    top = page(records).split("\n\n")[1]
    assert "python -m benchmarks._choosing" in top
    assert "2001-02-03" in top and "A processor, 2 cores" in top and "0.75 after" in top


def test_larger_problems_are_shown_where_they_were_run(records):
    assert "## Larger problems" not in page(records)
    verdicts = table("Verdicts", ("ν", "auto's seconds"), ("1000", {"ours": 1.25, "paper": 4000}))
    records["regmvu_auto"] = record("regmvu_auto", [verdicts])
    text = page(records)
    assert "**The title of regmvu_auto.**" in text
    assert rows_of(text, "Larger problems") == [["1000", "1.2"]]


def test_the_command_writes_the_same_page_twice(records, tmp_path: Path):
    folder = tmp_path / "auto_table"
    folder.mkdir()
    (folder / "auto_table.json").write_text(json.dumps(records["auto_table"]))
    for name in ("one.md", "two.md"):
        assert main(["--results", str(tmp_path), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "one.md").read_text() == (tmp_path / "two.md").read_text() == page(records)


def test_command_without_results_names_the_command_to_run(tmp_path: Path, capsys):
    with pytest.raises(SystemExit):
        main(["--results", str(tmp_path)])
    assert "python -m benchmarks run auto_table" in capsys.readouterr().err


def test_committed_page_lists_all_solvers():
    rows = rows_of(PAGE.read_text(encoding="utf-8"), "What each solver needs")
    listed = [(re.sub("`", "", name), does, accepts) for name, does, accepts, _ in rows]
    assert listed == list(gm.solvers.available().rows), "run `python -m benchmarks._choosing`"
