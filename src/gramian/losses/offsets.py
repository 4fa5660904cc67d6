"""The squared loss beside free offsets of rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays.blocks import Blocks
from gramian.arrays.places import (
    HOST,
    Place,
    Placed,
    along,
    assembled,
    at_home,
    backend,
    namespace,
    norm,
)
from gramian.linalg import conjugate_gradient
from gramian.losses.base import LeastSquares, PerImage

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

SMALL, DIRECT = 1000, 4000
"""Rows or columns up to which the system of their offsets is always factorised, and up to which it
is where conjugate gradients would cost more: 0.1 GB."""

EXPECTED_PRODUCTS = 300
"""Products with the links that a run is expected to take by conjugate gradients. Cholesky's factor
is used where it costs no more. On MovieLens 1M a system takes 56 ms of processor time by conjugate
gradients and the factor takes 8 s: a default fit solves 6 systems, one to 1e-4 some hundred."""

PRODUCT = 20.0
"""What an entry of a sparse product costs, in multiplications of dense ones."""

INVERTED, BLOCK = 20_000, 2**26
"""Up to so many of the shorter side the inverse of the system is kept on a device, and the numbers
of the dense blocks of rows that it is made of."""

CHUNK, FEW = 2**16, 2**18
"""Entries of a block of sums, and how many may have an array of their scales."""

EVERY = slice(None)

ACCURACY, MOST_STEPS = 1e-13, 5000
"""The residual that conjugate gradients end at beyond that, relatively, and their steps."""


class SquaredWithOffsets(Placed):
    """g(z) = min over β = (b, c) of ½ Σ_e ω_e (s_e z_e + b_i + c_j − t_e)² + κ/2 ‖β‖², e = (i, j).

    Convex in z, as a minimum over part of the arguments of a convex function. The best β solves a
    sparse system: those of the longer side are eliminated, those of the shorter found by conjugate
    gradients from the same start every time, or by Cholesky's factor once that would have cost
    less. What the residual ρ of the system leaves is at most ‖ρ‖²/2κ (`error`); the conjugate is
    exact.

    Nothing is kept for each entry but what is given: sums run over blocks of entries, and what they
    need of scale, targets and residuals is made for a block at a time.

    Parameters
    ----------
    targets : array of shape (p,)
        t, or t + μ with μ the `centre`.
    rows, cols : index arrays of shape (p,), sorted by row
    shape : (m, n)
    ridge : float
        κ > 0.
    scale : number, array of shape (p,), or arrays of shape (m,) and (n,)
        s > 0; of two arrays, s_e is the product of that of its row and that of its column.
    weight : array of shape (p,), optional
        ω > 0; 1 unless told.
    centre : float
        μ, 0 unless told.
    columns : array of shape (n,), optional
        Given offsets c: then those of the rows alone are free, as for a block of rows whose columns
        have entries elsewhere.
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
        scale: Array | float | tuple[Array, Array] = 1.0,
        weight: Array | None = None,
        centre: float = 0.0,
        columns: Array | None = None,
    ) -> None:
        self.given, self.ridge = np.asarray(targets, dtype=float), float(ridge)
        self.centre, self.columns = float(centre), columns
        self.rows, self.cols, self.shape = rows, cols, shape
        self.size: int | None = self.given.size
        self.sides: tuple[Array, Array] | None = None
        self.one_by_one: Array | None = None
        if isinstance(scale, tuple):
            self.sides = scale
            if self.given.size <= FEW:
                self.one_by_one = scale[0][rows] * scale[1][cols]
        else:
            self.one_by_one = np.broadcast_to(np.asarray(scale, dtype=float), self.given.shape)
        self.weight = None if weight is None else np.asarray(weight, dtype=float)
        self.smoothness = max(
            float(np.max(self._weighted(self._scale(part) ** 2, part))) for part in self._parts()
        )

    @property
    def targets(self) -> Array:
        """t, made when it is asked for."""
        return self._targets(EVERY)

    @property
    def scale(self) -> Array:
        """s, made when it is asked for."""
        return self._scale(EVERY)

    def _targets(self, part: slice) -> Array:
        targets = self.given[part] - self.centre if self.centre else self.given[part]
        return targets if self.columns is None else targets - self.columns[self.cols[part]]

    def _scale(self, part: slice) -> Array:
        if self.one_by_one is not None:
            return self.one_by_one[part]
        assert self.sides is not None
        by_row, by_col = self.sides
        scale: Array = by_row[self.rows[part]]
        scale *= by_col[self.cols[part]]
        return scale

    def _parts(self) -> list[slice]:
        """Blocks of entries that stay in the cache; on a device all, or those that come there."""
        if isinstance(self.given, Blocks):
            return self.given.parts
        if not self.place.is_host:
            return [EVERY]
        return [slice(k, k + CHUNK) for k in range(0, self.given.size, CHUNK)]

    def offsets(self, z: Array) -> tuple[Array, Array]:
        """b and c for a given z, stored as long as z exists."""
        return self._stored.get(z, self._fitted)

    @cached_property
    def _stored(self) -> PerImage[tuple[Array, Array]]:
        return PerImage()

    def value(self, z: Array) -> float:
        b, c = self.offsets(z)
        squares: Any = 0.0
        for part in self._parts():
            left = self._left(z, part, b, c)
            squares = squares + left @ self._weighted(left, part)
        return float(0.5 * squares + 0.5 * self.ridge * (b @ b + c @ c))

    def gradient(self, z: Array) -> Array:
        b, c = self.offsets(z)

        def slope(part: slice) -> Array:
            left = self._weighted(self._left(z, part, b, c), part)
            return -self._scale(part) * left

        found: Array = assembled(slope, self._parts(), z)
        return found

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """d ↦ sHsd, H what is left of a vector beside its best offsets."""
        return self._bend

    def curvature(self, z: Array, directions: Array) -> Array:
        if not self.place.is_host:
            return directions.T @ self._bend(directions)
        bent = [self._bend(directions[:, k]) for k in range(directions.shape[1])]
        return directions.T @ namespace(z).stack(bent, axis=1)

    def smoothed(self, mu: float) -> None:
        return None

    def error(self, z: Array) -> float:
        """‖ρ‖²/2κ at most, ρ the gradient of the sum in the offsets, which should vanish."""
        b, c = self.offsets(z)
        by_row, by_col = self._sums_left(z, b, c)
        rest = _square(self.ridge * b - by_row)
        if self.columns is None:
            rest += _square(self.ridge * c - by_col)
        return rest / self.ridge

    def column_sums(self, z: Array) -> Array:
        """What the entries of each column leave of their targets, weighted."""
        return self._sums_left(z, *self.offsets(z))[1]

    def conjugate(self, w: Array) -> float:
        """½ Σ v²/ω + ⟨v, t⟩ + ‖Bᵀv‖²/(2κ) with v = w/s and B the offsets' sums."""
        return self.conjugate_along(w)(1.0)

    def conjugate_along(self, w: Array) -> Callable[[float], float]:
        """θ ↦ g*(θw), a square of θ and a linear term."""
        square = linear = 0.0

        def divided(part: slice) -> Array:
            nonlocal square, linear
            v = w[part] / self._scale(part)
            square += float(v @ v if self.weight is None else v @ (v / self.weight[part]))
            linear += float(v @ self._targets(part))
            return v

        by_row, by_col = self._sums(divided)
        free = _square(by_row) + (_square(by_col) if self.columns is None else 0.0)
        offsets = free / (2 * self.ridge)
        return lambda share: share * (share * (0.5 * square + offsets) + linear)

    def least_squares(self, dtype: Any = float) -> LeastSquares:
        roots = None if self.weight is None else np.sqrt(self.weight)
        targets = np.subtract(
            self.given, self.centre, out=np.empty(self.given.size, dtype), casting="same_kind"
        )
        targets = targets if roots is None else roots * targets
        if self.sides is not None:
            alone = 1.0 if roots is None else roots
            return LeastSquares(alone, targets, self.ridge, roots, self.sides)
        scale = self.scale if roots is None else roots * self.scale
        return LeastSquares(scale, targets, self.ridge, roots)

    def _left(self, z: Array, part: slice, b: Array | None, c: Array | None) -> Array:
        """The targets less all that is fitted."""
        left = self._scale(part) * z[part]
        left *= -1.0
        left += self._targets(part)
        if b is not None and c is not None:
            left -= b[self.rows[part]]
            left -= c[self.cols[part]]
        return left

    def _bend(self, d: Array) -> Array:
        def scaled(part: slice) -> Array:
            return along(self._scale(part), d) * d[part]

        b, c = self._system.solve(*self._sums(lambda part: self._weighted(scaled(part), part)))

        def bent(part: slice) -> Array:
            e = scaled(part)
            e -= b[self.rows[part]]
            e -= c[self.cols[part]]
            e *= along(self._scale(part), d)
            return self._weighted(e, part)

        found: Array = assembled(bent, self._parts(), d)
        return found

    def _weighted(self, e: Array, part: slice) -> Array:
        """ωe for a part of the entries, e itself without weights."""
        return e if self.weight is None else along(self.weight[part], e) * e

    def _sums(self, told: Callable[[slice], Array]) -> tuple[Array, Array]:
        """The sums over rows and over columns of what is told of every part of the entries."""
        by_row: Any = 0.0
        by_col: Any = 0.0
        for part in self._parts():
            e = told(part)
            sums = backend(e).group_sums_of
            by_row = by_row + sums(self.rows, part, e, self.shape[0])
            by_col = by_col + sums(self.cols, part, e, self.shape[1])
        return by_row, by_col

    def linked(self, side: int, values: Array) -> Array:
        """N c for numbers of the columns (side 0), Nᵀ b for numbers of the rows (side 1).

        N has the weight of each entry at its place; on a device it is not kept as a matrix.
        """
        own, other = (self.rows, self.cols) if side == 0 else (self.cols, self.rows)
        library, found = backend(values), cast(Array, 0.0)
        for part in self._parts():
            e = self._weighted(library.taken(values, other[part]), part)
            found = found + library.group_sums_of(own, part, e, self.shape[side])
        return found

    def _sums_left(
        self, z: Array, b: Array | None = None, c: Array | None = None
    ) -> tuple[Array, Array]:
        return self._sums(lambda part: self._weighted(self._left(z, part, b, c), part))

    def _fitted(self, z: Array) -> tuple[Array, Array]:
        """The best offsets, once more for what the first solution leaves.

        On a device, and for rows alone, once: what is left shows in the square of it only
        (`error`).
        """
        b, c = self._system.solve(*self._sums_left(z))
        if self.columns is not None or not self.place.is_host:
            return b, c
        by_row, by_col = self._sums_left(z, b, c)
        more = self._system.solve(by_row - self.ridge * b, by_col - self.ridge * c)
        return b + more[0], c + more[1]

    @cached_property
    def _system(self) -> _Offsets | _RowOffsets:
        if self.columns is not None:
            return _RowOffsets(self.masses[0])
        if not self.place.is_host:
            home = at_home(self)
            by_row, by_col = (self.place.put(mass) for mass in home.masses)
            return _Offsets(_LinksThere(self), home._counts, by_row, by_col, self.place)
        return _Offsets(self.links, self._counts, *self.masses)

    @property
    def links(self) -> _Links:
        return _Links(self.rows, self.cols, self.weight, self.shape)

    @property
    def _counts(self) -> tuple[Array, Array]:
        return self._sums(lambda part: np.ones(self.rows[part].size))

    @property
    def masses(self) -> tuple[Array, Array]:
        weight = self.weight
        sums = self._counts if weight is None else self._sums(lambda part: weight[part])
        return sums[0] + self.ridge, sums[1] + self.ridge


