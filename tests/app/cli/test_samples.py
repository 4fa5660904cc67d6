"""Files of samples: categories, dates, missing cells, ids and other columns, for every command."""

import io
import json
import subprocess
import sys
from datetime import date

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

import gramian as gm
from gramian.app.dates import date_in, days
from gramian.app.encoders import DateEncoder
from gramian.metric import KTA
from tests.app.cli.data import (
    FLOWERS,
    answer,
    as_r_writes,
    gaps,
    interrupt,
    numbered,
    refused,
    ships,
)
from tests.slow import slow_except

FORMATS = ["csv.gz", "tsv", "parquet", "npz", "svm", "svm.gz", "mtx"]


FORMS = [
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d %B %Y", "%d-%b-%Y", "%b %d %Y"),
    *("%B %d, %Y", "%a, %d %b %Y", "%A %d %B %Y", "%Y-%m-%dT00:00:00Z", "%Y/%m/%d 00:00"),
]


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


@pytest.fixture
def messy(folder):
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "name": [f"p{k}" for k in range(n)],
            "colour": rng.choice(["red", "blue", "green"], n),
            "when": [f"2024-03-{1 + k % 28:02d}" for k in range(n)],
            "x": rng.normal(size=n),
            "y": rng.normal(size=n),
            "open": rng.choice([True, False], n),
            "class": rng.choice(["a", "b"], n),
        }
    )
    frame.to_csv("messy.csv", index=False)
    return frame


def _without(run, messy):
    line = ("embed", "messy.csv", "--drop", "name,colour,when,class", "--time-limit", 2)
    assert run(*line, "--model", "e")[0] in (0, 3)
    return refused(run, "predict", "messy.csv", "--model", "e", "--proba")


@pytest.mark.parametrize("ending", slow_except(FORMATS, "parquet", "svm.gz"))
def test_every_format(ending, run, folder):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    path, label = f"data.{ending}", ["--label", "y"]
    frame = FLOWERS.data.assign(y=y)
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "npz":
        np.savez(path, X=X, y=y)
    elif ending.startswith("svm"):
        label = []
        dump_svmlight_file(X, y, "data.svm")
        if ending.endswith("gz"):
            subprocess.run(["gzip", "data.svm"], check=True)
    elif ending == "mtx":
        scipy.io.mmwrite(path, sp.coo_matrix(X))
        assert answer(run, "embed", path)["features"] == 4
        return
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    facts = answer(run, "metric", path, *label, "--method", "kta", "--no-verdict")
    assert (facts["samples"], facts["features"], facts["classes"]) == (150, 4, 3)


@pytest.mark.parametrize(("missing", "rows"), [("median", 150), ("mean", 150), ("drop", 148)])
def test_missing_cells(missing, rows, run, folder):
    gaps()
    options = ("--label", "species", "--id", "plant", "--missing", missing, "--method", "kta",
               "--no-verdict")  # fmt: skip
    facts = answer(run, "metric", "gaps.csv", *options, "--model", "m", "--out", "mapped.csv")
    assert facts["samples"] == rows
    mapped = pd.read_csv("mapped.csv")
    assert mapped.columns[0] == "plant" and len(mapped) == rows
    status, out, err = run("predict", "gaps.csv", "--model", "m", "--id", "plant")
    if missing == "drop":
        assert status == 0 and "2 rows with missing cells left out" in err
        assert out.startswith("plant,row,prediction\n") and len(out.split("\n")) == rows + 2
    else:
        assert status == 0 and out.startswith("plant,prediction\nplant 0,")


def test_notes_suspicious_input(run, folder):
    pd.read_csv("flowers.csv").to_csv("counted.csv")
    assert "row numbers" in run("metric", "counted.csv", "--label", "species")[2]
    rough = pd.read_csv("points.csv") * [1, 1, 5000]
    rough.to_csv("rough.csv", index=False)
    assert "--standardize" in run("embed", "rough.csv", "--time-limit", 1)[2]


