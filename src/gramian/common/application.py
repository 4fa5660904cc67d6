"""Access to the report writer from lower layers.

Results and estimators do not import `report`, which depends on all of them. The package registers
the report writer here when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_writers: list[Callable[..., Path]] = []


def written_by(writer: Callable[..., Path]) -> None:
    """Register the function that writes all pages."""
    _writers[:] = [writer]


def write(thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
    """Write the page of an object; returns its path."""
    return _writers[0](thing, path, X, y)
