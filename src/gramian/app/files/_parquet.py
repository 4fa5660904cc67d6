"""Parquet and Feather: the columns of a table, some rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.app.files import _frames
from gramian.app.files._columns import Values, listed, unique_names
from gramian.app.files._errors import FileError, NameOfFile, claim, parsing
from gramian.app.files._source import Source

CHUNK_CELLS = 1 << 20
INDEX = re.compile(r"__index_level_\d+__")
"""A name that pandas gives the index of a frame, which is no column of it."""


@dataclass(frozen=True)
class ParquetFrame:
    """A Parquet or Feather file; `rows` is what it says of itself."""

    source: Source
    names: list[str]
    rows: int
    headed: bool = True
    layout: tuple[str, ...] = ("the schema of the file",)

    @property
    def path(self) -> NameOfFile:
        return self.source.path

    def about(self, most: float) -> int:
        return self.rows

    def place(self, row: int) -> str:
        """Where a row is, for people."""
        return f"row {row}"

    def chunks(self, columns: Sequence[int], as_text: Sequence[int] = ()) -> Iterator[list[Values]]:
        """Some columns of some rows after others; whole numbers stay so in those `as_text`."""
        wanted = [self.names[column] for column in columns]
        read = 0
        with open(self.path, "rb") as file:
            with parsing(self.path, self.source.format):
                arrow, batches = self._batches(file, wanted)
            while True:
                with parsing(self.path, self.source.format):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    found = [self._values(arrow, batch.column(name), name) for name in wanted]
                read += batch.num_rows
                if read > self.rows:
                    break
                yield found
        if read != self.rows:
            raise FileError(
                f"{self.path} says that it has {self.rows:,} rows and has {read:,}: write it again"
            )

    def _batches(self, file: Any, wanted: list[str]) -> tuple[Any, Iterator[Any]]:
        """The library, and some rows after others."""
        rows = max(1, CHUNK_CELLS // max(1, len(wanted)))
        if self.source.format == "feather":
            arrow, feather = _frames.feather("reading Feather")
            table = feather.read_table(file, columns=wanted, use_threads=False, memory_map=False)
            return arrow, iter(table.combine_chunks().to_batches(max_chunksize=rows))
        arrow, parquet = _frames.parquet("reading Parquet")
        batches = parquet.ParquetFile(file).iter_batches(
            batch_size=rows, columns=wanted, use_threads=False
        )
        return arrow, batches

    def _values(self, arrow: Any, column: Any, name: str) -> Values:
        types, kind = arrow.types, column.type
        if types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if types.is_integer(kind) and column.null_count == 0:
            whole = column.to_numpy(zero_copy_only=False)
            return whole.astype(np.int64) if whole.max(initial=0) < 2**63 else whole.astype(float)
        if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
            return np.asarray(
                column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            )
        if types.is_decimal(kind):
            return np.asarray(column.cast(arrow.float64()).to_numpy(zero_copy_only=False))
        if types.is_null(kind):
            return np.full(len(column), np.nan)
        if types.is_string(kind) or types.is_large_string(kind):
            return column.to_numpy(zero_copy_only=False).astype(object)
        if types.is_date(kind) or types.is_timestamp(kind):
            moments = column.cast(arrow.timestamp("us"), safe=False).to_pylist()
            cells = np.empty(len(moments), dtype=object)
            cells[:] = [
                None if one is None else one.isoformat(" ").removesuffix(" 00:00:00")
                for one in moments
            ]
            return cells
        raise FileError(
            f"{self.path}: column {name!r} holds {kind}, not numbers or text: drop it or convert it"
        )


def _size(source: Source, opened: Any) -> tuple[list[str], int]:
    if source.format == "feather":
        _, feather = _frames.feather("reading Feather")
        claim(source.path, 4.0 * source.stored, f"{source.stored:,} bytes", "write it as Parquet")
        table = feather.read_table(opened, use_threads=False, memory_map=False)
        return list(table.schema.names), table.num_rows
    _, parquet = _frames.parquet("reading Parquet")
    file = parquet.ParquetFile(opened)
    return list(file.schema_arrow.names), file.metadata.num_rows


def parquet_frame(source: Source) -> ParquetFrame:
    """The names and the number of rows, from the end of the file."""
    with parsing(source.path, source.format), open(source.path, "rb") as opened:
        names, rows = _size(source, opened)
    kept = [name for name in names if not INDEX.fullmatch(name)]
    if not kept or rows < 1:
        raise FileError(
            f"{source.path} has {rows:,} rows and the columns {listed(kept) or 'none'}: is it the "
            "right file?"
        )
    if unique_names(source.path, kept) != kept:
        raise FileError(f"{source.path} has a column with an empty name: name it")
    return ParquetFrame(source, kept, rows)
