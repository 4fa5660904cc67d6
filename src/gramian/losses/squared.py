"""The squared loss."""

from __future__ import annotations

from typing import Any

from gramian.arrays.places import namespace
from gramian.losses.base import Array, LeastSquares, Separable


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
