"""ARFF files, as Weka writes them: attributes with types, and rows of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gramian.app.files._cells import TypedFrame, in_memory
from gramian.app.files._columns import number_of
from gramian.app.files._errors import FileError, NameOfFile, claim, shown
from gramian.app.files._source import Source

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(.*?)\s*", re.IGNORECASE)
CELL = re.compile(rf"\s*({QUOTED}|[^,'\"]*?)\s*(,|$)")
PAIR = re.compile(rf"\s*(\d+)\s+({QUOTED}|[^,'\"]*?)\s*(,|$)")
"""A cell of a row, and a position and a cell of a sparse row, with what ends them."""

NUMBERS = ("numeric", "real", "integer")


@dataclass(frozen=True)
class _Attribute:
    name: str
    kind: str

    @property
    def numeric(self) -> bool:
        return self.kind.lower() in NUMBERS

    @property
    def unwritten(self) -> str:
        """The cell of a sparse row that does not contain the attribute."""
        first = CELL.match(self.kind[1:].rstrip("}")) if self.kind.startswith("{") else None
        return "0" if first is None else _bare(first[1])


def arff_frame(source: Source) -> TypedFrame:
    """The columns of an ARFF file."""
    path = source.path
    claim(path, 20.0 * source.size, f"{source.size:,} bytes of ARFF", "write it as Parquet")
    lines = ((n, line.strip()) for n, line in source.lines())
    kept = ((n, line) for n, line in lines if line and not line.startswith("%"))
    attributes: list[_Attribute] = []
    for number, line in kept:
        if line.lower().startswith("@data"):
            break
        if line.lower().startswith("@attribute"):
            attributes.append(_attribute(path, number, line))
    if not attributes:
        raise FileError(f"{path} has no attributes: is it the whole file?")
    rows = [(f"line {number}", _row(path, number, line, attributes)) for number, line in kept]
    if not rows:
        raise FileError(f"{path} has attributes and no rows: is it the whole file?")
    names = [attribute.name for attribute in attributes]
    return in_memory(path, names, True, rows, "the lines with @attribute")


def _attribute(path: NameOfFile, number: int, line: str) -> _Attribute:
    found = ATTRIBUTE.fullmatch(line)
    if found is None or not found[2] or found[2].lower().startswith("relational"):
        raise FileError(
            f"{path}: line {number} is no attribute of numbers or text: write it as CSV"
        )
    return _Attribute(_bare(found[1]), found[2])


def _row(path: NameOfFile, number: int, line: str, attributes: list[_Attribute]) -> list[Any]:
    """The cells of a row, numbers for the attributes of numbers."""
    if line.startswith("{"):
        cells = [attribute.unwritten for attribute in attributes]
        for place, cell in _parts(PAIR, line[1:].rstrip("}")):
            if int(place) < len(cells):
                cells[int(place)] = _bare(cell)
    else:
        cells = [_bare(cell) for (cell,) in _parts(CELL, line)]
    if len(cells) != len(attributes):
        raise FileError(
            f"{path}: line {number} has {len(cells)} cells for {len(attributes)} attributes"
        )
    pairs = zip(cells, attributes, strict=True)
    return [_typed(path, number, cell, attribute) for cell, attribute in pairs]


def _typed(path: NameOfFile, number: int, cell: str, attribute: _Attribute) -> Any:
    if not attribute.numeric or cell == "?":
        return cell
    value = number_of(cell)
    if value is None:
        raise FileError(
            f"{path}: line {number} has {shown(cell)} in {shown(attribute.name)}, an attribute of "
            "numbers: write a number or ?"
        )
    return value


def _parts(form: re.Pattern[str], line: str) -> Iterator[tuple[str, ...]]:
    """The matches of a form, one after the other; none after a part that does not match."""
    place, ended = 0, False
    while not ended and (found := form.match(line, place)) is not None:
        *parts, end = found.groups()
        yield tuple(parts)
        place, ended = found.end(), end == ""


def _bare(text: str) -> str:
    """A text without its quotes and escapes."""
    if text[:1] in ("'", '"') and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
