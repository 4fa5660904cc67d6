"""Pictures by matplotlib."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Curve = tuple[Sequence[float], Sequence[float]]


@contextmanager
def figure(path: Path, **subplots: Any) -> Iterator[tuple[Any, Any]]:
    """Yield ``(figure, axes)`` and save it as a PNG; every visible axis must have a label.

    ``Figure`` draws with Agg and does not change pyplot's global state.
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


@dataclass(frozen=True)
class Panel:
    """Curves ``{label: (x, y)}`` on one pair of axes, and reference lines."""

    curves: Mapping[str, Curve]
    xlabel: str
    ylabel: str
    title: str = ""
    logx: bool = False
    logy: bool = False
    floor: float | None = None
    """Smaller values of y are drawn here."""
    hline: float | None = None
    dashed: Sequence[str] = ()
    """Labels drawn with dashes."""
    marker: str = "o"


def draw_panels(fig: Any, axes: Iterable[Any], panels: Sequence[Panel]) -> None:
    """Draw each panel and one legend for all."""
    labels = list(dict.fromkeys(label for panel in panels for label in panel.curves))
    handles: dict[str, Any] = {}
    unused = iter(axes)
    for panel, ax in zip(panels, unused, strict=False):
        for label, (x, y) in panel.curves.items():
            k = labels.index(label)
            style = "--" if label in panel.dashed or k > 9 else "-"
            if panel.floor is not None:
                y = [max(value, panel.floor) for value in y]
            (handles[label],) = ax.plot(
                x, y, style, color=f"C{k % 10}", marker=panel.marker, markersize=3
            )
        if panel.hline is not None:
            ax.axhline(panel.hline, color="black", linewidth=0.8, linestyle=":")
        ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
        ax.set_xscale("log" if panel.logx else "linear")
        ax.set_yscale("log" if panel.logy else "linear")
        ax.grid(alpha=0.3)
    for ax in unused:
        ax.set_axis_off()
    names = [label for label in labels if label in handles]
    columns = min(len(names), 4) or 1
    fig.legend([handles[n] for n in names], names, loc="outside upper center", ncols=columns)
