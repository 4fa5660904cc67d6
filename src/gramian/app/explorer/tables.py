"""The common part of the pages: downloads, sample numbers, cards and positions of samples."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.app.files._columns import escaped
from gramian.app.report.parts import in_words, percent
from gramian.app.report.thumbnails import are_images, sheet_of
from gramian.common import clock
from gramian.common.types import Array
from gramian.estimators.plotting import flat, turned_to


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """A table as CSV, with formulas escaped."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(escaped, row) for row in rows)
    return text.getvalue().encode()


START = 10.0
"""Default time limit of the start of a page, in seconds."""

CARD_COLUMNS = 8
"""Columns of a sample on its card."""


@contextmanager
def fitting_within(seconds: float, what: str) -> Iterator[None]:
    """Fit with a time limit. Warnings are suppressed: the certificate states how the fit ended.

    Raises
    ------
    TimeoutError
        If there is no model within the limit.
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


def checked_names(names: Sequence[Any] | None, size: int) -> list[str] | None:
    """The names of samples, one for each."""
    if names is None:
        return None
    called = [str(name) for name in names]
    if len(called) != size:
        raise ValueError(f"names has {len(called)} entries for {size} samples: pass one for each")
    return called


def sample_number(k: Any, size: int, what: str = "sample") -> int:
    """The validated number of a sample or an item from a request."""
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < size:
        raise ValueError(f"there is no {what} {k!r}: they are 0 to {size - 1}")
    return k


def sample_numbers(rows: Any, size: int) -> list[int]:
    """The validated numbers of several samples from a request, without duplicates."""
    if not isinstance(rows, list):
        raise ValueError("rows must be a list of sample numbers")
    return list(dict.fromkeys(sample_number(k, size) for k in rows))


def card(samples: Any, i: int) -> dict[str, Any]:
    """The columns of a sample, for the card that a page shows under the pointer.

    A sparse row shows its largest entries, and one of several images, of shape (n_samples, height,
    width), shows itself.
    """
    if are_images(samples):
        return {"image": sheet_of(samples[[i]]).address}
    names = getattr(samples, "columns", None)
    if sp.issparse(samples):
        row = sp.csr_array(samples[[i]])
        places = row.indices[np.argsort(-np.abs(row.data), kind="stable")]
        values = row.toarray().ravel()
    else:
        values = samples.iloc[i].to_numpy() if names is not None else np.asarray(samples[i]).ravel()
        places = np.arange(len(values))
    shown = [[str(names[k]) if names is not None else f"x{k}", _cell(values[k])]
             for k in places[:CARD_COLUMNS]]  # fmt: skip
    return {"columns": shown, "more": max(0, len(places) - CARD_COLUMNS)}


def _cell(value: Any) -> str:
    number = isinstance(value, (float, np.floating))
    return ("" if value != value else f"{value:.4g}") if number else str(value)


def unit_square(places: Array) -> Array:
    """Positions scaled to a square of side 2 around 0, by the same factor in both directions."""
    places = flat(np.asarray(places, dtype=float))
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    half = float(np.ptp(places, axis=0).max()) / 2 or 1.0
    return (places - middle) / half


def next_view(places: Array, before: Array) -> Array:
    """Positions in the unit square, rotated and reflected to be close to the previous ones."""
    return unit_square(turned_to(places, before))


def proof(fitted: Any, otherwise: str) -> dict[str, str]:
    """The certificate of a model, short and in full; `otherwise` if there is no model."""
    if fitted is None:
        return {"proof": "", "certificate": otherwise}
    found = fitted.certificate_
    gap = "no bound" if found.gap is None else f"optimal within {percent(found.relative_gap or 0)}"
    return {"proof": gap, "certificate": in_words(found)}