def test_decimal_commas_bars_and_row_names(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.to_csv("german.csv", sep=";", decimal=",", index=False)
    assert answer(run, "metric", "german.csv", "--label", "species")["features"] == 4
    frame.to_csv("bars.txt", sep="|", index=False)
    assert answer(run, "metric", "bars.txt", "--label", "species")["features"] == 4
    frame.drop(columns="species").corr().to_csv("named.csv")
    facts = answer(run, "solve", "--entries", "named.csv", "--matrix", "M.npy")
    np.testing.assert_allclose(np.load("M.npy"), frame.drop(columns="species").corr(), atol=1e-4)
    assert facts["status"] == "converged"


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


def test_categories_alone_are_encoded(run, folder):
    as_r_writes(ships(), "ships.csv")
    status, out, err = run(
        "metric", "ships.csv", "--label", "survived", "--model", "m.gramian", "--no-verdict",
        "--method", "kta",
    )  # fmt: skip
    assert status == 0 and "its columns of text are encoded" in err and "samples" in out
    line = ("metric", "ships.csv", "--label", "survived", "--encode", "all", "--method", "kta")
    given = answer(run, *line)
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


def test_missing_categories_are_reported_or_dropped(run, folder):
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


def test_reports_categories_unknown_to_the_fit(run, folder):
    ships().to_csv("ships.csv", index=False)
    line = ("metric", "ships.csv", "--label", "survived", "--no-verdict", "--model", "m.gramian")
    assert run(*line)[0] == 0
    ships().iloc[:5].replace("man", "child").to_csv("new.csv", index=False)
    status, _, err = run("predict", "new.csv", "--model", "m.gramian", "--header")
    assert status == 0 and "not in the fit: child" in err


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


def test_reports_constant_and_repeated_columns(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.assign(unit="cm", one=1, again=frame.iloc[:, 0]).to_csv("useless.csv", index=False)
    line = ("metric", "useless.csv", "--label", "species", "--no-verdict", "--encode", "unit")
    err = " ".join(run(*line)[2].split())
    assert "each of the columns unit, one has one value in all rows" in err
    assert "'again' repeats 'sepal length (cm)'" in err and "--drop again" in err
    assert run("metric", "flowers.csv", "--label", "species", "--no-verdict")[2] == ""


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
    assert "or leave out the column" in said


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


def test_an_index_in_another_order_is_left_out(run, folder):
    """The index of rows that were sorted by class would predict the class."""
    shuffled = ships().sample(frac=1, random_state=0)
    shuffled.drop(columns=shuffled.columns[0]).to_csv("shuffled.csv")
    line = ("metric", "shuffled.csv", "--label", shuffled.columns[-1], "--encode", "all")
    status, _, err = run(*line, "--method", "kta", "--no-verdict")
    assert status == 0 and "it contains a different number in each row and is left out" in err


def test_empty_columns_at_the_end_are_left_out(run, folder):
    lines = (folder / "flowers.csv").read_text().splitlines()
    (folder / "wide.csv").write_text("\n".join(line + ",,," for line in lines))
    status, _, err = run("metric", "wide.csv", "--label", "species", "--method", "kta",
                         "--no-verdict")  # fmt: skip
    assert status == 0 and "3 columns at the end without a name or a cell left out" in err


def test_reports_column_with_most_missing_cells(run, folder):
    frame = FLOWERS.data.assign(species=FLOWERS.target, comment_length=np.nan)
    frame.loc[::30, "comment_length"] = range(5)
    frame.loc[[0, 30], "comment_length"] = 9, 8
    frame.loc[1, frame.columns[0]] = np.nan
    frame.to_csv("gaps.csv", index=False)
    _, _, err = run("metric", "gaps.csv", "--label", "species", "--method", "kta", "--missing",
                    "drop", "--no-verdict")  # fmt: skip
    assert "144 rows lack only the cell of comment_length: --drop comment_length keeps them" in err


def test_omits_column_of_row_numbers(run, folder):
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


def test_keeps_fitted_column_that_has_row_numbers_in_the_test_file(run, folder):
    frame = pd.read_csv("flowers.csv").iloc[::10].assign(age=np.arange(15) % 4)
    frame.to_csv("train.csv", index=False)
    frame.iloc[[0, 1, 6, 11]].assign(age=range(4)).to_csv("test.csv", index=False)
    line = ("metric", "train.csv", "--label", "species", "--method", "kta", "--test", "test.csv")
    assert answer(run, *line)["held_out"]["held_out"] == 4


def test_all_columns_of_text_are_listed_with_their_options(run, messy):
    sentence = refused(run, "metric", "messy.csv", "--label", "class")
    for option in ("--id name", "--encode colour", "--encode when", "--drop name,colour,when"):
        assert option in sentence
    assert "open" not in sentence


def test_columns_are_left_out_several_at_once(run, messy):
    line = ("metric", "messy.csv", "--label", "class")
    facts = answer(run, *line, "--drop", "name,colour", "--drop", "when")
    assert facts["features"] == 3  # True and False are numbers


def test_categories_and_dates_are_encoded_inside_the_model(run, messy):
    line = ("metric", "messy.csv", "--label", "class", "--id", "name", "--no-verdict")
    assert answer(run, *line, "--encode", "all", "--model", "m")["features"] == 5
    messy.drop(columns="class").iloc[:9, ::-1].to_csv("new.csv", index=False)
    status, out, err = run("predict", "new.csv", "--model", "m", "--id", "name", "--proba")
    assert status == 0 and err == ""
    found = pd.read_csv(io.StringIO(out))
    assert list(found) == ["name", "prediction", "probability_a", "probability_b"]
    np.testing.assert_allclose(found.iloc[:, 2:].sum(axis=1), 1.0)
    expected = gm.load("m").predict(messy.iloc[:9].assign(open=messy["open"].astype(float)))
    assert found["prediction"].tolist() == expected.tolist()
    messy.assign(x="text").to_csv("new.csv", index=False)
    assert "numbers in the fit" in refused(run, "predict", "new.csv", "--model", "m")
    assert "without probabilities" in _without(run, messy)


@pytest.mark.parametrize("ending", slow_except(["xlsx", "jsonl", "feather", "tsv"], "jsonl"))
def test_other_formats_give_the_same_message(ending, run, messy):
    line = ("--label", "class", "--drop", "name,colour,when")
    expected = answer(run, "metric", "messy.csv", *line)["certificate"]
    {
        "xlsx": lambda: messy.to_excel("messy.xlsx", index=False),
        "jsonl": lambda: messy.to_json("messy.jsonl", orient="records", lines=True),
        "feather": lambda: messy.to_feather("messy.feather"),
        "tsv": lambda: messy.to_csv("messy.tsv", index=False, sep="\t"),
    }[ending]()
    found = answer(run, "metric", f"messy.{ending}", *line)["certificate"]
    assert found["value"] == pytest.approx(expected["value"], rel=1e-9)


def test_standard_input_is_a_file(run, messy, monkeypatch):
    text = messy.to_csv(index=False).encode()

    class Stdin:
        buffer = io.BytesIO(text)

    monkeypatch.setattr(sys, "stdin", Stdin)
    facts = answer(run, "metric", "-", "--label", "class", "--drop", "name,colour,when")
    assert facts["samples"] == 60 and facts["file"] == "standard input"
    Stdin.buffer = io.BytesIO(text)
    assert "standard input has text where numbers belong" in refused(run, "metric", "-")


def test_dates_with_times_are_dates(run, machines):
    sentence = refused(run, "metric", "machines.csv", "--label", "State")
    assert "--encode 'Measured at' makes numbers of its dates" in sentence
    line = ("metric", "machines.csv", "--label", "State", "--id", "Machine ID")
    facts = answer(run, *line, "--encode", "Measured at", "--no-verdict")
    assert facts["features"] == 4 and facts["rank"] <= 4  # a date is one number


def test_american_dates_are_dates(run, machines):
    slashes = pd.to_datetime(machines["Measured at"], format="%d.%m.%Y %H:%M")
    machines["Measured at"] = slashes.dt.strftime("%m/%d/%Y")
    machines.to_csv("machines.csv", index=False)
    line = ("metric", "machines.csv", "--label", "State", "--id", "Machine ID", "--encode", "all")
    assert answer(run, *line, "--no-verdict")["rank"] <= 4


def test_names_of_rows_are_no_categories(run, machines):
    sentence = refused(run, "metric", "machines.csv", "--label", "State", "--encode", "all")
    assert "column 'Machine ID' has another text in every row" in sentence
    assert "--id 'Machine ID'" in sentence


def test_a_text_among_numbers_does_not_make_categories(run, machines):
    machines["RPM"] = ["off" if k == 3 else str(1500 + k) for k in range(60)]
    machines["price"] = [f"{'$€'[k % 2]}{1000 + k:,}.50" for k in range(60)]
    machines.to_csv("machines.csv", index=False)
    line = ("metric", "machines.csv", "--label", "State", "--id", "Machine ID")
    sentence = refused(run, *line, "--encode", "all")
    assert "'RPM' has 'off' in line 5 (most of its cells are numbers: leave such cells" in sentence
    assert "'price' has '$1,000.50' in line 2 (write its numbers in one unit" in sentence


def test_missing_cells_are_reported_with_their_lines(run, machines):
    machines.loc[3, "Temp (°C)"] = np.nan
    machines.to_csv("machines.csv", index=False)
    line = ("metric", "machines.csv", "--label", "State", "--drop", "Machine ID,Measured at")
    assert "1 missing cell, the first in line 5, column 'Temp (°C)': pass" in refused(run, *line)
    machines.assign(empty=np.nan).to_csv("machines.csv", index=False)
    assert "--drop empty leaves out the columns without values" in refused(run, *line)
    _, _, err = run(*line, "--missing", "mean", "--no-verdict")
    assert "no values in empty: leave it out with --drop empty" in " ".join(err.split())


def test_the_index_of_a_frame_is_left_out(run, machines):
    machines.to_csv("machines.csv")
    line = ("metric", "machines.csv", "--label", "State", "--drop", "Machine ID,Measured at")
    status, out, err = run(*line, "--json", "--no-verdict")
    assert status == 0 and json.loads(out)["features"] == 3
    assert "has no name; it contains the row numbers and is left out" in " ".join(err.split())


def test_a_misspelt_column_is_reported_with_the_existing_ones(run, machines):
    sentence = refused(run, "metric", "machines.csv", "--label", "STATE")
    assert "no column 'STATE' (did you mean 'State'?): it has 'Machine ID'" in sentence


def test_the_largest_sheet_of_a_book_is_read(run, machines):
    with pd.ExcelWriter("book.xlsx") as book:
        pd.DataFrame({"info": ["made by hand"]}).to_excel(book, sheet_name="cover", index=False)
        machines.to_excel(book, sheet_name="data", index=False, startrow=2)
    line = ("metric", "book.xlsx", "--label", "State", "--id", "Machine ID", "--no-verdict")
    status, out, err = run(*line, "--encode", "all", "--json")
    assert status == 0 and json.loads(out)["features"] == 4
    assert "the largest sheet, 'data', is read; the others are 'cover'" in " ".join(err.split())


def test_rejects_free_text_as_categories(run, machines):
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice(["good", "bad", "fine", "so"], 3)) for _ in range(60)]
    machines.assign(Comment=words).to_csv("machines.csv", index=False)
    line = ("metric", "machines.csv", "--label", "State", "--id", "Machine ID", "--no-verdict")
    _, _, err = run(*line, "--encode", "all")
    assert f"column 'Comment' has {len(set(words))} different texts in 60 rows" in " ".join(
        err.split()
    )


