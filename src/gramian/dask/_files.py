"""Files of a cluster's data: a folder, a pattern or a list of Parquet and NPZ files."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from fsspec.core import has_magic, url_to_fs

ENDINGS = (".parquet", ".npz")


def is_files(given: Any) -> bool:
    """Whether the data are named: a folder, a pattern, or a list of files."""
    if isinstance(given, (str, Path)):
        return True
    return isinstance(given, (list, tuple)) and bool(given) and all(
        isinstance(part, (str, Path)) for part in given
    )  # fmt: skip


def files_of(given: Any) -> list[str]:
    """The Parquet and NPZ files of a folder, a pattern or a list, in the order of their names."""
    if not isinstance(given, (str, Path)):
        return [_known_ending(str(path)) for path in given]
    fs, path = url_to_fs(str(given))
    if fs.isdir(path):
        found = [p for ending in ENDINGS for p in fs.glob(f"{path.rstrip('/')}/*{ending}")]
    elif has_magic(path):
        found = fs.glob(path)
    else:
        found = [path] if fs.exists(path) else []
    if not found:
        raise ValueError(f"no Parquet or NPZ files are at {str(given)!r}: name a folder, a pattern "
                         "such as 'part-*.parquet', or a list of files")  # fmt: skip
    return [_known_ending(str(fs.unstrip_protocol(p))) for p in sorted(found)]


def _known_ending(path: str) -> str:
    if not path.endswith(ENDINGS):
        raise ValueError(f"{path} is neither a .parquet nor a .npz file, which are read here")
    return path


def read(path: str) -> Any:
    """A Parquet file as a frame, an NPZ file as a dict of arrays or as a sparse matrix."""
    with open_file(path) as file:
        try:
            return _parquet(file) if path.endswith(".parquet") else _npz(file)
        except (ValueError, KeyError, EOFError, BadZipFile) as reason:
            raise ValueError(f"{path} cannot be read: {reason}") from reason


def _parquet(file: Any) -> pd.DataFrame:
    """What the columns were decoded in is given back: a worker's limit counts it."""
    frame = pd.read_parquet(file)
    pa.default_memory_pool().release_unused()
    return frame


def _npz(file: Any) -> Any:
    stored = np.load(file, allow_pickle=False)
    if "format" not in stored.files:
        return {name: stored[name] for name in stored.files}
    file.seek(0)
    return sp.csr_array(sp.load_npz(file))  # whatever format it was saved in


def open_file(path: str) -> Any:
    """A file to read, wherever it is."""
    return fsspec.open(path, "rb")
