"""No command loses a file: inputs stay as they are, and outputs are looked at before the work."""

import os
import shutil
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from gramian.app.cli.app import COMMANDS, gramian
from gramian.app.cli.outputs import Folder, Output, Writing
from gramian.common import storage
from tests.slow import slow, slow_among

LINES = {
    "metric": "metric flowers.csv --label species --method kta --test other.csv",
    "embed": "embed points.csv",
    "cluster": "cluster points.csv --clusters 2 --must-link same.csv --cannot-link apart.csv "
    "--method npkl",
    "complete": "complete ratings.csv",
    "recommend": "recommend alice --model ratings.gramian",
    "transform": "transform new.csv --model flowers.gramian",
    "predict": "predict new.csv --model flowers.gramian",
    "predict pairs": "predict ratings.csv --model ratings.gramian",
    "eigen": "eigen kernel.npy",
    "solve": "solve --entries correlations.csv --weights W.npy",
    "solve program": "solve cut.dat-s",
    "report": "report flowers.gramian --data flowers.csv --label species",
    "demo": "demo",
}
INPUTS = {
    *("flowers.csv", "other.csv", "points.csv", "same.csv", "apart.csv", "ratings.csv", "new.csv"),
    *("kernel.npy", "correlations.csv", "W.npy", "flowers.gramian", "ratings.gramian"),
    "cut.dat-s",
}
ENDINGS = {"--out": "out.csv", "--model": "m.gramian", "--report": "page.html",
           "--plot": "drawn.png", "--watch": "moving.gif", "--matrix": "M.csv", "--dual": "y.csv",
           "--checkpoint": "kept"}  # fmt: skip


def command(name):
    return gramian.get_command(None, name)


def written(line):
    """The options by which a command writes; matrices have no multipliers to write."""
    params = command(line.split()[0]).params
    options = [max(p.opts, key=len) for p in params if isinstance(p.type, (Output, Folder))]
    return [option for option in options if option != "--dual" or "--entries" not in line]


def cases():
    """Every command, every option by which it writes, every input."""
    for name, line in LINES.items():
        for option in written(line):
            for place in [word for word in line.split() if word in INPUTS]:
                yield pytest.param(line, option, place, id=f"{name} {option} {place}")


@pytest.fixture
def files(fitted):
    """The inputs, two saved models among them."""
    shutil.copy("flowers.csv", "other.csv")
    np.save("W.npy", np.ones((5, 5)))
    return fitted


def refused(run, *arguments):
    """The sentence by which a command is refused, one line."""
    status, out, err = run(*arguments)
    assert status == 2 and out == "", (out, err)
    assert "Traceback" not in err and err.startswith("gramian: ") and err.count("\n") == 1, err
    return err


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_every_command_checks_its_outputs_first():
    options = {name: written(name) for name in COMMANDS}
    assert set(options["metric"]) == {"--out", "--model", "--report", "--checkpoint"}
    assert set(options["solve"]) == {"--out", "--matrix", "--report", "--checkpoint", "--dual"}
    for name, (module, _) in COMMANDS.items():
        if name in ("info", "evaluate"):
            assert not options[name]
            continue
        assert isinstance(command(name), Writing), name
        assert not hasattr(import_module(f"gramian.app.cli.{module}"), "open")
        for param in command(name).params:  # what says that it writes is checked
            says = any(word in (getattr(param, "help", "") or "") for word in ("Write", "Save"))
            assert isinstance(param.type, (Output, Folder)) or not says, param


@pytest.mark.parametrize(("line", "option", "place"), list(cases()))
def test_rejects_outputs_that_overwrite_an_input(line, option, place, run, files):
    before = contents(files)
    os.symlink(place, "link")
    os.link(place, "hard link")
    for name in (place, f"./{place}", str(files / place), f"../{files.name}/{place}"):
        for more in ([], ["--force"]):
            sentence = refused(run, *line.split(), option, name, *more)
            assert (
                f"{option} {os.fspath(name).removeprefix('./')} would overwrite the input"
                in sentence
            )
    for name in ("link", "hard link"):
        assert "would overwrite the input" in refused(run, *line.split(), option, name)
    for name in ("link", "hard link"):
        os.unlink(name)
    assert contents(files) == before


