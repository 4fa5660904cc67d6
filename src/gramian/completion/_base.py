"""The base class of completions: choice of λ, solving, ids and factors."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from gramian.arrays.places import host, moved, place
from gramian.callbacks import ProgressBar
from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, COUNT, SHARE, TOLERANCE, or_auto, or_none
from gramian.common.types import Array
from gramian.completion._canonical import Canonical, canonical
from gramian.completion._quick import quick, swept
from gramian.completion._ratings import Ratings
from gramian.completion._reading import names_of, plain, read
from gramian.completion._recommender import Factorization, Offsets, Recommender
from gramian.completion._selection import LEAST_RATINGS, Judged, Solved, Start, by_folds
from gramian.estimators.fitting import AUTO, settle, solve, sweeps_for
from gramian.estimators.parameters import SolverParameters, with_parameters
from gramian.estimators.path import EvidencePath
from gramian.estimators.persistence import Kept
from gramian.methods.room import place_for
from gramian.objectives.halves import halves_of
from gramian.problem import Problem
from gramian.reductions.block_embedding import BlockEmbedding, balanced
from gramian.result import History

Held = NDArray[np.bool_]

LEAST_SWEPT = 20_000
"""Number of entries below which the optimum costs no more than sweeps and their held-out error."""


@with_parameters
class Completion(SolverParameters, Recommender, Kept, BaseEstimator, ABC):
    """A matrix of low rank plus offsets, learned from some of its entries."""

    lam: float | str = "auto"
    weight_power: float = 0.5
    rank: int | None = None
    duplicates: str = "error"
    tol: Any = "auto"

    _rules: ClassVar = {
        "lam": or_auto(ABOVE_ZERO),
        "rank": or_none(COUNT),
        "bias_ridge": ABOVE_ZERO,
        "time_limit": or_none(ABOVE_ZERO),
        "tol": or_auto(TOLERANCE),
        "weight_power": SHARE,
    }

    _auto_tol: ClassVar[float] = AUTO
    """The tolerance of tol="auto" where the optimum is cheap."""

    _problem_name: ClassVar[str]

    _measure: ClassVar[str]
    """The name of `_error` in `path_`."""

    _pace: ClassVar[int] = 1
    """The cost of a sweep in units of the cost of a sweep of least squares."""

    _ranks: ClassVar[bool] = False
    """Whether the held-out error is that of recommendations, which exclude known entries."""

    _sweeps_to_tol: ClassVar[bool] = False
    """Whether a fit to a numeric `tol` starts with sweeps as well."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _offsets(self, ratings: Ratings) -> Offsets:
        """The offsets that the problem is formulated with, by default 0."""
        return Offsets(0.0, np.zeros(ratings.shape[0]), np.zeros(ratings.shape[1]))

    @abstractmethod
    def _problem(self, ratings: Ratings, lam: float, offsets: Offsets | None = None) -> Problem:
        """The convex problem for one λ, default offsets those of `_offsets`."""

    @abstractmethod
    def _guess(self, ratings: Ratings) -> float:
        """A λ of the right size."""

    @abstractmethod
    def _error(self, found: Factorization, test: Ratings, train: Ratings) -> float:
        """The error of a factorization of the entries `train` on the held-out entries `test`."""

    def _blend_path(self, judged: list[Judged]) -> EvidencePath | None:
        """The path of a share that is selected by held-out entries, if the model has one."""
        return None

    def _best_offsets(
        self, problem: Problem, factor: Array, block: Array, given: Offsets
    ) -> Offsets:
        """The optimal offsets of a factor, whose balanced block is [P; Q]."""
        return given

    def _known_offsets(self, problem: Problem, image: Any, given: Offsets) -> Offsets | None:
        """The optimal offsets of the factor of an image whose value is known, None if unknown."""
        return None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Complete the matrix.

        Parameters
        ----------
        X, y, sample_weight :
            As in `NuclearCompletion.fit`.
        """
        self._check_parameters()
        return self._fit(self._ratings(X, sample_weight))

    def _fit(self, ratings: Ratings) -> Any:
        """Complete the ratings in the canonical order; results are in the order of the ids."""
        self.__dict__.pop("path_", None)  # of an earlier fit
        ordered = self._ordered(ratings)
        del ratings  # `ordered` has the same entries
        solved = self._solved(ordered.ratings)
        result = ordered.averaged(solved.result)
        same = np.array_equal(result.factor, solved.result.factor)
        solved = replace(solved, result=result, offsets=solved.offsets if same else None)
        self._finish(ordered.ratings, solved)
        del solved
        self.result_ = ordered.result(self.result_)
        self._restore(ordered)
        return self

    def _ordered(self, ratings: Ratings) -> Canonical:
        return canonical(ratings)

    def _restore(self, ordered: Canonical) -> None:
        """Put fitted attributes into the order of the ids."""
        self._rows, self._cols = ordered.ids(0), ordered.ids(1)
        self.row_ids_, self.col_ids_ = self._rows.names, self._cols.names
        self._known = ordered.known()
        self.row_factors_ = ordered.restored(0, self.row_factors_)
        self.row_biases_ = ordered.offsets(0, self.row_biases_)
        self.col_factors_ = ordered.restored(1, self.col_factors_)
        self.col_biases_ = ordered.offsets(1, self.col_biases_)
        if vars(self).get("_expected") is not None:
            rows, cols = self._expected
            self._expected = ordered.restored(0, rows), ordered.restored(1, cols)

    def _solved(self, ratings: Ratings) -> Solved:
        """Choose λ and solve: to a held-out error that no longer decreases, or to a tolerance."""
        started = clock.now()
        sweeps = self._sweeps_pay(ratings)
        if sweeps and self.tol == "auto":
            return quick(self, ratings)
        if sweeps and self._sweeps_to_tol:
            start = swept(self, ratings)
        elif self.lam != "auto":
            start = Start(float(self.lam), None, None, self._offsets(ratings))
        elif ratings.size < LEAST_RATINGS or (self.biases and ratings.flat):
            start = self._guessed(ratings)
        else:
            try:
                start = by_folds(self, ratings)
            except clock.TimeUpError:
                if clock.interrupted():
                    raise
                start = self._guessed(ratings)
        problem = _there(self._problem(ratings, start.lam, start.offsets), self)
        limit = self.time_limit
        if limit is not None:  # the time that is left, for one step at least
            limit = max(limit - clock.elapsed(started), sys.float_info.min)
        result = solve(
            self, problem, start.factor, rank=self.rank, time_limit=limit, tol=self._tolerance
        )
        return Solved(result, problem, start)

    def _guessed(self, ratings: Ratings) -> Start:
        """The start without held-out entries."""
        return Start(self._guess(ratings), None, None, self._offsets(ratings))

    def _sweeps_pay(self, ratings: Ratings) -> bool:
        """Whether a fit starts with sweeps: the optimum is not as cheap, and the host computes."""
        simple = self.solver == "auto" and self.max_iter is None and place(self.device).is_host
        least = LEAST_RATINGS if ratings.featured else LEAST_SWEPT
        return bool(simple and ratings.size >= least and not (self.biases and ratings.flat))

    def _halves(
        self, ratings: Ratings, lam: float, held: Held | None = None
    ) -> tuple[Any, Offsets]:
        """The least-squares problems of the sweeps for one λ, and their offsets.

        With held-out entries they keep no reference to the problem.
        """
        offsets = self._offsets(ratings)
        objective: Any = self._problem(ratings, lam, offsets).objective
        halves = halves_of(objective, np.float32)
        if held is None:
            return halves, offsets
        turned = held[objective.entries.by_column()[2]]
        return halves.alone().without(held, turned), offsets

    def _swept_offsets(self, halves: Any, offsets: Offsets, state: Array) -> Offsets:
        """The offsets of a state of the sweeps, in addition to those given."""
        moved, m = state[:, -1].astype(float), offsets.rows.size
        return replace(offsets, rows=offsets.rows + moved[:m], cols=offsets.cols + moved[m:])

    def _of_state(
        self, halves: Any, ratings: Ratings, offsets: Offsets, state: Array
    ) -> Factorization:
        """The matrix of a state of the sweeps."""
        m, own = ratings.shape[0], np.ascontiguousarray(state[:, :-1])
        if halves.units is None:
            own = BlockEmbedding(*self._scales(ratings)).factor(own)
        return Factorization(own[:m], own[m:], self._swept_offsets(halves, offsets, state))

    def _swept_factor(self, halves: Any, state: Array) -> Array:
        """The factor of a state of the sweeps."""
        found: Array = halves.factor(state)
        return found

    def _proof_seconds(self, ratings: Ratings, history: History) -> float | None:
        """The time limit of the proof after sweeps; None is a share of their time."""
        return None

    def _progress_bar(self, limit: float) -> Any:
        """The progress bar of the sweeps, if the parameters ask for one."""
        return ProgressBar("completion by auto", 0.0, seconds=limit) if self.progress else None

    def _ratings(self, X: Any, weights: Any = None) -> Ratings:
        X = plain(X)
        self.columns_ = names_of(X)
        self._sweeps = sweeps_for(X[2] if isinstance(X, tuple) and len(X) == 3 else X)
        ratings = read(self, X, weights)
        self._look_at(ratings)
        return ratings

    def _look_at(self, ratings: Any) -> None:
        """Check the values of ratings, and set the fitted attributes that depend only on them."""

    def _scales(self, ratings: Ratings) -> tuple[Array, Array]:
        rows, cols = (powers(ratings.counts(side), self.weight_power) for side in (0, 1))
        return rows, cols

    @property
    def _tolerance(self) -> float:
        return self._auto_tol if self.tol == "auto" else float(self.tol)

    def _finish(self, ratings: Ratings, solved: Solved) -> None:
        """Set the fitted attributes."""
        start, factor = solved.start, solved.result.factor
        settle(self, solved.result)
        self.lam_ = start.lam
        if start.path is not None:
            self.path_ = start.path
        if solved.offsets is None:
            found = self._factorized(ratings, solved.problem, factor, start.offsets)
        else:
            found = self._factorized(ratings, None, factor, solved.offsets)
        self.row_factors_, self.col_factors_ = found.row_factors, found.col_factors
        self.row_biases_, self.col_biases_ = found.offsets.rows, found.offsets.cols
        self.mean_, self.bounds_ = found.offsets.mean, self._bounds_for(ratings.span)
        if found.offsets.thresholds is not None:
            self.thresholds_ = found.offsets.thresholds
        self._n_features_out = self.col_factors_.shape[1]

    def _factorized(
        self, ratings: Ratings, problem: Problem | None, factor: Array, offsets: Offsets
    ) -> Factorization:
        """Factors and optimal offsets of a solution, in the units of the entries.

        Without a problem the given offsets are used.
        """
        block = factor if problem is None else host(factor)
        if problem is not None and ratings.featured:
            objective: Any = problem.objective
            block = objective.expanded(block)
        L = balanced(block, ratings.shape[0], place(self.device))
        P, Q = BlockEmbedding(*self._scales(ratings)).halves(L)
        if problem is not None:
            offsets = self._best_offsets(problem, factor, L, offsets)
        return Factorization(P, Q, offsets)

    def _bounds_for(self, span: tuple[float, float]) -> tuple[float, float] | None:
        """The bounds to which predictions are clipped."""
        return None


def _there(problem: Problem, model: Completion) -> Problem:
    """The problem on the device of a model: the solution uses the same arrays as the run."""
    there = place_for(problem, model.device, model.rank)
    with there.room():
        return moved(problem, there)


def powers(counts: NDArray[np.integer], power: float) -> Array:
    """(count/mean count)^α, an empty row or column counted as one entry."""
    return np.asarray((np.maximum(counts, 1) / max(float(counts.mean()), 1e-300)) ** power)
