"""F(M) = g(𝒜(M)) + ⟨C, M⟩: a loss of a linear map, and a linear term."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, lsqr

from gramian.backends.arrays import (
    absolute_inner,
    as_double,
    at_home,
    beside,
    host,
    in_single,
    inner,
    largest,
    moved,
    namespace,
    relocated,
    stored,
)
from gramian.backends.blocks import Blocks
from gramian.linalg.svec import svec, triangle_size
from gramian.losses import Loss
from gramian.losses.base import Separable, error_of, least_squares_of, on_simplex, recession_of
from gramian.maps import (
    BlockEntries,
    Congruence,
    Entries,
    LinearMap,
    Mix,
    PairDistances,
    Stack,
    WhitenedDistances,
)
from gramian.maps.whitened import DenseRoot
from gramian.maps.written import Written, is_small
from gramian.objectives.base import (
    Beside,
    Blend,
    Growth,
    Line,
    LowerBound,
    Objective,
    SquaredForms,
    SymmetricOperator,
    Whitening,
)
from gramian.objectives.coordinates import seen_coordinates
from gramian.objectives.halves import Halves
from gramian.objectives.matrices import (
    Gram,
    LowRankPlusIdentity,
    Rooted,
    Sparse,
    absolute_product,
    as_symmetric,
    dense_numbers,
    diagonal_of,
    size_of,
)
from gramian.objectives.parts import adjoint_parts, connected_parts, parts_of
from gramian.objectives.restriction import CompositeRestriction
from gramian.objectives.structure import composite_errors, composite_form, whitened_errors
from gramian.objectives.supports import Support, feasible
from gramian.objectives.whitened import WhitenedImage, edge_weights, whitening
from gramian.proofs import PencilRoot, lowest, rounded_sum

Array = NDArray[np.floating]

PENCIL_ORDER = 500
"""Up to this order a generalised eigenvalue is cheap beside the solve."""


SMALL_ROUNDING = 1e-10
"""Rounding that need not be told more exactly."""

ROUNDED_IMAGE = 1e-13
"""A value of 𝒜(D), in units of tr D, that counts as 0 along a ray."""

FLATTENING, LSQR = 6, 400
"""Newton steps towards a ray without curvature, and the products of each."""

LEAST_DIAGONAL = 0.8
"""The part of the mean of |∇F_ii| that a preconditioner raises the diagonal of ∇F to."""

SEEN_NUMBERS = 5_000_000
"""Order times terms and order up to which coordinates in units of the data are worth their time:
one singular value decomposition of the data."""

SMALL = 10
"""Orders above which whitened coordinates are worth a sparse factorisation."""


@dataclass(frozen=True)
class CompositeImage:
    """L, z = 𝒜(LLᵀ), ⟨C, LLᵀ⟩, CL, and what the map sees of L where that is known."""

    factor: Array
    z: Array
    linear: float
    CL: Array
    seen: Array | None = None


class Composite(Objective):
    """F(M) = g(𝒜(M)) + ⟨C, M⟩ + constant, with gradient 𝒜*(∇g(z)) + C."""

    def __init__(self, map: LinearMap, loss: Loss, C: Any = None, *, constant: float = 0.0) -> None:
        self.map, self.loss, self.constant = map, loss, float(constant)
        if loss.size not in (None, map.size):
            raise ValueError(f"the loss is for {loss.size} values, but the map gives {map.size}")
        self.order, self.sees = map.order, map.size
        self.quadratic = loss.quadratic
        self.C = as_symmetric(C, "C", self.order)
        self.wide = isinstance(map, BlockEntries)
        self.spans = not isinstance(map, Entries | PairDistances | BlockEntries | WhitenedDistances)
        self.dense_numbers = max(map.dense_numbers, dense_numbers(self.C))
        if not map.place.is_host:
            self.place = map.place
            self.loss, self.C = moved(loss, self.place), moved(self.C, self.place)

    @property
    def entries(self) -> Any:
        """The map, where it is of entries."""
        return self.map

    @property
    def apart(self) -> dict[tuple[int, ...], int]:
        return self.map.apart

    def with_linear(self, C: Any) -> Composite:
        """The same with another linear term, sharing map and loss; at the same place."""
        if not self.place.is_host:
            changed = at_home(self).with_linear(C)
            return relocated(self, changed, C=moved(changed.C, self.place))
        return Composite(self.map, self.loss, C, constant=self.constant)

    def single(self) -> Composite | None:
        """With X and C in float32; what the loss sees of M is summed in float64 all the same."""
        base = self.map.base if isinstance(self.map, Congruence) else self.map
        base = base.base if isinstance(base, Mix) else base
        plain = isinstance(base, Entries | PairDistances | BlockEntries)
        return self._single if plain else None

    @cached_property
    def _single(self) -> Composite:
        found = copy(self)
        found.map, found.C = in_single(self.map), in_single(self.C)
        return found

    @cached_property
    def for_steps(self) -> Composite:
        """With the map of a small M written out."""
        if not is_small(self.map):
            return self
        found = copy(self)
        found.map = Written(self.map)
        return found

    def image(self, L: Array) -> Any:
        if isinstance(self.map, WhitenedDistances) and isinstance(self.C, Rooted):
            return WhitenedImage(self.map, self.C, L)
        CL, seen = self.C @ L, self.map.seen(L)
        linear = self.C.square(L) if isinstance(self.C, Gram) else inner(L, CL)
        return CompositeImage(L, self.map.of_seen(seen), linear, CL, seen)

    def pair_image(self, X: Array, Y: Array) -> CompositeImage:
        return CompositeImage(X[:, :0], self.map.bilinear(X, Y), inner(X, self.C @ Y), X[:, :0])

    def value(self, image: CompositeImage) -> float:
        return self.loss.value(image.z) + image.linear + self.constant

    def gradient(self, image: CompositeImage) -> SymmetricOperator:
        return self.dual_operator(self.loss.gradient(image.z))

    def dual(self, image: CompositeImage) -> Array:
        """w = ∇g(z)."""
        return self.loss.gradient(image.z)

    def toward(self, image: CompositeImage, other: CompositeImage, share: float) -> CompositeImage:
        """(1 − share) M + share N."""
        none = other.factor[:, :0]
        z = stored(image.z + share * (other.z - image.z))
        return CompositeImage(none, z, image.linear + share * (other.linear - image.linear), none)

    def beside(self, image: CompositeImage, V: Array) -> Beside:
        """g(z + Zs) + ⟨C, VSVᵀ⟩ with the columns Z = 𝒜(V·Vᵀ) of the map."""
        Z, z, linear = stored(self.map.columns(V)), image.z, svec(host(V.T @ (self.C @ V)))

        def taken(S: Array) -> CompositeImage:
            s = svec(S)
            moved = stored(z + Z @ beside(Z, s))
            return CompositeImage(V[:, :0], moved, image.linear + float(linear @ s), V[:, :0])

        slope = host(Z.T @ self.loss.gradient(z)) + linear
        return Beside(host(self.loss.curvature(z, Z)), slope, taken)

    def complementarity(self, image: CompositeImage) -> float | None:
        """⟨w, z⟩ + ⟨C, M⟩ for the entries of a block."""
        if not isinstance(self.map, BlockEntries):
            return None
        return float(self.loss.gradient(image.z) @ image.z) + image.linear

    def dual_operator(self, w: Array) -> SymmetricOperator:
        """𝒜*(w) + C."""
        w, fused = stored(w), list[Any]()

        def product(V: Array) -> Array:
            if V.ndim == 2:
                return self.map.adjoint(w, V) + self.C @ V
            # A Krylov method asks for one vector many times: one sparse matrix for all of them.
            if not fused:
                fused.append(self._vector_gradient(w))
            quick: Array = fused[0](V)
            return quick

        return SymmetricOperator(
            self.order,
            product,
            lambda: self.map.adjoint_matrix(w) + self.C.dense(),
            lambda: self._form(w),
            lambda: self._errors(w),
            self.place,
            self.coordinates,
        )

    def _errors(self, w: Array) -> Array:
        """e² for the dense 𝒜*(w) + C."""
        if isinstance(self.map, WhitenedDistances) and isinstance(self.map.root, DenseRoot):
            return whitened_errors(self.map, host(w), self.C)
        return composite_errors(self.map, w)

    def _form(self, w: Array) -> Any:
        """What 𝒜*(w) + C is made of, on the host but for the blocks of a completion."""
        if isinstance(self.map, BlockEntries) and not self.map.streamed:
            return composite_form(self.map, w, at_home(self.C))
        return composite_form(at_home(self.map), host(w), at_home(self.C))

    def rounding(self, image: CompositeImage) -> float:
        """Of the loss and its slope along z, of ⟨C, M⟩, and of z where data come before it."""
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
        linear = longest * self._size_of_C * inner(image.factor, image.factor)
        if linear > SMALL_ROUNDING * terms:  # entries tell more than norms
            sizes = xp.abs(image.factor)
            linear = min(linear, longest * inner(sizes, absolute_product(self.C, sizes)))
        return found + linear

    @cached_property
    def _size_of_C(self) -> float:
        return size_of(self.C)

    def gradient_factor(self, image: CompositeImage) -> Array:
        """2(𝒜*(w)L + CL) with the CL at hand."""
        if isinstance(image, WhitenedImage) and isinstance(self.map, WhitenedDistances):
            return image.slope(self.map, self.loss.gradient(image.z))
        seen = self.map.seen(image.factor) if image.seen is None else image.seen
        return 2.0 * (self.map.adjoint_of_seen(self.loss.gradient(image.z), seen) + image.CL)

    def recession(self, image: CompositeImage) -> tuple[float, float]:
        """g∞(𝒜(D)) + ⟨C, D⟩ for D = LLᵀ."""
        L = image.factor
        noise = ROUNDED_IMAGE * inner(L, L) + self.map.error(L, image.z)
        unsure = rounded_sum(self.order) * self._size_of_C * inner(L, L)
        return recession_of(self.loss, image.z, noise) + image.linear, unsure

    def flat(self) -> Array | None:
        """For squares of distances: the indicators of the connected parts of their graph."""
        if not (self.quadratic and isinstance(self.map, PairDistances) and self.place.is_host):
            return None
        squares = least_squares_of(self.loss)
        if squares is None or squares.ridge is not None or np.any(squares.scale == 0):
            return None
        return connected_parts(self.map.rows, self.map.cols, self.order)

    def flattened(self, V: Array) -> Array:
        """Newton's steps of least norm towards 𝒜(VVᵀ) = 0, where that is not 0 and must be."""
        if not self.place.is_host:
            flat: Array = self.place.put(at_home(self).flattened(host(V)))
            return flat
        noise = np.full(self.map.size, 1e-15 * float(np.sum(V * V)))
        for _ in range(FLATTENING):
            z = self.map.bilinear(V, V)
            off = z if self.quadratic else np.minimum(z, 0.0)
            if not np.any(off) or np.isfinite(recession_of(self.loss, z, noise)):
                break
            V = V - self._least_change(V, off)
        return V

    def _least_change(self, V: Array, off: Array) -> Array:
        """The smallest D that changes 𝒜(VVᵀ) by `off` to first order, where that is not 0."""
        bilinear, adjoint = self.map.fixed(V)
        live = off != 0
        system = LinearOperator(
            (off.size, V.size),
            matvec=lambda d: 2 * live * bilinear(d.reshape(V.shape)),
            rmatvec=lambda w: 2 * adjoint(live * w).ravel(),
            dtype=float,
        )
        found = lsqr(system, off, atol=1e-14, btol=1e-14, iter_lim=LSQR)[0]
        change: Array = found.reshape(V.shape)
        return change

    def hessian_factor(self, image: CompositeImage) -> Callable[[Array], Array]:
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

    def coordinates(self) -> Array | None:
        return self._coordinates

    @cached_property
    def _coordinates(self) -> Array | None:
        numbers = self.order * (self.order + self.map.size)
        if self.order > PENCIL_ORDER or numbers > SEEN_NUMBERS or not self.place.is_host:
            return None
        if isinstance(self.map, WhitenedDistances):
            return None
        with np.errstate(all="ignore"):
            found = seen_coordinates(self.map, self.C.dense())
        return found if np.all(np.isfinite(found)) else None

    def blend(self, image: CompositeImage, other: CompositeImage) -> Blend:
        xp = namespace(image.z)

        def take(alpha: float, beta: float) -> CompositeImage:
            kept = [(float(np.sqrt(s)), i) for s, i in ((alpha, image), (beta, other)) if s > 0]
            empty = [image.factor[:, :0]]
            L = xp.concat([root * i.factor for root, i in kept] or empty, axis=1)
            return CompositeImage(
                L,
                self._image_of(L, alpha * image.z + beta * other.z),
                alpha * image.linear + beta * other.linear,
                xp.concat([root * i.CL for root, i in kept] or empty, axis=1),
            )

        images = stored(xp.stack([image.z, other.z], axis=1))
        linear = np.array([image.linear, other.linear])
        return Blend(CompositeRestriction(self.loss, images, linear, self.constant), take)

    def line(self, image: CompositeImage, direction: Array) -> Line:
        L = image.factor
        cross = self.map.bilinear(L, direction)
        square = self.map.bilinear(direction, direction)
        C_direction = self.C @ direction
        images = stored(namespace(image.z).stack([image.z, cross, square], axis=1))
        linear = np.array([image.linear, inner(L, C_direction), inner(direction, C_direction)])

        def take(mu: float) -> CompositeImage:
            theta = np.array([1.0, 2 * mu, mu * mu])
            moved = L + mu * direction
            return CompositeImage(
                moved,
                self._image_of(moved, images @ beside(images, theta)),
                float(linear @ theta),
                image.CL + mu * C_direction,
            )

        return Line(CompositeRestriction(self.loss, images, linear, self.constant), take)

    def _image_of(self, L: Array, combined: Any) -> Array:
        """𝒜(LLᵀ), which is `combined` of other images: of `Blocks` no chain of them is made."""
        return self.map.of_factor(L) if isinstance(combined, Blocks) else combined

    def value_dense(self, M: Array) -> float:
        return self.loss.value(self.map.of_matrix(M)) + inner(M, self.C.dense()) + self.constant

    def gradient_dense(self, M: Array) -> Array:
        w = self.loss.gradient(self.map.of_matrix(M))
        return self.map.adjoint_matrix(w) + self.C.dense()

    def metric(self) -> Array | None:
        """𝒜*(1), a Laplacian for distances: ∇²F is a sum of (a_e a_eᵀ) ⊗ (a_e a_eᵀ) there."""
        root = self._image_root
        if root is None or root.null.shape[1]:
            return None
        return self.map.adjoint_matrix(self.place.put(np.ones(self.map.size)))

    def preconditioner(self, image: CompositeImage) -> Callable[[Array], Array] | None:
        """The part of the Hessian within each row of the factor, inverted; for entries.

        That is 2 G_ii I and what the loss bends there (`Entries.row_systems`), G = ∇F, whose
        diagonal is raised where it is near 0 or below.
        """
        if not (isinstance(self.map, Entries) and isinstance(self.loss, Separable)):
            return None
        if self._diagonal is None:
            return None
        xp = namespace(image.z)
        diagonal = self._diagonal + self.map.adjoint_diagonal(self.loss.gradient(image.z))
        least = LEAST_DIAGONAL * float(xp.mean(xp.abs(diagonal))) or 1.0
        bend = self.loss.hessian(image.z)(xp.ones_like(image.z))
        raised = xp.where(diagonal > least, diagonal, least)
        return self.map.row_systems(bend, 2.0 * raised, image.factor)

    @cached_property
    def _diagonal(self) -> Array | None:
        """That of C, where it is at hand."""
        found = diagonal_of(at_home(self.C))
        return None if found is None else as_double(self.place.put(found))

    def whitened(self) -> Whitening | None:
        """Distances along a connected graph, in coordinates where its Laplacian is the identity.

        None unless F is blind to a shift of all points, which those coordinates leave out.
        """
        if not isinstance(self.map, PairDistances) or self.order <= SMALL:
            return None
        return self._whitening

    @cached_property
    def _whitening(self) -> Whitening | None:
        return whitening(self)

    def halves(self, dtype: Any = float) -> Halves | None:
        """Squares of some entries of a block, beside a multiple of the trace; on the host."""
        if not self.place.is_host:
            return None
        key = np.dtype(dtype)
        if key not in self._halved:
            self._halved[key] = self._halves(key)
        return self._halved[key]

    @cached_property
    def _halved(self) -> dict[Any, Halves | None]:
        return {}

    def _halves(self, dtype: Any) -> Halves | None:
        squares, C = least_squares_of(self.loss, dtype), self.C
        even = isinstance(C, LowRankPlusIdentity) and not C.weights.shape[0] and C.scale > 0
        if squares is None or not even or not isinstance(self.map, BlockEntries):
            return None
        return Halves.of(self.map, self.loss, squares, 2.0 * C.lower, dtype)

    def forms(self) -> SquaredForms | None:
        """A sum of squares of distances that has whitened coordinates; on the host."""
        squares, map = least_squares_of(self.loss), self.map
        if squares is None or squares.ridge is not None or not self.place.is_host:
            return None
        if not isinstance(map, WhitenedDistances) or not isinstance(self.C, Rooted):
            return None
        scale = np.broadcast_to(squares.scale, map.kept.shape)
        C = self.C.matrix.dense()[1:, 1:]
        return SquaredForms(
            map.form_vectors(), scale**-2.0, squares.targets / scale, 0.5 * (C + C.T), map.kept
        )

    def costly_bounds(self, w: Array | None, seconds: float) -> Iterator[LowerBound]:
        """The dual point shifted along the edges that whiten, by λ_min in their coordinates.

        Where `dual_bounds` does not find that shift itself.
        """
        white = self.whitened() if self.order > PENCIL_ORDER else None
        if white is None or w is None:
            return
        evened = white.objective
        assert isinstance(evened, Composite) and isinstance(evened.map, WhitenedDistances)
        bottom = lowest(evened.dual_operator(w), seconds=seconds)
        shift = max(0.0, -bottom.value)
        if bottom.how == "eigenvalues":  # of coordinates that are white to rounding only
            shift = shift * (1 + 1e-9) + 1e-14 * largest(w)
        found = self._dual_point(w + shift * evened.map.kept)
        yield replace(found, how=bottom.how, miss=bottom.miss)

    def smoothed(self, mu: float) -> Composite | None:
        loss = self.loss.smoothed(mu)
        if loss is None:
            return None
        return Composite(self.map, loss, self.C, constant=self.constant)

    def growth(self) -> Growth:
        """g ≥ inf g, and ⟨C, M⟩ ≥ c·tr M where C ⪰ cI."""
        return Growth(self.constant + self.loss.infimum, self.C.lower)

    def lower_bounds(self, image: CompositeImage, bottom: float) -> Iterator[LowerBound]:
        return self.dual_bounds(self.dual(image), bottom)

    def dual_bounds(self, w: Array, bottom: float) -> Iterator[LowerBound]:
        """Fenchel dual points: F ≥ −g*(w) wherever 𝒜*(w) + C ⪰ 0.

        w needs no change where its λ_min, `bottom`, is at least 0. Otherwise it is moved by one
        scalar: scaled by c/(c − bottom) where C ⪰ cI, shifted by −bottom along weights whose
        adjoint is I, or shifted along the weights s of all edges where their adjoint P is a
        Laplacian: by −λ_min of the pencil (𝒜*(w) + C, P).
        """
        support = self.dual_support(w)
        yield from feasible(support, bottom)
        if bottom >= 0 or (support.shifted is not None and np.isfinite(bottom)):
            return
        if on_simplex(self.loss) or self._image_root is None:
            return
        # The domain of g* is convex: where the least shift leaves it, every other one does.
        if not np.isfinite(self.loss.conjugate(w + self._least_shift(w) * self._along_all)):
            return
        shift = self._pencil_shift(w)
        if shift is not None:
            yield self._dual_point(w + shift * self._along_all)

    def support(self, image: CompositeImage) -> Support:
        return self.dual_support(self.dual(image))

    def dual_support(self, w: Array) -> Support:
        """−g*(w) under the slope 𝒜*(w) + C."""
        identity = self.map.identity_weights()

        def at(w: Array) -> float:
            return self.constant - self.loss.conjugate(w)

        shifted = None if identity is None else lambda t: at(w + t * identity)
        along = getattr(self.loss, "conjugate_along", None)
        if along is None:
            return Support(at(w), self.C.lower, lambda s: at(s * w), shifted)
        told = along(w)
        return Support(
            self.constant - told(1.0), self.C.lower, lambda s: self.constant - told(s), shifted
        )

    def _pencil_shift(self, w: Array) -> float | None:
        """A t with 𝒜*(w + ts) + C ⪰ 0 near the least, None where P = 𝒜*(s) cannot mend it.

        The null space of P (the constants, for the Laplacian of a graph) must be one of 𝒜*(w) and
        of C too, as it is where C is centred; C counts as centred where it is so to rounding.
        """
        assert self._image_root is not None
        root = self._image_root
        C, image = host(self.C.dense()), host(self.map.adjoint_matrix(w))
        for part in (C, image):  # each by its own size: a large one would hide a small one
            if np.linalg.norm(part @ root.null) > 1e-12 * np.linalg.norm(part):
                return None
        slack = composite_errors(self.map, w) + rounded_sum(1) * np.abs(C).sum(axis=1)
        return max(0.0, -root.lowest(image + C, slack))

    def _least_shift(self, w: Array) -> float:
        """A shift far below all that matter: whether g* is finite along s at all."""
        return 1e-14 * largest(w)

    @cached_property
    def _image_root(self) -> PencilRoot | None:
        """R with RᵀPR = I on the range of P = 𝒜*(s) ⪰ 0, and a basis of its null space.

        None where P has a null space that is not known to be one exactly: that of a graph's
        Laplacian has as many dimensions as the graph has components.
        """
        if self.order > PENCIL_ORDER:
            return None
        P = host(self.map.adjoint_matrix(self._along_all))
        root = PencilRoot.of(P, composite_errors(self.map, self._along_all))
        if root is None or not root.null.shape[1]:
            return root
        components = connected_components(sp.csr_array(P != 0))[0]
        known = _sees_distances_only(self.map) and components == root.null.shape[1]
        return root if known else None

    @cached_property
    def _along_all(self) -> Array:
        """s: equal weights, or those that whitened coordinates have for the edges of a graph."""
        known = edge_weights(self.loss) if isinstance(self.map, PairDistances) else 1.0
        return self.place.put(np.ones(self.map.size) * known)

    def _dual_point(self, w: Array) -> LowerBound:
        return LowerBound(self.constant - self.loss.conjugate(w), "Fenchel dual point")

    def _vector_gradient(self, w: Array) -> Callable[[Array], Array]:
        """v ↦ (𝒜*(w) + C)v, as one sparse matrix where both are sparse."""
        if not self.place.is_host:
            return self._moved_gradient(w)
        if isinstance(self.map, Entries | PairDistances) and isinstance(self.C, Sparse):
            matrix = self.map.adjoint_sparse(w) + self.C.matrix
            return lambda v: matrix @ v
        if isinstance(self.map, WhitenedDistances) and isinstance(self.C, Rooted):
            return self.map.root.congruence(self.map.distances.adjoint_sparse(w), self.C.matrix)
        if isinstance(self.map, Mix | Stack):
            adjoint, linear = adjoint_parts(self.map, w), parts_of(self.C)
            if adjoint is not None and linear is not None:
                return (adjoint + linear).__matmul__
        quick = self.map.vector_product(w)
        if quick is not None:
            return lambda v: quick(v) + self.C @ v
        return self._moved_gradient(w)

    def _moved_gradient(self, w: Array) -> Callable[[Array], Array]:
        """The same with vectors as matrices of one column."""
        return lambda v: self.map.adjoint(w, v[:, None])[:, 0] + self.C @ v


def _sees_distances_only(map: Any) -> bool:
    """Whether 𝒜*(w) is 0 on the constants, without rounding, for every w."""
    if isinstance(map, Mix):
        return _sees_distances_only(map.base)
    if isinstance(map, Stack):
        return all(_sees_distances_only(part) for part in map.maps)
    return isinstance(map, PairDistances)
