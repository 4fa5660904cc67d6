"""What goes wrong on a cluster, in one sentence each, and what is kept of a fit until then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import Client
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from gramian import clock, storage
from gramian.solvers.checkpoint import EVERY, checkpoint_for
from gramian.storage import StoredFileError

AGAIN = (
    "what gm.checkpoints(folder) wrote before this is kept, and the same call in the same block "
    "goes on from it"
)


class ClusterError(RuntimeError):
    """The cluster could not finish a round of tasks; checkpoints that were written are kept."""


def current_client() -> Client:
    """The client of the cluster to work on, or one sentence on how to start it."""
    try:
        return Client.current()
    except ValueError:
        raise ClusterError(
            "no Dask client is current: start one with "
            "`from distributed import Client; client = Client()` for this machine, or "
            '`Client("tcp://scheduler:8786")` for a cluster, and call again'
        ) from None


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn what a lost worker, scheduler or disk raises into one sentence."""
    try:
        yield
    except KilledWorker as killed:
        raise ClusterError(
            f"the task {killed.task!r} was lost with {killed.allowed_failures + 1} workers, one "
            "after another, most often for want of memory: give workers more of it or the data "
            f"smaller partitions; {AGAIN}"
        ) from killed
    except KeyError as gone:
        if not str(gone.args[0] if gone.args else "").startswith("gramian-"):
            raise
        raise ClusterError(
            "workers lost what other tasks had made for them, time after time, most often for want "
            f"of memory: give workers more of it or the data smaller partitions; {AGAIN}"
        ) from gone
    except (CancelledError, asyncio.CancelledError, CommClosedError, TimeoutError) as lost:
        raise ClusterError(
            f"the connection to the Dask scheduler was lost ({type(lost).__name__}): start the "
            f"cluster again and make a new Client; {AGAIN}"
        ) from lost
    except OSError as full:
        raise ClusterError(
            f"a worker could not read or write a file ({full}): make room, or mend the path; "
            f"{AGAIN}"
        ) from full


def refuse_deserted(client: Client, seconds: float, patience: float) -> None:
    """Refuse to wait longer for workers that do not come back."""
    if seconds >= patience and not client.nthreads():
        raise ClusterError(
            f"the cluster has had no worker for {seconds:.0f} seconds: start workers again; {AGAIN}"
        )


class Progress:
    """What a fit by stages has reached, kept where `gm.checkpoints` says; nothing without it."""

    def __init__(self, mark: dict[str, Any]) -> None:
        keeper = checkpoint_for(None, None, EVERY)  # type: ignore[arg-type]
        self.path = None if keeper is None else keeper.path
        self.every = np.inf if keeper is None else keeper.every
        self.mark, self._written = mark, -np.inf

    def stored(self) -> dict[str, Any] | None:
        """What an earlier call of the same fit has kept."""
        if self.path is None or not self.path.exists():
            return None
        found: dict[str, Any] = storage.read(self.path, "checkpoint")
        if found.get("mark") != self.mark:
            raise StoredFileError(
                f"checkpoint {self.path} is of another fit ({self._apart(found)}): remove it or "
                "name another folder"
            )
        return found

    def _apart(self, found: dict[str, Any]) -> str:
        """What this fit and that of the checkpoint differ in."""
        kept = found.get("mark")
        kept = kept if isinstance(kept, dict) else {}
        differ = [name for name, value in self.mark.items() if kept.get(name) != value]
        told = {"mark": "ratings", "weight": "weights", "seed": "random_state"}
        return "other " + ", ".join(dict.fromkeys(told.get(name, name) for name in differ))

    def keep(self, *, now: bool = False, **content: Any) -> None:
        """Write where the fit is, when the last time was long enough ago.

        What is a function is called only then.
        """
        if self.path is None or (not now and clock.elapsed(self._written) < self.every):
            return
        content = {name: part() if callable(part) else part for name, part in content.items()}
        storage.write(self.path, "checkpoint", {"mark": self.mark, **content})
        self._written = clock.now()
