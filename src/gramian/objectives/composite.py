"""F(M) = g(𝒜(M)) + ⟨C, M⟩: a loss of a linear map plus a linear term."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramian.arrays.blocks import Blocks
from gramian.arrays.places import (
    absolute_inner,
    at_home,
    beside,
    host,
    inner,
    moved,
    namespace,
    relocated,
    stored,
)
from gramian.common.parameters import check_made
from gramian.common.types import Array
from gramian.linalg.svec import svec, triangle_size
from gramian.linalg.tolerances import ROUNDING
from gramian.losses import Loss, Squared
from gramian.losses.base import error_of, recession_of
from gramian.maps import (
    BlockEntries,
    Entries,
    LinearMap,
    PairDistances,
    Stack,
    WhitenedDistances,
)
from gramian.objectives.base import (
    Combinations,
    Facts,
    Image,
    Join,
    Objective,
    Pairs,
    SymmetricOperator,
)
from gramian.objectives.free_diagonals import known_diagonal_bounds
from gramian.objectives.matrices import (
    SMALL_ROUNDING,
    Gram,
    Rooted,
    absolute_product,
    dense_numbers,
    size_of,
)
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.objectives.operators import dual_operator
from gramian.objectives.pencil import PENCIL_ORDER, WhitenedImage, pencil_bounds
from gramian.objectives.restriction import CompositeRestriction
from gramian.objectives.supports import Growth, LowerBound, Support, feasible
from gramian.proofs import rounded_sum


@dataclass(frozen=True)
class CompositeImage:
    """L, z = 𝒜(LLᵀ), ⟨C, LLᵀ⟩, CL, and the map's intermediate result `seen` if known."""

    factor: Array
    z: Array
    linear: float
    CL: Array
    seen: Any = None


Seen = CompositeImage | WhitenedImage


