"""Rows, columns and entries that come after the fit, by small least-squares problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import cpu
from gramian.common.parameters import whole_number
from gramian.common.types import Array, Indices
from gramian.completion._ratings import Ratings, joined, other_kind
from gramian.completion._reading import by_row_and_column, gather, has_own_ids, read
from gramian.completion._recommender import Factorization, Offsets, Recommender
from gramian.linalg import conjugate_gradient

UPDATE_SWEEPS = 2
"""Number of times that rows and columns with new entries are fitted in turn."""


class Updating(Recommender):
    """Completions with `transform`, `complete`, `recommend_new` and `update`.

    Rows are fitted to the factors of the columns, and vice versa. `_squares` is the loss of entries
    as squares.
    """

    lam_: float
    biases: bool
    bias_ridge: Any
    weight_power: float
    duplicates: str

    everywhere = 0.0
    """The weight of the squares of all entries, known or not."""

    def _squares(self, values: Array) -> tuple[Array | None, Array]:
        """ω and l of ½ ω_e u_e² − l_e u_e for entries u_e less mean and offsets; None is ω = 1."""
        return None, values

    def complete(self, X: Any) -> Array:
        """Predict all entries of rows, which may be new: fitted as by `transform`.

        Parameters
        ----------
        X : as in `transform`
        """
        check_is_fitted(self)
        found = self._folded(self._known_part(X)[1])
        return found.cut(found.entries(slice(None)))

    def transform(self, X: Any) -> Array:
        """The factors of rows, which may be new, for the columns of the fit.

        Parameters
        ----------
        X : as in `fit`; a matrix has the columns of the fit, and triples of unknown columns are
            left out. The rows are in the order of the matrix, or of their sorted ids.
        """
        check_is_fitted(self)
        return self._rows_of(self._known_part(X)[1])[0]

    def recommend_new(
        self, X: Any, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any], Array]:
        """The columns of the largest predicted entries of rows that were not in the fit.

        Parameters
        ----------
        X : as in `transform`
        n, exclude_seen :
            As in `recommend`.

        Returns
        -------
        rows, columns, values
            The rows in the order of `transform`, and the results of `recommend` for several rows.
        """
        check_is_fitted(self)
        names, R = self._known_part(X)
        found = self._folded(R)
        best, values = found.best(slice(None), whole_number(n, "n"), R if exclude_seen else None)
        return names, self.col_ids_[best], found.cut(values)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Complete the matrix and return the factors of its rows."""
        fitted: Any = self
        return fitted.fit(X).transform(X)

    def _folded(self, R: sp.csr_array) -> Factorization:
        """The matrix of rows with these entries."""
        P, b = self._rows_of(R)
        offsets = Offsets(self.mean_, b, self.col_biases_)
        return Factorization(P, self.col_factors_, offsets, self.bounds_, self._blend(R))

    def _rows_of(self, R: sp.csr_array) -> tuple[Array, Array]:
        """Factors and offsets of rows that a fit with fixed columns would give them."""
        mean = max(float(np.mean(np.diff(self._known.indptr))), 1e-300)
        return self._fitted(R, mean, self.col_factors_, self.col_biases_)

    def _fitted(
        self, R: sp.csr_array, mean: float, Q: Array, c: Array, expected: Array | None = None
    ) -> tuple[Array, Array]:
        """Factors and offsets of the rows of R for those of its columns.

        `mean` is the mean number of entries of such rows, the unit of the penalty; the rows are
        regularized towards the factors `expected`, default 0.
        """
        scale = (np.maximum(np.diff(R.indptr), 1) / mean) ** self.weight_power
        both = np.column_stack([Q, np.full(Q.shape[0], float(self.biases))])
        penalty = np.repeat((self.lam_ * scale)[:, None], both.shape[1], axis=1)
        penalty[:, -1] = getattr(self, "bias_ridge_", self.bias_ridge)  # not in older model files
        gram = self.everywhere * (both.T @ both) if self.everywhere else None
        values = R.data - self.mean_ - c[R.indices]
        if expected is not None:
            rows = np.repeat(np.arange(R.shape[0], dtype=np.int32), np.diff(R.indptr))
            values -= cpu.gather_products(expected, Q, rows, cpu.index_array(R.indices))
        weights, linear = self._squares(values)
        right = sp.csr_array((linear, R.indices, R.indptr), shape=R.shape)
        found = ridge_rows(right, both, penalty, weights=weights, gram=gram)
        return found[:, :-1] if expected is None else found[:, :-1] + expected, found[:, -1]

    def _known_part(self, X: Any) -> tuple[NDArray[Any], sp.csr_array]:
        """The ids of rows, and a matrix of their entries in columns of the fit."""
        X = self._named(X, 3)
        ratings = read(self, X, reset=False)
        if has_own_ids(X):
            place = self._cols.find(ratings.col_ids.names)[ratings.cols]
            kept = place >= 0
            entries = (ratings.values[kept], (ratings.rows[kept], place[kept]))
            known = sp.csr_array(entries, shape=(ratings.shape[0], len(self.col_ids_)))
            return ratings.row_ids.names, known
        if ratings.shape[1] != len(self.col_ids_):
            raise ValueError(
                f"X has {ratings.shape[1]} columns, but the fit had {len(self.col_ids_)}"
            )
        return ratings.row_ids.names, ratings.matrix

    def update(self, X: Any) -> Any:
        """Add new entries, of rows and columns that are new or known, without another fit.

        Factors and offsets of the rows and columns with new entries are fitted again in turn, to
        all their entries, new and old; all others, λ and the mean do not change. The cost is
        proportional to the number of entries of those rows and columns, plus a copy of the known
        entries. `result_` and `certificate_` remain those of the last fit.

        Parameters
        ----------
        X : as in `fit`
            New values of known entries replace the old ones.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        new = gather(self._named(X, 3), duplicates=self.duplicates)
        for known, given in ((self._rows, new.row_ids), (self._cols, new.col_ids)):
            if fault := other_kind(known.names, given.names):
                raise ValueError(f"ids of another kind than those of the fit: {fault}")
        rows, cols = self._grown(new)
        fresh = np.flatnonzero(~np.any(self.col_factors_, axis=1))
        self._refit(1, np.intersect1d(cols, fresh))
        for _ in range(UPDATE_SWEEPS):
            self._refit(0, rows)
            self._refit(1, cols)
        if self.bounds_ is not None and getattr(self, "bounds", None) == "auto":
            low, high = self.bounds_
            self.bounds_ = min(low, float(new.values.min())), max(high, float(new.values.max()))
        return self

    def _refit(self, side: int, places: Indices) -> None:
        """Fit some rows (side 0) or columns (side 1) to the factors of the others, in place."""
        if not places.size:
            return
        own, other = (
            (self.row_factors_, self.row_biases_),
            (self.col_factors_, self.col_biases_),
        )[:: 1 - 2 * side]
        R = self._known[places] if side == 0 else sp.csr_array(self._known[:, places].T)
        mean = self._known.nnz / self._known.shape[side]
        expected = vars(self).get("_expected")  # not in older model files
        if expected is not None:
            expected = expected[side][places]
        own[0][places], own[1][places] = self._fitted(R, mean, *other, expected)

    def _grown(self, new: Ratings) -> tuple[Indices, Indices]:
        """Add the new entries; the indices of their rows and columns."""
        (self._rows, old_rows, rows), (self._cols, old_cols, cols) = (
            joined(known, of_new)
            for known, of_new in ((self._rows, new.row_ids), (self._cols, new.col_ids))
        )
        self.row_ids_, self.col_ids_ = self._rows.names, self._cols.names
        self.row_factors_, self.row_biases_ = (
            _spread(part, old_rows, len(self._rows))
            for part in (self.row_factors_, self.row_biases_)
        )
        self.col_factors_, self.col_biases_ = (
            _spread(part, old_cols, len(self._cols))
            for part in (self.col_factors_, self.col_biases_)
        )
        if vars(self).get("_expected") is not None:
            self._expected = (
                _spread(self._expected[0], old_rows, len(self._rows)),
                _spread(self._expected[1], old_cols, len(self._cols)),
            )
        self._move_columns(old_cols)
        old = self._known
        i = np.concatenate([np.repeat(old_rows, np.diff(old.indptr)), rows[new.rows]])
        j = np.concatenate([old_cols[old.indices], cols[new.cols]])
        values = np.concatenate([old.data, new.values])
        self._known = by_row_and_column(i, j, values, self._rows, self._cols, "last").matrix
        return np.unique(rows), np.unique(cols)

    def _move_columns(self, places: Indices) -> None:
        """Renumber what else is fitted to the columns: column j is now `places[j]`."""


def ridge_rows(
    R: sp.csr_array,
    Q: Array,
    penalty: Array,
    *,
    weights: Array | None = None,
    gram: Array | None = None,
) -> Array:
    """P with rows that minimise ½ Σ_j (p·q_j − R_ij)² + ½ Σ_k penalty_ik p_ik² over the known j.

    With weights ω the sum is of ½ ω_ij (p·q_j)² − R_ij p·q_j, and a Gram matrix G adds ½ pᵀGp.
    Conjugate gradients for all rows at once, each with its own step lengths: two sparse products
    with the pattern of R in each step, and no matrix for a row, to the relative residual 1e-12. In
    exact arithmetic they end after as many steps as Q has columns; ten times as many are allowed.
    """
    rows = cpu.index_array(np.repeat(np.arange(R.shape[0]), np.diff(R.indptr)))
    cols, Q = cpu.index_array(R.indices), np.ascontiguousarray(Q, dtype=float)

    def product(P: Array) -> Array:
        z = cpu.gather_products(P, Q, rows, cols)
        z = z if weights is None else weights * z
        bent = cpu.sparse_product(sp.csr_array((z, R.indices, R.indptr), shape=R.shape), Q)
        bent = bent + penalty * P
        return bent if gram is None else bent + P @ gram

    right = np.asarray(R @ Q)
    steps = 10 * Q.shape[1]
    return conjugate_gradient(product, right, steps=steps, tol=1e-12, axis=1).x


def _spread(part: Array, places: Indices, size: int) -> Array:
    """An array of `size` rows, those given at their indices, and 0 in the others."""
    out: Array = np.zeros((size, *part.shape[1:]))
    out[places] = part
    return out
