"""Checkpoints: the run goes on where it was cut off, and nothing on the disk is ever half."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

import gramian as gm
from gramian import StoredFileError
from gramian.checkpoint import SavedProgress
from gramian.common import clock, storage
from gramian.metric import LMNN
from gramian.solvers import CheckpointError, available

X, y = load_wine(return_X_y=True)
PROBLEM = gm.problems.kta((X - X.mean(0)) / X.std(0), y, 1.0)
OPTIMUM = gm.minimize(PROBLEM, tol=1e-9).value

RUNS = """
import os, sys
import gramian as gm
from sklearn.datasets import load_wine

X, y = load_wine(return_X_y=True)
problem = gm.problems.kta((X - X.mean(0)) / X.std(0), y, 1.0)
gm.minimize(problem, "gd", checkpoint=sys.argv[1], max_iter=2)
for path in sys.stdin:
    process = os.fork()
    if not process:
        gm.minimize(problem, "gd", checkpoint=path.strip(), every=0, tol=0, max_iter=10**6)
        os._exit(0)
    print(process, flush=True)
    os.waitpid(process, 0)
"""
"""A process of its own for every path; one interpreter has imported for all of them."""


def stored(path: Path) -> dict:
    return storage.read(path, "checkpoint")


@pytest.mark.parametrize("solver", list(available()))
def test_every_solver_resumes_from_its_checkpoint(solver, tmp_path):
    """The second run begins no worse than the first ended."""
    path = tmp_path / "run"
    try:
        first = gm.minimize(PROBLEM, solver, max_iter=3, checkpoint=path, every=0)
    except ValueError as refusal:
        pytest.skip(f"{solver} does not take this problem: {refusal}")
    assert stored(path)["value"] == pytest.approx(first.value)
    second = gm.minimize(PROBLEM, solver, max_iter=3, checkpoint=path)
    assert second.value <= first.value * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_killed_at_twenty_moments_it_still_ends_at_the_optimum(tmp_path):
    paths, command = [], [sys.executable, "-c", RUNS, str(tmp_path / "first")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runs:
        assert runs.stdin is not None and runs.stdout is not None
        for moment in np.random.default_rng(0).uniform(0.0, 0.3, size=20):
            paths.append(tmp_path / f"run at {moment:.3f}")
            print(paths[-1], file=runs.stdin, flush=True)
            running = int(runs.stdout.readline())
            time.sleep(moment)
            os.kill(running, signal.SIGKILL)
        runs.stdin.close()
    assert any(path.exists() for path in paths)
    for path in paths:
        if path.exists():  # killed before the first write there is nothing to go on from
            assert stored(path)["value"] >= OPTIMUM * (1 - 1e-9)
        resumed = gm.minimize(PROBLEM, checkpoint=path, tol=1e-8)
        assert resumed.value == pytest.approx(OPTIMUM, rel=1e-7)
        assert resumed.status.converged


def test_a_finished_run_ends_at_once(tmp_path):
    first = gm.minimize(PROBLEM, checkpoint=tmp_path / "run")
    again = gm.minimize(PROBLEM, checkpoint=tmp_path / "run")
    assert again.value == pytest.approx(first.value, rel=1e-12)
    assert again.iterations <= 1


@pytest.mark.parametrize("trace", [None, 2.0])
def test_a_smaller_rank_limits_a_resumed_run(trace, tmp_path):
    problem = gm.problems.nearest(np.diag([5.0, 4.0, 3.0, 2.0]), trace=trace)
    assert gm.minimize(problem, checkpoint=tmp_path / "run").rank > 1
    resumed = gm.minimize(problem, checkpoint=tmp_path / "run", rank=1)
    assert resumed.rank == 1
    assert resumed.value == pytest.approx(gm.minimize(problem, rank=1).value, rel=1e-6)


def test_the_best_point_is_kept_not_the_last(tmp_path):
    values = []
    path = tmp_path / "run"
    gm.minimize(PROBLEM, "agd", max_iter=30, checkpoint=path, every=0, callback=values.append)
    assert stored(path)["value"] == pytest.approx(min(state.value for state in values))


def test_rejects_checkpoint_of_another_problem(tmp_path):
    gm.minimize(PROBLEM, checkpoint=tmp_path / "run", max_iter=2)
    iris = gm.problems.kta(*load_iris(return_X_y=True), 1.0)
    with pytest.raises(StoredFileError, match="another problem"):
        gm.minimize(iris, checkpoint=tmp_path / "run")
    with pytest.raises(StoredFileError, match="another problem"):
        gm.minimize(gm.problems.kta(X, y, 1.0), checkpoint=tmp_path / "run")


def test_rejects_broken_checkpoint(tmp_path):
    (tmp_path / "run").write_bytes(b"not a checkpoint")
    with pytest.raises(StoredFileError, match="not a complete gramian checkpoint"):
        gm.minimize(PROBLEM, checkpoint=tmp_path / "run")


def test_full_disk_is_reported_and_last_checkpoint_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "run"
    flush = os.fsync
    written = []

    def full_later(descriptor):
        written.append(descriptor)
        if len(written) > 3:
            raise OSError(28, "No space left on device")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", full_later)
    with pytest.raises(CheckpointError, match=r"No space left on device.*previous checkpoint is"):
        gm.minimize(PROBLEM, "gd", checkpoint=path, every=0)
    monkeypatch.undo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]
    assert gm.minimize(PROBLEM, checkpoint=path, tol=1e-8).value == pytest.approx(OPTIMUM)


def test_unwritable_checkpoint_folder_is_reported_before_the_run(tmp_path):
    steps = []
    with pytest.raises(CheckpointError, match="could not be written at iteration 0"):
        gm.minimize(PROBLEM, checkpoint=tmp_path / "no" / "run", callback=steps.append)
    assert not steps


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root writes anywhere")
def test_read_only_folder_is_reported(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(CheckpointError, match="Permission denied"):
            gm.minimize(PROBLEM, checkpoint=tmp_path / "run")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_read_only_file_system_is_reported(tmp_path, monkeypatch):
    def refused(*_args, **_options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(storage, "open", refused, raising=False)
    with pytest.raises(CheckpointError, match=r"Read-only file system.*there is none yet"):
        gm.minimize(PROBLEM, checkpoint=tmp_path / "run")


def test_every_has_to_be_seconds(tmp_path):
    with pytest.raises(ValueError, match="every must be a number of seconds"):
        gm.minimize(PROBLEM, checkpoint=tmp_path / "run", every=-1)


@pytest.mark.slow
def test_all_solves_of_an_estimator_are_kept(tmp_path):
    with gm.checkpoints(tmp_path / "fit", every=0):
        first = LMNN().fit(X, y)
    files = sorted(entry.name for entry in (tmp_path / "fit").iterdir())
    assert files[0] == "solve-0001.gramian" and len(files) >= 1
    with gm.checkpoints(tmp_path / "fit"):
        again = LMNN().fit(X, y)
    assert again.result_.value == pytest.approx(first.result_.value, rel=1e-6)
    assert sorted(entry.name for entry in (tmp_path / "fit").iterdir())[: len(files)] == files
    assert gm.minimize(PROBLEM).status.converged  # outside of the block nothing is written


def test_resumes_the_same_fit_and_rejects_another(tmp_path):
    with gm.checkpoints(tmp_path, every=1e9):
        kept = SavedProgress(lambda: {"order": 3})
        kept.keep(lam=lambda: 1.0)
        kept.keep(lam=2.0)  # not yet
    with gm.checkpoints(tmp_path):
        assert SavedProgress(lambda: {"order": 3}).found == {"lam": 1.0}
    with gm.checkpoints(tmp_path), pytest.raises(StoredFileError, match=r"fit \(other order\)"):
        SavedProgress(lambda: {"order": 4})
    with gm.checkpoints(tmp_path), pytest.raises(StoredFileError, match="another format"):
        gm.minimize(PROBLEM)


def test_progress_without_a_folder_writes_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = SavedProgress(lambda: pytest.fail("the mark is not needed"))
    kept.keep(now=True, lam=1.0)
    assert not kept.found and not list(tmp_path.iterdir())


def test_a_fit_that_its_time_limit_ended_is_run_again_with_other_solves(tmp_path):
    """The weights that a fit tries depend on its time: a later call may solve other problems."""
    first, second = (gm.problems.kta(X, y, lam, regularizer="trace") for lam in (1e-2, 1.0))
    few = {"solver": "lbfgs", "max_iter": 3, "tol": 1e-2}
    with gm.checkpoints(tmp_path):
        gm.minimize(first, **few)
    with gm.checkpoints(tmp_path), pytest.raises(StoredFileError, match="another problem"):
        gm.minimize(second, **few)
    with gm.checkpoints(tmp_path), clock.budget(60.0):
        found = gm.minimize(second, **few).value
    assert found <= second.value(np.zeros((second.order, 0)))
    with gm.checkpoints(tmp_path):
        assert gm.minimize(second, **few).value <= found
