"""Limits of time, progress and Ctrl-C."""

import io
import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.app.cli.exits import HEARD
from gramian.app.cli.progress import Display, shown
from gramian.app.cli.run import Run
from gramian.common import clock
from gramian.metric import KTA
from tests.app.cli.data import (
    FLOWERS,
    answer,
    interrupt,
    refused,
)
from tests.slow import slow_except


def slowed(monkeypatch, target):
    """A phase of a minute that checks the clock every 0.1 s; all else takes no time."""
    tenths = [0]
    monkeypatch.setattr(clock, "now", lambda: 0.1 * tenths[0])

    def phase(*given, **more):
        for _ in range(600):
            clock.check()
            tenths[0] += 1
        raise AssertionError("the clock was not checked")

    monkeypatch.setattr(target, phase)


class _Terminal(io.StringIO):
    def isatty(self):
        return True


class _Step:
    value, factor = 2.0, np.zeros((2, 1))


def swallowing(method):
    """A fit that handles Ctrl-C and continues."""

    def fit(self, *given, **more):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return method(self, *given, **more)

    return fit


@pytest.mark.slow
def test_silent_by_default(run, folder):
    _, _, err = run("metric", "flowers.csv", "--label", "species")
    assert err == ""
    _, _, err = run("metric", "flowers.csv", "--label", "species", "--method", "lmnn", "--progress")
    assert "the neighbours of" in err and "lmnn by auto" in err and "the certificate" in err


def test_exit_status_without_convergence(run, folder):
    limits = ("--time-limit", 0.001, "--tol", 1e-14)
    status, out, err = run("embed", "points.csv", *limits, "--out", "best.csv", "--json")
    assert status == 3 and "time limit" in err
    assert json.loads(out)["status"] == "time limit" and (folder / "best.csv").exists()


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


def test_rejects_time_limits_that_are_not_positive(run, folder):
    said = refused(run, "metric", "flowers.csv", "--label", "species", "--time-limit", -1)
    assert "not in the range x>0" in said


def test_a_limit_holds_in_the_phases_before_the_solve(run, folder, monkeypatch):
    slowed(monkeypatch, "gramian.manifold.mvu.smoothest")
    status, out, _ = run("embed", "points.csv", "--time-limit", 1, "--out", "best.csv", "--json")
    facts = json.loads(out)
    assert status in (0, 3) and facts["seconds"] < 1.2  # the solve may still fit
    assert np.ptp(pd.read_csv("best.csv").to_numpy(), axis=0).min() > 1  # the samples, flat


def test_time_limit_without_a_result_is_one_sentence(run, folder, monkeypatch):
    slowed(monkeypatch, "gramian.graph.nearest")
    sentence = refused(run, "embed", "points.csv", "--time-limit", 0.3, "--out", "o.csv")
    assert clock.now() < 0.5
    assert "the time limit of 0.3 s ended" in sentence and "increase --time-limit" in sentence
    assert not (folder / "o.csv").exists()


def test_a_limit_holds_for_the_verdict(run, folder, monkeypatch):
    slowed(monkeypatch, "gramian.app.verdict.metric.nearest")
    line = ("metric", "flowers.csv", "--label", "species", "--time-limit", 2, "--model", "m")
    facts = answer(run, *line)
    assert clock.now() < 2.2 and (folder / "m").exists()
    assert "the time was up" in facts["verdict"] and "leave_one_out_error_after" not in facts


def test_a_limit_before_anything_was_learned_writes_nothing(run, folder, monkeypatch):
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


def test_all_solves_of_a_fit_share_one_limit(ticking):
    X = np.random.default_rng(0).normal(size=(400, 5))
    y = (X[:, 0] > 0).astype(int)
    ticking(0.005)
    with pytest.warns(UserWarning):
        gm.metric.LMNN(time_limit=0.5, tol=1e-14).fit(X, y)
    assert clock.now() < 1.5


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
    line = ("embed", "points.csv", "--tol", 0.1, "--no-verdict")
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


def test_ctrl_c_before_the_solve_keeps_the_current_result(run, folder, monkeypatch):
    monkeypatch.setattr("gramian.manifold.mvu.smoothest", interrupt)
    status, out, err = run("embed", "points.csv", "--out", "best.csv", "--json")
    assert status == 130 and "interrupted" in err
    assert json.loads(out)["status"] == "interrupted" and len(pd.read_csv("best.csv")) == 120


def test_ctrl_c_with_nothing_to_keep_says_so(run, folder, monkeypatch):
    monkeypatch.setattr("gramian.graph.nearest", interrupt)
    status, _, err = run("embed", "points.csv", "--out", "best.csv")
    assert status == 130 and "nothing was written" in err and not (folder / "best.csv").exists()


def test_ctrl_c_sets_the_exit_status_even_if_the_fit_handles_it(run, folder, monkeypatch):
    monkeypatch.setattr(KTA, "fit", swallowing(KTA.fit))
    line = ("metric", "flowers.csv", "--label", "species", "--method", "kta", "--model", "m")
    status, _, err = run(*line)
    assert status == 130 and "interrupted from the keyboard" in err and (folder / "m").exists()


def test_ctrl_c_between_files_says_which_are_written(run, folder, monkeypatch):
    monkeypatch.setattr("gramian.app.cli.run.show", interrupt)
    status, _, err = run("embed", "points.csv", "--out", "best.csv")
    assert status == 130 and (folder / "best.csv").exists()
    assert "best.csv is written" in err and "nothing was written" not in err


@pytest.mark.parametrize("wait", slow_except([0.05, 0.5], 0.05))
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


def test_whether_a_verdict_is_made_does_not_depend_on_other_processes(ticking):
    given = dict.fromkeys(("rank", "tol", "progress", "checkpoint", "model", "report"))
    run = Run(solver="auto", time_limit=None, seed=0, as_json=False, **given)
    ticking(20.0)
    run.fit(KTA(lam=1e-3), FLOWERS.data.to_numpy(), FLOWERS.target.to_numpy())
    assert run.seconds > 30 and run.judged(gm.Status.CONVERGED, lambda: "judged") == "judged"
    run.cpu = 31.0
    said = run.judged(gm.Status.CONVERGED, lambda: pytest.fail("judged"))
    assert "the fit took 31 CPU s" in said.sentence
