"""Tasks of a round as plain nodes of a graph: `dask.delayed` takes milliseconds for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dask._task_spec import List, Task, TaskRef
from dask.base import normalize_token
from dask.delayed import Delayed


@dataclass(frozen=True, eq=False)
class Node:
    """A call on the cluster, and the nodes whose results it takes."""

    task: Task
    needs: tuple[Any, ...]

    @property
    def key(self) -> str:
        return str(self.task.key)


class Graph(dict[Any, Any]):
    """The tasks of a round. Its keys are unique: dask need not hash the arrays in it to name it."""


@normalize_token.register(Graph)
def _name_of(graph: Graph) -> str:
    return uuid4().hex


def node(name: str, function: Callable[..., Any], *arguments: Any) -> Node:
    """function(*arguments); nodes, futures and delayed values, also in lists, become results.

    The dashboard shows the name without what makes it unique.
    """
    needs: list[Any] = []
    taken = [_taken(argument, needs) for argument in arguments]
    return Node(Task(f"gramian-{name}-{uuid4().hex}", function, *taken), tuple(needs))


def graph_of(nodes: Iterable[Any]) -> Graph:
    """All that the nodes need, and themselves."""
    graph = Graph()
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
        return List(*parts) if changed or _has_futures(parts) else argument
    return argument


def _has_futures(parts: list[Any]) -> bool:
    return any(isinstance(part, TaskRef) for part in parts)
