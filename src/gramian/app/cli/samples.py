"""Samples of a file as estimators take them, and their answers back into files."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gramian.app.cli.exits import printable
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.outputs import ESCAPE
from gramian.app.encoders import DateEncoder
from gramian.app.files import (
    ReadOptions,
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
from gramian.common.storage import FileError

ALL = "all"
"""Every column of text, for --encode."""

ROW = "row"
"""The column with the numbers of rows, from 0 without the header, where some are left out."""

MOST_TOLD = 5
"""Columns of text that a message describes one by one."""

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
    """What names the rows, by the names of these columns: that of --id, and the numbers of the rows
    where some were left out."""
    encoded: dict[str, str]
    """Columns of text that are to become numbers, and what they are: categories or dates."""

    @property
    def names(self) -> NDArray[Any] | None:
        """The ids of the rows, or their numbers where some were left out; None without either."""
        return next(iter(self.ids.values()), None)


def samples(
    file: Path,
    label: str | None,
    drop: Sequence[str],
    ids: str | None,
    format: ReadOptions,
    *,
    missing: str,
    encode: Sequence[str] = (),
    unknown: bool = False,
) -> Samples:
    """Read samples, and handle the cells that are missing."""
    clock.phase(f"reading {file}")
    given = [*drop, *encode, *(name for name in (label, ids) if name is not None)]
    header = read_header(file, format=format, expected=[*given, *columns_in(given, ())])
    if header is not None:
        format = replace(format, header=header.named)
    there = [] if header is None else header.names
    asked = _by_name(file, header, columns_in(encode, there))
    left_out, ids = _not_features(
        file, header, format, columns_in(drop, there), ids, {*asked, label}
    )
    table = _read(file, label, left_out, asked, format, missing, unknown or missing == "drop")
    names = {} if ids is None else {ids: read_column(file, ids, format)}
    kinds = {name: _kind(file, name, cells) for name, cells in table.texts.items()}
    X, y = _with_texts(table, there), table.y
    _note_useless(X)
    if missing == "drop":
        whole = _whole(X, None if unknown else y)
        X, names = X[whole], _rows_left(whole, names, there)
        y = None if y is None else _without_gaps(y[whole])
    else:
        _note_missing_categories(X, kinds)
    X = filled_categories(X, [name for name, kind in kinds.items() if kind == "categories"])
    if not sp.issparse(X) and X.isna().to_numpy().any():
        if missing == "error":
            raise click.ClickException(_gaps(file, X, format))
        _note_empty(X)
    return Samples(X, y, table.label or "label", names, kinds)


def _with_texts(table: Table, order: Sequence[str]) -> Any:
    """The columns of numbers and of text in the order of the file."""
    X = named(table)
    if not table.texts:
        return X
    X = X.assign(**table.texts) if len(table.columns) else type(X)(table.texts)
    return X[[name for name in order if name in set(X.columns)]]


def filled_categories(X: Any, columns: Sequence[str]) -> Any:
    """The frame with an empty text for each missing cell of some columns."""
    return X.assign(**{name: X[name].fillna("") for name in columns}) if columns else X


def _note_missing_categories(X: Any, kinds: Mapping[str, str]) -> None:
    """Missing cells are a category of their own."""
    gone = [name for name, kind in kinds.items() if kind == "categories" and X[name].isna().any()]
    if gone:
        note(f"missing cells of {listed(gone)} are a category of their own")


def _rows_left(
    whole: NDArray[np.bool_], names: dict[str, NDArray[Any]], taken: Collection[str]
) -> dict[str, NDArray[Any]]:
    """What names the rows that are left, with their numbers where others are left out."""
    if whole.all():
        return names
    note(f"{counted(int((~whole).sum()), 'row')} with missing cells left out")
    numbers = {free(ROW, {*taken, *names}): np.flatnonzero(whole)}
    return {**{name: values[whole] for name, values in names.items()}, **numbers}


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _whole(X: Any, y: NDArray[Any] | None) -> NDArray[np.bool_]:
    """Which rows have all their cells, and their label."""
    whole = np.ones(X.shape[0], dtype=bool) if sp.issparse(X) else ~X.isna().to_numpy().any(axis=1)
    return whole if y is None else whole & has_label(y)


def has_label(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have a label."""
    known: NDArray[np.bool_] = ~np.isnan(y) if y.dtype.kind == "f" else y.astype(str) != ""
    return known


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
    format: ReadOptions,
    missing: str,
    unknown: bool,
) -> Table:
    """The columns of numbers, and as text those to encode: all, where there is nothing else."""
    texts = [name for name in encode if name != ALL]
    while True:
        try:
            return read_table(
                file, label=label, drop=drop, text=texts, format=format, unknown=unknown
            )
        except TextColumnsError as refusal:
            plain = all(column.kind not in ("numbers", "amounts") for column in refusal.columns)
            if not plain or (ALL not in encode and refusal.numeric):
                message = _text_columns(refusal, label)
                if plain:
                    gaps = missing == "error" and _has_gaps(refusal, label, drop, texts, format)
                    message += _together(refusal, gaps)
                raise click.ClickException(message) from refusal
            if ALL not in encode:
                note(f"{file} has no column of numbers: its columns of text are encoded, as with "
                     "--encode all")  # fmt: skip
            texts += [column.name for column in refusal.columns]


