"""Workers killed by SIGKILL at random moments of a fit: every run must end at the same optimum.

A completion and an alignment run on two worker processes, which their nannies start again. In each
run one worker is killed at a moment drawn from the time that a calm fit takes.
"""

import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import gramian as gm
from benchmarks._cluster import rating_files, workers
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table

TITLE = "A cluster: workers killed at random moments"
PAPER = "No table of a paper"

KILLS, QUICK_KILLS = 20, 3
BACK = 30
"""Seconds for a killed worker to come back; after that the cluster is started again."""
SHAPE, RATINGS = (700, 150), 30_000


def run(ctx: Context) -> Report:
    """Kills at 20 moments of each of two fits, and a run that is cut off and goes on."""
    import dask.array as da

    import gramian.dask as gd

    kills = QUICK_KILLS if ctx.quick else KILLS
    table = Table(
        "Kills", ["fit", "kills", "ended", "same bits", "calm seconds", "median seconds killed"]
    )
    rng = np.random.default_rng(0)
    chunks = [
        da.random.RandomState(k).normal(size=(20_000, 60), chunks=(20_000, 60)) for k in range(12)
    ]
    X = da.concatenate(chunks)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = rating_files(Path(folder), *SHAPE, RATINGS, 6)
        fits: dict[str, Callable[[], Any]] = {
            "completion": lambda: gd.NuclearCompletion(lam=12.0, tol=0.1, duplicates="mean").fit(
                files
            ),
            "alignment": lambda: gd.KTA(lam=1e-9).fit(X, y),
        }
        for name, fit in fits.items():
            table.add(name, kills, *_killed(fit, kills, rng))
    return ctx.report([table], ["One of two workers is killed in each run; nannies start another."])


def _killed(fit: Callable[[], Any], kills: int, rng: Any) -> list[Any]:
    """How many runs ended, and at the same bits, each with a worker killed on the way."""
    with workers(2):
        fit()  # what is compiled and imported is there after it
        started = time.perf_counter()
        calm = fit()
        seconds = time.perf_counter() - started
    moments, runs = list(rng.uniform(0, seconds, size=kills)), []
    while moments:
        with workers(2) as client, suppress(TimeoutError):  # a nanny that does not start another
            while moments:
                client.wait_for_workers(2, timeout=BACK)
                runs.append(_run(client, fit, moments.pop(), calm, rng))
    ended, same, taken = zip(*runs, strict=True)
    return [sum(ended), sum(same), seconds, float(np.median(taken))]


def _run(
    client: Any, fit: Callable[[], Any], moment: float, calm: Any, rng: Any
) -> tuple[bool, bool, float]:
    pid = int(rng.choice(sorted(client.run(os.getpid).values())))
    timer = threading.Timer(moment, os.kill, (pid, signal.SIGKILL))
    started = time.perf_counter()
    timer.start()
    found = fit()
    taken = time.perf_counter() - started
    timer.join()
    ended = found.result_.status is gm.Status.CONVERGED
    return ended, np.array_equal(found.result_.factor, calm.result_.factor), taken
