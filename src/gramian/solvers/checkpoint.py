"""Checkpoints: the best point so far, kept on the disk while a solver runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock, storage
from gramian.backends.arrays import host
from gramian.callbacks import State
from gramian.problem import Problem
from gramian.storage import StoredFileError

Array = NDArray[np.floating]

EVERY = 60.0
"""Seconds between checkpoints, unless told."""

AGREEMENT = 1e-6
"""How near F of the stored factor has to be to the stored value, in units of the scale of F."""


class CheckpointError(OSError):
    """A checkpoint that cannot be written; the last good one is still there."""


class Checkpoint:
    """A file that holds the best point of a run; a watcher of `minimize`."""

    def __init__(self, path: str | Path, every: float, problem: Problem) -> None:
        if not (isinstance(every, Real) and every >= 0):
            raise ValueError(f"every must be a number of seconds of at least 0, got {every!r}")
        self.path: Path = Path(path)
        self.every: float = float(every)
        self.problem: Problem = problem
        self._best: Any = None
        self._written: float = 0.0

    def start(self, factor: Array) -> Array:
        """The factor to begin with: the stored one, or the given one, which is then stored.

        To write before the first step finds out early that a folder does not take the file.
        """
        storage.remove_abandoned(self.path)
        if self.path.exists():
            return self._stored()
        self._write(factor, self.problem.value(factor), 0)
        return factor

    def __call__(self, state: State) -> None:
        if self._best is None or state.value <= self._best.value:
            self._best = state.step
        if clock.elapsed(self._written) >= self.every:
            self._write(self._best.factor, self._best.value, state.iteration)

    def _write(self, factor: Array, value: float, iteration: int) -> None:
        content = {
            "problem": self.problem.name,
            "order": self.problem.order,
            "factor": host(factor),
            "value": float(value),
            "iteration": iteration,
        }
        write(self.path, content, f"at iteration {iteration}")
        self._written = clock.now()

    def finish(self, factor: Array, value: float, iteration: int) -> None:
        """Store the end of the run, from which another begins and ends at once."""
        self._write(factor, value, iteration)

    def _stored(self) -> Array:
        """The factor in the file, if it belongs to this problem."""
        stored, problem = storage.read(self.path, "checkpoint"), self.problem
        if "factor" not in stored:
            raise StoredFileError(
                f"checkpoint {self.path} is of a fit that ends otherwise: remove it or name "
                "another folder"
            )
        factor, value = np.asarray(stored["factor"], dtype=float), float(stored["value"])
        same = factor.ndim == 2 and len(factor) == problem.order == stored["order"]
        if same and np.all(np.isfinite(factor)):
            scale = max(abs(value), abs(problem.value(factor[:, :0])), 1e-300)
            same = abs(problem.value(factor) - value) <= AGREEMENT * scale
        if not same or stored["problem"] != problem.name:
            raise StoredFileError(
                f"checkpoint {self.path} is of another problem ({stored['problem']} of order "
                f"{stored['order']}): remove it or name another file"
            )
        return np.ascontiguousarray(factor)


def write(path: Path, content: dict[str, Any], when: str) -> None:
    """Write a checkpoint, or say why it cannot be."""
    try:
        storage.write(path, "checkpoint", content)
    except OSError as reason:
        kept = "the last good checkpoint is kept" if path.exists() else "there is none yet"
        raise CheckpointError(
            f"checkpoint {path} could not be written {when} "
            f"({reason.strerror or reason}): {kept}; make room or name another file"
        ) from reason


_ACTIVE: ContextVar[Any] = ContextVar("checkpoints", default=None)


@contextmanager
def checkpoints(folder: str | Path, *, every: float = EVERY) -> Iterator[None]:
    """Keep a checkpoint of every solve inside the block, so that the block can be run again.

    Solves are numbered as they come. After a kill the same block goes on: what was solved before
    is read, and the solve that was cut off begins at its best point.

    Parameters
    ----------
    folder : str or Path
        Where the checkpoints are kept; made where it is missing.
    every : float
        Seconds between two writes of a solve.

    Examples
    --------
    >>> with gm.checkpoints("run"):  # doctest: +SKIP
    ...     model = gm.metric.LMNN().fit(X, y)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    numbers = iter(range(1, 1_000_000))
    token = _ACTIVE.set((folder, every, numbers))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def checkpoint_for(problem: Problem, path: str | Path | None, every: float) -> Checkpoint | None:
    """The checkpoint asked for, by name or by the block around; None where there is none."""
    if path is not None:
        return Checkpoint(path, every, problem)
    there = place_for(every)
    return None if there is None else Checkpoint(*there, problem)


def place_for(every: float) -> tuple[Path, float] | None:
    """The file of the next solve of the block around, and the seconds between two writes."""
    if _ACTIVE.get() is None:
        return None
    folder, every, numbers = _ACTIVE.get()
    return folder / f"solve-{next(numbers):04d}.gramian", every
