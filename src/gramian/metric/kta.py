"""Kernel-target alignment as a metric learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.common import clock
from gramian.common.parameters import NOT_NEGATIVE, one_of, or_auto
from gramian.estimators.parameters import with_parameters
from gramian.linalg import conjugate_gradient
from gramian.metric._class_weight import CLASS_WEIGHT
from gramian.metric._few_columns import maps_of_moments
from gramian.metric._kernel import KernelMetricLearner
from gramian.metric._partial_fit import PartialAlignment
from gramian.metric._selection import choose_weight, least_weight, projected, unit
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import Moments, moments
from gramian.reductions.span import Span

Array = NDArray[np.floating]


START_STEPS, START_FALL = 30, 1e-2
"""Steps of conjugate gradient for the start of a large problem, and the residual to end them at."""


@with_parameters
class KTA(PartialAlignment, KernelMetricLearner):
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
        The weight λ of the labels; 0 is Euclid's metric. "auto" takes the best of a short path by
        the errors of 3 nearest neighbours on held-out training samples, which has to be clearly
        better than λ = 0 (with "identity" and no `rank`) to be taken. The choice depends neither
        on the order of the samples, nor on the names of the classes, nor on constant features.
        With more than 3000 features and samples it is 1/ḡ², ḡ the mean nonzero eigenvalue of XᵀX.
    regularizer : {"identity", "frobenius", "trace"}
        ‖M − I‖², ‖M‖² or tr M.
    center : bool
        Subtract the mean, without forming the difference, so that shifting the data changes
        nothing.
    kernel : str or callable, optional
        Learn in the feature space of a kernel of scikit-learn's, by name, or of a function of
        two sample matrices that gives the matrix of kernel values. The model is exact in the
        span of the samples, and holds n × n matrices.
    kernel_params : dict, optional
        Parameters of the kernel; γ of "rbf" is 1/Σ_j var(X_j) unless given.
    class_weight : "balanced" or dict, optional
        How often the samples of each class count, times `sample_weight`: "balanced" makes all
        classes count alike, n/(k n_c) for each of the n_c samples of one of k classes; a dict has
        weights by classes, 1 where it has none. Votes that choose lam="auto" count once.
    rank : int, optional
        The largest rank of M. F is minimised over factors with so many columns, from several
        starting maps (the optimum of any rank, cut; discriminants; principal directions), and the
        certificate compares with the optimum of any rank: it says what the limit can cost.
        With more than 3000 features and samples it is 40 by default.
    init : fitted metric learner, optional
        Start from its metric instead of from nothing.
    solver, tol, max_iter, time_limit, random_state, progress, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples. With a kernel
        `dual_components_`, their weights of the samples of the fit, stands in its place.
    lam_ : float
        The weight used.
    moments_ : dict
        The sums that `partial_fit` adds up, after it.
    path_ : EvidencePath
        The λ that were tried and their held-out errors, where lam="auto"; `print` says what was
        chosen, and where nothing was gained.
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

    lam: float | str = "auto"
    regularizer: str = "identity"
    center: bool = True
    kernel: str | Callable[..., Array] | None = None
    kernel_params: dict[str, Any] | None = None
    class_weight: Any = None
    rank: int | None = None
    init: Any = None

    _rules: ClassVar = {
        "lam": or_auto(NOT_NEGATIVE),
        "regularizer": one_of("identity", "frobenius", "trace"),
        "class_weight": CLASS_WEIGHT,
    }

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KTA:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts: the optimum with weight 2 is that with the row twice, with
            weight 0 that without the row, for a given `lam` (and γ of a kernel). What lam="auto"
            holds out counts once. Weights of classes are the parameter `class_weight`.
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        units: float | None = None,
        votes_on: Any = None,
    ) -> KTA:
        """Fit with a known λ in place of lam="auto", in `units` of 1/ḡ² (`unit`).

        `votes_on` is the device of the search for held-out neighbours, default `device`.
        """
        X, classes = self._labelled(X, y)
        X, classes, weights = self._weighed(X, classes, sample_weight)
        self._check(X.shape[0])
        X, classes, weights, _ = self._in_order(X, classes, weights)
        view = self._view(X, center=self.center)
        # The coordinates of a span are less the mean of samples that count alike.
        center = self.center and not (view.centered and weights is None)
        data = moments(
            view.X, classes, center=center, near=self.center, weights=weights, device=self.device
        )
        device = self.device if votes_on is None else votes_on
        self.lam_ = self._weight(view, data, classes, center, weights, units, device)
        problem = kta_from_moments(data, self.lam_, regularizer=self.regularizer)

        def maps(k: int) -> list[Array]:
            return maps_of_moments(data.gram.dense(), data.sums, data.counts, k)

        self._solve(problem, data.gram, view.matrix, self._first(view, data), maps)
        return self

    def _first(self, view: Span, data: Moments) -> Array | None:
        """A factor to start from: of a large problem, and of a fit that was interrupted."""
        if not view.exact:
            return regression(data, self.lam_) if self.solver == "auto" and self.lam_ > 0 else None
        if clock.interrupted():
            return projected(data, self.lam_, self.regularizer, self.rank)
        return None

    def _weight(
        self,
        view: Span,
        data: Moments,
        classes: Any,
        center: bool,
        weights: Array | None,
        units: float | None,
        device: Any,
    ) -> float:
        self._forget("path_")
        if self.lam != "auto":
            return float(self.lam)
        self._unit = unit(data, classes.size)
        if units is not None or not view.exact:
            return self._unit * (1.0 if units is None else units)
        try:
            self.path_ = choose_weight(
                data,
                view.X,
                classes,
                centered=center,
                weights=weights,
                regularizer=self.regularizer,
                n_components=self.n_components,
                rank=self.rank,
                device=device,
            )
        except KeyboardInterrupt:  # before any λ was judged
            clock.interrupt()
            return least_weight(data, classes.size, self.regularizer, self.rank)
        return self.path_.value


def regression(data: Moments, lam: float) -> Array:
    """A factor near the optimum: L = (XᵀX + λ^{-1/2}I)⁻¹XᵀY, about one step of the way.

    Where XᵀX and XᵀYYᵀX share an eigenvector, of values g and s², the optimum is
    √((1 + λs²)/(1 + λg²)) along it, and this is s√λ/(1 + g√λ). Few steps of conjugate gradient do.
    """
    shift = lam**-0.5
    return conjugate_gradient(
        lambda L: data.gram @ L + shift * L, data.sums, steps=START_STEPS, tol=START_FALL, axis=0
    ).x
