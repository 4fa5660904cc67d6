"""Read the samples of a file as estimators take them, with a message for every problem."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from shlex import quote
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

from gramian.app.cli.names import by_name, columns_in, counted, free, listed
from gramian.app.cli.options import Source
from gramian.app.cli.output import bad_input, note
from gramian.app.cli.text_columns import kind_of, read_with_texts
from gramian.app.encoders import DateEncoder
from gramian.app.files import (
    Table,
    looks_like,
    place_of,
    read_column,
    read_header,
)
from gramian.app.files._columns import EXACT, settled
from gramian.arrays.samples import check_size
from gramian.common import clock

ROW = "row"
"""The column with the row numbers, from 0 without the header, if some rows are left out."""

FEW_CLASSES, MANY_ROWS = 20, 5
"""A numeric label looks continuous if it has more than FEW_CLASSES different values and fewer than
MANY_ROWS rows per value on average."""

CODES = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
"""Numbers that some programs write instead of a missing value."""

NAMES = ("names", "categories", "text")
"""Kinds of distinct texts that are names of rows if their column has no name."""

ID = re.compile(
    r"""(^|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:id|ids|idx|index|row|no|nr|number|key|record|case|sample
    |obs|observation|individual|subject|patient|participant|respondent)\W*$|^(?i:unnamed:)""",
    re.VERBOSE,
)
"""Names of columns that usually contain ids or row numbers."""

ROUGH = 100.0
"""Ratio of the standard deviations of columns above which --standardize is suggested."""


@dataclass(frozen=True)
class Samples:
    """The samples that a command learns from."""

    source: Source
    X: Any
    """A frame with the column names, or a sparse matrix."""
    y: NDArray[Any] | None
    label: str
    ids: dict[str, NDArray[Any]]
    """The column of --id, and the numbers of the rows if some were left out."""
    encoded: dict[str, str]
    """Columns of text to encode, and what they contain: categories or dates."""
    counter: str | None = None
    """A column that was left out because it contains the row numbers 1, 2, 3, …"""

    @property
    def names(self) -> NDArray[Any] | None:
        """The ids of the rows, or the row numbers if some rows were left out; None otherwise."""
        return next(iter(self.ids.values()), None)

    @property
    def texts(self) -> list[str] | None:
        """The names as text, for a page."""
        return None if self.names is None else [str(name) for name in self.names]

    @property
    def facts(self) -> dict[str, Any]:
        """The file and the size of the data, as a command prints them."""
        rows, columns = self.X.shape
        return {"file": str(self.source.file), "samples": rows, "features": columns}

    def prepared(self, estimator: Any) -> Any:
        """A pipeline of encoders, imputer and scaler, as far as needed, and the estimator."""
        steps: list[Any] = [_encoders(self.encoded)] if self.encoded else []
        if self.source.missing in ("mean", "median"):
            steps.append(SimpleImputer(strategy=self.source.missing, keep_empty_features=True))
        if self.source.standardize:
            steps.append(StandardScaler(with_mean=not sp.issparse(self.X)))
        return make_pipeline(*steps, estimator) if steps else estimator

    def refuse_quantity(self) -> None:
        """Raise an error if the label is continuous; print a note if it has many integer values."""
        if self.y is None or self.y.dtype.kind not in "iuf":
            return
        y = self.y[has_label(self.y)]
        classes = len(np.unique(y))
        if not FEW_CLASSES < classes <= len(y) < MANY_ROWS * classes:
            return
        what = f"{self.label!r} has {classes} different numbers in {len(y)} rows"
        remedy = (
            "cut it into groups, or learn a metric for a continuous quantity in Python with "
            "gramian.metric.MetricRegressor"
        )
        if classes == len(y):
            raise click.ClickException(
                f"{self.source.file}: {self.label!r} has a different number in every row, so it is "
                f"an id or a continuous quantity, not a class: name another column, or {remedy}"
            )
        if (y % 1 != 0).any():
            raise click.ClickException(
                f"{self.source.file}: {what}, so it is a continuous quantity, not a class: {remedy}"
            )
        note(f"{what}, and each is treated as a class; if it is a quantity, {remedy}")

    def note_scales(self) -> None:
        """Suggest --standardize if the column with the largest spread dominates all distances."""
        if sp.issparse(self.X) or self.source.standardize:
            return
        spread = self.X.select_dtypes("number").std(axis=0, ddof=0).to_numpy()
        spread = spread[spread > 0]
        if spread.size and spread.max() > ROUGH * spread.min():
            ratio = f"{spread.max() / spread.min():.0f}"
            note(
                f"the standard deviations of the columns differ by a factor of {ratio}, and the "
                "largest dominate: try --standardize"
            )


def samples(source: Source, *, unknown: bool = False) -> Samples:
    """Read samples and handle missing cells; labels may be missing if `unknown`.

    A column that only contains row numbers is left out, unless it is in --keep.
    """
    file, missing = source.file, source.missing
    clock.phase(f"reading {file}")
    if source.label is not None and source.label == source.ids:
        raise click.UsageError(f"--id and --label are the same column, {source.label}")
    named = [name for name in (source.label, source.ids) if name is not None]
    given = [*source.drop, *source.encode, *source.keep, *named]
    header = read_header(file, format=source.format, expected=[*given, *columns_in(given, ())])
    there = [] if header is None else header.names
    if header is not None:
        source = replace(source, format=replace(source.format, header=header.named))
    encode = by_name(file, header, columns_in(source.encode, there))
    keep = by_name(file, header, columns_in(source.keep, there))
    source = replace(source, drop=columns_in(source.drop, there), encode=encode, keep=keep)
    source = _without_row_names(source, header)
    table = read_with_texts(source)
    names = {} if source.ids is None else {source.ids: read_column(file, source.ids, source.format)}
    kinds = {name: kind_of(source, name, cells) for name, cells in table.texts.items()}
    with bad_input():
        check_size(table.X, str(file), least=0.0)
    X, y = with_texts(table, there), table.y
    counts: dict[str, int] = {}
    if not sp.issparse(X) and len(X) >= 3:
        X, counts = _without_counts(source, X)
        _note_ids(X, keep)
        _note_codes(X)
        _note_useless(X)
    categories = [name for name, kind in kinds.items() if kind == "categories"]
    if y is not None and not unknown:
        known = has_label(y)
        names = rows_left(known, names, there, f"without a label in {table.label!r}")
        if not known.any():
            raise click.ClickException(f"{file}: the label column {table.label!r} is empty")
        X, y = (X, y) if known.all() else (X[known], settled(file, y[known]))
    if missing == "drop":
        whole = whole_rows(X)
        _note_gaps(X, whole)
        X, names = X[whole], rows_left(whole, names, there)
        y = None if y is None else settled(file, y[whole])
    elif gone := [name for name in categories if X[name].isna().any()]:
        note(f"missing cells of {listed(gone)} are a category of their own")
    X = filled_categories(X, categories)
    if not sp.issparse(X) and X.isna().to_numpy().any():
        empty = [quote(str(name)) for name in X.columns[X.isna().to_numpy().all(axis=0)]]
        if missing == "error":
            raise click.ClickException(_gaps(source, X, empty))
        if empty:
            note(f"no values in {listed(empty)}: leave it out with --drop {','.join(empty)}")
    if X.shape[0] < 2:
        raise click.ClickException(f"{file} has only one row; learning needs at least two")
    if y is not None:
        _note_labels_again(X, y, table.label)
    counter = next((name for name, first in counts.items() if first == 1), None)
    return Samples(source, X, y, table.label or "label", names, kinds, counter)


def with_texts(table: Table, order: Sequence[str]) -> Any:
    """All columns of a table in the order of the file; a sparse matrix is returned unchanged."""
    if sp.issparse(table.X):
        return table.X
    X = import_module("pandas").DataFrame(table.X, columns=table.columns)
    if not table.texts:
        return X
    X = X.assign(**table.texts) if len(table.columns) else type(X)(table.texts)
    return X[[name for name in order if name in set(X.columns)]]


def filled_categories(X: Any, columns: Sequence[str]) -> Any:
    """The frame with the missing cells of these columns replaced by empty strings."""
    return X.assign(**{name: X[name].fillna("") for name in columns}) if columns else X


def whole_rows(X: Any) -> NDArray[np.bool_]:
    """A mask of the rows without missing cells."""
    return np.ones(X.shape[0], dtype=bool) if sp.issparse(X) else ~X.isna().to_numpy().any(axis=1)


def rows_left(
    left: NDArray[np.bool_],
    names: dict[str, NDArray[Any]],
    taken: Collection[str],
    what: str = "with missing cells",
) -> dict[str, NDArray[Any]]:
    """The names of the remaining rows; also their numbers if some rows are left out."""
    if left.all():
        return names
    note(f"{counted(int((~left).sum()), 'row')} {what} left out")
    names = {name: values[left] for name, values in names.items()}
    numbered = next((name for name in names if name.rstrip("_") == ROW and name not in taken), None)
    numbers = {} if numbered else {free(ROW, {*taken, *names}): np.flatnonzero(left)}
    return {**names, **numbers}


def _note_gaps(X: Any, whole: NDArray[np.bool_]) -> None:
    """Suggest --drop for a column if most rows are left out because of its missing cells."""
    if sp.issparse(X) or X.shape[1] < 2 or whole.all():
        return
    gaps = X.isna().to_numpy()
    most = int(gaps.sum(axis=0).argmax())
    saved = int((gaps.any(axis=1) & (gaps.sum(axis=1) == gaps[:, most])).sum())
    if 2 * saved > len(X):
        name = quote(str(X.columns[most]))
        note(f"{counted(saved, 'row')} lack only the cell of {name}: --drop {name} keeps them")


def has_label(y: NDArray[Any]) -> NDArray[np.bool_]:
    """A mask of the rows that have a label."""
    return ~np.isnan(y) if y.dtype.kind == "f" else y.astype(str) != ""


# --- columns that are not features -----------------------------------------------------


def _gaps(source: Source, X: Any, empty: list[str]) -> str:
    """The message about missing cells; `empty` has the names of columns without any value."""
    gaps = X.isna().to_numpy()
    row, column = (int(part[0]) for part in np.nonzero(gaps))
    many, wide = f"{counted(int(gaps.sum()), 'missing cell')}", int(gaps.any(axis=0).sum())
    remedy = "pass --missing median to fill them in, or --missing drop to leave their rows out"
    if empty:
        remedy = f"--drop {','.join(empty)} leaves out the columns without values"
    return (
        f"{source.file} has {many}{f' in {wide} columns' if wide > 1 else ''}, the first in "
        f"{place_of(source.file, row, source.format)}, column {X.columns[column]!r}: {remedy}"
    )


def _without_row_names(source: Source, header: Any) -> Source:
    """Leave out empty last columns, an unnamed first column of row names, and the ids."""
    if header is None:
        return source if source.ids is None else replace(source, drop=[*source.drop, source.ids])
    used = {*source.drop, *source.encode, *source.keep, source.label, source.ids}
    drop, ids = list(source.drop), source.ids
    if header.named and len(header.names) > 1:
        first, second = header.names[:2]
        empty = _empty_last(source, [name for name in header.names if name not in used])
        if empty:
            columns = f"{counted(len(empty), 'column')} at the end without a name or a cell"
            note(f"{source.file}: {columns} left out")
            drop += empty
        unnamed = first == "Unnamed: 0" or (first == "x0" and second != "x1")  # by pandas, or by us
        if unnamed and first not in used and (kind := _names_rows(source, first)) is not None:
            drop.append(first)
            if ids is None and kind == "names":
                return replace(source, drop=drop, ids=first)
    return replace(source, drop=drop if ids is None else [*drop, ids])


def _empty_last(source: Source, names: Sequence[str]) -> list[str]:
    """The last columns, if they have neither a name nor a value."""
    empty: list[str] = []
    for name in reversed(names):
        if re.fullmatch(r"x\d+", name) is None:
            break
        cells = read_column(source.file, name, source.format)
        if not all(str(cell) in ("", "nan") for cell in cells):
            break
        empty.append(name)
    return empty


def _names_rows(source: Source, name: str) -> str | None:
    """Whether an unnamed first column has the row numbers or names: "numbers", "names" or None."""
    cells = read_column(source.file, name, source.format)
    if cells.dtype.kind in "iu" and len(cells) > 2 and np.unique(cells).size == len(cells):
        counts = cells[0] in (0, 1) and (np.diff(cells) == 1).all()
        what = "the row numbers" if counts else "a different number in each row"
        note(
            f"{source.file}: the first column has no name; it contains {what} and is left out "
            f"(--keep {quote(name)} keeps it)"
        )
        return "numbers"
    distinct = len(cells) > 2 and np.unique(cells).size == len(cells)
    if cells.dtype.kind != "U" or not distinct or looks_like(cells) not in NAMES:
        return None
    note(f"{source.file}: the first column has no name and is used as row names")
    return "names"


def _without_counts(source: Source, X: Any) -> tuple[Any, dict[str, int]]:
    """The frame without columns of row numbers, and the first number of each of these columns.

    Files are often sorted by class or time, so row numbers would predict the class.
    """
    numbers = [name for name in X.select_dtypes("number") if name not in source.keep]
    counts = {
        name: int(X[name].iloc[0])
        for name in numbers
        if X[name].iloc[0] in (0, 1) and (X[name].diff()[1:] == 1).all()
    }
    if not 0 < len(counts) < X.shape[1]:
        return X, {}
    note(
        f"{source.file}: left out columns of row numbers: {listed(list(counts))} "
        f"(--keep {','.join(map(quote, counts))} keeps it)"
    )
    return X.drop(columns=list(counts)), counts


def _note_ids(X: Any, keep: Collection[str]) -> None:
    """Report other columns of whole numbers that look like ids or permuted row numbers.

    Whole numbers that are too large for exact arithmetic are also reported as ids.
    """
    found: list[str] = []
    for name, cells in X.select_dtypes("number").items():
        if name in keep or not (cells % 1 == 0).all():
            continue
        distinct = cells.nunique()
        counts = distinct == len(X) == cells.max() - cells.min() + 1
        if (
            counts
            or cells.abs().max() >= EXACT
            or (ID.search(str(name)) and distinct > min(FEW_CLASSES, len(X) - 1))
        ):
            found.append(name)
    if 0 < len(found) < X.shape[1]:
        one = len(found) == 1
        note(
            f"{listed(list(map(repr, found)))} {'looks' if one else 'look'} like an id or a row "
            f"number, but {'is used as a feature' if one else 'are used as features'}: --drop "
            f"{','.join(map(quote, found))} leaves {'it' if one else 'them'} out"
        )


def _note_codes(X: Any) -> None:
    """Report columns in which the smallest number may stand for a missing value."""
    for name, cells in X.select_dtypes("number").items():
        code, others = cells.min(), cells[cells > cells.min()]
        if code in CODES and others.min() - code > others.max() - others.min() and len(others) > 1:
            rows = counted(int((cells == code).sum()), "row")
            note(
                f"column {name!r} has {code:g} in {rows}, far from its other numbers: if this "
                "stands for a missing cell, leave such cells empty"
            )


def _note_useless(X: Any) -> None:
    """Report columns that are constant or repeat another column."""
    hashed = import_module("pandas").util.hash_array
    constant: list[str] = []
    repeated: dict[str, str] = {}
    seen: dict[bytes, str] = {}
    for name in X.columns:
        cells = X[name]
        if cells.nunique() == 1 and cells.notna().all():
            constant.append(name)
        elif (first := seen.setdefault(hashed(cells.to_numpy()).tobytes(), name)) != name:
            repeated[name] = first
    if constant:
        one = len(constant) == 1
        which = f"column {constant[0]!r}" if one else f"each of the columns {listed(constant)}"
        option = f"--drop {','.join(map(quote, constant))}"
        note(f"{which} has one value in all rows: leave it out with {option}")
    if repeated:
        pairs = listed([f"{name!r} repeats {first!r}" for name, first in repeated.items()])
        option = f"--drop {','.join(map(quote, repeated))}"
        note(f"{pairs}: distances count such columns twice; leave them out with {option}")


def _note_labels_again(X: Any, y: NDArray[Any], label: str | None) -> None:
    """Report columns that contain the labels in other words or numbers."""
    known = has_label(y)
    classes, codes = np.unique(y[known], return_inverse=True)
    if sp.issparse(X) or not 2 <= len(classes) <= known.sum() / MANY_ROWS:
        return
    factorize = import_module("pandas").factorize
    found: list[str] = []
    for name in X.columns:
        values, distinct = factorize(X[name][known])
        if len(distinct) == len(classes) == np.unique(values * len(classes) + codes).size:
            found.append(str(name))
    if 0 < len(found) < X.shape[1]:
        note(
            f"{listed(list(map(repr, found)))} {'has' if len(found) == 1 else 'have'} one value "
            f"for each class of {label!r}, so held-out errors are too small if it is not known "
            f"for new rows: --drop {','.join(map(quote, found))}"
        )


# --- pipelines -------------------------------------------------------------------------


def _encoders(encoded: Mapping[str, str]) -> ColumnTransformer:
    """Encode categories one-hot (all 0 for an unknown category), and dates as numbers of days."""
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


def encodes(model: Any) -> bool:
    """Whether a pipeline begins with encoders."""
    return isinstance(model, Pipeline) and isinstance(model[0], ColumnTransformer)


def last(model: Any) -> Any:
    """The estimator at the end of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def refuse_more_components(model: Any, X: Any, asked: int | None) -> None:
    """Raise an error if more dimensions are requested than the encoded samples have."""
    if asked is None:
        return
    width = clone(model[0]).fit_transform(X).shape[1] if encodes(model) else X.shape[1]
    if asked > width:
        there = "is" if width == 1 else "are"
        raise click.UsageError(
            f"--components {asked}, but there {there} {counted(width, 'column')} to learn from"
        )
