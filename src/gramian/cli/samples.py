"""Samples of a file as estimators take them, and their answers back into files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian.cli.options import writable
from gramian.cli.output import note
from gramian.files import Table, describe, read_column, read_table, write_table

ROUGH = 100.0
"""Columns whose spreads differ by more than this factor are not seen alike by distances."""


@dataclass(frozen=True)
class Samples:
    """What a command learns from."""

    X: Any
    """A frame with the column names, or a sparse matrix."""
    y: NDArray[Any] | None
    label: str
    ids: dict[str, NDArray[Any]]
    """The column that names the rows, by its name; empty where there is none."""


def samples(
    file: Path,
    label: str | None,
    drop: Sequence[str],
    ids: str | None,
    format: str | None,
    *,
    missing: str,
    unknown: bool = False,
) -> Samples:
    """Read samples, and deal with the cells that are missing."""
    left_out = [*drop, *([] if ids is None else [ids])]
    table = read_table(file, label=label, drop=left_out, format=format, unknown=unknown)
    names = {} if ids is None else {ids: read_column(file, ids, format)}
    X, y = named(table), table.y
    _note_counters(table)
    if not sp.issparse(X) and bool(X.isna().to_numpy().any()):
        if missing == "error":
            raise click.ClickException(_gaps(file, X))
        if missing == "drop":
            whole = ~X.isna().to_numpy().any(axis=1)
            note(f"{int((~whole).sum())} rows with missing cells are left out")
            X, y = X[whole], None if y is None else y[whole]
            names = {name: values[whole] for name, values in names.items()}
    return Samples(X, y, table.label or "label", names)


def _gaps(file: Path, X: Any) -> str:
    gaps = X.isna().to_numpy()
    row, column = (int(part[0]) for part in np.nonzero(gaps))
    return (
        f"{file} has {int(gaps.sum())} missing cells in {int(gaps.any(axis=0).sum())} columns, the "
        f"first in row {row}, column {X.columns[column]!r}: pass --missing median to fill them in, "
        "or --missing drop to leave their rows out"
    )


def _note_counters(table: Table) -> None:
    """A column that counts the rows says nothing of them, but may give away how they are sorted."""
    if sp.issparse(table.X) or len(table.X) < 3:
        return
    for start in (0, 1):
        rows = np.arange(start, start + len(table.X))
        for place in np.flatnonzero((rows[:, None] == table.X).all(axis=0)):
            name = table.columns[place]
            note(f"column {name!r} only counts the rows: leave it out with --drop {name}")


def note_scales(X: Any) -> None:
    """Say it where one column's spread decides all distances."""
    if sp.issparse(X):
        return
    spread = X.std(axis=0, ddof=0).to_numpy()
    spread = spread[spread > 0]
    if spread.size and spread.max() > ROUGH * spread.min():
        times = f"{spread.max() / spread.min():.0f} times"
        note(f"columns differ {times} in spread, and the widest decide: try --standardize")


def named(table: Table) -> Any:
    """The samples as a frame with their column names; a sparse matrix as it is."""
    if sp.issparse(table.X):
        return table.X
    return import_module("pandas").DataFrame(table.X, columns=table.columns)


def prepared(X: Any, estimator: Any, *, standardize: bool, missing: str) -> Any:
    """The estimator, after an imputer and a scaler where they are asked for."""
    steps: list[Any] = []
    if missing in ("mean", "median"):
        steps.append(SimpleImputer(strategy=missing, keep_empty_features=True))
    if standardize:
        steps.append(StandardScaler(with_mean=not sp.issparse(X)))
    return make_pipeline(*steps, estimator) if steps else estimator


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
        more = f" and {len(missing) - 5} others" if len(missing) > 5 else ""
        raise click.ClickException(
            f"{file} lacks what the model was fitted to: {', '.join(missing[:5])}{more}"
        )
    drop = [name for name in there if name not in set(names)]
    X = named(read_table(file, drop=drop, format=format))[list(names)]
    if X.isna().to_numpy().any() and not fills_gaps(model):
        raise click.ClickException(
            f"{file} has missing cells, and the model was learned without: fit it with --missing"
        )
    return X


def fills_gaps(model: Any) -> bool:
    """Whether a pipeline begins with an imputer."""
    return isinstance(model, Pipeline) and isinstance(model[0], SimpleImputer)


def deliver(
    out: Path | None,
    X: Any,
    columns: Sequence[str],
    *,
    first: Mapping[str, NDArray[Any]] | None = None,
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a table to a file, or as CSV to standard output."""
    if out is not None:
        write_table(writable(out), X, columns=columns, first=first, extra=extra)
        return
    text = io.StringIO()
    before, after = dict(first or {}), dict(extra or {})
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*before, *columns, *after])
    for row, *others in zip(np.asarray(X).tolist(), *before.values(), *after.values(), strict=True):
        writer.writerow([*others[: len(before)], *row, *others[len(before) :]])
    click.echo(text.getvalue(), nl=False)


def written(out: Path | None, rows: int) -> None:
    """Say what went into a file."""
    if out is not None:
        click.echo(f"{rows} rows written to {out}")
