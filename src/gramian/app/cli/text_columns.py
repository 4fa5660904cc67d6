"""Columns of text where numbers are expected: the option that fits each, in one message."""

from __future__ import annotations

from shlex import quote

import click
import numpy as np
from numpy.typing import NDArray

from gramian.app.cli.names import ALL, counted, listed
from gramian.app.cli.options import Source
from gramian.app.cli.output import note
from gramian.app.dates import date_in
from gramian.app.files import (
    Table,
    TextColumnsError,
    looks_like,
    place_of,
    read_table,
)

BROKEN = ("numbers", "amounts", "some dates")
"""Kinds of columns of text whose cells have to be changed in the file."""

MOST_DESCRIBED = 5
"""Columns of text that a message describes one by one."""


def read_with_texts(source: Source) -> Table:
    """Read numbers, and as text the columns to encode: all of them if there are no numbers."""
    texts = [name for name in source.encode if name != ALL]
    while True:
        try:
            return read_table(
                source.file, label=source.label, drop=list(source.drop), text=texts,
                format=source.format, unknown=True,
            )  # fmt: skip
        except TextColumnsError as refusal:
            plain = all(column.kind not in BROKEN for column in refusal.columns)
            if not plain or (ALL not in source.encode and refusal.numeric):
                message = _text_columns(refusal, source.label)
                if plain:
                    message += _together(refusal, refusal.gaps and source.missing == "error")
                raise click.ClickException(message) from refusal
            if ALL not in source.encode:
                note(
                    f"{source.file} has no column of numbers: its columns of text are encoded, as "
                    "with --encode all"
                )
            texts += [column.name for column in refusal.columns]


def _text_columns(refusal: TextColumnsError, label: str | None) -> str:
    """The columns of text, and the option that fits each."""
    options = {
        "names": "--id {0} keeps it as the name of the rows, --drop {0} leaves it out",
        "dates": "--encode {} makes numbers of its dates",
        "categories": "--encode {} makes numbers of its categories",
        "numbers": "most of its cells are numbers: leave such cells empty for --missing to fill, "
        "or remove the row if it is a total or a remark",
        "amounts": "write its numbers in one unit, with one kind of separators",
        "some dates": "most of its cells are dates: leave such cells empty, then --encode {}",
        "constant": "--drop {} leaves it out, as it has one value in all rows",
        "text": "--drop {} leaves it out",
    }
    described, columns = [], refusal.columns
    broken = [column for column in columns if column.kind == "numbers"]
    if len(broken) > 1 and len({column.place for column in broken}) == 1:
        described.append(
            f"{broken[0].place} may be a second header or a row of units: remove it from the file "
            f"(its cells are {listed([repr(column.cell) for column in broken])})"
        )
        columns = [column for column in columns if column not in broken]
    for column in columns[:MOST_DESCRIBED]:
        option = options[column.kind].format(quote(column.name))
        if column.kind == "categories" and label is None:
            option += f", --label {quote(column.name)} learns it"
        described.append(f"{column.name!r} has {column.cell!r} in {column.place} ({option})")
    these = [quote(column.name) for column in columns]
    if len(these) > MOST_DESCRIBED:
        described.append(f"so have {counted(len(these) - MOST_DESCRIBED, 'other column')}")
    every = f"; --drop {','.join(these)} leaves all of them out" if len(these) > 1 else ""
    if len(these) > 1 and all(c.kind in ("dates", "categories") for c in columns):
        every = f"; --encode {ALL} encodes all of them{every}"
    return f"{refusal.path} has text where numbers belong: {'; '.join(described)}{every}"


def _together(refusal: TextColumnsError, gaps: bool) -> str:
    """Options for all columns of text, and for gaps in others; empty if one option is enough."""
    encode = [quote(c.name) for c in refusal.columns if c.kind in ("dates", "categories")]
    others = [quote(c.name) for c in refusal.columns if quote(c.name) not in encode]
    if not gaps and not (encode and others):
        return ""
    pairs = (("--encode", encode), ("--drop", others))
    options = [f"{option} {','.join(names)}" for option, names in pairs if names]
    if not gaps:
        return f"; all at once: add {' '.join(options)}"
    options.append("--missing median")
    return f"; other columns have missing cells; all at once: add {' '.join(options)}"


def kind_of(source: Source, name: str, cells: NDArray[np.object_]) -> str:
    """Whether a column of text contains dates or categories; names of rows are refused."""
    kind = looks_like(cells)
    known = [cell for cell in cells if cell is not None]
    if kind == "some dates":
        row = next(k for k, cell in enumerate(cells) if cell is not None and not date_in(cell))
        raise click.ClickException(
            f"{source.file}: column {name!r} has {cells[row]!r} in "
            f"{place_of(source.file, row, source.format)} among dates: leave such cells empty"
        )
    if kind == "text":
        note(
            f"column {name!r} has {len(set(known))} different texts in {len(cells)} rows, each a "
            f"column of its own: leave it out with --drop {quote(name)}"
        )
    if kind == "names":
        raise click.ClickException(
            f"{source.file}: column {name!r} has another text in every row, like {known[0]!r}, so "
            "its categories contain no information: if these are dates, write them as 2024-05-31; "
            f"otherwise --id {quote(name)} keeps it as the name of the rows, and --drop "
            f"{quote(name)} leaves it out"
        )
    return "dates" if kind == "dates" else "categories"