def _text_columns(refusal: TextColumnsError, label: str | None) -> str:
    """The columns of text, and the option that fits each."""
    options = {
        "names": "--id {} keeps it as the name of the rows",
        "dates": "--encode {} makes numbers of its dates",
        "categories": "--encode {} makes numbers of its categories",
        "numbers": "most of its cells are numbers: leave such cells empty for --missing to fill",
        "amounts": "write its numbers without signs, units and marks of thousands",
        "text": "--drop {} leaves it out",
    }
    described = []
    for column in refusal.columns[:MOST_TOLD]:
        option = options[column.kind].format(quoted(column.name))
        if column.kind == "categories" and label is None:
            option += f", --label {quoted(column.name)} learns it"
        described.append(f"{column.name!r} has {column.cell!r} in {column.place} ({option})")
    these = [quoted(column.name) for column in refusal.columns]
    if len(these) > MOST_TOLD:
        described.append(f"so have {counted(len(these) - MOST_TOLD, 'other column')}")
    every = f"; --drop {','.join(these)} leaves all of them out" if len(these) > 1 else ""
    if len(these) > 1 and all(c.kind in ("dates", "categories") for c in refusal.columns):
        every = f"; --encode {ALL} encodes all of them{every}"
    return f"{refusal.path} has text where numbers belong: {'; '.join(described)}{every}"


def _together(refusal: TextColumnsError, gaps: bool) -> str:
    """Options for all columns of text, and for gaps in others; empty if one option is enough."""
    encode = [c.name for c in refusal.columns if c.kind in ("dates", "categories")]
    others = [c.name for c in refusal.columns if c.name not in encode]
    if not gaps and not (encode and others):
        return ""
    options = [
        f"{option} {','.join(map(quoted, names))}"
        for option, names in (("--encode", encode), ("--drop", others))
        if names
    ]
    if not gaps:
        return f"; all at once: add {' '.join(options)}"
    return (
        "; other columns have missing cells; all at once: add "
        f"{' '.join([*options, '--missing median'])}"
    )


def _has_gaps(
    refusal: TextColumnsError,
    label: str | None,
    drop: list[str],
    texts: list[str],
    format: ReadOptions,
) -> bool:
    """Whether cells are missing in the columns that are not of text."""
    refused = [column.name for column in refusal.columns]
    with contextlib.suppress(FileError):
        X = read_table(
            refusal.path, label=label, drop=[*drop, *refused], text=texts, format=format,
            unknown=True,
        ).X  # fmt: skip
        return not sp.issparse(X) and bool(np.isnan(X).any())
    return False


def quoted(name: str) -> str:
    """A name as a shell takes it."""
    return shlex.quote(name)


