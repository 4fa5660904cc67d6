"""A loss of values multiplied by signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.losses.base import Loss, recession_of, softened_of

Array = NDArray[np.floating]


class Signed:
    """g(z) = h(yz) for a loss h and signs y = ±1."""

    def __init__(self, loss: Loss, signs: ArrayLike) -> None:
        self.loss, self.signs = loss, np.asarray(signs, dtype=float)
        if self.signs.ndim != 1 or not np.all(np.abs(self.signs) == 1):
            raise ValueError("signs must be a vector of 1 and -1")
        self.size: int | None = self.signs.size
        self.quadratic, self.infimum = loss.quadratic, loss.infimum
        self.smoothness = loss.smoothness
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
        found: Array = self.signs * loss.drift(self.signs * z)
        return found

    def recession(self, z: Array, noise: Array) -> float:
        return recession_of(self.loss, self.signs * z, noise)

    def conjugate(self, w: Array) -> float:
        return self.loss.conjugate(self.signs * w)
