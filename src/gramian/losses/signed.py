"""A loss of values multiplied by given factors, such as signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace
from gramian.losses.base import Array, Loss, recession_of, softened_of


class Signed:
    """g(z) = h(yz) for a loss h and factors y ≠ 0, such as signs y = ±1."""

    def __init__(self, loss: Loss, signs: ArrayLike) -> None:
        self.loss, self.signs = loss, np.asarray(signs, dtype=float)
        if self.signs.ndim != 1 or not np.all(np.isfinite(self.signs) & (self.signs != 0)):
            raise ValueError("signs must be a vector of finite factors other than 0")
        self.size: int | None = self.signs.size
        self.quadratic, self.infimum = loss.quadratic, loss.infimum
        self.smoothness = loss.smoothness * float(np.max(self.signs**2, initial=0.0))
        self.separable = bool(getattr(loss, "separable", False))

    def value(self, z: Array) -> float:
        return self.loss.value(self.signs * z)

    def gradient(self, z: Array) -> Array:
        return self.signs * self.loss.gradient(self.signs * z)

    def curvature(self, z: Array, directions: Array) -> Array:
        return self.loss.curvature(self.signs * z, self.signs[:, None] * directions)

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        bend = self.loss.hessian(self.signs * z)
        return lambda d: self.signs * bend(self.signs * d)

    def smoothed(self, mu: float) -> Signed | None:
        loss = self.loss.smoothed(mu)
        return None if loss is None else Signed(loss, self.signs)

    def softened(self, mu: float, size: int) -> Signed | None:
        """The softened loss with the same signs."""
        loss = softened_of(self.loss, mu, size)
        return None if loss is self.loss else Signed(loss, self.signs)

    def drift(self, z: Array) -> Array:
        """The drift of a softened loss."""
        loss: Any = self.loss
        return self.signs * loss.drift(self.signs * z)

    def recession(self, z: Array, noise: Array) -> float:
        return recession_of(self.loss, self.signs * z, namespace(z).abs(self.signs) * noise)

    def conjugate(self, w: Array) -> float:
        return self.loss.conjugate(w / self.signs)