def test_rows_without_a_label_are_left_out_with_a_note(run, machines):
    frame = pd.read_csv("flowers.csv").assign(number=np.arange(150) % 3)
    frame = frame.drop(columns="species").astype({"number": object})
    frame.loc[[4, 9], "number"] = None
    frame.to_csv("some.csv", index=False)
    frame.iloc[::2].to_csv("test.csv", index=False)
    line = ("metric", "some.csv", "--label", "number", "--no-verdict", "--method", "kta")
    status, out, err = run(*line, "--test", "test.csv", "--out", "o.csv", "--json")
    assert status == 0 and "2 rows without a label in 'number' left out" in err
    facts, found = json.loads(out), pd.read_csv("o.csv")
    assert facts["samples"] == 148 and facts["held_out"]["held_out"] == 74
    assert set(found["number"]) == {0, 1, 2} and not {4, 9} & set(found["row"])
    frame.assign(number=None).to_csv("some.csv", index=False)
    assert "the label column 'number' is empty" in refused(run, *line)


def test_a_marker_of_missing_values_is_reported_with_decimal_commas(run, folder):
    lines = [f"{k},5;{k % 7},25;{'ab'[k % 2]}" for k in range(40)]
    (folder / "comma.csv").write_text("\n".join(["x;z;kind", *lines, "k.A.;1,0;a"]))
    said = refused(run, "metric", "comma.csv", "--label", "kind")
    assert "'x' has 'k.A.' in line 42 (most of its cells are numbers" in said and "'z'" not in said


