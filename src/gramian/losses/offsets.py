"""The squared loss with free offsets of rows and columns, which are eliminated."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.blocks import Blocks
from gramian.arrays.places import (
    Placed,
    along,
    assembled,
    at_home,
    backend,
    inner,
    namespace,
    norm,
    number,
    place_of,
)
from gramian.common.types import Indices
from gramian.linalg import conjugate_gradient
from gramian.losses.base import Array, LeastSquares, Loss, PerImage

Sides = tuple[Array, Array]
"""One array for the rows and one for the columns."""

SMALL, DIRECT = 1000, 4000
"""Order of the reduced system up to which it is always factorised on the host, and up to which it
is factorised if conjugate gradients would cost more (0.1 GB)."""

EXPECTED_PRODUCTS = 300
"""Expected number of products by conjugate gradients in a run. On MovieLens 1M a system takes 56 ms
of CPU time by conjugate gradients and its factor 8 s: a default fit solves 6 systems, one to 1e-4
about a hundred."""

PRODUCT = 20.0
"""Cost of an entry of a sparse product, in multiplications of a dense one."""

INVERTED, BLOCK = 20_000, 2**26
"""Largest order of an inverse on a device, and the numbers of its work space."""

CHUNK, FEW = 2**16, 2**18
"""Entries per block of a sum, and the number of entries up to which their scales are stored."""

DEVICE_CHUNK = 2**24
"""Entries per block on a device: temporary arrays of 0.13 GB."""

EVERY = slice(None)

ACCURACY, REFINED_ACCURACY, MOST_STEPS = 1e-13, 1e-7, 5000
"""Relative residual at which conjugate gradients stop, without and with iterative refinement, and
their largest number of steps."""


class SquaredWithOffsets(Loss, Placed):
    """g(z) = min over β = (b, c) of ½ Σ_e ω_e (s_e z_e + b_i + c_j − t_e)² + κ/2 ‖β‖², e = (i, j).

    Convex in z, as a minimum over part of the arguments of a convex function. The optimal β solves
    a sparse system: the offsets of the longer side are eliminated, those of the shorter side are
    found by conjugate gradients from 0, or by a factorisation if that costs less. A residual ρ of
    the system causes an error of at most ‖ρ‖²/2κ (`error`); the conjugate is exact.

    Only the given arrays have one number per entry. Sums run over blocks of entries, and scales,
    targets and residuals are computed for one block at a time.

    Parameters
    ----------
    targets : array of shape (p,)
        t + μ, with μ the `centre`.
    rows, cols : index arrays of shape (p,), sorted by row
    shape : (m, n)
    ridge : float
        κ > 0.
    scale : number, array of shape (p,), or arrays of shape (m,) and (n,)
        s > 0; of two arrays, s_e is the product of the values of its row and of its column.
    weight : array of shape (p,), default=None
        ω > 0; None means 1.
    centre : float, default=0.0
        μ.
    """

    quadratic = True
    infimum = 0.0

    def __init__(
        self,
        targets: Array,
        rows: Indices,
        cols: Indices,
        shape: tuple[int, int],
        *,
        ridge: float,
        scale: Array | float | Sides = 1.0,
        weight: Array | None = None,
        centre: float = 0.0,
    ) -> None:
        self.given, self.ridge = np.asarray(targets, dtype=float), float(ridge)
        self.centre = float(centre)
        self.rows, self.cols, self.shape = rows, cols, shape
        self.size: int | None = self.given.size
        self.sides: Sides | None = None
        self.one_by_one: Array | None = None
        if isinstance(scale, tuple):
            self.sides = scale
            if self.given.size <= FEW:
                self.one_by_one = scale[0][rows] * scale[1][cols]
        else:
            self.one_by_one = np.broadcast_to(np.asarray(scale, dtype=float), self.given.shape)
        self.weight = None if weight is None else np.asarray(weight, dtype=float)

    @cached_property
    def smoothness(self) -> float:  # type: ignore[override]
        home = at_home(self)
        return max(
            float(np.max(home._weighted(home._scale(part) ** 2, part))) for part in home._parts()
        )

    def _scale(self, part: slice) -> Array:
        if self.one_by_one is not None:
            return self.one_by_one[part]
        assert self.sides is not None
        scale: Array = _at(self.sides[0], self.rows[part])
        scale *= _at(self.sides[1], self.cols[part])
        return scale

    def _parts(self) -> list[slice]:
        """Blocks of entries that fit into the cache; on a device long ones, or those streamed."""
        if isinstance(self.given, Blocks):
            return self.given.parts
        count, step = self.given.shape[0], CHUNK if self.place.is_host else DEVICE_CHUNK
        if count <= step and not self.place.is_host:
            return [EVERY]
        return [slice(k, k + step) for k in range(0, max(count, 1), step)]

    def offsets(self, z: Array) -> Sides:
        """b and c for a given z, stored as long as z exists."""
        return self._stored.get(z, self._fitted)

    @cached_property
    def _stored(self) -> PerImage[Sides]:
        return PerImage()

    def value(self, z: Array) -> float:
        b, c = self.offsets(z)
        squares = self.squares(z, (b, c))
        found: float = number(0.5 * squares + 0.5 * self.ridge * (b @ b + c @ c))
        return found

    def squares(self, z: Array, fitted: Sides) -> Any:
        """Σ ωe², e the residuals for given offsets."""
        squares: Any = 0.0
        for part in self._parts():
            left = self._left(z, part, fitted)
            squares = squares + left @ self._weighted(left, part)
        return squares

    def gradient(self, z: Array) -> Array:
        return self.slopes(z, self.offsets(z))

    def slopes(self, z: Array, fitted: Sides) -> Array:
        """−sωe."""

        def slope(part: slice) -> Array:
            return -self._scale(part) * self._weighted(self._left(z, part, fitted), part)

        return assembled(slope, self._parts(), z)

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """d ↦ sHsd, where H subtracts the optimal offsets of a vector."""

        def product(d: Array) -> Array:
            def scaled(part: slice) -> Array:
                return along(self._scale(part), d) * d[part]

            b, c = self._system(self._sums(lambda part: self._weighted(scaled(part), part)))

            def bent(part: slice) -> Array:
                e = scaled(part)
                e -= _at(b, self.rows[part])
                e -= _at(c, self.cols[part])
                e *= along(self._scale(part), d)
                return self._weighted(e, part)

            return assembled(bent, self._parts(), d)

        return product

    def curvature(self, z: Array, directions: Array) -> Array:
        if self.place.is_host:
            return super().curvature(z, directions)
        return directions.T @ self.hessian(z)(directions)

    def error(self, z: Array) -> float:
        """The bound ‖ρ‖²/κ, where ρ is the slope in the offsets."""
        fitted = self.offsets(z)
        sums = self.sums_left(z, fitted)
        rests = [self.ridge * fitted[side] - sums[side] for side in (0, 1)]
        return sum(inner(rest, rest) for rest in rests) / self.ridge

    def conjugate(self, w: Array) -> float:
        """½ Σ v²/ω + ⟨v, t⟩ + ‖Bᵀv‖²/(2κ) with v = w/s, and Bᵀv its sums by row and column."""
        return self.conjugate_along(w)(1.0)

    def conjugate_along(self, w: Array) -> Callable[[float], float]:
        """θ ↦ g*(θw), a quadratic function."""
        square, linear, sums = self.divided(w)
        offsets = sum(inner(side, side) for side in sums) / (2 * self.ridge)
        return lambda share: share * (share * (0.5 * square + offsets) + linear)

    def divided(self, w: Array) -> tuple[float, float, Sides]:
        """Σ v²/ω, ⟨v, t⟩ and Bᵀv."""
        square = linear = 0.0

        def divided(part: slice) -> Array:
            nonlocal square, linear
            v = w[part] / self._scale(part)
            square += float(v @ v if self.weight is None else v @ (v / self.weight[part]))
            linear += float(v @ (self.given[part] - self.centre))
            return v

        sums = self._sums(divided)
        return square, linear, sums

    def least_squares(self, dtype: Any = float) -> LeastSquares:
        roots = None if self.weight is None else np.sqrt(self.weight)
        targets = np.subtract(
            self.given, self.centre, out=np.empty(self.given.size, dtype), casting="same_kind"
        )
        targets = targets if roots is None else roots * targets
        scale = 1.0 if self.sides is not None else self._scale(EVERY)
        scale = scale if roots is None else roots * scale
        return LeastSquares(scale, targets, self.ridge, roots, self.sides)

    def _left(self, z: Array, part: slice, fitted: Sides | None) -> Array:
        """The targets minus sz, and minus the offsets if given."""
        left = self._scale(part) * z[part]
        left *= -1.0
        left += self.given[part] - self.centre
        if fitted is not None:
            left -= _at(fitted[0], self.rows[part])
            left -= _at(fitted[1], self.cols[part])
        return left

    def _weighted(self, e: Array, part: slice) -> Array:
        """ωe for a part of the entries, e itself without weights."""
        return e if self.weight is None else along(self.weight[part], e) * e

    def _sums(self, values: Callable[[slice], Array]) -> Sides:
        """The sums by row and by column of values given for each part of the entries."""
        by_row: Any = 0.0
        by_col: Any = 0.0
        if _are_there(self):  # the order by column is stored for all entries
            e = _joined(values, self._parts(), self.given.shape[0])
            sums = backend(e).group_sums
            return sums(self.rows, e, self.shape[0]), sums(self.cols, e, self.shape[1])
        for part in self._parts():
            e = values(part)
            sums = backend(e).group_sums_of
            by_row = by_row + sums(self.rows, part, e, self.shape[0])
            by_col = by_col + sums(self.cols, part, e, self.shape[1])
        return by_row, by_col

    def sums_left(self, z: Array, fitted: Sides | None = None) -> Sides:
        """The sums of ωe by row and by column, default for offsets 0."""
        return self._sums(lambda part: self._weighted(self._left(z, part, fitted), part))

    def linked(self, side: int, values: Array) -> Array:
        """N c for numbers of the columns (side 0), Nᵀb for numbers of the rows (side 1).

        N has the weight of each entry; on a device it is not stored as a matrix.
        """
        own, other = (self.rows, self.cols) if side == 0 else (self.cols, self.rows)
        library = backend(values)
        found: Any = 0.0
        for part in [EVERY] if _are_there(self) else self._parts():
            e = self._weighted(library.taken(values, other[part]), part)
            found = found + library.group_sums_of(own, part, e, self.shape[side])
        return found

    def _fitted(self, z: Array) -> Sides:
        """The optimal offsets, with one step of iterative refinement.

        Without refinement on a device: the residual enters `error` squared.
        """
        if not self.place.is_host:
            return self._system(self.sums_left(z))
        b, c = self._system(self.sums_left(z), REFINED_ACCURACY)
        by_row, by_col = self.sums_left(z, (b, c))
        rest = by_row - self.ridge * b, by_col - self.ridge * c
        more = self._system(rest, REFINED_ACCURACY)
        return b + more[0], c + more[1]

    @cached_property
    def _system(self) -> Callable[..., Sides]:
        """`EliminatedOffsets.solve` of (D_r, N; Nᵀ, D_c)(b, c) = (f, g).

        It refers to a copy: a cycle would keep arrays on a device until garbage is collected.
        """
        apart = copy(self)
        if _are_there(self):
            links: Any = DeviceCounts(self.rows, self.cols, self.weight, self.shape)
            return EliminatedOffsets(apart.linked, links, self.masses, self.place).solve
        home = at_home(self)
        links = RatingCounts(home.rows, home.cols, home.weight, home.shape)
        linked = links.linked if self.place.is_host else apart.linked
        return EliminatedOffsets(linked, links, home.masses, self.place).solve

    @property
    def masses(self) -> Sides:
        """The diagonals D_r and D_c: sums of weights plus κ."""
        ones_like = namespace(self.given).ones_like
        ones = self._sums(lambda part: self._weighted(ones_like(self.given[part]), part))
        return ones[0] + self.ridge, ones[1] + self.ridge


def _are_there(loss: SquaredWithOffsets) -> bool:
    """Whether all entries are on a device."""
    return not (loss.place.is_host or isinstance(loss.rows, Blocks))


def _at(values: Array, places: Indices) -> Array:
    """The values, or the rows, with these indices."""
    if isinstance(values, np.ndarray):
        return values[places]
    return backend(values).taken(values, places)  # torch's own indexing copies int32 to int64


def _joined(values: Callable[[slice], Array], parts: list[slice], count: int) -> Array:
    """The values of all parts as one array."""
    first = values(parts[0])
    if len(parts) == 1:
        return first
    found = namespace(first).empty(
        (count, *first.shape[1:]), dtype=first.dtype, device=first.device
    )
    found[parts[0]] = first
    for part in parts[1:]:
        found[part] = values(part)
    return found


class RatingCounts:
    """N (m × n) with the weight of each entry, in blocks of rows that share one array of ones."""

    def __init__(
        self, rows: Indices, cols: Indices, weight: Array | None, shape: tuple[int, int]
    ) -> None:
        self.shape, self.cols, self.weight = shape, cols, weight
        self.indptr = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int32)
        bounds = np.append(np.arange(0, rows.size, CHUNK), rows.size)
        ends = np.unique(np.append(np.searchsorted(self.indptr, bounds), [0, shape[0]]))
        spans = list(pairwise(ends.tolist()))
        longest = max(int(self.indptr[stop] - self.indptr[start]) for start, stop in spans)
        ones = np.ones(0 if weight is not None else longest)
        self.blocks = [(slice(*span), self._block(span, ones)) for span in spans]

    def _block(self, span: tuple[int, int], ones: Array) -> sparse.csr_array:
        first, last = int(self.indptr[span[0]]), int(self.indptr[span[1]])
        data = ones[: last - first] if self.weight is None else self.weight[first:last]
        block = sparse.csr_array((span[1] - span[0], self.shape[1]))
        # Set one by one: the constructor copies a small part of another array.
        block.data, block.indices = data, self.cols[first:last]
        block.indptr = self.indptr[span[0] : span[1] + 1] - np.int32(first)
        return block

    def linked(self, side: int, values: Array) -> Array:
        """N c (side 0) or Nᵀb (side 1)."""
        if side == 0:
            return np.concatenate([block @ values for _, block in self.blocks])
        return sum(block.T @ values[rows] for rows, block in self.blocks)

    def scaled(self, side: int, weights: Array) -> sparse.csr_array:
        """√D N for a diagonal D of the rows (side 0), or √D Nᵀ for one of the columns (side 1)."""
        roots = np.sqrt(weights)
        rows = np.repeat(roots, np.diff(self.indptr)) if side == 0 else roots[self.cols]
        data = rows if self.weight is None else rows * self.weight
        found = sparse.csr_array((data, self.cols, self.indptr), shape=self.shape)
        return found if side == 0 else sparse.csr_array(found.T)


class DeviceCounts:
    """N with entries on a device; only a scaled matrix has numbers of its own."""

    def __init__(
        self, rows: Indices, cols: Indices, weight: Array | None, shape: tuple[int, int]
    ) -> None:
        self.rows, self.cols, self.weight, self.shape = rows, cols, weight, shape

    def scaled(self, side: int, weights: Array) -> Any:
        """As `RatingCounts.scaled`."""
        library = backend(self.rows)
        data = library.taken(namespace(weights).sqrt(weights), (self.rows, self.cols)[side])
        if self.weight is not None:
            data *= self.weight
        starts = library.starts(self.rows, self.shape[0])
        found = library.csr(data, self.cols, starts, self.shape)
        return found if side == 0 else found.T


class EliminatedOffsets:
    """(D_r, N; Nᵀ, D_c)(b, c) = (f, g), by elimination of the longer side."""

    def __init__(
        self, linked: Callable[[int, Array], Array], links: Any, masses: Sides, place: Any
    ) -> None:
        self.linked, self.links, self.place = linked, links, place
        self.long = int(links.shape[0] < links.shape[1])
        """The side that is eliminated: 0 for the rows, 1 for the columns."""
        self.eliminated = masses[self.long]
        """Its diagonal, where the links are."""
        self.masses = tuple(place.put(mass) for mass in masses)

    def solve(self, right: Sides, accuracy: float = ACCURACY) -> Sides:
        long, short = self.long, 1 - self.long
        mass = along(self.masses[long], right[long])
        reduced = right[short] - self.linked(short, right[long] / mass)
        inverse = self._inverse
        own = self._by_steps(reduced, accuracy) if inverse is None else inverse(reduced)
        other = (right[long] - self.linked(long, own)) / mass
        return (other, own) if long == 0 else (own, other)

    @cached_property
    def _inverse(self) -> Callable[[Array], Array] | None:
        """The inverse of D_short − NᵀD_long⁻¹N, None if conjugate gradients are preferable.

        On the host a Cholesky factor. On a device an inverse, which takes one product; its
        rounding ρ costs at most ‖ρ‖²/2κ (`SquaredWithOffsets.error`).
        """
        if not (self._is_direct if self.place.is_host else self._fits):
            return None
        scaled = self.links.scaled(self.long, 1.0 / self.eliminated)
        there = scaled if place_of(scaled.data) == self.place else self.place.sparse(scaled)
        library, mass = backend(there.data), self.masses[1 - self.long]
        schur = library.gram(there)
        del scaled, there
        schur *= -1.0
        every = namespace(schur).arange(schur.shape[0], device=mass.device)
        schur[every, every] += mass
        if self.place.is_host:
            return cpu.cholesky(schur)  # None for a ridge below rounding
        inverse = library.definite_inverse(schur)
        return None if inverse is None else lambda right: inverse @ right

    @property
    def _is_direct(self) -> bool:
        """Whether a Cholesky factor costs less than the expected conjugate gradient steps."""
        n, entries = min(self.links.shape), self.links.cols.size
        if n <= SMALL:
            return True
        counts = np.diff(self.links.indptr) if self.long == 0 else np.bincount(self.links.cols)
        price = PRODUCT * float(np.sum(np.square(counts, dtype=float))) + n**3 / 3
        return n <= DIRECT and price <= 2.0 * PRODUCT * entries * EXPECTED_PRODUCTS

    @property
    def _fits(self) -> bool:
        """Whether the inverse and its work space fit into the memory of a device."""
        n = min(self.links.shape)
        need = 8.0 * (4 * n * n + 2 * min(BLOCK, n * max(self.links.shape)))
        return n <= INVERTED and need <= self.place.free_memory()

    def _by_steps(self, right: Array, accuracy: float) -> Array:
        """Conjugate gradients, scaled by the diagonal, from 0."""
        if right.ndim == 2:
            columns = [self._by_steps(right[:, k], accuracy) for k in range(right.shape[1])]
            return namespace(right).stack(columns, axis=1)
        mass = self.masses[1 - self.long]
        return conjugate_gradient(
            lambda c: mass * c - self.coupled(c),
            right,
            steps=MOST_STEPS,
            precondition=lambda r: r / mass,
            residual=accuracy * norm(right),
        ).x

    def coupled(self, own: Array) -> Array:
        """NᵀD_long⁻¹N c for offsets c of the shorter side."""
        return self.linked(1 - self.long, self.linked(self.long, own) / self.masses[self.long])
