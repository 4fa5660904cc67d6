"""Rounds of plain tasks on a Dask cluster, summed in a fixed order.

A round is a graph of tasks: one value that all of them need, one task for each shard, and a tree
that joins what they give, neighbours first, always in the same order. Every task can be run again
from what the scheduler knows of it, so that a worker that dies costs a recomputation and nothing
else; and the sums do not depend on who finished first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Any
from uuid import uuid4

import dask
import numpy as np
import scipy.sparse as sp
from dask import delayed
from distributed import Client, wait
from distributed.scheduler import KilledWorker

from gramian.dask._recovery import current_client, refuse_deserted, told_plainly

FAN = 8
"""Neighbours that one task of the tree joins."""

TRIES = 3
"""Times that tasks which the scheduler has given up are tried again."""

LOOK, PATIENCE = 5.0, 60.0
"""Seconds between looks at a round that takes long, and how long it may be without any worker."""


@dataclass
class Traffic:
    """What the driver has sent to and had from the cluster."""

    rounds: int = 0
    tasks: int = 0
    sent: int = 0
    received: int = 0

    @property
    def moved(self) -> int:
        return self.sent + self.received


@dataclass
class Cluster:
    """The client that is current, and what has gone to and fro."""

    client: Client = field(default_factory=current_client)
    traffic: Traffic = field(default_factory=Traffic)

    def shared(self, name: str, value: Any) -> Any:
        """A value for many tasks: one node of the graph, which workers pass to each other."""
        self.traffic.sent += size_of(value)
        return delayed(_itself, pure=False, traverse=False)(value, dask_key_name=_key(name))

    def each(self, name: str, function: Callable[..., Any], *columns: Any) -> list[Any]:
        """One task for each shard; a column is a list, one for each, or a value for all."""
        count = next(len(column) for column in columns if isinstance(column, list))
        made = delayed(function, pure=False)
        return [
            made(
                *(column[k] if isinstance(column, list) else column for column in columns),
                dask_key_name=_key(name),
            )
            for k in range(count)
        ]

    def tree(self, name: str, nodes: list[Any], join: Callable[[Any, Any], Any] = add) -> Any:
        """All nodes joined, neighbours first, in a fixed order."""
        made = delayed(_joined, pure=False)
        while len(nodes) > 1:
            nodes = [
                made(join, *nodes[k : k + FAN], dask_key_name=_key(f"{name}-sum"))
                for k in range(0, len(nodes), FAN)
            ]
        return nodes[0]

    def keep(self, nodes: list[Any]) -> list[Any]:
        """The nodes as futures: in the workers' memory or on their disks, made again when lost."""
        with told_plainly(), _large_graphs():
            futures: list[Any] = self.client.compute(nodes, optimize_graph=False)
            return futures

    def ready(self, futures: list[Any]) -> list[Any]:
        """The futures when they are done, and the first error where there is one."""
        with told_plainly():
            self._wait(futures)
            for future in futures:
                if future.status == "error":
                    future.result()
        return futures

    def gather(self, nodes: Sequence[Any]) -> list[Any]:
        """What the nodes come to."""
        with told_plainly(), _large_graphs():
            futures = self.client.compute(list(nodes), optimize_graph=False)
            self._wait(futures)
            found = [future.result() for future in futures]
        self.traffic.rounds += 1
        self.traffic.received += sum(size_of(part) for part in found)
        return found

    def sum(
        self,
        name: str,
        function: Callable[..., Any],
        *columns: Any,
        join: Callable[[Any, Any], Any] = add,
    ) -> Any:
        """One round: a task for each shard, and what they come to together."""
        nodes = self.each(name, function, *columns)
        self.traffic.tasks += len(nodes)
        return self.gather([self.tree(name, nodes, join)])[0]

    def beside(self, name: str, nodes: list[Any]) -> tuple[Any, Any]:
        """One round of tasks that give pairs: the firsts added, the seconds one below another.

        Few of them are put together by one task; many by tasks and the driver, which alone has to
        hold all rows.
        """
        if len(nodes) <= FAN:
            made = delayed(_beside, pure=False)(*nodes, dask_key_name=_key(f"{name}-sum"))
            both: tuple[Any, Any] = self.gather([made])[0]
            return both
        first, *rows = self.gather(
            [self.tree(name, self.each(name, _first, nodes)), *self.each(name, _second, nodes)]
        )
        return first, np.concatenate(rows)

    def _wait(self, futures: Sequence[Any]) -> None:
        """Until they are done; tasks that died with several workers are tried a few times more.

        The scheduler counts a death against all tasks that a worker had before it, and gives up
        those with four: on a cluster that loses workers now and then they need not be at fault.
        """
        for _ in range(TRIES):
            self._done(futures)
            lost = [future for future in futures if _was_killed(future)]
            if not lost:
                return
            self.client.retry(lost)
        self._done(futures)

    def _done(self, futures: Sequence[Any]) -> None:
        alone = 0.0
        while True:
            try:
                wait(futures, timeout=LOOK)
                return
            except TimeoutError:
                if self.client.status != "running":
                    raise
                alone = 0.0 if self.client.nthreads() else alone + LOOK
                refuse_deserted(self.client, alone, PATIENCE)


def _was_killed(future: Any) -> bool:
    return future.status == "error" and isinstance(future.exception(), KilledWorker)


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


def _itself(value: Any) -> Any:
    return value


def _joined(join: Callable[[Any, Any], Any], first: Any, *others: Any) -> Any:
    for other in others:
        first = join(first, other)
    return first


def _beside(*pairs: tuple[Any, Any]) -> tuple[Any, Any]:
    return _joined(add, *(first for first, _ in pairs)), np.concatenate([rows for _, rows in pairs])


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _key(name: str) -> str:
    """A name that the dashboard shows without what makes it unique."""
    return f"gramian-{name}-{uuid4().hex}"


def _large_graphs() -> Any:
    """The factor is part of the graph on purpose: what is there can be computed again."""
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"})
