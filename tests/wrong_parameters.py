"""A check of the errors for wrong values of constructor parameters."""

import warnings
from collections.abc import Iterable
from typing import Any

import pytest

NEED_TORCH = {"device"}
"""Parameters that the tables of wrong values leave out."""


def check_error_names(kind: Any, name: str, values: Iterable[Any], X: Any, y: Any) -> None:
    """Each value of a parameter is rejected by an error that contains the parameter's name."""
    for value in values:
        with warnings.catch_warnings(), pytest.raises((ValueError, TypeError)) as caught:
            warnings.simplefilter("ignore")
            kind(**{name: value}).fit(X, y)
        assert name in str(caught.value), value
