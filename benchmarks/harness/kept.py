"""Results of child processes stored in a folder, so that a long run can be resumed."""

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
    """One file per result, failures included.

    All results of a folder must come from the same code, machine and ``--jobs``.
    """

    folder: Path
    taken: int = 0
    """Number of results loaded from the folder."""
    times: list[str] = field(default_factory=list)
    """When the call of each result began, loaded or computed."""
    _calls: Counter[str] = field(default_factory=Counter)
    _lock: Any = field(default_factory=Lock)

    def result(self, label: str, call: Any, compute: Callable[[], ChildResult]) -> ChildResult:
        """The stored result of the call; without one, ``compute()``, which is stored."""
        path = self._path(label, call)
        known = _read(path)
        time, result = known or (datetime.now(UTC).isoformat(timespec="seconds"), compute())
        if known is None:
            _write(path, (time, result))
        with self._lock:
            self.taken += known is not None
            self.times.append(time)
        return result

    def note(self) -> str | None:
        """The times of the first and last result, if some were loaded."""
        if not self.taken:
            return None
        return f"in pieces, first {min(self.times)}, last {max(self.times)}"

    def _path(self, label: str, call: Any) -> Path:
        """The file of a call. Equal calls of one run have numbered files."""
        key = f"{label.replace(':', '.')}-{joblib.hash(call)}"
        with self._lock:
            self._calls[key] += 1
            return self.folder / f"{key}-{self._calls[key]}.pkl"


def _read(path: Path) -> tuple[str, ChildResult] | None:
    """The stored value; None if the file is missing or incomplete."""
    with suppress(FileNotFoundError, EOFError, pickle.UnpicklingError):
        return pickle.loads(path.read_bytes())
    return None


def _write(path: Path, value: tuple[str, ChildResult]) -> None:
    """Write the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(pickle.dumps(value))
    os.replace(part, path)
