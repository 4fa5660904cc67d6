"""The argument of a benchmark's ``run(ctx)``: the settings of the run and the tools."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import data, peers, plots, timing
from benchmarks.harness.kept import Kept
from benchmarks.harness.process import ChildResult
from benchmarks.harness.report import Plot, Report, Table


@dataclass
class Context:
    """Settings of one run. ``folder`` receives the report and its pictures."""

    name: str
    title: str
    paper: str
    folder: Path
    data_folder: Path | None = None
    quick: bool = False
    repeat: int = 3
    jobs: int = 1
    """Processes that may run at once."""
    kept: Kept | None = None
    """Results of child processes of earlier runs; new ones are added."""
    _plots: list[Plot] = field(default_factory=list)
    _beside: int = 1
    """The largest number of processes that ran at once."""

    def load(self, name: str) -> data.Dataset:
        """A labelled data set in float64."""
        return data.load_set(name, self.data_folder)

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """The stored arrays of any set (ratings, pairs), uncast."""
        return data.load_arrays(name, self.data_folder)

    def measure(self, fn: Callable[[], Any], repeat: int | None = None) -> timing.Timing:
        """Time ``fn()`` as often as ``--repeat`` asks, or ``repeat`` times."""
        return timing.measure(fn, self.repeat if repeat is None else repeat)

    def pick(self, full: Any, quick: Any) -> Any:
        """`quick` in a quick run, otherwise `full`."""
        return quick if self.quick else full

    def in_child(
        self,
        fn_path: str | Callable[..., Any],
        kwargs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        threads: int | None = None,
    ) -> ChildResult:
        """Call a function, or ``"module:function"``, in a new process; see ``timing.in_child``."""
        if not isinstance(fn_path, str):
            fn_path = f"{fn_path.__module__}:{fn_path.__qualname__}"
        call = partial(timing.in_child, fn_path, kwargs, timeout, threads=threads)
        return self._result(fn_path, (kwargs, timeout, threads), call)

    def child(
        self, fn: Callable[..., Any], timeout: float | None = None, **kwargs: Any
    ) -> ChildResult:
        """``fn(**kwargs)`` in a new process with one thread; a failure is a result."""
        return self.in_child(fn, kwargs, timeout, threads=1)

    def call(self, fn: Callable[..., Any], timeout: float | None = None, **kwargs: Any) -> Any:
        """The value of ``fn(**kwargs)`` in a new process with one thread; raises if it fails."""
        answer = self.child(fn, timeout, **kwargs)
        if not answer.ok:
            raise RuntimeError(f"{fn.__name__}: {answer.error}")
        return answer.value

    def each(self, calls: Mapping[Any, Callable[[], Any]]) -> dict[Any, Any]:
        """The results of the calls by their keys, ``--jobs`` at a time."""
        return dict(zip(calls, self.at_once(list(calls.values())), strict=True))

    def at_once(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of the calls, each of which waits for a process, ``--jobs`` at a time."""
        self._beside = max(self._beside, min(self.jobs, len(calls)))
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda call: call(), calls))

    def threads(self, alone: int | None) -> int | None:
        """Threads of a child: one if several may run at once, otherwise `alone`."""
        return 1 if self.jobs > 1 else alone

    def peer(
        self,
        name: str,
        kwargs: Mapping[str, Any],
        timeout: float | None = None,
        *,
        threads: int | None = None,
    ) -> ChildResult:
        """Call ``benchmarks/peers/NAME.py`` in its own environment; see ``peers.run_peer``."""
        call = partial(peers.run_peer, peers.find_peer(name), kwargs, timeout, threads=threads)
        return self._result(f"peers.{name}", (kwargs, timeout, threads), call)

    def _result(self, label: str, given: Any, call: Callable[[], ChildResult]) -> ChildResult:
        """The stored result of the call, or that of a new call."""
        if self.kept is None:
            return call()
        return self.kept.result(f"{self.name}-{label}", given, call)

    def plot(
        self, name: str, curves: Mapping[str, plots.Curve], xlabel: str, ylabel: str,
        *, caption: str = "", **options: Any,
    ) -> None:  # fmt: skip
        """Draw ``{label: (x, y)}`` as lines in ``name.png``; options as in ``plots.Panel``."""
        self.panels(name, caption, plots.Panel(curves, xlabel, ylabel, **options))

    def panels(self, name: str, caption: str, *panels: plots.Panel, columns: int = 2) -> None:
        """Draw panels in ``name.png``; a label has the same colour in all of them."""
        columns = min(columns, len(panels))
        rows = -(-len(panels) // columns)
        size = (6.4, 4.2) if len(panels) == 1 else (5.2 * columns, 4.4 * rows)
        shape = {"nrows": rows, "ncols": columns, "squeeze": False, "figsize": size}
        with self.figure(name, caption, **shape) as (fig, axes):
            plots.draw_panels(fig, axes.flat, panels)

    @contextmanager
    def figure(self, name: str, caption: str = "", **subplots: Any) -> Iterator[tuple[Any, Any]]:
        """Yield matplotlib's ``(figure, axes)``, saved as ``name.png`` and put in the report."""
        with plots.figure(self.folder / f"{name}.png", **subplots) as drawing:
            yield drawing
        self._plots.append(Plot(f"{name}.png", caption or name))

    def report(self, tables: Sequence[Table], notes: Sequence[str] = ()) -> Report:
        """The report that ``run`` returns, with all pictures drawn so far."""
        drawn = tuple(self._plots)
        return Report(self.name, self.title, self.paper, tables, drawn, notes, self._how())

    def _how(self) -> list[str]:
        """How the processes ran, if not one after another in a single run."""
        beside = f"{self._beside} side by side, one thread each" if self._beside > 1 else None
        pieces = self.kept.note() if self.kept else None
        return [words for words in (beside, pieces) if words]
