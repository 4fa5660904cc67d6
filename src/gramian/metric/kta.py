"""Kernel-target alignment as a metric learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.places import place_of
from gramian.arrays.samples import columns_of
from gramian.common import clock
from gramian.common.parameters import FLAG, one_of
from gramian.common.types import Array
from gramian.estimators.parameters import with_parameters
from gramian.linalg import conjugate_gradient
from gramian.metric._few_columns import starting_maps
from gramian.metric._input import canonical_labels
from gramian.metric._partial_fit import PartialFit
from gramian.metric._selection import least_weight, projected, raw_keys, unit, weigh
from gramian.metric._view import KernelMetricLearner
from gramian.problem import Problem
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import Moments, moments, on_device, sent
from gramian.reductions.span import Span

START_STEPS, START_FALL = 30, 1e-2
"""Steps of conjugate gradients for the start of a large problem, and their residual tolerance."""


@with_parameters
class KTA(KernelMetricLearner, PartialFit):
    """Learn the metric whose kernel XMXᵀ is closest to the labels' kernel YYᵀ.

    Solves min ‖M − I‖² + λ‖XMXᵀ − YYᵀ‖² over M ⪰ 0 (BILGO eq. 5, LRO eq. 7), X minus its mean and Y
    the one-hot labels. The samples are only used to form XᵀX and XᵀY. With fewer samples than
    features the problem is solved in their span, outside of which M = I for all labels;
    `components_` then contains the part within the span.

    Parameters
    ----------
    lam : float or "auto"
        The weight λ of the labels; 0 gives the Euclidean metric. "auto" takes the best of a short
        path by the errors of 3 nearest neighbours on held-out training samples, if it is
        significantly better than λ = 0 (with "identity"). With a limited rank the best is taken at
        that rank, and λ = 0 gives the principal directions. The choice is independent of the order
        of the samples, the names of the classes, and constant features. With more than 3000
        features and samples it is 1/ḡ², ḡ the mean nonzero eigenvalue of XᵀX.
    regularizer : {"identity", "frobenius", "trace"}
        ‖M − I‖², ‖M‖² or tr M.
    center : bool
        Subtract the mean, without forming the difference, so that the metric is invariant to
        translations of the data.

    Attributes
    ----------
    lam_ : float
        The weight used.

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

    center: bool = True

    _rules: ClassVar = {
        "regularizer": one_of("identity", "frobenius", "trace"),
        "center": FLAG,
    }

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KTA:
        """Learn the metric from labelled samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), −1 if unknown
        sample_weight : array of shape (n_samples,), optional
            Multiplicities: the optimum with weight 2 is that with the row twice, with weight 0 that
            without the row, for a given `lam` (and γ of a kernel). Held-out samples of lam="auto"
            are not weighted. Weights of classes are the parameter `class_weight`.
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
        X, classes, weights = self._weighed(X, y, sample_weight)
        self._check(X.shape[0])
        order: NDArray[np.integer] = np.arange(classes.size)
        columns = columns_of(X)
        if self.lam == "auto":  # held-out samples do not depend on the order of the rows
            order, number = canonical_labels(X, classes, weights, columns.varying)
            classes = number[classes]
        view = self._view(X, center=self.center, columns=columns)
        view = replace(view, X=sent(view.X, self.device))
        # The coordinates of a span are centred for equal weights.
        center = self.center and not (view.centered and weights is None)
        data = moments(
            view.X, classes, center=center, near=self.center, weights=weights, device=self.device
        )
        device = self.device if votes_on is None else votes_on
        self.lam_ = self._weight(view, data, classes, center, weights, order, units, device)
        problem = kta_from_moments(data, self.lam_, regularizer=self.regularizer)
        first = self._first(view, data)
        self._solve(problem, data.gram, view.matrix, first, lambda k: starting_maps(data, k))
        return self

    def _first(self, view: Span, data: Moments) -> Array | None:
        """An initial factor, for a large problem or after an interrupt."""
        if not view.exact:
            return regression(data, self.lam_) if self.solver == "auto" and self.lam_ > 0 else None
        if clock.interrupted():
            limit = self._limit(data.order)
            return projected(data, self.lam_, self.regularizer, limit)
        return None

    def _weight(
        self,
        view: Span,
        data: Moments,
        classes: Any,
        center: bool,
        weights: Array | None,
        order: Any,
        units: float | None,
        device: Any,
    ) -> float:
        self._forget("path_")
        if self.lam != "auto":
            return float(self.lam)
        self._unit = unit(data, classes.size)
        if units is not None or not view.exact or data.trace == 0:  # all samples are equal
            return self._unit * (1.0 if units is None else units)
        mean = data.mean if center and data.mean is not None else np.zeros(data.order)

        def rows_of(rows: Any) -> Any:
            if on_device(view.X):
                put = place_of(view.X).put
                return view.X[put(order[rows])] - put(mean)
            chosen = view.X[order[rows]]
            return (chosen.toarray() if sp.issparse(chosen) else chosen) - mean

        try:
            self.path_ = weigh(
                data,
                classes[order],
                raw_keys(view.X, data.spectrum[1][:, -1], mean)[order],
                rows_of,
                counted=None if weights is None else weights[order],
                regularizer=self.regularizer,
                n_components=self.n_components,
                rank=self._limit(data.order),
                device=device,
            )
        except KeyboardInterrupt as error:  # before any λ was evaluated
            clock.caught(error)
            return least_weight(data, classes.size, self.regularizer)
        return self.path_.value

    def _problem_of(self, data: Moments, grams: Array) -> Problem:
        if not self.center:
            raise ValueError("partial_fit centres the samples: center=False is for fit")
        auto = self.lam == "auto"
        self.lam_ = unit(data, int(data.counts.sum())) if auto else float(self.lam)
        return kta_from_moments(data, self.lam_, regularizer=self.regularizer)


def regression(data: Moments, lam: float) -> Array:
    """A factor near the optimum: L = (XᵀX + λ^{-1/2}I)⁻¹XᵀY by a few conjugate gradient steps.

    Along a common eigenvector of XᵀX and XᵀYYᵀX, with eigenvalues g and s², the optimum is
    √((1 + λs²)/(1 + λg²)), and this is s√λ/(1 + g√λ).
    """
    shift = lam**-0.5
    return conjugate_gradient(
        lambda L: data.gram @ L + shift * L, data.sums, steps=START_STEPS, tol=START_FALL, axis=0
    ).x
