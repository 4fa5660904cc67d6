"""A file on disk: its format, its bytes without their compression, its lines."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

from gramian.files._errors import FileError, NameOfFile, claim, reading

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".npy": "npy",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".mtx": "matrix market",
}
ALIASES = {"libsvm": "svmlight", "mtx": "matrix market"}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
MAGIC = {b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
BANNER = "%%MatrixMarket"
SVMLIGHT_LINE = re.compile(r"\s*[-+.\deE,]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")

LONGEST = 1 << 26
"""Bytes of a line beyond which a file is taken for something that has no lines."""

SAMPLE = 1 << 16
"""Bytes from which a format is told."""

PIECE = 1 << 20


@dataclass(frozen=True)
class Source:
    """A file that exists, the format that it is read in, and its bytes once decompressed."""

    path: NameOfFile
    gzipped: bool
    format: str = ""
    size: int = 0

    def open(self) -> IO[bytes]:
        """The bytes, decompressed, after the mark of UTF-8 that some programs write."""
        file = self._raw()
        if file.read(len(BOM)) != BOM:
            file.seek(0)
        return file

    def _raw(self) -> IO[bytes]:
        if not self.gzipped:
            return open(self.path, "rb")
        return cast(IO[bytes], io.BufferedReader(gzip.open(self.path), PIECE))

    def pieces(self) -> Iterator[bytes]:
        """The bytes, decompressed, a piece at a time."""
        with self.open() as file:
            while piece := file.read(PIECE):
                yield piece

    @property
    def stored(self) -> int:
        """Bytes on the disk."""
        return Path(self.path).stat().st_size

    def measured(self) -> int:
        """Bytes once decompressed; refused as soon as they are more than memory can take."""
        if not self.gzipped:
            return self.stored
        size = 0
        for piece in self.pieces():
            size += len(piece)
            grown = f"{self.stored:,} compressed bytes that become {size:,} and more"
            claim(self.path, size, grown, "split it")
        return size

    def count(self, mark: bytes) -> int:
        """How often a byte occurs."""
        return sum(piece.count(mark) for piece in self.pieces())

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines and their numbers from 1, without their ends."""
        with self.open() as file:
            number = 0
            while line := file.readline(LONGEST):
                number += 1
                yield number, self._text(line, number)

    def _text(self, line: bytes, number: int) -> str:
        if len(line) == LONGEST:
            raise FileError(
                f"{self.path}: line {number} is longer than {LONGEST:,} bytes; is this text?"
            )
        line = line.rstrip(b"\r\n")
        if b"\0" in line:
            raise FileError(
                f"{self.path}: line {number} has zero bytes, which text in UTF-8 has not"
                f"{self._rather()}: save it as UTF-8"
            )
        if b"\r" in line:
            raise FileError(
                f"{self.path}: line {number} has a carriage return inside: save the file with "
                "ordinary ends of lines"
            )
        try:
            return line.decode()
        except UnicodeDecodeError:
            raise FileError(
                f"{self.path}: line {number} is not text in UTF-8{self._rather()}: save it as UTF-8"
            ) from None

    def _rather(self) -> str:
        with self.open() as file:
            found = _by_magic(file.read(8))
        return f' (it begins like {found}, for which pass format="{found}")' if found else ""


def locate(path: NameOfFile, format: str | None) -> Source:
    """The file, and its format: as told, by its ending, or from its first lines."""
    if format is not None and ALIASES.get(format, format) not in FORMATS:
        raise ValueError(f"format must be one of {FORMATS}, got {format!r}")
    with reading(path):
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise FileError(f"{path} is not an ordinary file: copy what it gives into one")
        with open(path, "rb") as file:
            source = Source(path, file.read(2) == GZIP)
        size = source.measured()
        found = ALIASES.get(format, format) if format else _by_ending(path) or _sniffed(source)
    if source.gzipped and found in MAGIC.values():
        raise FileError(f"{path} is gzipped, which {found} files cannot be: gunzip it first")
    return replace(source, format=found, size=size)


def _by_ending(path: NameOfFile) -> str | None:
    name = str(path).lower().removesuffix(".gz")
    return ENDINGS.get(Path(name).suffix)


def _by_magic(head: bytes) -> str | None:
    return next((found for magic, found in MAGIC.items() if head.startswith(magic)), None)


def _sniffed(source: Source) -> str:
    with source.open() as file:
        head = file.read(SAMPLE)
    if found := _by_magic(head):
        return found
    lines = head.decode(errors="replace").splitlines()
    if lines and lines[0].startswith(BANNER):
        return "matrix market"
    kept = [line for line in lines if line.strip() and not line.startswith("#")][:2]
    if kept and SVMLIGHT_LINE.fullmatch(kept[0]):
        return "svmlight"
    return "tsv" if kept and all("\t" in line for line in kept) else "csv"