class Composite(Objective[Seen]):
    """F(M) = g(𝒜(M)) + ⟨C, M⟩ + constant, with gradient 𝒜*(∇g(z)) + C."""

    def __init__(self, map: LinearMap, loss: Loss, C: Any = None, *, constant: float = 0.0) -> None:
        check_made(map, "bilinear", "map", "a map of gramian.maps")
        check_made(loss, "gradient", "loss", "a loss of gramian.losses")
        self.map, self.loss, self.constant = map, loss, float(constant)
        if loss.size not in (None, map.size):
            raise ValueError(f"the loss takes {loss.size} values, but the map gives {map.size}")
        self.order = map.order
        self.C = as_symmetric(C, "C", self.order)
        sparse = isinstance(map, Entries | PairDistances | BlockEntries | WhitenedDistances)
        self.facts = Facts(
            quadratic=loss.quadratic,
            terms=map.size,
            single_loss=True,
            dense_numbers=max(map.dense_numbers, dense_numbers(self.C)),
            spans=not sparse,
            wide=isinstance(map, BlockEntries),
            streams=map.apart,
        )
        if not map.place.is_host:
            self.place = map.place
            self.loss, self.C = moved(loss, self.place), moved(self.C, self.place)

    @property
    def entries(self) -> Any:
        """The map, if it consists of entries."""
        return self.map

    def with_linear(self, C: Any) -> Composite:
        """The objective with another linear term on the same device; map and loss are shared."""
        if not self.place.is_host:
            changed = at_home(self).with_linear(C)
            return relocated(self, changed, C=moved(changed.C, self.place))
        return Composite(self.map, self.loss, C, constant=self.constant)

    def image(self, L: Array) -> Seen:
        if isinstance(self.map, WhitenedDistances) and isinstance(self.C, Rooted):
            return WhitenedImage(self.map, self.C, L)
        CL, seen = self.C @ L, self.map.seen(L)
        linear = self.C.square(L) if isinstance(self.C, Gram) else inner(L, CL)
        return CompositeImage(L, self.map.of_seen(seen, seen), linear, CL, seen)

    def pair_image(self, X: Array, Y: Array) -> CompositeImage:
        return CompositeImage(X[:, :0], self.map.bilinear(X, Y), inner(X, self.C @ Y), X[:, :0])

    def value(self, image: Seen) -> float:
        return self.loss.value(image.z) + image.linear + self.constant

    def gradient(self, image: Seen) -> SymmetricOperator:
        return self.dual_operator(self.loss.gradient(image.z))

    def dual(self, image: Seen) -> Array:
        """w = ∇g(z)."""
        return self.loss.gradient(image.z)

    def complementarity(self, image: Seen) -> float | None:
        """⟨w, z⟩ + ⟨C, M⟩ for the entries of a block."""
        if not isinstance(self.map, BlockEntries):
            return None
        return float(self.loss.gradient(image.z) @ image.z) + image.linear

    def dual_operator(self, w: Array) -> SymmetricOperator:
        """𝒜*(w) + C."""
        return dual_operator(self, w)

    def rounding(self, image: Seen) -> float:
        """Of the loss and its slope along z, of ⟨C, M⟩, and of z if it depends on data."""
        w, xp = self.loss.gradient(image.z), namespace(image.z)
        along = absolute_inner(w, image.z)
        terms = abs(self.loss.value(image.z)) + abs(image.linear) + abs(self.constant) + along
        longest = rounded_sum(max(image.factor.shape))
        found = float(
            4 * rounded_sum(1) * terms
            + longest * along
            + error_of(self.loss, image.z)
            + self.map.error_along(w, image.factor, image.z)
        )
        if isinstance(self.C, Gram):
            return found + self.C.rounding(image.factor)
        linear = longest * self._size_of_C * self.trace(image)
        if linear > SMALL_ROUNDING * terms:  # entries give a sharper bound than norms
            sizes = xp.abs(image.factor)
            linear = min(linear, longest * inner(sizes, absolute_product(self.C, sizes)))
        return found + linear

    @cached_property
    def _size_of_C(self) -> float:
        return size_of(self.C)

    def gradient_factor(self, image: Seen) -> Array:
        """2(𝒜*(w)L + CL) with the stored CL."""
        if isinstance(image, WhitenedImage):
            assert isinstance(self.map, WhitenedDistances)
            return image.slope(self.map, self.loss.gradient(image.z))
        seen = self.map.seen(image.factor) if image.seen is None else image.seen
        return 2.0 * (self.map.adjoint_of_seen(self.loss.gradient(image.z), seen) + image.CL)

    def recession(self, image: Seen) -> tuple[float, float]:
        """g∞(𝒜(D)) + ⟨C, D⟩ for D = LLᵀ."""
        L = image.factor
        noise = ROUNDING * inner(L, L) + self.map.error(L, image.z)
        unsure = rounded_sum(self.order) * self._size_of_C * inner(L, L)
        return recession_of(self.loss, image.z, noise) + image.linear, unsure

    def hessian_factor(self, image: Seen) -> Callable[[Array], Array]:
        """D ↦ 2∇F(M)D + 4𝒜*(∇²g(z) 𝒜(sym(LDᵀ)))L."""
        gradient, bend = self.gradient(image), self.loss.hessian(image.z)
        G: Any = gradient.dense() if self.order <= PENCIL_ORDER else gradient
        bilinear, adjoint = self.map.fixed(image.factor)
        return lambda D: 2.0 * (G @ D) + 4.0 * adjoint(bend(bilinear(D)))

    def subspace(self, W: Array) -> CompositeRestriction:
        return CompositeRestriction(
            self.loss, stored(self.map.columns(W)), svec(host(W.T @ (self.C @ W))), self.constant
        )

    def subspace_cost(self, columns: int) -> int:
        return self.map.size * triangle_size(columns)

    def combinations(self, images: Sequence[Seen], pairs: Pairs) -> Combinations:
        found = [self._between(images[i], images[j]) for i, j in pairs]
        Z = stored(namespace(found[0][0]).stack([z for z, _ in found], axis=1))
        linear = np.array([along for _, along in found])

        def take(theta: Array, join: Join) -> CompositeImage:
            L, z = join([image.factor for image in images]), Z @ beside(Z, theta)
            if isinstance(z, Blocks):  # avoid nested functions of blocks
                z = self.map.of_factor(L)
            CL = join([image.CL for image in images])
            return CompositeImage(L, z, float(linear @ theta), CL)

        return Combinations(CompositeRestriction(self.loss, Z, linear, self.constant), take)

    def _between(self, one: Seen, other: Seen) -> tuple[Array, float]:
        """𝒜(M) and ⟨C, M⟩ for M = ½(XYᵀ + YXᵀ), using the images of X and Y."""
        if one is other:
            return one.z, one.linear
        return self.map.bilinear(one.factor, other.factor), inner(one.factor, other.CL)

    def growth(self) -> Growth:
        """g ≥ inf g, and ⟨C, M⟩ ≥ c·tr M if C ⪰ cI."""
        return Growth(self.constant + self.loss.infimum, self.C.lower)

    def dual_bounds(self, w: Array, bottom: float) -> Iterator[LowerBound]:
        """Fenchel dual points: F ≥ −g*(w) if 𝒜*(w) + C ⪰ 0.

        w needs no change if its λ_min, `bottom`, is at least 0. Otherwise it is changed by one
        scalar: scaled by c/(c − bottom) if C ⪰ cI, shifted by −bottom along weights whose
        adjoint is I, or shifted along the weights s of all edges if their adjoint P is a
        Laplacian: by −λ_min of the pencil (𝒜*(w) + C, P). For entries of M with unknown diagonal
        entries, w is also set to 0 in the rows of these.
        """
        support = self.dual_support(w)
        yield from feasible(support, bottom)
        if bottom < 0 and (support.shifted is None or not np.isfinite(bottom)):
            yield from pencil_bounds(self, w)
            yield from known_diagonal_bounds(self, w)

    def dual_support(self, w: Array) -> Support:
        """−g*(w) under the slope 𝒜*(w) + C."""
        identity = self.map.identity_weights()

        def at(w: Array) -> float:
            return self.constant - self.loss.conjugate(w)

        shifted = None if identity is None else lambda t: at(w + t * identity)
        along = getattr(self.loss, "conjugate_along", None)
        if along is None:
            return Support(at(w), self.C.lower, lambda s: at(s * w), shifted)
        g_at = along(w)
        return Support(
            self.constant - g_at(1.0), self.C.lower, lambda s: self.constant - g_at(s), shifted
        )


