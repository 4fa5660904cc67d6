"""The optional libraries that read columns: pandas for CSV, pyarrow for Parquet and Feather,
openpyxl for Excel.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def pandas(what: str) -> Any:
    """The library, or a sentence on how to get it."""
    return _library("pandas", what)


def parquet(what: str) -> tuple[Any, Any]:
    """pyarrow and its Parquet part, or a sentence on how to get them."""
    return _library("pyarrow", what), _library("pyarrow.parquet", what)


def excel(what: str) -> Any:
    """openpyxl, or a sentence on how to get it."""
    return _library("openpyxl", what, "excel")


def feather(what: str) -> tuple[Any, Any]:
    """pyarrow and its IPC part, or a sentence on how to get them."""
    return _library("pyarrow", what), _library("pyarrow.feather", what)


def exact_floats(library: Any) -> dict[str, str]:
    """What makes pandas read each decimal as the nearest number; newer ones always do."""
    version = tuple(int(part) for part in library.__version__.split(".")[:2] if part.isdigit())
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


def _library(name: str, what: str, extra: str = "cli") -> Any:
    try:
        return import_module(name)
    except ImportError:
        needed = name.split(".")[0]
        raise ImportError(f"{what} needs {needed}: pip install 'gramian[{extra}]'") from None
