"""`gramian transform` and `predict`: what a saved model says of new samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

import gramian as gm
from gramian.app.cli.options import (
    FILE,
    FORMATS,
    learned,
    numbers_option,
    out_option,
    report_option,
    write_report,
)
from gramian.app.cli.output import bad_input
from gramian.app.cli.outputs import Writing
from gramian.app.cli.ratings import pairs_of, predicted
from gramian.app.cli.samples import deliver, for_model, free, last, refuse_one_array, written
from gramian.app.files import read_column
from gramian.app.report.families import mapped_section
from gramian.completion._base import Completion
from gramian.metric._base import MetricLearner

model_option = click.option("--model", type=FILE, required=True, help="A saved model.")
id_option = click.option(
    "--id", "ids", metavar="COLUMN", help="A column that names the rows: kept in the output."
)
format_option = click.option(
    "--format", "format", type=click.Choice(FORMATS), help="Of the input file."
)


@click.command(cls=Writing)
@click.argument("file", type=FILE)
@model_option
@format_option
@id_option
@numbers_option
@report_option
def transform(
    file: Path,
    model: Path,
    format: str | None,
    ids: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Map the samples of FILE by a saved metric, embedding or kernel.

    Columns are found by the names of the fit, in any order; others are left out with a note. A
    file without a header is read in its order, where the model was fitted to one without as well,
    and refused otherwise. Without --out: CSV on standard output.

    \b
    Example:
      gramian transform new.csv --model flowers.gramian --out mapped.csv
    """
    estimator = _without_classifier(gm.load(model))
    if isinstance(estimator, Completion) or not hasattr(estimator, "transform"):
        raise click.ClickException(f"{model} is a model of {_name(estimator)}: use predict")
    first = _ids(file, ids, format)
    refuse_one_array(out, first)
    with bad_input():
        X = for_model(estimator, file, format, beside=[ids])
        mapped = estimator.transform(X)
    deliver(out, mapped, list(last(estimator).get_feature_names_out()), first=first)
    written(out, len(mapped))
    if report is not None:
        section = mapped_section(*learned(estimator, X))
        write_report(estimator, report, more=[section], source=str(file))


@click.command(cls=Writing)
@click.argument("file", type=FILE)
@model_option
@click.option(
    "--columns", metavar="USER,ITEM", help="Which columns, for ratings; as in the fit unless told."
)
@click.option("--proba", is_flag=True, help="The probability of each class too.")
@format_option
@id_option
@out_option
@report_option
def predict(
    file: Path,
    model: Path,
    columns: str | None,
    proba: bool,
    format: str | None,
    ids: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Predict for FILE: classes by a metric, clusters by a kernel, ratings of user–item pairs.

    Columns are found by the names of the fit, in any order; others are left out with a note. A
    file without a header is read by place, where the model was fitted to one without as well:
    features in their order, users and items in the columns that they had in the fit. If one of
    the two has a header and the other has not, the file is refused, but for ratings whose header
    says user and item; --columns says which columns to take then, by name or by number from 0.
    Without --out: CSV on standard output.

    \b
    Example:
      gramian predict new.csv --model flowers.gramian --out classes.csv
    """
    estimator = gm.load(model)
    with bad_input():
        if proba and not hasattr(estimator, "predict_proba"):
            raise click.UsageError(
                f"{model} is a model of {_name(estimator)}, without probabilities"
            )
        if isinstance(estimator, Completion):
            pairs = pairs_of(estimator, file, format, columns)
            predicted(estimator, file, pairs, out, report, _ids(file, ids, format))
            return
        if columns is not None:
            raise click.UsageError("--columns goes with a model of ratings")
        if not hasattr(estimator, "predict") or isinstance(last(estimator), MetricLearner):
            raise click.ClickException(
                f"{model} is a model of {_name(estimator)}, which predicts nothing: use transform"
            )
        X = for_model(estimator, file, format, beside=[ids])
        answers = np.asarray(estimator.predict(X))
        shares = np.asarray(estimator.predict_proba(X)) if proba else np.empty((len(answers), 0))
    first = _ids(file, ids, format)
    extra = {free("prediction", first): answers}
    names = [f"probability_{name}" for name in estimator.classes_] if proba else []
    deliver(
        out,
        shares,
        names,
        first={**first, **extra} if proba else first,
        extra={} if proba else extra,
    )
    written(out, answers.size)
    if report is not None:
        section = mapped_section(*learned(estimator, X), answers)
        write_report(estimator, report, more=[section], source=str(file))


def _ids(file: Path, column: str | None, format: str | None) -> dict[str, Any]:
    return {} if column is None else {column: read_column(file, column, format)}


def _without_classifier(model: Any) -> Any:
    if isinstance(model, Pipeline) and isinstance(model[-1], KNeighborsClassifier):
        return model[:-1]
    return model


def _name(model: Any) -> str:
    return type(last(model)).__name__