def _kind(file: Path, name: str, cells: NDArray[np.object_]) -> str:
    """Whether a column of text has dates or categories, of which some are in several rows."""
    kind = looks_like(cells)
    known = [cell for cell in cells if cell is not None]
    if kind == "text":
        note(
            f"column {name!r} has {len(set(known))} different texts in {len(cells)} rows, each a "
            f"column of its own: leave it out with --drop {quoted(name)}"
        )
    if kind == "names":
        raise click.ClickException(
            f"{file}: column {name!r} has another text in every row, like {known[0]!r}, so that "
            "categories would tell nothing: if these are dates, write them as 2024-05-31; "
            f"otherwise --id {quoted(name)} keeps it as the name of the rows, and --drop "
            f"{quoted(name)} leaves it out"
        )
    return "dates" if kind == "dates" else "categories"


def _gaps(file: Path, X: Any, format: ReadOptions) -> str:
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


def _not_features(
    file: Path,
    header: Any,
    format: ReadOptions,
    drop: list[str],
    ids: str | None,
    used: Collection[str | None],
) -> tuple[list[str], str | None]:
    """The columns that are no features and no labels, and which of them has the ids."""
    used = {*used, *drop, ids}
    left_out = [*drop, *_empty_column(file, header, format, used)]
    index = _row_names(file, header, format, used)
    if index is not None:
        left_out.append(index)
        if ids is None and read_column(file, index, format).dtype.kind == "U":
            return left_out, index
    return left_out if ids is None else [*left_out, ids], ids


def _row_names(
    file: Path, header: Any, format: ReadOptions, used: Collection[str | None]
) -> str | None:
    """The first column, where it has no name and numbers or names the rows, as an index does."""
    name = _without_name(header)
    if name is None or name in used:
        return None
    cells = read_column(file, name, format)
    if cells.dtype.kind in "iu" and len(cells) > 2 and cells[0] in (0, 1):
        if (np.diff(cells) != 1).any():
            return None
        note(f"{file}: the first column has no name and counts the rows, and is left out")
        return name
    if cells.dtype.kind != "U" or looks_like(cells) != "names":
        return None
    note(f"{file}: the first column has no name and is taken for the names of the rows")
    return name


def _empty_column(
    file: Path, header: Any, format: ReadOptions, used: Collection[str | None]
) -> list[str]:
    """The last column, where it has neither a name nor a cell: lines that end with a separator."""
    if header is None or not header.named or len(header.names) < 2:
        return []
    name = header.names[-1]
    if name != f"x{len(header.names) - 1}" or header.names[-2] == f"x{len(header.names) - 2}":
        return []
    if name in used or any(
        str(cell) not in ("", "nan") for cell in read_column(file, name, format)
    ):
        return []
    note(f"{file}: the last column has neither a name nor a cell, and is left out")
    return [name]


def _without_name(header: Any) -> str | None:
    """What a first column without a name is called: x0 by us, in other words by pandas."""
    if header is None or not header.named or len(header.names) < 2:
        return None
    first, second = header.names[:2]
    return first if first == "Unnamed: 0" or (first == "x0" and second != "x1") else None


def _note_useless(X: Any) -> None:
    """Name the columns that count the rows, are constant, or repeat another column."""
    if sp.issparse(X) or len(X) < 3:
        return
    rows = np.arange(len(X))
    found: dict[str, list[str]] = {"only counts the rows": [], "has one value in all rows": []}
    repeated: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for name in X.columns:
        cells = X[name].to_numpy()
        if cells.dtype == object:
            codes = np.unique(cells.astype(str), return_inverse=True)[1]
            constant = not codes.any()
        else:
            codes, constant = cells, bool((cells == cells[0]).all())
            if (cells == rows).all() or (cells == rows + 1).all():
                found["only counts the rows"].append(name)
        if constant:
            found["has one value in all rows"].append(name)
        elif (first := seen.setdefault(codes.tobytes(), name)) != name:
            repeated[name] = first
    for what, names in found.items():
        if names:
            which = (
                f"column {names[0]!r}"
                if len(names) == 1
                else f"each of the columns {listed(names)}"
            )
            note(f"{which} {what}: leave it out with --drop {','.join(map(quoted, names))}")
    if repeated:
        pairs = listed([f"{name!r} repeats {first!r}" for name, first in repeated.items()])
        note(f"{pairs}: distances count such columns twice; leave them out with --drop "
             f"{','.join(map(quoted, repeated))}")  # fmt: skip


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


