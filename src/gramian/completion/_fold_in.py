"""Rows that come later: their factors for columns that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian.backends import cpu
from gramian.backends.errstate import OwnErrstate
from gramian.completion._frames import is_frame
from gramian.completion._ratings import gather
from gramian.linalg import conjugate_gradient
from gramian.parameters import whole_number

Array = NDArray[np.floating]

STEPS, ACCURACY = 300, 1e-12


class Folding(OwnErrstate):
    """`transform` and `complete` by the factors of the columns.

    A class with it says by `_squares` what the entries are as squares beside those factors.
    """

    lam_: float
    mean_: float
    biases: bool
    bias_ridge: float
    weight_power: float
    duplicates: str
    col_factors_: Array
    col_biases_: Array
    row_factors_: Array
    row_biases_: Array
    col_ids_: NDArray[Any]
    _cols: Any
    _known: Any
    _named: Any
    _cut: Any
    _ranked: Any

    everywhere = 0.0
    """The weight of the squares of all entries, known or not."""

    def _squares(self, values: Array) -> tuple[Array | None, Array]:
        """ω and l of ½ ω_e u_e² − l_e u_e for entries u_e beside mean and offsets; ω None for 1."""
        return None, values

    def complete(self, X: Any) -> Array:
        """All entries of rows, new ones too: folded in as by `transform`, known ones included.

        Parameters
        ----------
        X : as in `transform`
        """
        check_is_fitted(self)
        P, b = self._folded(X)
        entries = self.mean_ + b[:, None] + self.col_biases_ + P @ self.col_factors_.T
        found: Array = self._cut(entries)
        return found

    def transform(self, X: Any) -> Array:
        """The factors of rows, new ones too, for the columns of the fit.

        Parameters
        ----------
        X : as in `fit`; a matrix has the columns of the fit, and triples of unknown columns are
            left out. The rows come in the order of the matrix, or of their sorted ids.
        """
        check_is_fitted(self)
        return self._folded(X)[0]

    def recommend_new(
        self, X: Any, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any], Array]:
        """The columns of the largest entries of rows that were not in the fit, folded in.

        Parameters
        ----------
        X : as in `transform`
        n, exclude_seen :
            As in `recommend`.

        Returns
        -------
        rows, columns, values
            The rows in the order of `transform`, and what `recommend` gives for several of them.
        """
        check_is_fitted(self)
        names, R = self._known_part(X)
        best, values = self._ranked(
            *self._beside(R), R if exclude_seen else None, whole_number(n, "n")
        )
        return names, self.col_ids_[best], self._cut(values)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Complete the matrix; the factors of its rows."""
        fitted: Any = self
        found: Array = fitted.fit(X).transform(X)
        return found

    def _folded(self, X: Any) -> tuple[Array, Array]:
        """Factors and offsets of rows: what the fit would give them, the columns being known."""
        return self._beside(self._known_part(X)[1])

    def _beside(self, R: sp.csr_array) -> tuple[Array, Array]:
        mean = max(float(np.mean(np.diff(self._known.indptr))), 1e-300)
        return self._fitted(R, mean, self.col_factors_, self.col_biases_)

    def _fitted(
        self, R: sp.csr_array, mean: float, Q: Array, c: Array, expected: Array | None = None
    ) -> tuple[Array, Array]:
        """Factors and offsets of the rows of R beside those of its columns.

        `mean` is the mean number of entries of such rows, which the penalty is measured by;
        `expected` are factors that the rows are drawn to, 0 unless told.
        """
        scale = (np.maximum(np.diff(R.indptr), 1) / mean) ** self.weight_power
        both = np.column_stack([Q, np.full(Q.shape[0], float(self.biases))])
        penalty = np.repeat((self.lam_ * scale)[:, None], both.shape[1], axis=1)
        penalty[:, -1] = self.bias_ridge
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
        """Entries in columns of the fit, as a matrix of their own, and what its rows are called."""
        X = self._named(X, 3)
        if isinstance(X, tuple) or is_frame(X):
            ratings = gather(X, duplicates=self.duplicates)
            place = self._cols.find(ratings.col_ids.names)[ratings.cols]
            kept = place >= 0
            entries = (ratings.values[kept], (ratings.rows[kept], place[kept]))
            known = sp.csr_array(entries, shape=(ratings.shape[0], len(self.col_ids_)))
            return ratings.row_ids.names, known
        X = validate_data(
            self, X, accept_sparse=("csr", "coo"), dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan", reset=False,
        )  # fmt: skip
        if X.shape[1] != len(self.col_ids_):
            raise ValueError(f"X has {X.shape[1]} columns, but the fit had {len(self.col_ids_)}")
        return np.arange(X.shape[0]), gather(X, duplicates=self.duplicates).matrix


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
    Conjugate gradients for all rows at once, each with steps of its own: two sparse products with
    the pattern of R a step, and no matrix of a row.
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
    return conjugate_gradient(product, right, steps=STEPS, tol=ACCURACY, axis=1).x
