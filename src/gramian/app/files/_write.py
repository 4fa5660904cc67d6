"""Write tables to files; a file is either complete or not written."""

from __future__ import annotations

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
            library("pyarrow", "writing Parquet")
            plain = {name: _plain(values) for name, values in more.items()}
            as_frame(_dense(path, table), names, plain, len(lead), escape=False).to_parquet(
                file, engine="pyarrow", index=False
            )
        else:
            # without the time of writing, so that the same table gives the same bytes
            packed: Any = {"method": "gzip", "mtime": 0} if ending.endswith(".gz") else None
            as_frame(_dense(path, table), names, more, len(lead), escape=escape).to_csv(
                file, sep="\t" if ending.startswith(".tsv") else ",", index=False, mode="wb",
                lineterminator="\n", compression=packed,
            )  # fmt: skip


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


def as_frame(X: Any, names: Sequence[str], extra: Extra, lead: int, *, escape: bool) -> Any:
    """A table as a frame, the first `lead` extra columns in front; text with formulas escaped."""
    more = list(extra.items())
    columns = {**dict(more[:lead]), **dict(zip(names, np.asarray(X).T, strict=True)), **extra}
    if escape:
        columns = {
            escaped(name): list(map(escaped, cells.tolist())) if cells.dtype.kind in "OU" else cells
            for name, cells in columns.items()
        }
    return library("pandas", "writing tables").DataFrame(columns)
