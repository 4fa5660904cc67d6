"""Completing a matrix of ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian._samples import real_numbers
from gramian.backends.arrays import host, moved, place
from gramian.completion._base import Completion
from gramian.completion._canonical import Canonical
from gramian.completion._features import Scaling, with_features
from gramian.completion._fold_in import Updating
from gramian.completion._ratings import Ratings
from gramian.completion._recommender import Factorization, Offsets
from gramian.completion._selection import Solved
from gramian.parameters import ABOVE_ZERO, TOLERANCE, Rule, or_auto
from gramian.problem import Problem
from gramian.problems.completion import nuclear_completion
from gramian.solvers.room import place_for

Array = NDArray[np.floating]

LAM_PER_NOISE = 0.72
"""The guess of λ in units of σ(√ratings per row + √ratings per column), σ the size of the noise."""


def _of_any_call(method: Any) -> Any:
    """For types only: the same estimator on a cluster is fitted with fewer arguments."""
    return method


class NuclearCompletion(Updating, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Completion):
    """Predict the missing entries of a matrix from those that are known.

    Solves min ½ Σ (U_ij + b_i + c_j + μ − R_ij)² + λ‖A^½UB^½‖_* + κ/2 (‖b‖² + ‖c‖²) over all
    matrices U and offsets b, c (BiS §IV-B; the weighted trace norm): the sum over the known
    entries, μ their mean, A and B powers of the numbers of entries in each row and column. It is
    convex and the rank comes out of it, solved as M ⪰ 0 of order m + n through its factor [P; Q].

    With features X of the rows and Y of the columns, U = (V + XΦ)(W + YΨ)ᵀ and
    λ/2 (‖A^½V‖² + ‖Φ‖² + ‖B^½W‖² + ‖Ψ‖²) stands for the norm: that of an operator on rows and
    features together (Abernethy, Bach, Evgeniou and Vert 2009), convex as well.

    Parameters
    ----------
    lam : float or "auto"
        λ. "auto" holds out a tenth of the entries, goes down a path of λ, each solve from the
        last, and takes the one that predicts them best. Of fewer than 20,000 entries several such
        splits are made, and the mean of their errors counts.
    biases : bool
        Offsets b and c, and the mean; without them U is all there is.
    bias_ridge : float
        κ: offsets shrink as if each row and column had so many entries more at the mean.
    weight_power : float
        α of A = diag((count/mean count)^α), and B likewise: 0 is the plain nuclear norm.
    rank : int, optional
        The largest rank of U; the certificate then says what the limit can cost.
    bounds : (float, float), "auto" or None
        Where predictions are cut off; "auto" takes the least and largest known entry.
    feature_weight : float
        The mean square of the features of a row, after they are made even: how much of its factors
        they may explain at the price of what is its own.
    duplicates : {"error", "mean", "sum", "last"}
        What to do with an entry that is given more than once; a sum, which is for counts, has the
        mean of their weights.
    tol : "auto" or float
        Where the fit ends. "auto": when the error of a tenth of the entries, held out, has stopped
        moving; the certificate, whatever it is then, is still a true bound. A number: when the
        certified relative gap is at most that, 1e-4 say, which is the proved optimum. Below 20,000
        entries, or with another solver or `max_iter`, "auto" is 1e-4.
    solver, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    row_factors_, col_factors_ : arrays of shape (m, r) and (n, r)
        U is their product.
    row_biases_, col_biases_ : arrays of shape (m,) and (n,)
    mean_ : float
    row_coefficients_, col_coefficients_ : arrays of shape (d, r) and (e, r), or None
        Φ and Ψ, for even features.
    row_ids_, col_ids_ : arrays
        What the rows and columns are called.
    columns_ : tuple of three str, or None
        What the columns of row, column and value were called in the frame of the fit; at the
        command line also their places, as int, in a file without a header.
    lam_ : float
    path_ : Path
        λ and held-out error, where lam="auto" and λ was chosen; `path_.plot()` draws it. It is
        not chosen where there are fewer than 50 entries, all are the same, or there is no time.
    bounds_ : (float, float) or None
    result_ : Result
    certificate_ : Certificate
        How far from the optimum the completion can be.
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

    _rules: ClassVar = {
        "tol": or_auto(TOLERANCE),
        "feature_weight": ABOVE_ZERO,
        "bounds": Rule('(low, high), "auto" or None', lambda given: _are_bounds(given)),
    }

    _problem_name = "nuclear_completion"

    def __init__(
        self,
        *,
        lam: float | str = "auto",
        biases: bool = True,
        bias_ridge: float = 5.0,
        weight_power: float = 0.5,
        rank: int | None = None,
        bounds: Any = "auto",
        feature_weight: float = 0.03,
        duplicates: str = "error",
        solver: str = "auto",
        tol: float | str = "auto",
        max_iter: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        progress: bool = False,
        device: Any = None,
    ) -> None:
        self.lam = lam
        self.biases = biases
        self.bias_ridge = bias_ridge
        self.weight_power = weight_power
        self.rank = rank
        self.bounds = bounds
        self.feature_weight = feature_weight
        self.duplicates = duplicates
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.progress = progress
        self.device = device

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
            The known entries, rows and columns called whatever they are called; of a sparse
            matrix those that are stored, of an array those that are not NaN. What the columns of
            a frame are called is kept in `columns_`: frames to come are read by those names.
        y : ignored
        sample_weight : array, optional
            What each entry counts in the sum of losses, at least 0: one number for each of the
            triples, or for each row of a matrix.
        row_features, col_features : frame, (ids, array), or array, optional
            Numbers that are known of rows (of columns): a frame with their ids as its index, ids
            and an array of as many lines, or an array of the rows 0, 1, … They are made even,
            those that do not vary are left out, and a row without any counts as the mean. Rows
            with features and no entry are rows of the model: their factors come from the features.
        """
        self._check_parameters()
        return self._fit(
            self._with_features(self._ratings(X, sample_weight), row_features, col_features)
        )

    def _with_features(self, ratings: Ratings, row_features: Any, col_features: Any) -> Ratings:
        """The ratings with standardized features, and a row or column for each id of them."""
        self._refuse_features(row_features, col_features)
        scalings: list[Scaling | None] = []
        for side, features in enumerate((row_features, col_features)):
            scaling = None
            if features is not None:
                ratings, scaling = with_features(ratings, side, features, self.feature_weight)
            scalings.append(scaling)
        self._scaling = scalings[0]
        return ratings

    def _refuse_features(self, *features: Any) -> None:
        """Reject parameters that features do not support."""
        if all(each is None for each in features):
            return
        if not self.biases:
            raise ValueError("features are fitted beside offsets: leave biases=False out")
        if not place(self.device).is_host:
            raise ValueError(
                f"features are fitted on the processor: leave device={self.device!r} out"
            )

    def _restore(self, ordered: Canonical) -> None:
        super()._restore(ordered)
        if self._expected is not None:
            self._expected = tuple(
                ordered.restored(side, lines) for side, lines in enumerate(self._expected)
            )

    def _offsets(self, ratings: Ratings) -> Offsets:
        """The mean; the problem contains the offsets of rows and columns."""
        m, n = ratings.shape
        mean = float(np.average(ratings.values, weights=ratings.weights)) * self.biases
        return Offsets(mean, np.zeros(m), np.zeros(n))

    def _problem(self, ratings: Ratings, lam: float, offsets: Offsets | None = None) -> Problem:
        rows, cols = self._scales(ratings)
        row_features, col_features = ratings.features
        return nuclear_completion(
            ratings.rows,
            ratings.cols,
            ratings.values,
            ratings.shape,
            lam,
            row_scale=rows,
            col_scale=cols,
            ridge=self.bias_ridge if self.biases else None,
            weights=ratings.weights,
            centre=(offsets or self._offsets(ratings)).mean,
            row_features=row_features,
            col_features=col_features,
        )

    def _guess(self, ratings: Ratings) -> float:
        """λ for noise of the size of the entries beside their offsets."""
        m, n = (int(np.count_nonzero(ratings.counts(side))) for side in (0, 1))
        size = 1.0
        if not (self.biases and ratings.flat):
            size = ratings.spread(self.bias_ridge if self.biases else None) or 1.0
        count = ratings.values.size
        return LAM_PER_NOISE * size * float(np.sqrt(count / m) + np.sqrt(count / n))

    def _error(self, found: Factorization, test: Ratings, train: Ratings) -> float:
        square = 0.0
        for part in test.parts():
            off = found.values(test.rows[part], test.cols[part]) - test.values[part]
            square += float(off @ off)
        return float(np.sqrt(square / test.values.size))

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

    def _block(self, ratings: Ratings, problem: Problem, factor: Array) -> Array:
        objective: Any = problem.objective
        return objective.expanded(host(factor)) if ratings.featured else factor

    def _finish(self, ratings: Ratings, solved: Solved) -> None:
        super()._finish(ratings, solved)
        priors = (None, None)
        if solved.problem is not None:
            priors = getattr(solved.problem.objective, "priors", priors)
        both = self.row_factors_, self.col_factors_
        found = [
            None if prior is None else prior.coefficients(factors)
            for prior, factors in zip(priors, both, strict=True)
        ]
        self.row_coefficients_, self.col_coefficients_ = found
        self._expected = None
        if ratings.featured:
            self._expected = tuple(
                np.zeros_like(factors) if prior is None else prior.features @ of_side
                for prior, factors, of_side in zip(priors, both, found, strict=True)
            )

    def complete_features(self, row_features: Any) -> Array:
        """All entries of new rows by their features alone: μ + c_j + x_iᵀΦ·q_j.

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

    def _bounds_for(self, values: Array) -> tuple[float, float] | None:
        if self.bounds is None:
            return None
        given = (values.min(), values.max()) if isinstance(self.bounds, str) else self.bounds
        low, high = given
        return float(low), float(high)


def _are_bounds(given: Any) -> bool:
    """Whether predictions can be cut off there."""
    if isinstance(given, str) or given is None:
        return given in ("auto", None)
    return len(given) == 2 and bool(given[0] < given[1])
