"""Linear separation of pairs as a metric learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.eigen import leading_eigenpair
from gramian.memory import check_memory
from gramian.metric._base import MetricLearner
from gramian.metric._coordinates import MATRICES, Coordinates, coordinates
from gramian.metric.kta import check_weight
from gramian.objectives.matrices import Dense, Scaled, SymmetricMatrix
from gramian.problems.local_metric import pair_scatter
from gramian.problems.metric import linear_separation_from_scatter, signed_scatter
from gramian.problems.moments import column_means, gram_of


class LinearSeparation(MetricLearner):
    """Learn the metric that draws pairs of a class together and pushes other pairs apart.

    Solves min ‖M − I‖² + λ⟨L_S, M⟩ over M ⪰ 0 (LRO eq. 6), where ⟨L_S, M⟩ is the sum of d_M over
    the pairs within a class less its sum over the pairs across. With fewer samples than features
    the problem is solved in their span, outside of which M = I; `components_` then holds the
    part within the span.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all. M itself, and the certificate, are those of the full metric.
    lam : float or "auto"
        The weight λ of the pairs; "auto" is 2/‖L_S‖, where the direction that separates worst
        is just given up or the one that separates best just doubled.
    regularizer : {"identity", "frobenius"}
        ‖M − I‖² or ‖M‖². (With tr M this model is linear and has no minimum.)
    rank : int, optional
        The largest rank of M; the certificate then says what the limit can cost. With more than
        3000 features and samples it is 40 unless told.
    init : fitted metric learner, optional
        Start from its metric instead of from nothing.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples.
    lam_ : float
        The weight used.
    result_ : Result
    certificate_ : Certificate
        How far from the optimum M can be.
    classes_ : array
    n_features_in_, feature_names_in_, n_iter_ :
        As in scikit-learn.
    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        lam: float | str = "auto",
        regularizer: str = "identity",
        solver: str = "auto",
        rank: int | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        init: Any = None,
        random_state: Any = None,
        progress: bool = False,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.regularizer = regularizer
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.init = init
        self.random_state = random_state
        self.progress = progress
        self.device = device

    def fit(self, X: Any, y: ArrayLike) -> LinearSeparation:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        """
        X, classes = self._labelled(X, y)
        self._check(X.shape[0])
        # The scatter of pairs does not change when the samples are shifted, so centring is free.
        view = coordinates(X, center=True)
        return self._fit_to(view, signed_scatter(view.X, classes))

    def fit_pairs(self, pairs: Any, same: ArrayLike, *, X: Any = None) -> LinearSeparation:
        """Learn the metric from pairs that are the same or not, and the threshold of `predict`.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, n_features), or (n_pairs, 2) indices of samples in X
        same : booleans or ±1 of shape (n_pairs,)
        X : array, sparse matrix or frame of shape (n_samples, n_features), optional
        """
        samples, similar, dissimilar = self._paired(pairs, same, X)
        self._check(samples.shape[0])
        view = coordinates(samples, center=True)
        d = view.X.shape[1]
        check_memory(
            8 * MATRICES * d * d,
            f"LinearSeparation.fit_pairs works on {d} × {d} matrices",
            "reduce the features first, for example with sklearn.decomposition.TruncatedSVD",
        )
        signs = np.repeat([1.0, -1.0], [len(similar), len(dissimilar)])
        both = np.vstack([similar, dissimilar])
        self._fit_to(view, Dense(pair_scatter(view.X, both, weights=signs)))
        return self.calibrate(pairs, same, X=X)

    def _check(self, n_samples: int) -> None:
        self._check_sizes(n_samples)
        check_weight(self.lam)
        if self.regularizer not in ("identity", "frobenius"):
            raise ValueError(
                f'regularizer must be "identity" or "frobenius", got {self.regularizer!r}'
            )

    def _fit_to(self, view: Coordinates, scatter: SymmetricMatrix) -> LinearSeparation:
        self.lam_ = self._weight(scatter)
        problem = linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)
        mean = None if view.centered else column_means(view.X)
        self._solve(problem, gram_of(view.X, mean), view.basis)
        return self

    def _weight(self, scatter: Any) -> float:
        if self.lam != "auto":
            return float(self.lam)
        ends = (leading_eigenpair(Scaled(scatter, s), tol=1e-3, random_state=0) for s in (1, -1))
        norm = max(end.value for end in ends)
        return 2.0 / norm if norm > 0 else 1.0
