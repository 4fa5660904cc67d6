"""The augmented Lagrangian term of bounds on z: multipliers and a penalty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace
from gramian.losses.base import Array, DiagonalHessian
from gramian.losses.functions import where


class Augmented(DiagonalHessian):
    """g(z) = Σ_e σ_e/2 dist²(z_e − y_e/σ_e, [l_e, u_e]) − y_e²/(2σ_e).

    The minimum over s in [l, u] of −y·(z − s) + ½Σσ(z − s)² (Rockafellar 1976). Thus ∇g = −y⁺ for
    the next multipliers y⁺ = y − σ(z − s). With l = u it is the quadratic of an equality.
    """

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, multipliers: ArrayLike, penalty: ArrayLike
    ) -> None:
        self.lower, self.upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        self.y = np.asarray(multipliers, dtype=float)
        self.penalty = np.broadcast_to(np.asarray(penalty, dtype=float), self.y.shape)
        if not self.lower.shape == self.upper.shape == self.y.shape:
            raise ValueError("bounds and multipliers must be vectors of the same length")
        if np.any(self.lower > self.upper):
            first = int(np.argmax(self.lower > self.upper))
            raise ValueError(f"bound {first} is empty: its lower end is above its upper end")
        if not np.all(self.penalty > 0):
            raise ValueError("the penalty must be positive")
        self.size: int | None = self.y.size
        self.quadratic = bool(np.array_equal(self.lower, self.upper))
        self.smoothness = float(np.max(self.penalty, initial=0.0))
        self.infimum = -float(np.sum(self.y**2 / (2 * self.penalty)))

    def value(self, z: Array) -> float:
        off = self._off(z)
        return 0.5 * float(self.penalty @ (off * off)) + self.infimum

    def gradient(self, z: Array) -> Array:
        return self.penalty * self._off(z)

    def conjugate(self, w: Array) -> float:
        """sup over s in [l, u] of ⟨w, s⟩, plus Σ (w + y)²/(2σ)."""
        xp, live = namespace(w), w != 0
        end = where(live, xp.where(w >= 0, self.upper, self.lower), 0.0)
        reach = where(live, w * end, 0.0)
        return float(xp.sum(reach) + xp.sum((w + self.y) ** 2 / (2 * self.penalty)))

    def _off(self, z: Array) -> Array:
        """Signed distance of z − y/σ from the bounds, 0 inside."""
        moved = z - self.y / self.penalty
        return moved - namespace(z).clip(moved, self.lower, self.upper)

    def bends(self, z: Array) -> Array:
        if self.quadratic:
            return self.penalty
        return where(self._off(z) != 0, self.penalty, 0.0)
