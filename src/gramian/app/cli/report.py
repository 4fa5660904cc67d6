"""`gramian report`: a page about a saved model."""

from __future__ import annotations

from pathlib import Path

import click

import gramian as gm
from gramian.app.cli.options import FILE, FORMATS, write_report
from gramian.app.cli.output import bad_input
from gramian.app.cli.outputs import PAGE, Writing, check
from gramian.app.cli.samples import for_model
from gramian.app.files import read_table
from gramian.completion._base import Completion


@click.command(cls=Writing)
@click.argument("model", type=FILE)
@click.option("--data", type=FILE, help="Samples, for what a metric makes of them.")
@click.option("--label", metavar="COLUMN", help="Their classes.")
@click.option("--format", "format", type=click.Choice(FORMATS), help="Of the data.")
@click.option("--out", type=PAGE, help="The .html file; MODEL.html unless told.")
def report(
    model: Path, data: Path | None, label: str | None, format: str | None, out: Path | None
) -> None:
    """Write a page about the saved MODEL: the problem, the certificate, curves and pictures.

    \b
    Example:
      gramian report flowers.gramian --data flowers.csv --label species
    """
    path = out or model.with_suffix(".html")
    given = {"MODEL": (FILE, model), **({} if data is None else {"--data": (FILE, data)})}
    check({"--out": (PAGE, path), **given})
    estimator = gm.load(model)
    if (data is None) != (label is None):
        raise click.UsageError("--data and --label go together")
    if data is not None and isinstance(estimator, Completion):
        raise click.UsageError("--data goes with models of samples, and this one is of ratings")
    with bad_input():
        X = y = None
        if data is not None:
            X = for_model(estimator, data, format, beside=[label])
            y = read_table(data, label=label, format=format).y
        write_report(estimator, path, X, y, source=str(data or model))
    click.echo(str(path))
