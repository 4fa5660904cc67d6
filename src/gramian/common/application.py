"""What the library asks of the application, which it never imports.

The package registers the functions here when it is imported; they import the application when they
are called.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_functions: dict[str, Callable[..., Any]] = {}


def register(**functions: Callable[..., Any]) -> None:
    """Set the functions that `report` and `save` call."""
    _functions.update(functions)


def report(thing: Any, path: str | Path, X: Any = None, y: Any = None) -> Path:
    """Write the HTML page of a result or an estimator; returns its path."""
    return _functions["report"](thing, path, X, y)


def save(estimator: Any, path: str | Path) -> None:
    """Save a fitted estimator to a file."""
    _functions["save"](estimator, path)
