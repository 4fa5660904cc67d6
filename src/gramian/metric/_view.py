"""Samples in the coordinates of the learner, without constant columns.

Distances only depend on directions in which the samples vary. All quantities that depend on the
number of directions (a ridge, a floor, the unit of a weight) count only these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.dense import eigh, row_signs
from gramian.metric._canonical import varying_columns
from gramian.reductions.span import Span, dense_span, span_of

Array = NDArray[np.floating]

EPS = float(np.finfo(float).eps)

RESOLVED = 1e-12
"""Smallest ratio of eigenvalues of XᵀX for which its eigenvectors keep the digits of the samples;
below it the features themselves are used as coordinates."""


def varying_view(X: Any, *, center: bool) -> Span:
    """`span_of` the columns that vary; for samples that are not centred, of all columns."""
    columns = varying_columns(X) if center else None
    if columns is None:
        return span_of(X, center=center)
    view = span_of(_chosen(X, columns), center=True)
    return replace(view, matrix=_back(columns, X.shape[1], view.matrix))


def principal_view(X: Any, name: str) -> Span:
    """Dense centred samples along their principal axes, without constant directions.

    The coordinates are invariant, up to rounding, to rotation and permutation of features, and to
    constant or repeated features.
    """
    columns = varying_columns(X)
    if columns is None:
        return along_axes(dense_span(X, name))
    span = dense_span(_chosen(X, columns), name)
    return along_axes(replace(span, matrix=_back(columns, X.shape[1], span.matrix)))


def along_axes(span: Span) -> Span:
    """Dense centred samples along their principal axes, if these are well conditioned."""
    axes = _principal_axes(span.X)
    if axes is None:
        return span
    matrix = axes if span.matrix is None else span.matrix @ axes
    return Span(matrix, np.ascontiguousarray(span.X @ axes), centered=True)


def _chosen(X: Any, columns: NDArray[np.intp]) -> Any:
    """Some columns, in the memory order of the array."""
    return X[:, columns] if sp.issparse(X) else np.take(X, columns, axis=1)


def _back(columns: NDArray[np.intp], d: int, basis: Any) -> Any:
    """The matrix that maps some of d features, or a basis of those, back to all."""
    ones = np.ones(columns.size)
    chosen = sp.csr_array((ones, (columns, np.arange(columns.size))), shape=(d, columns.size))
    return chosen if basis is None else chosen @ basis


def _principal_axes(samples: Array) -> Array | None:
    """Principal axes (d × r) of centred samples of rank r, with signs determined by the samples.

    None if the scales of the features differ too much, or one is 0. The rank is that of the
    normalised columns, so that features with small units count.
    """
    gram = samples.T @ samples
    lengths = np.sqrt(np.diag(gram))
    if not np.all(lengths > 0):
        return None
    values, vectors = eigh(gram / np.outer(lengths, lengths))
    kept = values > values[-1] * EPS * (gram.shape[0] + np.sqrt(samples.shape[0])) * 4
    basis = None
    if not kept.all():
        basis = np.linalg.qr(lengths[:, None] * vectors[:, kept])[0]
        gram = basis.T @ gram @ basis
    values, axes = eigh(0.5 * (gram + gram.T))
    if not values[0] > RESOLVED * values[-1]:
        return basis
    axes = axes[:, ::-1] if basis is None else basis @ axes[:, ::-1]
    signs = row_signs((samples @ axes).T)
    return np.asarray(axes * signs)
