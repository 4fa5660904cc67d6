"""Losses that are sums over the entries of z: squares, two hinges, logistic and repulsive."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace
from gramian.common.parameters import positive as above_zero
from gramian.losses.base import Array, LeastSquares, Separable
from gramian.losses.functions import (
    entropy,
    expit,
    indicator,
    negative,
    positive,
    softplus,
    where,
)
from gramian.losses.softened import SoftenedHinge


class Squared(Separable):
    """g(z) = Σ_e ω_e (z_e − t_e)²."""

    quadratic = True
    steepest = 2.0

    def _phi(self, s: Array) -> Array:
        return s * s

    def _slope(self, s: Array) -> Array:
        return 2.0 * s

    def _bend(self, s: Array) -> Array:
        return namespace(s).full_like(s, 2.0)

    def _conjugate_phi(self, u: Array) -> Array:
        return 0.25 * u * u

    def least_squares(self, dtype: Any = float) -> LeastSquares:
        """½(s z − t)² with s = √(2ω) and t = s c."""
        scale = namespace(self.weight).sqrt(2.0 * self.weight)
        return LeastSquares(scale, scale * self.centre, None)


class SquaredHinge(Separable):
    """g(z) = Σ_e ω_e max(0, m_e − z_e)², BILGO eq. (8) with its index slip corrected."""

    steepest = 2.0

    def __init__(self, margin: ArrayLike = 1.0, *, weight: ArrayLike = 1.0) -> None:
        super().__init__(margin, weight=weight)

    def _phi(self, s: Array) -> Array:
        return negative(s) ** 2

    def _slope(self, s: Array) -> Array:
        return 2.0 * negative(s)

    def _bend(self, s: Array) -> Array:
        return 2.0 * indicator(s < 0, s)

    def _far(self, s: Array) -> Array:
        return where(s >= 0, 0.0 * s, np.inf)

    def _conjugate_phi(self, u: Array) -> Array:
        return where(u <= 0, 0.25 * u * u, np.inf)


class SmoothedHinge(Separable):
    """g(z) = Σ_e ω_e h_μ(m_e − z_e), BiS eqs. (34)–(35).

    h_μ(s) = 0 for s ≤ 0, s²/(2μ) for 0 ≤ s ≤ μ, and s − μ/2 beyond: within μ/2 of the
    hinge max(0, s) everywhere.
    """

    def __init__(
        self, margin: ArrayLike = 1.0, *, mu: float = 0.1, weight: ArrayLike = 1.0
    ) -> None:
        self.mu = above_zero(mu, "mu")
        self.steepest = 1.0 / self.mu
        super().__init__(margin, weight=weight)

    def smoothed(self, mu: float) -> SmoothedHinge:
        return SmoothedHinge(self.centre, mu=mu, weight=self.weight)

    def softened(self, mu: float, size: int) -> SoftenedHinge | None:
        """The same loss of `size` values with a barrier μ on its dual vector."""
        margin, weight = (np.broadcast_to(each, size) for each in (self.centre, self.weight))
        if not np.all(weight > 0):
            return None
        return SoftenedHinge(margin, weight, self.mu, mu)

    def _phi(self, s: Array) -> Array:
        inside = namespace(s).clip(-s, 0.0, self.mu)
        return inside * inside / (2 * self.mu) + positive(-s - self.mu)

    def _slope(self, s: Array) -> Array:
        return -namespace(s).clip(-s / self.mu, 0.0, 1.0)

    def _bend(self, s: Array) -> Array:
        return indicator((s < 0) & (s > -self.mu), s) / self.mu

    def _far(self, s: Array) -> Array:
        return positive(-s)

    def _conjugate_phi(self, u: Array) -> Array:
        return where((u <= 0) & (u >= -1), 0.5 * self.mu * u * u, np.inf)


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


class Repulsion(Separable):
    """g(z) = Σ_e ω_e ln(1 + 1/(ε + z_e)), −ln(1 − q) for the affinity q = 1/(1 + ε + z).

    The repulsive term of UMAP, convex in a squared distance z. It is extended linearly to z < 0.
    """

    def __init__(self, *, floor: float = 1e-2, weight: ArrayLike = 1.0) -> None:
        self.floor = above_zero(floor, "floor")
        self.steepest = self.floor**-2 - (1 + self.floor) ** -2
        self._slope_at_zero = -1 / (self.floor * (1 + self.floor))
        super().__init__(0.0, weight=weight)

    def _phi(self, s: Array) -> Array:
        t = positive(s) + self.floor
        return namespace(s).log1p(1 / t) + self._slope_at_zero * negative(s)

    def _slope(self, s: Array) -> Array:
        t = positive(s) + self.floor
        return -1 / (t * (1 + t))

    def _bend(self, s: Array) -> Array:
        t = positive(s) + self.floor
        return where(s >= 0, (1 + 2 * t) / (t * (1 + t)) ** 2, 0.0)

    def _far(self, s: Array) -> Array:
        return self._slope_at_zero * negative(s)

    def _conjugate_phi(self, u: Array) -> Array:
        """u(t − ε) − ln(1 + 1/t) at the t with −1/(t(1 + t)) = u, from φ'(0) to 0."""
        xp = namespace(u)
        steep = xp.clip(-u, 1e-300, -self._slope_at_zero)
        t = (2 / steep) / (1 + xp.sqrt(1 + 4 / steep))
        found = -steep * (t - self.floor) - xp.log1p(1 / t)
        return where((u <= 0) & (u >= self._slope_at_zero), found, np.inf)
