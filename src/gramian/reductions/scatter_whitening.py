"""Samples in coordinates where the scatter of similar pairs is the identity, DML-eig §2.1.

With X_S = GGᵀ and R = G⁻ᵀ the metric is M = RSRᵀ: it has for the samples X the distances that S
has for XR, and ⟨X_S, M⟩ = tr S.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gramian.common.types import Array
from gramian.reductions.base import Substitution

MIN_PIVOT_RATIO = 1e-7
"""Pivots of the scatter below this fraction of the largest are rounding errors."""


@dataclass(frozen=True)
class ScatterWhitening(Substitution):
    """M = RSRᵀ."""

    matrix: Array
    """R."""

    @property
    def plain(self) -> Array:
        """R⁻¹, the factor of the Euclidean metric in these coordinates."""
        return np.linalg.inv(self.matrix)

    def samples(self, X: Array) -> Array:
        """XR, dense."""
        return np.ascontiguousarray(X @ self.matrix)

    def coordinates(self, L: Array) -> Array:
        """R⁻¹L."""
        return np.linalg.solve(self.matrix, L)


def scatter_whitening(
    scatter: Array, ridge: float = 0.0, rounding: Array | float = 0.0
) -> ScatterWhitening:
    """R = G⁻ᵀ for the Cholesky factor G of X_S + δI, δ = `ridge` times the mean eigenvalue of X_S.

    Raises ValueError if that is singular, or if no diagonal entry of X_S exceeds its `rounding`.
    """
    order = scatter.shape[0]
    if not np.any(np.diag(scatter) > rounding):
        raise ValueError("the points of every similar pair are identical: nothing to learn from")
    shift = ridge * float(np.trace(scatter)) / order
    try:
        G = scipy.linalg.cholesky(scatter + shift * np.eye(order), lower=True)
        R = scipy.linalg.solve_triangular(G, np.eye(order), lower=True).T
        singular = np.min(np.diag(G)) <= MIN_PIVOT_RATIO * np.max(np.diag(G))
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        raise ValueError(
            "the scatter X_S of the similar pairs is singular: some direction of the features "
            "does not differ within any similar pair. Pass ridge=1e-3, or reduce the features "
            "by PCA first"
        )
    return ScatterWhitening(np.ascontiguousarray(R))
