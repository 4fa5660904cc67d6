"""A file on disk: its format, its bytes without their compression, its lines."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeAlias, cast

from gramian.app.files._errors import FileError, NameOfFile, claim, reading

ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".jsonl": "json lines",
    ".ndjson": "json lines",
    ".json": "json lines",
    ".npz": "npz",
    ".npy": "npy",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".mtx": "matrix market",
}
ALIASES = {"libsvm": "svmlight", "mtx": "matrix market", "xlsx": "excel", "jsonl": "json lines"}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
BINARY = ("parquet", "feather", "npy", "npz", "excel")
GZIP = b"\x1f\x8b"
OLD_EXCEL = b"\xd0\xcf\x11\xe0"
BOM = b"\xef\xbb\xbf"
WIDE_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
             codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
"""Byte order marks of encodings that are converted to UTF-8 in memory, the longer ones first."""
CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
BANNER = "%%MatrixMarket"
JSON_LINE = re.compile(r'\s*\{"')
JSON_LIST = re.compile(r"\s*\[\s*(\{|$)")
ARFF = re.compile(r"@relation\b", re.IGNORECASE)
SVMLIGHT_LINE = re.compile(r"\s*[-+.\deE,]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")

LONGEST = 1 << 26
"""Bytes of a line beyond which a file is taken for something that has no lines."""

SAMPLE = 1 << 16
"""Bytes from which a format is detected."""

PIECE = 1 << 20


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file, where its name and its first lines do not say.

    Attributes
    ----------
    format : str or None
        One of `FORMATS` or `ALIASES`; None detects it.
    header : bool or None
        Whether the first row has the names of the columns; None detects it.
    sheet : str or None
        The sheet of an Excel file, by name or by number from 1; None takes the largest.
    """

    format: str | None = None
    header: bool | None = None
    sheet: str | None = None


Format: TypeAlias = str | ReadOptions | None
"""What every reader takes as `format`."""


@dataclass(frozen=True)
class Source:
    """A file that exists, the format that it is read in, and its bytes once decompressed."""

    path: NameOfFile
    gzipped: bool
    format: str = ""
    size: int = 0
    encoding: str = "utf-8"
    start: int = 0
    """Bytes before the table: a line that says how cells are parted, a title."""
    skipped: int = 0
    """Lines that these are."""
    options: ReadOptions = ReadOptions()
    converted: bytes | None = None
    """The whole text in UTF-8, of a file in UTF-16 or UTF-32."""

    def open(self) -> IO[bytes]:
        """The bytes, decompressed, after the mark of UTF-8 that some programs write."""
        file = self._raw()
        file.seek(self.start + (len(BOM) if file.read(len(BOM)) == BOM else 0))
        return file

    def after(self, lines: int) -> Source:
        """The same file without some lines at its beginning."""
        with self.open() as file:
            length = sum(len(file.readline(LONGEST)) for _ in range(lines))
        return replace(self, start=self.start + length, skipped=self.skipped + lines)

    def _raw(self) -> IO[bytes]:
        if self.converted is not None:
            return io.BytesIO(self.converted)
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
            number = self.skipped
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
            return line.decode(self.encoding)
        except UnicodeDecodeError:
            raise FileError(
                f"{self.path}: line {number} is not text in UTF-8{self._rather()}: save it as UTF-8"
            ) from None

    def _rather(self) -> str:
        with self.open() as file:
            found = _by_magic(file.read(8))
        return f' (it begins like {found}, for which pass format="{found}")' if found else ""


def locate(path: NameOfFile, format: Format) -> Source:
    """The file, and its format: as given, by its ending, or from its first lines."""
    options = format if isinstance(format, ReadOptions) else ReadOptions(format)
    asked = ALIASES.get(options.format or "", options.format)
    if asked is not None and asked not in FORMATS:
        raise ValueError(f"format must be one of {FORMATS}, got {asked!r}")
    with reading(path):
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise FileError(f"{path} is not an ordinary file: copy what it gives into one")
        with open(path, "rb") as file:
            source = Source(path, file.read(2) == GZIP, options=options)
        source = _in_utf8(replace(source, size=source.measured()))
        found = asked or _by_ending(path) or _sniffed(source)
        if found == "excel" and Path(path).suffix.lower() == ".xls":
            raise FileError(f"{path} is of the old Excel format: save it as .xlsx or CSV")
        if source.gzipped and found in BINARY:
            raise FileError(f"{path} is gzipped, which {found} files cannot be: gunzip it first")
        if options.sheet is not None and found != "excel":
            raise FileError(f"{path} is {found}, which has no sheets: leave out the name of one")
        source = replace(source, format=found)
        return replace(source, encoding=_encoding(source)) if found in ("csv", "tsv") else source


def _in_utf8(source: Source) -> Source:
    """The source with its text in UTF-8, where a byte order mark says UTF-16 or UTF-32."""
    with source.open() as file:
        head = file.read(4)
        encoding = next((name for bom, name in WIDE_BOMS.items() if head.startswith(bom)), None)
        if encoding is None:
            return source
        claim(source.path, 4.0 * source.size, f"{source.size:,} bytes of {encoding}", "split it")
        try:
            text = (head + file.read()).decode(encoding).encode()
        except UnicodeDecodeError:
            raise FileError(
                f"{source.path} begins with the mark of {encoding} and is damaged or cut short: "
                "save it as UTF-8"
            ) from None
    return replace(source, converted=text, size=len(text))


def _encoding(source: Source) -> str:
    """UTF-8, or what Windows writes in western Europe where it is not that."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in source.pieces():
            if b"\0" in piece:
                return "utf-8"  # and no text, as reading it will say
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    if not _like_text(source):
        return "utf-8"
    warnings.warn(
        f"{source.path} is not text in UTF-8, and is read as Windows-1252: save it as UTF-8 if "
        "letters are wrong",
        stacklevel=2,
    )
    return "cp1252"


def _like_text(source: Source) -> bool:
    """Whether the bytes are letters of Windows-1252, ends of lines and tabs, and nothing else."""
    for piece in source.pieces():
        try:
            piece.decode("cp1252")
        except UnicodeDecodeError:
            return False
        if CONTROLS.search(piece):
            return False
    return True


def _by_ending(path: NameOfFile) -> str | None:
    name = str(path).lower().removesuffix(".gz")
    return ENDINGS.get(Path(name).suffix)


def _by_magic(head: bytes) -> str | None:
    return next((found for magic, found in MAGIC.items() if head.startswith(magic)), None)


def _is_workbook(source: Source) -> bool:
    try:
        with zipfile.ZipFile(source.path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except Exception:  # of a damaged file; whoever reads it will say so
        return False


def _sniffed(source: Source) -> str:
    with source.open() as file:
        head = file.read(SAMPLE)
    if found := _by_magic(head):
        return "excel" if found == "npz" and _is_workbook(source) else found
    if head.startswith(OLD_EXCEL):
        raise FileError(f"{source.path} is of the old Excel format: save it as .xlsx or CSV")
    lines = head.decode(errors="replace").splitlines()
    if lines and lines[0].startswith(BANNER):
        return "matrix market"
    kept = [line for line in lines if line.strip() and not line.startswith("#")][:2]
    if kept and (JSON_LINE.match(kept[0]) or JSON_LIST.match(kept[0])):
        return "json lines"
    if any(ARFF.match(line) for line in lines):
        raise FileError(f"{source.path} is an ARFF file, which is not read: write it as CSV")
    if kept and SVMLIGHT_LINE.fullmatch(kept[0]):
        return "svmlight"
    return "tsv" if kept and all("\t" in line for line in kept) else "csv"
