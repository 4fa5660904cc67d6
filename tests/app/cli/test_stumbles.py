"""Where new users stumbled: each of these failed once."""

import io
import json
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

import gramian as gm
from gramian.app.cli.exits import HEARD
from gramian.app.cli.progress import Display, shown
from gramian.app.cli.run import Run
from gramian.app.dates import days
from gramian.app.encoders import DateEncoder
from gramian.app.files import read_table
from gramian.app.verdict import (
    beyond_chance,
    of_errors,
    verdict_of_completion,
    verdict_of_metric,
    voted,
)
from gramian.common import clock
from gramian.metric import KTA
from gramian.neighbours import nearest
from tests.app.cli.data import FLOWERS, ratings
from tests.slow import slow_except


def answer(run, *arguments):
    """The JSON that a command prints."""
    status, out, err = run(*arguments, "--json")
    assert status in (0, 3), err
    return json.loads(out)


def refused(run, *arguments):
    status, out, err = run(*arguments)
    assert status == 2 and out == "" and "Traceback" not in err, err
    return " ".join(err.split())


# --- limits of time, progress, Ctrl-C --------------------------------------------------


def slow(monkeypatch, target):
    """A phase of a minute that checks the clock every 0.1 s; all else takes no time."""
    tenths = [0]
    monkeypatch.setattr(clock, "now", lambda: 0.1 * tenths[0])

    def phase(*given, **more):
        for _ in range(600):
            clock.check()
            tenths[0] += 1
        raise AssertionError("the clock was not checked")

    monkeypatch.setattr(target, phase)


def test_a_limit_holds_in_the_phases_before_the_solve(run, folder, monkeypatch):
    slow(monkeypatch, "gramian.manifold.mvu.smoothest")
    status, out, _ = run("embed", "points.csv", "--time-limit", 1, "--out", "best.csv", "--json")
    facts = json.loads(out)
    assert status in (0, 3) and facts["seconds"] < 1.2  # the solve may still fit
    assert np.ptp(pd.read_csv("best.csv").to_numpy(), axis=0).min() > 1  # the samples, flat


def test_time_limit_without_a_result_is_one_sentence(run, folder, monkeypatch):
    slow(monkeypatch, "gramian.graph.nearest")
    sentence = refused(run, "embed", "points.csv", "--time-limit", 0.3, "--out", "o.csv")
    assert clock.now() < 0.5
    assert "the time limit of 0.3 s ended" in sentence and "increase --time-limit" in sentence
    assert not (folder / "o.csv").exists()


def test_a_limit_holds_for_the_verdict(run, folder, monkeypatch):
    slow(monkeypatch, "gramian.app.verdict.metric.nearest")
    line = ("metric", "flowers.csv", "--label", "species", "--time-limit", 2, "--model", "m")
    facts = answer(run, *line)
    assert clock.now() < 2.2 and (folder / "m").exists()
    assert "the time was up" in facts["verdict"] and "leave_one_out_error_after" not in facts


def test_time_limit_before_the_first_result_writes_no_file(run, folder, monkeypatch):
    from gramian.kernel import AutoKernel

    fit = AutoKernel.fit

    def ended(self, *given, **more):
        fit(self, *given, **more)
        nothing = np.zeros((len(self.labels_), 0))
        self.result_ = replace(self.result_, factor=nothing, status=gm.Status.TIME_LIMIT)
        return self

    monkeypatch.setattr(AutoKernel, "fit", ended)
    line = ("cluster", "moons.csv", "--clusters", 2, "--cannot-link", "apart.csv", "--out", "o.csv")
    assert "ended before anything was learned" in refused(run, *line, "--time-limit", 5)
    assert not (folder / "o.csv").exists()


def test_no_verdict_is_begun_that_cannot_end_in_time():
    given = dict.fromkeys(("rank", "tol", "progress", "checkpoint", "model", "report"))
    run = Run(solver="auto", time_limit=10.0, seed=0, as_json=False, **given)
    run.seconds, run.began = 9.0, time.perf_counter() - 9.0
    said = run.judged(gm.Status.CONVERGED, lambda: pytest.fail("judged"))
    assert "the time was up" in said.sentence


def test_verdict_on_many_rows_uses_a_subset(monkeypatch):
    monkeypatch.setattr("gramian.app.verdict.metric.MOST_ASKED", 50)
    X, y = make_moons(400, noise=0.2, random_state=0)
    assert verdict_of_metric(gm.metric.KTA(), X, y).held_out == 50
    asked, called = voted(X, y, 3)
    near = nearest(X, 3).indices[asked]
    np.testing.assert_array_equal(called, y[near].sum(axis=1) >= 2)
    assert asked.size == 50


