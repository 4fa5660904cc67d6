"""The command line as people use it: every command, every printed example, every way to fail."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, make_moons
from sklearn.metrics import adjusted_rand_score

import gramian as gm
from gramian.app.cli.app import COMMANDS
from tests.app.cli.data import FLOWERS, ratings
from tests.slow import slow, slow_except


def answer(run, *arguments):
    """The JSON of a command that succeeds."""
    status, out, err = run(*arguments, "--json")
    assert status == 0, err
    return json.loads(out)


# --- each command ----------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("fitted", "line", "section"),
    [
        ("metric flowers.csv --label species", "transform new.csv", "The samples given"),
        (
            "metric flowers.csv --label species --standardize",
            "predict new.csv",
            "The samples given",
        ),
        ("embed points.csv", "transform points.csv", "The samples given"),
        ("complete ratings.csv --lam 5", "predict ratings.csv", "Predicted"),
        ("complete ratings.csv --lam 5", "recommend alice", "Recommended"),
    ],
)
def test_commands_with_a_saved_model_write_a_report(fitted, line, section, run, folder):
    assert run(*fitted.split(), "--model", "m")[0] == 0
    status, _, err = run(*line.split(), "--model", "m", "--report", "page.html")
    assert status == 0, err
    assert f"<h2>{section}</h2>" in (folder / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    "line", ["eigen kernel.npy", slow("demo"), "solve --entries correlations.csv"]
)
def test_pages_without_a_model(line, run, folder):
    status, out, err = run(*line.split(), "--report", "page.html")
    assert status == 0, err
    assert "page.html" in out
    assert 'class="verdict"' in (folder / "page.html").read_text("utf-8")


def test_embed(run, folder):
    facts = answer(run, "embed", "points.csv", "--out", "places.parquet", "--plot", "places.png",
                 "--model", "m")  # fmt: skip
    assert pd.read_parquet("places.parquet").shape == (120, 2)
    assert (folder / "places.png").read_bytes().startswith(b"\x89PNG")
    assert sum(facts["variance_kept"]) > 0.5
    assert run("transform", "points.csv", "--model", "m", "--out", "again.csv")[0] == 0
    np.testing.assert_allclose(
        pd.read_csv("again.csv"), pd.read_parquet("places.parquet"), atol=1e-8
    )


def test_embed_notes_variance_that_few_dimensions_lack(run, folder):
    noise = np.random.default_rng(0).normal(size=(40, 6))
    pd.DataFrame(noise).to_csv("noise.csv", index=False)
    assert "--method layout shows" in run("embed", "noise.csv", "--neighbors", 20)[2]
    line = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0)})
    line.to_csv("line.csv", index=False)
    assert "--method layout shows" not in run("embed", "line.csv")[2]


def test_embed_selects_the_number_of_dimensions_by_variance(run, folder):
    facts = answer(run, "embed", "points.csv", "--components", "auto", "--out", "places.csv")
    assert pd.read_csv("places.csv").shape == (120, len(facts["variance_kept"]))
    assert sum(facts["variance_kept"]) >= 0.95
    status, _, err = run("embed", "points.csv", "--components", "some")
    assert status == 2 and "a number or \"auto\", got 'some'" in err


def test_cluster_by_pairs(run, folder):
    X, y = make_moons(200, noise=0.05, random_state=0)
    pd.DataFrame(X, columns=["a", "b"]).to_csv("moons.csv", index=False)
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 200, (60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    np.savetxt("must.csv", pairs[same], fmt="%d", delimiter=",", header="i,j", comments="")
    np.savetxt("cannot.tsv", pairs[~same], fmt="%d", delimiter="\t")
    facts = answer(run, "cluster", "moons.csv", "--clusters", 2, "--must-link", "must.csv",
                 "--cannot-link", "cannot.tsv", "--out", "c.csv", "--plot", "c.png",
                 "--model", "m")  # fmt: skip
    assert (
        facts["links_kept"].split(" of ")[0] == facts["links_kept"].split(" of ")[1]
        and sum(facts["sizes"]) == 200
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
        run, "cluster", "some.csv", "--label", "species", "--standardize", "--out", "c.csv"
    )
    assert sorted(facts["labels_of_the_clusters"]) == sorted(FLOWERS.target_names)
    assert adjusted_rand_score(FLOWERS.target, pd.read_csv("c.csv")["cluster"]) > 0.6


def test_complete_and_recommend(run, folder):
    facts = answer(run, "complete", "ratings.csv", "--model", "m", "--out", "fitted.csv")
    assert facts["users"] == 30 and facts["certificate"]["relative_gap"] <= 1e-4
    assert facts["error_held_out"] < 1.0
    top = answer(run, "recommend", "alice", "--model", "m", "-n", 3)["rows"]
    seen = set(ratings().query("user == 'alice'")["item"])
    assert len(top) == 3 and not seen & {row["item"] for row in top}
    assert run("recommend", "--all", "--model", "m", "-n", 2, "--out", "all.csv")[0] == 0
    assert len(pd.read_csv("all.csv")) == 60
    pd.DataFrame({"user": ["alice", "nobody"], "item": ["film 3", "film 4"]}).to_csv(
        "pairs.csv", index=False
    )
    assert run("predict", "pairs.csv", "--model", "m", "--out", "p.csv")[0] == 0
    assert pd.read_csv("p.csv")["known"].tolist() == [1, 0]


def test_eigen_and_solve(run, folder):
    facts = answer(run, "eigen", "kernel.npy", "-k", 3, "--out", "e.npz")
    exact = np.linalg.eigvalsh(np.load("kernel.npy"))[::-1][:3]
    np.testing.assert_allclose([row["eigenvalue"] for row in facts["rows"]], exact)
    facts = answer(run, "solve", "--entries", "correlations.csv", "--out", "L.npy")
    T, L = np.loadtxt("correlations.csv", delimiter=","), np.load("L.npy")
    values, vectors = np.linalg.eigh(T)
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(L @ L.T, nearest, atol=1e-4)
    facts = answer(run, "solve", "-B", "kernel.npy", "-C", "kernel.npy", "--checkpoint", "run")
    assert facts["certificate"]["value"] == pytest.approx(0, abs=1e-6)
    assert answer(run, "info", "run")["order"] == 30


FORMATS = ["csv.gz", "tsv", "parquet", "npz", "svm", "svm.gz", "mtx"]


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
    facts = answer(run, "metric", path, *label)
    assert (facts["samples"], facts["features"], facts["classes"]) == (150, 4, 3)


def gaps(name: str = "gaps.csv") -> None:
    frame = pd.read_csv("flowers.csv").assign(plant=[f"plant {k}" for k in range(150)])
    frame.iloc[3, 0] = frame.iloc[90, 2] = None
    frame.to_csv(name, index=False)


@pytest.mark.parametrize(("missing", "rows"), [("median", 150), ("mean", 150), ("drop", 148)])
def test_missing_cells(missing, rows, run, folder):
    gaps()
    options = ("--label", "species", "--id", "plant", "--missing", missing)
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
    assert "counts the rows" in run("metric", "counted.csv", "--label", "species")[2]
    rough = pd.read_csv("points.csv") * [1, 1, 5000]
    rough.to_csv("rough.csv", index=False)
    assert "--standardize" in run("embed", "rough.csv", "--time-limit", 1)[2]


@pytest.mark.slow
def test_finds_columns_of_ratings_by_name(run, folder):
    shuffled = ratings().assign(time=range(len(ratings())))[["time", "item", "rating", "user"]]
    shuffled.to_csv("shuffled.csv", index=False)
    facts = answer(run, "complete", "shuffled.csv")
    assert facts["columns"] == ["user", "item", "rating"] and facts["users"] == 30


def test_recommends_to_users_of_a_file_and_to_new_users(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--model", "m")[0] == 0
    Path("users.csv").write_text("user\nalice\nuser 7\n")
    rows = answer(run, "recommend", "--users", "users.csv", "--model", "m", "-n", 2)["rows"]
    assert [row["user"] for row in rows] == ["alice", "alice", "user 7", "user 7"]
    alone = answer(run, "recommend", "alice", "--model", "m", "-n", 2)["rows"]
    assert rows[:2] == alone
    Path("bare.txt").write_text("alice\nbob\n")
    line = ("recommend", "--users", "bare.txt", "--format", "csv", "--model", "m")
    bare = answer(run, *line)["rows"]
    assert {row["user"] for row in bare} == {"alice", "bob"}
    Path("bare.txt").write_text("user\nalize\n")
    wrong = run(*line)
    assert wrong[0] == 2 and "did you mean 'alice'?" in wrong[2]
    frame = ratings()
    own = frame[frame["user"] == "bob"].assign(user="carol")
    own.to_csv("carol.csv", index=False)
    rows = answer(run, "recommend", "--ratings", "carol.csv", "--model", "m", "-n", 3)["rows"]
    assert [row["user"] for row in rows] == ["carol"] * 3
    assert not {row["item"] for row in rows} & set(own["item"])
    like = answer(run, "recommend", "bob", "--model", "m", "-n", 3)["rows"]
    assert [row["item"] for row in rows] == [row["item"] for row in like]
    assert "name users" in run("recommend", "--model", "m")[2]


@pytest.mark.slow
def test_a_model_of_ratings_is_evaluated(run, folder):
    frame = ratings()
    held = np.arange(len(frame)) % 5 == 0
    frame[~held].to_csv("train.csv", index=False)
    frame[held].to_csv("test.csv", index=False)
    facts = answer(run, "complete", "train.csv", "--tol", "auto", "--model", "m")
    assert facts["certificate"]["relative_gap"] <= 1e-4
    scores = answer(run, "evaluate", "test.csv", "--model", "m", "-k", 5, "--relevant", 4)
    assert scores["ratings"] == held.sum() and 0 < scores["rmse"] < 1.5
    assert all(0 <= scores[name] <= 1 for name in ("precision", "recall", "ndcg", "coverage"))
    assert "--tol" in run("complete", "train.csv", "--tol", "tight")[2]
    assert (
        answer(run, "complete", "train.csv", "--tol", "1e-2")["certificate"]["relative_gap"] <= 1e-2
    )


def test_completes_implicit_feedback(run, folder):
    frame = ratings()
    frame[frame["rating"] >= 3].assign(rating=1).to_csv("done.csv", index=False)
    facts = answer(run, "complete", "done.csv", "--method", "implicit", "--model", "m")
    assert 0 <= facts["ndcg_held_out"] <= 1 and "rmse_of_the_ratings" not in facts
    assert len(answer(run, "recommend", "alice", "--model", "m", "-n", 2)["rows"]) == 2
    assert "ndcg" in answer(run, "evaluate", "done.csv", "--model", "m")


@pytest.mark.slow
def test_predictions_of_ordinal_levels_are_levels(run, folder):
    assert run("complete", "ratings.csv", "--method", "mmmf", "--model", "m")[0] in (0, 3)
    rows = answer(run, "recommend", "alice", "--model", "m", "-n", 3)["rows"]
    assert all(row["prediction"] in set(ratings()["rating"]) for row in rows)


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


# --- what it prints --------------------------------------------------------------------


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


@pytest.mark.parametrize(("name", "line"), examples())
def test_examples_work_as_printed(name, line, run, folder):
    if "--scheduler" in line:
        pytest.skip("needs a cluster, see tests/app/cli/test_scheduler.py")
    if name in ("predict", "transform", "report"):
        assert (
            run("metric", "flowers.csv", "--label", "species", "--model", "flowers.gramian")[0] == 0
        )
    if name in ("recommend", "evaluate"):
        assert run("complete", "ratings.csv", "--lam", 5, "--model", "ratings.gramian")[0] == 0
    status, out, err = run(*line.split())
    assert status == 0, err
    assert out or "--out" in line


def test_help_names_every_command(run):
    status, out, _ = run("--help")
    assert status == 0
    assert all(f"  {name} " in out for name in COMMANDS)
    assert "Exit status" in out


def test_plain_text_when_piped(folder):
    done = subprocess.run(
        [sys.executable, "-c", "from gramian.app.cli import main; main()", "info", "flowers.csv"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "\x1b" not in done.stdout and not done.stderr
    assert "species" in done.stdout


@pytest.mark.slow
def test_silent_by_default(run, folder):
    _, _, err = run("metric", "flowers.csv", "--label", "species")
    assert err == ""
    _, _, err = run("metric", "flowers.csv", "--label", "species", "--method", "lmnn", "--progress")
    assert "the neighbours of" in err and "lmnn by auto" in err and "the certificate" in err


# --- what it refuses -------------------------------------------------------------------


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
        ("solve --entries points.csv", "square"),
        ("nonsense", "No such command"),
    ],
)
def test_errors_are_one_sentence(line, message, run, folder):
    np.savetxt("big.csv", [[0, 999]], fmt="%d", delimiter=",")
    pd.concat([ratings(), ratings()]).to_csv("twice.csv", index=False)
    gaps()
    if "ratings.gramian" in line:
        assert run("complete", "ratings.csv", "--lam", 5, "--model", "ratings.gramian")[0] == 0
    status, out, err = run(*line.split())
    assert status == 2 and out == ""
    assert message in " ".join(err.split())
    assert "Traceback" not in err


def test_exit_status_without_convergence(run, folder):
    limits = ("--time-limit", 0.001, "--tol", 1e-14)
    status, out, err = run("embed", "points.csv", *limits, "--out", "best.csv", "--json")
    assert status == 3 and "time limit" in err
    assert json.loads(out)["status"] == "time limit" and (folder / "best.csv").exists()


# --- semidefinite programs in files ----------------------------------------------------


def test_solve_a_semidefinite_program(run, folder):
    triangle = np.ones((3, 3)) - np.eye(3)
    gm.io.write_sdpa(gm.problems.maxcut(triangle), "cut.dat-s")
    facts = answer(run, "solve", "cut.dat-s", "--dual", "y.csv", "--out", "factor.npy")
    assert facts["certificate"]["value"] == pytest.approx(-2.25, rel=1e-5)
    assert facts["violation"] <= 1e-6 and len(facts["dimacs"]) == 6
    assert pd.read_csv("y.csv")["y"].sum() == pytest.approx(-2.25, rel=1e-5)
    factor = np.load("factor.npy")
    np.testing.assert_allclose(np.sum(factor**2, axis=1), 1.0, atol=1e-5)
    status, out, _ = run("solve", "cut.dat-s")
    assert status == 0 and "dimacs" in out


def test_solve_rejects_matrix_options_with_a_program(run, folder):
    gm.io.write_sdpa(gm.problems.maxcut(np.ones((2, 2))), "cut.dat-s")
    status, _, err = run("solve", "cut.dat-s", "--trace", "2")
    assert status == 2 and "whole problem" in err
    status, _, err = run("solve", "--dual", "y.npy", "--entries", "cut.dat-s")
    assert status == 2
    (folder / "bad.dat-s").write_text("1\n1\n2\n1.0\n1 1 1 5 1.0\n")
    status, _, err = run("solve", "bad.dat-s")
    assert status == 2 and "line 5" in err
