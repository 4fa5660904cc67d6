"""The restrictions θ ↦ F(Σ θᵢ Mᵢ) of both kinds of objectives, and of their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gramian.arrays.places import beside, host
from gramian.common.types import Array
from gramian.linalg.restriction import Restriction
from gramian.losses import Loss
from gramian.losses.base import bends_of, softened_of


@dataclass(frozen=True)
class QuadraticRestriction:
    """θᵀQθ + 2cᵀθ + constant."""

    Q: Array
    c: Array
    constant: float
    quadratic = True

    def value(self, theta: Array) -> float:
        return float(theta @ self.Q @ theta + 2 * self.c @ theta + self.constant)

    def gradient(self, theta: Array) -> Array:
        return 2 * (self.Q @ theta + self.c)

    def hessian(self, theta: Array) -> Array:
        return 2 * self.Q

    def along(self, theta: Array, move: Array) -> Callable[[float], float]:
        return lambda t: self.value(theta + t * move)


@dataclass(frozen=True)
class CompositeRestriction:
    """g(Zθ) + cᵀθ + constant, with the images as the columns of Z, on any device."""

    loss: Loss
    Z: Array
    c: Array
    constant: float

    @property
    def quadratic(self) -> bool:
        return self.loss.quadratic

    def value(self, theta: Array) -> float:
        return self.loss.value(self._at(theta)) + float(self.c @ theta) + self.constant

    def gradient(self, theta: Array) -> Array:
        return host(self.Z.T @ self.loss.gradient(self._at(theta))) + self.c

    def hessian(self, theta: Array) -> Array:
        return host(self.loss.curvature(self._at(theta), self.Z))

    def along(self, theta: Array, move: Array) -> Callable[[float], float]:
        """Uses the two images only, for any number of matrices."""
        z, change = self._at(theta), self._at(move)
        linear, slope = self.constant + float(self.c @ theta), float(self.c @ move)
        return lambda t: self.loss.value(z + t * change) + linear + t * slope

    def softened(self, mu: float) -> CompositeRestriction:
        """The restriction with a barrier μ on the dual vector of a loss that is not smooth."""
        return replace(self, loss=softened_of(self.loss, mu, self.Z.shape[0]))

    @property
    def corners(self) -> int:
        """Number of terms of the loss that `softened` changes."""
        return 0 if self.softened(1.0).loss is self.loss else self.Z.shape[0]

    def dual(self, theta: Array) -> Array:
        """w = ∇g(Zθ)."""
        return self.loss.gradient(self._at(theta))

    def hessian_root(self, theta: Array) -> Array | None:
        """√φ'' times the rows with curvature, for a loss that is a sum over the entries of z."""
        bends = bends_of(self.loss, self._at(theta))
        if bends is None or not isinstance(self.Z, np.ndarray):
            return None
        live = bends > 0
        if np.sum(live) >= theta.size:
            return None
        return np.sqrt(bends[live])[:, None] * self.Z[live]

    def drift(self, theta: Array) -> Array:
        """μ ∂∇/∂μ if the loss has a barrier μ (`softened`), else 0."""
        drift = getattr(self.loss, "drift", None)
        return np.zeros(theta.size) if drift is None else self.Z.T @ drift(self._at(theta))

    def _at(self, theta: Array) -> Array:
        return self.Z @ beside(self.Z, theta)


@dataclass(frozen=True)
class TotalRestriction:
    """The sum of restrictions over the same matrices."""

    parts: Sequence[Restriction]

    @property
    def quadratic(self) -> bool:
        return all(part.quadratic for part in self.parts)

    def value(self, theta: Array) -> float:
        return sum(part.value(theta) for part in self.parts)

    def gradient(self, theta: Array) -> Array:
        return np.sum([part.gradient(theta) for part in self.parts], axis=0)

    def hessian(self, theta: Array) -> Array:
        return np.sum([part.hessian(theta) for part in self.parts], axis=0)

    def along(self, theta: Array, move: Array) -> Callable[[float], float]:
        lines = [part.along(theta, move) for part in self.parts]
        return lambda t: sum(line(t) for line in lines)
