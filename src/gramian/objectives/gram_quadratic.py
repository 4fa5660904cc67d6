"""F(M) = tr((AM)² + BM² + 2CM), LRO eq. (1), through small Gram products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import scipy
from numpy.typing import NDArray

from gramian import clock
from gramian.backends.arrays import (
    Placed,
    at_home,
    beside,
    contiguous,
    host,
    inner,
    moved,
    namespace,
    norm,
    row_squares,
    side_by_side,
)
from gramian.backends.dense import eigh
from gramian.linalg.svec import svec, symmetric_kron, triangle_size
from gramian.objectives.base import Blend, Growth, Line, LowerBound, Objective, SymmetricOperator
from gramian.objectives.matrices import (
    DENSE_ORDER,
    LowRankPlusIdentity,
    absolute_product,
    as_symmetric,
    dense_numbers,
    require_psd,
    size_of,
)
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.structure import quadratic_parts
from gramian.objectives.supports import Support
from gramian.proofs import EXACT_ORDER, eigen_seconds, rounded_sum

Array = NDArray[np.floating]

SMALL_ROUNDING = 1e-10
"""Rounding that need not be told more exactly."""

FLAT = 1e-13
"""A product with A or B, in units of its norm, that is taken for 0."""


@dataclass(frozen=True)
class GramImage:
    """L and its products with A, B and C; images add by joining columns.

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
        """LᵀAL, LᵀBL and LᵀL, which F and its slope both need."""
        L = self.factor
        return L.T @ self.AL, L.T @ self.BL, L.T @ L


def lowered(eigenvalues: Array) -> Array:
    """Eigenvalues of a matrix that is below A for certain: less their rounding, none below 0."""
    reach = float(np.max(np.abs(eigenvalues), initial=0.0))
    lost = 4 * np.finfo(float).eps * np.sqrt(eigenvalues.size) * reach
    return np.maximum(eigenvalues - lost, 0.0)


@dataclass(frozen=True)
class Eigenbasis(Placed):
    """A ⪰ V diag(a) Vᵀ and B ⪰ V diag(b) Vᵀ: where 𝓗M = AMA + ½(BM + MB) is a division away.

    Equal but for rounding, which is taken off (`lowered`): so ⟨M, 𝓗M⟩ is never less than it is
    in this basis, and neither is F.
    """

    V: Array
    a: Array
    b: Array

    @cached_property
    def H(self) -> Array:
        """𝓗 as elementwise weights a_i a_j + ½(b_i + b_j) on VᵀMV."""
        return self.a[:, None] * self.a + 0.5 * (self.b[:, None] + self.b)


