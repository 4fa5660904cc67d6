"""What the pages share: tables to keep, numbers of samples, places in a square."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.app.files._formulas import escaped
from gramian.common import clock
from gramian.estimators.plotting import flat

Array = NDArray[np.floating]


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A table as CSV, without cells that a spreadsheet takes for formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(escaped, row) for row in rows)
    return text.getvalue().encode()


START = 10.0
"""Seconds that the start of a page may take, unless told otherwise."""


@contextmanager
def fitting_within(seconds: float, what: str) -> Iterator[None]:
    """Fit with a limit. Warnings are left out: the certificate says how the fit ended.

    Raises
    ------
    TimeoutError
        Where the limit ends before there is a model.
    """
    with warnings.catch_warnings(), clock.budget(seconds) as budget:
        warnings.simplefilter("ignore")
        try:
            yield
        except clock.TimeUpError:
            if budget.interrupted:
                raise KeyboardInterrupt from None
            raise TimeoutError(
                f"{what} was not ready within {seconds:g} s, and nothing has changed: allow more "
                "time, or use fewer samples"
            ) from None


def check_version(seen: Any, version: int) -> None:
    """Refuse to undo a change that the page has not shown."""
    if isinstance(seen, bool) or seen != version:
        raise ValueError(
            "another page has made a change since: look at what it is, then undo it if you like"
        )


def checked_names(names: Sequence[Any] | None, size: int) -> list[str] | None:
    """What samples are called, one name for each."""
    if names is None:
        return None
    called = [str(name) for name in names]
    if len(called) != size:
        raise ValueError(f"names has {len(called)} entries for {size} samples: pass one for each")
    return called


def sample_number(k: Any, size: int) -> int:
    """The number of a sample, as it comes from a page."""
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < size:
        raise ValueError(f"there is no sample {k!r}: they are 0 to {size - 1}")
    return k


def unit_square(places: Array) -> Array:
    """Places in a square of side 2 about 0, both directions alike."""
    places = flat(np.asarray(places, dtype=float))
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    half = float(np.ptp(places, axis=0).max()) / 2 or 1.0
    unit: Array = (places - middle) / half
    return unit
