"""What completions of ratings share: choosing λ, solving, ids and factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from gramian import clock
from gramian.backends.arrays import host
from gramian.completion._canonical import Canonical, canonical
from gramian.completion._folds import FOLDS, Folds
from gramian.completion._frames import is_frame, names_of, plain, refuse_text
from gramian.completion._path import falling
from gramian.completion._ratings import Ratings, gather
from gramian.completion._recommender import Recommender
from gramian.fitting import AUTO, settle, solve, sweeps_for
from gramian.parameters import ABOVE_ZERO, SHARE, or_auto, or_none
from gramian.persistence import Kept
from gramian.problem import Problem
from gramian.reductions.block_embedding import BlockEmbedding, balanced
from gramian.result import Result

Array = NDArray[np.floating]
Indices = NDArray[np.integer]
Held = NDArray[np.bool_]

LEAST = 50
"""Ratings below which none are held out to choose λ."""

LAST = 1e-3
"""Seconds of a solve that has none left."""

PATH_SHARE = 0.5
"""The path's share of the time that there is."""


class Completion(Recommender, Kept, BaseEstimator, ABC):
    """A matrix of low rank beside offsets, learned from some entries."""

    _rules: ClassVar = {
        "lam": or_auto(ABOVE_ZERO),
        "bias_ridge": ABOVE_ZERO,
        "time_limit": or_none(ABOVE_ZERO),
        "weight_power": SHARE,
    }

    result_: Result

    _featured: ClassVar[Any] = False
    """Whether rows or columns have features."""

    _proved: ClassVar[float] = AUTO
    """The tolerance of tol="auto" where the optimum is as cheap as an end by what is held out."""

    _problem_name: ClassVar[str]
    """What the problem is called."""

    _pace: ClassVar[int] = 1
    """How much more a sweep costs than one of least squares."""

    _ranks: ClassVar[bool] = False
    """Whether the error held out is one of lists, which leave out what is known."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @abstractmethod
    def _problem(self, ratings: Ratings, lam: float) -> Problem:
        """The convex problem for one λ; sets `mean_`."""

    @abstractmethod
    def _guess(self, ratings: Ratings) -> float:
        """A λ of the right size."""

    @abstractmethod
    def _error(self, test: Ratings, train: Ratings) -> float:
        """The error of the entries held out, by the factors of the others."""

    @abstractmethod
    def _set_biases(self, ratings: Ratings, problem: Problem, L: Array) -> None:
        """Set the offsets that belong to a factor."""

    @abstractmethod
    def _set_bounds(self, values: Array) -> None:
        """Set where predictions are cut off."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
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
        """
        self._check_parameters()
        return self._fit(self._ratings(X, sample_weight))

    def _fit(self, ratings: Ratings) -> Any:
        """Complete the ratings in an order that depends on no names; the names get the answers."""
        self.__dict__.pop("path_", None)  # that of another fit
        ordered = canonical(ratings, self._features_of_sides())
        del ratings  # `ordered` has the same entries
        self._reorder_features(ordered.rows, ordered.cols)
        places = self._places_in_factor(*ordered.ratings.shape)
        problem = self._solved(ordered.ratings)
        self.result_ = ordered.evened(self.result_, places)
        self._finish(ordered.ratings, problem)
        del problem
        self.result_ = ordered.result(self.result_, places)
        self._rename(ordered)
        return self

    def _features_of_sides(self) -> tuple[Array | None, Array | None]:
        """Even features of rows and of columns, while they are fitted."""
        return None, None

    def _reorder_features(self, rows: Indices, cols: Indices) -> None:
        """Put the features of rows and columns into another order."""

    def _places_in_factor(self, m: int, n: int) -> tuple[slice, slice]:
        """Where a factor has its rows and its columns: each is followed by its features."""
        features = self._features_of_sides()[0]
        start = m if features is None else m + features.shape[1]
        return slice(0, m), slice(start, start + n)

    def _rename(self, ordered: Canonical) -> None:
        """Put what was learned into the order of the names."""
        self._rows, self._cols = ordered.names(0), ordered.names(1)
        self.row_ids_, self.col_ids_ = self._rows.names, self._cols.names
        self._known = ordered.known()
        self.row_factors_ = ordered.restored(0, self.row_factors_)
        self.row_biases_ = ordered.offsets(0, self.row_biases_)
        self.col_factors_ = ordered.restored(1, self.col_factors_)
        self.col_biases_ = ordered.offsets(1, self.col_biases_)

    def _solved(self, ratings: Ratings) -> Problem | None:
        """Choose λ and solve: sets `lam_`, `result_` and, where λ is chosen, `path_`.

        The problem is None where there is no time for another look at it.
        """
        started, start = clock.now(), None
        if self.lam != "auto":
            self.lam_ = float(self.lam)
        elif ratings.values.size < LEAST or (self.biases and ratings.flat):
            self.lam_ = self._guess(ratings)
        else:
            start = self._choose(ratings)
        problem = self._problem(ratings, self.lam_)
        self.result_ = self._minimize(problem, start, clock.elapsed(started))
        return problem

    def _halves(self, ratings: Ratings, lam: float, held: Held | None = None) -> Any:
        """What sweeps go over, for one λ.

        Without the ratings held out, where some are, it has nothing of the problem beside it.
        """
        objective: Any = self._problem(ratings, lam).objective
        halves = objective.halves(np.float32)
        if held is None:
            return halves
        turned = held[objective.entries.by_column()[2]]
        return halves.alone().without(held, turned)

    def _set_swept(self, halves: Any, row_offsets: Array, col_offsets: Array) -> None:
        """Set what belongs to a state of sweeps beside its factors."""
        self.row_biases_, self.col_biases_ = row_offsets, col_offsets

    def _keep_swept(self, state: Array) -> None:
        """Take from the last state of sweeps what the problem is to be told."""

    def _ratings(self, X: Any, weights: Any = None) -> Ratings:
        X = plain(X)
        self.columns_ = names_of(X)
        self._sweeps = sweeps_for(X[2] if isinstance(X, tuple) and len(X) == 3 else X)
        if isinstance(X, tuple) or is_frame(X):
            return gather(X, duplicates=self.duplicates, weights=weights)
        refuse_text(X)
        X = validate_data(
            self, X, accept_sparse=("csr", "coo"), dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )  # fmt: skip
        return gather(X, duplicates=self.duplicates, weights=weights)

    def _scales(self, ratings: Ratings) -> tuple[Array, Array]:
        rows, cols = (powers(ratings.counts(side), self.weight_power) for side in (0, 1))
        return rows, cols

    def _choose(self, ratings: Ratings) -> Array:
        """Set λ by the path, and give the factor of its best solve to start from."""
        guess = float(np.sqrt(1.0 - 1.0 / FOLDS)) * self._guess(ratings)
        limit = np.inf if self.time_limit is None else float(self.time_limit)
        until = clock.now() + PATH_SHARE * limit

        def enough() -> bool:
            return clock.passed(until)

        folds = Folds(self, ratings, guess, enough)
        self.path_ = falling(guess, folds.error, enough)
        self.lam_ = self.path_.best
        return folds.found[self.lam_]

    def _minimize(self, problem: Problem, init: Array | None, spent: float) -> Result:
        """The best factor found in the time left; a last step is taken in any case."""
        limit = self.time_limit
        left = None if limit is None else max(limit - spent, LAST)
        return solve(self, problem, init, rank=self.rank, time_limit=left, tol=self._tolerance)

    @property
    def _tolerance(self) -> float:
        return self._proved if self.tol == "auto" else float(self.tol)

    def _finish(self, ratings: Ratings, problem: Problem | None) -> None:
        settle(self, self.result_)
        self._set_bounds(ratings.values)
        self._unpack(ratings, problem, self.result_.factor)
        self._n_features_out = self.col_factors_.shape[1]

    def _block(self, problem: Problem, factor: Array) -> Array:
        """[P; Q] of a factor."""
        return factor

    def _unpack(self, ratings: Ratings, problem: Problem | None, factor: Array) -> None:
        """Factors and offsets from M, in the units of the entries.

        Without a problem, which means without time, the offsets are those of the last sweep.
        """
        m, n = ratings.shape
        block = factor if problem is None else host(self._block(problem, factor))
        L = balanced(block, m)
        self.row_factors_, self.col_factors_ = BlockEmbedding(*self._scales(ratings)).halves(L)
        if problem is None:
            return
        self.row_biases_: Array = np.zeros(m)
        self.col_biases_: Array = np.zeros(n)
        if self.biases:
            self._set_biases(ratings, problem, L)


def powers(counts: NDArray[np.integer], power: float) -> Array:
    """(count/mean count)^α, an empty row or column counted as one entry."""
    return np.asarray((np.maximum(counts, 1) / max(float(counts.mean()), 1e-300)) ** power)
