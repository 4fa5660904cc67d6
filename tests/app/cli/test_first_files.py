"""Files of new users: headers, categories, dates, links, titles, and the verdict on the model."""

import json
import zipfile
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, make_moons

import gramian as gm
from gramian.app.cli.exits import HEARD
from gramian.app.cli.output import show
from gramian.app.dates import date_in, days
from gramian.app.verdict import (
    EUCLID_KEPT,
    edge_errors,
    keeps_euclid,
    of_errors,
    untested,
    verdict_of_metric,
    with_selection,
)
from gramian.common import clock
from gramian.metric import KTA
from tests.app.cli.data import FLOWERS, ratings


def answer(run, *arguments):
    """The JSON that a command prints."""
    status, out, err = run(*arguments, "--json")
    assert status in (0, 3), err
    return json.loads(out)


def refused(run, *arguments):
    status, out, err = run(*arguments)
    assert status == 2 and out == "" and "Traceback" not in err, err
    return " ".join(err.split())


def ships() -> pd.DataFrame:
    """A table of categories only, sorted by class as R's Titanic is."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "class": np.repeat(["1st class", "2nd class", "3rd class"], 40),
            "sex": rng.choice(["man", "women"], 120),
        }
    )
    lives = np.where(frame["sex"] == "women", 0.9, 0.2) > rng.random(120)
    return frame.assign(survived=np.where(lives, "yes", "no"))


# --- headers ---------------------------------------------------------------------------


def as_r_writes(frame, path, **options):
    frame.index = range(1, len(frame) + 1)
    frame.to_csv(path, quoting=2, **options)


def test_text_table_keeps_its_header(run, folder):
    as_r_writes(ships(), "ships.csv")
    facts = answer(run, "info", "ships.csv")
    assert facts["rows"] == 120 and facts["header"] == "line 1"
    assert [field["name"] for field in facts["fields"]] == ["x0", "class", "sex", "survived"]
    status, _, err = run("info", "ships.csv")
    assert status == 0 and "taken for a header" in err and "--no-header" in err
    assert answer(run, "info", "ships.csv", "--no-header")["rows"] == 121


def test_a_table_of_text_without_a_header_has_none(run, folder):
    ships().to_csv("ships.csv", index=False, header=False)
    facts = answer(run, "info", "ships.csv")
    assert facts["rows"] == 120 and facts["header"].startswith("none")
    assert answer(run, "info", "ships.csv", "--header")["rows"] == 119


def test_requested_names_identify_a_header(run, folder):
    """Where every text occurs once nothing else does."""
    lines = ["city,kind", *(f"city {k},{'ab'[k % 2]}{k}" for k in range(8))]
    (folder / "cities.csv").write_text("\n".join(lines))
    assert answer(run, "info", "cities.csv")["rows"] == 9
    assert "every row has a class of its own in 'city'" in refused(
        run, "metric", "cities.csv", "--label", "city"
    )


def test_a_header_one_cell_short_names_all_but_the_row_names(run, folder):
    as_r_writes(ships(), "ships.txt", sep=" ")
    text = (folder / "ships.txt").read_text()
    (folder / "ships.txt").write_text(text.removeprefix('"" '))
    facts = answer(run, "info", "ships.txt")
    assert facts["rows"] == 120 and facts["columns"] == 4
    assert facts["fields"][1]["name"] == "class"


def test_a_first_line_of_counts_is_left_out(run, folder):
    names = ",".join(map(str, FLOWERS.target_names))
    body = FLOWERS.frame.to_csv(index=False, header=False)
    (folder / "counts.csv").write_text(f"150,4,{names}\n{body}")
    status, _, err = run("info", "counts.csv")
    assert status == 0 and "counts 150 rows of 4 features" in err
    facts = answer(run, "info", "counts.csv")
    assert (facts["rows"], facts["columns"]) == (150, 5)
    assert facts["fields"][0]["kind"] == "number"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("country,1990,1991,1992\nFrance,1.5,2,3\nSpain,2,3,4.5\n", 2),
        ("0,1,2\n5.1,3.5,0\n4.9,3,1\n", 2),
        (",0,1,2\n0,5.1,3.5,0\n1,4.9,3,1\n", 2),
        ("0,1,2\n1,2,3\n0,1,2\n", 3),
        ("a,1,2,3\nb,2,3,4\nc,7,1,9\n", 3),
        ("1,2,3\n5,1,9\n", 2),
    ],
)
def test_numbers_can_name_columns(run, folder, text, rows):
    (folder / "numbers.csv").write_text(text)
    assert answer(run, "info", "numbers.csv")["rows"] == rows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read_by_their_mark(run, folder, encoding):
    text = "größe;farbe\n1,5;grün\n2,5;weiß\n"
    text = "\ufeff" + text if encoding == "utf-16-be" else text
    (folder / "wide.csv").write_bytes(text.encode(encoding))
    facts = answer(run, "info", "wide.csv")
    assert [field["name"] for field in facts["fields"]] == ["größe", "farbe"]
    assert facts["fields"][0]["kind"] == "number" and facts["rows"] == 2
    (folder / "cut.csv").write_bytes(text.encode(encoding)[:-1])
    assert "damaged or cut short" in refused(run, "info", "cut.csv")


def test_the_sheet_of_a_workbook_can_be_chosen(run, folder):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter("book.xlsx") as book:
        FLOWERS.frame.to_excel(book, sheet_name="flowers", index=False)
        ships().to_excel(book, sheet_name="ships", index=False)
    assert answer(run, "info", "book.xlsx")["rows"] == 150
    assert answer(run, "info", "book.xlsx", "--sheet", "ships")["rows"] == 120
    assert answer(run, "info", "book.xlsx", "--sheet", 2)["rows"] == 120
    assert "'flowers', 'ships'" in refused(run, "info", "book.xlsx", "--sheet", "boats")
    assert "no sheets" in refused(run, "info", "flowers.csv", "--sheet", "ships")
    assert "--sheet NAME" in run("info", "book.xlsx")[2]


def test_a_first_column_without_a_name_names_the_rows(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.index = [f"flower {k}" for k in range(150)]
    frame.to_csv("named.csv", quoting=2)
    line = ("metric", "named.csv", "--label", "species", "--no-verdict", "--out", "o.csv")
    status, _, err = run(*line)
    assert status == 0 and "used as row names" in err
    assert pd.read_csv("o.csv")["x0"].tolist() == frame.index.tolist()


def test_separators_at_the_ends_of_lines_make_no_column(run, folder):
    lines = (folder / "flowers.csv").read_text().splitlines()
    (folder / "ends.csv").write_text(",\n".join(lines) + ",\n")
    line = ("metric", "ends.csv", "--label", "species", "--no-verdict", "--json")
    _, out, err = run(*line)
    assert json.loads(out)["features"] == 4 and "1 column at the end without" in err


# --- categories, dates, useless columns ------------------------------------------------


def test_categories_alone_are_encoded(run, folder):
    as_r_writes(ships(), "ships.csv")
    status, out, err = run(
        "metric", "ships.csv", "--label", "survived", "--model", "m.gramian", "--no-verdict"
    )
    assert status == 0 and "its columns of text are encoded" in err and "samples" in out
    given = answer(run, "metric", "ships.csv", "--label", "survived", "--encode", "all")
    assert given["features"] == 2 and given["held_out"]["before"] < 0.4  # as far as one can know
    assert run("predict", "ships.csv", "--model", "m.gramian", "--out", "p.csv")[0] == 0
    answers = pd.read_csv("p.csv")["prediction"]
    assert np.mean(answers == ships()["survived"].to_numpy()) > 0.6
    assert (
        answer(run, "cluster", "ships.csv", "--drop", "survived", "--clusters", 2)["samples"] == 120
    )


def test_categories_next_to_numbers_need_encode_option(run, folder):
    ships().assign(age=np.arange(120) % 7 + 0.5).to_csv("ships.csv", index=False)
    sentence = refused(run, "metric", "ships.csv", "--label", "survived")
    assert "--encode class" in sentence and "--encode all" in sentence


def test_missing_categories_are_named_or_dropped(run, folder):
    frame = ships().assign(age=np.arange(120) % 7 + 0.5)
    frame.loc[[3, 50], "sex"] = None
    frame.to_csv("ships.csv", index=False)
    line = ("metric", "ships.csv", "--label", "survived", "--encode", "all", "--no-verdict")
    _, out, err = run(*line, "--json")
    assert "missing cells of sex are a category of their own" in err
    assert json.loads(out)["samples"] == 120
    assert answer(run, *line, "--missing", "drop", "--out", "o.csv")["samples"] == 118
    rows = pd.read_csv("o.csv")["row"]
    assert len(rows) == 118 and not {3, 50} & set(rows)


def test_categories_that_the_fit_did_not_have_are_named(run, folder):
    ships().to_csv("ships.csv", index=False)
    line = ("metric", "ships.csv", "--label", "survived", "--no-verdict", "--model", "m.gramian")
    assert run(*line)[0] == 0
    ships().iloc[:5].replace("man", "child").to_csv("new.csv", index=False)
    status, _, err = run("predict", "new.csv", "--model", "m.gramian", "--header")
    assert status == 0 and "not in the fit: child" in err


FORMS = [
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d %B %Y", "%d-%b-%Y", "%b %d %Y"),
    *("%B %d, %Y", "%a, %d %b %Y", "%A %d %B %Y", "%Y-%m-%dT00:00:00Z", "%Y/%m/%d 00:00"),
]


@given(st.dates(min_value=date(1000, 1, 1)), st.sampled_from(FORMS))
def test_common_forms_of_dates_are_read(when, form):
    text = when.strftime(form)
    assert days(text) == (when - date(1970, 1, 1)).days and date_in(text) is not None
    assert date_in(f"about {text}") is None and date_in(text[:-5].strip(" ,-/")) != date_in(text)


def test_dates_of_a_file_are_encoded(run, folder):
    when = pd.date_range("2012-01-01", periods=150).strftime("%Y/%m/%d")
    pd.read_csv("flowers.csv").assign(when=when).to_csv("dated.csv", index=False)
    line = ("metric", "dated.csv", "--label", "species", "--no-verdict", "--encode", "when")
    assert answer(run, *line)["features"] == 5
    weeks = [f"2012W{k:03d}" for k in range(150)]
    pd.read_csv("flowers.csv").assign(when=weeks).to_csv("dated.csv", index=False)
    sentence = refused(run, *line)
    assert "another text in every row" in sentence and "2024-05-31" in sentence


def test_constant_and_repeated_columns_are_named(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.assign(unit="cm", one=1, again=frame.iloc[:, 0]).to_csv("useless.csv", index=False)
    line = ("metric", "useless.csv", "--label", "species", "--no-verdict", "--encode", "unit")
    err = " ".join(run(*line)[2].split())
    assert "each of the columns unit, one has one value in all rows" in err
    assert "'again' repeats 'sepal length (cm)'" in err and "--drop again" in err
    assert run("metric", "flowers.csv", "--label", "species", "--no-verdict")[2] == ""


# --- rows that are left out ------------------------------------------------------------


def test_rows_with_gaps_are_skipped_by_predict_with_their_numbers(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.iloc[[2, 7], 1] = None
    frame.to_csv("gaps.csv", index=False)
    line = ("metric", "gaps.csv", "--label", "species", "--missing", "drop", "--no-verdict")
    assert run(*line, "--model", "m.gramian", "--out", "o.csv")[0] == 0
    assert pd.read_csv("o.csv")["row"].tolist()[:3] == [0, 1, 3]
    status, _, err = run("predict", "gaps.csv", "--model", "m.gramian", "--out", "p.csv")
    assert status == 0 and "2 rows with missing cells left out" in err
    answers = pd.read_csv("p.csv")
    assert len(answers) == 148 and not {2, 7} & set(answers["row"])
    run("transform", "gaps.csv", "--model", "m.gramian", "--out", "t.csv")
    assert pd.read_csv("t.csv")["row"].tolist() == answers["row"].tolist()
    frame.iloc[:, 0] = np.nan
    frame.to_csv("empty.csv", index=False)
    assert "every row" in refused(run, "predict", "empty.csv", "--model", "m.gramian", "--header")


def test_report_reads_the_same_files_as_predict(run, folder):
    frame = pd.read_csv("flowers.csv").assign(name=[f"flower {k}" for k in range(150)])
    frame = frame.assign(colour=np.where(np.arange(150) % 2, "red", "blue"))
    frame.iloc[3, 1] = None
    frame.loc[9, "species"] = None
    frame.to_csv("text.csv", index=False)
    line = ("metric", "text.csv", "--label", "species", "--drop", "name", "--encode", "colour")
    assert run(*line, "--missing", "drop", "--no-verdict", "--model", "m.gramian")[0] == 0
    status, _, err = run("report", "m.gramian", "--data", "text.csv", "--label", "species")
    assert status == 0, err
    assert (folder / "m.html").exists()


# --- the verdict -----------------------------------------------------------------------


def test_verdict_starts_with_the_kept_euclidean_metric(run, folder):
    """The folds select other weights than the model, which keeps the Euclidean metric."""
    load_breast_cancer(as_frame=True).frame.to_csv("cells.csv", index=False)
    line = ("metric", "cells.csv", "--label", "target", "--method", "kta", "--model", "m.gramian")
    facts = answer(run, *line)
    kept = gm.load("m.gramian")[1]
    assert kept.lam_ == 0 and keeps_euclid(kept)
    assert facts["verdict"].startswith(EUCLID_KEPT)
    assert facts["held_out"]["before"] == facts["held_out"]["after"]
    line = line[:-2]
    assert answer(run, *line, "--no-verdict")["verdict"].startswith(EUCLID_KEPT)
    frame = pd.read_csv("cells.csv").iloc[::5]
    frame.to_csv("test.csv", index=False)
    assert answer(run, *line, "--test", "test.csv")["verdict"].startswith(EUCLID_KEPT)


def test_folds_that_keep_euclid_are_counted(monkeypatch):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    model = KTA(lam=1e-3).fit(X, y)
    assert "kept the Euclidean metric" not in verdict_of_metric(model, X, y).sentence
    monkeypatch.setattr("gramian.app.verdict.metric.keeps_euclid", lambda other: other is not model)
    assert "of which 5 kept the Euclidean metric" in verdict_of_metric(model, X, y).sentence


def test_euclid_is_a_multiple_of_the_identity():
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    assert keeps_euclid(KTA(lam=0).fit(X, y)) and not keeps_euclid(KTA(lam=1e-3).fit(X, y))
    assert not keeps_euclid(KTA(lam=0, n_components=2).fit(X, y))  # principal components
    wide = np.random.default_rng(0).standard_normal((10, 20))
    assert keeps_euclid(KTA(lam=0).fit(wide, np.arange(10) % 2))  # all of it within their span


def test_the_verdict_of_a_kept_metric_fits_no_other(monkeypatch):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    model = KTA(lam=0).fit(X, y)
    monkeypatch.setattr(KTA, "fit", lambda *given: pytest.fail("another model was fitted"))
    found = verdict_of_metric(model, X, y)
    assert found.before == found.after and found.held_out == 150


def test_rejects_the_training_file_as_test_file(run, folder):
    line = ("metric", "flowers.csv", "--label", "species", "--test")
    assert "learned from" in refused(run, *line, "./flowers.csv")


def test_equally_near_samples_are_drawn_fairly(run, folder):
    """Rows sorted by class would all be predicted as the first class."""
    frame = pd.DataFrame({"a": np.repeat([0.0, 1.0], 60), "b": 0.0})
    frame["y"] = np.r_[np.repeat("no", 10), np.repeat("yes", 50), np.repeat("no", 60)]
    frame.to_csv("ties.csv", index=False)
    facts = answer(run, "metric", "ties.csv", "--label", "y", "--model", "m.gramian")
    assert facts["held_out"]["before"] < 0.2
    run("predict", "ties.csv", "--model", "m.gramian", "--out", "p.csv")
    assert np.mean(pd.read_csv("p.csv")["prediction"] == frame["y"]) > 0.85


def test_ctrl_c_in_the_verdict_ends_with_130_and_no_verdict(run, folder, monkeypatch):
    def judged(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("gramian.app.cli.metric.verdict_of_metric", judged)
    line = (
        "metric",
        "flowers.csv",
        "--label",
        "species",
        "--model",
        "m.gramian",
        "--force",
        "--json",
    )
    status, out, _ = run(*line)
    assert status == 130 and (folder / "m.gramian").exists()
    assert "interrupted from the keyboard" in json.loads(out)["verdict"]
    monkeypatch.setattr("gramian.app.cli.metric.verdict_of_metric", lambda *a, **k: HEARD.set())
    status, out, _ = run(*line)  # a fold whose fit took the interrupt and went on
    assert status == 130 and "interrupted from the keyboard" in json.loads(out)["verdict"]


def test_embedding_reports_changes_of_distances(run, folder):
    facts = answer(run, "embed", "points.csv")
    assert "Distances between neighbours change by" in facts["verdict"]
    assert "(median)" in facts["verdict"] and "(largest)" in facts["verdict"]
    frame = pd.read_csv("points.csv")
    frame["x"] *= 1e3
    frame.to_csv("scales.csv", index=False)
    assert "kept" not in run("embed", "--help")[1].split("Options")[0]
    fitted = gm.manifold.MVU().fit(frame.to_numpy()[:60])
    assert edge_errors(fitted).shape == (len(fitted.graph_.edges),)


# --- links -----------------------------------------------------------------------------


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


def test_links_name_the_rows_of_the_file_where_some_are_left_out(run, moons):
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


# --- ratings ---------------------------------------------------------------------------


def test_ratings_with_gaps_can_be_left_out(run, folder):
    frame = ratings()
    frame.loc[[1, 4], "item"] = None
    frame.loc[6, "rating"] = None
    frame.to_csv("gaps.csv", index=False)
    line = ("complete", "gaps.csv", "--no-verdict")
    refused(run, *line)
    assert answer(run, *line, "--missing", "drop")["ratings"] == len(frame) - 3
    assert "3 rows lack a cell" in run(*line, "--missing", "drop")[2]


def test_titles_are_kept_in_the_model(run, folder):
    frame = ratings()
    codes, items = pd.factorize(frame["item"])
    frame.assign(item=codes + 100, film=frame["item"]).to_csv("films.csv", index=False)
    line = ("complete", "films.csv", "--columns", "user,item,rating", "--no-verdict")
    assert answer(run, *line, "--titles", "film", "--model", "m")["titles"] == len(items)
    rows = answer(run, "recommend", "alice", "--model", "m", "-n", 2)["rows"]
    assert all(row["title"] == items[row["item"] - 100] for row in rows)
    films = pd.DataFrame({"movieId": np.arange(len(items)) + 100, "title": items + "!"})
    films.to_csv("movies.csv", index=False)
    assert answer(run, *line, "--titles", "movies.csv", "--model", "n")["titles"] == len(items)
    rows = answer(run, "recommend", "alice", "--model", "n", "-n", 2)["rows"]
    assert all(row["title"] == items[row["item"] - 100] + "!" for row in rows)
    run(*line, "--model", "o")
    line = ("recommend", "alice", "--model", "o", "-n", 2, "--titles", "movies.csv")
    run(*line, "--out", "o.csv")
    assert pd.read_csv("o.csv")["title"].tolist() == [row["title"] for row in rows]
    line = ("complete", "films.csv", "--columns", "user,item,rating", "--titles", "no")
    assert "neither a column" in refused(run, *line)


def test_messages_name_users_instead_of_rows(run, folder):
    run("complete", "ratings.csv", "--model", "m", "--no-verdict")
    facts = answer(run, "evaluate", "ratings.csv", "--model", "m")
    assert "rows" not in facts and facts["users"] > 0
    twice = pd.concat([ratings(), ratings().iloc[:1]])
    twice.to_csv("twice.csv", index=False)
    sentence = refused(run, "complete", "twice.csv")
    assert "user" in sentence and "item" in sentence and "row" not in sentence


# --- one style -------------------------------------------------------------------------


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


def test_damaged_archives_have_readable_errors(run, folder):
    for name in ("m.gramian", "book.xlsx", "arrays.npz"):
        (folder / name).write_bytes(b"PK\x03\x04 nonsense")
        assert "BadZipFile" not in refused(run, "info", name)
    assert "gramian model" in refused(run, "info", "m.gramian")
    assert not zipfile.is_zipfile("m.gramian")


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


# --- stumbles of a new user --------------------------------------------------------------


def cars() -> pd.DataFrame:
    """A table with names, dates, classes and missing cells."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["weight", "power"])
    frame.loc[3, "power"] = np.nan
    return frame.assign(
        name=[f"car {k % 29}" for k in range(30)],
        year=[f"19{70 + k % 5}-01-01" for k in range(30)],
        origin=np.resize(["USA", "Japan"], 30),
    )


