"""`gramian report`: write a page about a saved model."""

from __future__ import annotations

from pathlib import Path

import click

import gramian as gm
from gramian.app.cli.options import FILE, format_options, option
from gramian.app.cli.output import bad_input
from gramian.app.cli.outputs import PAGE, Writing
from gramian.app.cli.run import write_report
from gramian.app.cli.samples import has_label
from gramian.app.cli.tables import for_model
from gramian.app.files import ReadOptions, read_column
from gramian.completion._base import Completion


def _beside_model(ctx: click.Context, _: click.Parameter, out: Path | None) -> Path:
    """The page given by --out, or the name of the model with .html."""
    return out or ctx.params["model"].with_suffix(".html")


@click.command(cls=Writing)
@click.argument("model", type=FILE)
@option("--data", FILE, "Samples to show before and after the metric.")
@option("--label", "COLUMN", "The column of their classes.")
@format_options
@option("--out", PAGE, "The .html file; default: MODEL.html.", callback=_beside_model)
def report(
    model: Path, data: Path | None, label: str | None, format: ReadOptions, out: Path
) -> None:
    """Write a page about the saved MODEL: the problem, the certificate, curves and pictures.

    \b
    Example:
      gramian report flowers.gramian --data flowers.csv --label species
    """
    estimator = gm.load(model)
    if (data is None) != (label is None):
        raise click.UsageError("--data and --label must be given together")
    if data is not None and isinstance(estimator, Completion):
        raise click.UsageError("--data requires a model of samples, and this is a model of ratings")
    with bad_input():
        X = y = None
        if data is not None and label is not None:
            X, whole = for_model(estimator, data, format, used=[label])
            y = read_column(data, label, format)[whole]
            X, y = X[has_label(y)], y[has_label(y)]
        write_report(estimator, out, X, y, source=str(data or model))
    click.echo(str(out))
