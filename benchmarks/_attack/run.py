"""Many instances by several processes, none of which can hold up the others.

Each worker is handed one index at a time over a pipe. One that does not answer within three times
the limit is killed and replaced, and its instance is recorded as a hang.
"""

import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks._attack.judge import HANG, TRACEBACK

Record = dict[str, Any]
PATIENCE = 3.0
"""How many times its limit an instance may take."""
START = 120.0
"""Seconds that a worker may take to import and compile."""


@dataclass(frozen=True)
class Plan:
    """Which instances; (seed, index) and these settings determine each."""

    instances: int
    seed: int = 0
    large_share: float = 0.1
    limit: float = 10.0
    only: str | None = None
    task: str = "benchmarks._attack.examine:examine"
    """What is asked of each instance, and before all of them its module's `warm_up`."""

    def key(self, index: int) -> str:
        return f"{self.seed}/{self.only or self.large_share}/{index}"


def attack(plan: Plan, out: Path, workers: int = 1) -> list[Record]:
    """Run what the file does not hold yet, a line for each instance; return all of it."""
    known = {record["key"]: record for record in read(out)}
    wanted = [plan.key(index) for index in range(plan.instances)]
    missing = [index for index, key in enumerate(wanted) if key not in known]
    with out.open("a") as file:
        for record in _gathered(plan, missing, workers):
            record["key"] = plan.key(record["index"])
            file.write(json.dumps(record, default=float) + "\n")
            file.flush()
            known[record["key"]] = record
    return [known[key] for key in wanted]


def read(path: Path) -> list[Record]:
    """The records of a file; a last line that was cut off is left out."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


class Worker:
    """A process that examines one instance at a time."""

    def __init__(self, plan: Plan) -> None:
        context = multiprocessing.get_context("spawn")
        self.plan = plan
        self.pipe, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(inner, plan), daemon=True)
        self.process.start()
        inner.close()
        self.index: int | None = None
        self.deadline = time.monotonic() + START

    def give(self, index: int) -> None:
        self.index = index
        self.deadline = time.monotonic() + PATIENCE * self.plan.limit
        self.pipe.send(index)

    def lost(self, kind: str, reason: str) -> Record:
        alarm = {"kind": kind, "by": "the whole instance", "reason": reason}
        record = {"seed": self.plan.seed, "index": self.index, "alarms": [alarm]}
        return {**record, **_label(self.plan, self.index)}

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _gathered(plan: Plan, indices: Iterable[int], count: int) -> Iterator[Record]:
    todo = list(reversed(list(indices)))
    workers = [Worker(plan) for _ in range(min(count, len(todo)))]
    try:
        while workers:
            for worker in list(workers):
                yield from _tend(worker, workers, todo)
            if workers:
                wait([worker.pipe for worker in workers], timeout=0.5)
    finally:
        for worker in workers:
            worker.end()


def _tend(worker: Worker, workers: list[Worker], todo: list[int]) -> Iterator[Record]:
    """Take an answer, hand out the next index, replace the dead and the stuck."""
    try:
        if worker.pipe.poll():
            record = worker.pipe.recv()
            if worker.index is not None:
                yield record
            worker.index = None
            if todo:
                worker.give(todo.pop())
            else:
                workers.remove(worker)
                worker.end()
            return
        stuck = time.monotonic() > worker.deadline
        reason = f"no answer after {PATIENCE * worker.plan.limit:g} s"
    except (EOFError, ConnectionError):
        stuck, reason = True, "the process died"
    if not stuck:
        return
    if worker.index is None:
        raise RuntimeError("a worker could not start")
    yield worker.lost(HANG if "answer" in reason else TRACEBACK, reason)
    workers.remove(worker)
    worker.end()
    if todo:
        workers.append(Worker(worker.plan))


def _label(plan: Plan, index: int | None) -> Record:
    """Family and order of an instance that did not come back."""
    from benchmarks._attack.examine import draw, order_class

    try:
        instance = draw(plan.seed, index or 0, plan.large_share, plan.only)
    except Exception:
        return {"family": plan.only or "?"}
    order = instance.problem.order
    return {"family": instance.family, "order": order, "order_class": order_class(order)}


def _serve(pipe: Connection, plan: Plan) -> None:
    module, name = plan.task.split(":")
    tasks = import_module(module)
    if hasattr(tasks, "warm_up"):
        tasks.warm_up()
    pipe.send({})
    while True:
        try:
            index = pipe.recv()
        except EOFError:
            return
        pipe.send(getattr(tasks, name)(plan.seed, index, plan.large_share, plan.only, plan.limit))


def one_thread() -> None:
    """For the processes to come: many of them with many threads each would only wait."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
