"""Samples of a file as estimators take them, and their answers back into files."""

from __future__ import annotations

import io
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gramian.app.cli.exits import printable
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import ESCAPE
from gramian.app.encoders import DateEncoder
from gramian.app.files import (
    Table,
    TextColumnsError,
    looks_like,
    place_of,
    read_column,
    read_header,
    read_table,
    write_table,
)
from gramian.app.files._write import write_rows
from gramian.common import clock

ALL = "all"
"""Every column of text, for --encode."""

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
    encoded: dict[str, str]
    """Columns of text that are to become numbers, and what they are: categories or dates."""


def samples(
    file: Path,
    label: str | None,
    drop: Sequence[str],
    ids: str | None,
    format: str | None,
    *,
    missing: str,
    encode: Sequence[str] = (),
    unknown: bool = False,
) -> Samples:
    """Read samples, and deal with the cells that are missing."""
    clock.phase(f"reading {file}")
    header = read_header(file, format=format)
    there = [] if header is None else header.names
    asked = _by_name(file, header, columns_in(encode, there))
    left_out = [*columns_in(drop, there), *([] if ids is None else [ids])]
    left_out += _unnamed_counter(file, header, format, {*left_out, *asked, label})
    table, texts = _read(file, label, left_out, asked, format, unknown or missing == "drop")
    names = {} if ids is None else {ids: read_column(file, ids, format)}
    X, y = named(table), table.y
    kinds = {}
    for name in texts:
        X[name], kinds[name] = text_column(file, name, format)
        if kinds[name] == "categories":
            _refuse_names(file, name, X[name].to_numpy())
    if texts:
        X = X[[name for name in there if name in set(X.columns)]]
    _note_counters(table)
    gaps = False if sp.issparse(X) else bool(X.isna().to_numpy().any())
    if gaps and missing == "error":
        raise click.ClickException(_gaps(file, X, format))
    if gaps:
        _note_empty(X)
    if missing == "drop":
        whole = _whole(X, None if unknown else y)
        if not whole.all():
            count = int((~whole).sum())
            note(f"{count} row{'' if count == 1 else 's'} with missing cells left out")
        X, y = X[whole], None if y is None else _without_gaps(y[whole])
        names = {name: values[whole] for name, values in names.items()}
    return Samples(X, y, table.label or "label", names, kinds)


