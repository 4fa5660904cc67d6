"""Dates as numbers, for pipelines: what scikit-learn has no encoder of."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.common.storage import storable

DOTS = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(.+))?")
SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(?:[ T]+(.+))?")
NAMED = re.compile(r"(\d{1,2})([- ])([A-Za-z]{3})[a-z]*\.?\2(\d{4}|\d\d)")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
THIS_CENTURY = 69
"""Years of two digits below this are of 2000 and after, as POSIX has it."""

ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:\s*([AaPp])\.?[Mm]\.?)?")
DAY, MONTH, OPEN = "day", "month", "open"
"""Which number of a date with slashes is the first; open where no date told."""


@storable
class DateEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Dates written out, as days since 1970: 2024-05-31, 31.5.2024, 5/31/2024; a time may follow.

    A month may be an English word, 31-May-2024 or 31 May 24, without a time. Of dates with slashes
    the month may be the first number or the second: one beyond 12 in the column tells, and a column
    where none does is refused. What is empty or missing becomes NaN.

    Attributes
    ----------
    first_ : list of str
        For every column, what the first number of a date with slashes is: "day", "month", or "open"
        where there is none.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    Examples
    --------
    >>> import pandas as pd
    >>> from gramian.encoders import DateEncoder
    >>> DateEncoder().fit_transform(pd.DataFrame({"when": ["1970-01-03", "31.1.1970"]})).tolist()
    [[2.0], [30.0]]
    """

    def fit(self, X: Any, y: Any = None) -> DateEncoder:
        """Look at the dates."""
        names = getattr(X, "columns", None)
        if names is not None:
            self.feature_names_in_ = np.asarray([str(name) for name in names], dtype=object)
        self.n_features_in_ = np.asarray(X, dtype=object).shape[1]
        self.first_ = [first_number(column) for column in np.asarray(X, dtype=object).T]
        self._numbers(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The days since 1970 of every date."""
        check_is_fitted(self)
        return self._numbers(X)

    def _numbers(self, X: Any) -> NDArray[np.float64]:
        cells = np.asarray(X, dtype=object)
        found = np.empty(cells.shape)
        for column in range(cells.shape[1]):
            first = self.first_[column]
            found[:, column] = [days(cell, first) for cell in cells[:, column]]
        return found

    def _to_store(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_store(cls, state: dict[str, Any]) -> DateEncoder:
        made = cls()
        for name in ("n_features_in_", "feature_names_in_", "first_"):
            if name in state:
                setattr(made, name, state[name])
        return made


def first_number(cells: Any) -> str:
    """What the first number of the dates with slashes in a column is."""
    found = [SLASHES.fullmatch(str(cell).strip()) for cell in cells]
    pairs = [(int(date[1]), int(date[2])) for date in found if date is not None]
    days_first = any(one > 12 for one, _ in pairs)
    if pairs and days_first == any(other > 12 for _, other in pairs):
        told = "both ways" if days_first else "either way"
        raise ValueError(
            f"dates like {pairs[0][0]}/{pairs[0][1]}/… can be read {told}, day or month first: "
            "write them as 2024-05-31"
        )
    return OPEN if not pairs else DAY if days_first else MONTH


def days(cell: Any, first: str = OPEN) -> float:
    """The days since 1970 of a date; NaN where there is none."""
    if cell is None or cell == "" or cell != cell:
        return np.nan
    text = str(cell).strip()
    dots, slashes, named = (form.fullmatch(text) for form in (DOTS, SLASHES, NAMED))
    try:
        if named is not None:
            month = MONTHS.index(named[3].lower()) + 1
            return _moment(_whole_year(named[4]), str(month), named[1])
        if dots is not None:
            return _moment(dots[3], dots[2], dots[1], dots[4])
        if slashes is not None and first != OPEN:
            day, middle = (1, 2) if first == DAY else (2, 1)
            return _moment(slashes[3], slashes[middle], slashes[day], slashes[4])
        if ISO.fullmatch(text):
            return _moment(*text.split("-"))
        moment = datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        raise ValueError(f"{text!r} is no date: write it as 2024-05-31") from None
    return (moment - datetime(1970, 1, 1)).total_seconds() / 86400.0


def _whole_year(digits: str) -> str:
    """A year of four digits."""
    if len(digits) == 4:
        return digits
    return str((2000 if int(digits) < THIS_CENTURY else 1900) + int(digits))


def _moment(year: str, month: str, day: str, clock: str | None = None) -> float:
    whole = float((date(int(year), int(month), int(day)) - date(1970, 1, 1)).days)
    if clock is None:
        return whole
    parts = CLOCK.fullmatch(clock.strip())
    if parts is None:
        raise ValueError(clock)
    hour = int(parts[1])
    if parts[4] is not None:
        hour = hour % 12 + (12 if parts[4] in "Pp" else 0)
    minute, second = int(parts[2]), int(parts[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(clock)
    return whole + (hour * 3600 + minute * 60 + second) / 86400.0
