"""`gramian embed`: maximum variance unfolding of the samples of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from gramian.app.cli.options import (
    Run,
    draw,
    input_options,
    missing_option,
    numbers_option,
    plot_option,
    run_options,
    standardize_option,
)
from gramian.app.cli.output import bad_input, judgement, leave, outcome, show
from gramian.app.cli.outputs import MOVING, Writing
from gramian.app.cli.samples import (
    deliver,
    last,
    note_scales,
    prepared,
    refuse_one_array,
    samples,
)
from gramian.app.verdict import verdict_of_embedding
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


@click.command(cls=Writing)
@input_options
@click.option("--label", metavar="COLUMN", help="Colours the picture; guides colored-mvu.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="mvu", show_default=True,
    help="Model; layout pulls clusters apart, for looking at them.",
)  # fmt: skip
@click.option(
    "--components", default="2", show_default=True, metavar="N",
    help='Dimensions, or "auto": as many as hold 95 % of the variance.',
)  # fmt: skip
@click.option("--neighbors", type=int, help="Of each sample.  [default: 6, and 7 of a layout]")
@click.option(
    "--distances", is_flag=True,
    help="FILE holds distances between all samples; a sparse one, the edges of a graph.",
)  # fmt: skip
@click.option("--nu", type=float, help="Weight of the variance; found unless told.")
@click.option(
    "--connect", type=click.Choice(CONNECT), default="mst", show_default=True,
    help="What to do with a graph in parts.",
)  # fmt: skip
@click.option(
    "--images",
    metavar="HEIGHTxWIDTH",
    help="Samples are images of so many pixels: the report shows them under the pointer.",
)
@standardize_option
@missing_option
@numbers_option
@plot_option
@click.option(
    "--watch",
    type=MOVING,
    help="Draw as it unfolds: to a .gif at the end, or to a .png again and again.",
)
@run_options
def embed(
    run: Run,
    file: Path,
    label: str | None,
    method: str,
    components: str,
    neighbors: int | None,
    distances: bool,
    nu: float | None,
    connect: str,
    images: str | None,
    standardize: bool,
    missing: str,
    out: Path | None,
    plot: Path | None,
    watch: Path | None,
    drop: tuple[str, ...],
    encode: tuple[str, ...],
    ids: str | None,
    format: str | None,
) -> None:
    """Unfold the samples of FILE into few dimensions, distances between neighbours kept.

    \b
    Example:
      gramian embed points.csv --out places.csv --plot places.png
      gramian embed points.csv --method layout --watch layout.gif
    """
    given = samples(file, label, drop, ids, format, missing=missing, encode=encode)
    X, y = given.X, given.y
    refuse_one_array(out, [*given.ids, *([] if y is None else [given.label])])
    if method == "colored-mvu" and y is None:
        raise click.UsageError("colored-mvu needs the column of classes: name it with --label")
    if components != "auto" and not components.isdecimal():
        raise click.BadParameter(
            f'a number or "auto", got {components!r}', param_hint="--components"
        )
    if distances and (standardize or missing != "error" or encode):
        raise click.UsageError(
            "--distances are taken as they are: leave --standardize, --missing and --encode out"
        )
    if not standardize and not distances:
        note_scales(X)
    seen = X if images is None else _as_images(X, images)
    options = {
        "n_components": "auto" if components == "auto" else int(components),
        "n_neighbors": neighbors,
        "nu": nu,
        "connect": connect,
        "metric": "precomputed" if distances else None,
        **run.parameters(),
    }
    with bad_input():
        model = prepared(
            X,
            _estimator(method, options),
            standardize=standardize,
            missing=missing,
            encoded=given.encoded,
        )
        with _watched(watch, y, method) as picture:
            run.fit(model, X, y)
    fitted = last(model)
    if picture is not None and watch is not None:
        _shown_to_the_end(picture, fitted.embedding_, watch)
    verdict = run.judged(fitted.result_.status, lambda: verdict_of_embedding(fitted, fitted.X_fit_))
    if out is not None:
        extra = None if y is None else {given.label: y}
        names = list(fitted.get_feature_names_out())
        deliver(out, fitted.embedding_, names, first=given.ids, extra=extra)
    if plot is not None:
        draw(fitted.plot(y), plot)
    show(
        "embed",
        {
            **judgement(verdict),
            "file": str(file),
            "samples": X.shape[0],
            "features": X.shape[1],
            "method": method,
            **outcome(fitted.result_, fitted.certificate_, run.seconds),
            "variance_kept": fitted.explained_variance_ratio_[: fitted.embedding_.shape[1]],
            "largest_edge_error": getattr(fitted, "edge_error_", None),
            "torn_edges": getattr(fitted, "torn_", None),
            "parts_of_the_graph": fitted.graph_.n_parts,
            **run.keep(model, seen, y, verdict, source=file),
            "out": out,
            "plot": plot,
            "watch": watch,
        },
        as_json=run.as_json,
    )
    leave(fitted.result_.status)


def _as_images(X: Any, size: str) -> Any:
    """The samples as pictures of so many rows and columns."""
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
    """The estimator with what was asked for; what it has no use for is refused."""
    model = METHODS[method]
    known = model().get_params()
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("nu", "rank"):
        if name in given and name not in known:
            raise click.UsageError(f"--method {method} has no --{name}: leave it out")
    return model(**{name: value for name, value in given.items() if name in known})


@contextmanager
def _watched(path: Path | None, y: Any, title: str) -> Iterator[Picture | None]:
    """What draws the fit inside the block while it goes on, None where that is not asked for."""
    if path is None:
        yield None
        return
    still = path.suffix.lower() == ".png"
    picture = Picture((lambda figure: draw(figure, path)) if still else None, color=y, title=title)
    with clock.watched_by(clock.Watchers(clock.watcher(), picture)):
        yield picture


def _shown_to_the_end(picture: Picture, places: Any, path: Path) -> None:
    """The last frame, and all of them where they move."""
    clock.phase(f"drawing {path}")
    picture.end(places)
    if path.suffix.lower() == ".gif":
        with replacing(path) as file:
            file.write(picture.gif())
    picture.close()
