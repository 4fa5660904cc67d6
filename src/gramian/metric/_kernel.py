"""Metrics in the feature space of a kernel, in the span of the training samples.

The metric is M = ΦᵀWAWᵀΦ, where Φ holds the mapped samples as rows and the columns of W give an
orthonormal basis of their span; outside the span nothing is learned. A is learned from the
coordinates ΦΦᵀW of the samples like a metric of features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.arrays.samples import near_origin
from gramian.common.memory import check_memory
from gramian.estimators.kernel_functions import (
    check_kernel,
    kernel_values,
    value_rounding,
    with_bandwidth,
)
from gramian.metric._base import MetricLearner
from gramian.metric._view import along_axes, principal_view, varying_view
from gramian.reductions.span import MATRICES, Span, kernel_span, linear_span

Array = NDArray[np.floating]


class KernelMetricLearner(MetricLearner):
    """A metric learner with the parameters `kernel` and `kernel_params`.

    With a kernel, `dual_components_` (n_components × n_samples) replaces `components_`, and the
    samples of the fit are stored as `X_fit_`.
    """

    def _view(self, X: Any, *, center: bool = True) -> Span:
        """Samples in the coordinates of the learner: features, or the kernel's span."""
        if self.kernel is None:
            return varying_view(X, center=center)
        check_kernel(self.kernel)
        n = X.shape[0]
        check_memory(
            8 * MATRICES * n * n,
            f"{type(self).__name__} with a kernel holds {n} × {n} matrices",
            "fit to a part of the samples, or map them first with "
            "sklearn.kernel_approximation.Nystroem",
        )
        self.kernel_params_: dict[str, Any] = with_bandwidth(self.kernel, self.kernel_params, X)
        # Centring a linear kernel only translates the mapped samples if they are shifted.
        self.X_fit_ = near_origin(X).copy() if self.kernel == "linear" and center else X.copy()
        found = linear_span(self.X_fit_, center=center) if self.kernel == "linear" else None
        if found is None:
            values = self._kernel_values(self.X_fit_, self.X_fit_)
            eps = value_rounding(self.kernel, self.kernel_params_, self.X_fit_)
            found = kernel_span(values, center=center, eps=eps)
        if found is None:
            raise ValueError("the kernel is the same for all pairs of samples: nothing to learn")
        samples, weights = found
        return Span(weights, samples, centered=center)

    def _dense_view(self, X: Any) -> Span:
        """`_view` as a dense array, along principal axes."""
        if self.kernel is None:
            return principal_view(X, type(self).__name__)
        view = self._view(X)
        return along_axes(view) if self.kernel == "linear" else view

    def _kernel_values(self, X: Any, Z: Any) -> Array:
        return kernel_values(self.kernel, self.kernel_params_, X, Z)

    def _in_features(self, directions: Array) -> Array:
        return directions if self.kernel is None else np.asarray(directions @ self.X_fit_)

    def _keep(self, directions: Array) -> None:
        if self.kernel is None:
            self._forget("dual_components_", "X_fit_", "kernel_params_")
            super()._keep(directions)
        else:
            self._forget("components_")
            self.dual_components_ = directions

    def _start(self, basis: Array | None) -> Array | None:
        """The directions of `init`, projected on the span of these samples."""
        if self.kernel is None or self.init is None:
            return super()._start(basis)
        check_is_fitted(
            self.init, "dual_components_", msg="with a kernel, init must be fitted with one too"
        )
        across = self._kernel_values(self.X_fit_, self.init.X_fit_)
        assert basis is not None
        return np.asarray(basis.T @ (across @ self.init.dual_components_.T))

    def _mapping(self) -> Callable[[Any], Array]:
        if self.kernel is None:
            return super()._mapping()
        kernel, params = self.kernel, self.kernel_params_
        samples, dual = self.X_fit_, self.dual_components_.T

        def mapped(X: Any) -> Array:
            values = kernel_values(kernel, params, X, samples) @ dual
            return values.astype(X.dtype, copy=False)

        return mapped

    def get_mahalanobis_matrix(self) -> Array:
        """M = LLᵀ as a dense (n_features, n_features) array; not available with a kernel."""
        if self.kernel is not None:
            raise ValueError(
                "a metric learned with a kernel is no matrix of the features: use transform, "
                "pair_distance or get_metric"
            )
        return super().get_mahalanobis_matrix()

    def _most_directions(self, n_samples: int) -> int:
        return super()._most_directions(n_samples) if self.kernel is None else n_samples
