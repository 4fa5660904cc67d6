"""Completion of a matrix of ratings by the nuclear norm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.arrays.places import host, moved, place
from gramian.arrays.samples import check_size, real_numbers
from gramian.common.parameters import ABOVE_ZERO, Rule, or_auto
from gramian.common.types import Array
from gramian.completion._base import Completion
from gramian.completion._fold_in import Updating
from gramian.completion._ratings import Ratings
from gramian.completion._reading import Scaling, with_features
from gramian.completion._recommender import Factorization, Offsets
from gramian.completion._selection import Solved
from gramian.estimators.parameters import with_parameters
from gramian.methods.room import place_for
from gramian.problem import Problem
from gramian.problems.completion import nuclear_completion

LAM_PER_NOISE = 0.72
"""The guess of λ in units of σ(√ratings per row + √ratings per column), σ the size of the noise."""


def _of_any_call(method: Any) -> Any:
    """For type checkers only: `fit` of the same estimator on a cluster has fewer arguments."""
    return method


@with_parameters
class NuclearCompletion(Updating, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Completion):
    """Predict the missing entries of a matrix from the known ones.

    Solves min ½ Σ (U_ij + b_i + c_j + μ − R_ij)² + λ‖A^½UB^½‖_* + κ/2 (‖b‖² + ‖c‖²) over all
    matrices U and offsets b, c (BiS §IV-B; the weighted trace norm). The sum is over the known
    entries, μ is their mean, and A and B are powers of the numbers of entries in each row and
    column. The problem is convex, its solution has low rank, and it is solved as M ⪰ 0 of order
    m + n through its factor [P; Q].

    With features X of the rows and Y of the columns, U = (V + XΦ)(W + YΨ)ᵀ and
    λ/2 (‖A^½V‖² + ‖Φ‖² + ‖B^½W‖² + ‖Ψ‖²) replaces the norm: the norm of an operator on rows and
    features together (Abernethy, Bach, Evgeniou and Vert 2009), which is convex as well.

    Parameters
    ----------
    lam : float or "auto"
        λ. "auto" holds out a tenth of the entries, solves for a decreasing sequence of λ with warm
        starts, and takes the λ with the least held-out error. With fewer than 20,000 entries the
        error is the mean over several such splits.
    biases : bool
        Whether the model has offsets b and c and the mean.
    bias_ridge : float or "auto"
        κ: offsets shrink as if each row and column had κ more entries equal to the mean. "auto" is
        the variance of entries given their offsets in units of that of offsets, between 1 and 5.
    weight_power : float
        α of A = diag((count/mean count)^α), and B likewise: 0 is the plain nuclear norm.
    rank : int, optional
        The largest rank of U; the certificate includes the cost of this limit. With tol="auto" the
        default is at most 223, and at most 95 above 5 million entries.
    bounds : (float, float), "auto" or None
        Predictions are clipped to these bounds; "auto" is the least and largest known entry.
    feature_weight : float
        The sum of squares of the standardized features of a row, on average: the larger, the more
        of its factors the features explain.
    duplicates : {"error", "mean", "sum", "last"}
        How repeated entries are treated. "sum" is for counts. With `sample_weight`, the mean is
        weighted and has the sum of the weights; a sum has their mean.
    tol : "auto" or float
        The stopping criterion. "auto": the error of a held-out tenth of the entries no longer
        decreases; the certificate is a true bound also then. A number: the certified relative gap
        is at most `tol`. With fewer than 20,000 entries, another solver or `max_iter`, "auto" is
        1e-4.
    solver, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    row_factors_, col_factors_ : arrays of shape (m, r) and (n, r)
        U is their product.
    row_biases_, col_biases_ : arrays of shape (m,) and (n,)
    mean_ : float
    row_coefficients_, col_coefficients_ : arrays of shape (d, r) and (e, r), or None
        Φ and Ψ, for standardized features.
    row_ids_, col_ids_ : arrays
        The ids of rows and columns.
    columns_ : tuple of three str, or None
        The names of the columns for row, column and value in the frame of the fit; on the command
        line also their positions, as int, in a file without a header.
    bias_ridge_ : float
        κ.
    lam_ : float
    path_ : EvidencePath
        The λ of lam="auto" and their held-out errors; `path_.plot()` draws them. There is none
        with fewer than 50 entries, with equal entries, or without time to hold entries out.
    bounds_ : (float, float) or None
    result_ : Result
    certificate_ : Certificate
        A bound on the distance of the objective from its optimum.
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn, where a matrix was given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.completion import NuclearCompletion
    >>> rng = np.random.default_rng(0)
    >>> R = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 30))
    >>> known = rng.random(R.shape) < 0.5
    >>> model = NuclearCompletion(random_state=0).fit(np.where(known, R, np.nan))
    >>> error = model.predict(np.argwhere(~known)) - R[~known]
    >>> bool(np.sqrt(np.mean(error**2)) < 0.4 * R.std())
    True
    """

    biases: bool = True
    bias_ridge: float | str = "auto"
    bounds: Any = "auto"
    feature_weight: float = 0.03

    _rules: ClassVar = {
        "bias_ridge": or_auto(ABOVE_ZERO),
        "feature_weight": ABOVE_ZERO,
        "bounds": Rule('(low, high), "auto" or None', lambda given: _are_bounds(given)),
    }

    _problem_name, _measure = "nuclear_completion", "RMSE of ratings"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    @_of_any_call
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        row_features: Any = None,
        col_features: Any = None,
    ) -> Any:
        """Complete the matrix.

        Parameters
        ----------
        X : (rows, cols, values), a frame of three columns, a sparse matrix, or an array
            The known entries, with any ids of rows and columns; the stored entries of a sparse
            matrix, and the entries of an array that are not NaN. The names of the columns of a
            frame are kept in `columns_`: later frames are read by those names.
        y : ignored
        sample_weight : array, optional
            The weight of each entry in the sum of losses, at least 0: one number for each of the
            triples, or for each row of a matrix.
        row_features, col_features : frame, (ids, array), or array, optional
            Numeric features of rows (of columns): a frame with their ids as its index, ids and an
            array with a line for each, or an array of the rows 0, 1, … They are standardized,
            constant features are left out, and rows without features count as the mean. Rows with
            features and no entry are rows of the model, with factors from their features.
        """
        self._check_parameters()
        # Without a variable, so that `_fit` can free the ratings in the given order.
        return self._fit(
            self._with_features(self._ratings(X, sample_weight), row_features, col_features)
        )

    def _with_features(self, ratings: Ratings, *both: Any) -> Ratings:
        """The ratings with standardized features, and a row or column for each id of them."""
        self._scaling: Scaling | None = None
        for side, features in enumerate(both):
            if features is None:
                continue
            if not self.biases:
                raise ValueError("features are fitted together with offsets: omit biases=False")
            if not place(self.device).is_host:
                raise ValueError(
                    f"features are fitted on the processor: leave device={self.device!r} out"
                )
            ratings, scaling = with_features(ratings, side, features, self.feature_weight)
            if side == 0:
                self._scaling = scaling
        return ratings

    def _look_at(self, ratings: Any) -> None:
        check_size(np.array(ratings.span), "the ratings")
        auto = self.bias_ridge == "auto"
        self.bias_ridge_ = ratings.offset_ridge() if auto else float(self.bias_ridge)

    @property
    def _ridge(self) -> float | None:
        """κ of the problem, None without offsets."""
        return self.bias_ridge_ if self.biases else None

    def _offsets(self, ratings: Ratings) -> Offsets:
        """The mean; the problem contains the offsets of rows and columns."""
        return replace(super()._offsets(ratings), mean=ratings.mean * self.biases)

    def _problem(self, ratings: Ratings, lam: float, offsets: Offsets | None = None) -> Problem:
        rows, cols = self._scales(ratings)
        row_features, col_features = ratings.features
        return nuclear_completion(
            ratings.rows, ratings.cols, ratings.values, ratings.shape, lam,
            row_scale=rows, col_scale=cols, weights=ratings.weights,
            ridge=self._ridge,
            centre=(offsets or self._offsets(ratings)).mean,
            row_features=row_features, col_features=col_features,
        )  # fmt: skip

    def _guess(self, ratings: Ratings) -> float:
        """λ for noise of the size of the entries less their offsets."""
        m, n = (int(np.count_nonzero(ratings.counts(side))) for side in (0, 1))
        size = 1.0
        if not (self.biases and ratings.flat):
            size = ratings.spread(self._ridge) or 1.0
        count = ratings.size
        return LAM_PER_NOISE * size * float(np.sqrt(count / m) + np.sqrt(count / n))

    def _error(self, found: Factorization, test: Ratings, train: Ratings) -> float:
        return float(np.sqrt(test.mean_error(found, lambda p, values: np.square(p - values))))

    def _best_offsets(
        self, problem: Problem, factor: Array, block: Array, given: Offsets
    ) -> Offsets:
        if not self.biases:
            return given
        there = place_for(problem, self.device, block.shape[1])
        objective: Any = moved(problem.objective, there)
        L = there.put(block)
        rows, cols = objective.loss.offsets(objective.entries.bilinear(L, L))
        return replace(given, rows=host(rows), cols=host(cols))

    def _known_offsets(self, problem: Problem, image: Any, given: Offsets) -> Offsets | None:
        if not self.biases:
            return None
        objective: Any = problem.objective
        rows, cols = objective.loss.offsets(image.z)
        return replace(given, rows=rows, cols=cols)

    def _finish(self, ratings: Ratings, solved: Solved) -> None:
        super()._finish(ratings, solved)
        self.row_coefficients_ = self.col_coefficients_ = self._expected = None
        if not ratings.featured:
            return
        assert solved.problem is not None
        objective: Any = solved.problem.objective
        coefficients, expected = [], []
        for prior, factors in zip(
            objective.priors, (self.row_factors_, self.col_factors_), strict=True
        ):
            found = None if prior is None else prior.coefficients(factors)
            coefficients.append(found)
            expected.append(0 * factors if prior is None else prior.features @ found)
        self.row_coefficients_, self.col_coefficients_ = coefficients
        self._expected = tuple(expected)

    def complete_features(self, row_features: Any) -> Array:
        """Predict all entries of new rows from their features: μ + c_j + x_iᵀΦ·q_j.

        Parameters
        ----------
        row_features : array of shape (k, d), or a frame
            The features of `fit`, in the same order.

        Returns
        -------
        array of shape (k, n)
            The columns in the order of `col_ids_`.
        """
        check_is_fitted(self)
        coefficients, scaling = (vars(self).get(n) for n in ("row_coefficients_", "_scaling"))
        if coefficients is None or scaling is None:
            raise ValueError("the fit had no row_features: pass them to fit")
        features = real_numbers(row_features, "row_features")
        if features.ndim != 2 or features.shape[1] != len(coefficients):
            raise ValueError(
                f"row_features must have {len(coefficients)} columns, got shape {features.shape}"
            )
        P = scaling(features, self.feature_weight) @ coefficients
        return self._factorization.cut(self.mean_ + self.col_biases_ + P @ self.col_factors_.T)

    def _bounds_for(self, span: tuple[float, float]) -> tuple[float, float] | None:
        if self.bounds is None:
            return None
        low, high = span if isinstance(self.bounds, str) else self.bounds
        return float(low), float(high)


def _are_bounds(given: Any) -> bool:
    """Whether these are valid bounds of predictions."""
    if isinstance(given, str) or given is None:
        return given in ("auto", None)
    return len(given) == 2 and bool(given[0] < given[1])
