"""Tables into files, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import NPZ_NAMES
from gramian.app.files._columns import escaped
from gramian.app.files._errors import FileError, NameOfFile, claim, writing
from gramian.app.files._frames import library
from gramian.common.storage import replacing

WRITTEN = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".npy", ".npz", ".parquet", ".pq")
ROWS_AT_ONCE = 4096

Extra = Mapping[str, NDArray[Any]]


def write_table(
    path: NameOfFile,
    X: Any,
    *,
    columns: Sequence[str] | None = None,
    first: Extra | None = None,
    extra: Extra | None = None,
    escape: bool = True,
) -> None:
    """Write a table in the format of the ending; an older file stays until the new one is whole.

    Parameters
    ----------
    path : str or path
        Ends with .csv, .tsv (or these with .gz), .npy, .npz or .parquet.
    X : array or sparse matrix of shape (n, d)
        Sparse matrices stay so in NPZ files, and are written out in the others.
    columns : sequence of str, optional
        The names of the d columns, "x0", "x1", … unless given; NPY files have none.
    first, extra : mappings of str to array of shape (n,), optional
        More columns, of numbers or strings, before and after; arrays of their own in NPZ files.
    escape : bool
        Whether text in CSV and TSV files that begins with =, +, -, @, a tab or a line break, and is
        no number, gets an apostrophe before it, so that a spreadsheet takes it for text and not for
        a formula. `read_table` and the other readers of gramian take it away again.
    """
    ending = next((end for end in WRITTEN if str(path).lower().endswith(end)), None)
    if ending is None:
        raise FileError(f"{path} cannot be written: end its name with one of {', '.join(WRITTEN)}")
    table = X if sp.issparse(X) else np.asarray(X)
    lead = len(first or {})
    more = {name: np.asarray(values) for name, values in {**(first or {}), **(extra or {})}.items()}
    names = [f"x{place}" for place in range(table.shape[1])] if columns is None else list(columns)
    _check(table, names, more)
    with writing(path), replacing(Path(path).resolve()) as file:
        if ending == ".npy":
            _write_npy(path, file, table, more)
        elif ending == ".npz":
            _write_npz(file, table, names if columns is not None else None, more)
        elif ending in (".parquet", ".pq"):
            _write_parquet(path, file, table, names, more, lead)
        else:
            delimiter = "\t" if ending.startswith(".tsv") else ","
            with _text(file, ending.endswith(".gz")) as text:
                write_rows(text, table, names, more, lead, delimiter, escape=escape)


def _check(X: Any, names: list[str], extra: Extra) -> None:
    if X.ndim != 2 or len(names) != X.shape[1]:
        raise ValueError(
            f"expected a table and a name for each column, got {X.shape}, {len(names)}"
        )
    if len({*names, *extra}) != len(names) + len(extra):
        raise ValueError("two columns have the same name")
    for name, values in extra.items():
        if values.shape != X.shape[:1]:
            raise ValueError(
                f"extra column {name!r} has shape {values.shape} for {X.shape[0]} rows"
            )


def _dense(path: NameOfFile, X: Any) -> NDArray[Any]:
    if not sp.issparse(X):
        return np.asarray(X)
    rows, columns = X.shape
    remedy = "write it as .npz, which stays sparse"
    claim(path, 8.0 * rows * columns, f"{rows:,} × {columns:,} numbers", remedy)
    return np.asarray(X.toarray())


def _write_npy(path: NameOfFile, file: IO[bytes], X: Any, extra: Extra) -> None:
    if extra:
        raise FileError(f"{path} cannot be written: .npy is one array; name it .npz or .csv")
    np.save(file, _dense(path, X), allow_pickle=False)


def _write_npz(file: IO[bytes], X: Any, names: list[str] | None, extra: Extra) -> None:
    parts = {name: _plain(values) for name, values in extra.items()}
    if names is not None:
        parts[NPZ_NAMES] = np.array(names, dtype=np.str_)
    if sp.issparse(X):
        rows = sp.csr_matrix(X)
        kept = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
        own = {**kept, "shape": np.array(rows.shape), "format": np.array(b"csr")}
    else:
        own = {"X": X}
    if clash := sorted({*own} & {*parts}):
        raise ValueError(f"an extra array cannot be called {clash[0]!r} in an .npz file")
    np.savez(file, allow_pickle=False, **own, **parts)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Strings for objects: a file of arrays holds no Python objects."""
    return values.astype(np.str_) if values.dtype == object else values


def _write_parquet(
    path: NameOfFile, file: IO[bytes], X: Any, names: list[str], extra: Extra, lead: int
) -> None:
    arrow = library("pyarrow", "writing Parquet")
    parquet = library("pyarrow.parquet", "writing Parquet")
    table = _dense(path, X)
    others = [_plain(values) for values in extra.values()]
    values = [*others[:lead], *table.T, *others[lead:]]
    parquet.write_table(
        arrow.table(
            [arrow.array(np.ascontiguousarray(column)) for column in values],
            names=_in_order(names, extra, lead),
        ),
        file,
    )


def _in_order(names: list[str], extra: Extra, lead: int) -> list[str]:
    return [*list(extra)[:lead], *names, *list(extra)[lead:]]


def write_rows(
    text: IO[str],
    X: Any,
    names: list[str],
    extra: Extra,
    lead: int,
    delimiter: str = ",",
    *,
    escape: bool = True,
) -> None:
    """The header and the rows of a table as text, `lead` of the extra columns in front."""
    cells: Any = escaped if escape else _same
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(map(cells, _in_order(names, extra, lead)))
    own = cells if X.dtype.kind in "OU" else _same
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        some = X[rows].toarray() if sp.issparse(X) else X[rows]
        others = [[cells(cell) for cell in values[rows].tolist()] for values in extra.values()]
        writer.writerows(
            [*more[:lead], *map(own, row), *more[lead:]]
            for row, *more in zip(some.tolist(), *others, strict=True)
        )


def _same(cell: Any) -> Any:
    return cell


@contextmanager
def _text(file: IO[bytes], gzipped: bool) -> Iterator[IO[str]]:
    """Text into an open file, which stays open; gzipped without the hour, so always the same."""
    target: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if gzipped else file
    text = io.TextIOWrapper(target, encoding="utf-8", newline="")
    yield text
    text.flush()
    if gzipped:
        text.close()
    else:
        text.detach()