def encoders_in(model: Any) -> dict[str, Any]:
    """The columns of text that a pipeline encodes first, and the fitted encoder of each."""
    if not (isinstance(model, Pipeline) and isinstance(model[0], ColumnTransformer)):
        return {}
    steps = model[0].transformers_
    return {
        str(column): step
        for name, step, chosen in steps
        if name in ("categories", "dates")
        for column in chosen
    }


def refuse_more_components(model: Any, X: Any, asked: int | None) -> None:
    """Refuse more dimensions than the samples have when they reach the estimator."""
    if asked is None:
        return
    encodes = isinstance(model, Pipeline) and isinstance(model[0], ColumnTransformer)
    width = clone(model[0]).fit_transform(X).shape[1] if encodes else X.shape[1]
    if asked > width:
        there = "is" if width == 1 else "are"
        raise click.UsageError(
            f"--components {asked}, but there {there} {counted(width, 'column')} to learn from"
        )


def last(model: Any) -> Any:
    """The estimator at the end of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def for_model(
    model: Any, file: Path, format: ReadOptions, *, beside: Sequence[str | None] = ()
) -> tuple[Any, NDArray[np.bool_]]:
    """The columns of a file that a model was fitted to, and which rows of the file they are of.

    Columns are found by their names. Others are left out, with a note unless they are `beside`:
    used for something else. Rows with missing cells that the model cannot fill are left out too.
    """
    names = getattr(model, "feature_names_in_", None)
    header = read_header(file, format=format, expected=() if names is None else list(names))
    if names is None:
        if header is not None and header.named:
            note(f"the model was fitted without names: the columns of {file} go by their order")
        X = read_table(file, format=format).X
        return X, np.ones(X.shape[0], dtype=bool)
    if header is None:
        raise click.ClickException(
            f"{file} has no names of columns, and the model was fitted to {listed(names)}: "
            "write it as CSV with a header"
        )
    format = replace(format, header=header.named)
    drop = left_out(file, header.names, names, headed=header.named, beside=beside)
    encoders = encoders_in(model)
    try:
        table = read_table(file, drop=drop, text=list(encoders), format=format)
    except TextColumnsError as refusal:
        column = refusal.columns[0]
        raise click.ClickException(
            f"{file}: {column.name!r} has {column.cell!r} in {column.place}, and numbers in the fit"
        ) from refusal
    X = _with_texts(table, header.names)[list(names)]
    X = filled_categories(X, [name for name in encoders if "" in _known_to(encoders, name)])
    whole = np.ones(len(X), dtype=bool) if fills_gaps(model) else _whole(X, None)
    if not whole.any():
        raise click.ClickException(
            f"every row of {file} has a missing cell, and the model has nothing to fill it with: "
            "fit it with --missing median"
        )
    _note_unknown(X[whole], encoders)
    return filled_categories(X[whole], list(encoders)), whole


def rows_of(whole: NDArray[np.bool_], ids: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What names the rows of an answer."""
    return _rows_left(whole, ids, ids)


def _known_to(encoders: Mapping[str, Any], name: str) -> list[str]:
    """The categories of a column in the fit; none for dates."""
    encoder = encoders[name]
    columns = list(getattr(encoder, "feature_names_in_", ()))
    known = getattr(encoder, "categories_", None)
    return [] if known is None else [str(one) for one in known[columns.index(name)]]


def _note_unknown(X: Any, encoders: Mapping[str, Any]) -> None:
    """Name categories that the fit did not have: they are encoded as none of its categories."""
    for name in encoders:
        known = _known_to(encoders, name)
        new = sorted({*X[name].dropna()} - {*known}) if known else []
        if new:
            note(f"column {name!r} has categories that were not in the fit: {listed(new)}; their "
                 "rows have none of its known categories")  # fmt: skip


def left_out(
    file: Path,
    there: Sequence[str],
    names: Sequence[str],
    *,
    headed: bool = True,
    beside: Sequence[str | None] = (),
) -> list[str]:
    """The columns that a model does not know, with a note; refused where one is missing."""
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
