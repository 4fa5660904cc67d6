"""Write tables to files; a file is either complete or not written."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
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
    """Write a table in the format of the extension; replaces an existing file when it is complete.

    Parameters
    ----------
    path : str or path
        Ends with .csv, .tsv (or these with .gz), .npy, .npz or .parquet.
    X : array or sparse matrix of shape (n, d)
        Sparse matrices stay sparse in NPZ files, and are written as dense ones in the others.
    columns : sequence of str, optional
        The names of the d columns, default "x0", "x1", …; NPY files have none.
    first, extra : mappings of str to array of shape (n,), optional
        Additional columns of numbers or strings, before and after; separate arrays in NPZ files.
    escape : bool
        Whether text in CSV and TSV files that begins with =, +, -, @, a tab or a line break, and is
        not a number, is prefixed with an apostrophe, so that a spreadsheet does not interpret it as
        a formula. The readers of gramian remove the apostrophe.
    """
    ending = next((end for end in WRITTEN if str(path).lower().endswith(end)), None)
    if ending is None:
        raise FileError(f"{path} cannot be written: end its name with one of {', '.join(WRITTEN)}")
    table = X if sp.issparse(X) else np.asarray(X)
    names = [f"x{place}" for place in range(table.shape[1])] if columns is None else list(columns)
    lead = {name: np.asarray(values) for name, values in (first or {}).items()}
    more = {**lead, **{name: np.asarray(values) for name, values in (extra or {}).items()}}
    _check(table, names, more)
    with writing(path), replacing(Path(path).resolve()) as file:
        if ending == ".npy":
            if more:
                raise FileError(
                    f"{path} cannot be written: .npy is one array; name it .npz or .csv"
                )
            np.save(file, _dense(path, table), allow_pickle=False)
        elif ending == ".npz":
            _write_npz(file, table, names if columns is not None else None, more)
        elif ending in (".parquet", ".pq"):
            arrow = library("pyarrow", "writing Parquet")
            own = dict(zip(names, _dense(path, table).T, strict=True))
            ordered = {**lead, **own, **more}
            arrays = {name: arrow.array(np.ascontiguousarray(_plain(ordered[name])))
                      for name in ordered}  # fmt: skip
            library("pyarrow.parquet", "writing Parquet").write_table(arrow.table(arrays), file)
        else:
            delimiter = "\t" if ending.startswith(".tsv") else ","
            # without the time of writing, so that the same table gives the same bytes
            target: Any = (
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) if ending.endswith(".gz") else file
            )
            text = io.TextIOWrapper(target, encoding="utf-8", newline="")
            write_rows(text, table, names, more, len(lead), delimiter, escape=escape)
            text.detach()
            if target is not file:
                target.close()


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


def _write_npz(file: IO[bytes], X: Any, names: list[str] | None, extra: Extra) -> None:
    parts = {name: _plain(values) for name, values in extra.items()}
    if names is not None:
        parts[NPZ_NAMES] = np.array(names, dtype=np.str_)
    own = {"X": X}
    if sp.issparse(X):
        rows = sp.csr_matrix(X)
        own = {key: getattr(rows, key) for key in ("data", "indices", "indptr")}
        own |= {"shape": np.array(rows.shape), "format": np.array(b"csr")}
    if clash := sorted({*own} & {*parts}):
        raise ValueError(f"an extra array cannot be called {clash[0]!r} in an .npz file")
    np.savez(file, allow_pickle=False, **own, **parts)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Convert objects to strings: array files contain no Python objects."""
    return values.astype(np.str_) if values.dtype == object else values


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
    """Write the header and the rows of a table as text, the first `lead` extra columns in front."""

    def cells(row: Sequence[Any]) -> list[Any]:
        return list(map(escaped, row)) if escape else list(row)

    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(cells([*list(extra)[:lead], *names, *list(extra)[lead:]]))
    own = cells if X.dtype.kind in "OU" else list
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        some = X[rows].toarray() if sp.issparse(X) else X[rows]
        others = [cells(values[rows].tolist()) for values in extra.values()]
        writer.writerows(
            [*more[:lead], *own(row), *more[lead:]]
            for row, *more in zip(some.tolist(), *others, strict=True)
        )
    text.flush()
