"""Time and peak memory of a call, measured in the process that makes it."""

import ctypes
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measured:
    """The value of a call and its cost."""

    value: Any
    seconds: float
    peak_mb: float


def measured_call(fn: Callable[..., Any], kwargs: Mapping[str, Any]) -> Measured:
    """Call ``fn(**kwargs)``; imports made before this call are not timed."""
    start = time.perf_counter()
    value = fn(**kwargs)
    return Measured(value, time.perf_counter() - start, peak_mb())


def end_with_parent() -> None:
    """On Linux, end this process when its parent ends."""
    if sys.platform == "linux":
        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def peak_mb() -> float:
    """Peak resident memory of this process, in MiB.

    On Linux a child inherits the ``ru_maxrss`` of its parent through exec, so ``VmHWM`` is read.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
