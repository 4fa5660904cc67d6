"""Figures that can be zoomed and asked: the one place that needs plotly."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.plotting import categorical, spread

Array = NDArray[np.floating]

COLOURS = (
    "#1f6feb", "#e8590c", "#2b8a3e", "#9c36b5", "#c92a2a", "#0b7285", "#e67700", "#5f3dc4",
    "#d6336c", "#495057",
)  # fmt: skip
MOST_POINTS, MOST_EDGES = 20_000, 20_000
"""What a page shows at most: a browser has to draw it."""

BELOW = {"orientation": "h", "y": -0.1, "yanchor": "top", "x": 0.5, "xanchor": "center"}
"""Where names stand: a scale of colours may be at the right, the tools are above."""

LINKS = {"must-link": ("#2b8a3e", "solid"), "cannot-link": ("#c92a2a", "dot")}


def _plotly(name: str) -> Any:
    try:
        return import_module(f"plotly.{name}")
    except ImportError as missing:
        raise ImportError("reports need plotly: pip install 'gramian[report]'") from missing


def library() -> str:
    """The JavaScript that draws, to stand inside the page."""
    text: str = _plotly("offline").get_plotlyjs()
    return text


def markup(drawn: Any) -> str:
    """A figure as HTML, without the library."""
    html: str = drawn.to_html(
        full_html=False,
        include_plotlyjs=False,
        default_height="420px",
        config={"displaylogo": False, "displayModeBar": "hover", "responsive": True},
    )
    return html


def _figure(traces: Sequence[Any], **layout: Any) -> Any:
    return (
        _plotly("graph_objects")
        .Figure(
            data=list(traces),
            layout={
                "template": "plotly_white",
                "margin": {"l": 60, "r": 20, "t": 40, "b": 50},
                "colorway": list(COLOURS),
                "hovermode": "closest",
                **layout,
            },
        )
        .update_yaxes(exponentformat="power")
    )


def lines(curves: Sequence[tuple[str, Array, Array]], **axes: Any) -> Any:
    """Curves by name, each switched on and off by its name."""
    go = _plotly("graph_objects")
    traces = [
        go.Scatter(x=x, y=y, name=name, mode="lines+markers", marker={"size": 4})
        for name, x, y in curves
    ]
    return _figure(traces, showlegend=len(curves) > 1, **axes)


def bars(heights: ArrayLike, **axes: Any) -> Any:
    """Bars, numbered from 1."""
    go = _plotly("graph_objects")
    values = np.asarray(heights)
    return _figure([go.Bar(x=np.arange(1, values.size + 1), y=values)], **axes)


def points(
    places: Array,
    *,
    color: ArrayLike | None = None,
    edges: NDArray[np.integer] | None = None,
    links: dict[str, NDArray[np.integer]] | None = None,
    title: str = "",
) -> Any:
    """Points of the plane with what is known of each under the pointer, and lines between them."""
    go = _plotly("graph_objects")
    shown = spread(len(places), MOST_POINTS)
    traces = []
    if edges is not None:
        traces.append(_segments(places, edges[spread(len(edges), MOST_EDGES)], "graph", "#d5dbe1"))
    for name, pairs in (links or {}).items():
        colour, dash = LINKS[name]
        some = pairs[spread(len(pairs), MOST_EDGES)]
        traces.append(_segments(places, some, name, colour, dash))
    for name, of, marker in _groups(color, shown):
        hover = [f"sample {k}" for k in of]
        traces.append(
            go.Scattergl(
                x=places[of, 0], y=places[of, 1], mode="markers", name=name, text=hover,
                hoverinfo="text+name" if name else "text", marker={"size": 5, **marker},
            )
        )  # fmt: skip
    named = len(traces) > 1
    axis = {"zeroline": False, "showgrid": True}
    return _figure(
        traces, title=title, showlegend=named, legend=BELOW, xaxis=axis,
        yaxis={**axis, "scaleanchor": "x", "scaleratio": 1},
    )  # fmt: skip


def matrix(counts: Array, names: Sequence[str], title: str) -> Any:
    """A table of counts as colours, rows the truth."""
    go = _plotly("graph_objects")
    trace = go.Heatmap(
        z=counts, x=list(names), y=list(names), colorscale="Blues", text=counts,
        texttemplate="%{text}" if len(names) <= 12 else None, showscale=False,
        hovertemplate="is %{y}, called %{x}: %{z}<extra></extra>",
    )  # fmt: skip
    category = {"type": "category"}
    return _figure(
        [trace], title=title, xaxis={**category, "title": "called"},
        yaxis={**category, "title": "is", "autorange": "reversed"},
    )  # fmt: skip


def _groups(
    color: ArrayLike | None, shown: NDArray[np.integer]
) -> list[tuple[str, NDArray[np.integer], dict[str, Any]]]:
    """Name, members and marker of each group of points."""
    if color is None:
        return [("", shown, {})]
    values = np.asarray(color)
    if not categorical(values):
        scale = {"color": values[shown], "colorscale": "Viridis", "showscale": True}
        return [("", shown, scale)]
    labels = np.unique(values)
    return [
        (str(label), shown[values[shown] == label], {"color": COLOURS[k % len(COLOURS)]})
        for k, label in enumerate(labels)
    ]


def _segments(
    places: Array, pairs: NDArray[np.integer], name: str, colour: str, dash: str = "solid"
) -> Any:
    """Lines between pairs of points, as one trace with gaps."""
    x, y = (
        np.column_stack([places[pairs[:, 0], k], places[pairs[:, 1], k], np.full(len(pairs), None)])
        for k in (0, 1)
    )
    return _plotly("graph_objects").Scattergl(
        x=x.ravel(), y=y.ravel(), mode="lines", name=name, hoverinfo="skip",
        line={"color": colour, "width": 1, "dash": dash},
    )  # fmt: skip
