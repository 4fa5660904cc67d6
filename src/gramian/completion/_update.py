"""Entries, rows and columns that come after the fit: what they touch is fitted again."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.completion._fold_in import Folding
from gramian.completion._ratings import Ratings, gather, joined

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ROUNDS = 2
"""How often rows and columns with new entries are fitted in turn."""


class Updating(Folding):
    """`update` by turns of small least-squares problems, all other rows and columns held."""

    _expected: Any
    """Where factors of rows and of columns are expected by their features; None without any."""
    bounds_: tuple[float, float] | None
    row_ids_: NDArray[Any]
    _rows: Any

    def update(self, X: Any) -> Any:
        """Take in new entries, of rows and columns that are new or known, without another fit.

        Factors and offsets of the rows and columns with new entries are fitted again in turn, by
        all their entries, new and old; all others, λ and the mean stay as they are. It costs as
        much as those rows and columns have entries, and a copy of what is known. `result_` and
        `certificate_` are still those of the last fit, which this is not.

        Parameters
        ----------
        X : as in `fit`
            An entry that is known already has the new value from then on.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        new = gather(self._named(X, 3), duplicates=self.duplicates)
        rows, cols = self._grown(new)
        fresh = np.flatnonzero(~np.any(self.col_factors_, axis=1))
        self._refit_columns(np.intersect1d(cols, fresh))
        for _ in range(ROUNDS):
            self._refit_rows(rows)
            self._refit_columns(cols)
        if self.bounds_ is not None and getattr(self, "bounds", None) == "auto":
            low, high = self.bounds_
            self.bounds_ = min(low, float(new.values.min())), max(high, float(new.values.max()))
        return self

    def _refit_rows(self, rows: Indices) -> None:
        if rows.size:
            mean = self._known.nnz / self._known.shape[0]
            expected = self._drawn_to(0, rows)
            P, b = self._fitted(
                self._known[rows], mean, self.col_factors_, self.col_biases_, expected
            )
            self.row_factors_[rows], self.row_biases_[rows] = P, b

    def _refit_columns(self, cols: Indices) -> None:
        if cols.size:
            mean = self._known.nnz / self._known.shape[1]
            R = sp.csr_array(self._known[:, cols].T)
            expected = self._drawn_to(1, cols)
            Q, c = self._fitted(R, mean, self.row_factors_, self.row_biases_, expected)
            self.col_factors_[cols], self.col_biases_[cols] = Q, c

    def _drawn_to(self, side: int, places: Indices) -> Array | None:
        """Where the factors of some rows, or columns, are expected by their features."""
        expected = vars(self).get("_expected")  # models of old do not have it
        return None if expected is None else expected[side][places]

    def _grown(self, new: Ratings) -> tuple[Indices, Indices]:
        """Make room for the new entries; gives the places of their rows and columns."""
        (self._rows, old_rows, rows), (self._cols, old_cols, cols) = (
            joined(known, of_new)
            for known, of_new in ((self._rows, new.row_ids), (self._cols, new.col_ids))
        )
        m, n = len(self._rows), len(self._cols)
        self.row_ids_, self.col_ids_ = self._rows.names, self._cols.names
        self.row_factors_, self.row_biases_ = (
            _spread(part, old_rows, m) for part in (self.row_factors_, self.row_biases_)
        )
        self.col_factors_, self.col_biases_ = (
            _spread(part, old_cols, n) for part in (self.col_factors_, self.col_biases_)
        )
        if vars(self).get("_expected") is not None:
            rows_of, cols_of = self._expected
            self._expected = _spread(rows_of, old_rows, m), _spread(cols_of, old_cols, n)
        old, known = self._known, np.repeat(old_rows, np.diff(self._known.indptr))
        keys = known.astype(np.int64) * n + old_cols[old.indices]
        more = rows[new.rows].astype(np.int64) * n + cols[new.cols]
        self._known = _merged(keys, old.data, more, new.values, (m, n))
        return np.unique(rows), np.unique(cols)


def _spread(part: Array, places: Indices, size: int) -> Array:
    """Rows at their places among others, which are 0."""
    out: Array = np.zeros((size, *part.shape[1:]))
    out[places] = part
    return out


def _merged(
    keys: Indices, values: Array, more: Indices, new: Array, shape: tuple[int, int]
) -> sp.csr_array:
    """Entries by their sorted keys row·n + column, and more of them, which count where both do."""
    place = np.searchsorted(keys, more)
    there = keys[np.minimum(place, keys.size - 1)] == more
    values = values.copy()
    values[place[there]] = new[there]
    order = np.argsort(more[~there], kind="stable")
    keys = np.insert(keys, place[~there][order], more[~there][order])
    values = np.insert(values, place[~there][order], new[~there][order])
    rows, cols = np.divmod(keys, shape[1])
    starts = np.searchsorted(rows, np.arange(shape[0] + 1))
    return sp.csr_array((values, cols.astype(np.int32), starts), shape=shape)