def test_months_may_be_words(run, machines):
    when = pd.to_datetime(machines["Measured at"], format="%d.%m.%Y %H:%M")
    machines["Measured at"] = when.dt.strftime("%d-%b-%y")
    machines.to_csv("machines.csv", index=False)
    line = ("metric", "machines.csv", "--label", "State", "--id", "Machine ID", "--encode", "all")
    assert answer(run, *line, "--no-verdict")["rank"] <= 4
    assert days("19-Sep-03") == days("19 September 2003") == days("2003-09-19")
    assert days("1-Jan-70") == 0.0
    with pytest.raises(ValueError, match="no date"):
        days("19-Sox-03")


def test_columns_are_encoded_by_number_where_they_have_no_names(run, machines):
    machines.to_csv("machines.csv", index=False, header=False)
    line = ("metric", "machines.csv", "--label", -1, "--drop", 0, "--no-verdict")
    facts = answer(run, *line, "--encode", 1, "--model", "m.gramian")
    assert facts["features"] == 4
    machines.drop(columns="State").to_csv("new.csv", index=False, header=False)
    status, out, _ = run("predict", "new.csv", "--model", "m.gramian")
    assert status == 0 and len(out.split()) == 61
    assert "no column '9'" in refused(run, *line, "--encode", 9)


