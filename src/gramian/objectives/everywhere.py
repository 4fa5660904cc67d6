"""Squares of all entries of a block, only some of which are data: sparse plus low rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian.arrays.places import side_by_side
from gramian.common.types import Array
from gramian.linalg.svec import triangle, triangle_size
from gramian.maps import BlockEntries
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.composite import Composite
from gramian.objectives.halves import Halves, RowFits, halves_of
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.supports import Growth, Support
from gramian.objectives.total import Sum
from gramian.proofs import rounded_sum


@dataclass(frozen=True)
class BlockImage:
    """L, and the scaled block of M as a product of two thin matrices."""

    factor: Array
    left: Array
    right: Array


class BlockSquares(Objective[BlockImage]):
    """F(M) = ω/2 ‖A^{-½} M₁₂ B^{-½}‖², where the off-diagonal block M₁₂ has m rows.

    With M₁₂ = XYᵀ this is ω/2 tr((XᵀA⁻¹X)(YᵀB⁻¹Y)): nothing of size m × n is formed.
    """

    constant = 0.0
    facts = Facts(quadratic=True)

    def __init__(self, weight: float, row_scale: Array, col_scale: Array) -> None:
        self.weight = float(weight)
        self.split = row_scale.size
        self.units: Array = np.sqrt(np.concatenate([row_scale, col_scale]))
        self.order = self.units.size

    def _halved(self, L: Array) -> tuple[Array, Array]:
        scaled = L / self.units[:, None]
        return scaled[: self.split], scaled[self.split :]

    def image(self, L: Array) -> BlockImage:
        return BlockImage(L, *self._halved(L))

    def pair_image(self, X: Array, Y: Array) -> BlockImage:
        (X1, X2), (Y1, Y2) = self._halved(X), self._halved(Y)
        return BlockImage(X[:, :0], 0.5 * side_by_side([X1, Y1]), side_by_side([Y2, X2]))

    def value(self, image: BlockImage) -> float:
        return 0.5 * self.weight * _inner(image, image)

    def gradient(self, image: BlockImage) -> SymmetricOperator:
        return SymmetricOperator(
            self.order,
            lambda V: self._times(image.left, image.right, V),
            lambda: self._block(image.left @ image.right.T),
            errors=lambda: self._errors(image),
        )

    def _errors(self, image: BlockImage) -> Array:
        """|E_ij| ≤ γ ω/2 ‖left_i‖ ‖right_j‖, divided by the scales of both."""
        rows = [np.sum(half * half, axis=1) for half in (image.left, image.right)]
        size = rounded_sum(image.left.shape[1] + 4)
        return size * 0.5 * self.weight * np.concatenate(rows) / self.units**2

    def _times(self, left: Array, right: Array, V: Array) -> Array:
        """ω/2 [0 G; Gᵀ 0] V for G = A^{-½} left rightᵀ B^{-½}."""
        V1, V2 = self._halved(V if V.ndim == 2 else V[:, None])
        out = np.vstack([left @ (right.T @ V2), right @ (left.T @ V1)])
        out *= (0.5 * self.weight / self.units)[:, None]
        return out if V.ndim == 2 else out[:, 0]

    def _block(self, inner: Array) -> Array:
        m, units = self.split, self.units
        G = 0.5 * self.weight * inner / np.outer(units[:m], units[m:])
        corner = np.zeros((self.order, self.order))
        corner[:m, m:], corner[m:, :m] = G, G.T
        return corner

    def hessian_factor(self, image: BlockImage) -> Callable[[Array], Array]:
        P, Q = self._halved(image.factor)

        def product(D: Array) -> Array:
            D1, D2 = self._halved(D)
            change = self._times(side_by_side([P, D1]), side_by_side([D2, Q]), image.factor)
            return 2.0 * (self._times(image.left, image.right, D) + change)

        return product

    def subspace(self, W: Array) -> QuadraticRestriction:
        """svec(S) ↦ ω/2 tr(S G₂ S G₁) with the Gram matrices of the two halves of W."""
        W1, W2 = self._halved(W)
        G1, G2 = W1.T @ W1, W2.T @ W2
        a, b, scale = triangle(W.shape[1])
        Q = np.zeros((a.size, a.size))
        for i, j in ((a, b), (b, a)):
            for k, l in ((a, b), (b, a)):
                Q += G1[np.ix_(i, k)] * G2[np.ix_(j, l)]
        Q *= 0.25 * np.outer(scale, scale)
        return QuadraticRestriction(0.5 * self.weight * Q, np.zeros(a.size), 0.0)

    def subspace_cost(self, columns: int) -> int:
        return triangle_size(columns) ** 2

    def combinations(self, images: Sequence[BlockImage], pairs: Pairs) -> Combinations:
        found = [
            images[i] if i == j else self.pair_image(images[i].factor, images[j].factor)
            for i, j in pairs
        ]
        Q = 0.5 * self.weight * np.array([[_inner(one, two) for two in found] for one in found])

        def take(theta: Array, join: Join) -> BlockImage:
            return self.image(join([image.factor for image in images]))

        return Combinations(QuadraticRestriction(Q, np.zeros(len(found)), 0.0), take)

    def support(self, image: BlockImage) -> Support:
        """F(N) ≥ ⟨sG, N⟩ − s²F(M), the conjugate of a square."""
        value = self.value(image)
        return Support(-value, 0.0, lambda s: -s * s * value)

    def growth(self) -> Growth:
        return Growth(0.0, 0.0)

    def rounding(self, image: BlockImage) -> float:
        """Of the products of both Gram matrices, whose entries can cancel: γ ω (Σ ‖l_a‖‖r_a‖)²."""
        lengths = [np.linalg.norm(half, axis=0) for half in (image.left, image.right)]
        return 4 * rounded_sum(self.order) * self.weight * float(lengths[0] @ lengths[1]) ** 2


class Everywhere(Sum):
    """F(M) = ½ Σ_ij ω_ij (U_ij − t_ij)² + λ/2 tr M with U = A^{-½} M₁₂ B^{-½}, all entries.

    ω_ij = ω and t_ij = 0 except for some entries with ω_e > ω (Hu, Koren and Volinsky 2008): the
    squares of all entries plus ½ Σ_e (√(ω_e − ω) U_e − τ_e)² with τ_e = ω_e t_e / √(ω_e − ω), minus
    a constant.
    """

    def __init__(
        self, some: Composite, everything: BlockSquares, scale: Array, targets: Array
    ) -> None:
        super().__init__([some, everything])
        self.facts = replace(self.facts, wide=True)
        self.some, self.everything = some, everything
        self.scale, self.targets = scale, targets
        """√(ω_e − ω) and τ_e, sorted by row."""

    def trace_weighted(self, lam: float) -> Everywhere:
        """The objective with another λ."""
        some = Composite(self.some.map, self.some.loss, 0.5 * lam, constant=self.some.constant)
        return Everywhere(some, self.everything, self.scale, self.targets)

    def growth(self) -> Growth:
        """Squares are not negative."""
        return Growth(0.0, self.some.C.lower)

    @property
    def entries(self) -> Any:
        """The map of the entries that are data."""
        return self.some.map


@halves_of.register
def _(objective: Everywhere, dtype: Any = float) -> Halves:
    """Each row is a small problem with its data and the Gram matrix of the other half."""
    map, everything = objective.some.map, objective.everything
    assert isinstance(map, BlockEntries)
    scale, targets = objective.scale.astype(dtype), objective.targets.astype(dtype)
    stiffness = (everything.units**2).astype(dtype)
    sides = (
        (map.by_row(), stiffness[: map.shape[0]]),
        (map.by_column(), stiffness[map.shape[0] :]),
    )
    upper, lower = (
        RowFits(starts, neighbour, scale[entry], targets[entry], False, None, stiff)
        for (starts, neighbour, entry), stiff in sides
    )
    return Halves(
        map.shape[0],
        upper,
        lower,
        2.0 * objective.some.C.lower,
        1.0,
        lambda factor: np.zeros(factor.shape[0]),
        everywhere=everything.weight,
        constant=objective.some.constant,
        units=everything.units,
    )


def _inner(one: BlockImage, two: BlockImage) -> float:
    return float(np.sum((one.left.T @ two.left) * (one.right.T @ two.right)))
