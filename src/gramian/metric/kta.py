"""Kernel-target alignment as a metric learner."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.metric._base import MetricLearner
from gramian.metric._coordinates import Coordinates, coordinates
from gramian.metric._selection import choose_weight, unit
from gramian.problems.metric import REGULARIZERS, kta_from_moments
from gramian.problems.moments import Moments, moments


class KTA(MetricLearner):
    """Learn the metric whose kernel XMXᵀ is closest to the labels' kernel YYᵀ.

    Solves min ‖M − I‖² + λ‖XMXᵀ − YYᵀ‖² over M ⪰ 0 (BILGO eq. 5, LRO eq. 7), X less its mean and Y
    the one-hot labels. After one product XᵀX the samples are not touched again. With fewer
    samples than features the problem is solved in their span, outside of which M = I whatever
    the labels; `components_` then holds the part within the span.

    Parameters
    ----------
    n_components : int, optional
        How many directions `transform` returns, those in which the mapped samples vary most; by
        default all. M itself, and the certificate, are those of the full metric.
    lam : float or "auto"
        The weight λ of the labels. "auto" takes the best of a short path by the errors of 3
        nearest neighbours on held-out training samples; with more than 3000 features and samples
        it is 1/ḡ², ḡ the mean nonzero eigenvalue of XᵀX.
    regularizer : {"identity", "frobenius", "trace"}
        ‖M − I‖², ‖M‖² or tr M.
    center : bool
        Subtract the mean, without forming the difference, so that shifting the data changes
        nothing.
    rank : int, optional
        The largest rank of M; the certificate then says what the limit can cost. With more than
        3000 features and samples it is 40 unless told.
    init : fitted metric learner, optional
        Start from its metric instead of from nothing.
    solver, tol, max_iter, time_limit, random_state, progress :
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

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from gramian.metric import KTA
    >>> X, y = load_wine(return_X_y=True)
    >>> kta = KTA().fit(StandardScaler().fit_transform(X), y)
    >>> kta.certificate_.relative_gap < 1e-4
    True
    """

    def __init__(
        self,
        *,
        n_components: int | None = None,
        lam: float | str = "auto",
        regularizer: str = "identity",
        center: bool = True,
        solver: str = "auto",
        rank: int | None = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        init: Any = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.regularizer = regularizer
        self.center = center
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.init = init
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: ArrayLike) -> KTA:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        """
        X, classes = self._labelled(X, y)
        self._check_sizes()
        check_weight(self.lam)
        if self.regularizer not in REGULARIZERS:
            raise ValueError(
                f"regularizer must be one of {sorted(REGULARIZERS)}, got {self.regularizer!r}"
            )
        view = coordinates(X, center=self.center)
        center = self.center and not view.centered
        data = moments(view.X, classes, center=center)
        self.lam_ = self._weight(view, data, classes, center)
        problem = kta_from_moments(data, self.lam_, regularizer=self.regularizer)
        self._solve(problem, data.gram, view.basis)
        return self

    def _weight(self, view: Coordinates, data: Moments, classes: Any, center: bool) -> float:
        if self.lam != "auto":
            return float(self.lam)
        if not view.exact:
            return unit(data, classes.size)
        return choose_weight(
            data,
            view.X,
            classes,
            centered=center,
            regularizer=self.regularizer,
            n_components=self.n_components,
        )


def check_weight(lam: float | str) -> None:
    """Refuse a λ that is neither "auto" nor a finite number of at least 0."""
    if isinstance(lam, str):
        if lam != "auto":
            raise ValueError(f'lam must be a number or "auto", got {lam!r}')
    elif not (isinstance(lam, Real) and np.isfinite(lam) and lam >= 0):
        raise ValueError(f"lam must be a finite number of at least 0, got {lam!r}")
