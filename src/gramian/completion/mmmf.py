"""Maximum-margin matrix factorisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import at_home, host
from gramian.certificate import relative
from gramian.common.parameters import ABOVE_ZERO, one_of
from gramian.common.types import Array
from gramian.completion._base import Completion
from gramian.completion._margins import (
    MarginHalves,
    Margins,
    all_thresholds,
    checked_levels,
    midway,
)
from gramian.completion._ratings import Ratings
from gramian.completion._recommender import Factorization, Offsets
from gramian.completion._selection import Solved
from gramian.estimators.parameters import with_parameters
from gramian.losses import SquaredWithOffsets
from gramian.problem import Problem

Held = NDArray[np.bool_]

LAM_PER_SIGN = 0.6
"""The guess of λ in units of √signs per row + √signs per column, about that of random signs."""


@with_parameters
class MMMF(Completion):
    """Predict signs or ordered levels of missing entries with a margin.

    Solves min Σ_e h_μ(m_e − Y_e X_e) + λ‖A^½XB^½‖_* (DML-eig eq. 27; the weighted trace norm), h_μ
    the hinge smoothed within μ of its corner. Two levels are the signs ±1. With more levels, each
    entry should lie on the right side of every threshold between two levels, by half their
    distance (the all-threshold loss of Rennie and Srebro 2005). The thresholds are variables of
    the convex problem with a ridge towards the midpoints of the levels, or fixed there. Offsets of
    rows and columns come from a ridge regression before the solve and shift the margins, so that
    the problem stays convex and its certificate valid. With 20,000 or more entries of several
    levels, the sweeps that choose λ refine them. The eigenvalue form is
    `gramian.problems.mmmf_eig`.

    Parameters
    ----------
    lam : float or "auto"
        λ; "auto" as in `NuclearCompletion`, by the held-out error in levels.
    mu : float
        μ, in margins.
    thresholds : "learned" or "fixed"
        Whether thresholds between more than two levels are learned, or fixed at the midpoints.
    bias_ridge : float
        κ of the offsets of rows and columns and of the thresholds.
    biases, weight_power, rank, duplicates :
        As in `NuclearCompletion`.
    tol : "auto" or float
        As in `NuclearCompletion`, with 1e-3 in place of 1e-4.
    solver, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    classes_ : array
        The levels, ascending.
    thresholds_ : array
        The thresholds between the levels, in units of the margin.
    hinge_gap_ : float
        A bound on the relative distance of the objective without smoothing from its optimum.
    row_factors_, col_factors_, row_biases_, col_biases_, mean_, row_ids_, col_ids_, lam_, path_ :
        As in `NuclearCompletion`, for the scores, in units of the margin.
    columns_, result_, certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `NuclearCompletion`.
    """

    mu: float = 0.2
    thresholds: str = "learned"
    biases: bool = True
    bias_ridge: float = 5.0

    _rules: ClassVar = {"mu": ABOVE_ZERO, "thresholds": one_of("learned", "fixed")}

    _auto_tol, _sweeps_to_tol = 1e-3, True

    _problem_name, _pace = "mmmf", MarginHalves.pace
    _measure = "mean absolute error of ratings in levels"

    def predict(self, pairs: Any, *, return_known: bool = False) -> Any:
        """Predict the levels of pairs of a row and a column; see `NuclearCompletion.predict`."""
        found = super().predict(pairs, return_known=return_known)
        return (self._levels(found[0]), found[1]) if return_known else self._levels(found)

    def decision_function(self, pairs: Any) -> Array:
        """The scores of pairs; the thresholds divide them into levels."""
        return super().predict(pairs)

    def _rated(self, i: NDArray[np.integer], j: NDArray[np.integer]) -> Array:
        return self._levels(self._factorization.values(i, j))

    def _levels(self, scores: Array) -> NDArray[Any]:
        """The levels of scores."""
        thresholds = getattr(self, "thresholds_", self._midway())  # not in older model files
        return self.classes_[np.searchsorted(thresholds, scores)]

    def _midway(self) -> Array:
        return midway(self.classes_.size)

    @property
    def _learned(self) -> bool:
        """Whether thresholds are part of the problem; for two levels the offsets suffice."""
        return self.thresholds == "learned" and self.classes_.size > 2

    def _halves(
        self, ratings: Ratings, lam: float, held: Held | None = None
    ) -> tuple[Any, Offsets]:
        """Quadratic upper bounds of the hinges."""
        offsets = self._offsets(ratings if held is None else ratings.part(~held))
        one = np.ones(ratings.values.size) if ratings.weights is None else ratings.weights
        margins = Margins(
            self._places(ratings).astype(np.int8),
            _each(offsets, ratings).astype(np.float32),
            one.astype(np.float32),
            self._midway(),
            np.zeros(self.classes_.size - 1),
            float(self.mu),
            float(self.bias_ridge) if self._learned else None,
        )
        ridge = margins.ridge if self.biases else None
        halves = MarginHalves.of_levels(ratings, self._scales(ratings), margins, lam, ridge)
        return (halves if held is None else halves.without(held, held)), offsets

    def _swept_offsets(self, halves: Any, offsets: Offsets, state: Array) -> Offsets:
        found = super()._swept_offsets(halves, offsets, state)
        return replace(found, thresholds=halves.margins.thresholds)

    def _problem(self, ratings: Ratings, lam: float, offsets: Offsets | None = None) -> Problem:
        rows, cols = self._scales(ratings)
        return all_thresholds(
            ratings.rows, ratings.cols, self._places(ratings), ratings.shape, lam,
            offset=_each(offsets or self._offsets(ratings), ratings),
            thresholds=self._midway(), learned=self._learned, weights=ratings.weights, mu=self.mu,
            row_scale=rows, col_scale=cols, ridge=self.bias_ridge,
        )  # fmt: skip

    def _places(self, ratings: Ratings) -> NDArray[np.integer]:
        """The number of levels below that of each rating."""
        return np.searchsorted(self.classes_, ratings.values)

    def _look_at(self, ratings: Any) -> None:
        self.classes_ = checked_levels(ratings.values)

    def _offsets(self, ratings: Ratings) -> Offsets:
        """Offsets of the scores by ridge regression."""
        if not self.biases:
            return super()._offsets(ratings)
        scores = 2.0 * self._places(ratings) - (self.classes_.size - 1.0)
        mean = float(np.average(scores, weights=ratings.weights))
        fit = SquaredWithOffsets(
            scores - mean, ratings.rows, ratings.cols, ratings.shape, ridge=self.bias_ridge,
            weight=ratings.weights,
        )  # fmt: skip
        return Offsets(mean, *fit.offsets(0.0 * scores))

    def _best_offsets(
        self, problem: Problem, factor: Array, block: Array, given: Offsets
    ) -> Offsets:
        thresholds = self._midway()
        if self._learned:
            objective: Any = problem.objective
            image = objective.image(objective.place.put(factor))
            moved = thresholds + host(objective.loss.thresholds(image.z))
            thresholds = np.maximum.accumulate(moved)
        return replace(given, thresholds=thresholds)

    def _guess(self, ratings: Ratings) -> float:
        m, n = (int(np.count_nonzero(ratings.counts(side))) for side in (0, 1))
        size = ratings.size * (self.classes_.size - 1.0)
        return LAM_PER_SIGN * float(np.sqrt(size / m) + np.sqrt(size / n))

    def _error(self, found: Factorization, test: Ratings, train: Ratings) -> float:
        """The mean absolute error in levels."""
        thresholds = found.offsets.thresholds
        if thresholds is None:
            thresholds = self._midway()

        def levels_off(scores: Array, values: Array) -> Array:
            levels = np.searchsorted(self.classes_, values)
            return np.abs(np.searchsorted(thresholds, scores) - levels)

        return test.mean_error(found, levels_off)

    def _finish(self, ratings: Ratings, solved: Solved) -> None:
        super()._finish(ratings, solved)
        if solved.problem is None:  # each hinge is at most μ/2 above the smoothed one
            count = ratings.values.size if ratings.weights is None else ratings.weights.sum()
            value = self.result_.value + 0.5 * self.mu * float(count) * (self.classes_.size - 1)
        else:
            value = self._sharp_value(at_home(solved.problem.objective))
        self.hinge_gap_ = relative(value - self.certificate_.lower_bound, value)

    def _sharp_value(self, objective: Any) -> float:
        """The objective without smoothing at the result."""
        loss, image = objective.loss, objective.image(self.result_.factor)
        sharp = loss.smoothed(1e-12)
        if self._learned:
            return float(sharp.value_at(image.z, loss.thresholds(image.z)) + image.linear)
        return float(sharp.value(image.z) + image.linear)


def _each(offsets: Offsets, ratings: Ratings) -> Array:
    """The sum of mean and offsets for each rating."""
    found: Array = offsets.rows[ratings.rows] + offsets.cols[ratings.cols]
    return offsets.mean + found
