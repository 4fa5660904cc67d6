"""The logistic loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace
from gramian.losses.base import Array, Separable
from gramian.losses.functions import entropy, expit, positive, softplus, where


class Logistic(Separable):
    """g(z) = Σ_e ω_e ln(1 + exp(m_e − z_e))."""

    steepest = 0.25

    def __init__(self, margin: ArrayLike = 0.0, *, weight: ArrayLike = 1.0) -> None:
        super().__init__(margin, weight=weight)

    def _phi(self, s: Array) -> Array:
        return softplus(-s)

    def _slope(self, s: Array) -> Array:
        return -expit(-s)

    def _bend(self, s: Array) -> Array:
        return expit(s) * expit(-s)

    def _far(self, s: Array) -> Array:
        return positive(-s)

    def _conjugate_phi(self, u: Array) -> Array:
        """(−u) ln(−u) + (1 + u) ln(1 + u) on [−1, 0], the entropy; infinite elsewhere."""
        share = namespace(u).clip(-u, 0.0, 1.0)
        both = entropy(share) + entropy(1 - share)
        return where((u <= 0) & (u >= -1), both, np.inf)
