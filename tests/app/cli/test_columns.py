"""Columns go by the names of the fit in every file that a saved model is given, or are refused."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import gramian as gm
from tests.app.cli.data import ratings
from tests.slow import slow_except

STAMPED = ["when", "rating", "item", "user"]


def predicted(run, file, *more):
    """The predictions for a file as a frame, and what was said of it."""
    status, _, err = run("predict", file, "--model", "m", *more, "--out", "p.csv", "--force")
    assert status == 0, err
    return pd.read_csv("p.csv"), err


def refused(run, *arguments):
    """The sentence by which a command is refused."""
    status, out, err = run(*arguments)
    assert status == 2 and out == "" and "Traceback" not in err
    return " ".join(err.split())


@pytest.fixture
def stamped(run, folder):
    """A model of ratings from a file that begins with the time, and what it says of ten pairs."""
    frame = ratings().assign(when=range(len(ratings())))[STAMPED]
    frame.to_csv("stamped.csv", index=False)
    assert run("complete", "stamped.csv", "--lam", 5, "--no-verdict", "--model", "m")[0] == 0
    few = frame.head(10)
    few.to_csv("few.csv", index=False)
    return few, gm.load("m").predict((few["user"], few["item"]))


@pytest.mark.parametrize(
    "columns",
    [STAMPED, ["user", "item"], ["item", "user"], ["item", "rating", "user", "when"]],
    ids=" ".join,
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_pairs_are_read_by_the_column_names_of_the_fit(columns, ending, stamped, run):
    few, expected = stamped
    given = few[columns]
    given.to_csv("pairs.csv", index=False)
    given.to_parquet("pairs.parquet")
    found, err = predicted(run, f"pairs.{ending}")
    assert found["user"].tolist() == few["user"].tolist()
    assert found["item"].tolist() == few["item"].tolist()
    np.testing.assert_allclose(found["prediction"], expected)
    assert found["known"].all() and err == ""


def test_arrays_are_read_by_the_names_of_the_fit(stamped, run):
    few, expected = stamped
    np.savez("pairs.npz", item=few["item"].to_numpy(str), user=few["user"].to_numpy(str))
    np.testing.assert_allclose(predicted(run, "pairs.npz")[0]["prediction"], expected)


def test_pairs_without_the_names_of_the_fit_need_columns_option(stamped, run):
    few, expected = stamped
    few.rename(columns={"user": "who"}).to_csv("pairs.csv", index=False)
    assert "lacks what the model was fitted to: user; it has when, rating, item, who" in refused(
        run, "predict", "pairs.csv", "--model", "m"
    )
    found, _ = predicted(run, "pairs.csv", "--columns", "who,item")
    np.testing.assert_allclose(found["prediction"], expected)
    few[["item", "user"]].to_csv("pairs.csv", index=False, header=False)
    sentence = refused(run, "predict", "pairs.csv", "--model", "m")
    assert "no header with user and item" in sentence and "--columns" in sentence
    found, _ = predicted(run, "pairs.csv", "--columns", "1,0")
    np.testing.assert_allclose(found["prediction"], expected)
    scipy.io.mmwrite("pairs.mtx", sp.eye(3))
    assert "is a matrix" in refused(run, "predict", "pairs.mtx", "--model", "m")
    assert "two names" in refused(run, "predict", "few.csv", "--model", "m", "--columns", "user")


def test_model_without_names_uses_positions_only_without_a_header(run, folder):
    frame = ratings().assign(when=1)[["item", "user", "rating", "when"]]
    frame.to_csv("bare.csv", index=False, header=False)
    status, _, err = run("complete", "bare.csv", "--columns", "1,0,2", "--lam", 5, "--model", "m")
    assert status == 0, err
    assert gm.load("m").columns_ == (1, 0, 2)
    few = frame.head(10)
    expected = gm.load("m").predict((few["user"], few["item"]))
    few.to_csv("few.csv", index=False, header=False)
    np.testing.assert_allclose(predicted(run, "few.csv")[0]["prediction"], expected)
    few[["when", "item", "user"]].to_csv("few.csv", index=False)  # said by the names themselves
    np.testing.assert_allclose(predicted(run, "few.csv")[0]["prediction"], expected)
    few.rename(columns={"user": "u", "item": "i"}).to_csv("few.csv", index=False)
    assert "has a header and the model was fitted without" in refused(
        run, "predict", "few.csv", "--model", "m"
    )
    found, _ = predicted(run, "few.csv", "--columns", "u,i")
    np.testing.assert_allclose(found["prediction"], expected)
    few[["user", "item"]].to_csv("few.csv", index=False)  # text above text, and swapped
    np.testing.assert_allclose(predicted(run, "few.csv")[0]["prediction"], expected)


def test_rejects_pairs_that_are_all_unknown(run, folder):
    ratings().to_csv("bare.csv", index=False, header=False)
    assert run("complete", "bare.csv", "--lam", 5, "--no-verdict", "--model", "m")[0] == 0
    ratings()[["item", "user"]].head(5).to_csv("swapped.csv", index=False, header=False)
    assert "are these the right columns?" in predicted(run, "swapped.csv")[1]


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["who", "what", "stars"], 0),
        (["who", "movie", "value"], 0),
        (["movie", "who", "stars"], 2),  # one says what it is, in another's place
        (["when", "who", "what", "value"], 2),
        (["user", "user_name", "item", "rating"], 2),
    ],
)
def test_asks_for_columns_option_if_names_are_unclear(names, status, run, folder):
    frame = ratings() if len(names) == 3 else ratings().assign(more=1)
    frame.set_axis(names, axis=1).to_csv("r.csv", index=False)
    done, _, err = run("complete", "r.csv", "--lam", 5)
    assert done == status and "--columns" in err


def test_ids_are_kept_with_pairs(stamped, run):
    found, _ = predicted(run, "few.csv", "--id", "when")
    assert list(found.columns) == ["when", "user", "item", "prediction", "known"]
    assert found["when"].tolist() == list(range(10))


def test_info_shows_the_columns_of_ratings(stamped, run):
    facts = json.loads(run("info", "m", "--json")[1])
    assert facts["columns"] == ["user", "item", "rating"]


# --- samples ---------------------------------------------------------------------------

FITS = {
    "metric": "metric flowers.csv --label species --no-verdict --method kta",
    "metric as is": "metric flowers.csv --label species --as-is",
    "metric filled": "metric flowers.csv --label species --missing median",
    "cluster": "cluster flowers.csv --label species",
    "cluster standardized": "cluster flowers.csv --label species --standardize",
    "embed": "embed flowers.csv --drop species",
    "embed standardized": "embed flowers.csv --drop species --standardize",
}


@pytest.mark.parametrize("name", slow_except(FITS, "metric", "embed"))
def test_features_are_matched_by_the_names_of_the_fit(name, run, folder):
    fit = FITS[name]
    limit = 1 if fit.startswith("embed") else 30  # an embedding cut short is one, too
    assert run(*fit.split(), "--model", "m", "--time-limit", limit)[0] in (0, 3)
    answer = "transform" if fit.startswith("embed") else "predict"
    status, expected, err = run(answer, "new.csv", "--model", "m")
    assert status == 0 and err == ""
    frame = pd.read_csv("new.csv")
    shuffled = frame.iloc[:, ::-1].assign(note="text")
    shuffled.to_csv("new.csv", index=False)
    status, found, err = run(answer, "new.csv", "--model", "m")
    assert status == 0 and found == expected
    assert "left out: note" in err
    frame.iloc[:, 1:].to_csv("new.csv", index=False)
    assert f"lacks what the model was fitted to: {frame.columns[0]}" in refused(
        run, answer, "new.csv", "--model", "m"
    )
    frame.to_csv("new.csv", index=False, header=False)
    assert "no header" in refused(run, answer, "new.csv", "--model", "m")
    scipy.io.mmwrite("new.mtx", sp.coo_matrix(frame.to_numpy()))
    assert "no names of columns" in refused(run, answer, "new.mtx", "--model", "m")


def test_model_fitted_without_a_header_rejects_a_header(run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.to_csv("bare.csv", index=False, header=False)
    assert run("metric", "bare.csv", "--label", "-1", "--model", "m")[0] == 0
    frame.drop(columns="species").to_csv("new.csv", index=False, header=False)
    assert run("predict", "new.csv", "--model", "m")[0] == 0
    assert "lacks what the model was fitted to: x0" in refused(
        run, "predict", "flowers.csv", "--model", "m"
    )


def test_sparse_models_match_columns_by_order_with_a_note(run, folder):
    frame = pd.read_csv("points.csv")
    scipy.io.mmwrite("points.mtx", sp.coo_matrix(frame.to_numpy()))
    assert run("embed", "points.mtx", "--model", "m", "--time-limit", 2)[0] in (0, 3)
    status, _, err = run("transform", "points.csv", "--model", "m")
    assert status == 0 and "are matched by their order" in err


@pytest.mark.parametrize("scaled", ["--standardize", "--as-is"])
def test_test_samples_are_matched_by_name(scaled, run, folder):
    frame = pd.read_csv("flowers.csv")
    frame.iloc[::2].to_csv("train.csv", index=False)
    frame.iloc[1::2].to_csv("test.csv", index=False)
    fit = ("metric", "train.csv", "--label", "species", scaled, "--method", "kta",
           "--test", "test.csv", "--json")  # fmt: skip
    expected = json.loads(run(*fit)[1])["test_error_after"]
    frame.iloc[1::2, ::-1].assign(more=1).to_csv("test.csv", index=False)
    status, out, err = run(*fit)
    assert status == 0, err
    assert json.loads(out)["test_error_after"] == expected and "left out: more" in err
    frame.iloc[1::2, 1:].to_csv("test.csv", index=False)
    assert "lacks what the model was fitted to: sepal length (cm)" in refused(run, *fit)


def test_order_of_samples_in_a_link_does_not_matter(run, folder):
    links = pd.read_csv("same.csv", header=None, names=["a", "b"])
    cluster = ("cluster", "points.csv", "--clusters", 2, "--must-link", "l.csv")
    cluster = (*cluster, "--cannot-link", "apart.csv", "--out", "c.csv", "--force")
    links.to_csv("l.csv", index=False)
    assert run(*cluster)[0] == 0
    expected = pd.read_csv("c.csv")
    links[["b", "a"]].to_csv("l.csv", index=False)
    assert run(*cluster)[0] == 0
    pd.testing.assert_frame_equal(pd.read_csv("c.csv"), expected)
    links.to_csv("l.csv")
    assert "no name, as an index has" in refused(run, *cluster)


@pytest.mark.slow
def test_output_columns_do_not_replace_input_columns(run, folder):
    frame = pd.read_csv("flowers.csv").rename(columns={"species": "cluster"})
    frame.to_csv("named.csv", index=False)
    assert run("cluster", "named.csv", "--label", "cluster", "--out", "c.csv")[0] == 0
    found = pd.read_csv("c.csv")
    assert found["cluster"].tolist() == frame["cluster"].tolist() and "cluster_" in found
    frame.assign(prediction=range(150)).to_csv("named.csv", index=False)
    fit = ("--label", "cluster", "--drop", "prediction", "--model", "m")
    assert run("metric", "named.csv", *fit)[0] == 0
    found, _ = predicted(run, "named.csv", "--id", "prediction")
    assert found["prediction"].tolist() == list(range(150)) and "prediction_" in found


def test_matrices_of_one_problem_are_in_one_order(run, folder):
    C = np.loadtxt("correlations.csv", delimiter=",")
    T = pd.DataFrame(C, columns=list("abcde"))
    T.to_csv("T.csv", index=False)
    W = pd.DataFrame(np.ones((5, 5)), columns=list("abcde"))
    W.to_csv("W.csv", index=False)
    assert run("solve", "--entries", "T.csv", "--weights", "W.csv")[0] == 0
    W[list("bacde")].to_csv("W.csv", index=False)
    sentence = refused(run, "solve", "--entries", "T.csv", "--weights", "W.csv")
    assert "W.csv are in another order than those of T.csv" in sentence


def test_a_page_of_ratings_takes_no_samples(stamped, run):
    line = ("report", "m", "--data", "few.csv", "--label", "rating")
    assert "this is a model of ratings" in refused(run, *line)