def _whole(X: Any, y: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Which rows have all their cells, and their label."""
    whole = np.ones(X.shape[0], dtype=bool) if sp.issparse(X) else ~X.isna().to_numpy().any(axis=1)
    if y is None:
        return whole
    return whole & (~np.isnan(y) if y.dtype.kind == "f" else y.astype(str) != "")


def _without_gaps(y: NDArray[Any]) -> NDArray[Any]:
    """Labels that are whole numbers as such, which gaps among them had made floats of."""
    if y.dtype.kind == "f" and np.isfinite(y).all() and (y % 1 == 0).all():
        return y.astype(np.int64)
    return y


def columns_in(given: Sequence[str], there: Sequence[str]) -> list[str]:
    """Names as they are given, several parted by commas unless a column is called so."""
    return [
        name.strip()
        for names in given
        for name in ([names] if names in there else names.split(","))
        if name.strip()
    ]


def _by_name(file: Path, header: Any, columns: list[str]) -> list[str]:
    """Columns by the names they have, or are given where they go by number."""
    if header is None:
        return columns
    return [
        name if name == ALL else header.names[header.places(file, [name])[0]] for name in columns
    ]


def _read(
    file: Path,
    label: str | None,
    drop: list[str],
    encode: list[str],
    format: str | None,
    unknown: bool,
) -> tuple[Table, list[str]]:
    """The columns of numbers, and the names of those to encode."""
    texts = [name for name in encode if name != ALL]
    while True:
        try:
            left_out = [*drop, *texts]
            table = read_table(file, label=label, drop=left_out, format=format, unknown=unknown)
        except TextColumnsError as refusal:
            plain = all(column.kind not in ("numbers", "amounts") for column in refusal.columns)
            if ALL not in encode or not plain:
                raise click.ClickException(_text_columns(refusal, label)) from refusal
            texts += [column.name for column in refusal.columns]
        else:
            return table, texts


def _text_columns(refusal: TextColumnsError, label: str | None) -> str:
    """Every column of text, and the option that fits it."""
    options = {
        "names": "--id {} keeps it as the name of the rows",
        "dates": "--encode {} makes numbers of its dates",
        "categories": "--encode {} makes numbers of its categories",
        "numbers": "most of its cells are numbers: leave such cells empty for --missing to fill",
        "amounts": "write its numbers without signs, units and marks of thousands",
        "text": "--drop {} leaves it out",
    }
    told = []
    for column in refusal.columns:
        option = options[column.kind].format(quoted(column.name))
        if column.kind == "categories" and label is None:
            option += f", --label {quoted(column.name)} learns it"
        told.append(f"{column.name!r} has {column.cell!r} in {column.place} ({option})")
    these = [quoted(column.name) for column in refusal.columns]
    every = f"; --drop {','.join(these)} leaves all of them out" if len(these) > 1 else ""
    return f"{refusal.path} has text where numbers belong: {'; '.join(told)}{every}"


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    return shlex.quote(name)


def text_column(file: Path, name: str, format: str | None) -> tuple[NDArray[Any], str]:
    """The cells of a column as they are spelled, and whether they are dates or categories."""
    cells = np.asarray([str(cell) for cell in read_column(file, name, format)], dtype=object)
    return cells, "dates" if looks_like(cells) == "dates" else "categories"


def _refuse_names(file: Path, name: str, cells: NDArray[Any]) -> None:
    """Categories of one row each tell the rows apart, and nothing else; of few rows, not much."""
    if looks_like(cells) == "text":
        note(
            f"column {name!r} has {len(set(cells))} different texts in {len(cells)} rows, each a "
            f"column of its own: leave it out with --drop {quoted(name)}"
        )
    if looks_like(cells) == "names":
        raise click.ClickException(
            f"{file}: no two rows have the same {name!r}, so there is nothing to learn from it: "
            f"--id {quoted(name)} keeps it as the name of the rows, --drop {quoted(name)} leaves "
            "it out"
        )


def _gaps(file: Path, X: Any, format: str | None) -> str:
    gaps = X.isna().to_numpy()
    row, column = (int(part[0]) for part in np.nonzero(gaps))
    count, wide = int(gaps.sum()), int(gaps.any(axis=0).sum())
    many = f"{count} missing {'cell' if count == 1 else 'cells'}"
    if wide > 1:
        many += f" in {wide} columns"
    empty = [quoted(str(name)) for name in X.columns[gaps.all(axis=0)]]
    if empty:
        remedy = f"--drop {','.join(empty)} leaves out what is empty from top to bottom"
    else:
        remedy = "pass --missing median to fill them in, or --missing drop to leave their rows out"
    return (
        f"{file} has {many}, the first in {place_of(file, row, format)}, column "
        f"{X.columns[column]!r}: {remedy}"
    )


def _note_empty(X: Any) -> None:
    """Columns without a single cell are filled with 0, which says nothing."""
    empty = [str(name) for name in X.columns[X.isna().to_numpy().all(axis=0)]]
    if empty:
        option = f"--drop {','.join(map(quoted, empty))}"
        note(f"nothing is in {listed(empty)}: leave it out with {option}")


def _unnamed_counter(
    file: Path, header: Any, format: str | None, used: Collection[str | None]
) -> list[str]:
    """The first column, where it has no name and counts the rows: the index of a frame."""
    name = _without_name(header)
    if name is None or name in used:
        return []
    cells = read_column(file, name, format)
    counts = cells.dtype.kind in "iu" and len(cells) > 2
    if not counts or (np.diff(cells) != 1).any() or cells[0] not in (0, 1):
        return []
    note(f"{file}: the first column has no name and counts the rows, and is left out")
    return [name]


def _without_name(header: Any) -> str | None:
    """What a first column without a name is called: x0 by us, in other words by pandas."""
    if header is None or not header.named or len(header.names) < 2:
        return None
    first, second = header.names[:2]
    return first if first == "Unnamed: 0" or (first == "x0" and second != "x1") else None


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
    spread = X.select_dtypes("number").std(axis=0, ddof=0).to_numpy()
    spread = spread[spread > 0]
    if spread.size and spread.max() > ROUGH * spread.min():
        times = f"{spread.max() / spread.min():.0f} times"
        note(f"columns differ {times} in spread, and the widest decide: try --standardize")


def named(table: Table) -> Any:
    """The samples as a frame with their column names; a sparse matrix as it is."""
    if sp.issparse(table.X):
        return table.X
    return import_module("pandas").DataFrame(table.X, columns=table.columns)


def prepared(
    X: Any,
    estimator: Any,
    *,
    standardize: bool,
    missing: str,
    encoded: Mapping[str, str] | None = None,
) -> Any:
    """The estimator, after encoders, an imputer and a scaler where they are asked for."""
    steps: list[Any] = []
    if encoded:
        steps.append(_encoders(encoded))
    if missing in ("mean", "median"):
        steps.append(SimpleImputer(strategy=missing, keep_empty_features=True))
    if standardize:
        steps.append(StandardScaler(with_mean=not sp.issparse(X)))
    return make_pipeline(*steps, estimator) if steps else estimator


def _encoders(encoded: Mapping[str, str]) -> ColumnTransformer:
    """Categories to columns of 0 and 1, those that are not known then to 0; dates to days."""
    kinds = {
        "categories": OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        "dates": make_pipeline(DateEncoder(), SimpleImputer()),
    }
    steps = [
        (kind, step, [name for name, of in encoded.items() if of == kind])
        for kind, step in kinds.items()
        if kind in encoded.values()
    ]
    return ColumnTransformer(steps, remainder="passthrough", verbose_feature_names_out=False)


def encoded_by(model: Any) -> list[str]:
    """The columns of text that a pipeline begins with encoders of."""
    if not (isinstance(model, Pipeline) and isinstance(model[0], ColumnTransformer)):
        return []
    steps = model[0].transformers_
    return [str(c) for name, _, chosen in steps if name in ("categories", "dates") for c in chosen]


def last(model: Any) -> Any:
    """The estimator at the end of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def for_model(
    model: Any, file: Path, format: str | None, *, beside: Sequence[str | None] = ()
) -> Any:
    """The columns of a file that a model was fitted to, by their names and in its order.

    Others are left out, with a note unless they are `beside`: used for something else.
    """
    names = getattr(model, "feature_names_in_", None)
    header = read_header(file, format=format)
    if names is None:
        if header is not None and header.named:
            note(f"the model was fitted without names: the columns of {file} go by their order")
        return read_table(file, format=format).X
    if header is None:
        raise click.ClickException(
            f"{file} has no names of columns, and the model was fitted to {listed(names)}: "
            "write it as CSV with a header"
        )
    drop = left_out(file, header.names, names, headed=header.named, beside=beside)
    texts = encoded_by(model)
    try:
        X = named(read_table(file, drop=[*drop, *texts], format=format))
    except TextColumnsError as refusal:
        column = refusal.columns[0]
        raise click.ClickException(
            f"{file}: {column.name!r} has {column.cell!r} in {column.place}, and numbers in the fit"
        ) from refusal
    for name in texts:
        X[name] = text_column(file, name, format)[0]
    X = X[list(names)]
    if X.isna().to_numpy().any() and not fills_gaps(model):
        raise click.ClickException(
            f"{file} has missing cells, and the model has nothing to fill them with: fit it with "
            "--missing median, or leave their rows out of the file"
        )
    return X


def left_out(
    file: Path,
    there: Sequence[str],
    names: Sequence[str],
    *,
    headed: bool = True,
    beside: Sequence[str | None] = (),
) -> list[str]:
    """The columns that a model does not know, told; refused where one that it knows is missing."""
    missing = [name for name in names if name not in set(there)]
    if missing:
        raise click.ClickException(
            f"{file} lacks what the model was fitted to: {listed(missing)}"
            + ("" if headed else "; it has no header, by which they could be found")
        )
    others = [name for name in there if name not in set(names)]
    unused = [name for name in others if name not in beside]
    if unused:
        note(f"{file}: columns that the model was not fitted to are left out: {listed(unused)}")
    return others


def listed(names: Sequence[str]) -> str:
    """The first names, and how many there are beside."""
    beside = len(names) - 5
    more = "" if beside <= 0 else f" and {beside} other{'s' if beside > 1 else ''}"
    return f"{', '.join(map(str, names[:5]))}{more}"


def fills_gaps(model: Any) -> bool:
    """Whether a pipeline begins with an imputer, or has one after its encoders."""
    return isinstance(model, Pipeline) and any(isinstance(s, SimpleImputer) for s in model[:2])


def free(name: str, taken: Collection[str]) -> str:
    """The name of a column of ours, with a line behind it where a column of theirs has it."""
    return free(f"{name}_", taken) if name in taken else name


def refuse_one_array(out: Path | None, others: Collection[str]) -> None:
    """Refuse before the work what could not be written after it."""
    if out is not None and out.suffix.lower() == ".npy" and others:
        raise click.ClickException(
            f"--out {out}: .npy is one array of numbers, without {listed(list(others))}: name it "
            ".npz or .csv"
        )


def deliver(
    out: Path | None,
    X: Any,
    columns: Sequence[str],
    *,
    first: Mapping[str, NDArray[Any]] | None = None,
    extra: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Write a table to a file, or as CSV to standard output."""
    columns = [free(name, {*(first or {}), *(extra or {})}) for name in columns]
    escape = click.get_current_context().meta.get(ESCAPE, True)
    if out is not None:
        with bad_input():
            write_table(out, X, columns=columns, first=first, extra=extra, escape=escape)
        return
    text = io.StringIO()
    more = {name: np.asarray(values) for name, values in {**(first or {}), **(extra or {})}.items()}
    write_rows(text, np.asarray(X), columns, more, len(first or {}), escape=escape)
    click.echo(printable(text.getvalue()), nl=False)


def written(out: Path | None, rows: int) -> None:
    """Say what went into a file."""
    if out is not None:
        click.echo(f"{rows} rows written to {out}")
