"""A file on disk: its format, its bytes in UTF-8 without their compression, and its lines."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeAlias

from gramian.app.files._errors import FileError, NameOfFile, claim, reading, shown
from gramian.common.warnings import warn

ENDINGS = {
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet", ".pq"),
    "feather": (".feather",),
    "excel": (".xlsx", ".xlsm"),
    "json lines": (".jsonl", ".ndjson", ".json"),
    "arff": (".arff",),
    "npz": (".npz",),
    "npy": (".npy",),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
    "matrix market": (".mtx",),
}
"""File extensions by format."""
FORMATS = tuple(ENDINGS)
ALIASES = {"libsvm": "svmlight", "mtx": "matrix market", "xlsx": "excel", "jsonl": "json lines"}
ZIP, WORKBOOK = b"PK\x03\x04", "xl/workbook.xml"
"""Leading bytes of a ZIP file, and a file in those of Excel."""

MAGIC = {b"PAR1": "parquet", b"ARROW1": "feather", b"\x93NUMPY": "npy", ZIP: "npz"}
BINARY = ("parquet", "feather", "npy", "npz", "excel")
PACKED: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
"""Leading bytes of compressed files, and the functions that open them."""
FOREIGN = {
    b"\xd0\xcf\x11\xe0": "of the old Excel format, or has a password",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"\x89HDF": "an HDF5 file",
    b"MATLAB": "a MATLAB file",
    b"$FL2": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"SQLite": "an SQLite database",
    b"RDX": "an R file",
    b"X\n\0\0": "an R file",
    b"\x80\x04\x95": "a pickle of Python",
    b"\x80\x05\x95": "a pickle of Python",
}
"""Leading bytes of files of other programs, which are not read."""

OFFICE = ("word/document.xml", "ppt/presentation.xml", "content.xml")
"""Files in the ZIP files of other office programs."""
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
        codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # fmt: skip
"""Byte order marks and encodings; a mark that starts with another mark comes before it."""
CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
BANNER = "%%MatrixMarket"
JSON_START = re.compile(r'\s*(\{"|\[\s*(\{|$))')
ARFF = re.compile(r"@relation\b", re.IGNORECASE)
SVMLIGHT_LINE = re.compile(r"\s*[-+.\deE,]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")

LONGEST = 1 << 26
"""Length in bytes of the longest line that is accepted as text."""

PIECE = 1 << 20
"""Number of bytes read at a time."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; None detects it from the name and the first lines.

    Attributes
    ----------
    format : str or None
        One of `FORMATS` or `ALIASES`; None detects it.
    header : bool or None
        Whether the first row contains the names of the columns; None detects it.
    sheet : str or None
        The sheet of an Excel file, by name or by number from 1; None selects the largest.
    """

    format: str | None = None
    header: bool | None = None
    sheet: str | None = None


Format: TypeAlias = str | ReadOptions | None
"""The `format` parameter of every reader."""


@dataclass(frozen=True)
class Source:
    """A file that exists, and the format that it is read in."""

    path: NameOfFile
    format: str = ""
    encoding: str = "utf-8"
    """The encoding on disk; `open` converts to UTF-8."""
    start: int = 0
    """Bytes before the table: a byte order mark, a line with the separator, a title."""
    skipped: int = 0
    """Lines before the table."""
    options: ReadOptions = ReadOptions()
    content: bytes | None = None
    """The content in UTF-8, of a file that is compressed or in another encoding."""

    def open(self) -> IO[bytes]:
        """The bytes of the table, decompressed and in UTF-8."""
        file = self._raw()
        file.seek(self.start)
        return file

    def _raw(self) -> IO[bytes]:
        return open(self.path, "rb") if self.content is None else io.BytesIO(self.content)

    def after(self, lines: int) -> Source:
        """The same file without its first lines."""
        with self.open() as file:
            length = sum(len(file.readline(LONGEST)) for _ in range(lines))
        return replace(self, start=self.start + length, skipped=self.skipped + lines)

    def pieces(self) -> Iterator[bytes]:
        """The bytes, a piece at a time."""
        with self.open() as file:
            while piece := file.read(PIECE):
                yield piece

    @property
    def stored(self) -> int:
        """Bytes on disk."""
        return Path(self.path).stat().st_size

    @property
    def size(self) -> int:
        """Bytes after decompression."""
        return self.stored if self.content is None else len(self.content)

    def count(self, mark: bytes) -> int:
        """The number of occurrences of a byte."""
        return sum(piece.count(mark) for piece in self.pieces())

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines and their numbers from 1, without line ends."""
        with self.open() as file:
            number = self.skipped
            while line := file.readline(LONGEST):
                number += 1
                yield number, self._text(line, number)

    def _text(self, line: bytes, number: int) -> str:
        fault = ""
        bare = line.rstrip(b"\r\n")
        if len(line) == LONGEST:
            fault = f"is longer than {LONGEST:,} bytes; is this text?"
        elif b"\0" in bare:
            fault = f"has zero bytes, so this is no text in UTF-8{self._rather()}: save it as CSV"
        elif b"\r" in bare:
            fault = "has a carriage return inside: save the file with ordinary ends of lines"
        else:
            try:
                return bare.decode()
            except UnicodeDecodeError:
                fault = f"is not text in UTF-8{self._rather()}: save it as UTF-8"
        raise FileError(f"{self.path}: line {number} {fault}")

    def _rather(self) -> str:
        with self.open() as file:
            found = _by_magic(file.read(8))
        return f" (it begins like {found})" if found else ""


