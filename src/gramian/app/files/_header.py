"""The names of the columns of a file, without the rest of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gramian.app.files._arrays import Archive, archive, read_npy
from gramian.app.files._columns import Numbered, counted_names, find
from gramian.app.files._contents import frame, has_table, main_array, names_in
from gramian.app.files._errors import NameOfFile, reading
from gramian.app.files._source import locate
from gramian.app.files._sparse import sparse_parts


@dataclass(frozen=True)
class Header:
    """The columns of a file.

    Attributes
    ----------
    names : list of str
        "x0", "x1", … where the file has no names.
    named : bool
        Whether the names are those of the file.
    """

    names: list[str]
    named: bool

    def places(self, path: NameOfFile, columns: Sequence[str]) -> list[int]:
        """Where columns are, by name, or by number where the file has no names."""
        numbered: Any = Numbered(path, self.names, self.named)
        return [find(numbered, name) for name in columns]


def read_header(
    path: NameOfFile, *, format: str | None = None, expected: Sequence[str] = ()
) -> Header | None:
    """The columns of a dense file; None for a sparse matrix, which has none.

    Parameters
    ----------
    path : str or path
    format : str, optional
        The format, where the ending does not tell.
    expected : sequence of str
        Names by which a first row is known for a header, where all cells below are text as well.
    """
    source = locate(path, format)
    with reading(path):
        columns = frame(source, expected)
        if columns is not None:
            return Header(columns.names, columns.headed)
        if source.format == "npy":
            found = read_npy(source)
            return Header(counted_names(path, found.shape[-1] if found.ndim == 2 else 1), False)
        if source.format != "npz":
            return None
        with archive(source) as arrays:
            return _of_archive(path, arrays)


def _of_archive(path: NameOfFile, arrays: Archive) -> Header | None:
    """The columns of the table, or the arrays themselves where none of them is one."""
    if not has_table(arrays):
        return Header(arrays.names, True)
    if sparse_parts(arrays):
        return None
    shape = arrays.shape(main_array(arrays))
    size = shape[-1] if len(shape) == 2 else 1
    names = names_in(arrays, size)
    return Header(counted_names(path, size), False) if names is None else Header(names, True)
