"""Child processes with a time limit, which ends their whole process group."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@dataclass(frozen=True)
class ChildResult:
    """Result of a call in another process; ``error`` is None if it succeeded."""

    value: Any = None
    seconds: float | None = None
    peak_mb: float | None = None
    timed_out: bool = False
    error: str | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True)
class Finished:
    """Exit status, time and output of a command."""

    returncode: int
    seconds: float
    timed_out: bool
    output: str

    def failure(self) -> ChildResult | None:
        """The failed result, None if the command succeeded."""
        if self.timed_out:
            error = f"timed out after {self.seconds:.0f} s"
            return ChildResult(seconds=self.seconds, timed_out=True, error=error)
        if self.returncode != 0:
            lines = self.output.strip().splitlines() or ["no output"]
            return ChildResult(error=f"{lines[-1]} (exit status {self.returncode})")
        return None


def run_group(command: Sequence[str], timeout: float | None, env: Mapping[str, str]) -> Finished:
    """Run ``command`` in its own process group, and end the whole group with it.

    Output goes to a file: with a pipe, a remaining grandchild would block the caller.
    """
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=dict(env), start_new_session=True
        )
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _kill_group(process)
        seconds = time.perf_counter() - start
        log.seek(0)
        return Finished(process.returncode, seconds, timed_out, log.read().decode(errors="replace"))


def child_env(python_path: Sequence[str], threads: int | None) -> dict[str, str]:
    """The environment with an import path and, if given, a limit on threads."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(python_path))
    if threads is not None:
        env.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    return env


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
