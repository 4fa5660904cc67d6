"""Samples in the coordinates of the learner: features, or the span of a kernel's feature space.

Distances only depend on directions in which the samples vary. All quantities that depend on the
number of directions (a ridge, a floor, the unit of a weight) count only these.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.arrays.dense import eigh, row_signs
from gramian.arrays.samples import Columns, chosen_columns, columns_of, near_origin
from gramian.common.memory import check_memory
from gramian.common.parameters import Rule
from gramian.common.types import Array
from gramian.estimators.kernel_functions import (
    PARAMS,
    check_kernel,
    kernel_values,
    value_rounding,
    with_bandwidth,
)
from gramian.estimators.parameters import with_parameters
from gramian.metric._base import MetricLearner
from gramian.metric._evidence import sample_keys
from gramian.reductions.span import MATRICES, Span, dense_span, kernel_span, linear_span, span_of

EPS = float(np.finfo(float).eps)

RESOLVED = 1e-12
"""Smallest ratio of eigenvalues of XᵀX for which its eigenvectors keep the digits of the samples;
below it the features themselves are used as coordinates."""

KERNEL = Rule(
    "None, a function of two sample matrices, or the name of a kernel",
    lambda value: value is None or isinstance(value, str) or callable(value),
)


def varying_view(X: Any, *, center: bool, columns: Columns | None = None) -> Span:
    """`span_of` the columns that vary; for samples that are not centred, of all columns."""
    if not center:
        return span_of(X, center=False)
    columns = columns_of(X) if columns is None else columns
    chosen = _chosen(columns)
    if chosen is None:
        return span_of(X, center=True, shift=columns.far)
    view = span_of(chosen_columns(X, chosen), center=True, shift=columns.far[chosen])
    return replace(view, matrix=_back(chosen, X.shape[1], view.matrix))


def principal_view(X: Any, name: str) -> Span:
    """Dense centred samples along their principal axes, without constant directions.

    The coordinates are invariant, up to rounding, to rotation and permutation of features, and to
    constant or repeated features.
    """
    columns = columns_of(X)
    chosen = _chosen(columns)
    if chosen is None:
        return along_axes(dense_span(X, name, columns.far))
    span = dense_span(chosen_columns(X, chosen), name, columns.far[chosen])
    return along_axes(replace(span, matrix=_back(chosen, X.shape[1], span.matrix)))


def along_axes(span: Span) -> Span:
    """Dense centred samples along their principal axes, if these are well conditioned."""
    found = _principal_axes(span.X)
    if found is None:
        return span
    axes, samples = found
    matrix = axes if span.matrix is None else span.matrix @ axes
    return Span(matrix, np.ascontiguousarray(samples), centered=True)


def by_keys(span: Span) -> tuple[Span, NDArray[np.intp]]:
    """The samples sorted by their keys, and the order."""
    order = np.argsort(sample_keys(span.X), kind="stable")
    return replace(span, X=span.X[order]), order


def _chosen(columns: Columns) -> NDArray[np.intp] | None:
    """The columns that are not constant; None if these are all columns, or none."""
    found = np.flatnonzero(columns.varying)
    return None if found.size in (0, columns.varying.size) else found


def _back(columns: NDArray[np.intp], d: int, basis: Any) -> Any:
    """The matrix that maps some of d features, or a basis of those, back to all."""
    ones = np.ones(columns.size)
    chosen = sp.csr_array((ones, (columns, np.arange(columns.size))), shape=(d, columns.size))
    return chosen if basis is None else chosen @ basis


def _principal_axes(samples: Array) -> tuple[Array, Array] | None:
    """Principal axes (d × r) of centred samples of rank r, with signs determined by the samples,
    and the samples along them.

    None if the scales of the features differ too much, or one is 0. The rank is that of the
    normalised columns, so that features with small units count.
    """
    gram = samples.T @ samples
    lengths = np.sqrt(np.diag(gram))
    if not np.all(lengths > 0):
        return None
    correlation, basis = gram / np.outer(lengths, lengths), None
    least = EPS * (gram.shape[0] + np.sqrt(samples.shape[0])) * 4
    if not _exceeds(correlation, gram.shape[0] * least):
        values, vectors = eigh(correlation)
        kept = values > values[-1] * least
        if not kept.all():
            basis = np.linalg.qr(lengths[:, None] * vectors[:, kept])[0]
            gram = basis.T @ gram @ basis
    values, axes = eigh(0.5 * (gram + gram.T))
    if not values[0] > RESOLVED * values[-1]:
        return None if basis is None else (basis, samples @ basis)
    axes = axes[:, ::-1] if basis is None else basis @ axes[:, ::-1]
    along = samples @ axes
    signs = row_signs(along.T)
    along *= signs
    return axes * signs, along


def _exceeds(A: Array, least: float) -> bool:
    """Whether all eigenvalues clearly exceed this number, by a Cholesky factorisation of A − 2tI,
    which takes a tenth of the time of `eigh`."""
    with suppress(np.linalg.LinAlgError):
        np.linalg.cholesky(A - 2 * least * np.eye(len(A)))
        return True
    return False


@with_parameters
class KernelMetricLearner(MetricLearner):
    """A metric learner with the parameters `kernel` and `kernel_params`.

    With a kernel the metric is M = ΦᵀWAWᵀΦ, where the rows of Φ are the mapped samples and the
    columns of W give an orthonormal basis of their span; A is learned from the coordinates ΦΦᵀW of
    the samples like a metric of features. `dual_components_` (n_components × n_samples) replaces
    `components_`, and the samples of the fit are stored as `X_fit_`.

    Parameters
    ----------
    kernel : str or callable, optional
        Learn in the feature space of a kernel: a name of scikit-learn's, or a function of two
        sample matrices that returns the matrix of kernel values. The model is exact in the span of
        the samples, and stores n × n matrices.
    kernel_params : dict, optional
        Parameters of the kernel; γ of "rbf" is 1/Σ_j var(X_j) by default.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Lᵀ, rows in decreasing order of the variance of the mapped samples. With a kernel it is
        replaced by `dual_components_`, the weights of the samples of the fit in each row.
    """

    kernel: str | Callable[..., Array] | None = None
    kernel_params: dict[str, Any] | None = None

    _rules: ClassVar = {"kernel": KERNEL, "kernel_params": PARAMS}

    def _view(self, X: Any, *, center: bool = True, columns: Columns | None = None) -> Span:
        """Samples in the coordinates of the learner: features, or the kernel's span.

        `columns` are the properties of the features, if known.
        """
        if self.kernel is None:
            return varying_view(X, center=center, columns=columns)
        check_kernel(self.kernel, self.kernel_params)
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
            raise ValueError("the kernel is constant or negative definite: nothing to learn")
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
        init = self._earlier()
        if self.kernel is None or init is None:
            return super()._start(basis)
        check_is_fitted(
            init, "dual_components_", msg="with a kernel, init must be fitted with one too"
        )
        across = self._kernel_values(self.X_fit_, init.X_fit_)
        assert basis is not None
        return np.asarray(basis.T @ (across @ init.dual_components_.T))

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
