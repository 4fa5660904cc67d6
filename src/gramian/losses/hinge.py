"""Two smooth hinges: squared, and smoothed near its corner."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace
from gramian.losses.base import Array, Separable
from gramian.losses.functions import indicator, negative, positive, where
from gramian.losses.softened import SoftenedHinge


class SquaredHinge(Separable):
    """g(z) = Σ_e ω_e max(0, m_e − z_e)², BILGO eq. (8) with its index slip corrected."""

    steepest = 2.0

    def __init__(self, margin: ArrayLike = 1.0, *, weight: ArrayLike = 1.0) -> None:
        super().__init__(margin, weight=weight)

    def value(self, z: Array) -> float:
        short = negative(z - self.centre)
        return float(short @ (self.weight * short))

    def gradient(self, z: Array) -> Array:
        return (2.0 * self.weight) * negative(z - self.centre)

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
        if not 0 < mu < np.inf:
            raise ValueError(f"the smoothed hinge needs mu > 0 and finite, got {mu}")
        self.mu = float(mu)
        self.steepest = 1.0 / self.mu
        super().__init__(margin, weight=weight)

    def smoothed(self, mu: float) -> SmoothedHinge:
        return SmoothedHinge(self.centre, mu=mu, weight=self.weight)

    def softened(self, mu: float, size: int) -> SoftenedHinge | None:
        """The same loss of `size` values with a barrier μ on its dual vector."""
        return self._softened(mu, size, np.ones(size))

    def _softened(self, mu: float, size: int, scale: Array) -> SoftenedHinge | None:
        weight = np.broadcast_to(self.weight, size)
        if not np.all(weight > 0):
            return None
        return SoftenedHinge(np.broadcast_to(self.centre, size), scale, weight, self.mu, mu)

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