class _Links:
    """N, which rows meet which columns, in blocks of rows that share one array of ones."""

    def __init__(
        self, rows: Indices, cols: Indices, weight: Array | None, shape: tuple[int, int]
    ) -> None:
        self.shape, self.nnz, self.cols, self.weight = shape, rows.size, cols, weight
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
        # One by one: the constructor copies what is a small part of another array.
        block.data, block.indices = data, self.cols[first:last]
        block.indptr = self.indptr[span[0] : span[1] + 1] - np.int32(first)
        return block

    def gram(self, weights: Array) -> Array:
        """NᵀDN for a diagonal D, dense."""
        found = np.zeros((self.shape[1],) * 2)
        for rows, block in self.blocks:
            found += (block.T @ (sparse.diags_array(weights[rows]) @ block)).toarray()
        return found

    def whole(self) -> sparse.csr_array:
        ones = np.ones(self.nnz) if self.weight is None else self.weight
        return sparse.csr_array((ones, self.cols, self.indptr), shape=self.shape)

    def __matmul__(self, c: Array) -> Array:
        return np.concatenate([block @ c for _, block in self.blocks])

    @property
    def T(self) -> _TurnedLinks:
        return _TurnedLinks(self)


class _TurnedLinks:
    """Nᵀ."""

    def __init__(self, links: _Links) -> None:
        self.T, self.shape, self.nnz = links, links.shape[::-1], links.nnz

    def gram(self, weights: Array) -> Array:
        """NDNᵀ for a diagonal D, dense."""
        links = self.T.whole()
        found: Array = (links @ (sparse.diags_array(weights) @ links.T)).toarray()
        return found

    def __matmul__(self, f: Array) -> Array:
        return sum(block.T @ f[rows] for rows, block in self.T.blocks)


