"""Times and memory: repeated calls in this process, or one call in a new one."""

import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.process import ChildResult, child_env, run_group


@dataclass(frozen=True)
class Timing:
    """Seconds of all repetitions, their median, and the result of the last one."""

    median: float
    all: tuple[float, ...]
    result: Any


def measure(fn: Callable[[], Any], repeat: int = 3) -> Timing:
    """Time ``fn()`` ``repeat`` times, the first one with compilation."""
    if repeat < 1:
        raise ValueError(f"repeat must be at least 1, got {repeat}")
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = fn()
        seconds.append(time.perf_counter() - start)
    return Timing(statistics.median(seconds), tuple(seconds), result)


def in_child(
    fn_path: str,
    kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    *,
    threads: int | None = None,
) -> ChildResult:
    """Call ``"module:function"`` with ``kwargs`` in a new Python process.

    Peak memory is then that of the call alone, and the call can be stopped. ``kwargs`` and the
    value must pickle. ``seconds`` excludes imports; ``peak_mb`` excludes processes of the child.
    """
    with tempfile.TemporaryDirectory() as folder:
        request = Path(folder, "request.pkl")
        request.write_bytes(pickle.dumps((fn_path, dict(kwargs or {}))))
        command = [sys.executable, "-m", "benchmarks.harness._child", folder]
        path = [entry or os.getcwd() for entry in sys.path]
        finished = run_group(command, timeout, child_env(path, threads))
        failure = finished.failure()
        if failure is not None:
            return failure
        return pickle.loads(Path(folder, "answer.pkl").read_bytes())
