"""Dates as numbers, for pipelines: what scikit-learn has no encoder of."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.storage import storable

DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
ISO = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


@storable
class DateEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Dates written out, as days since 1970: 2024-05-31, with a time or without, and 31.5.2024.

    Slashes are refused: the month may be the first number or the second. What is empty or missing
    becomes NaN.

    Attributes
    ----------
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
            found[:, column] = [days(cell) for cell in cells[:, column]]
        return found

    def _to_store(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_store(cls, state: dict[str, Any]) -> DateEncoder:
        made = cls()
        for name in ("n_features_in_", "feature_names_in_"):
            if name in state:
                setattr(made, name, state[name])
        return made


def days(cell: Any) -> float:
    """The days since 1970 of a date; NaN where there is none."""
    if cell is None or cell == "" or cell != cell:
        return np.nan
    text = str(cell).strip()
    parts = DAY_FIRST.fullmatch(text)
    try:
        if parts is not None:
            day, month, year = (int(part) for part in parts.groups())
            when: date = date(year, month, day)
        elif ISO.fullmatch(text):
            when = date(*(int(part) for part in text.split("-")))
        else:
            moment = datetime.fromisoformat(text).replace(tzinfo=None)
            return (moment - datetime(1970, 1, 1)).total_seconds() / 86400.0
    except ValueError:
        raise ValueError(f"{text!r} is no date: write it as 2024-05-31") from None
    return float((when - date(1970, 1, 1)).days)