def test_all_solves_of_a_fit_share_one_limit(ticking):
    X = np.random.default_rng(0).normal(size=(400, 5))
    y = (X[:, 0] > 0).astype(int)
    ticking(0.005)
    with pytest.warns(UserWarning):
        gm.metric.LMNN(time_limit=0.5, tol=1e-14).fit(X, y)
    assert clock.now() < 1.5


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_every_phase_on_a_terminal(run, folder, monkeypatch):
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("gramian.app.cli.progress.TICK", 0.001)
    with shown(None, 20.0):
        for name in ("the neighbours of 10 samples", "the certificate"):
            clock.phase(name)
            time.sleep(0.05)
    line = terminal.getvalue()
    assert "the neighbours of 10 samples (0 s; total 0 s of 20)" in line
    assert "the certificate" in line and line.endswith("\r\x1b[2K")


def test_start_is_shown_on_a_terminal_before_the_imports(run, folder, monkeypatch):
    terminal, seen = _Terminal(), []

    def imported(name):
        seen.append(terminal.getvalue())
        return import_module(name)

    monkeypatch.setattr("gramian.app.cli.app.import_module", imported)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run("info", "points.csv")[0] == 0
    assert seen == ["gramian info: starting"]
    assert terminal.getvalue() == "gramian info: starting\r\x1b[2K"


def test_progress_is_written_to_files_only_on_request(run, folder):
    line = ("embed", "points.csv", "--time-limit", 1, "--no-verdict")
    assert "the neighbours of" not in run(*line)[2]
    asked = run(*line, "--progress")[2]
    for phase in ("reading points.csv", "the neighbours of 120 samples", "mvu by auto",
                  "the certificate"):  # fmt: skip
        assert phase in asked


def test_steps_are_shown_without_an_estimate_of_the_time_left():
    display = Display()
    display.phase("solving")
    state = gm.State(7, _Step(), {"rank": 3.0, "gap": 0.5, "time": 1.0})
    display.step(state)
    assert "step 7, F = 2, gap 5.0e-01, rank 3" in display._line() and "left" not in display._line()


class _Step:
    value, factor = 2.0, np.zeros((2, 1))


def interrupt(*given, **more):
    raise KeyboardInterrupt


def test_ctrl_c_before_the_solve_keeps_the_current_result(run, folder, monkeypatch):
    monkeypatch.setattr("gramian.manifold.mvu.smoothest", interrupt)
    status, out, err = run("embed", "points.csv", "--out", "best.csv", "--json")
    assert status == 130 and "interrupted" in err
    assert json.loads(out)["status"] == "interrupted" and len(pd.read_csv("best.csv")) == 120


def test_ctrl_c_without_result_is_reported(run, folder, monkeypatch):
    monkeypatch.setattr("gramian.graph.nearest", interrupt)
    status, _, err = run("embed", "points.csv", "--out", "best.csv")
    assert status == 130 and "nothing was written" in err and not (folder / "best.csv").exists()


def swallowing(method):
    """A fit that handles Ctrl-C and continues."""

    def fit(self, *given, **more):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return method(self, *given, **more)

    return fit


def test_ctrl_c_sets_the_exit_status_even_if_the_fit_handles_it(run, folder, monkeypatch):
    monkeypatch.setattr(KTA, "fit", swallowing(KTA.fit))
    line = ("metric", "flowers.csv", "--label", "species", "--method", "kta", "--model", "m")
    status, _, err = run(*line)
    assert status == 130 and "interrupted from the keyboard" in err and (folder / "m").exists()


def test_ctrl_c_between_files_names_the_written_ones(run, folder, monkeypatch):
    monkeypatch.setattr("gramian.app.cli.run.show", interrupt)
    status, _, err = run("embed", "points.csv", "--out", "best.csv")
    assert status == 130 and (folder / "best.csv").exists()
    assert "best.csv is written" in err and "nothing was written" not in err


