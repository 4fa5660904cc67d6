"""Large margin nearest neighbours: targets near, all impostors beyond a margin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, TOLERANCE
from gramian.common.types import Indices
from gramian.constraints import as_pairs, same_class_neighbors
from gramian.estimators.active_set import ActiveSet
from gramian.estimators.parameters import with_parameters
from gramian.methods.room import samples_place
from gramian.metric._base import starts_at_rank
from gramian.metric._few_columns import maps_in
from gramian.metric._lmnn_task import LMNNTask
from gramian.metric._local import LocalLearner, ridge_for, targets_of
from gramian.metric._shrinkage import TripletFits
from gramian.problem import Problem
from gramian.problems.local_metric import lmnn_of_triplets, whitening
from gramian.reductions.span import Span
from gramian.result import Result


@with_parameters
class LMNN(TripletFits, LocalLearner):
    """Learn a metric with each sample's targets near and all impostors beyond a margin.

    Solves min Σ_S d_M(i, j) + λ Σ_R max(0, 1 − d_M(i, l) + d_M(i, j))² over M ⪰ 0 (BILGO eq. 8),
    S the samples with their k nearest of the same class (targets), R those pairs with *every*
    sample l of another class (impostors). Only violated triplets have an effect; they are searched
    again as the metric changes. The certificate is that of the whole problem: the value includes
    all triplets, and a lower bound for some of them is one for all.

    Parameters
    ----------
    n_neighbors : int
        The number k of targets.
    lam : float
        The weight λ of the impostors.
    ridge : float or "auto"
        δ of a term δ·ḡ·tr M that keeps M bounded if targets do not differ, ḡ the mean eigenvalue of
        the scatter of S. "auto" is 1e-3, or 1 if the dimension of the samples' span is more than
        half their number.

    Attributes
    ----------
    n_active_ : int
        Number of triplets that the fitted metric violates.
    result_ : Result
        Its seconds are those of the whole fit, its history that of the last round.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> lmnn = LMNN().fit(StandardScaler().fit_transform(X), y)
    >>> lmnn.certificate_.relative_gap < 1e-4
    True
    """

    lam: float = 1.0

    _rules: ClassVar = {"lam": ABOVE_ZERO, "tol": TOLERANCE}
    _rough_tol: ClassVar[float] = 0.05  # F is within 1e-3 of its optimum then

    def fit(self, X: Any, y: ArrayLike) -> LMNN:
        started = clock.now()
        super().fit(X, y)
        result: Result = vars(self)["result_"]
        self.result_ = replace(result, seconds=clock.elapsed(started))
        return self

    def _fit_labels(self, span: Span, classes: Indices, rows: Indices) -> None:
        samples = span.X
        self.ridge_ = ridge_for(self.ridge, samples)
        quick, units = self._search_metric(samples, classes)
        there, mapped = samples_place(samples, self.device), samples @ quick
        near = same_class_neighbors(mapped, classes, self.n_neighbors, device=self.device)
        rough = self._shrink_by_labels(samples, classes, units)
        white = whitening(samples, as_pairs(near), ridge=self.ridge_)
        Z = white.samples(samples)
        with there.room():
            task = LMNNTask.at(there, Z, classes, near, float(self.lam), white.coordinates(quick))

            def solve(problem: Problem, **options: Any) -> Result:
                with clock.reserve(task.standing.seconds):  # for the search at its optimum
                    return self._minimize(problem, **options)

            rounds, start = ActiveSet(task, solve, self.tol), self._begin(span, rough, white)
            result, self.n_active_ = rounds.run(start)
            k = self._limit(Z.shape[1])
            if k is not None and result.rank > k:
                maps = maps_in(samples, classes, white.coordinates)(k)
                maps = starts_at_rank(result.factor, k, Z.T @ Z, start, maps)
                result, self.n_active_ = rounds.at_rank(result, maps)
        self._finish(result, *self._shrunk(result.factor, Z.T @ Z, white, span))

    def _fit_triplets(self, span: Span, triplets: Indices) -> None:
        samples, similar = span.X, targets_of(triplets)
        self.ridge_ = ridge_for(self.ridge, samples)
        rough = self._shrink_by_triplets(samples, triplets)
        white = whitening(samples, similar, ridge=self.ridge_)
        Z = white.samples(samples)
        problem = lmnn_of_triplets(Z, similar, triplets, float(self.lam), pull=1.0)
        maps = maps_in(samples, None, white.coordinates)
        start = self._begin(span, rough, white)
        result = self._minimize_at_rank(problem, self._limit(Z.shape[1]), Z.T @ Z, maps, init=start)
        self.n_active_ = int(np.sum(problem.objective.image(result.factor).z < 1.0))
        self._finish(result, *self._shrunk(result.factor, Z.T @ Z, white, span))