def test_id_and_label_cannot_be_one_column(run, classes):
    said = refused(run, "metric", "abc.csv", "--label", "c", "--id", "c")
    assert "--id and --label are the same column, c" in said


def test_rejects_bad_date_and_names_its_column():
    dates = DateEncoder().fit(pd.DataFrame({"day": ["2024-05-31"], "paid": ["2024-06-01"]}))
    with pytest.raises(ValueError, match=r"^'paid': 'soon' is no date"):
        dates.transform(pd.DataFrame({"day": ["2024-05-31"], "paid": ["soon"]}))


@pytest.mark.parametrize("command", ["metric", "cluster", "embed"])
def test_reports_columns_of_ids_and_row_numbers(command, run, folder, monkeypatch):
    for kind in (KTA, gm.manifold.MVU, gm.kernel.AutoKernel):
        monkeypatch.setattr(kind, "fit", interrupt)
    numbered().to_csv("n.csv", index=False)
    more = () if command == "embed" else ("--label", "kind")
    method = ("--method", "kta") if command == "metric" else ()
    _, _, err = run(
        command, "n.csv", *more, "--drop", "kind" if command == "embed" else "b", *method
    )
    assert "'patientId', 'visit' look like an id or a row number" in err
    assert "--drop patientId,visit leaves them out" in err
    _, _, err = run(command, "n.csv", *more, *method, "--drop", "patientId,visit,kind"
                    if command == "embed" else "patientId,visit")  # fmt: skip
    assert "look" not in err


def test_counts_of_rows_are_kept_on_request(run, folder):
    frame = numbered()
    frame.insert(0, "day", np.arange(60))
    frame = frame.drop(columns=["patientId", "visit", "grid"])
    frame.to_csv("n.csv", index=False)
    line = ("metric", "n.csv", "--label", "kind", "--method", "kta", "--no-verdict", "--json")
    _, out, err = run(*line)
    assert "columns of row numbers: day (--keep day keeps it)" in err
    assert json.loads(out)["features"] == 2
    _, out, err = run(*line, "--keep", "day")
    assert json.loads(out)["features"] == 3 and "row numbers" not in err
    frame.rename(columns={"day": ""}).to_csv("n.csv", index=False)
    _, out, err = run(*line)
    assert "--keep x0 keeps it" in err and json.loads(out)["features"] == 2
    assert json.loads(run(*line, "--keep", "x0")[1])["features"] == 3
    frame.to_csv("n.csv", index=False, header=False)
    line = ("metric", "n.csv", "--label", 3, "--method", "kta", "--no-verdict", "--json")
    assert json.loads(run(*line, "--keep", 0)[1])["features"] == 3