@pytest.mark.parametrize("wait", [0.05, 0.5])
def test_ctrl_c_during_start_prints_no_traceback(folder, wait):
    """The signal follows the start of the command line, not that of the interpreter."""
    code = (
        "import os, signal, sys, threading\nfrom gramian.app.cli import main\n"
        "sys.argv = ['gramian', 'embed', 'points.csv']\n"
        f"threading.Timer({wait}, os.kill, (os.getpid(), signal.SIGINT)).start()\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr


def test_error_after_ctrl_c_is_an_interrupt(run, folder, monkeypatch):
    """Numba fails with RuntimeError if a signal arrives while it loads a kernel."""

    def broken(*given, **more):
        HEARD.set()
        raise RuntimeError("generator raised StopIteration")

    monkeypatch.setattr("gramian.graph.nearest", broken)
    status, _, err = run("embed", "points.csv")
    assert status == 130 and "interrupted" in err


def test_ctrl_c_waits_for_running_imports(run, folder, monkeypatch):
    (folder / "slowly.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.2)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(folder)

    def nearest(*given, **more):
        import slowly

        while slowly.whole:
            time.sleep(0.01)

    monkeypatch.setattr("gramian.graph.nearest", nearest)
    status, _, err = run("embed", "points.csv", "--out", "best.csv")
    assert status == 130 and "nothing was written" in err and sys.modules.pop("slowly").whole


# --- the verdict -----------------------------------------------------------------------


def test_verdict_is_printed_first(run, folder):
    out = run("metric", "flowers.csv", "--label", "species", "--method", "kta")[1].splitlines()
    assert "held-out rows" in out[1] and "3-NN error" in out[1]
    assert next(k for k, line in enumerate(out) if "certificate" in line) > 1
    facts = answer(run, "metric", "flowers.csv", "--label", "species", "--method", "kta")
    assert 0 <= facts["held_out"]["after"] <= facts["held_out"]["before"] + 0.05
    assert facts["held_out"]["held_out"] == len(FLOWERS.target)
    off = answer(
        run, "metric", "flowers.csv", "--label", "species", "--method", "kta", "--no-verdict"
    )
    assert off["held_out"] is None


@pytest.mark.slow
def test_the_verdict_on_ratings_compares_with_means(run, folder):
    facts = answer(run, "complete", "ratings.csv")
    assert facts["held_out"]["after"] < facts["held_out"]["before"]
    assert facts["verdict"].startswith("It helped: RMSE")


@pytest.mark.slow
def test_the_verdict_on_clusters_compares_with_the_graph_alone(run, folder):
    X, y = make_moons(200, noise=0.1, random_state=0)
    some = np.where(np.arange(200) < 30, y.astype(str), "")
    pd.DataFrame(X, columns=["a", "b"]).assign(moon=some).to_csv("m.csv", index=False)
    facts = answer(run, "cluster", "m.csv", "--label", "moon")
    assert "held-out labels" in facts["verdict"] and facts["held_out"]["held_out"] == 10


def test_a_page_begins_with_the_verdict(run, folder):
    run("metric", "flowers.csv", "--label", "species", "--method", "kta", "--report", "r.html")
    page = (folder / "r.html").read_text()
    assert page.index("Did it help?") < page.index("kta by auto")


# --- what is known ---------------------------------------------------------------------


def test_must_links_alone_ask_for_cannot_links(run, folder):
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
    assert status == 0 and "are taken for those of rows" in err
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


def test_implicit_ratings_are_noted(run, folder):
    ratings().assign(rating=1).to_csv("clicks.csv", index=False)
    status, out, err = run("complete", "clicks.csv")
    assert status == 0 and "--method implicit" in err and "every rating is 1" in out


def test_reads_wide_tables_of_ratings(run, folder):
    ratings().pivot(index="user", columns="item", values="rating").to_csv("wide.csv")
    facts = answer(run, "complete", "wide.csv", "--wide", "--lam", 5, "--model", "m")
    assert facts["ratings"] == len(ratings()) and facts["users"] == ratings()["user"].nunique()
    plain = gm.completion.NuclearCompletion(lam=5.0, random_state=0).fit(ratings())
    few = ratings().head(5)
    pairs = few["user"].to_numpy(), few["item"].to_numpy()
    np.testing.assert_allclose(gm.load("m").predict(pairs), plain.predict(pairs), rtol=1e-3)


# --- messy files -----------------------------------------------------------------------


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


def _without(run, messy):
    line = ("embed", "messy.csv", "--drop", "name,colour,when,class", "--time-limit", 2)
    assert run(*line, "--model", "e")[0] in (0, 3)
    return refused(run, "predict", "messy.csv", "--model", "e", "--proba")


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


# --- files that people have ------------------------------------------------------------


@pytest.fixture
def machines(folder):
    """An export with units in its header, dates as they are written at home, and gaps."""
    rng = np.random.default_rng(0)
    n = 60
    when = pd.date_range("2024-01-03", periods=n, freq="7h")
    frame = pd.DataFrame(
        {
            "Machine ID": [f"M-{k:04d}" for k in range(n)],
            "Measured at": when.strftime("%d.%m.%Y %H:%M"),
            "Temp (°C)": rng.normal(40, 3, n).round(2),
            "Pressure [bar]": rng.normal(1, 0.3, n).round(3),
            "Flow, l/min": rng.normal(300, 60, n).round(1),
            "State": rng.choice(["ok", "worn"], n),
        }
    )
    frame.to_csv("machines.csv", index=False)
    return frame


def test_names_of_columns_are_shown_as_they_are(run, machines):
    assert "Pressure [bar]" in run("info", "machines.csv")[1]  # no style of the terminal


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
    assert "has no name and the row numbers; it is left out" in " ".join(err.split())


def test_a_misspelt_column_is_reported_with_the_existing_ones(run, machines):
    sentence = refused(run, "metric", "machines.csv", "--label", "STATE")
    assert "no column 'STATE' (did you mean 'State'?): it has 'Machine ID'" in sentence


def test_rejects_measurements_as_classes(run, machines):
    line = ("metric", "machines.csv", "--drop", "Machine ID,Measured at,State")
    sentence = refused(run, *line, "--label", "Temp (°C)")
    assert "continuous quantity" in sentence and "groups" in sentence


def test_ratings_in_other_forms_name_the_option_that_fits(run, folder):
    wide = ratings().pivot(index="user", columns="item", values="rating")
    wide.to_csv("wide.csv")
    assert "--wide" in refused(run, "complete", "wide.csv")
    (folder / "one.csv").write_text("1\n2\n3\n")
    assert "one column and no header" in refused(run, "complete", "one.csv")
    (folder / "two.csv").write_text("user,item\n1,2\n3,4\n")
    assert "the columns user, item only" in refused(run, "complete", "two.csv")


def test_notes_ratings_that_were_in_the_fit(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--model", "m", "--no-verdict")[0] == 0
    _, out, err = run("evaluate", "ratings.csv", "--model", "m")
    count = len(ratings())
    assert f"{count} of the {count} ratings of ratings.csv were in the fit" in " ".join(err.split())
    assert "rmse" in out
    assert "did you mean 'alice'?" in refused(run, "recommend", "ce", "--model", "m")


def test_purchases_are_summed_and_compared_with_common_items(run, folder):
    rng = np.random.default_rng(0)
    taste = rng.integers(0, 4, 60)
    user = rng.integers(0, 60, 700)
    item = 8 * taste[user] + rng.integers(0, 8, 700)
    bought = pd.DataFrame({"order": np.arange(700), "user": user, "item": item, "qty": 1})
    bought.to_csv("orders.csv", index=False)
    line = ("complete", "orders.csv", "--method", "implicit", "--columns", "user,item,qty")
    assert "--duplicates mean, sum (of counts) or last" in refused(run, *line)
    facts = answer(run, *line, "--duplicates", "sum")
    assert facts["verdict"].startswith("It helped: nDCG")
    assert facts["held_out"]["before"] < facts["held_out"]["after"]


def test_suggests_users_with_similar_names(run, folder):
    answer(run, "complete", "ratings.csv", "--lam", 5, "--model", "m", "--no-verdict")
    known = str(gm.load("m").row_ids_[0])
    assert f"did you mean {known!r}" in refused(run, "recommend", known.upper(), "--model", "m")


def test_accepts_clicks_without_values(run, folder):
    clicks = ratings()[["item", "user"]]
    twice = pd.concat([clicks, clicks.head(9)])
    twice.to_csv("clicks.csv", index=False)
    assert "--method implicit" in refused(run, "complete", "clicks.csv")
    line = ("complete", "clicks.csv", "--method", "implicit", "--lam", 5, "--no-verdict")
    facts = answer(run, *line, "--model", "m")
    assert facts["ratings"] == len(clicks) and facts["users"] == 30 and facts["items"] == 20
    assert gm.load("m").columns_ == ("user", "item")
    assert run("recommend", "alice", "--model", "m", "--top", 3)[0] == 0
    named = answer(run, *line, "--columns", "user,item")
    assert named["users"] == 30 and named["certificate"] == facts["certificate"]
    clicks[["user", "item"]].iloc[::-1].to_csv("bare.csv", index=False, header=False)
    bare = answer(run, "complete", "bare.csv", *line[2:])  # "user 29", "film 5" is no header
    assert bare["ratings"] == len(clicks)
    numbers = twice.assign(user=twice["user"].rank(method="dense").astype(int), item=1)
    numbers.to_csv("clicks.csv", index=False)
    assert answer(run, *line)["users"] == 30


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


def test_notes_of_files_are_no_warnings_of_python(run, folder):
    (folder / "old.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    status, _, err = run("info", "old.csv")
    assert status == 0 and err.startswith("note: old.csv is not text in UTF-8")


# --- files from other sources ------------------------------------------------------------


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


def test_rejects_classes_of_one_row_each(run, machines):
    line = ("metric", "machines.csv", "--label", "Machine ID", "--drop", "Measured at,State")
    assert "every row has a class of its own in 'Machine ID'" in refused(run, *line)


def test_the_only_row_of_a_class_is_never_held_out():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 20 + ["c"])
    verdict = verdict_of_metric(gm.metric.KTA(), rng.normal(size=(41, 3)), y)
    assert verdict.held_out == 40
    assert "no class has two" in str(verdict_of_metric(gm.metric.KTA(), np.eye(3), [0, 1, 2]))


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


def test_info_describes_a_program(run, folder):
    gm.io.write_sdpa(gm.problems.maxcut(np.ones((4, 4)) - np.eye(4)), "cut.dat-s.gz")
    facts = answer(run, "info", "cut.dat-s.gz")
    assert facts["format"] == "sparse SDPA" and facts["constraints"] == 4


@pytest.mark.slow
def test_lists_are_judged_by_a_weight_that_leaves_something():
    rng = np.random.default_rng(0)
    likes = rng.random((40, 30)) < np.kron([[0.5, 0.02], [0.02, 0.5]], np.ones((20, 15)))
    user, item = np.nonzero(likes)
    given = (user, item, np.ones(user.size))
    model = gm.completion.ImplicitCompletion(random_state=0).fit(given)
    model.lam_ = 1e9  # nothing is left of less with this
    judged = verdict_of_completion(model, *given)
    assert judged.after is not None and judged.after > judged.before
    fixed = gm.completion.ImplicitCompletion(lam=1e9).fit(given)
    assert "nothing is learned with λ = 1e+09" in str(verdict_of_completion(fixed, *given))


def test_gain_of_few_samples_is_not_significant():
    assert not beyond_chance(np.array([0.3, 0.4, 0.35]))
    assert beyond_chance(np.array([0.3, 0.4, 0.35, 0.3, 0.32, 0.2]))
    assert beyond_chance(np.r_[np.full(20, 0.5), np.full(20, -0.1)])
    assert not beyond_chance(np.zeros(5))


def test_columns_are_encoded_by_number_where_they_have_no_names(run, machines):
    machines.to_csv("machines.csv", index=False, header=False)
    line = ("metric", "machines.csv", "--label", -1, "--drop", 0, "--no-verdict")
    facts = answer(run, *line, "--encode", 1, "--model", "m.gramian")
    assert facts["features"] == 4
    machines.drop(columns="State").to_csv("new.csv", index=False, header=False)
    status, out, _ = run("predict", "new.csv", "--model", "m.gramian")
    assert status == 0 and len(out.split()) == 61
    assert "no column '9'" in refused(run, *line, "--encode", 9)


# --- a newcomer's hour -----------------------------------------------------------------


@pytest.fixture
def classes(folder):
    """Thirty rows of three classes in abc.csv."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=list("ab")).assign(
        c=["x", "y", "z"] * 10
    )
    frame.to_csv("abc.csv", index=False)
    return frame


def test_time_to_read_a_wide_table_is_linear_in_its_columns(folder):
    for name, size in (("few.csv", 100), ("many.csv", 800)):
        frame = pd.DataFrame(np.ones((3, size)), columns=[f"g{k}" for k in range(size)])
        frame.to_csv(name, index=False)

    def seconds(name):
        times = []
        for _ in range(3):
            started = time.process_time()
            read_table(name)
            times.append(time.process_time() - started)
        return min(times)

    assert seconds("many.csv") < 24 * seconds("few.csv")  # 8 times the columns; 64 if quadratic


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


def test_id_and_label_cannot_be_one_column(run, classes):
    said = refused(run, "metric", "abc.csv", "--label", "c", "--id", "c")
    assert "--id and --label are the same column, c" in said


def test_more_classes_than_clusters_are_noted(run, classes):
    status, _, err = run("cluster", "abc.csv", "--label", "c", "--clusters", 2, "--no-verdict")
    assert status == 0 and "'c' has 3 classes, more than --clusters 2" in err


def test_titles_cannot_be_the_items(run, folder):
    ratings().to_csv("stars.csv", index=False)
    item = ratings().columns[1]
    said = refused(run, "complete", "stars.csv", "--titles", item)
    assert f"--titles {item} is the column of items" in said


def test_rejects_files_of_another_kind_with_a_clear_message(run, classes):
    said = refused(run, "predict", "abc.csv", "--model", "abc.csv")
    assert "zip" not in said and "abc.csv holds text, not a complete gramian model" in said
    classes.to_csv("abc.zip", index=False)
    assert answer(run, "info", "abc.zip")["rows"] == len(classes)
    with zipfile.ZipFile("abc.zip", "a") as archive:
        archive.writestr("notes.txt", "of the machine")
    assert "abc.zip has 2 files in it" in refused(run, "info", "abc.zip")


def test_counts_that_dominate_are_noted(run, folder):
    user, item = np.divmod(np.arange(60), 6)
    frame = pd.DataFrame({"user": user, "item": item, "plays": 2 + np.arange(60) % 5})
    line = ("complete", "plays.csv", "--method", "implicit", "--lam", 3, "--no-verdict")
    for largest, noted in ((9, False), (5000, True)):
        frame.assign(plays=np.where(np.arange(60) == 3, largest, frame.plays)).to_csv(
            "plays.csv", index=False
        )
        status, _, err = run(*line)
        assert status == 0 and ("1250 times the median" in err) == noted


def test_rejects_bad_date_and_names_its_column():
    dates = DateEncoder().fit(pd.DataFrame({"day": ["2024-05-31"], "paid": ["2024-06-01"]}))
    with pytest.raises(ValueError, match=r"^'paid': 'soon' is no date"):
        dates.transform(pd.DataFrame({"day": ["2024-05-31"], "paid": ["soon"]}))


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


def test_links_by_a_column_that_counts_from_one_need_its_name(run, tmp_path, monkeypatch):
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


def test_advice_names_options_that_the_command_has(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{k % 7},i{3 * k % 11},{1 + k % 5}" for k in range(60)]
    Path("ratings.csv").write_text("\n".join(["user,item,rating", *rows]))
    Path("asked.csv").write_text("user,item\nu1,i1\n,i2\n")
    fit = ("complete", "ratings.csv", "--duplicates", "mean", "--lam", 3, "--no-verdict")
    assert run(*fit, "--model", "r.gramian")[0] == 0
    message = refused(run, "predict", "asked.csv", "--model", "r.gramian")
    assert "1 missing ids" in message and "--missing" not in message


def test_minus_one_is_noted_as_unlabelled_by_cluster(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{k % 2 + a:.3f},{b:.3f},{k % 3 - 1}" for k, (a, b) in enumerate(rng.random((30, 2)))]
    Path("x.csv").write_text("\n".join(["a,b,class", *rows]))
    err = run("cluster", "x.csv", "--label", "class", "--method", "npkl", "--no-verdict")[2]
    assert "10 rows with the label -1 taken as unlabelled" in err


# --- ids, quantities and few rows ---------------------------------------------------------


def numbered(size: int = 60) -> pd.DataFrame:
    """Samples with an id, a shuffled number and classes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(size, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(kind=np.where(x[:, 0] > 0, "u", "v"))
    frame.insert(0, "patientId", np.repeat(np.arange(size // 2), 2) + 5000)
    frame.insert(1, "visit", rng.permutation(size) + 1)
    return frame.assign(grid=np.arange(size) // 2)


@pytest.mark.parametrize("command", ["metric", "cluster", "embed"])
def test_ids_and_numbers_of_rows_are_named(command, run, folder, monkeypatch):
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
    assert "what only counts the rows: day (--keep day keeps it)" in err
    assert json.loads(out)["features"] == 2
    _, out, err = run(*line, "--keep", "day")
    assert json.loads(out)["features"] == 3 and "counts the rows" not in err
    frame.rename(columns={"day": ""}).to_csv("n.csv", index=False)
    _, out, err = run(*line)
    assert "--keep x0 keeps it" in err and json.loads(out)["features"] == 2
    assert json.loads(run(*line, "--keep", "x0")[1])["features"] == 3
    frame.to_csv("n.csv", index=False, header=False)
    line = ("metric", "n.csv", "--label", 3, "--method", "kta", "--no-verdict", "--json")
    assert json.loads(run(*line, "--keep", 0)[1])["features"] == 3


@pytest.mark.parametrize("command", ["metric", "cluster"])
def test_label_that_is_a_quantity_names_the_regressor(command, run, folder, monkeypatch):
    frame = numbered()[["a", "b"]]
    frame.assign(price=(10 * frame["a"]).round(2)).to_csv("n.csv", index=False)
    sentence = refused(run, command, "n.csv", "--label", "price")
    assert "continuous quantity" in sentence and "MetricRegressor" in sentence
    frame.assign(price=(1e4 * frame["a"]).round()).to_csv("n.csv", index=False)
    for kind in (KTA, gm.kernel.AutoKernel):
        monkeypatch.setattr(kind, "fit", interrupt)
    method = ("--method", "kta") if command == "metric" else ()
    _, _, err = run(command, "n.csv", "--label", "price", *method)
    assert "if it is a quantity, cut it into groups" in err and "MetricRegressor" in err


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


# --- eigenvalues, links and ratings -------------------------------------------------------


def test_small_matrices_have_all_their_eigenvalues(run, folder):
    M = pd.DataFrame(np.diag([3.0, 2.0, 1.0]), columns=list("abc"), index=list("abc"))
    M.to_csv("m.csv")
    assert [row["eigenvalue"] for row in answer(run, "eigen", "m.csv")["rows"]] == [3, 2, 1]
    assert "-k 4, but a matrix of order 3 has 3 eigenvalues" in refused(
        run, "eigen", "m.csv", "-k", 4
    )
    assert run("eigen", "m.csv", "-k", 2, "--out", "o.csv")[0] == 0
    assert list(pd.read_csv("o.csv")) == ["eigenvalue", "residual", "a", "b", "c"]


def test_contradictory_and_broken_links_are_named(run, folder):
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


def test_ratings_of_unknown_items_are_named(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--no-verdict", "--model", "m")[0] == 0
    frame = pd.DataFrame(
        {"user": ["carol"] * 3, "item": ["film 1", "film x", "film y"], "rating": 4}
    )
    frame.to_csv("carol.csv", index=False)
    status, _, err = run("recommend", "--ratings", "carol.csv", "--model", "m")
    assert status == 0 and "2 of the 3 ratings of carol.csv" in err and "'film x', 'film y'" in err
    status, _, err = run("evaluate", "carol.csv", "--model", "m")
    assert status == 0 and "3 of the 3 ratings of carol.csv have a user or an item" in err
    assert "--top" in refused(run, "recommend", "alice", "--model", "m", "--top", 0)


def test_verdict_of_a_learned_metric_is_about_that_metric():
    said = {
        name: of_errors(np.repeat([[a, b], [0, 0]], [10, 20], axis=0).astype(float), "3-NN", "here")
        for name, a, b in (("equal", 1, 1), ("worse", 0, 1))
    }
    assert "no better than the Euclidean one" in str(said["equal"])
    assert "worse than the Euclidean one" in str(said["worse"])
    assert all(str(one).startswith("The learned metric is") for one in said.values())
    assert all("keep your features" not in str(one) for one in said.values())


def test_folds_of_the_verdict_do_not_depend_on_the_load(monkeypatch, ticking):
    X, y = FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy()
    ticking(1.0)  # every look at the clock takes a second
    assert "(5 of 5 folds" in verdict_of_metric(KTA(lam=1e-3).fit(X, y), X, y).sentence
    monkeypatch.setattr("gramian.app.verdict.metric.QUICK", 150 * 4 - 1)
    assert "(1 of 5 folds" in verdict_of_metric(KTA(lam=1e-3).fit(X, y), X, y).sentence


def test_columns_of_text_before_counts_and_large_ids(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.insert(0, "colour", np.where(np.arange(60) % 2, "red", "blue"))
    frame.assign(big=10**18 + 7 * np.random.default_rng(0).permutation(60)).to_csv(
        "n.csv", index=False
    )
    line = ("metric", "n.csv", "--label", "kind", "--encode", "colour", "--method", "kta")
    status, _, err = run(*line, "--no-verdict")
    assert status == 0 and "'big' looks like an id" in err and "colour" not in err


def test_numbers_that_stand_for_missing_cells_are_named(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.loc[[3, 5], "a"] = -999
    frame.to_csv("n.csv", index=False)
    line = ("metric", "n.csv", "--label", "kind", "--method", "kta", "--no-verdict")
    assert "column 'a' has -999 in 2 rows" in run(*line)[2]
    frame.assign(a=np.arange(60) * -18.0 + 63).to_csv("n.csv", index=False)
    assert "-999" in (folder / "n.csv").read_text() and "-999" not in run(*line)[2]


@pytest.mark.parametrize("cell", ["<NA>", "na", "N.A.", "NaT", "#DIV/0!"])
def test_spellings_of_missing_cells(cell, run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"]).astype({"a": object})
    frame.loc[3, "a"] = cell
    frame.to_csv("n.csv", index=False)
    assert "n.csv has 1 missing cell" in refused(run, "metric", "n.csv", "--label", "kind")


def test_a_second_row_of_names_is_named(run, folder):
    rows = ["size,mass,kind", "cm,kg,text", *(f"{k},{k * k % 7},{'uv'[k % 2]}" for k in range(30))]
    (folder / "n.csv").write_text("\n".join(rows))
    sentence = refused(run, "metric", "n.csv", "--label", "kind")
    assert "line 2 may be a second header or a row of units" in sentence
    (folder / "n.csv").write_text("<table><tr><td>1</td></tr></table>")
    assert "is an HTML page" in refused(run, "metric", "n.csv", "--label", "kind")


def test_outputs_for_ratings_have_the_names_of_the_columns(run, folder):
    frame = ratings().rename(columns={"user": "customer", "item": "film", "rating": "stars"})
    frame.to_csv("stars.csv", index=False)
    line = ("complete", "stars.csv", "--columns", "customer,film,stars", "--lam", 5)
    assert run(*line, "--no-verdict", "--model", "m", "--out", "o.csv")[0] == 0
    assert list(pd.read_csv("o.csv")) == ["customer", "film", "stars", "fitted"]
    assert run("predict", "stars.csv", "--model", "m", "--out", "p.csv")[0] == 0
    assert list(pd.read_csv("p.csv")) == ["customer", "film", "prediction", "known"]


def test_the_row_of_the_header_of_a_sheet(run, folder):
    with pd.ExcelWriter("t.xlsx") as book:
        numbered().to_excel(book, startrow=2, index=False)
        book.book.active["A1"] = "Measured in 2024"
    assert answer(run, "info", "t.xlsx")["header"] == "row 3"


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


def test_classes_that_differ_by_case_are_named(run, folder):
    frame = numbered().drop(columns=["patientId", "visit", "grid"])
    frame.loc[::3, "kind"] = frame["kind"].str.upper()
    frame.to_csv("n.csv", index=False)
    _, _, err = run("metric", "n.csv", "--label", "kind", "--method", "kta", "--no-verdict")
    assert "differ by upper and lower case only: U, V, u, v" in err


def test_whether_a_verdict_is_made_does_not_depend_on_other_processes(ticking):
    given = dict.fromkeys(("rank", "tol", "progress", "checkpoint", "model", "report"))
    run = Run(solver="auto", time_limit=None, seed=0, as_json=False, **given)
    ticking(20.0)
    run.fit(KTA(lam=1e-3), FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy())
    assert run.seconds > 30 and run.judged(gm.Status.CONVERGED, lambda: "judged") == "judged"
    run.cpu = 31.0
    said = run.judged(gm.Status.CONVERGED, lambda: pytest.fail("judged"))
    assert "the fit took 31 CPU s" in said.sentence


def test_a_model_of_clicks_is_evaluated_on_clicks(run, folder):
    frame = ratings()[["user", "item"]]
    frame.iloc[::2].to_csv("c.csv", index=False)
    assert run("complete", "c.csv", "--method", "implicit", "--no-verdict", "--model", "m")[0] == 0
    frame.iloc[1::2].to_csv("t.csv", index=False)
    facts = answer(run, "evaluate", "t.csv", "--model", "m", "-k", 3)
    assert facts["ratings"] == len(frame) // 2 and facts["ndcg"] > 0
    assert run("recommend", "--ratings", "t.csv", "--model", "m", "--top", 1)[0] == 0


def test_far_ratings_and_short_lists_are_named(run, folder):
    frame = ratings()
    frame.loc[[2, 5], "rating"] = 99.0
    frame.to_csv("r.csv", index=False)
    line = ("complete", "r.csv", "--lam", 5, "--no-verdict")
    _, _, err = run(*line, "--model", "m")
    assert "the rating 99 is far from all others" in err
    _, _, err = run("recommend", "alice", "--model", "m", "--top", 20)
    assert "there are fewer than 20 items to recommend to alice" in err
    _, _, err = run("recommend", "alice", "--model", "m", "--top", 20, "--seen")
    assert "fewer than" not in err
    ratings().to_csv("r.csv", index=False)
    assert "is far from" not in run(*line)[2]


def test_clusters_are_predicted_by_the_names_of_their_labels(run, folder):
    X, y = make_moons(60, noise=0.05, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(moon=np.where(y == 1, "up", "down"))
    frame.to_csv("m.csv", index=False)
    line = ("cluster", "m.csv", "--label", "moon", "--method", "npkl", "--no-verdict")
    assert run(*line, "--model", "m", "--out", "c.csv")[0] == 0
    assert run("predict", "m.csv", "--model", "m", "--out", "p.csv")[0] == 0
    found = pd.read_csv("p.csv")["prediction"]
    assert (found == frame["moon"]).mean() > 0.9 and "--seed" in refused(run, *line, "--seed", -1)
