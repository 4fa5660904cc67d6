"""`gramian embed`: maximum variance unfolding of the samples of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramian.cli.options import (
    Run,
    draw,
    input_options,
    missing_option,
    numbers_option,
    plot_option,
    run_options,
    standardize_option,
)
from gramian.cli.output import bad_input, judgement, leave, outcome, show
from gramian.cli.outputs import Writing
from gramian.cli.samples import deliver, last, note_scales, prepared, refuse_one_array, samples
from gramian.graph import CONNECT
from gramian.manifold import MVU, ColoredMVU, RegMVU
from gramian.verdict import verdict_of_embedding

METHODS: dict[str, Any] = {"mvu": MVU, "colored-mvu": ColoredMVU, "reg-mvu": RegMVU}


@click.command(cls=Writing)
@input_options
@click.option("--label", metavar="COLUMN", help="Colours the picture; guides colored-mvu.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default="mvu", show_default=True, help="Model."
)
@click.option(
    "--components", default="2", show_default=True, metavar="N",
    help='Dimensions, or "auto": as many as hold 95 % of the variance.',
)  # fmt: skip
@click.option("--neighbors", type=int, default=6, show_default=True, help="Of each sample.")
@click.option("--nu", type=float, help="Weight of the variance; found unless told.")
@click.option(
    "--connect", type=click.Choice(CONNECT), default="mst", show_default=True,
    help="What to do with a graph in parts.",
)  # fmt: skip
@standardize_option
@missing_option
@numbers_option
@plot_option
@run_options
def embed(
    run: Run,
    file: Path,
    label: str | None,
    method: str,
    components: str,
    neighbors: int,
    nu: float | None,
    connect: str,
    standardize: bool,
    missing: str,
    out: Path | None,
    plot: Path | None,
    drop: tuple[str, ...],
    encode: tuple[str, ...],
    ids: str | None,
    format: str | None,
) -> None:
    """Unfold the samples of FILE into few dimensions, distances between neighbours kept.

    \b
    Example:
      gramian embed points.csv --out places.csv --plot places.png
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
    if not standardize:
        note_scales(X)
    with bad_input():
        estimator = METHODS[method](
            n_components="auto" if components == "auto" else int(components),
            n_neighbors=neighbors,
            nu="auto" if nu is None else nu,
            connect=connect,
            **run.parameters(),
        )
        model = prepared(
            X, estimator, standardize=standardize, missing=missing, encoded=given.encoded
        )
        run.fit(model, X, y)
    fitted = last(model)
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
            "largest_edge_error": fitted.edge_error_,
            "parts_of_the_graph": fitted.graph_.n_parts,
            **run.keep(model, X, y, verdict, source=file),
            "out": out,
            "plot": plot,
        },
        as_json=run.as_json,
    )
    leave(fitted.result_.status)
