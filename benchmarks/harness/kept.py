"""Results of other processes, kept in a folder: a run of hours can be made in pieces."""

import os
import pickle
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

import joblib

from benchmarks.harness.process import ChildResult


@dataclass
class Kept:
    """One file a result, failures too. All of a folder must be of one code, machine and --jobs."""

    folder: Path
    taken: int = 0
    """Results found in the folder."""
    times: list[str] = field(default_factory=list)
    """When the call of each result began, found or computed."""
    _calls: Counter[str] = field(default_factory=Counter)
    _lock: Any = field(default_factory=Lock)

    def result(self, label: str, call: Any, compute: Callable[[], ChildResult]) -> ChildResult:
        """What the folder has for the call, else what ``compute`` returns, which is kept."""
        path = self._path(label, call)
        known = _read(path)
        time, result = known or (datetime.now(UTC).isoformat(timespec="seconds"), compute())
        if known is None:
            _write(path, (time, result))
        with self._lock:
            self.taken += known is not None
            self.times.append(time)
        return result

    def told(self) -> str | None:
        """From when to when the results are, where some are of an earlier piece."""
        if not self.taken:
            return None
        return f"in pieces, first {min(self.times)}, last {max(self.times)}"

    def _path(self, label: str, call: Any) -> Path:
        """The file of a call. Equal calls of one run have one each, in the order they are made."""
        key = f"{label.replace(':', '.')}-{joblib.hash(call)}"
        with self._lock:
            self._calls[key] += 1
            return self.folder / f"{key}-{self._calls[key]}.pkl"


def _read(path: Path) -> tuple[str, ChildResult] | None:
    """What was written there; None where nothing was, or not to its end."""
    with suppress(FileNotFoundError, EOFError, pickle.UnpicklingError):
        return pickle.loads(path.read_bytes())
    return None


def _write(path: Path, value: tuple[str, ChildResult]) -> None:
    """Put the whole file in place, so that a run that is killed leaves no half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(pickle.dumps(value))
    os.replace(part, path)
