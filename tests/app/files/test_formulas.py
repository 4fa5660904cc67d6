"""Text that a spreadsheet would take for a formula, and control characters for a terminal."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from gramian.app.explorer.tables import table
from gramian.app.files import read_column, read_header, read_ratings, read_table, write_table
from gramian.app.files._columns import escaped, unescaped

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\tx", "\rx", "-", "+-1"]
PLAIN = ["a", "", "-1.5", "+3", "-1e5", "'a", "a=b", "-inf", " =x", "'"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_formulas_get_an_apostrophe(cell):
    assert escaped(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", [*PLAIN, 3, -2.5, None, True])
def test_other_cells_stay_as_they_are(cell):
    assert escaped(cell) == cell


@pytest.mark.parametrize("cell", [*FORMULAS, *PLAIN, "'=x", "''=x", "'-5", "'''@"])
def test_every_cell_is_read_back(cell):
    assert unescaped(escaped(cell)) == cell


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_a_table_has_no_formulas_and_is_read_back(ending, tmp_path):
    path = tmp_path / f"t{ending}"
    names = ["=1+1", "@x", "'=kept", "-5 apples", "plain"]
    write_table(
        path, -np.ones((5, 1)), columns=["-depth"], first={"=name": np.array(names, dtype=object)}
    )
    opened = gzip.open if ending.endswith("gz") else open
    with opened(path, "rt", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if "tsv" in ending else ","))
    assert rows[0] == ["'=name", "'-depth"]
    assert [row[0] for row in rows[1:]] == ["'=1+1", "'@x", "''=kept", "'-5 apples", "plain"]
    assert {row[1] for row in rows[1:]} == {"-1.0"}
    assert read_header(path).names == ["=name", "-depth"]
    assert read_column(path, "=name").tolist() == names
    found = read_table(path, label="=name")
    assert found.y.tolist() == names and found.columns == ["-depth"]


def test_the_escape_is_an_option(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, np.ones((1, 1)), extra={"=a": np.array(["=b"])}, escape=False)
    assert path.read_text() == "x0,=a\n1.0,=b\n"


def test_ids_of_ratings_are_read_back(tmp_path):
    ids = np.array(["=u", "+v", "w"], dtype=object)
    path = tmp_path / "r.csv"
    write_table(path, np.arange(3.0)[:, None], columns=["rating"], first={"user": ids, "item": ids})
    rows, cols, values = read_ratings(path)
    assert rows.tolist() == cols.tolist() == ids.tolist() and values.tolist() == [0, 1, 2]


def test_tables_of_pages_have_no_formulas():
    assert table(["user", "rating"], [["=a", -1.5], ["b", 2]]) == b"user,rating\n'=a,-1.5\nb,2\n"


def test_parquet_is_not_escaped(tmp_path):
    path = tmp_path / "t.parquet"
    write_table(path, np.ones((1, 1)), extra={"name": np.array(["=b"])})
    assert pd.read_parquet(path)["name"].tolist() == ["=b"]
