"""Files of pairs for --must-link and --cannot-link, in every form, and those of the page."""

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from click import ClickException

import gramian as gm
from gramian.app.cli.links import links_of
from gramian.app.explorer import Session
from gramian.app.files import write_table

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(size=(15, 2)), RNG.normal(size=(15, 2)) + np.array([8, 0])])
PAIRS = np.array([[0, 1], [2, 3], [7, 5]])
DRAWN = [(0, 1, "must"), (4, 9, "must"), (2, 20, "cannot"), (5, 28, "cannot")]


def read(path, ids=None, rows=30):
    """The must-links of a file."""
    return links_of(path, None, None if ids is None else np.array(ids), rows)["must_link"]


# --- the links of the page ---------------------------------------------------------------

IDS = {
    "none": None,
    "names": [f"id-{k}" for k in range(30)],
    "formulas": [f"=-{k}" for k in range(30)],
    "numbers of other rows": list(range(30))[::-1],
    "zeros in front": [f"{k:03d}" for k in range(30)],
    "repeated numbers": [7, 7, *range(28)],
    "names with separators": [f'"p", {k};' for k in range(30)],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_links_of_the_page_are_read_by_both_options(ids, tmp_path):
    session = Session(X, 2, names=None if ids is None else [str(one) for one in ids])
    session.add_all(DRAWN)
    file = tmp_path / "links.csv"
    file.write_bytes(session.download("links.csv"))
    found = links_of(file, file, None if ids is None else np.array(ids), 30)
    for kind in ("must", "cannot"):
        expected = [[i, j] for i, j, of in DRAWN if of == kind]
        assert found[f"{kind}_link"].tolist() == expected


def test_the_command_learns_from_the_links_of_the_page(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"p{k:02d}" for k in range(30)]
    pd.DataFrame(X, columns=["a", "b"]).assign(name=names).to_csv("points.csv", index=False)
    session = Session(X, 2, names=names)
    session.add_all(DRAWN)
    (tmp_path / "links.csv").write_bytes(session.download("links.csv"))
    line = ("cluster", "points.csv", "--clusters", 2, "--id", "name", "--no-verdict")
    both = ("--must-link", "links.csv", "--cannot-link", "links.csv")
    assert run(*line, *both, "--model", "m.gramian")[0] in (0, 3)
    links = gm.load("m.gramian").links_
    assert links.must.tolist() == [[0, 1], [4, 9]] and links.cannot.tolist() == [[2, 20], [5, 28]]


# --- every form ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*begins with #")
@pytest.mark.parametrize(
    "content",
    [
        "0,1\n2,3\n7,5\n",
        "0 1\n2 3\n7 5",
        "# pairs\ni;j\n\n0; 1\n2; 3\n7; 5\n",
        '"first","second"\n"0","1"\n2,3\n7,5\n',
    ],
)
@pytest.mark.parametrize("name", ["p.csv", "p.txt"])
def test_pairs_of_text(content, name, tmp_path):
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name).tolist() == PAIRS.tolist()


@pytest.mark.parametrize("ending", ["tsv", "npy", "npz", "parquet", "xlsx", "jsonl"])
def test_pairs_of_other_formats(ending, tmp_path):
    path, frame = tmp_path / f"p.{ending}", pd.DataFrame(PAIRS, columns=["i", "j"])
    if ending == "xlsx":
        frame.to_excel(path, index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        write_table(path, PAIRS)
    assert read(path).tolist() == PAIRS.tolist()


def test_pairs_of_sparse_matrices(tmp_path):
    links = sp.coo_array((np.ones(3), PAIRS.T), shape=(8, 8))
    scipy.io.mmwrite(tmp_path / "p.mtx", links)
    scipy.io.mmwrite(tmp_path / "both.mtx", links + links.T, symmetry="symmetric")
    sp.save_npz(tmp_path / "p.npz", links)
    for name in ("p.mtx", "both.mtx", "p.npz"):
        found = {tuple(sorted(pair)) for pair in read(tmp_path / name).tolist()}
        assert found == {(0, 1), (2, 3), (5, 7)}


def test_a_first_line_without_known_ids_is_a_header(tmp_path):
    ids = ["anna", "ben", "12"]
    for text, expected in (
        ("anna,ben\n", [[0, 1]]),
        ("one,other\nanna,ben\n", [[0, 1]]),
        ("anna,ben\n12,anna\n", [[0, 1], [2, 0]]),
    ):
        (tmp_path / "p.csv").write_text(text)
        assert read(tmp_path / "p.csv", ids, 3).tolist() == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("0,1\n2,-3\n", "'-3'"),
        ("0,1\n2,3.5\n", "'3.5'"),
        ("0,1\n2,99\n", "the last of 30 rows is row 29"),
        ("0,1\n2,99999999999999999999\n", "the last of 30 rows is row 29"),
        ("0,1\n2,\n", "pair 1 lacks a cell"),
        ("5,1,2\n2,3,4\n", "3 columns, where two of a pair belong"),
        ("0\n1\n", "one column, where two of a pair belong"),
        ("a,b,kind\n0,1,far\n", "pair 0 has the kind 'far'"),
        ("a,b,kind\n0,1,cannot-link\n", "no must-links"),
        (",b,a\n0,3,4\n1,5,6\n", "begins with a column that has no name"),
    ],
)
def test_errors_describe_invalid_pairs(content, words, tmp_path):
    (tmp_path / "p.csv").write_text(content)
    with pytest.raises(ClickException) as refusal:
        read(tmp_path / "p.csv")
    assert words in refusal.value.message and "p.csv" in refusal.value.message
