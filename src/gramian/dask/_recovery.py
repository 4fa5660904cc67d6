"""Failures of a cluster, with one message each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from distributed import Client
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

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