@pytest.mark.parametrize("command", slow_among(LINES, "complete", "demo", "embed"))
def test_writing_outputs_does_not_change_inputs(command, run, files):
    line = LINES[command]
    before = contents(files)
    name = line.split()[0]
    fast = [] if name in ("recommend", "transform", "predict", "eigen", "report", "demo") else [
        "--time-limit", 5]  # fmt: skip
    ended = {**ENDINGS, **({"--out": "out.html"} if name == "report" else {})}
    ended |= {"--out": "out.npz"} if name == "eigen" else {}
    outputs = [word for option in written(line) for word in (option, ended[option])]
    for more in ([], ["--force"]):  # the second time over the first
        status, _, err = run(*line.split(), *fast, *outputs, *more)
        assert status in (0, 3), err
    after = contents(files)
    assert {name: after[name] for name in before} == before
    assert all((files / place).exists() for place in outputs[1::2])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("metric flowers.csv --label species --report x.pdf", "--report x.pdf: the name must end "
         "with .html or .htm"),
        ("metric flowers.csv --label species --out x.html", ".csv, .tsv, .csv.gz"),
        ("metric flowers.csv --label species --out x.gramian", "must end with .csv"),
        ("metric flowers.csv --label species --out x.npy", "without species"),
        ("metric flowers.csv --label species --model x.csv", "end with .gramian, or nothing"),
        ("embed points.csv --plot x.jpeg", ".png, .pdf or .svg"),
        ("embed points.csv --label z --out x.npy", "without z"),
        ("eigen kernel.npy --out x.html", "end with .csv"),
        ("solve --entries correlations.csv --matrix x.txt", "--matrix x.txt"),
        ("report flowers.gramian --out x.pdf", ".html or .htm"),
        ("demo --report x", ".html or .htm"),
        ("metric flowers.csv --label species --model no/where", "cannot write no/where: there is "
         "no folder no"),
        ("predict new.csv --model flowers.gramian --out no/x.csv", "cannot write no/x.csv"),
        ("metric flowers.csv --label species --model folder", "cannot write folder: it is a"),
        ("metric flowers.csv --label species --model pipe --force", "not an ordinary file"),
        ("metric flowers.csv --label species --checkpoint same.csv", "is a file, not a folder"),
        ("metric flowers.csv --label species --checkpoint same.csv/x", "is a file, not a folder"),
        ("metric flowers.csv --label species --model table", "table exists already and holds text"),
        ("metric flowers.csv --label species --model kept", "holds a gramian checkpoint"),
        ("solve --entries correlations.csv --checkpoint flowers.gramian", "holds a gramian model"),
        ("metric flowers.csv --label species --out model.csv", "holds a gramian model"),
        ("metric flowers.csv --label species --report mine.html", "HTML page of another program"),
        ("embed points.csv --plot mine.png", "mine.png exists already and holds text"),
        ("embed points.csv --plot mine.pdf", "holds a PDF document"),
        ("report flowers.gramian", "--out flowers.html exists already and holds text"),
        ("solve --entries correlations.csv --out L.npy --matrix ./L.npy", "are one file"),
        ("solve --entries correlations.csv --out old.npy --matrix link.npy", "are one file"),
    ],
)  # fmt: skip
def test_rejects_outputs_before_the_computation(line, message, run, files, monkeypatch):
    os.mkdir("folder")
    os.mkfifo("pipe")
    shutil.copy("flowers.csv", "table")
    shutil.copy("flowers.gramian", "model.csv")
    storage.write(files / "kept", "checkpoint", {})
    (files / "mine.html").write_text("<html><title>mine</title></html>")
    (files / "mine.png").write_text("not a picture")
    (files / "mine.pdf").write_bytes(b"%PDF-1.7 a thesis")
    (files / "flowers.html").write_text("what I know of flowers")
    np.save("old.npy", np.eye(2))
    os.symlink("old.npy", "link.npy")
    monkeypatch.setattr("gramian.load", None)  # nothing is begun
    monkeypatch.setattr("gramian.app.cli.run.Run.fit", None)
    monkeypatch.setattr("gramian.minimize", None)
    before = contents(files)
    assert message in refused(run, *line.split())
    assert contents(files) == before


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("transform new.csv --model flowers.gramian --out model.csv", "model.csv"),
        ("predict ratings.csv --model ratings.gramian --out p.csv --report mine.html", "mine.html"),
        ("eigen kernel.npy --out arrays.npz", "arrays.npz"),
        ("report flowers.gramian", "flowers.html"),
        ("complete ratings.csv --lam 5 --model table", "table"),
        slow("embed points.csv --time-limit 2 --plot mine.pdf", "mine.pdf"),
    ],
)
def test_force_overwrites_other_files(line, output, run, files):
    shutil.copy("flowers.csv", "table")
    for name in ("model.csv", "mine.html", "arrays.npz", "flowers.html", "mine.pdf"):
        shutil.copy("flowers.gramian", name)
    before = contents(files)
    assert "pass --force to overwrite it" in refused(run, *line.split())
    assert contents(files) == before
    status, _, err = run(*line.split(), "--force")
    assert status in (0, 3), err
    after = contents(files)
    assert after[output] != before[output]
    assert all(after[name] == before[name] for name in before if name != output)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_keeps_every_existing_output_without_force(line, run, files):
    """Files of the same kind, also of gramian itself; an empty file has nothing to lose."""
    name = line.split()[0]
    ended = {**ENDINGS, **({"--out": "out.html"} if name == "report" else {})}
    for option in written(line):
        path = files / ended[option]
        if option == "--checkpoint":
            continue
        shutil.copy("ratings.gramian" if option == "--model" else "flowers.csv", path)
        before = contents(files)
        sentence = refused(run, *line.split(), option, path)
        assert f"{option} {path} exists already and holds" in sentence and "--force" in sentence
        assert contents(files) == before
        path.unlink()
    (files / "empty.csv").touch()
    if name == "eigen":
        assert run(*line.split(), "--out", "empty.csv")[0] == 0


