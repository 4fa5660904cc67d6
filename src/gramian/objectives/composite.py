"""F(M) = g(𝒜(M)) + ⟨C, M⟩: a loss of a linear map, and a linear term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian.losses import Loss
from gramian.maps import LinearMap
from gramian.objectives.base import Blend, Growth, Line, LowerBound, Objective, SymmetricOperator
from gramian.objectives.matrices import as_symmetric
from gramian.objectives.restriction import CompositeRestriction

Array = NDArray[np.floating]

PENCIL_ORDER = 500
"""Up to this order a generalised eigenvalue is cheap beside the solve."""


@dataclass(frozen=True)
class CompositeImage:
    """L, z = 𝒜(LLᵀ) and ⟨C, LLᵀ⟩."""

    factor: Array
    z: Array
    linear: float


class Composite(Objective):
    """F(M) = g(𝒜(M)) + ⟨C, M⟩ + constant, with gradient 𝒜*(∇g(z)) + C."""

    def __init__(self, map: LinearMap, loss: Loss, C: Any = None, *, constant: float = 0.0) -> None:
        self.map, self.loss, self.constant = map, loss, float(constant)
        if loss.size not in (None, map.size):
            raise ValueError(f"the loss is for {loss.size} values, but the map gives {map.size}")
        self.order = map.order
        self.quadratic = loss.quadratic
        self.C = as_symmetric(C, "C", self.order)

    def image(self, L: Array) -> CompositeImage:
        return CompositeImage(L, self.map.bilinear(L, L), _inner(L, self.C @ L))

    def pair_image(self, X: Array, Y: Array) -> CompositeImage:
        return CompositeImage(X[:, :0], self.map.bilinear(X, Y), _inner(X, self.C @ Y))

    def value(self, image: CompositeImage) -> float:
        return self.loss.value(image.z) + image.linear + self.constant

    def gradient(self, image: CompositeImage) -> SymmetricOperator:
        w = self.loss.gradient(image.z)
        return SymmetricOperator(
            self.order,
            lambda V: self._adjoint(w, V) + self.C @ V,
            lambda: self.map.adjoint_matrix(w) + self.C.dense(),
        )

    def blend(self, image: CompositeImage, other: CompositeImage) -> Blend:
        def take(alpha: float, beta: float) -> CompositeImage:
            columns = [np.sqrt(alpha) * image.factor] if alpha > 0 else []
            columns += [np.sqrt(beta) * other.factor] if beta > 0 else []
            return CompositeImage(
                np.hstack(columns) if columns else image.factor[:, :0],
                alpha * image.z + beta * other.z,
                alpha * image.linear + beta * other.linear,
            )

        images = np.column_stack([image.z, other.z])
        linear = np.array([image.linear, other.linear])
        return Blend(CompositeRestriction(self.loss, images, linear, self.constant), take)

    def line(self, image: CompositeImage, direction: Array) -> Line:
        L = image.factor
        cross = self.map.bilinear(L, direction)
        square = self.map.bilinear(direction, direction)
        C_direction = self.C @ direction
        images = np.column_stack([image.z, cross, square])
        linear = np.array([image.linear, _inner(L, C_direction), _inner(direction, C_direction)])

        def take(mu: float) -> CompositeImage:
            theta = np.array([1.0, 2 * mu, mu * mu])
            return CompositeImage(L + mu * direction, images @ theta, float(linear @ theta))

        return Line(CompositeRestriction(self.loss, images, linear, self.constant), take)

    def value_dense(self, M: Array) -> float:
        return (
            self.loss.value(self.map.of_matrix(M))
            + float(np.sum(M * self.C.dense()))
            + self.constant
        )

    def gradient_dense(self, M: Array) -> Array:
        w = self.loss.gradient(self.map.of_matrix(M))
        return self.map.adjoint_matrix(w) + self.C.dense()

    def rank_bound(self) -> int:
        """r(r + 1)/2 ≤ p + 1: a minimiser of least rank is a vertex of those with its image."""
        return min(self.order, int((np.sqrt(8 * (self.map.size + 1) + 1) - 1) / 2))

    def smoothed(self, mu: float) -> Composite | None:
        loss = self.loss.smoothed(mu)
        if loss is None:
            return None
        return Composite(self.map, loss, self.C, constant=self.constant)

    def growth(self) -> Growth:
        """g ≥ inf g, and ⟨C, M⟩ ≥ c·tr M where C ⪰ cI."""
        return Growth(self.constant + self.loss.infimum, self.C.lower)

    def lower_bounds(self, image: CompositeImage, bottom: float) -> Iterator[LowerBound]:
        """Fenchel dual points: F ≥ −g*(w) wherever 𝒜*(w) + C ⪰ 0.

        w = ∇g(z) needs no change where `bottom` ≥ 0. Otherwise it is moved by one scalar: scaled
        by c/(c − bottom) where C ⪰ cI, shifted by −bottom along weights whose adjoint is I, or
        shifted along equal weights where their adjoint P is definite (a Laplacian on a centred
        basis): by −λ_min of the pencil (∇F, P).
        """
        w = self.loss.gradient(image.z)
        c = self.C.lower
        if bottom >= 0:
            yield self._dual_point(w)
            return
        if c > 0 and np.isfinite(bottom):
            yield self._dual_point(w * (c / (c - bottom)))
        identity = self.map.identity_weights()
        if identity is not None and np.isfinite(bottom):
            yield self._dual_point(w - bottom * identity)
        elif self._definite_image is not None:
            G = self.map.adjoint_matrix(w) + self.C.dense()
            lowest = scipy.linalg.eigh(
                G, self._definite_image, eigvals_only=True, subset_by_index=[0, 0]
            )[0]
            # Rounding can leave the shifted matrix a little below the cone.
            shift = max(0.0, -float(lowest)) * (1 + 1e-12) + 1e-14 * float(np.abs(w).max())
            yield self._dual_point(w + shift)

    @cached_property
    def _definite_image(self) -> Array | None:
        """P = 𝒜*(1) where it is definite and small enough for a pencil."""
        if self.order > PENCIL_ORDER:
            return None
        P = self.map.adjoint_matrix(np.ones(self.map.size))
        values = np.linalg.eigvalsh(P)
        return P if values[0] > 1e-10 * values[-1] else None

    def _dual_point(self, w: Array) -> LowerBound:
        return LowerBound(self.constant - self.loss.conjugate(w), "Fenchel dual point")

    def _adjoint(self, w: Array, V: Array) -> Array:
        """𝒜*(w)V for one column too: maps take matrices."""
        if V.ndim == 1:
            return self.map.adjoint(w, V[:, None])[:, 0]
        return self.map.adjoint(w, V)


def _inner(U: Array, V: Array) -> float:
    return float(np.sum(U * V))
