"""NPY and NPZ: arrays of numbers and strings, never of Python objects."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from gramian.app.files._columns import listed, unique_names
from gramian.app.files._errors import FileError, NameOfFile, claim, parsing
from gramian.app.files._source import Source

KINDS = "biufUS"
"""Allowed NumPy dtype kinds: booleans, integers, floats, and strings of characters or bytes."""

NPZ_NAMES = "columns"
"""The array of an NPZ file with the names of the columns."""


@dataclass(frozen=True)
class Archive:
    """The arrays of an NPZ file, each read on request."""

    path: NameOfFile
    zip: zipfile.ZipFile

    @property
    def names(self) -> list[str]:
        return [name[:-4] for name in self.zip.namelist() if name.endswith(".npy")]

    def array(self, name: str) -> NDArray[Any]:
        """One array, checked before it takes memory."""
        with parsing(self.path, "npz"):
            length = self.zip.getinfo(f"{name}.npy").file_size
            with self.zip.open(f"{name}.npy") as member:
                return _array(member, length, self.path, f"array {name!r}")

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, from its head."""
        with parsing(self.path, "npz"), self.zip.open(f"{name}.npy") as member:
            return _head(member, self.path, f"array {name!r}")[0]

    @property
    def is_sparse(self) -> bool:
        """Whether the arrays are the parts of a sparse matrix."""
        names = set(self.names)
        parts = {"indices", "indptr"} <= names or {"row", "col"} <= names or "format" in names
        return parts and {"data", "shape"} <= names

    @property
    def tables(self) -> list[str]:
        """Candidates for the table: the array X, or all arrays of two dimensions."""
        if "X" in self.names:
            return ["X"]
        return [name for name in self.names if len(self.shape(name)) == 2]

    def main(self) -> str:
        """The array that is the table."""
        if len(self.tables) != 1:
            raise FileError(
                f"{self.path} has the arrays {listed(self.names)}: name the table X, or keep one "
                "array of two dimensions"
            )
        return self.tables[0]

    def column_names(self, size: int) -> list[str] | None:
        """The names of the columns of the table, None if the archive has none."""
        if NPZ_NAMES not in self.names or self.shape(NPZ_NAMES) != (size,):
            return None
        return unique_names(self.path, [str(name) for name in self.array(NPZ_NAMES).tolist()])


@contextmanager
def archive(source: Source) -> Iterator[Archive]:
    """An NPZ file, open."""
    with open(source.path, "rb") as file:
        with parsing(source.path, "npz"):
            opened = zipfile.ZipFile(file)
        found = Archive(source.path, opened)
        if not found.names:
            raise FileError(
                f"{source.path} has no arrays in it: unpack a ZIP file, and write arrays with "
                "numpy.savez"
            )
        yield found


def read_npy(source: Source) -> NDArray[Any]:
    """The array of an NPY file, checked before it takes memory."""
    with parsing(source.path, "npy"), open(source.path, "rb") as file:
        return _array(file, source.stored, source.path, "array")


def _head(file: IO[bytes], path: NameOfFile, what: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(file)
    head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = head(file)
    if dtype.hasobject:
        raise FileError(
            f"{path}: the {what} is of Python objects, which can run code when read and is never "
            "loaded: save numbers or strings"
        )
    if dtype.kind not in KINDS:
        raise FileError(f"{path}: the {what} is of {dtype}: save real numbers or strings")
    return shape, dtype


def _array(file: IO[bytes], length: int, path: NameOfFile, what: str) -> NDArray[Any]:
    shape, dtype = _head(file, path, what)
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * max(dtype.itemsize, 1) > length - file.tell():
        raise FileError(f"{path}: the {what} says {shape} and is shorter: fetch it again")
    claim(path, count * max(dtype.itemsize, 8), f"an {what} of shape {shape}", "split it")
    file.seek(0)
    found: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    if dtype.kind == "U":  # numpy accepts any four bytes as a character, and Python does not
        codes = np.frombuffer(found.astype(dtype.newbyteorder("=")).tobytes(), np.uint32)
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise FileError(f"{path}: the {what} has strings that are no text: write it again")
    return found
