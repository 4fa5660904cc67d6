"""Pictures. The only place where the benchmarks import matplotlib."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Curve = tuple[Sequence[float], Sequence[float]]


@contextmanager
def figure(path: Path, **subplots: Any) -> Iterator[tuple[Any, Any]]:
    """Yield ``(figure, axes)`` and save it as a PNG; every visible axis must carry a label.

    A bare ``Figure`` draws with Agg and leaves pyplot's global state and backend alone.
    """
    from matplotlib.figure import Figure

    fig = Figure(figsize=subplots.pop("figsize", (6.4, 4.2)), layout="constrained")
    axes = fig.subplots(**subplots)
    yield fig, axes
    for ax in fig.axes:
        if ax.axison and not (ax.get_xlabel() and ax.get_ylabel()):
            raise ValueError(f"{path.name}: label both axes")
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)


def draw_curves(
    ax: Any, curves: Mapping[str, Curve], xlabel: str, ylabel: str, logx: bool, logy: bool
) -> None:
    """One line per curve, named in a legend."""
    for label, (x, y) in curves.items():
        ax.plot(x, y, marker="o", markersize=3, label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if logx:
        ax.set_xscale("log")
    if logy:
        ax.set_yscale("log")
    ax.grid(alpha=0.3)
    ax.legend()