def test_a_model_of_another_ending_is_not_its_own_page(run, files):
    shutil.copy("flowers.gramian", "flowers.html")
    before = contents(files)
    assert "would overwrite the input" in refused(run, "report", "flowers.html", "--force")
    assert contents(files) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_missing_permissions_are_reported_first(run, files):
    os.mkdir("locked", 0o500)
    line = ("transform", "new.csv", "--model", "flowers.gramian", "--out")
    assert "cannot write locked/x.csv" in refused(run, *line, "locked/x.csv")
    pd.DataFrame({"a": [1]}).to_csv("old.csv")
    os.chmod("old.csv", 0o400)
    assert "protected" in refused(run, *line, "old.csv")


def test_missing_permissions_are_reported_first_for_root_too(run, files, monkeypatch):
    line = ("transform", "new.csv", "--model", "flowers.gramian", "--out")
    pd.DataFrame({"a": [1]}).to_csv("old.csv")
    monkeypatch.setattr("os.access", lambda path, mode: os.fspath(path) != str(files))
    assert "cannot write x.csv: it is not permitted in the folder ." in refused(run, *line, "x.csv")
    monkeypatch.setattr("os.access", lambda path, mode: os.fspath(path) != "old.csv")
    assert "cannot write old.csv: it is there already and protected" in refused(
        run, *line, "old.csv"
    )


def test_missing_packages_are_reported_first(run, files, monkeypatch):
    monkeypatch.setattr("gramian.app.cli.outputs.find_spec", lambda name: None)
    line = ("metric", "flowers.csv", "--label", "species")
    sentence = refused(run, *line, "--out", "x.parquet")
    assert "pyarrow, which is not installed: pip install 'gramian[cli]'" in sentence
