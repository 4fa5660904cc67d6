"""`gramian embed`: maximum variance unfolding of the samples of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from gramian.app.cli.options import Source, option, out_option, plot_option, source_options
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import MOVING, Writing
from gramian.app.cli.run import Run, draw, run_options
from gramian.app.cli.samples import last, refuse_more_components, samples
from gramian.app.cli.tables import deliver, refuse_one_array
from gramian.app.verdict import edge_errors, verdict_of_embedding
from gramian.common import clock
from gramian.common.storage import replacing
from gramian.estimators.plotting import Picture
from gramian.graph import CONNECT
from gramian.manifold import MVU, ColoredMVU, NeighborLayout, RegMVU

METHODS: dict[str, Any] = {
    "mvu": MVU,
    "colored-mvu": ColoredMVU,
    "reg-mvu": RegMVU,
    "layout": NeighborLayout,
}

FAR = 0.25
"""Relative change of a distance between neighbours above which a remedy is suggested."""

KEPT = 0.8
"""Share of the variance in the dimensions below which other options are suggested."""


@click.command(cls=Writing)
@source_options("Colours the picture; guides colored-mvu and layout.")
@option("--method", list(METHODS), "mvu: keeps distances; layout: separates clusters, for display.")
@option("--components", "N", 'Dimensions, or "auto" for 95 % of the variance.', default="2")
@option("--neighbors", int, "Number of neighbours.  [default: 6; layout: 7]")
@option("--distances", bool, "FILE has distances between all samples, or a sparse graph.")
@option("--lam --nu lam", float, "Weight; default: chosen from the data. --nu is deprecated.")
@option("--connect", CONNECT, "How to handle a graph in several parts.", default="mst")
@option("--images", "HEIGHTxWIDTH", "Show samples as images of this size in the report.")
@out_option
@plot_option
@option("--watch", MOVING, "Draw during the fit: a .gif at the end, or a .png repeatedly.")
@run_options
def embed(
    run: Run,
    source: Source,
    method: str,
    components: str,
    neighbors: int | None,
    distances: bool,
    lam: float | None,
    connect: str,
    images: str | None,
    out: Path | None,
    plot: Path | None,
    watch: Path | None,
) -> None:
    """Unfold the samples of FILE into few dimensions, changing distances of neighbours little.

    The first line of the output states by how much they change: the median and the largest relative
    error. Columns with different scales make this error large; use --standardize for them.

    \b
    Example:
      gramian embed points.csv --out places.csv --plot places.png
      gramian embed points.csv --method layout --watch layout.gif
    """
    if distances and (source.standardize or source.missing != "error" or source.encode):
        raise click.UsageError(
            "--distances are taken as they are: leave --standardize, --missing and --encode out"
        )
    try:
        given = samples(source)
    except click.ClickException as refusal:
        if not distances:
            raise
        raise click.ClickException(
            f"{refusal.message}; --distances reads a square table, with a distance in every cell "
            "and, if any, the names of the samples in the first row and column"
        ) from refusal
    X, y = given.X, given.y
    labels = {} if y is None else {given.label: y}
    refuse_one_array(out, [*given.ids, *labels])
    if method == "colored-mvu" and y is None:
        raise click.UsageError("colored-mvu needs the column of classes: name it with --label")
    if components != "auto" and not components.isdecimal():
        raise click.BadParameter(
            f'a number or "auto", got {components!r}', param_hint="--components"
        )
    if not distances:
        given.note_scales()
    seen = X if images is None else _as_images(X, images)
    options = {
        "n_components": "auto" if components == "auto" else int(components),
        "n_neighbors": neighbors,
        "lam": lam,
        "connect": connect,
        "metric": "precomputed" if distances else None,
        **run.parameters(),
    }
    with bad_input():
        model = given.prepared(_estimator(method, options))
        if components not in ("auto", "2") and not distances:
            refuse_more_components(model, X, int(components))
        with _watched(watch, y, method) as picture:
            run.fit(model, X, y)
    fitted = last(model)
    if picture is not None and watch is not None:
        _finish_picture(picture, fitted.embedding_, watch)
    verdict = run.judged(fitted.result_.status, lambda: verdict_of_embedding(fitted, fitted.X_fit_))
    _note_changed(fitted, source.standardize or distances)
    if out is not None:
        names = list(fitted.get_feature_names_out())
        deliver(out, fitted.embedding_, names, first=given.ids, extra=labels)
    if plot is not None:
        draw(fitted.plot(y), plot)
    files = run.keep(model, seen, y, verdict, source=source.file)
    run.finish(
        "embed",
        fitted,
        verdict,
        {**given.facts, "method": method},
        {
            "variance_kept": fitted.explained_variance_ratio_[: fitted.embedding_.shape[1]],
            "largest_edge_error": getattr(fitted, "edge_error_", None),
            "torn_edges": getattr(fitted, "torn_", None),
            "parts_of_the_graph": fitted.graph_.n_parts,
            **files,
            "out": out,
            "plot": plot,
            "watch": watch,
        },
    )


def _note_changed(fitted: Any, standardized: bool) -> None:
    """Suggest a remedy if distances are lost: between neighbours, or in few dimensions."""
    if not (hasattr(fitted, "edge_error_") and fitted.result_.status.converged):
        return
    dimensions = fitted.embedding_.shape[1]
    kept = float(np.sum(fitted.explained_variance_ratio_[:dimensions]))
    if kept < KEPT:
        note(
            f"{dimensions} dimensions have {kept:.0%} of the variance, so distances differ: "
            "--components auto keeps 95 %, --method layout shows neighbours and clusters"
        )
    if edge_errors(fitted).max() < FAR:
        return
    hint = "other --neighbors may" if standardized else "--standardize may"
    note(f"some distances between neighbours changed by more than {FAR:.0%}: {hint} keep them")


def _as_images(X: Any, size: str) -> Any:
    """The samples as images of a size such as 28x28."""
    sides = size.lower().replace("×", "x").split("x")
    if len(sides) != 2 or not all(side.isdecimal() for side in sides):
        raise click.BadParameter(f"HEIGHTxWIDTH, 28x28 say, got {size!r}", param_hint="--images")
    height, width = map(int, sides)
    if height * width != X.shape[1]:
        raise click.BadParameter(
            f"{height} times {width} is not {X.shape[1]}, the features of a sample",
            param_hint="--images",
        )
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    return dense.reshape(-1, height, width)


def _estimator(method: str, options: dict[str, Any]) -> Any:
    """The estimator with the given options; options that it does not have are refused."""
    model = METHODS[method]
    known = model().get_params()
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("lam", "rank"):
        if name in given and name not in known:
            raise click.UsageError(f"--method {method} has no --{name}: leave it out")
    return model(**{name: value for name, value in given.items() if name in known})


@contextmanager
def _watched(path: Path | None, y: Any, title: str) -> Iterator[Picture | None]:
    """A picture that follows the fit inside the block; None without a path."""
    if path is None:
        yield None
        return
    still = path.suffix.lower() == ".png"
    picture = Picture((lambda figure: draw(figure, path)) if still else None, color=y, title=title)
    with clock.watched_by(clock.Watchers(clock.watcher(), picture)):
        yield picture


def _finish_picture(picture: Picture, places: Any, path: Path) -> None:
    """Draw the last frame, and write all frames of a .gif."""
    clock.phase(f"drawing {path}")
    picture.end(places)
    if path.suffix.lower() == ".gif":
        with replacing(path) as file:
            file.write(picture.gif())
    picture.close()
