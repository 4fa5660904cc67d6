"""What the pages share: tables to keep, numbers of samples, places in a square."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.files._formulas import escaped
from gramian.plotting import flat

Array = NDArray[np.floating]


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A table as CSV, without cells that a spreadsheet takes for formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(escaped, row) for row in rows)
    return text.getvalue().encode()


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