class GramQuadratic(Objective):
    """F(M) = tr((AM)² + BM² + 2CM) + constant, A ⪰ 0 and B ⪰ 0.

    ∇F(M) = 2AMA + BM + MB + 2C (LRO eq. 11). With M = LLᵀ everything is made of AL, BL, CL
    and r × r Gram matrices; no product with A, B or C is repeated during a search.
    """

    quadratic = True

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
        self.dense_numbers = max(dense_numbers(matrix) for matrix in (self.A, self.B, self.C))
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
            b = self.B.scale if _is_multiple_of_identity(self.B) else None
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
        """2⟨C, D⟩ for D = LLᵀ with AD = 0 and BD = 0, +inf for others: F is a parabola there."""
        trace, (a, b, c) = _square(image.factor), self._sizes
        curved = norm(image.AL) > FLAT * a * np.sqrt(trace)
        curved |= inner(image.factor, image.BL) > FLAT * b * trace
        slope = np.inf if curved else 2 * inner(image.factor, image.CL)
        return slope, 2 * FLAT * c * trace

    def flat(self) -> Array | None:
        """The common null space of A and B, where it is not everything."""
        a, b, _ = self._sizes
        if self.order > DENSE_ORDER or a + b == 0:
            return None
        if not self.place.is_host:
            known = at_home(self).flat()
            return None if known is None else self.place.put(known)
        both = self.A.dense() / (a or 1.0) + self.B.dense() / (b or 1.0)
        sizes, vectors = eigh(both)
        return contiguous(vectors[:, sizes <= FLAT * self.order])

    def rounding(self, image: GramImage) -> float:
        """LᵀAL, LᵀBL and LᵀCL are off by √n u times |L|ᵀ|A||L| and so on; so are their squares.

        The norms of A, B and C come first, and the sizes of their entries where those say too much.
        """
        trace, value = _square(image.factor), abs(self.value(image))
        quick = self._rounding(image, value, *(size * trace for size in self._sizes))
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
    def _sizes(self) -> tuple[float, float, float]:
        """Norms of A, B and C, or what stands for them."""
        return size_of(self.A), size_of(self.B), size_of(self.C)

    def gradient_factor(self, image: GramImage) -> Array:
        """2∇F(M)L from the products at hand (LRO eq. 13)."""
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

    def blend(self, image: GramImage, other: GramImage) -> Blend:
        L, V = image.factor, other.factor
        through_A, through_B, plain = image.inside
        LL = _square(through_A) + inner(through_B, plain)
        LV = _square(image.AL.T @ V) + inner(image.BL.T @ V, L.T @ V)
        VV = _square(V.T @ other.AL) + inner(V.T @ other.BL, V.T @ V)
        linear = np.array([inner(L, image.CL), inner(V, other.CL)])
        Q = np.array([[LL, LV], [LV, VV]])

        def take(alpha: float, beta: float) -> GramImage:
            kept = [(s, i) for s, i in ((alpha, image), (beta, other)) if s > 0]
            if not kept:
                return GramImage(*(block[:, :0] for block in _blocks(image)))
            scaled = [[float(np.sqrt(s)) * block for block in _blocks(i)] for s, i in kept]
            return GramImage(*(side_by_side(columns) for columns in zip(*scaled, strict=True)))

        return Blend(QuadraticRestriction(Q, linear, self.constant), take)

    def line(self, image: GramImage, direction: Array) -> Line:
        move = self.image(direction)
        L, D = image.factor, direction
        through_A = _expansion(L, image.AL, D, move.AL)
        through_B = _expansion(L, image.BL, D, move.BL)
        plain = _expansion(L, L, D, D)
        mixed = through_B @ plain.T
        Q = through_A @ through_A.T + 0.5 * (mixed + mixed.T)
        linear = np.array([inner(L, image.CL), inner(D, image.CL), inner(D, move.CL)])

        def take(mu: float) -> GramImage:
            pairs = zip(_blocks(image), _blocks(move), strict=True)
            return GramImage(*(old + mu * new for old, new in pairs))

        return Line(QuadraticRestriction(Q, linear, self.constant), take)

    def value_dense(self, M: Array) -> float:
        AM = self.A @ M
        quadratic = inner(AM, AM.T) + inner(self.B @ M, M)
        return quadratic + 2 * inner(self.C.dense(), M) + self.constant

    def gradient_dense(self, M: Array) -> Array:
        BM = self.B @ M
        return 2 * (self.A @ (self.A @ M).T) + BM + BM.T + 2 * self.C.dense()

    @cached_property
    def _modulus(self) -> float:
        return max(0.0, self.A.lower) ** 2 + max(0.0, self.B.lower)

    @property
    def modulus(self) -> float:
        """m with ⟨M, 𝓗M⟩ ≥ m‖M‖², from A ⪰ aI and B ⪰ bI: m = a² + b."""
        return self._modulus

    @cached_property
    def eigenbasis(self) -> Eigenbasis | None:
        """The common eigenvectors of A and B where they commute and the order allows it."""
        if not self.place.is_host:
            known = at_home(self).eigenbasis
            return None if known is None else moved(known, self.place)
        if self._eigenbasis is not None:
            return self._eigenbasis
        if self.order > DENSE_ORDER:
            return None
        return _common_eigenbasis(self.A, self.B)

    def growth(self) -> Growth:
        """2⟨C, M⟩ ≥ 2c·tr M where C ⪰ cI, and ⟨M, 𝓗M⟩ ≥ m‖M‖² ≥ m (tr M)²/n, unless told."""
        if self._growth is not None:
            return self._growth
        return Growth(self.constant, 2 * self.C.lower, self.modulus / self.order)

    def support(self, image: GramImage) -> Support:
        """−q(M) under the slope ∇q(M) + 2C, q the square part; q*(s∇q(M)) = s²q(M).

        Its shift by tI costs t·tr M + t²n/4m, where q is strongly convex.
        """
        trace, m = _square(image.factor), self.modulus
        q = self.value(image) - self.constant - 2 * inner(image.factor, image.CL)

        def shifted(t: float) -> float:
            return self.constant - q - t * trace - t * t * self.order / (4 * m)

        def shrunk(s: float) -> float:
            return self.constant - s * s * q

        return Support(shrunk(1.0), 2 * self.C.lower, shrunk, shifted if m > 0 else None)

    def lower_bounds(self, image: GramImage, bottom: float) -> Iterator[LowerBound]:
        """For every S ⪰ 0, with G = ∇F(M): F(M) − F* ≤ ⟨S, M⟩ + ¼⟨G − S, 𝓗⁻¹(G − S)⟩.

        This is the Lagrangian dual at S. In a common eigenbasis 𝓗⁻¹ is a division; otherwise
        𝓗⁻¹ ⪯ 1/m by strong convexity. At large order S = P₊(G − 2mM), whose remainder is known
        exactly where B and C are low-rank plus a multiple of the identity.
        """
        if not self.place.is_host:
            home = at_home(self)
            yield from home.lower_bounds(home.image(host(image.factor)), bottom)
        elif self.order > DENSE_ORDER:
            yield from self._structured_bound(image)
        elif self.modulus > 0 or (self.eigenbasis is not None and np.any(self.eigenbasis.H > 0)):
            yield self._spectral_bound(image)

    def _spectral_bound(self, image: GramImage) -> LowerBound:
        """S = P₊(G − κM): κ > 0 keeps the range of M out of S, for several sizes of κ."""
        G = self.gradient(image).dense()
        M = image.factor @ image.factor.T
        size = norm(M)
        ratio = norm(G) / size if size > 0 else 0.0
        kappas = {0.0, 2 * self.modulus, ratio}
        if self.order > EXACT_ORDER:  # a second each: the one that is best as a rule
            kappas = {2 * self.modulus or ratio}
        gaps = [self._dual_gap(G, M, kappa) for kappa in kappas]
        gaps.append(self._flat_gap(G, M))
        method = "strong convexity" if self.eigenbasis is None else "Fenchel dual point"
        return LowerBound(self.value(image) - min(gaps), method)

    def _dual_gap(self, G: Array, M: Array, kappa: float) -> float:
        clock.check(eigen_seconds(self.order))
        S = _positive_part(G - kappa * M)
        R = G - S
        basis = self.eigenbasis
        if basis is None:
            return inner(S, M) + _square(R) / (4 * self.modulus)
        R = basis.V.T @ R @ basis.V
        flat = 1e-14 * np.max(basis.H, initial=0.0) >= basis.H
        if np.max(np.abs(R[flat]), initial=0.0) > 0:
            return np.inf
        return inner(S, M) + float(np.sum(R[~flat] ** 2 / basis.H[~flat])) / 4

    def _flat_gap(self, G: Array, M: Array) -> float:
        """S = G but where 𝓗 has curvature: there the least that makes it PSD is added.

        With the eigenvectors of curvature first, S = G + (T, 0; 0, 0) ⪰ 0 for the positive part T
        of −(G₁₁ − G₁₂G₂₂⁻¹G₂₁), where G₂₂ ≻ 0: it is 2C there, whatever M is.
        """
        basis = self.eigenbasis
        flat = None if basis is None else np.diag(basis.H) <= 1e-14 * np.max(basis.H, initial=0.0)
        if basis is None or flat is None or not flat.any() or flat.all():
            return np.inf
        turned = basis.V.T @ G @ basis.V
        first, last = ~flat, flat
        try:
            factor = scipy.linalg.cho_factor(turned[np.ix_(last, last)])
        except np.linalg.LinAlgError:
            return np.inf
        across = turned[np.ix_(first, last)]
        core = turned[np.ix_(first, first)] - across @ scipy.linalg.cho_solve(factor, across.T)
        T = _positive_part(-0.5 * (core + core.T))
        H = basis.H[np.ix_(first, first)]
        there = (basis.V.T @ M @ basis.V)[np.ix_(first, first)]
        return inner(G, M) + inner(T, there) + float(np.sum(T * T / H)) / 4

    @property
    def unit(self) -> float:
        """‖C‖²/‖𝓗‖: how far F can fall from F(0), about."""
        a, b, c = self._sizes
        return c * c / (a * a + b) if a * a + b > 0 else 0.0

    def _structured_bound(self, image: GramImage) -> Iterator[LowerBound]:
        """F* ≥ constant − s²‖LᵀAL‖² − ‖P₊(−sAMA − C)‖²/b for B = bI, C = cI + UDUᵀ and any s.

        This is q linearised at sM with b‖·‖² kept whole; it is concave in s, and best near 1
        where M is near the optimum.
        """
        B, C = self.B, self.C
        if not (_is_multiple_of_identity(B) and isinstance(C, LowRankPlusIdentity)):
            return
        if B.scale <= 0:
            return
        span = side_by_side([image.AL, C.factor])
        R: Array = scipy.linalg.qr(span, mode="r", check_finite=False)[0][: span.shape[1]]
        moving, still = R[:, : image.AL.shape[1]], R[:, image.AL.shape[1] :]
        fixed, change = (still * C.weights) @ still.T, moving @ moving.T
        outside = (self.order - R.shape[0]) * max(0.0, -C.scale) ** 2
        quadratic = _square(image.inside[0])

        def minus_bound(s: float) -> float:
            inside = -C.scale - np.linalg.eigvalsh(fixed + s * change)
            positive = outside + float(np.sum(np.maximum(inside, 0.0) ** 2))
            return s * s * quadratic + positive / B.scale - self.constant

        best = scipy.optimize.minimize_scalar(minus_bound, bounds=(0.0, 2.0), method="bounded")
        yield LowerBound(-min(float(best.fun), minus_bound(1.0)), "strong convexity")


