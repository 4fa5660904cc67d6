"""`gramian metric`, and what `predict` and `transform` make of its models."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.app.verdict import (
    EUCLID_KEPT,
)
from tests.app.cli.data import (
    FLOWERS,
    answer,
    numbered,
    refused,
)
from tests.slow import slow


def test_metric(run, folder):
    shutil.copy("flowers.csv", "test.csv")
    facts = answer(run, "metric", "flowers.csv", "--label", "species", "--out", "mapped.csv",
                 "--model", "m.gramian", "--test", "test.csv")  # fmt: skip
    assert facts["samples"] == 150 and facts["classes"] == 3
    assert facts["method"] in ("auto (LMNN)", "auto (KTA)", "auto (ClassCollapse)", "auto (DMLEig)")
    assert facts["certificate"]["relative_gap"] < 1e-3
    assert facts["test_error_after"] <= facts["test_error_before"]
    mapped = pd.read_csv("mapped.csv")
    assert mapped.shape == (150, 5) and mapped["species"].nunique() == 3
    model = gm.load("m.gramian")
    np.testing.assert_allclose(model[:-1].transform(FLOWERS.data), mapped.iloc[:, :4], rtol=1e-9)


@pytest.mark.parametrize(
    "method",
    [slow("lmnn"), slow("dml-eig"), slow("lmnn-eig"), "linear-separation", "triplets"],
)
def test_every_metric(method, run, folder):
    facts = answer(run, "metric", "flowers.csv", "--label", "species", "--method", method)
    assert facts["leave_one_out_error_after"] < 0.1


def test_predict_and_transform(run, folder):
    line = ("metric", "flowers.csv", "--label", "species", "--method", "kta", "--model", "m")
    assert run(*line)[0] == 0
    shuffled = pd.read_csv("new.csv").iloc[:, ::-1].assign(note="text")
    shuffled.to_csv("new.csv", index=False)  # columns go by their names, others are left out
    status, out, err = run("predict", "new.csv", "--model", "m")
    assert status == 0, err
    lines = out.split()
    truth = FLOWERS.target_names[FLOWERS.target[::7]]
    assert lines[0] == "prediction" and np.mean(np.array(lines[1:]) == truth) > 0.9
    status, out, err = run("transform", "new.csv", "--model", "m", "--out", "mapped.npy")
    assert status == 0 and np.load("mapped.npy").shape == (22, 4)
    assert out == "22 rows written to mapped.npy\n"


def test_rows_of_unknown_class_are_mapped_and_not_learned_from(run, folder):
    table = pd.read_csv("flowers.csv")
    kinds = pd.factorize(table["species"])[0]
    kinds[::4] = -1
    table.assign(species=kinds).to_csv("some.csv", index=False)
    facts = answer(run, "metric", "some.csv", "--label", "species", "--method", "kta",
                   "--out", "mapped.csv", "--model", "m")  # fmt: skip
    assert facts["classes"] == 3 and len(pd.read_csv("mapped.csv")) == len(table)
    status, out, _ = run("predict", "some.csv", "--model", "m")
    assert status == 0 and set(out.split()[1:]) == {"0", "1", "2"}
    assert facts["leave_one_out_error_after"] < 0.1


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


def test_method_reports_kept_euclidean_metric_with_many_classes(run, folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    frame.assign(amount=rng.permutation(120) % 50).to_csv("amounts.csv", index=False)
    facts = answer(run, "metric", "amounts.csv", "--label", "amount")
    assert facts["verdict"].startswith(EUCLID_KEPT)
    assert facts["method"] == "auto (the Euclidean metric)"


def test_many_small_classes_are_noted_in_our_words(run, folder):
    frame = pd.read_csv("flowers.csv").drop(columns="species")
    frame.assign(name=[f"flower {k % 100}" for k in range(150)]).to_csv("names.csv", index=False)
    _, _, err = run("metric", "names.csv", "--label", "name", "--method", "kta", "--no-verdict")
    said = " ".join(err.split())
    assert "nothing can be learned from classes of one row (flower 50, flower 51" in said
    assert "leave their cells of 'name' empty to leave these rows out" in said
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


def test_rejects_measurements_as_classes(run, machines):
    line = ("metric", "machines.csv", "--drop", "Machine ID,Measured at,State")
    sentence = refused(run, *line, "--label", "Temp (°C)")
    assert "continuous quantity" in sentence and "groups" in sentence


def test_rejects_classes_of_one_row_each(run, machines):
    line = ("metric", "machines.csv", "--label", "Machine ID", "--drop", "Measured at,State")
    assert "every row has a class of its own in 'Machine ID'" in refused(run, *line)


def test_rejects_entries_with_overflowing_squares_and_names_the_file(run, classes):
    classes.assign(a=classes.a * 1e300).to_csv("huge.csv", index=False)
    said = refused(run, "metric", "huge.csv", "--label", "c")
    assert "the entries of huge.csv are too large" in said


@pytest.mark.parametrize("count", [-3, 0, 30])
def test_rejects_neighbors_out_of_range_and_states_the_range(run, classes, count):
    said = refused(run, "metric", "abc.csv", "--label", "c", "--neighbors", count)
    assert f"--neighbors must be from 1 to 29, got {count}" in said


def test_classes_of_the_test_file_that_the_fit_lacks_are_noted(run, classes):
    classes[:6].assign(c=["x", "y", "new", "new", "z", "x"]).to_csv("test.csv", index=False)
    line = ("metric", "abc.csv", "--label", "c", "--method", "kta", "--test", "test.csv")
    status, _, err = run(*line)
    assert status == 0
    assert "2 rows of classes that are not in the fit count as errors: new" in " ".join(err.split())


def test_rows_that_are_known_or_repeated_are_noted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'xy'[int(c)]}" for a, b, c in rng.random((40, 3)) * [1, 1, 2]]
    Path("one.csv").write_text("\n".join(["a,b,class", *rows]))
    Path("three.csv").write_text("\n".join(["a,b,class", *rows, *rows, *rows]))
    Path("some.csv").write_text("\n".join(["a,b,class", *rows[:7], "0.5,0.5,x"]))
    known = run("metric", "one.csv", "--label", "class", "--method", "kta", "--test", "some.csv")
    assert "7 rows of some.csv also in one.csv" in known[2]
    again = run("metric", "three.csv", "--label", "class", "--method", "kta", "--no-verdict")
    assert "80 rows equal to another row" in again[2]
    once = run("metric", "one.csv", "--label", "class", "--method", "kta", "--no-verdict")
    assert "equal to another row" not in once[2]
    text = [f"{'ab'[k % 2]},{'pq'[k // 2 % 2]},{'xy'[k % 3 == 0]}" for k in range(40)]
    Path("text.csv").write_text("\n".join(["a,b,class", *text]))
    again = run("metric", "text.csv", "--label", "class", "--method", "kta", "--no-verdict")
    assert "36 rows equal to another row" in again[2]


def test_few_rows_are_described_without_options(run, folder):
    numbered(4).iloc[:3].assign(kind=["u", "u", "v"])[["a", "b", "kind"]].to_csv(
        "n.csv", index=False
    )
    sentence = refused(run, "metric", "n.csv", "--label", "kind")
    assert "n.csv has 3 rows of known class, too few" in sentence and "--neighbors" not in sentence
    asked = refused(run, "metric", "n.csv", "--label", "kind", "--neighbors", 3)
    assert "--neighbors must be from 1 to 2, got 3" in asked
    numbered(6)[["a", "b"]].to_csv("n.csv", index=False)
    verdict = answer(run, "embed", "n.csv")["verdict"]
    assert "each of the 6 samples is a neighbour of all others" in verdict
    assert "--neighbors" not in verdict


def test_a_test_file_may_have_columns_that_were_not_in_the_fit(run, folder, capsys):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.iloc[::2].assign(gone=1.0, note="x").to_csv("n.csv", index=False)
    frame.iloc[1::2].assign(more="text", day=range(30)).to_csv("t.csv", index=False)
    line = ("metric", "n.csv", "--label", "kind", "--method", "kta", "--drop", "gone,note")
    status, out, err = run(*line, "--test", "t.csv", "--json")
    assert status == 0 and json.loads(out)["held_out"]["held_out"] == 30
    assert "the model was not fitted to are left out: more, day" in err
    frame.iloc[::2].to_csv("n.csv", index=False, header=False)
    frame.iloc[1::2].to_csv("t.csv", index=False, header=False)
    status, _, err = run("metric", "n.csv", "--label", 2, "--method", "kta", "--test", "t.csv")
    assert status == 0 and "left out" not in err


def test_reports_classes_that_differ_by_case(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.loc[::3, "kind"] = frame["kind"].str.upper()
    frame.to_csv("n.csv", index=False)
    _, _, err = run("metric", "n.csv", "--label", "kind", "--method", "kta", "--no-verdict")
    assert "differ by upper and lower case only: U, V, u, v" in err


def test_the_error_of_the_commonest_class_is_shown(run, folder):
    frame = pd.read_csv("flowers.csv").iloc[30:120]
    frame.to_csv("some.csv", index=False)
    line = ("metric", "some.csv", "--label", "species", "--method", "kta", "--no-verdict")
    assert answer(run, *line)["error_of_the_commonest_class"] == pytest.approx(1 - 50 / 90)
