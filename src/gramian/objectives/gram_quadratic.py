"""F(M) = tr((AM)² + BM² + 2CM), LRO eq. (1), through small Gram products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gramian.arrays.places import (
    at_home,
    beside,
    host,
    inner,
    moved,
    namespace,
    norm,
    row_squares,
    side_by_side,
)
from gramian.common.types import Array
from gramian.linalg.svec import svec, symmetric_kron, triangle_size
from gramian.linalg.tolerances import ROUNDING
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.matrices import (
    DENSE_ORDER,
    SMALL_ROUNDING,
    absolute_product,
    dense_numbers,
    is_multiple_of_identity,
    size_of,
)
from gramian.objectives.matrix_inputs import as_symmetric, require_psd
from gramian.objectives.parts import quadratic_parts
from gramian.objectives.quadratic_bounds import (
    Eigenbasis,
    common_eigenbasis,
    quadratic_bounds,
)
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.supports import Growth, LowerBound, Support
from gramian.proofs import rounded_sum


@dataclass(frozen=True)
class GramImage:
    """L and its products with A, B and C; images are added by concatenating columns.

    With signs, M = L diag(signs) Lᵀ instead of LLᵀ.
    """

    factor: Array
    AL: Array
    BL: Array
    CL: Array
    signs: Array | None = None

    def signed(self, right: Array) -> Array:
        """diag(signs) times a matrix with one row for each column of L."""
        return right if self.signs is None else self.signs[:, None] * right

    @cached_property
    def inside(self) -> tuple[Array, Array, Array]:
        """LᵀAL, LᵀBL and LᵀL, used by F and its slope."""
        L = self.factor
        return L.T @ self.AL, L.T @ self.BL, L.T @ L


class GramQuadratic(Objective[GramImage]):
    """F(M) = tr((AM)² + BM² + 2CM) + constant, A ⪰ 0 and B ⪰ 0.

    ∇F(M) = 2AMA + BM + MB + 2C (LRO eq. 11). With M = LLᵀ everything is computed from AL, BL, CL
    and r × r Gram matrices; no product with A, B or C is repeated during a search.
    """

    def __init__(
        self,
        A: Any,
        B: Any,
        C: Any,
        *,
        constant: float = 0.0,
        growth: Growth | None = None,
        eigenbasis: Eigenbasis | None = None,
    ) -> None:
        self.order = _common_order(A, B, C)
        self.A = as_symmetric(A, "A", self.order)
        self.B = as_symmetric(B, "B", self.order)
        self.C = as_symmetric(C, "C", self.order)
        require_psd(self.A, "A")
        require_psd(self.B, "B")
        self.facts = Facts(
            quadratic=True,
            matrix_quadratic=True,
            dense_numbers=max(dense_numbers(matrix) for matrix in (self.A, self.B, self.C)),
        )
        self.constant = float(constant)
        self._growth = growth
        self._eigenbasis = eigenbasis

    def image(self, L: Array) -> GramImage:
        return GramImage(L, self.A @ L, self.B @ L, self.C @ L)

    def pair_image(self, X: Array, Y: Array) -> GramImage:
        """½(XYᵀ + YXᵀ) = ¼(X + Y)(X + Y)ᵀ − ¼(X − Y)(X − Y)ᵀ."""
        image = self.image(0.5 * side_by_side([X + Y, X - Y]))
        return replace(image, signs=beside(X, np.repeat([1.0, -1.0], X.shape[1])))

    def value(self, image: GramImage) -> float:
        L, (through_A, through_B, plain) = image.factor, image.inside
        return (
            inner(image.signed(through_A), image.signed(through_A).T)
            + inner(image.signed(through_B), image.signed(plain).T)
            + 2 * inner(image.signed(L.T), image.CL.T)
            + self.constant
        )

    def gradient(self, image: GramImage) -> SymmetricOperator:
        L, AL, BL = image.factor, image.AL, image.BL

        def product(V: Array) -> Array:
            columns = V if V.ndim == 2 else V[:, None]
            result = (
                2 * (AL @ image.signed(AL.T @ columns))
                + BL @ image.signed(L.T @ columns)
                + L @ image.signed(BL.T @ columns)
                + 2 * (self.C @ columns)
            )
            return namespace(V).reshape(result, V.shape)

        def dense() -> Array:
            mixed = BL @ image.signed(L.T)
            return 2 * (AL @ image.signed(AL.T)) + mixed + mixed.T + 2 * self.C.dense()

        def form() -> Any:
            b = self.B.scale if is_multiple_of_identity(self.B) else None
            parts = None
            if image.signs is None:
                parts = quadratic_parts(host(L), host(AL), host(BL), b, at_home(self.C))
            return None if parts is None else parts.form()

        def errors() -> Array:
            """|2AMA + …| ≤ √(h_i h_j) entry by entry, h the row sums of squares."""
            rows = 2 * row_squares(AL) + row_squares(BL) + row_squares(L)
            return rounded_sum(3 * L.shape[1] + 2) * host(rows)

        return SymmetricOperator(self.order, product, dense, form, errors, self.place)

    def recession(self, image: GramImage) -> tuple[float, float]:
        """2⟨C, D⟩ for D = LLᵀ with AD = 0 and BD = 0, otherwise +inf: F grows quadratically."""
        trace, (a, b, c) = _square(image.factor), self.sizes
        curved = norm(image.AL) > ROUNDING * a * np.sqrt(trace)
        curved |= inner(image.factor, image.BL) > ROUNDING * b * trace
        slope = np.inf if curved else 2 * inner(image.factor, image.CL)
        return slope, 2 * ROUNDING * c * trace

    def rounding(self, image: GramImage) -> float:
        """Errors of √n u |L|ᵀ|A||L| etc. in LᵀAL, LᵀBL and LᵀCL, and their effect on the squares.

        Uses the norms of A, B and C, or absolute values of their entries if norms are too coarse.
        """
        trace, value = _square(image.factor), abs(self.value(image))
        quick = self._rounding(image, value, *(size * trace for size in self.sizes))
        if quick <= SMALL_ROUNDING * value:
            return quick
        sizes = namespace(image.factor).abs(image.factor)
        exact = (
            norm(sizes.T @ absolute_product(matrix, sizes)) for matrix in (self.A, self.B, self.C)
        )
        return min(quick, self._rounding(image, value, *exact))

    def _rounding(self, image: GramImage, value: float, a: float, b: float, c: float) -> float:
        unit = rounded_sum(self.order)
        through_A, through_B, plain = (norm(product) for product in image.inside)
        value += abs(self.constant)
        a, b, c = unit * a, unit * b, unit * c
        terms = 2 * a * through_A + a * a + b * plain + unit * through_B * plain + 2 * c
        return 4 * rounded_sum(1) * (value + through_A**2 + through_B * plain) + 2 * terms

    @cached_property
    def sizes(self) -> tuple[float, float, float]:
        """Norms of A, B and C, or estimates of them."""
        return size_of(self.A), size_of(self.B), size_of(self.C)

    def gradient_factor(self, image: GramImage) -> Array:
        """2∇F(M)L from the stored products (LRO eq. 13)."""
        through_A, through_B, plain = image.inside
        slope = 4 * (image.AL @ through_A)
        slope += 2 * (image.BL @ plain)
        slope += 2 * (image.factor @ through_B)
        slope += 4 * image.CL
        return slope

    def hessian_factor(self, image: GramImage) -> Callable[[Array], Array]:
        """D ↦ 2∇F(M)D + 2(2ASA + BS + SB)L with S = LDᵀ + DLᵀ."""
        L, AL, BL = image.factor, image.AL, image.BL
        through_A, through_B, plain = image.inside

        def product(D: Array) -> Array:
            AL_D, BL_D, L_D = AL.T @ D, BL.T @ D, L.T @ D
            return (
                4 * (AL @ (AL_D + AL_D.T) + (self.A @ D) @ through_A + self.C @ D)
                + 2 * (BL @ (L_D + L_D.T) + L @ (BL_D + BL_D.T))
                + 2 * ((self.B @ D) @ plain + D @ through_B)
            )

        return product

    def subspace(self, W: Array) -> QuadraticRestriction:
        through_A, through_B, linear = (
            host(W.T @ (matrix @ W)) for matrix in (self.A, self.B, self.C)
        )
        Q = symmetric_kron(through_A, through_A) + symmetric_kron(through_B, host(W.T @ W))
        return QuadraticRestriction(Q, svec(linear), self.constant)

    def subspace_cost(self, columns: int) -> int:
        return triangle_size(columns) ** 2

    def combinations(self, images: Sequence[GramImage], pairs: Pairs) -> Combinations:
        Q = _quadratic_of_pairs(images, pairs)
        linear = np.array([inner(images[i].factor, images[j].CL) for i, j in pairs])

        def take(theta: Array, join: Join) -> GramImage:
            return GramImage(*(join(blocks) for blocks in zip(*map(_blocks, images), strict=True)))

        return Combinations(QuadraticRestriction(Q, linear, self.constant), take)

    @property
    def modulus(self) -> float:
        """m with ⟨M, 𝓗M⟩ ≥ m‖M‖², from A ⪰ aI and B ⪰ bI: m = a² + b."""
        return max(0.0, self.A.lower) ** 2 + max(0.0, self.B.lower)

    @cached_property
    def eigenbasis(self) -> Eigenbasis | None:
        """The common eigenvectors of A and B, None if they do not commute or the order is large."""
        if not self.place.is_host:
            known = at_home(self).eigenbasis
            return None if known is None else moved(known, self.place)
        if self._eigenbasis is not None:
            return self._eigenbasis
        if self.order > DENSE_ORDER:
            return None
        return common_eigenbasis(self.A, self.B)

    def growth(self) -> Growth:
        """2⟨C, M⟩ ≥ 2c·tr M if C ⪰ cI, and ⟨M, 𝓗M⟩ ≥ m‖M‖² ≥ m (tr M)²/n, unless set explicitly."""
        if self._growth is not None:
            return self._growth
        return Growth(self.constant, 2 * self.C.lower, self.modulus / self.order)

    def support(self, image: GramImage) -> Support:
        """−q(M) with the slope ∇q(M) + 2C, q the square part; q*(s∇q(M)) = s²q(M).

        A shift by tI costs t·tr M + t²n/4m if q is strongly convex.
        """
        trace, m = _square(image.factor), self.modulus
        q = self.value(image) - self.constant - 2 * inner(image.factor, image.CL)

        def shifted(t: float) -> float:
            return self.constant - q - t * trace - t * t * self.order / (4 * m)

        def shrunk(s: float) -> float:
            return self.constant - s * s * q

        return Support(shrunk(1.0), 2 * self.C.lower, shrunk, shifted if m > 0 else None)

    def lower_bounds(self, image: GramImage, bottom: float) -> Iterator[LowerBound]:
        return quadratic_bounds(self, image)


def fall_unit(objective: Objective) -> float:
    """Estimate of F(0) − F*: ‖C‖²/‖𝓗‖; 0 for other objectives, where F(0) is used."""
    a, b, c = objective.sizes if isinstance(objective, GramQuadratic) else (0.0, 0.0, 0.0)
    return c * c / (a * a + b) if a * a + b > 0 else 0.0


def _common_order(A: Any, B: Any, C: Any) -> int:
    for value in (A, B, C):
        if hasattr(value, "order"):
            return int(value.order)
        shape = np.shape(value) if not hasattr(value, "shape") else value.shape
        if len(shape) == 2:
            return int(shape[0])
    raise ValueError("at least one of A, B, C must be a matrix, to determine the order of M")


def _quadratic_of_pairs(images: Sequence[GramImage], pairs: Pairs) -> Array:
    """tr(AMAN) + tr(BMN) for all pairs of the matrices given by pairs of factors.

    For M = ½(X_iX_jᵀ + X_jX_iᵀ) and N likewise of k and l these are inner products of the blocks
    X_iᵀAX_k and so on, averaged over the orders of i, j and of k, l.
    """
    blocks: dict[tuple[int, int], tuple[Array, ...]] = {}
    for i, image in enumerate(images):
        blocks[i, i] = tuple(map(host, image.inside))
        for k in range(i):
            L = images[k].factor
            crosses = tuple(host(L.T @ right) for right in (image.AL, image.BL, image.factor))
            blocks[k, i], blocks[i, k] = crosses, tuple(cross.T for cross in crosses)

    def entry(one: tuple[int, int], other: tuple[int, int]) -> float:
        terms = []
        for k, l in (other, other[::-1]):
            (A1, B1, I1), (A2, B2, I2) = blocks[one[0], k], blocks[one[1], l]
            terms.append(inner(A1, A2) + 0.5 * (inner(B1, I2) + inner(B2, I1)))
        return 0.5 * sum(terms)

    return np.array([[entry(one, other) for other in pairs] for one in pairs])


def _blocks(image: GramImage) -> tuple[Array, Array, Array, Array]:
    return image.factor, image.AL, image.BL, image.CL


def _square(U: Array) -> float:
    return inner(U, U)
