"""The soft minimum: smooth, and not separable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from gramian.losses.base import Array


class SoftMin:
    """g(z) = μ ln Σ_e exp(−z_e / μ), DML-eig's smoothing of max_e (−z_e).

    The exponentials are shifted by the smallest z, so that μ = 1e-5 does not underflow;
    g lies within μ ln p above −min z.
    """

    quadratic = False
    infimum = -np.inf
    size = None

    def __init__(self, *, mu: float) -> None:
        if not 0 < mu < np.inf:
            raise ValueError(f"the soft minimum needs mu > 0 and finite, got {mu}")
        self.mu = float(mu)
        self.smoothness = 1.0 / self.mu

    def value(self, z: Array) -> float:
        return float(self.mu * logsumexp(-z / self.mu))

    def gradient(self, z: Array) -> Array:
        return -softmax(-z / self.mu)

    def curvature(self, z: Array, directions: Array) -> Array:
        """Dᵀ (diag(s) − ssᵀ) D / μ with s the soft-max weights."""
        share = softmax(-z / self.mu)
        mean = share @ directions
        return ((directions * share[:, None]).T @ directions - np.outer(mean, mean)) / self.mu

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        share = softmax(-z / self.mu)
        return lambda d: share * (d - share @ d) / self.mu

    def smoothed(self, mu: float) -> SoftMin:
        return SoftMin(mu=mu)

    def conjugate(self, w: Array) -> float:
        """μ Σ s ln s on the simplex s = −w ≥ 0, Σ s = 1; infinite elsewhere."""
        share = -w
        if np.any(share < 0) or abs(np.sum(share) - 1.0) > 1e-9:
            return np.inf
        return float(self.mu * np.sum(xlogy(share, share)))
