"""Names from files in what commands print and write."""

import pandas as pd
import pytest

from gramian.app.cli.exits import printable
from tests.app.cli.data import FLOWERS, ratings

CLEAR = "\x1b[2J\x1b]0;owned\x07"


@pytest.fixture
def hostile(folder):
    frame = ratings()
    frame.loc[frame.user == "alice", "user"] = f"{CLEAR}alice"
    frame.loc[frame.user == "bob", "user"] = "=1+bob"
    frame.loc[frame.item == "film 3", "item"] = f"film{CLEAR}"
    frame.to_csv("ratings.csv", index=False)
    return folder


def test_control_characters_are_written_as_escapes():
    assert printable("a\x1b[2J\tb\n\x9b\u202e\r") == "a\\x1b[2J\tb\n\\x9b\\u202e\\r"


def test_no_control_characters_are_printed(hostile, run):
    complete = ("complete", "ratings.csv", "--lam", 5, "--model", "m.gramian")
    commands = [
        (0, *complete),
        (0, "predict", "ratings.csv", "--model", "m.gramian"),
        (0, "recommend", "--all", "--model", "m.gramian", "-n", 2),
        (2, "recommend", "--model", "m.gramian", f"{CLEAR}nobody"),
        (0, "info", "ratings.csv"),
    ]
    for expected, *command in commands:
        status, out, err = run(*command)
        assert status == expected
        assert not set(out + err) & {"\x1b", "\x07"}


def test_hostile_columns_and_classes(folder, run):
    frame = FLOWERS.data.assign(species=FLOWERS.target_names[FLOWERS.target])
    frame["species"] = frame.species.replace("setosa", f"={CLEAR}")
    frame.rename(columns={frame.columns[0]: f"x{CLEAR}"}).to_csv("f.csv", index=False)
    for expected, *command in (
        (0, "metric", "f.csv", "--label", "species", "--model", "m"),
        (0, "info", "m"),
        (0, "info", "f.csv"),
        (2, "metric", "f.csv", "--label", "specie"),
        (0, "predict", "f.csv", "--model", "m"),
    ):
        status, out, err = run(*command)
        assert status == expected
        assert not set(out + err) & {"\x1b", "\x07"}


@pytest.mark.parametrize(("more", "first"), [((), "'=1+bob"), (("--no-escape",), "=1+bob")])
def test_formulas_in_tables_are_escaped(hostile, run, more, first):
    run("complete", "ratings.csv", "--lam", 5, "--no-verdict", "--model", "m.gramian")
    status, out, _ = run("recommend", "--model", "m.gramian", "=1+bob", "--out", "r.csv", *more)
    assert status == 0
    assert pd.read_csv("r.csv").user.unique().tolist() == [first]
    status, out, _ = run("recommend", "--model", "m.gramian", "=1+bob")
    assert "=1+bob" in out  # for people it is as it is
