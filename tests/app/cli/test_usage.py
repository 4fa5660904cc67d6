"""What all commands share: examples, errors, reports and the files that they write."""

import re

import numpy as np
import pandas as pd
import pytest

from gramian.app.cli.app import COMMANDS
from gramian.app.cli.output import show
from gramian.metric import KTA
from tests.app.cli.data import (
    gaps,
    ratings,
    refused,
)
from tests.slow import slow


def examples() -> list:
    found = []
    for name in COMMANDS:
        command = gm_command(name)
        lines = re.findall(r"^\s+gramian (.*)$", command.help or "", flags=re.M)
        assert lines, f"{name} has no example"
        found += [slow(name, line) if "--watch" in line else (name, line) for line in lines]
    return found


def gm_command(name):
    from gramian.app.cli.app import gramian

    return gramian.get_command(None, name)


@pytest.mark.parametrize(
    ("line", "section"),
    [
        ("transform new.csv --model flowers.gramian", "The samples given"),
        ("predict new.csv --model flowers.gramian", "The samples given"),
        slow("transform points.csv --model points.gramian", "The samples given"),
        ("predict ratings.csv --model ratings.gramian", "Predicted"),
        ("recommend alice --model ratings.gramian", "Recommended"),
    ],
)
def test_commands_with_a_saved_model_write_a_report(line, section, run, fitted):
    if "points.gramian" in line:
        assert run("embed", "points.csv", "--model", "points.gramian")[0] == 0
    status, _, err = run(*line.split(), "--report", "page.html")
    assert status == 0, err
    assert f"<h2>{section}</h2>" in (fitted / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    "line", ["eigen kernel.npy", slow("demo"), "solve --entries correlations.csv"]
)
def test_pages_without_a_model(line, run, folder):
    status, out, err = run(*line.split(), "--report", "page.html")
    assert status == 0, err
    assert "page.html" in out
    assert 'class="verdict"' in (folder / "page.html").read_text("utf-8")


@pytest.mark.parametrize(("name", "line"), examples())
def test_examples_work_as_printed(name, line, run, fitted):
    if "--scheduler" in line:
        pytest.skip("needs a cluster, see tests/app/cli/test_scheduler.py")
    if name in ("metric", "complete"):
        (fitted / line.split()[-1]).unlink()
        file = line.split()[1]
        pd.read_csv(file).iloc[::2].to_csv(file, index=False)  # in half of the time
    status, out, err = run(*line.split())
    assert status == 0, err
    assert out or "--out" in line


def test_help_names_every_command(run):
    status, out, _ = run("--help")
    assert status == 0
    assert all(f"  {name} " in out for name in COMMANDS)
    assert "Exit status" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("metric nothing.csv --label y", "nothing.csv"),
        ("metric flowers.csv", "species"),
        ("metric flowers.csv --label color", "color"),
        ("metric points.csv", "--label"),
        ("metrics points.csv", "Did you mean metric?"),
        ("metric gaps.csv --label species --id plant", "--missing median"),
        ("recommend alize --model ratings.gramian", "did you mean 'alice'?"),
        ("metric flowers.csv --label species --rank 9", "rank must be"),
        ("metric flowers.csv --label species --method svm", "'svm' is not one of"),
        ("metric flowers.csv --label species --solver magic", "magic"),
        ("metric flowers.csv --label species --neighbors 150", "--neighbors must be from 1 to 149"),
        ("metric flowers.csv --label species --model no/where", "no folder"),
        ("embed points.csv --neighbors 0", "--neighbors must"),
        ("embed points.csv --method colored-mvu", "--label"),
        ("embed points.csv --plot picture.doc", "picture.doc"),
        ("cluster points.csv", "--must-link"),
        ("cluster points.csv --must-link same.csv", "--clusters"),
        ("cluster points.csv --clusters 2 --must-link same.csv --cannot-link same.csv", "'kind'"),
        ("cluster flowers.csv --drop species --clusters 2 --must-link big.csv", "999"),
        ("complete flowers.csv", "--columns"),
        ("complete twice.csv", "--duplicates mean"),
        ("complete ratings.csv --columns a,b", "three names"),
        ("complete ratings.csv --lam -1", "lam must be"),
        ("recommend alice --model flowers.csv", "not a complete gramian model"),
        ("predict new.csv --model missing", "missing"),
        ("eigen points.csv", "square"),
        ("eigen kernel.npy -k 99", "99"),
        ("solve", "--entries"),
        ("solve --entries points.csv", "points.csv has 120 rows and 3 columns, where a square"),
        ("nonsense", "No such command"),
    ],
)
def test_errors_are_one_sentence(line, message, run, fitted):
    np.savetxt("big.csv", [[0, 999]], fmt="%d", delimiter=",")
    pd.concat([ratings(), ratings()]).to_csv("twice.csv", index=False)
    gaps()
    status, out, err = run(*line.split())
    assert status == 2 and out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "line",
    [
        ("metric",),
        ("metric", "flowers.csv", "--method", "none"),
        ("cluster", "flowers.csv", "--drop", "species", "--clusters", "1"),
        ("metric", "flowers.csv", "--label", "species", "--components", "50"),
        ("embed", "flowers.csv", "--drop", "species", "--components", "50"),
        ("cluster", "flowers.csv", "--drop", "species", "--clusters", "151"),
    ],
)
def test_usage_errors_are_one_sentence(run, folder, line):
    sentence = refused(run, *line)
    assert sentence.startswith("gramian: ") and "--help' describes" in sentence


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".npz", ".parquet"])
def test_every_command_writes_the_same_kinds_of_tables(run, folder, ending):
    out = f"o{ending}"
    assert run("eigen", "correlations.csv", "-k", 2, "--out", out)[0] == 0
    line = ("metric", "flowers.csv", "--label", "species", "--no-verdict")
    assert run(*line, "--out", out, "--force")[0] == 0
    assert (folder / out).stat().st_size > 0


def test_rejects_single_array_before_the_fit(run, folder, monkeypatch):
    monkeypatch.setattr(KTA, "fit", lambda *given: pytest.fail("fitted"))
    line = ("metric", "flowers.csv", "--label", "species", "--out", "o.npy")
    assert ".npz or .csv" in refused(run, *line)
    assert ".npz or .csv" in refused(run, "complete", "ratings.csv", "--out", "o.npy")


def test_verdict_is_not_shown_twice(capsys):
    show("metric", {"verdict": "v", "held_out": {}}, as_json=False)
    assert capsys.readouterr().out.split() == ["metric", "v"]
