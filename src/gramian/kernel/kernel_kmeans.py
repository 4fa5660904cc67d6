"""k-means in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from gramian.common.memory import check_memory
from gramian.common.parameters import whole_number
from gramian.common.random_state import for_sklearn
from gramian.common.types import Array
from gramian.estimators.fitting import validated
from gramian.estimators.kernel_functions import (
    check_kernel,
    kernel_values,
    value_rounding,
    with_bandwidth,
)
from gramian.estimators.parameters import with_parameters
from gramian.estimators.persistence import Kept
from gramian.kernel._clusters import k_means
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.reductions.span import kernel_span

MATRICES = 5
"""Number of n × n matrices that a fit with a kernel stores."""


@with_parameters
class KernelKMeans(Kept, ClusterMixin, BaseEstimator):
    """k-means in the feature space of a kernel.

    With K = ΦΦᵀ, computed by an eigenvalue decomposition, it applies scikit-learn's k-means to the
    rows of Φ, with its seeding and starts. For the linear kernel Φ is X itself, such as the factor
    of a learned kernel.

    Parameters
    ----------
    n_clusters : int
    kernel : str or callable
        "linear", "precomputed" (X is then K in `fit`, and the kernel of new samples with those of
        the fit in `predict`), another kernel known to `sklearn.metrics.pairwise.pairwise_kernels`,
        or a function of two sample matrices.
    kernel_params : dict, optional
        Its parameters; the default γ of "rbf" is 1/Σ_j var(X_j), the inverse of the total variance
        of the columns.
    n_init : int
        Number of initialisations, of which the best is kept.
    random_state :
        As in `sklearn.cluster.KMeans`, except that None means seed 0.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
    cluster_centers_ : array of shape (n_clusters, n_directions)
        In coordinates of the feature space; for the linear kernel in features.
    inertia_ : float
        The sum of squared distances to the centres, in feature space.
    n_iter_, n_features_in_, feature_names_in_ :
        As in scikit-learn.
    """

    n_clusters: int = 8
    kernel: str | Callable[..., Array] = "linear"
    kernel_params: dict[str, Any] | None = None
    n_init: int = 10
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X: Any, y: Any = None) -> KernelKMeans:
        """Find the clusters of the samples.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features), or K if precomputed
        y : ignored
        """
        count = whole_number(self.n_clusters, "n_clusters")
        X = self._samples(X, reset=True)
        if count > X.shape[0]:
            raise ValueError(f"n_clusters={count}, but there are {X.shape[0]} samples")
        starts = whole_number(self.n_init, "n_init")
        means = KMeans(count, n_init=starts, random_state=for_sklearn(self.random_state))
        rows = X if self.kernel == "linear" else self._features(X)
        self.labels_, self.cluster_centers_ = k_means(means, rows)
        self.inertia_, self.n_iter_ = float(means.inertia_), means.n_iter_
        return self

    def predict(self, X: Any) -> NDArray[np.integer]:
        """The clusters of samples, including new ones."""
        check_is_fitted(self)
        X = self._samples(X, reset=False)
        if self.kernel != "linear":
            X = self._kernel(X) @ self._basis
        return np.asarray(pairwise_distances_argmin(X, self.cluster_centers_))

    def _samples(self, X: Any, *, reset: bool) -> Any:
        sparse = False if self.kernel == "precomputed" else "csr"
        X = validated(self, X, sparse=sparse, reset=reset)
        if self.kernel == "precomputed" and reset:
            if X.shape[0] != X.shape[1]:
                raise ValueError(f"a precomputed kernel must be square, got {X.shape}")
            as_symmetric(X, "X")
        return X

    def _features(self, X: Any) -> Array:
        """Φ, and the basis that maps new samples."""
        Phi, self._basis = feature_map(
            self, X, "map the samples first, for example with gramian.spectral.LowRankKernel"
        )
        return Phi

    def _kernel(self, X: Any) -> Array:
        if self.kernel == "precomputed":
            return np.asarray(X, dtype=float)
        return kernel_values(self.kernel, self.kernel_params_, X, self.X_fit_)


def feature_map(estimator: Any, X: Any, advice: str) -> tuple[Array, Array]:
    """Φ with K = ΦΦᵀ for the kernel of an estimator, and a basis B with Φ = KB.

    Sets `X_fit_` and `kernel_params_`, unless K is precomputed.
    """
    n, kernel, eps = X.shape[0], estimator.kernel, float(np.finfo(float).eps)
    held = f"{type(estimator).__name__} holds {n} × {n} matrices"
    check_memory(8 * MATRICES * n * n, held, advice)
    K = X
    if kernel != "precomputed":
        check_kernel(kernel, estimator.kernel_params)
        params = estimator.kernel_params_ = with_bandwidth(kernel, estimator.kernel_params, X)
        estimator.X_fit_ = X
        K, eps = kernel_values(kernel, params, X, X), value_rounding(kernel, params, X)
    found = kernel_span(np.asarray(K, dtype=float), center=False, eps=eps)
    if found is None:
        raise ValueError("the kernel has no positive eigenvalue: there is nothing to learn")
    return found
