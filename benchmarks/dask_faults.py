"""Workers killed by SIGKILL at random moments of a fit: every run must end at the same optimum.

A completion and an alignment run on two worker processes, which their nannies start again. In each
run one worker is killed at a moment drawn from the time that a calm fit takes. Then the process of
the scheduler is killed in the middle of a completion inside `gm.checkpoints`: the fit must end with
a sentence, and the same call on a new cluster go on from the checkpoint to the same optimum.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._cluster import rating_files, workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "A cluster: workers killed at random moments"
PAPER = "Not from a paper"

KILLS, QUICK_KILLS, BUDGET = 20, 3, 400.0
"""Kills of a fit, and the seconds for all of them."""
KILLED_AFTER = 0.3
"""Time after which the scheduler is killed, as a fraction of that of the same fit before."""
BACK = 30
"""Seconds for a killed worker to come back; after that the cluster is started again."""
SHAPE, RATINGS = (700, 150), 30_000
BLOCKS, BLOCK, FEATURES = 24, 20_000, 60
LONG = "completion of a smaller λ"

ALONE = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0",
                           silence_logs=50)
    print(cluster.scheduler_address, flush=True)
    time.sleep(3600)
"""
"""A scheduler with two workers in a process of its own."""


def run(ctx: Context) -> Report:
    """Kills at 20 moments of each of two fits, and a run that is cut off and goes on."""
    kills = QUICK_KILLS if ctx.quick else KILLS
    killed = Table(
        "Kills", ["fit", "kills", "hit a fit", "ended", "same bits", "calm seconds",
                  "median seconds killed"],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = _fits(rating_files(Path(folder) / "ratings", *SHAPE, RATINGS, 6))
        lost = _lost(fits[LONG], Path(folder))
        for name in ("alignment", "completion"):
            killed.add(name, *_killed(fits[name], kills, rng))
    return ctx.report([killed, lost], [
        "One of two workers is killed in each run; nannies start another. A kill hits a fit where "
        "it comes before its end. There are 20 kills, or as many as the time of 400 s has room for."
    ])  # fmt: skip


def _fits(files: str) -> dict[str, Callable[[], Any]]:
    import dask.array as da

    import gramian.dask as gd

    X = da.concatenate([
        da.random.RandomState(k).normal(size=(BLOCK, FEATURES), chunks=(BLOCK, FEATURES))
        for k in range(BLOCKS)
    ])  # fmt: skip
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    return {
        "completion": lambda: gd.NuclearCompletion(lam=12.0, tol=1e-4, duplicates="mean").fit(
            files
        ),
        "alignment": lambda: gd.KTA(lam=1e-9).fit(X, y),
        LONG: lambda: gd.NuclearCompletion(lam=3.0, tol=1e-5, duplicates="mean").fit(files),
    }


def _killed(fit: Callable[[], Any], kills: int, rng: Any) -> list[Any]:
    """How many runs ended, and at the same bits, each with a worker killed on the way."""
    with workers(2):
        fit()  # what is compiled and imported is there after it
        started = time.perf_counter()
        calm = fit()
        seconds = time.perf_counter() - started
    moments, runs = list(rng.uniform(0, seconds, size=kills)), []
    until = time.perf_counter() + BUDGET
    while moments and time.perf_counter() < until:
        with workers(2) as client, suppress(TimeoutError):  # a nanny that does not start another
            while moments and time.perf_counter() < until:
                runs.append(_run(client, fit, moments[-1], calm, rng))
                moments.pop()
                print(len(runs), *runs[-1], file=sys.stderr, flush=True)
    hit, ended, same, taken = zip(*runs, strict=True)
    return [len(runs), sum(hit), sum(ended), sum(same), seconds, float(np.median(taken))]


def _run(
    client: Any, fit: Callable[[], Any], moment: float, calm: Any, rng: Any
) -> tuple[bool, bool, bool, float]:
    pid = int(rng.choice(_pids(client)))
    timer = threading.Timer(moment, os.kill, (pid, signal.SIGKILL))
    started = time.perf_counter()
    timer.start()
    found = fit()
    taken = time.perf_counter() - started
    timer.join()
    ended = found.result_.status is gm.Status.CONVERGED
    same = np.array_equal(found.result_.factor, calm.result_.factor)
    return taken > moment, ended, same, taken


def _pids(client: Any) -> list[int]:
    """The processes of two workers that are there; one that was killed may still be counted."""
    until = time.perf_counter() + BACK
    while time.perf_counter() < until:
        with suppress(OSError):
            client.wait_for_workers(2, timeout=BACK)
            pids = [int(pid) for pid in client.run(os.getpid).values()]
            if len(pids) == 2:
                return sorted(pids)
    raise TimeoutError


def _lost(fit: Callable[[], Any], folder: Path) -> Table:
    """The scheduler's process killed in the middle of a fit, and the same call again."""
    import gramian.dask as gd

    table = Table(
        "The scheduler killed", ["run", "seconds", "iterations", "F", "gap", "ended with"]
    )
    with _apart() as process:
        fit()
        started = time.perf_counter()
        calm = fit()
        seconds = time.perf_counter() - started
        table.add("calm", seconds, *_told(calm))
        timer = threading.Timer(KILLED_AFTER * seconds, process.kill)
        started = time.perf_counter()
        timer.start()
        try:
            with gm.checkpoints(folder / "kept", every=0):
                table.add("killed", 0.0, *_told(fit()))
        except gd.ClusterError as lost:
            sentence = str(lost).split(":")[0]
            table.add("killed", time.perf_counter() - started, None, None, None, sentence)
        timer.join()
    with _apart():
        started = time.perf_counter()
        with gm.checkpoints(folder / "kept", every=0):
            resumed = fit()
        table.add("resumed", time.perf_counter() - started, *_told(resumed))
    return table


def _told(model: Any) -> list[Any]:
    result = model.result_
    return [result.iterations, result.value, model.certificate_.gap, result.status.name]


@contextmanager
def _apart() -> Iterator[Any]:
    """A cluster in a process of its own, and a client of it that is current."""
    from distributed import Client

    with subprocess.Popen(
        [sys.executable, "-c", ALONE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            with Client(process.stdout.readline().strip()):
                yield process
        finally:
            process.kill()
