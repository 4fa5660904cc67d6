"""Unfolding along side information."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length

from gramian.arrays.samples import refuse_odd_labels, warn_of_missing_names
from gramian.common.types import Array
from gramian.manifold.mvu import MVU


class ColoredMVU(MVU):
    """Unfold samples along their labels: maximises the variance explained by side information.

    Solves min Σ_e (d_M(e) − D_e)² − ν tr(HKHM) over M ⪰ 0, the coloured variant of BILGO eq. (11),
    with K = YYᵀ, where Y holds the one-hot labels, or the given numbers of each sample. Variance is
    maximised only in directions that agree with K.

    Parameters
    ----------
    n_components, n_neighbors, lam, max_edge_error, connect, metric, approximate, rank,
    progress :
        As in `MVU`; "auto" scales ν by the smoothest eigenvector along y.
    solver, tol, max_iter, time_limit, random_state, device :
        As in `gramian.minimize`.

    Attributes
    ----------
    embedding_, kernel_factor_, explained_variance_ratio_, edge_error_, graph_, lam_ :
        As in `MVU`.
    result_, certificate_, n_features_in_, feature_names_in_, n_iter_ :
        As in `MVU`.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None) -> ColoredMVU:
        """Unfold the samples along y.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : labels of shape (n_samples,), or numbers of shape (n_samples,) or (n_samples, q)
        """
        if y is None:
            raise ValueError(
                "ColoredMVU requires y to be passed, but the target y is None: MVU needs none"
            )
        X = self._samples(X)
        check_consistent_length(X, y)
        return self._fit(X, side_information(y))


def side_information(y: Any) -> Array:
    """Y centred and at unit scale: one-hot labels, or standardised numbers."""
    refuse_odd_labels(y)
    warn_of_missing_names(y, "leave these out")
    values = np.asarray(y.toarray() if sp.issparse(y) else y)
    if values.dtype.kind in "fiu" or values.ndim != 1:
        values = check_array(values, ensure_2d=False, dtype=None, input_name="y")
    if values.ndim == 1 and type_of_target(values) != "continuous":
        _, classes = np.unique(values, return_inverse=True)
        Y = np.eye(int(classes.max()) + 1)[classes]
    else:
        Y = check_array(values.reshape(len(values), -1), dtype=float, input_name="y")
    Y = Y - Y.mean(axis=0)
    scale = np.sqrt(np.mean(Y * Y, axis=0))
    if not np.any(scale > 0):
        raise ValueError("y is the same for all samples: there is nothing to unfold along")
    return np.ascontiguousarray(Y[:, scale > 0] / scale[scale > 0])