def locate(path: NameOfFile, format: Format) -> Source:
    """The file and its format: as given, by its extension, or detected from its first lines."""
    options = format if isinstance(format, ReadOptions) else ReadOptions(format)
    asked = ALIASES.get(options.format or "", options.format)
    if asked is not None and asked not in FORMATS:
        raise ValueError(f"format must be one of {FORMATS}, got {asked!r}")
    with reading(path):
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise FileError(f"{path} is not an ordinary file: copy its content into one")
        name, content = _unpacked(path, asked)
        source = Source(path, options=options, content=content)
        _refuse_foreign(source)
        source = _without_mark(source)
        ending = Path(name.lower()).suffix
        named = next((kind for kind, ends in ENDINGS.items() if ending in ends), None)
        found = asked or named or _sniffed(source)
        if asked is None and found not in BINARY and _sniffed(source) in BINARY:
            found = _sniffed(source)
            warn(f"{path} is read as {found}, which it contains")
        if content is not None and found in BINARY:
            raise FileError(f"{path} is compressed, which {found} files cannot be: unpack it first")
        if options.sheet is not None and found != "excel":
            raise FileError(f"{path} is {found}, which has no sheets: leave out the name of one")
        source = replace(source, format=found)
        return _in_utf8(source) if found in ("csv", "tsv", "arff") else source


def _refuse_foreign(source: Source) -> None:
    """Raise FileError for a file of another program, by its first bytes."""
    with source.open() as file:
        head = file.read(16)
    what = next((kind for mark, kind in FOREIGN.items() if head.startswith(mark)), None)
    if head.startswith(ZIP) and {info.filename for info in _zipped(source.path)} & {*OFFICE}:
        what = "of another office program"
    if what is not None:
        raise FileError(f"{source.path} is {what}: save its table as .xlsx or CSV")


def _unpacked(path: NameOfFile, asked: str | None) -> tuple[str, bytes | None]:
    """The name without the extension of a compression, and the content of a compressed file.

    Raises FileError as soon as the content is too large for the memory.
    """
    with open(path, "rb") as file:
        head = file.read(8)
    unpack = next((unpack for mark, unpack in PACKED.items() if head.startswith(mark)), None)
    if unpack is not None:
        with unpack(path) as packed:
            content = _limited(path, packed)
        return re.sub(r"\.(gz|bz2|xz)$", "", str(path), flags=re.IGNORECASE), content
    if head.startswith(ZIP) and asked not in BINARY and (member := _zipped_table(path)):
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed:
            return member, _limited(path, packed)
    return str(path), None


def _limited(path: NameOfFile, packed: IO[bytes]) -> bytes:
    content, stored = bytearray(), Path(path).stat().st_size
    while piece := packed.read(PIECE):
        content += piece
        grown = f"{stored:,} compressed bytes that become {len(content):,} and more"
        claim(path, len(content), grown, "split it")
    return bytes(content)


