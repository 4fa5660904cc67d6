"""The page of a result or an estimator, asked for from below.

What is shown knows nothing of how it is shown: `report` stands above every estimator. The package
itself, which is imported before any part of it, says here who writes pages.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_writers: list[Callable[..., Path]] = []


def written_by(writer: Callable[..., Path]) -> None:
    """Let `writer` write all pages from now on."""
    _writers[:] = [writer]


def write(thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
    """Write the page of a thing; returns where."""
    return _writers[0](thing, path, X, y)
