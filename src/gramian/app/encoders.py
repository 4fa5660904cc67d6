"""Encode dates as numbers in pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.app.dates import days, first_number
from gramian.common.storage import storable


@storable
class DateEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Encode dates as days since 1970.

    A date may be written as 2024-05-31, 2024/5/31, 31.5.2024, 5/31/2024, 5/31/24, 31 May 2024,
    31-May-24, May 31, 2024, May 2024 or 2024-05, with a day of the week before it and a time after
    it. A month without a day is its first day; a time zone is ignored. In dates such as 5/31/2024
    either number may be the month: a number above 12 in the column decides, and a column without
    one is rejected. Empty and missing cells become NaN.

    Attributes
    ----------
    first_ : list of str
        For every column, what the first number of a date such as 5/31/2024 is: "day", "month", or
        "open" if there is no such date.
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
        """Determine the order of days and months."""
        names = getattr(X, "columns", None)
        if names is not None:
            self.feature_names_in_ = np.asarray([str(name) for name in names], dtype=object)
        self.n_features_in_ = np.asarray(X, dtype=object).shape[1]
        columns = np.asarray(X, dtype=object).T
        self.first_ = list(map(first_number, columns, _called(X, len(columns))))
        self._numbers(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The days since 1970 of every date."""
        check_is_fitted(self)
        return self._numbers(X)

    def _numbers(self, X: Any) -> NDArray[np.float64]:
        columns = np.asarray(X, dtype=object).T
        read = []
        for cells, first, name in zip(columns, self.first_, _called(X, len(columns)), strict=True):
            try:
                read.append([days(cell, first) for cell in cells])
            except ValueError as reason:
                raise ValueError(f"{name}: {reason}") from None
        return np.array(read).T

    def _to_store(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_store(cls, state: dict[str, Any]) -> DateEncoder:
        made = cls()
        for name in ("n_features_in_", "feature_names_in_", "first_"):
            if name in state:
                setattr(made, name, state[name])
        return made


def _called(X: Any, size: int) -> list[str]:
    """The names of columns in messages."""
    names = getattr(X, "columns", None)
    return [f"column {k}" for k in range(size)] if names is None else list(map(repr, names))