def test_refusal_of_text_columns_names_all_options_at_once(run, folder):
    cars().to_csv("cars.csv", index=False)
    line = ("metric", "cars.csv", "--label", "origin")
    assert refused(run, *line).endswith(
        "other columns have missing cells; all at once: add --encode year --drop name "
        "--missing median"
    )
    said = refused(run, *line, "--missing", "median")
    assert said.endswith("all at once: add --encode year --drop name")
    options = ("--encode", "year", "--drop", "name", "--missing", "median", "--no-verdict")
    assert answer(run, *line, *options)["samples"] == 30


def test_one_option_is_not_repeated(run, folder):
    cars().drop(columns="name").fillna(0.0).to_csv("cars.csv", index=False)
    assert "all at once" not in refused(run, "metric", "cars.csv", "--label", "origin")


def test_method_reports_kept_euclidean_metric_with_many_classes(run, folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    frame.assign(amount=rng.permutation(120) % 50).to_csv("amounts.csv", index=False)
    facts = answer(run, "metric", "amounts.csv", "--label", "amount")
    assert facts["verdict"].startswith(EUCLID_KEPT)
    assert facts["method"] == "auto (the Euclidean metric)"


@pytest.mark.parametrize(("left", "folds"), [(np.inf, 5), (1.0, 1)])
def test_folds_are_held_out_within_the_time_limit(monkeypatch, left, folds):
    clocks = SimpleNamespace(now=clock.now, phase=clock.phase, left=lambda: left)
    clocks.elapsed = lambda started: 3.0
    monkeypatch.setattr("gramian.app.verdict.metric.clock", clocks)
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target
    model = KTA(lam=0.1).fit(X, y)
    assert f"({folds} of 5 folds" in verdict_of_metric(model, X, y).sentence


def test_an_untested_verdict_has_the_error_by_which_the_learner_was_chosen():
    errors = np.array([0.2, 0.05])
    path = SimpleNamespace(nested_error=0.1, errors=errors, measure="error", held_out=1500)
    assert str(with_selection(untested("time"), path)).endswith(
        "time. The learner was chosen by the error: 20.0 % → 10.0 % of 1,500 samples."
    )
    assert with_selection(untested("time"), None) == untested("time")
    tested = replace(untested("time"), measure="3-NN error")
    assert with_selection(tested, path) is tested


def test_one_row_is_singular_in_the_verdict():
    wrong = np.zeros((10, 2))
    wrong[0, 0], wrong[1:4, 1] = 1, 1
    assert "; 1 row became right and 3 wrong" in of_errors(wrong, "3-NN", "1 of 5 folds").sentence


def test_recommend_names_the_kind_of_another_model(run, folder):
    run("metric", "flowers.csv", "--label", "species", "--method", "kta", "--model", "m.gramian")
    said = refused(run, "recommend", "3", "--model", "m.gramian")
    assert "m.gramian is a model of samples, not of ratings" in said


def test_reports_invalid_cell_in_a_column_of_dates(run, folder):
    when = pd.date_range("2024-01-01", periods=150).strftime("%Y-%m-%d").tolist()
    when[5] = "unknown"
    pd.read_csv("flowers.csv").assign(when=when).to_csv("dated.csv", index=False)
    line = ("metric", "dated.csv", "--label", "species")
    said = refused(run, *line)
    assert "'when' has 'unknown' in line 7 (most of its cells are dates: leave such" in said
    said = refused(run, *line, "--encode", "when")
    assert "column 'when' has 'unknown' in line 7 among dates: leave such cells empty" in said


def test_ambiguous_dates_are_reported_with_their_column(run, folder):
    when = [f"{k % 12 + 1}/{k % 12 + 1}/2020" for k in range(150)]
    pd.read_csv("flowers.csv").assign(when=when).to_csv("dated.csv", index=False)
    said = refused(run, "metric", "dated.csv", "--label", "species", "--encode", "when")
    assert "'when' has dates like 1/1/…, which can be read either way" in said


def test_constant_text_is_to_be_left_out(run, folder):
    pd.read_csv("flowers.csv").assign(unit="cm").to_csv("unit.csv", index=False)
    said = refused(run, "metric", "unit.csv", "--label", "species")
    assert "--drop unit leaves it out, as it has one value in all rows" in said
    assert "--encode unit" not in said


@pytest.mark.parametrize("command", [("metric",), ("embed",), ("cluster", "--clusters", "2")])
def test_one_row_is_not_enough(run, folder, command):
    (folder / "one.csv").write_text("a,b,kind\n1,2,x\n")
    name, *more = command
    said = refused(run, name, "one.csv", "--label", "kind", *more)
    assert said == "gramian: one.csv has only one row; learning needs at least two"


def test_repeated_users_of_a_file_are_listed_once(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--model", "m", "--no-verdict")[0] == 0
    ratings()[["user", "item"]].head(30).to_csv("users.csv", index=False)
    rows = answer(run, "recommend", "--users", "users.csv", "--model", "m", "-n", 1)["rows"]
    users = [row["user"] for row in rows]
    assert len(users) == len(set(users)) == ratings()["user"].head(30).nunique()


def test_rejects_matrices_of_other_commands_and_names_the_right_option(run, folder):
    assert "points.csv has 120 rows and 3 columns" in refused(run, "eigen", "points.csv")
    said = refused(run, "solve", "correlations.csv")
    assert "a matrix is given with --entries, -A, -B or -C" in said
    (folder / "bad.dat-s").write_text("nonsense\n")
    assert "--entries" not in refused(run, "solve", "bad.dat-s")


def test_an_html_page_is_named(run, folder):
    (folder / "data.csv").write_text("<!DOCTYPE html>\n<html><body>a, b</body></html>\n")
    assert "data.csv is an HTML page and no table" in refused(run, "info", "data.csv")


def test_many_small_classes_are_noted_in_our_words(run, folder):
    frame = pd.read_csv("flowers.csv").drop(columns="species")
    frame.assign(name=[f"flower {k % 100}" for k in range(150)]).to_csv("names.csv", index=False)
    _, _, err = run("metric", "names.csv", "--label", "name", "--method", "kta", "--no-verdict")
    said = " ".join(err.split())
    assert "'name' has 100 classes in 150 rows: nothing can be learned" in said
    assert "regression" not in said


def test_minus_one_is_unknown_or_a_class(run, folder):
    frame = FLOWERS.data.assign(label=FLOWERS.target - 1)
    frame.iloc[::2].to_csv("train.csv", index=False)
    frame.iloc[1::2].to_csv("test.csv", index=False)
    line = ("metric", "train.csv", "--label", "label", "--method", "kta", "--test", "test.csv")
    status, _, err = run(*line, "--json")
    note = "25 rows with 'label' -1 left out, as rows of unknown class: --unknown none makes -1"
    assert status == 0 and " ".join(err.split()).count("unknown class") == 1 and note in err
    found = answer(run, *line, "--unknown", "none", "--model", "m.gramian")
    assert found["classes"] == 3 and found["held_out"]["held_out"] == 75
    assert run("predict", "test.csv", "--model", "m.gramian", "--out", "p.csv")[0] == 0
    assert set(pd.read_csv("p.csv").prediction) == {-1, 0, 1}


def test_rows_of_unknown_class_in_the_test_file_are_left_out(run, folder):
    frame = FLOWERS.data.assign(label=FLOWERS.target - 1)
    frame.iloc[::2].to_csv("train.csv", index=False)
    frame.iloc[1::2].to_csv("test.csv", index=False)
    line = ("metric", "train.csv", "--label", "label", "--method", "kta", "--test", "test.csv")
    assert answer(run, *line)["held_out"]["held_out"] == 50


def test_an_index_in_another_order_is_left_out(run, folder):
    """The index of rows that were sorted by class would predict the class."""
    shuffled = ships().sample(frac=1, random_state=0)
    shuffled.drop(columns=shuffled.columns[0]).to_csv("shuffled.csv")
    line = ("metric", "shuffled.csv", "--label", shuffled.columns[-1], "--encode", "all")
    status, _, err = run(*line, "--method", "kta", "--no-verdict")
    assert status == 0 and "no name and numbers the rows, and is left out" in err


def test_empty_columns_at_the_end_are_left_out(run, folder):
    lines = (folder / "flowers.csv").read_text().splitlines()
    (folder / "wide.csv").write_text("\n".join(line + ",,," for line in lines))
    status, _, err = run("metric", "wide.csv", "--label", "species", "--method", "kta",
                         "--no-verdict")  # fmt: skip
    assert status == 0 and "3 columns at the end without a name or a cell left out" in err


def test_a_column_that_costs_most_rows_is_named(run, folder):
    frame = FLOWERS.data.assign(species=FLOWERS.target, comment_length=np.nan)
    frame.loc[::30, "comment_length"] = range(5)
    frame.loc[[0, 30], "comment_length"] = 9, 8
    frame.loc[1, frame.columns[0]] = np.nan
    frame.to_csv("gaps.csv", index=False)
    _, _, err = run("metric", "gaps.csv", "--label", "species", "--method", "kta", "--missing",
                    "drop", "--no-verdict")  # fmt: skip
    assert "144 rows lack only the cell of comment_length: --drop comment_length keeps them" in err


def test_error_for_matrices_does_not_mention_table_options(run, folder):
    (folder / "gap.csv").write_text("a,b\n1,\n,1\n")
    (folder / "skew.csv").write_text("a,b\n1,2\n3,1\n")
    assert "gap.csv has missing cells" in refused(run, "eigen", "gap.csv")
    assert "write (K + Kᵀ)/2 if that is meant" in refused(run, "eigen", "skew.csv")
    assert "a matrix has numbers only" in refused(run, "eigen", "flowers.csv")


def test_rejects_missing_ratings_and_names_the_option(run, folder):
    text = (folder / "ratings.csv").read_text().splitlines()
    text[3] = text[3].rpartition(",")[0] + ","
    (folder / "gap.csv").write_text("\n".join(text))
    said = refused(run, "complete", "gap.csv")
    assert "no cell in line 4" in said and "--missing drop leaves out such rows" in said


def test_recommend_names_the_written_file(run, folder):
    assert run("complete", "ratings.csv", "--model", "r.gramian", "--no-verdict")[0] == 0
    out = run("recommend", "alice", "--model", "r.gramian", "--top", 2, "--out", "r.csv")[1]
    assert out.strip() == "2 rows written to r.csv"


def test_rejects_time_limits_that_are_not_positive(run, folder):
    said = refused(run, "metric", "flowers.csv", "--label", "species", "--time-limit", -1)
    assert "not in the range x>0" in said


def test_a_column_that_counts_the_rows_is_left_out(run, folder):
    """The rows of many sets are sorted by class, so that the number of a row predicts it."""
    frame = pd.read_csv("flowers.csv")
    frame.insert(0, "Id", range(1, len(frame) + 1))
    frame.to_csv("ids.csv", index=False)
    line = ("metric", "ids.csv", "--label", "species", "--method", "kta", "--no-verdict")
    status, out, err = run(*line, "--model", "m.gramian", "--json")
    assert status == 0 and json.loads(out)["features"] == 4
    assert "left out columns of row numbers: Id" in err
    assert run("predict", "ids.csv", "--model", "m.gramian", "--out", "p.csv")[0] == 0
    frame[["Id", "species"]].to_csv("alone.csv", index=False)
    assert answer(run, "metric", "alone.csv", *line[2:])["features"] == 1


def test_a_fitted_column_is_kept_if_it_counts_the_rows_of_the_test_file(run, folder):
    frame = pd.read_csv("flowers.csv").iloc[::10].assign(age=np.arange(15) % 4)
    frame.to_csv("train.csv", index=False)
    frame.iloc[[0, 1, 6, 11]].assign(age=range(4)).to_csv("test.csv", index=False)
    line = ("metric", "train.csv", "--label", "species", "--method", "kta", "--test", "test.csv")
    assert answer(run, *line)["held_out"]["held_out"] == 4


def test_missing_files_are_reported_alike(run, folder):
    for line in (("info", "no.gramian"), ("info", "gone.csv"), ("report", "no.gramian")):
        assert "there is no such file or folder; check the name" in refused(run, *line)
