"""Read and write tables, pairs, ratings and matrices; no file can run code.

CSV, TSV, JSON lines and ARFF, Excel, Parquet and Feather, NPZ and NPY, SVMlight and Matrix Market;
the text formats may be gzipped.
"""

from gramian.app.files._columns import Header
from gramian.app.files._describe import describe
from gramian.app.files._errors import FileError, TextColumnsError
from gramian.app.files._pairs import read_pairs
from gramian.app.files._ratings import read_ratings
from gramian.app.files._source import ReadOptions
from gramian.app.files._tables import (
    Table,
    looks_like,
    place_of,
    read_column,
    read_header,
    read_matrix,
    read_table,
)
from gramian.app.files._write import write_table

__all__ = [
    "FileError",
    "Header",
    "ReadOptions",
    "Table",
    "TextColumnsError",
    "describe",
    "looks_like",
    "place_of",
    "read_column",
    "read_header",
    "read_matrix",
    "read_pairs",
    "read_ratings",
    "read_table",
    "write_table",
]
