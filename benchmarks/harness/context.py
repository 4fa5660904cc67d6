"""What a benchmark's ``run(ctx)`` is handed: its settings and the harness's tools in one place."""

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
    """Where results are taken from and kept."""
    _plots: list[Plot] = field(default_factory=list)
    _beside: int = 1
    """Processes that did run at once."""

    def load(self, name: str) -> data.Dataset:
        """A labelled data set in float64."""
        return data.load_set(name, self.data_folder)

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """The stored arrays of any set (ratings, pairs), uncast."""
        return data.load_arrays(name, self.data_folder)

    def measure(self, fn: Callable[[], Any], repeat: int | None = None) -> timing.Timing:
        """Time ``fn()`` as often as ``--repeat`` asks, or ``repeat`` times."""
        return timing.measure(fn, self.repeat if repeat is None else repeat)

    def in_child(
        self,
        fn_path: str,
        kwargs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        threads: int | None = None,
    ) -> ChildResult:
        """Call ``"module:function"`` in a fresh process; see ``timing.in_child``."""
        call = partial(timing.in_child, fn_path, kwargs, timeout, threads=threads)
        return self._result(fn_path, (kwargs, timeout, threads), call)

    def at_once(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """What the calls return, ``--jobs`` at a time: each waits for a child of its own."""
        self._beside = max(self._beside, min(self.jobs, len(calls)))
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda call: call(), calls))

    def threads(self, alone: int | None) -> int | None:
        """Threads of a child: one where others may run beside it, else those it has alone."""
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
        """What is kept of the call, or what it returns."""
        return (
            call() if self.kept is None else self.kept.result(f"{self.name}-{label}", given, call)
        )

    def plot(
        self,
        name: str,
        curves: Mapping[str, plots.Curve],
        xlabel: str,
        ylabel: str,
        *,
        logx: bool = False,
        logy: bool = False,
        caption: str = "",
    ) -> None:
        """Draw ``{label: (x, y)}`` as lines in ``name.png``."""
        with self.figure(name, caption) as (_, ax):
            plots.draw_curves(ax, curves, xlabel, ylabel, logx, logy)

    @contextmanager
    def figure(self, name: str, caption: str = "", **subplots: Any) -> Iterator[tuple[Any, Any]]:
        """Yield matplotlib's ``(figure, axes)``, saved as ``name.png`` and put in the report."""
        with plots.figure(self.folder / f"{name}.png", **subplots) as drawing:
            yield drawing
        self._plots.append(Plot(f"{name}.png", caption or name))

    def report(self, tables: Sequence[Table], notes: Sequence[str] = ()) -> Report:
        """The report to return from ``run``, with every picture drawn so far."""
        drawn = tuple(self._plots)
        return Report(self.name, self.title, self.paper, tables, drawn, notes, self._how())

    def _how(self) -> list[str]:
        """How the processes ran, where not one after another in one go."""
        beside = f"{self._beside} side by side, one thread each" if self._beside > 1 else None
        pieces = self.kept.told() if self.kept else None
        return [words for words in (beside, pieces) if words]
