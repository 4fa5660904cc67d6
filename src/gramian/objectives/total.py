"""The sum of several objectives of the same matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from gramian.arrays.places import inner, namespace
from gramian.common.types import Array
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.matrices import DENSE_ORDER
from gramian.objectives.parts import joined_form
from gramian.objectives.restriction import TotalRestriction
from gramian.objectives.supports import Growth, LowerBound, Support, total


@dataclass(frozen=True)
class SumImage:
    """L and its image under each part."""

    factor: Array
    parts: tuple[Any, ...]


class Sum(Objective[SumImage]):
    """F(M) = Σ_k F_k(M)."""

    def __init__(self, parts: Sequence[Objective]) -> None:
        self.parts = tuple(parts)
        orders = {part.order for part in self.parts}
        if len(orders) != 1:
            raise ValueError(f"a sum needs objectives of one order, got {sorted(orders)}")
        self.order = orders.pop()
        self.facts = reduce(add, (part.facts for part in self.parts), Facts(True, 0))
        self.constant = sum(part.constant for part in self.parts)

    def image(self, L: Array) -> SumImage:
        return SumImage(L, tuple(part.image(L) for part in self.parts))

    def pair_image(self, X: Array, Y: Array) -> SumImage:
        return SumImage(X[:, :0], tuple(part.pair_image(X, Y) for part in self.parts))

    def value(self, image: SumImage) -> float:
        return sum(part.value(i) for part, i in self._with(image))

    def gradient(self, image: SumImage) -> SymmetricOperator:
        return together([part.gradient(i) for part, i in self._with(image)])

    def dual(self, image: SumImage) -> Array | None:
        """The concatenated dual vectors of the parts; None if a part has no dual vector."""
        duals = [part.dual(i) for part, i in self._with(image)]
        if any(w is None for w in duals):
            return None
        xp = namespace(image.factor)
        return xp.concat([xp.reshape(w, (-1,)) for w in duals if w is not None])

    def dual_operator(self, w: Array) -> SymmetricOperator:
        return together([part.dual_operator(v) for part, v in self._split(w)])

    def dual_support(self, w: Array) -> Support:
        return total([part.dual_support(v) for part, v in self._split(w)])

    def support(self, image: SumImage) -> Support | None:
        found = [part.support(i) for part, i in self._with(image)]
        known = [support for support in found if support is not None]
        return total(known) if len(known) == len(found) else None

    def rounding(self, image: SumImage) -> float:
        return sum(part.rounding(i) for part, i in self._with(image))

    def recession(self, image: SumImage) -> tuple[float, float]:
        slopes, unsure = zip(*(part.recession(i) for part, i in self._with(image)), strict=True)
        return sum(slopes), sum(unsure)

    def hessian_factor(self, image: SumImage) -> Callable[[Array], Array]:
        products = [part.hessian_factor(i) for part, i in self._with(image)]
        return lambda D: reduce(add, (product(D) for product in products))

    def subspace(self, W: Array) -> TotalRestriction:
        return TotalRestriction([part.subspace(W) for part in self.parts])

    def subspace_cost(self, columns: int) -> int:
        return sum(part.subspace_cost(columns) for part in self.parts)

    def combinations(self, images: Sequence[SumImage], pairs: Pairs) -> Combinations:
        each = zip(*(image.parts for image in images), strict=True)
        found = [p.combinations(own, pairs) for p, own in zip(self.parts, each, strict=True)]

        def take(theta: Array, join: Join) -> SumImage:
            taken = tuple(part.take(theta, join) for part in found)
            return SumImage(taken[0].factor, taken)

        return Combinations(TotalRestriction([part.restriction for part in found]), take)

    @property
    def modulus(self) -> float:
        return sum(part.modulus for part in self.parts)

    def lower_bounds(self, image: SumImage, bottom: float) -> Iterator[LowerBound]:
        yield from super().lower_bounds(image, bottom)
        if self.modulus > 0 and self.order <= DENSE_ORDER:
            yield self._convexity_bound(image)

    def _convexity_bound(self, image: SumImage) -> LowerBound:
        """The minimum over N ⪰ 0 of F(M) + ⟨∇F, N − M⟩ + m‖N − M‖², at N = P₊(M − ∇F/2m)."""
        m = self.modulus
        G, M = self.gradient(image).dense(), image.factor @ image.factor.T
        xp = namespace(M)
        values, vectors = xp.linalg.eigh(M - G / (2 * m))
        step = (vectors * xp.clip(values, 0.0, None)) @ vectors.T - M
        fall = inner(G, step) + m * inner(step, step)
        return LowerBound(self.value(image) + fall, "strong convexity")

    def growth(self) -> Growth:
        return reduce(add, (part.growth() for part in self.parts))

    def _split(self, w: Array) -> zip[tuple[Objective, Array]]:
        ends = [int(end) for end in np.cumsum([part.facts.terms for part in self.parts])]
        parts = [w[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        return zip(self.parts, parts, strict=True)

    def _with(self, image: SumImage) -> zip[tuple[Objective, Any]]:
        return zip(self.parts, image.parts, strict=True)


def together(operators: Sequence[SymmetricOperator]) -> SymmetricOperator:
    """The sum of symmetric operators; its form, for proofs, is known if that of each summand is."""
    order = operators[0].order
    return SymmetricOperator(
        order,
        lambda V: reduce(add, (G @ V for G in operators)),
        lambda: reduce(add, (G.dense() for G in operators)),
        lambda: joined_form(order, [G.form() for G in operators]),
        lambda: reduce(add, (G.slack() for G in operators)),
        operators[0].place,
    )