def _common_order(A: Any, B: Any, C: Any) -> int:
    for value in (A, B, C):
        if hasattr(value, "order"):
            return int(value.order)
        shape = np.shape(value) if not hasattr(value, "shape") else value.shape
        if len(shape) == 2:
            return int(shape[0])
    raise ValueError("at least one of A, B, C must be a matrix, to say the order of M")


def _common_eigenbasis(A: Any, B: Any) -> Eigenbasis | None:
    order = A.order
    if _is_multiple_of_identity(A) and _is_multiple_of_identity(B):
        return Eigenbasis(np.eye(order), np.full(order, A.scale), np.full(order, B.scale))
    clock.check(2 * eigen_seconds(order))
    if _is_multiple_of_identity(B):
        a, V = eigh(A.dense())
        return Eigenbasis(V, lowered(a), np.full(order, B.scale))
    b, V = eigh(B.dense())
    if _is_multiple_of_identity(A):
        return Eigenbasis(V, np.full(order, A.scale), lowered(b))
    # Within an eigenspace of B any basis will do for B: the sum with A picks the one A needs.
    A_dense, B_dense = A.dense(), B.dense()
    if not A_dense.any():
        return Eigenbasis(V, np.zeros(order), lowered(b))
    if not B_dense.any():
        a, V = eigh(A_dense)
        return Eigenbasis(V, lowered(a), np.zeros(order))
    size = norm(A_dense) * norm(B_dense)
    if norm(A_dense @ B_dense - B_dense @ A_dense) > 1e-12 * size:
        return None
    mix = A_dense / norm(A_dense) + np.sqrt(0.5) * B_dense / norm(B_dense)
    _, V = eigh(mix)
    rotated_A, rotated_B = V.T @ A_dense @ V, V.T @ B_dense @ V
    a, b = np.diag(rotated_A).copy(), np.diag(rotated_B).copy()
    off = norm(rotated_A - np.diag(a)) * norm(B_dense)
    off += norm(rotated_B - np.diag(b)) * norm(A_dense)
    if off > 1e-11 * size:
        return None
    # What V leaves off the diagonal counts as rounding of both.
    left_A = norm(rotated_A - np.diag(a))
    left_B = norm(rotated_B - np.diag(b))
    return Eigenbasis(V, lowered(a - left_A), lowered(b - left_B))


def _is_multiple_of_identity(matrix: Any) -> TypeGuard[LowRankPlusIdentity]:
    return isinstance(matrix, LowRankPlusIdentity) and matrix.weights.shape[0] == 0


def _expansion(L: Array, KL: Array, D: Array, KD: Array) -> Array:
    """Rows LᵀKL, sym(LᵀKD), DᵀKD of (L+μD)ᵀK(L+μD) over θ = (1, 2μ, μ²), each flattened."""
    cross = L.T @ KD
    rows = [host(L.T @ KL), host(0.5 * (cross + cross.T)), host(D.T @ KD)]
    return np.stack([row.ravel() for row in rows])


def _positive_part(S: Array) -> Array:
    """P₊(S), nudged up by its rounding error so that it is PSD in truth."""
    values, vectors = eigh(S)
    lift = values.size * np.finfo(float).eps * np.max(np.abs(values), initial=0.0)
    return (vectors * (np.maximum(values, 0.0) + lift)) @ vectors.T


def _blocks(image: GramImage) -> tuple[Array, Array, Array, Array]:
    return image.factor, image.AL, image.BL, image.CL


def _square(U: Array) -> float:
    return inner(U, U)
