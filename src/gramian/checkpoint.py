"""Checkpoints: the progress of a run or a fit, stored on disk while it runs.

A checkpoint is one file, which is replaced atomically. It contains a mark that identifies the
problem or the fit (`Progress.mark`). A file with another mark is rejected; the same call resumes
from its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from gramian.arrays.places import host
from gramian.callbacks import State
from gramian.common import clock, storage
from gramian.common.storage import StoredFileError
from gramian.common.types import Array
from gramian.problem import Problem

Mark = dict[str, Any]
Place = tuple[Path, float]
"""A file, and the seconds between two writes of it."""

EVERY = 60.0
"""Default number of seconds between two writes of a checkpoint."""

VALUE_TOLERANCE = 1e-6
"""Tolerance between F at the stored factor and the stored value, relative to the scale of F."""


class CheckpointError(OSError):
    """A checkpoint cannot be written; the previous checkpoint is unchanged."""


class SavedProgress:
    """The progress of a fit, stored in the file of `gm.checkpoints`; without it nothing is stored.

    Parameters
    ----------
    mark : function
        Returns the names and values that must be equal for one fit to resume another. It is
        called only if there is a file.
    place : (Path, float), optional
        The file and the seconds between two writes; by default the next of `gm.checkpoints`.

    Attributes
    ----------
    found : dict
        The content of the file, updated by `keep`.
    """

    def __init__(self, mark: Callable[[], Mark], place: Place | None = None) -> None:
        self.path: Path | None
        self.path, self.every = place or _next_place() or (None, np.inf)
        self.found: dict[str, Any] = {}
        self._written: float = -np.inf
        if not (isinstance(self.every, Real) and self.every >= 0):
            raise ValueError(f"every must be a number of seconds of at least 0, got {self.every!r}")
        if self.path is not None:
            self.mark: Mark = mark()
            storage.remove_abandoned(self.path)
            if self.path.exists():
                self.found = self._read(self.path)

    def keep(self, when: str = "between two sweeps", *, now: bool = False, **content: Any) -> None:
        """Record the state of the fit, and write it if the last write is `every` seconds ago.

        Arrays are not copied: the values at the time of the write are stored. A function is
        called for its value only when the file is written.
        """
        if self.path is None:
            return
        self.found.update(content)
        if now or clock.elapsed(self._written) >= self.every:
            self._write(self.path, when)
            self._written = clock.now()

    def _write(self, path: Path, when: str) -> None:
        content = {name: part() if callable(part) else part for name, part in self.found.items()}
        try:
            storage.write(path, "checkpoint", {"mark": self.mark, **content})
        except OSError as reason:
            kept = "the previous checkpoint is kept" if path.exists() else "there is none yet"
            raise CheckpointError(
                f"checkpoint {path} could not be written {when} "
                f"({reason.strerror or reason}): {kept}; free disk space or name another file"
            ) from reason

    def _read(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = storage.read(path, "checkpoint")
        kept = found.pop("mark", None)
        if kept != self.mark:
            raise self._other(kept if isinstance(kept, dict) else {})
        return found

    def _other(self, kept: Mark) -> StoredFileError:
        """The error for a file with another mark."""
        differ = [name for name, value in self.mark.items() if kept.get(name) != value]
        return StoredFileError(
            f"checkpoint {self.path} belongs to another fit (other {', '.join(differ)}): remove it "
            "or name another folder"
        )


class Checkpoint(SavedProgress):
    """The best point of a run; `minimize` calls it after each step.

    With `replaceable` the file of another problem is replaced instead of refused: a fit that
    reached its time limit may solve other problems when it is run again.
    """

    def __init__(self, problem: Problem, place: Place, *, replaceable: bool = False) -> None:
        self.problem, self.replaceable = problem, replaceable
        self._best: Any = None
        super().__init__(lambda: {"problem": problem.name, "order": problem.order}, place)

    def start(self, factor: Array) -> Array:
        """The initial factor: the stored one, or else the given one, which is then stored.

        The write before the first step detects early that the folder is not writable.
        """
        if self.found and (stored := self._resumed()) is not None:
            return stored
        self.finish(factor, self.problem.value(factor), 0)
        return factor

    def __call__(self, state: State) -> None:
        if self._best is None or state.value <= self._best.value:
            self._best = state.step
        self._note(self._best.factor, self._best.value, state.iteration)

    def finish(self, factor: Array, value: float, iteration: int) -> None:
        """Store the end of the run; a run that resumes from it ends at once."""
        self._note(factor, value, iteration, now=True)

    def _note(self, factor: Array, value: float, iteration: int, *, now: bool = False) -> None:
        reached = {"factor": lambda: host(factor), "value": float(value), "iteration": iteration}
        self.keep(f"at iteration {iteration}", now=now, **reached)

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            return super()._read(path)
        except StoredFileError:
            if self.replaceable and storage.read(path, "checkpoint").get("mark") is not None:
                return {}
            raise

    def _resumed(self) -> Array | None:
        """The factor in the file if F has the stored value there, None to start anew."""
        problem, value = self.problem, float(self.found["value"])
        factor = np.asarray(self.found.pop("factor"), dtype=float)
        same = factor.ndim == 2 and len(factor) == problem.order and np.isfinite(factor).all()
        if same:
            scale = max(abs(value), abs(problem.value(factor[:, :0])), 1e-300)
            same = abs(problem.value(factor) - value) <= VALUE_TOLERANCE * scale
        if not same:
            if self.replaceable:
                return None
            raise self._other(self.mark)
        return np.ascontiguousarray(factor)

    def _other(self, kept: Mark) -> StoredFileError:
        if "problem" not in kept:
            return StoredFileError(
                f"checkpoint {self.path} belongs to a fit with another format: remove it or name "
                "another folder"
            )
        return StoredFileError(
            f"checkpoint {self.path} belongs to another problem ({kept['problem']} of order "
            f"{kept['order']}): remove it or name another file"
        )


_PLACES: ContextVar[Iterator[Place] | None] = ContextVar("checkpoints", default=None)


@contextmanager
def checkpoints(folder: str | Path, *, every: float = EVERY) -> Iterator[None]:
    """Keep a checkpoint of every solve inside the block, so that the block can be resumed.

    Solves are numbered in order of execution. After a kill, run the same block again: finished
    solves are read, and the interrupted solve resumes at its best point.

    Parameters
    ----------
    folder : str or Path
        Folder of the checkpoints; created if missing.
    every : float
        Seconds between two writes of a checkpoint.

    Examples
    --------
    >>> with gm.checkpoints("run"):  # doctest: +SKIP
    ...     model = gm.metric.LMNN().fit(X, y)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    token = _PLACES.set((folder / f"solve-{number:04d}.gramian", every) for number in count(1))
    try:
        yield
    finally:
        _PLACES.reset(token)


def checkpoint_for(problem: Problem, path: str | Path | None, every: float) -> Checkpoint | None:
    """The checkpoint given by its path or by `gm.checkpoints`; None without one."""
    if path is not None:
        return Checkpoint(problem, (Path(path), every))
    place = _next_place()
    limited = np.isfinite(clock.budget_end())
    return None if place is None else Checkpoint(problem, place, replaceable=bool(limited))


def _next_place() -> Place | None:
    """The file of the next solve inside `gm.checkpoints`; None outside of it."""
    places = _PLACES.get()
    return None if places is None else next(places)
