"""Large margin nearest neighbours: targets near, all impostors beyond a margin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.common import clock
from gramian.common.parameters import ABOVE_ZERO, TOLERANCE
from gramian.constraints import as_pairs, check_class_sizes, same_class_neighbors
from gramian.estimators.active_set import ActiveSet
from gramian.estimators.parameters import with_parameters
from gramian.methods.room import samples_place
from gramian.metric._few_columns import maps_in
from gramian.metric._lmnn_task import LMNNTask
from gramian.metric._local import LOCAL_RULES, neighbor_metric, ridge_for, targets_of
from gramian.metric._shrinkage import ShrunkLearner
from gramian.problem import Problem
from gramian.problems.local_metric import lmnn_of_triplets, whitening
from gramian.result import Result

Array = NDArray[np.floating]


@with_parameters
class LMNN(ShrunkLearner):
    """Learn the metric that has each sample's targets near and all impostors beyond a margin.

    Solves min Σ_S d_M(i, j) + λ Σ_R max(0, 1 − d_M(i, l) + d_M(i, j))² over M ⪰ 0 (BILGO eq. 8),
    S the samples with their k nearest of the same class, R those pairs with *every* sample l of
    another class. Only triplets that are violated matter; they are found again as the metric
    moves, and the certificate is that of the whole problem: the value counts all triplets, and
    leaving some out only lowers the bound.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all that M has.
    n_neighbors : int
        The number k of targets.
    lam : float
        The weight λ of the impostors.
    shrinkage : float in [0, 1] or "auto"
        α of M = (1 − α) M̂ + α c I, M̂ the optimum of the problem above and c I the multiple of
        Euclid's metric of the same mean square over the samples: 0 is the model as it is, 1 is
        to do nothing. "auto" lets held-out neighbours or triplets choose, Euclid's metric among
        what they choose from; it is 0 where `rank` is given, and where there is too little to
        hold out.
    neighbor_metric : {"kta", "euclidean"}
        Where targets are nearest: after a quick alignment with the labels (`KTA`), or in the
        features as they are.
    ridge : float or "auto"
        δ of a term δ·ḡ·tr M that keeps M bounded where targets do not differ, ḡ the mean
        eigenvalue of the scatter of S. "auto" is 1e-3, or 1 where the samples span more than half
        as many directions as they are.
    rank : int, optional
        The largest rank of M; the certificate then says what the limit can cost. A `shrinkage`
        above 0 would make M of full rank, and is refused beside a rank.
    init : fitted metric learner, optional
        Start from its metric.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples.
    ridge_ : float
        The ridge used.
    shrinkage_ : float
        α. `result_` and `certificate_` are those of M̂.
    path_ : EvidencePath
        The α that were tried and their held-out errors, where shrinkage="auto" found enough to
        hold out; `print` says what was chosen, and where nothing was gained.
    n_active_ : int
        Triplets that the fitted metric violates.
    result_ : Result
        Its seconds are those of the whole fit, its history that of the last round.
    certificate_ : Certificate
        How far from the optimum M can be.
    classes_, n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.

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

    n_neighbors: int = 3
    lam: float = 1.0
    shrinkage: float | str = "auto"
    neighbor_metric: str = "kta"
    ridge: float | str = "auto"
    rank: int | None = None
    init: Any = None

    _rules: ClassVar = {**LOCAL_RULES, "lam": ABOVE_ZERO, "tol": TOLERANCE}
    _rough_tol: ClassVar[float] = 0.05  # F is within 1e-3 of its optimum then

    def fit(self, X: Any, y: ArrayLike) -> LMNN:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        """
        started = clock.now()
        X, classes = self._labelled(X, y)
        self._check(X.shape[0])
        check_class_sizes(classes, self.classes_, self.n_neighbors)
        span, classes, _ = self._arranged(X, classes)
        samples = span.X
        self.ridge_ = ridge_for(self.ridge, samples)
        quick, units = neighbor_metric(
            samples, classes, self.neighbor_metric, units=self.aligned_by, device=self.device
        )
        there, mapped = samples_place(samples, self.device), samples @ quick
        near = same_class_neighbors(mapped, classes, self.n_neighbors, device=self.device)
        rough = self._shrink_by_labels(samples, classes, units=units, ridge=self.ridge_)
        white = whitening(samples, as_pairs(near), ridge=self.ridge_)
        Z = white.samples(samples)
        with there.room():
            task = LMNNTask.at(there, Z, classes, near, float(self.lam), white.coordinates(quick))

            def solve(problem: Problem, **options: Any) -> Result:
                with clock.reserve(task.standing.seconds):  # for the search at its optimum
                    return self._minimize(problem, **options)

            rounds = ActiveSet(task, solve, self.tol, self.rank)
            result, self.n_active_ = rounds.run(self._begin(span, rough, white))
        result = replace(result, seconds=clock.elapsed(started))
        self._finish(result, *self._shrunk(result.factor, Z, white, span))
        return self

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> LMNN:
        """Learn the metric from triplets (anchor, same, other): S are their pairs (anchor, same).

        Parameters
        ----------
        triplets : array of shape (n_triplets, 3, n_features), or (n_triplets, 3) indices in X
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        X, indices = self._tripled(triplets, X)
        self._check(X.shape[0])
        span = self._dense_view(X)
        samples = span.X
        similar = targets_of(indices)
        self.ridge_ = ridge_for(self.ridge, samples)
        rough = self._shrink_by_triplets(samples, indices, ridge=self.ridge_)
        white = whitening(samples, similar, ridge=self.ridge_)
        Z = white.samples(samples)
        problem = lmnn_of_triplets(Z, similar, indices, float(self.lam), pull=1.0)
        maps = maps_in(samples, None, white.coordinates)
        result = self._minimize_at_rank(problem, maps, init=self._begin(span, rough, white))
        self.n_active_ = int(np.sum(problem.objective.image(result.factor).z < 1.0))
        self._finish(result, *self._shrunk(result.factor, Z, white, span))
        return self