class Linear(Composite):
    """F(M) = ⟨C, M⟩ + constant: a composite of the map to R⁰.

    Over the whole cone it has a minimum only if C ⪰ 0; it is intended for problems with
    constraints.
    """

    def __init__(self, C: Any, order: int | None = None, *, constant: float = 0.0) -> None:
        symmetric = as_symmetric(C, "C", order)
        nothing = Stack((), symmetric.order)
        super().__init__(nothing, Squared(np.zeros(0)), symmetric, constant=constant)


@dataclass(frozen=True)
class Beside:
    """F(M + V S Vᵀ) for a few columns V, to second order in svec(S), and the resulting image."""

    hessian: Array
    gradient: Array
    image: Callable[[Array], Image]
    """S ↦ the image of M + V S Vᵀ, without a factor."""


def toward(objective: Objective, image: Any, other: Any, share: float) -> Any:
    """The image of (1 − share) M + share N, for objectives with dual vectors."""
    assert isinstance(objective, Composite)
    none = other.factor[:, :0]
    z = stored(image.z + share * (other.z - image.z))
    return CompositeImage(none, z, image.linear + share * (other.linear - image.linear), none)


def near(objective: Objective, image: Any, V: Array) -> Beside | None:
    """g(z + Zs) + ⟨C, VSVᵀ⟩ with the columns Z = 𝒜(V·Vᵀ) of the map; None for other objectives."""
    if not isinstance(objective, Composite):
        return None
    Z, z, linear = stored(objective.map.columns(V)), image.z, svec(host(V.T @ (objective.C @ V)))

    def taken(S: Array) -> CompositeImage:
        s = svec(S)
        moved = stored(z + Z @ beside(Z, s))
        return CompositeImage(V[:, :0], moved, image.linear + float(linear @ s), V[:, :0])

    slope = host(Z.T @ objective.loss.gradient(z)) + linear
    return Beside(host(objective.loss.curvature(z, Z)), slope, taken)