@pytest.mark.parametrize("command", ["metric", "cluster"])
def test_error_for_continuous_label_names_the_regressor(command, run, folder, monkeypatch):
    frame = numbered()[["a", "b"]]
    frame.assign(price=(10 * frame["a"]).round(2)).to_csv("n.csv", index=False)
    sentence = refused(run, command, "n.csv", "--label", "price")
    assert "continuous quantity" in sentence and "MetricRegressor" in sentence
    frame.assign(price=(1e4 * frame["a"]).round()).to_csv("n.csv", index=False)
    assert "'price' has a different number in every row" in refused(
        run, command, "n.csv", "--label", "price"
    )
    frame.assign(price=np.arange(60) // 2).to_csv("n.csv", index=False)
    for kind in (KTA, gm.kernel.AutoKernel):
        monkeypatch.setattr(kind, "fit", interrupt)
    method = ("--method", "kta") if command == "metric" else ()
    _, _, err = run(command, "n.csv", "--label", "price", *method)
    assert "if it is a quantity, cut it into groups" in err and "MetricRegressor" in err


def test_columns_of_text_before_counts_and_large_ids(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.insert(0, "colour", np.where(np.arange(60) % 2, "red", "blue"))
    frame.assign(big=10**18 + 7 * np.random.default_rng(0).permutation(60)).to_csv(
        "n.csv", index=False
    )
    line = ("metric", "n.csv", "--label", "kind", "--encode", "colour", "--method", "kta")
    status, _, err = run(*line, "--no-verdict")
    assert status == 0 and "'big' looks like an id" in err and "colour" not in err


def test_reports_numbers_that_stand_for_missing_cells(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.loc[[3, 5], "a"] = -999
    frame.to_csv("n.csv", index=False)
    line = ("metric", "n.csv", "--label", "kind", "--method", "kta", "--no-verdict")
    assert "column 'a' has -999 in 2 rows" in run(*line)[2]
    frame.assign(a=np.arange(60) * -18.0 + 63).to_csv("n.csv", index=False)
    assert "-999" in (folder / "n.csv").read_text() and "-999" not in run(*line)[2]


@pytest.mark.parametrize("cell", ["<NA>", "na", "N.A.", "n.a.", "NaT", "#DIV/0!", "#VALUE!", r"\N"])
def test_spellings_of_missing_cells(cell, run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"]).astype({"a": object})
    frame.loc[3, "a"] = cell
    frame.to_csv("n.csv", index=False)
    assert "n.csv has 1 missing cell" in refused(run, "metric", "n.csv", "--label", "kind")


def test_reports_columns_that_repeat_the_label(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.assign(code=frame["kind"].factorize()[0] + 7).to_csv("n.csv", index=False)
    line = ("metric", "n.csv", "--label", "kind", "--method", "kta", "--no-verdict")
    said = "'code' has one value for each class of 'kind', so held-out errors are too small"
    assert said in run(*line)[2]
    assert said not in run(*line, "--drop", "code")[2]


def test_names_the_text_among_amounts(run, folder):
    """The first cell with a unit is no error."""
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame["price"] = [f"${k:,}.50" for k in range(1000, 1060)]
    frame.loc[3, "price"] = "on request"
    frame.to_csv("n.csv", index=False)
    sentence = refused(run, "metric", "n.csv", "--label", "kind")
    assert "'price' has 'on request' in line 5 (most of its cells are numbers" in sentence
    assert "remove the row if it is a total or a remark" in sentence


def test_reports_second_row_of_names(run, folder):
    rows = ["size,mass,kind", "cm,kg,text", *(f"{k},{k * k % 7},{'uv'[k % 2]}" for k in range(30))]
    (folder / "n.csv").write_text("\n".join(rows))
    sentence = refused(run, "metric", "n.csv", "--label", "kind")
    assert "line 2 may be a second header or a row of units: remove it from the file" in sentence
    assert "'cm', 'kg'" in sentence and "--missing" not in sentence and "--drop" not in sentence
    (folder / "n.csv").write_text("<table><tr><td>1</td></tr></table>")
    assert "is an HTML page" in refused(run, "metric", "n.csv", "--label", "kind")