def _zipped_table(path: NameOfFile) -> str | None:
    """The only file of a ZIP file; None if it is a workbook, has arrays or is damaged."""
    files = [info for info in _zipped(path) if not info.is_dir()]
    ours = [info for info in files if not info.filename.startswith("__MACOSX/")]
    names = [info.filename for info in ours]
    if not names or {WORKBOOK, *OFFICE} & {*names} or any(name.endswith(".npy") for name in names):
        return None
    if len(names) > 1 or ours[0].flag_bits & 1:
        what = "is encrypted" if len(names) == 1 else f"has {len(names)} files in it"
        raise FileError(f"{path} {what}, the first {shown(names[0])}: unpack it and name one file")
    return names[0]


def _without_mark(source: Source) -> Source:
    """The source after its byte order mark, in UTF-8 where the mark names another encoding."""
    with source.open() as file:
        head = file.read(PIECE)
        mark = next((bom for bom in BOMS if head.startswith(bom)), b"")
        encoding = BOMS[mark] if mark else _by_zeros(head)
        if encoding == "utf-8":
            return replace(source, start=len(mark))
        claim(source.path, 4.0 * source.size, f"{source.size:,} bytes of {encoding}", "split it")
        try:
            text = (head + file.read()).decode(encoding).encode()
        except UnicodeDecodeError:
            raise FileError(
                f"{source.path} {'begins with the mark of' if mark else 'looks like'} {encoding} "
                "and is damaged or cut short: save it as UTF-8"
            ) from None
    return replace(source, content=text, encoding=encoding)


def _by_zeros(head: bytes) -> str:
    """UTF-16 if one byte of each pair, and only this one, is often zero; otherwise UTF-8."""
    zeros = [head[first::2].count(0) for first in (0, 1)]
    if _by_magic(head) or min(zeros) or not 4 * max(zeros) > len(head) > 8:
        return "utf-8"
    encoding = "utf-16-le" if zeros[1] else "utf-16-be"
    text = head[: len(head) // 2 * 2].decode(encoding, errors="replace")
    return "utf-8" if CONTROLS.search(text.encode(errors="replace")) else encoding


def _in_utf8(source: Source) -> Source:
    """Text that is not in UTF-8 is converted from Windows-1252, with a warning."""
    first = next(source.pieces(), b"")
    if b"\r" in first and b"\n" not in first:  # the line ends of the first Macintosh
        whole = b"".join(source.pieces()).replace(b"\r", b"\n")
        source = replace(source, content=whole, start=0)
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in source.pieces():
            decoder.decode(piece)
        decoder.decode(b"", final=True)
        return source
    except UnicodeDecodeError:
        claim(source.path, 4.0 * source.size, f"{source.size:,} bytes", "save it as UTF-8")
    content = b"".join(source.pieces())
    try:
        text = content.decode("cp1252").encode()
    except UnicodeDecodeError:
        return source
    if CONTROLS.search(content):
        return source  # which is not text; `lines` names the first line that is not
    warn(
        f"{source.path} is not text in UTF-8, and is read as Windows-1252: save it as UTF-8 if "
        "letters are wrong"
    )
    return replace(source, content=text, start=0, encoding="cp1252")


def _by_magic(head: bytes) -> str | None:
    return next((found for magic, found in MAGIC.items() if head.startswith(magic)), None)


def _zipped(path: NameOfFile) -> list[zipfile.ZipInfo]:
    """The files in a ZIP file; none in a damaged one, which its reader reports."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except Exception:
        return []


def _sniffed(source: Source) -> str:
    """The format by the first bytes and lines."""
    with source.open() as file:
        head = file.read(1 << 16)
    if found := _by_magic(head):
        workbook = found == "npz" and WORKBOOK in [i.filename for i in _zipped(source.path)]
        return "excel" if workbook else found
    lines = head.decode(errors="replace").splitlines()
    if lines and lines[0].startswith(BANNER):
        return "matrix market"
    kept = [line for line in lines if line.strip() and not line.startswith("#")][:2]
    if kept and JSON_START.match(kept[0]):
        return "json lines"
    if any(ARFF.match(line) for line in lines):
        return "arff"
    if kept and SVMLIGHT_LINE.fullmatch(kept[0]):
        return "svmlight"
    return "tsv" if kept and all("\t" in line for line in kept) else "csv"
