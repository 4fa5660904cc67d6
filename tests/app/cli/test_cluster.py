"""`gramian cluster`: links, labels, and clusters of the graph alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

import gramian as gm
from tests.app.cli.data import FLOWERS, answer, refused


@pytest.fixture
def moons(folder):
    X, y = make_moons(80, noise=0.05, random_state=0)
    frame = pd.DataFrame(X, columns=["x", "y"]).assign(name=[f"p{k:02d}" for k in range(80)])
    frame.to_csv("moons.csv", index=False)
    pairs = np.random.default_rng(0).permutation(80)[:24].reshape(-1, 2)
    kinds = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], "must-link", "cannot-link")
    numbered = pd.DataFrame({"a": pairs[:, 0], "b": pairs[:, 1], "kind": kinds})
    numbered.to_csv("numbers.csv", index=False)
    numbered.replace({"a": frame["name"], "b": frame["name"]}).to_csv("links.csv", index=False)
    return frame, numbered


def test_cluster_by_pairs(run, folder):
    X, y = make_moons(100, noise=0.05, random_state=0)
    pd.DataFrame(X, columns=["a", "b"]).to_csv("moons.csv", index=False)
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 100, (40, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    np.savetxt("must.csv", pairs[same], fmt="%d", delimiter=",", header="i,j", comments="")
    np.savetxt("cannot.tsv", pairs[~same], fmt="%d", delimiter="\t")
    facts = answer(run, "cluster", "moons.csv", "--clusters", 2, "--must-link", "must.csv",
                 "--cannot-link", "cannot.tsv", "--out", "c.csv", "--plot", "c.png",
                 "--model", "m")  # fmt: skip
    assert (
        facts["links_kept"].split(" of ")[0] == facts["links_kept"].split(" of ")[1]
        and sum(facts["sizes"]) == 100
    )
    found = pd.read_csv("c.csv")
    assert list(found.columns) == ["a", "b", "cluster"]
    assert adjusted_rand_score(y, found["cluster"]) > 0.9
    status, out, _ = run("predict", "moons.csv", "--model", "m")
    assert status == 0 and adjusted_rand_score(y, out.split()[1:]) > 0.9


def test_cluster_by_some_labels(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.loc[frame.index % 10 != 0, "species"] = None
    frame.to_csv("some.csv", index=False)
    facts = answer(
        run,
        "cluster",
        "some.csv",
        "--label",
        "species",
        "--standardize",
        "--out",
        "c.csv",
        "--method",
        "npkl",
    )
    assert sorted(facts["labels_of_the_clusters"]) == sorted(FLOWERS.target_names)
    assert adjusted_rand_score(FLOWERS.target, pd.read_csv("c.csv")["cluster"]) > 0.6


def test_one_file_of_links_serves_both_options(run, moons):
    both = ("--must-link", "links.csv", "--cannot-link", "links.csv", "--id", "name")
    facts = answer(run, "cluster", "moons.csv", "--clusters", 2, *both, "--no-verdict")
    kinds = moons[1]["kind"].value_counts()
    assert facts["links"] == {"must": kinds["must-link"], "cannot": kinds["cannot-link"]}
    both = ("--must-link", "numbers.csv", "--cannot-link", "numbers.csv", "--drop", "name")
    again = answer(run, "cluster", "moons.csv", "--clusters", 2, *both, "--no-verdict")
    assert again["links"] == facts["links"]


def test_reports_unused_links_and_rejects_unknown_kinds(run, moons):
    line = ("cluster", "moons.csv", "--clusters", 2, "--id", "name", "--no-verdict")
    status, _, err = run(*line, "--cannot-link", "links.csv")
    assert status == 0 and "pass it to --must-link too" in err
    pd.read_csv("links.csv").replace("must-link", "maybe").to_csv("odd.csv", index=False)
    assert "'maybe'" in refused(run, *line, "--cannot-link", "odd.csv")
    moons[1].drop(columns="kind").to_csv("plain.csv", index=False)
    both = ("--must-link", "plain.csv", "--cannot-link", "plain.csv")
    assert "no column 'kind'" in refused(run, *line, *both)


def test_clusters_without_links_are_those_of_the_graph(run, moons):
    line = ("cluster", "moons.csv", "--drop", "name", "--clusters", 2)
    facts = answer(run, *line, "--out", "c.csv")
    assert facts["verdict"].startswith("Nothing was learned") and sum(facts["sizes"]) == 80
    assert set(pd.read_csv("c.csv")["cluster"]) == {0, 1}
    assert "nothing is learned" in refused(run, *line, "--model", "m.gramian")
    assert "--clusters" in refused(run, "cluster", "moons.csv", "--drop", "name")


def test_links_refer_to_rows_of_the_file_if_some_are_left_out(run, moons):
    frame = moons[0].drop(columns="name")
    frame.iloc[0, 0] = None  # so that every number is one too many afterwards
    frame.to_csv("gaps.csv", index=False)
    links = moons[1]
    links[(links[["a", "b"]] > 0).all(axis=1)].to_csv("later.csv", index=False)
    both = ("--must-link", "later.csv", "--cannot-link", "later.csv", "--missing", "drop")
    line = ("cluster", "gaps.csv", "--clusters", 2, *both, "--no-verdict", "--model", "m")
    assert run(*line)[0] == 0
    kept = gm.load("m").links_
    assert {*kept.pairs.ravel()} == {*(links[links["a"] > 0][["a", "b"]].to_numpy().ravel() - 1)}


@pytest.mark.slow
def test_the_verdict_on_clusters_compares_with_the_graph_alone(run, folder):
    X, y = make_moons(200, noise=0.1, random_state=0)
    some = np.where(np.arange(200) < 30, y.astype(str), "")
    pd.DataFrame(X, columns=["a", "b"]).assign(moon=some).to_csv("m.csv", index=False)
    facts = answer(run, "cluster", "m.csv", "--label", "moon")
    assert "held-out labels" in facts["verdict"] and facts["held_out"]["held_out"] == 10


def test_must_links_alone_raise_an_error_about_cannot_links(run, folder):
    line = ("cluster", "moons.csv", "--clusters", 2, "--must-link", "same.csv", "--out", "c.csv")
    sentence = refused(run, *line)
    assert "--cannot-link" in sentence and "duplicate" not in sentence
    assert not (folder / "c.csv").exists()


def test_links_are_matched_by_id(run, folder):
    frame = pd.read_csv("points.csv").assign(name=[f"p{k}" for k in range(120)])
    frame.to_csv("named.csv", index=False)
    for file in ("same", "apart"):
        pairs = pd.read_csv(f"{file}.csv", header=None)
        pairs.map(lambda k: f"p{k}").to_csv(f"{file}_ids.csv", index=False, header=["one", "other"])
    line = ("cluster", "named.csv", "--clusters", 2, "--id", "name", "--out", "c.csv", "--force")
    by_id = ("--must-link", "same_ids.csv", "--cannot-link", "apart_ids.csv")
    by_row = ("--must-link", "same.csv", "--cannot-link", "apart.csv")
    assert run(*line, *by_id)[0] == 0
    expected = pd.read_csv("c.csv")
    status, _, err = run(*line, *by_row)
    assert status == 0 and "are used as row numbers" in err
    pd.testing.assert_frame_equal(pd.read_csv("c.csv"), expected)
    (folder / "same_ids.csv").write_text("one,other\np1,p2\np3,p999\n")
    assert "links 'p999', which no row is called" in refused(run, *line, *by_id)


def test_integer_labels_stay_integers_with_empty_cells(run, folder):
    frame = pd.read_csv("moons.csv").assign(known=["1", "2", *[""] * 198])
    frame.loc[100:104, "known"] = "2"
    frame.to_csv("some.csv", index=False)
    line = ("cluster", "some.csv", "--label", "known", "--no-verdict", "--out", "o.csv")
    assert set(answer(run, *line)["labels_of_the_clusters"]) <= {"1", "2", "–"}


def test_links_beyond_the_last_row_name_their_file(run, folder):
    (folder / "far.csv").write_text("0,1\n0,900\n")
    said = refused(run, "cluster", "moons.csv", "--clusters", 2, "--cannot-link", "far.csv")
    assert "far.csv links row 900, and the last of 200 rows is row 199" in said


def test_accepts_one_pair_of_ids(run, folder):
    frame = pd.read_csv("moons.csv").assign(name=[f"p{k}" for k in range(200)])
    frame.loc[150, "name"] = "p149"
    frame.to_csv("named.csv", index=False)
    (folder / "one.csv").write_text("p0,p199\n")
    line = ("cluster", "named.csv", "--clusters", 2, "--id", "name", "--no-verdict")
    assert answer(run, *line, "--cannot-link", "one.csv")["links"]["cannot"] == 1
    (folder / "one.csv").write_text("p0,p149\n")
    sentence = refused(run, *line, "--cannot-link", "one.csv")
    assert "links 'p149', and several rows are called so" in sentence


def test_more_classes_than_clusters_are_noted(run, classes):
    status, _, err = run("cluster", "abc.csv", "--label", "c", "--clusters", 2, "--no-verdict")
    assert status == 0 and "'c' has 3 classes, more than --clusters 2" in err


def test_links_by_row_numbers_from_one_need_the_id_option(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{k + 1},{rng.normal(3 * (k % 2)):.3f},{rng.normal():.3f}" for k in range(40)]
    Path("points.csv").write_text("\n".join(["no,x,y", *rows]))
    Path("same.csv").write_text("1,3\n2,4\n5,9\n")
    Path("apart.csv").write_text("1,2\n3,8\n6,9\n")
    line = ("cluster", "points.csv", "--clusters", 2, "--must-link", "same.csv", "--no-verdict")
    line += ("--cannot-link", "apart.csv")
    message = refused(run, *line)
    assert "add --id no" in message and "--drop no" in message
    assert run(*line, "--id", "no")[0] == 0
    assert run(*line, "--drop", "no")[0] == 0


def test_minus_one_is_noted_as_unlabelled_by_cluster(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{k % 2 + a:.3f},{b:.3f},{k % 3 - 1}" for k, (a, b) in enumerate(rng.random((30, 2)))]
    Path("x.csv").write_text("\n".join(["a,b,class", *rows]))
    err = run("cluster", "x.csv", "--label", "class", "--method", "npkl", "--no-verdict")[2]
    assert "10 rows with the label -1 taken as unlabelled" in err


def test_reports_contradictory_and_violated_links(run, folder):
    frame = pd.read_csv("points.csv").assign(name=[f"p{k}" for k in range(120)])
    frame.to_csv("named.csv", index=False)
    line = ("cluster", "named.csv", "--clusters", 2, "--id", "name", "--must-link", "l.csv")
    (folder / "l.csv").write_text("p1,p2\np2,p3\n")
    (folder / "c.csv").write_text("p1,p3\n")
    assert "(p1 ~ p2 ~ p3)" in refused(run, *line, "--cannot-link", "c.csv")
    (folder / "c.csv").write_text("p2,p1\n")
    assert "samples p1 and p2 are linked in two ways" in refused(
        run, *line, "--cannot-link", "c.csv"
    )
    (folder / "c.csv").write_text("p1,ten\np2,x\nx,p4\n")
    assert "links 'ten', 'x', which no row is called" in refused(
        run, *line, "--cannot-link", "c.csv"
    )
    (folder / "c.csv").write_text("1,120\n2,7\n300,4\n")
    assert "links row 120, 300, and the last" in refused(run, *line, "--cannot-link", "c.csv")


def test_clusters_are_predicted_by_the_names_of_their_labels(run, folder):
    X, y = make_moons(60, noise=0.05, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(moon=np.where(y == 1, "up", "down"))
    frame.to_csv("m.csv", index=False)
    line = ("cluster", "m.csv", "--label", "moon", "--method", "npkl", "--no-verdict")
    assert run(*line, "--model", "m", "--out", "c.csv")[0] == 0
    assert run("predict", "m.csv", "--model", "m", "--out", "p.csv")[0] == 0
    found = pd.read_csv("p.csv")["prediction"]
    assert (found == frame["moon"]).mean() > 0.9 and "--seed" in refused(run, *line, "--seed", -1)


@pytest.fixture
def people(folder):
    """Forty rows with ids, and links between some of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)) + 4 * (np.arange(40) % 2)[:, None])
    frame.columns = ["a", "b"]
    frame.insert(0, "id", [f"p{k}" for k in range(40)])
    frame.to_csv("people.csv", index=False)
    line = ("cluster", "people.csv", "--clusters", 2, "--id", "id", "--method", "npkl")
    return (*line, "--no-verdict", "--must-link", "l.csv", "--cannot-link", "l.csv")


@pytest.mark.parametrize(
    "text",
    [
        "from,to,kind\np0,p2,same\np1,p2,different\n",
        "from,to,kind\np0,p2,1\np1,p2,-1\n",
        "from,to,type\np0,p2,Must-Link\np1,p2,cannot\n",
        "p0,p2,must\np1,p2,cannot\n",
    ],
)
def test_kinds_of_links_in_other_words(text, run, people):
    Path("l.csv").write_text(text)
    assert answer(run, *people)["links"] == {"must": 1, "cannot": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,kind\np0,p2,must\np9,q1,cannot\nq2,p3,must\n", "links 'q1', 'q2', which no row is"),
        ("a,b,kind\np0,p2,must\np3,p3,cannot\n", "l.csv links 'p3' to itself: leave"),
        ("a,b,kind\np0,p2,must\np3,p4,like\n", "pair 1 has the kind 'like', where must-link or"),
    ],
)
def test_links_that_cannot_be_used_are_named(text, message, run, people):
    Path("l.csv").write_text(text)
    assert message in refused(run, *people)
