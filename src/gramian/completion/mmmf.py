"""Maximum-margin matrix factorisation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.backends.arrays import host
from gramian.certificate import relative
from gramian.completion._base import Completion
from gramian.completion._levels import all_thresholds, checked_levels, midway
from gramian.completion._margins import MarginHalves, Margins
from gramian.completion._quick import quick, sweeps_pay, swept
from gramian.completion._ratings import Ratings
from gramian.losses import SquaredWithOffsets
from gramian.parameters import ABOVE_ZERO, TOLERANCE, one_of, or_auto
from gramian.problem import Problem

Array = NDArray[np.floating]
Held = NDArray[np.bool_]

GUESS = 0.6
"""λ in units of √entries per row + √entries per column, about what signs at random need."""


class MMMF(Completion):
    """Predict signs or ordered levels of missing entries with a margin.

    Solves min Σ_e h_μ(m_e − Y_e X_e) + λ‖A^½XB^½‖_* (DML-eig eq. 27; the weighted trace norm), h_μ
    the hinge smoothed within μ of its corner. Two levels are the signs ±1. With more, each entry
    is to lie on the right side of every threshold between two levels, by half their distance (the
    all-threshold loss of Rennie and Srebro 2005); the thresholds are part of the convex problem,
    beside a ridge that holds them near the middle, or fixed there. Offsets of rows
    and columns come from a ridge regression beforehand and move the margins, which leaves the
    problem convex and its certificate true; of 20,000 entries and more of several levels sweeps
    refine them, which choose λ. `gramian.problems.mmmf_eig` is the eigenvalue form.

    Parameters
    ----------
    lam : float or "auto"
        λ; "auto" as in `NuclearCompletion`, by the error of the levels held out.
    mu : float
        μ, in margins.
    thresholds : "learned" or "fixed"
        Whether thresholds between more than two levels are learned, or midway between them.
    biases, bias_ridge, weight_power, rank, duplicates :
        As in `NuclearCompletion`.
    tol : "auto" or float
        As in `NuclearCompletion`, but that "auto" is 1e-3 where the optimum is as cheap.
    solver, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    classes_ : array
        The levels, ascending.
    thresholds_ : array
        Between the levels, in units of the margin.
    hinge_gap_ : float
        How far the sum of hinges themselves, without smoothing, can be above its optimum, as a
        part of it.
    row_factors_, col_factors_, row_biases_, col_biases_, mean_, row_ids_, col_ids_, lam_, path_ :
        As in `NuclearCompletion`, for the scores, in units of the margin.
    columns_, result_, certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `NuclearCompletion`.
    """

    _rules: ClassVar = {
        "mu": ABOVE_ZERO,
        "thresholds": one_of("learned", "fixed"),
        "tol": or_auto(TOLERANCE),
    }

    _proved = 1e-3

    _problem_name, _pace = "mmmf", MarginHalves.pace

    def __init__(
        self,
        *,
        lam: float | str = "auto",
        mu: float = 0.2,
        thresholds: str = "learned",
        biases: bool = True,
        bias_ridge: float = 5.0,
        weight_power: float = 0.5,
        rank: int | None = None,
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
        self.mu = mu
        self.thresholds = thresholds
        self.biases = biases
        self.bias_ridge = bias_ridge
        self.weight_power = weight_power
        self.rank = rank
        self.duplicates = duplicates
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.progress = progress
        self.device = device

    def predict(self, pairs: Any, *, return_known: bool = False) -> Any:
        """The levels of pairs of a row and a column; see `NuclearCompletion.predict`."""
        scores, known = super().predict(pairs, return_known=True)
        levels = self._levels(scores)
        return (levels, known) if return_known else levels

    def decision_function(self, pairs: Any) -> Array:
        """The scores of pairs: their sides of the thresholds are the levels."""
        scores: Array = super().predict(pairs)
        return scores

    def _rated(self, i: NDArray[np.integer], j: NDArray[np.integer]) -> Array:
        return self._levels(self._values(i, j))

    def _levels(self, scores: Array) -> NDArray[Any]:
        found: NDArray[Any] = self.classes_[np.searchsorted(self._thresholds(), scores)]
        return found

    def _thresholds(self) -> Array:
        """Those of the fit; models of old do not have them."""
        found: Array = getattr(self, "thresholds_", self._midway())
        return found

    def _midway(self) -> Array:
        return midway(self.classes_.size)

    @property
    def _learned(self) -> bool:
        """Whether thresholds are part of the problem: of two levels there is one, an offset."""
        return self.thresholds == "learned" and self.classes_.size > 2

    def _solved(self, ratings: Ratings) -> Problem | None:
        """By the levels held out where that is asked for, and on from there to a tolerance."""
        if not sweeps_pay(self, ratings):
            return super()._solved(ratings)
        started = clock.now()
        self.__dict__.pop("_moved", None)  # of a fit that was broken off
        self._set_bounds(ratings.values)
        if self.tol == "auto":
            problem, self.result_ = quick(self, ratings)
        else:
            start = swept(self, ratings)
            problem = self._problem(ratings, self.lam_)
            self.result_ = self._minimize(problem, start, clock.elapsed(started))
        self.__dict__.pop("_moved", None)
        return problem

    def _halves(self, ratings: Ratings, lam: float, held: Held | None = None) -> Any:
        """Squares above the hinges."""
        self._fit_biases(ratings if held is None else ratings.part(~held))
        one = np.ones(ratings.values.size) if ratings.weights is None else ratings.weights
        margins = Margins(
            self._places(ratings).astype(np.int8),
            self._offset(ratings).astype(np.float32),
            one.astype(np.float32),
            self._midway(),
            np.zeros(self.classes_.size - 1),
            float(self.mu),
            float(self.bias_ridge) if self._learned else None,
        )
        ridge = margins.ridge if self.biases else None
        halves = MarginHalves.of_levels(ratings, self._scales(ratings), margins, lam, ridge)
        return halves if held is None else halves.without(held, held)

    def _set_swept(self, halves: Any, row_offsets: Array, col_offsets: Array) -> None:
        self.row_biases_ = self._row_offsets + row_offsets
        self.col_biases_ = self._col_offsets + col_offsets
        self.thresholds_ = halves.margins.thresholds

    def _keep_swept(self, state: Array) -> None:
        """The offsets beside those of the ridge regression, for the problem of this fit."""
        self._moved: Array = state[:, -1].astype(float)

    def _problem(self, ratings: Ratings, lam: float) -> Problem:
        self._fit_biases(ratings)
        rows, cols = self._scales(ratings)
        return all_thresholds(
            ratings.rows, ratings.cols, self._places(ratings), ratings.shape, lam,
            offset=self._offset(ratings),
            thresholds=self._midway(), learned=self._learned, weights=ratings.weights, mu=self.mu,
            row_scale=rows, col_scale=cols, ridge=self.bias_ridge,
        )  # fmt: skip

    def _places(self, ratings: Ratings) -> NDArray[np.integer]:
        """How many levels are below that of each rating."""
        return np.searchsorted(self.classes_, ratings.values)

    def _offset(self, ratings: Ratings) -> Array:
        """What the scores of ratings have beside the product of their factors."""
        found: Array = self._row_offsets[ratings.rows] + self._col_offsets[ratings.cols]
        return self.mean_ + found

    def _ratings(self, X: Any, weights: Any = None) -> Ratings:
        ratings = super()._ratings(X, weights)
        self.classes_ = checked_levels(ratings.values)
        return ratings

    def _fit_biases(self, ratings: Ratings) -> None:
        m, n = ratings.shape
        scores = 2.0 * self._places(ratings) - (self.classes_.size - 1.0)
        self.mean_ = 0.0
        self._row_offsets: Array = np.zeros(m)
        self._col_offsets: Array = np.zeros(n)
        if self.biases:
            self.mean_ = float(np.average(scores, weights=ratings.weights))
            fit = SquaredWithOffsets(
                scores - self.mean_, ratings.rows, ratings.cols, (m, n), ridge=self.bias_ridge,
                weight=ratings.weights,
            )  # fmt: skip
            self._row_offsets, self._col_offsets = fit.offsets(0.0 * scores)
            if hasattr(self, "_moved"):
                self._row_offsets = self._row_offsets + self._moved[:m]
                self._col_offsets = self._col_offsets + self._moved[m:]

    def _unpack(self, ratings: Ratings, problem: Problem | None, factor: Array) -> None:
        super()._unpack(ratings, problem, factor)
        if problem is None:
            return
        self.thresholds_ = self._midway()
        if self._learned:
            objective: Any = problem.objective
            moved = self.thresholds_ + host(objective.loss.thresholds(objective.image(factor).z))
            self.thresholds_ = np.maximum.accumulate(moved)

    def _set_biases(self, ratings: Ratings, problem: Problem, L: Array) -> None:
        self.row_biases_, self.col_biases_ = self._row_offsets, self._col_offsets

    def _guess(self, ratings: Ratings) -> float:
        m, n = (np.unique(index).size for index in (ratings.rows, ratings.cols))
        size = ratings.values.size * (self.classes_.size - 1.0)
        return GUESS * float(np.sqrt(size / m) + np.sqrt(size / n))

    def _error(self, test: Ratings, train: Ratings) -> float:
        """The mean number of levels that a prediction is off by."""
        found = self._levels(self._values(test.rows, test.cols))
        steps = np.searchsorted(self.classes_, found) - np.searchsorted(self.classes_, test.values)
        return float(np.mean(np.abs(steps)))

    def _finish(self, ratings: Ratings, problem: Problem | None) -> None:
        super()._finish(ratings, problem)
        del self._row_offsets, self._col_offsets
        lower = self.certificate_.lower_bound
        if problem is None:  # each hinge is at most μ/2 above the smoothed one
            hinges = float(
                ratings.values.size if ratings.weights is None else ratings.weights.sum()
            )
            value = self.result_.value + 0.5 * self.mu * hinges * (self.classes_.size - 1)
            self.hinge_gap_ = relative(value - lower, value)
            return
        objective: Any = problem.objective
        loss, image = objective.loss, objective.image(self.result_.factor)
        sharp = loss.smoothed(1e-12)
        hinges = (
            sharp.value_at(image.z, loss.thresholds(image.z))
            if self._learned
            else sharp.value(image.z)
        )
        value = hinges + image.linear
        self.hinge_gap_ = relative(value - lower, value)

    def _set_bounds(self, values: Array) -> None:
        self.bounds_ = None