class _LinksThere:
    """N on a device, or Nᵀ on the other `side`, by sums over the entries there."""

    def __init__(self, loss: SquaredWithOffsets, side: int = 0) -> None:
        self.loss, self.side = loss, side
        self.shape = loss.shape if side == 0 else loss.shape[::-1]
        self.nnz = int(loss.rows.shape[0])

    @property
    def T(self) -> _LinksThere:
        return _LinksThere(self.loss, 1 - self.side)

    def __matmul__(self, values: Array) -> Array:
        return self.loss.linked(self.side, values)

    def gram(self, weights: Array) -> Array:
        """NᵀDN for a diagonal D, dense, from dense blocks of rows."""
        place, n = self.loss.place, self.shape[1]
        links = at_home(self.loss).links.whole()
        links = links if self.side == 0 else links.T.tocsr()
        found, step = place.zeros((n, n)), max(1, BLOCK // n)
        for first in range(0, self.shape[0], step):
            block = place.sparse(links[first : first + step]).toarray()
            found += (block * weights[first : first + step, None]).T @ block
        return found


class _RowOffsets:
    """D_r b = f, and no offsets of columns."""

    def __init__(self, mass: Array) -> None:
        self.mass = mass

    def solve(self, f: Array, g: Array) -> tuple[Array, Array]:
        return f / along(self.mass, f), 0.0 * g


class _Offsets(Placed):
    """(D_r, N; Nᵀ, D_c)(b, c) = (f, g) with N the links of rows and columns."""

    def __init__(
        self,
        links: Any,
        counts: tuple[Array, Array],
        row_mass: Array,
        col_mass: Array,
        place: Place = HOST,
    ) -> None:
        self.place = place
        self.turned = links.shape[0] < links.shape[1]
        if self.turned:
            links, row_mass, col_mass = links.T, col_mass, row_mass
        self.links, self.row_mass, self.col_mass = links, row_mass, col_mass
        n, longest = links.shape[1], counts[self.turned]
        self.price = PRODUCT * float(longest @ longest) + n**3 / 3 if n <= DIRECT else np.inf
        """What Cholesky's factor costs, in multiplications."""
        steps = 2.0 * PRODUCT * links.nnz * EXPECTED_PRODUCTS
        self.direct = n <= SMALL or self.price <= steps
        """Whether systems are solved by Cholesky's factor, which a run uses many times."""

    @cached_property
    def _turned_links(self) -> Any:
        """Nᵀ."""
        return self.links.T

    @cached_property
    def _factor(self) -> Any:
        """Cholesky's factor of D_c − NᵀD_r⁻¹N, of the shorter side."""
        schur = -self.links.gram(1.0 / self.row_mass)
        schur[np.diag_indices_from(schur)] += self.col_mass
        try:
            return scipy.linalg.cho_factor(schur, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # a ridge below rounding
            return None

    def solve(self, f: Array, g: Array) -> tuple[Array, Array]:
        """b and c, the shorter side first."""
        if self.turned:
            f, g = g, f
        mass = along(self.row_mass, f)
        right = g - self._turned_links @ (f / mass)
        c = self._shorter(right)
        b = (f - self.links @ c) / mass
        return (c, b) if self.turned else (b, c)

    def _shorter(self, right: Array) -> Array:
        if not self.place.is_host:
            if self._inverted:
                return self._inverse @ right
            if right.ndim == 2:
                columns = [self._by_steps(right[:, k]) for k in range(right.shape[1])]
                return namespace(right).stack(columns, axis=1)
            return self._by_steps(right)
        if self.direct and self._factor is not None:
            found: Array = scipy.linalg.cho_solve(self._factor, right, check_finite=False)
            return found
        return self._by_steps(right)

    @cached_property
    def _inverted(self) -> bool:
        """Whether a device has room for the inverse and for what it is made of."""
        m, n = self.links.shape
        need = 8.0 * (4 * n * n + 2 * min(BLOCK, m * n))
        return n <= INVERTED and need <= self.place.free_memory()

    @cached_property
    def _inverse(self) -> Array:
        """(D_c − NᵀD_r⁻¹N)⁻¹ on a device, where one product with it takes less than any solution.

        Its rounding ρ costs ‖ρ‖²/2κ at most, which `error` tells.
        """
        xp = namespace(self.col_mass)
        schur = -self.links.gram(1.0 / self.row_mass)
        every = xp.arange(schur.shape[0], device=self.col_mass.device)
        schur[every, every] += self.col_mass
        return xp.linalg.inv(schur)

    def _by_steps(self, right: Array) -> Array:
        """By conjugate gradients, scaled by the diagonal, from 0."""
        links, turned, mass = self.links, self._turned_links, self.row_mass
        found = conjugate_gradient(
            lambda c: self.col_mass * c - turned @ ((links @ c) / mass),
            right,
            steps=MOST_STEPS,
            precondition=lambda r: r / self.col_mass,
            residual=ACCURACY * norm(right),
        )
        return found.x


def _square(u: Array) -> float:
    return float(u @ u)
