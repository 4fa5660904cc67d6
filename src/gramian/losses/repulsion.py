"""A repulsive loss: a convex, decreasing function of squared distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace
from gramian.losses.base import Array, Separable
from gramian.losses.functions import negative, positive, where


class Repulsion(Separable):
    """g(z) = Σ_e ω_e ln(1 + 1/(ε + z_e)), −ln(1 − q) for the affinity q = 1/(1 + ε + z).

    The repulsive term of UMAP, convex in a squared distance z. It is extended linearly to z < 0.
    """

    def __init__(self, *, floor: float = 1e-2, weight: ArrayLike = 1.0) -> None:
        if not 0 < floor < np.inf:
            raise ValueError(f"the repulsion needs a positive finite floor, got {floor}")
        self.floor = float(floor)
        self.steepest = self.floor**-2 - (1 + self.floor) ** -2
        self._at_zero = float(np.log1p(1 / self.floor))
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
