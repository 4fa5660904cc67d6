"""Rounds of tasks on a Dask cluster, whose results are summed in a fixed order.

A round is a graph of tasks: values that all of them need, one task for each shard, and a tree that
joins neighbouring results in a fixed order. Every task can be repeated from its definition in the
scheduler, so the tasks of a lost worker are computed again, and sums do not depend on the order in
which tasks finish.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import add
from typing import Any
from uuid import uuid4

import dask
import numpy as np
import scipy.sparse as sp
from dask._task_spec import List, Task, TaskRef
from dask.base import normalize_token
from dask.delayed import Delayed
from distributed import Client, Future, get_worker, wait
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from gramian.common import clock

AGAIN = (
    "what gm.checkpoints(folder) wrote before this is kept, and the same call in the same block "
    "continues from it"
)


FAN = 8
"""Number of neighbouring results that one task of the tree joins."""

LARGE = 2e7
"""Size of a result in bytes above which a task joins only two of them."""

TRIES, HEARD = 3, 5.0
"""Number of retries of tasks that the scheduler has given up, and the seconds to wait until the
client is informed of a retry."""

READING = "gramian-reading"
"""Topic of the Dask events by which workers report the partitions that they read."""

LOOK, PATIENCE = 5.0, 60.0
"""Seconds between checks of a long round, and maximum number of seconds without any worker."""


class ClusterError(RuntimeError):
    """The cluster could not finish a round of tasks; checkpoints that were written are kept."""


def current_client() -> Client:
    """The current Dask client; ClusterError with instructions if there is none."""
    try:
        return Client.current()
    except ValueError:
        raise ClusterError(
            "no Dask client is current: start one with "
            "`from distributed import Client; client = Client()` for this machine, or "
            '`Client("tcp://scheduler:8786")` for a cluster, and call again'
        ) from None


@contextmanager
def announced(name: str) -> Iterator[None]:
    """Report to the scheduler what a worker reads, for the error message if the worker dies."""
    worker = get_worker()
    worker.log_event(READING, {"begins": name})
    try:
        yield
    finally:
        worker.log_event(READING, {"ends": name})


def _read_by(client: Client, worker: Any) -> str:
    """What a lost worker was reading, as a part of a sentence; empty if unknown."""
    reading: dict[str, None] = {}
    for _, event in client.get_events(READING):
        if event["worker"] == worker.address:
            reading |= {event["begins"]: None} if "begins" in event else {}
            reading.pop(event.get("ends"), None)
    return f" (the last one was reading {' and '.join(reading)})" if reading else ""


@contextmanager
def told_plainly(client: Client) -> Iterator[None]:
    """Convert errors due to a lost worker or scheduler or a full disk to a ClusterError."""
    try:
        yield
    except KilledWorker as killed:
        raise ClusterError(
            f"the task {killed.task!r} was lost with {killed.allowed_failures + 1} workers, one "
            f"after another{_read_by(client, killed.last_worker)}, most often because they ran "
            f"out of memory: give workers more memory or the data smaller partitions; {AGAIN}"
        ) from killed
    except KeyError as gone:
        if not str(gone.args[0] if gone.args else "").startswith("gramian-"):
            raise
        raise ClusterError(
            "workers repeatedly lost the results of other tasks, most often because they ran out "
            f"of memory: give workers more memory or the data smaller partitions; {AGAIN}"
        ) from gone
    except (CancelledError, asyncio.CancelledError, CommClosedError, TimeoutError) as lost:
        raise ClusterError(
            f"the connection to the Dask scheduler was lost ({type(lost).__name__}): start the "
            f"cluster again and make a new Client; {AGAIN}"
        ) from lost
    except OSError as full:
        raise ClusterError(
            f"a worker could not read or write a file ({full}): free disk space or fix the path; "
            f"{AGAIN}"
        ) from full


@dataclass(frozen=True, eq=False)
class Node:
    """A call on the cluster, and the nodes whose results it takes."""

    task: Task
    needs: tuple[Any, ...]

    @property
    def key(self) -> str:
        return str(self.task.key)


class TaskGraph(dict[Any, Any]):
    """The tasks of a round. Keys are unique, so that Dask need not hash the arrays of the graph."""


@normalize_token.register(TaskGraph)
def _name_of(graph: TaskGraph) -> str:
    return uuid4().hex


def node(name: str, function: Callable[..., Any], *arguments: Any) -> Node:
    """function(*arguments); nodes, futures and delayed values, also in lists, become results.

    The dashboard shows the name without its unique suffix.
    """
    needs: list[Any] = []
    taken = [_taken(argument, needs) for argument in arguments]
    return Node(Task(f"gramian-{name}-{uuid4().hex}", function, *taken), tuple(needs))


def graph_of(nodes: Iterable[Any]) -> TaskGraph:
    """The nodes and all nodes that they depend on."""
    graph = TaskGraph()
    waiting, wholes = list(nodes), {}
    while waiting:
        one = waiting.pop()
        if isinstance(one, Node):
            if one.key not in graph:
                graph[one.key] = one.task
                waiting.extend(one.needs)
        else:
            whole = one.__dask_graph__()
            if id(whole) not in wholes:  # blocks of one collection share its graph
                wholes[id(whole)] = whole
                graph.update(whole)
    return graph


def _taken(argument: Any, needs: list[Any]) -> Any:
    if isinstance(argument, (Node, Delayed)):
        needs.append(argument)
        return TaskRef(argument.key)
    if isinstance(argument, list):
        parts = [_taken(part, needs) for part in argument]
        changed = any(part is not given for part, given in zip(parts, argument, strict=True))
        futures = any(isinstance(part, TaskRef) for part in parts)
        return List(*parts) if changed or futures else argument
    return argument


@dataclass
class Traffic:
    """Numbers of rounds and tasks, and the bytes of arrays that the driver sent and received."""

    rounds: int = 0
    tasks: int = 0
    sent: int = 0
    received: int = 0

    @property
    def moved(self) -> int:
        return self.sent + self.received


@dataclass
class Cluster:
    """The current client, and the traffic of the driver."""

    client: Client = field(default_factory=current_client)
    traffic: Traffic = field(default_factory=Traffic)
    _hurried: bool = False

    @contextmanager
    def in_time(self, phase: str) -> Iterator[None]:
        """Rounds that end with an error at the time limit of the fit."""
        clock.phase(phase)
        self._hurried = True
        try:
            yield
        finally:
            self._hurried = False

    def shared(self, name: str, value: Any) -> Any:
        """A value for many tasks: one node of the graph, transferred between workers."""
        self.traffic.sent += size_of(value)
        self.traffic.tasks += 1
        return node(name, _itself, value)

    def each(self, name: str, function: Callable[..., Any], *columns: Any) -> list[Any]:
        """One task for each shard; an argument is a list with a value per shard, or one value."""
        count = next(len(column) for column in columns if isinstance(column, list))
        self.traffic.tasks += count
        self.traffic.sent += sum(_inline(column, count) for column in columns)
        return [
            node(f"{name}-{k}", function, *(c[k] if isinstance(c, list) else c for c in columns))
            for k in range(count)
        ]

    def tree(
        self,
        name: str,
        nodes: list[Any],
        join: Callable[[Any, Any], Any] = add,
        *,
        each: float = 0.0,
    ) -> Any:
        """All nodes joined in a tree, in a fixed order.

        A task needs the memory of all results that it joins, so it joins only two large ones
        (`each` is the size of one result).
        """
        fan = FAN if each <= LARGE else 2
        while len(nodes) > 1:
            nodes = [
                node(f"{name}-sum", _joined, join, *nodes[k : k + fan])
                for k in range(0, len(nodes), fan)
            ]
            self.traffic.tasks += len(nodes)
        return nodes[0]

    def keep(self, nodes: list[Any]) -> list[Any]:
        """The nodes as futures in the memory or on the disks of workers, recomputed if lost."""
        with told_plainly(self.client), _large_graphs():
            return self._futures(nodes)

    def gather(self, nodes: Sequence[Any]) -> list[Any]:
        """The results of the nodes, one round."""
        with told_plainly(self.client), _large_graphs():
            futures = self._futures(nodes)
            self._wait(futures)
            found = self.client.gather(futures)
        self.traffic.rounds += 1
        self.traffic.received += sum(size_of(part) for part in found)
        return found

    def sum(
        self,
        name: str,
        function: Callable[..., Any],
        *columns: Any,
        join: Callable[[Any, Any], Any] = add,
        size: float = 0.0,
    ) -> Any:
        """One round: a task for each shard, whose results (of `size` bytes each) are joined."""
        nodes = self.each(name, function, *columns)
        return self.gather([self.tree(name, nodes, join, each=size)])[0]

    def _futures(self, nodes: Sequence[Any]) -> list[Any]:
        """A future for each node; futures are returned unchanged."""
        asked = [one for one in nodes if not isinstance(one, Future)]
        made = iter(self.client.get(graph_of(asked), [one.key for one in asked], sync=False))
        return [one if isinstance(one, Future) else next(made) for one in nodes]

    def _wait(self, futures: Sequence[Any]) -> None:
        """Wait until they are done; tasks that were lost with several workers are retried.

        The scheduler attributes the death of a worker to all of its tasks and gives up tasks with
        four deaths. If workers are lost for other reasons, the tasks need not be the cause.
        """
        for _ in range(TRIES):
            self._done(futures)
            lost = [future for future in futures if _was_lost(future)]
            if not lost:
                return
            self._retry(lost)
        self._done(futures)

    def _retry(self, lost: Sequence[Any]) -> None:
        """Retry the tasks, and wait until the client no longer reports the old error."""
        self.client.retry(lost)
        until = clock.now() + HEARD
        while clock.now() < until and any(future.status == "error" for future in lost):
            time.sleep(0.01)

    def _done(self, futures: Sequence[Any]) -> None:
        alone = 0.0
        while True:
            try:
                wait(futures, timeout=min(LOOK, max(clock.left(), 0.1)) if self._hurried else LOOK)
                return
            except TimeoutError:
                if self.client.status != "running":
                    raise
                if self._hurried:
                    clock.check()
                alone = 0.0 if self.client.nthreads() else alone + LOOK
                if alone >= PATIENCE:
                    raise ClusterError(
                        f"the cluster has had no worker for {alone:.0f} seconds: start workers "
                        f"again; {AGAIN}"
                    ) from None


def _was_lost(future: Any) -> bool:
    """Whether a task failed because a worker with the task or its input died.

    A worker that starts a task whose input was just lost raises KeyError with the key of the input;
    the tasks of this module never raise KeyError.
    """
    return future.status == "error" and isinstance(future.exception(), (KilledWorker, KeyError))


def size_of(value: Any) -> int:
    """The bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if sp.issparse(value):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if isinstance(value, dict):
        return sum(size_of(part) for part in value.values())
    if isinstance(value, (tuple, list)):
        return sum(size_of(part) for part in value)
    if hasattr(value, "__dataclass_fields__"):
        return sum(size_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return 8


def _inline(column: Any, count: int) -> int:
    """Bytes of the arrays that are embedded in the graph, one for each task or one for all."""
    if isinstance(column, list):
        return sum(size_of(part) for part in column if isinstance(part, np.ndarray))
    return count * size_of(column) if isinstance(column, np.ndarray) else 0


def _itself(value: Any) -> Any:
    return value


def _joined(join: Callable[[Any, Any], Any], first: Any, *others: Any) -> Any:
    for other in others:
        first = join(first, other)
    return first


def _large_graphs() -> Any:
    """Disable Dask's warning about large graphs: they contain the factor so that lost results can
    be recomputed."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"})
