"""`gramian transform` and `predict`: apply a saved model to new samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

import gramian as gm
from gramian.app.cli.names import free
from gramian.app.cli.options import (
    FILE,
    file_argument,
    format_options,
    option,
    out_option,
    report_option,
)
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import Writing
from gramian.app.cli.ratings import as_ids, names_of, ratings_of
from gramian.app.cli.run import learned, write_report
from gramian.app.cli.samples import last, rows_left
from gramian.app.cli.tables import deliver, for_model, refuse_one_array
from gramian.app.files import ReadOptions, read_column
from gramian.app.report.families import mapped_section, rows_section
from gramian.completion._base import Completion
from gramian.metric._base import MetricLearner

model_option = option("--model", FILE, "A saved model.", required=True)
id_option = option("--id ids", "COLUMN", "A column that names the rows, kept in the output.")


@click.command(cls=Writing)
@file_argument
@model_option
@format_options
@id_option
@out_option
@report_option
def transform(
    file: Path,
    model: Path,
    format: ReadOptions,
    ids: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Map the samples of FILE by a saved metric, embedding or kernel.

    Columns are found by the names of the fit, in any order; others are left out with a note. A
    file without a header is read in its order if the model was fitted to one without as well, and
    refused otherwise. Rows with missing cells that the model does not fill are left out, and the
    column row has the numbers of the others. Without --out: CSV on standard output.

    \b
    Example:
      gramian transform new.csv --model flowers.gramian --out mapped.csv
    """
    estimator = gm.load(model)
    if isinstance(estimator, Pipeline) and isinstance(estimator[-1], KNeighborsClassifier):
        estimator = estimator[:-1]
    if isinstance(estimator, Completion) or not hasattr(estimator, "transform"):
        raise click.ClickException(f"{model} is a model of {_name(estimator)}: use predict")
    with bad_input():
        X, first = _samples(estimator, file, format, ids)
        refuse_one_array(out, first)
        mapped = estimator.transform(X)
    deliver(out, mapped, list(last(estimator).get_feature_names_out()), first=first, count=True)
    if report is not None:
        section = mapped_section(*learned(estimator, X))
        write_report(estimator, report, more=[section], source=str(file))


@click.command(cls=Writing)
@file_argument
@model_option
@option("--columns", "USER,ITEM", "Columns of a file of ratings; default: as in the fit.")
@option("--proba", bool, "The probability of each class too.")
@format_options
@id_option
@out_option
@report_option
def predict(
    file: Path,
    model: Path,
    columns: str | None,
    proba: bool,
    format: ReadOptions,
    ids: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Predict for FILE: classes by a metric, clusters by a kernel, ratings of user–item pairs.

    Columns are found by the names of the fit, in any order; others are left out with a note. A
    file without a header is read by position if the model was fitted to one without as well:
    features in their order, users and items in the columns of the fit. If only one of the two has
    a header, the file is refused, except for ratings whose header contains user and item;
    --columns then selects the columns, by name or by number from 0. Rows with missing cells that
    the model does not fill are left out, and the column row has the numbers of the others.
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
            pairs = ratings_of(estimator, file, format, columns, rated=False)[:2]
            _predict_pairs(estimator, file, pairs, _ids(file, ids, format), out, report)
            return
        if columns is not None:
            raise click.UsageError("--columns requires a model of ratings")
        if not hasattr(estimator, "predict") or isinstance(last(estimator), MetricLearner):
            raise click.ClickException(
                f"{model} is a model of {_name(estimator)}, which predicts nothing: use transform"
            )
        X, first = _samples(estimator, file, format, ids)
        refuse_one_array(out, [*first, *([] if proba else ["prediction"])])
        answers = np.asarray(estimator.predict(X))
        clusters = getattr(last(estimator), "cluster_names_", None)
        answers = answers if clusters is None else clusters[answers]
        shares = np.asarray(estimator.predict_proba(X)) if proba else np.empty((len(answers), 0))
    extra = {free("prediction", first): answers}
    names = [f"probability_{name}" for name in estimator.classes_] if proba else []
    if proba:
        first, extra = {**first, **extra}, {}
    deliver(out, shares, names, first=first, extra=extra, count=True)
    if report is not None:
        section = mapped_section(*learned(estimator, X), answers)
        write_report(estimator, report, more=[section], source=str(file))


def _predict_pairs(
    model: Any,
    file: Path,
    pairs: tuple[Any, ...],
    ids: dict[str, Any],
    out: Path | None,
    report: Path | None,
) -> None:
    """Predict the ratings of users and items."""
    rows, cols = pairs
    places = as_ids(model.row_ids_, rows), as_ids(model.col_ids_, cols)
    values, known = model.predict(places, return_known=True)
    if not known.any():
        note(
            f"no pair of {file} has both its user and its item in the model: are these the right "
            "columns? --columns names them"
        )
    user, item = names_of(model.columns_)[:2]
    first = {**ids, free(user, ids): rows, free(item, ids): cols}
    extra = {free("known", first): known.astype(int)}
    deliver(out, values[:, None], ["prediction"], first=first, extra=extra, count=True)
    if report is not None:
        lines = [list(row) for row in zip(rows, cols, values, strict=True)]
        section = rows_section("Predicted", ["user", "item", "prediction"], lines)
        write_report(model, report, more=[section], source=str(file))


def _ids(file: Path, column: str | None, format: ReadOptions) -> dict[str, Any]:
    return {} if column is None else {column: read_column(file, column, format)}


def _samples(
    model: Any, file: Path, format: ReadOptions, ids: str | None
) -> tuple[Any, dict[str, Any]]:
    """The samples of a file for a model, and the columns that name their rows."""
    first = _ids(file, ids, format)
    X, whole = for_model(model, file, format, used=[ids])
    return X, rows_left(whole, first, first)


def _name(model: Any) -> str:
    return type(last(model)).__name__
