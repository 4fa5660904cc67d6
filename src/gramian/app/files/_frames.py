"""The optional libraries that read and write columns."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(name: str, what: str, extra: str = "cli") -> Any:
    """An optional library, or an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        needed = name.split(".")[0]
        raise ImportError(f"{what} needs {needed}: pip install 'gramian[{extra}]'") from None
