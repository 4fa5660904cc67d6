"""Samples of a file as estimators take them, and their answers back into files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian.cli.options import writable
from gramian.files import Table, describe, read_table, write_table


def named(table: Table) -> Any:
    """The samples as a frame with their column names; a sparse matrix as it is."""
    if sp.issparse(table.X):
        return table.X
    return import_module("pandas").DataFrame(table.X, columns=table.columns)


def labelled(
    file: Path, label: str | None, drop: Sequence[str], format: str | None
) -> tuple[Table, NDArray[Any]]:
    """Samples with labels, or a sentence that says how to name them."""
    table = read_table(file, label=label, drop=drop, format=format)
    if table.y is None:
        known = ", ".join(table.columns[:10]) + (", …" if len(table.columns) > 10 else "")
        raise click.UsageError(f"name the column of labels with --label; {file} has {known}")
    return table, table.y


def scaled(X: Any, estimator: Any, standardize: bool) -> Any:
    """The estimator, after a scaler where one is asked for."""
    if not standardize:
        return estimator
    return make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), estimator)


def last(model: Any) -> Any:
    """The estimator at the end of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def for_model(model: Any, file: Path, format: str | None) -> Any:
    """The columns of a file that a model was fitted to, in its order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return named(read_table(file, format=format))
    there = [field["name"] for field in describe(file, format=format).get("fields", [])]
    missing = [name for name in names if name not in there]
    if missing:
        raise click.ClickException(
            f"{file} lacks the column{'s'[: len(missing) - 1]} {', '.join(missing[:5])} "
            f"that the model was fitted to"
        )
    drop = [name for name in there if name not in set(names)]
    return named(read_table(file, drop=drop, format=format))[list(names)]


def deliver(
    out: Path | None,
    X: Any,
    columns: Sequence[str],
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a table to a file, or as CSV to standard output."""
    if out is not None:
        write_table(writable(out), X, columns=columns, extra=extra)
        return
    text = io.StringIO()
    more = dict(extra or {})
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*columns, *more])
    for row, *others in zip(np.asarray(X).tolist(), *more.values(), strict=True):
        writer.writerow([*row, *others])
    click.echo(text.getvalue(), nl=False)
