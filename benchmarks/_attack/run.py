"""Run many instances in several worker processes that can be replaced.

Each worker receives one index at a time over a pipe. One that does not answer within three times
the limit is killed and replaced, and its instance is recorded as a hang.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks._attack.judge import HANG, TRACEBACK

Record = dict[str, Any]
PATIENCE = 3.0
"""An instance is recorded as a hang after this multiple of its time limit."""
START = 120.0
"""Time limit in seconds for the imports and compilations of a worker."""


@dataclass(frozen=True)
class Plan:
    """The instances of a run; (seed, index) and these settings determine each."""

    instances: int
    seed: int = 0
    large_share: float = 0.1
    limit: float = 10.0
    only: str | None = None
    task: str = "benchmarks._attack.examine:examine"
    """The function called for each instance; its module's `warm_up` is called first."""

    def key(self, index: int) -> str:
        return f"{self.seed}/{self.only or self.large_share}/{index}"


def command(
    argv: Sequence[str] | None, name: str, description: str | None, plan: Plan
) -> tuple[Plan, list[Record]]:
    """The plan of a command line, by default `plan`, and its records."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    parser.add_argument("--instances", type=int, default=plan.instances, metavar="N")
    parser.add_argument("--workers", type=int, default=1, metavar="W")
    parser.add_argument("--out", type=Path, default=Path(f"{name}.jsonl"), metavar="FILE")
    parser.add_argument("--seed", type=int, default=plan.seed, metavar="S")
    parser.add_argument("--limit", type=float, default=plan.limit, help="seconds for an instance")
    parser.add_argument("--large-share", type=float, default=plan.large_share)
    parser.add_argument("--only", metavar="FAMILY", help="instances of one family")
    parser.add_argument(
        "--summary", type=Path, metavar="FILE", help="summarise a file, run nothing"
    )
    args = parser.parse_args(argv)
    settings = {
        key: getattr(args, key) for key in ("instances", "seed", "limit", "large_share", "only")
    }
    plan = replace(plan, **settings)
    if args.summary is not None:
        return plan, read(args.summary)
    one_thread()
    return plan, attack(plan, args.out, args.workers)


def afresh(plan: Plan, out: Path, workers: int) -> list[Record]:
    """The records of a plan, all computed now."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    one_thread()
    return attack(plan, out, workers)


def attack(plan: Plan, out: Path, workers: int = 1) -> list[Record]:
    """Run what the file does not contain yet, one line for each instance; return all of it."""
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
    """The records of a file, without a truncated last line."""
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
        """The record of an instance whose process was killed or died."""
        from benchmarks._attack.examine import draw, order_class

        plan, index = self.plan, self.index or 0
        alarm = {"kind": kind, "by": "the whole instance", "reason": reason}
        record = {"seed": plan.seed, "index": index, "alarms": [alarm], "family": plan.only or "?"}
        try:
            instance = draw(plan.seed, index, plan.large_share, plan.only)
        except Exception:
            return record
        order = instance.problem.order
        label = {"family": instance.family, "order": order, "order_class": order_class(order)}
        return {**record, **label}

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
    """Receive an answer, send the next index, replace a worker that died or does not answer."""
    kind, reason = HANG, f"no answer after {PATIENCE * worker.plan.limit:g} s"
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
        if time.monotonic() <= worker.deadline:
            return
    except (EOFError, ConnectionError):
        kind, reason = TRACEBACK, "the process died"
    if worker.index is None:
        raise RuntimeError("a worker could not start")
    yield worker.lost(kind, reason)
    workers.remove(worker)
    worker.end()
    if todo:
        workers.append(Worker(worker.plan))


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
    """Limit later processes to one thread each."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
