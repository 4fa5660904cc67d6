"""Leading eigenpairs by block Lanczos with full reorthogonalisation."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.linalg.blas import dgemv

from gramian.arrays.places import beside, host, namespace, place_of, side_by_side, zeros
from gramian.linalg._lanczos import Array, CountedOperator, Operator
from gramian.linalg.krylov import DENSE_ORDER, dense_pairs, largest_pairs, rayleigh_ritz

_MAX_BASIS_ELEMENTS = 2**27
"""Largest number of elements of a basis (1 GiB), unless k pairs need more."""
_MAX_BASIS_VECTORS = (600, 20)
"""Number of vectors before a restart: the larger of a constant and a multiple of k."""
_GROWTH_AT_UNKNOWN_RATE, _MIN_GROWTH = 1.12, 1.03
"""Growth of the number of products between computations of Ritz pairs: the first one while the rate
of convergence is unknown; the second is the minimum."""
_MAX_TOL_OF_SEVERAL = 1e-5
"""Largest tolerance if k > 1. With larger residuals many eigenvalues could not be distinguished
from multiple ones, and the search for those would cost more than smaller residuals do."""
_MIN_CHOLESKY_PIVOT = 0.03
"""A block is orthogonalised by Cholesky, which squares its condition number, only if the ratio of
the smallest pivot to the largest is above this."""


def block_lanczos(
    operator: Operator,
    k: int,
    *,
    block: int = 2,
    tol: float = 1e-10,
    max_products: int | None = None,
    max_basis: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Array, Array, Array]:
    """Return the k largest eigenvalues (descending), eigenvectors (n, k) and residual norms.

    Uses the Krylov space of `block` random vectors, with a thick restart (Wu and Simon) only if the
    basis becomes long: a restart costs additional products, which are slow for a dense A.

    A Krylov space of b random vectors contains, with probability one, min(b, μ) eigenvectors of an
    eigenvalue of multiplicity μ. If fewer than b of the computed eigenvalues coincide, none is
    missing. If b or more coincide and are not the smallest ones, the search is repeated in the
    orthogonal complement of the computed eigenvectors, with twice the block size each time, until
    it finds no larger eigenvalue.

    Parameters
    ----------
    operator : anything with ``shape == (n, n)`` and ``@`` on (n, b) arrays.
    k : number of pairs.
    block : number b of random vectors to start with.
    tol : tolerance for the residual norms, relative to an estimate of the norm of A. A value below
        the precision of the products is raised to it; if k > 1, a value above 1e-5 is lowered.
    max_products : maximum number of products with a vector, default 100,000. If it is reached, the
        residual norms show the accuracy.
    max_basis : maximum number of basis vectors before a restart; the default depends on k and is
        limited to 1 GiB.
    random_state : seed or generator of the random start.
    """
    counted = CountedOperator(operator)
    n = counted.size
    if not 1 <= k <= n:
        raise ValueError(f"k must be between 1 and {n}, got {k}")
    if n <= DENSE_ORDER or 4 * k >= n:
        return dense_pairs(counted, k)
    if k > 1:
        tol = min(tol, _MAX_TOL_OF_SEVERAL)
    longest = max_basis or min(
        max(_MAX_BASIS_VECTORS[0], _MAX_BASIS_VECTORS[1] * k), _MAX_BASIS_ELEMENTS // n
    )
    search = _Search(
        counted,
        max(tol / 2, counted.precision),  # pairs combined from two searches are less accurate
        max_products or 100_000,
        longest,
        np.random.default_rng(random_state),
    )
    block = min(block, n // 16)
    vectors = search.run(k, block)
    values, vectors, residuals = rayleigh_ritz(vectors, counted(vectors))
    rising = _may_miss_copies(values, residuals, block, counted.precision)
    while rising and not search.spent:
        more_vectors = replace(search, found=(values, vectors)).run(min(k, block), block)
        together = side_by_side((vectors, more_vectors))
        more, vectors, residuals = (
            part[..., :k] for part in rayleigh_ritz(together, counted(together))
        )
        rising = float(np.max(more - values)) > search.tol * search.norm
        values, block = more, min(2 * block, n // 16)
    return values, vectors, residuals


def _may_miss_copies(values: Array, residuals: Array, block: int, precision: float) -> bool:
    """Whether at least `block` eigenvalues coincide, so that copies of them may be missing.

    The smallest ones are not tested, because further copies would not change the result.
    """
    norm = float(np.max(np.abs(values)))
    same = 10 * np.maximum(residuals[1:], residuals[:-1]) + precision * norm
    apart = np.flatnonzero(values[:-1] - values[1:] > same)
    groups = np.diff(np.concatenate(([-1], apart)))
    return bool(np.any(groups >= block))


@dataclass
class _Search:
    """Operator, limits and deflated pairs of one search."""

    operator: CountedOperator
    tol: float
    max_products: int
    max_basis: int
    rng: np.random.Generator
    found: tuple[Array, Array] | None = None
    """Eigenvalues and eigenvectors to deflate."""
    norm: float = 0.0
    """A lower estimate of the norm of A."""

    @property
    def spent(self) -> bool:
        return self.operator.products >= self.max_products

    def image(self, rows: Array) -> Array:
        """The rows times A, or times A − V diag(λ + 2‖A‖) Vᵀ if pairs (λ, V) are deflated."""
        image = self.operator(rows.T).T
        if self.found is not None:
            values, vectors = self.found
            lifted = beside(rows, values + 2 * self.norm)
            image = image - ((rows @ vectors) * lifted) @ vectors.T
        return image

    def run(self, k: int, block: int) -> Array:
        """The k leading Ritz vectors, as columns, once they are accurate or a limit is reached."""
        n = self.operator.size
        longest = min(max(self.max_basis, 3 * (k + 2 * block)), n - block)
        basis = _Basis(self, block, longest)
        pace, begun = _Pace(block, 2 * k + 40), self.operator.products
        while True:
            basis.extend()
            products = self.operator.products - begun
            if not basis.full and products < pace.next_look and not self.spent:
                continue
            if self.found is None:  # the deflated operator has a larger norm than A
                self.norm = max(self.norm, basis.norm())
            if basis.size < k:
                continue
            ritz = basis.ritz(k)
            worst, goal = float(np.max(ritz.residuals)), self.tol * self.norm
            if worst <= goal or self.spent:
                return basis.combine(ritz.weights).T
            pace.saw(products, worst, goal, self.norm)
            if basis.full:
                basis.restart(basis.ritz(k + (basis.size - k) // 3))


@dataclass
class _Pace:
    """Determines when to compute Ritz pairs, at a cost of O(m³) for m basis vectors."""

    block: int
    next_look: float
    _last: tuple[int, float] | None = None

    def saw(self, products: int, worst: float, goal: float, norm: float) -> None:
        """Set `next_look` by extrapolating the largest residual, which decreases geometrically."""
        ahead = _GROWTH_AT_UNKNOWN_RATE * products
        if 0 < worst < 0.1 * norm:
            if self._last is None:
                ahead = 0.0  # compute them again soon to estimate the rate
            elif worst < self._last[1]:
                fall = np.log(self._last[1] / worst) / (products - self._last[0])
                ahead = min(ahead, products + np.log(worst / goal) / fall)
            self._last = (products, worst)
        self.next_look = max(ahead, _MIN_GROWTH * products, products + self.block)


class _Ritz(NamedTuple):
    """Ritz values in descending order, coefficients of the Ritz vectors, and residual norms."""

    values: Array
    weights: Array
    residuals: Array


class _Basis:
    """Orthonormal rows Q with the block Lanczos relation.

        A Qᵀ = Qᵀ T + Pᵀ C,        P the next block, orthonormal and orthogonal to Q

    Only the columns of C for the last block are nonzero; after a restart, those of all Ritz vectors
    are.
    """

    def __init__(self, search: _Search, block: int, longest: int) -> None:
        self._search, self._block, self._longest = search, block, longest
        capacity = longest + block
        start = search.operator.place.normal(search.rng, (block, search.operator.size))
        self._rows = zeros((capacity, search.operator.size), start)
        self._small = np.zeros((capacity, capacity))
        self.size, self._linked = 0, 0
        self._rows[:block] = namespace(start).linalg.qr(start.T)[0].T
        self._scale = 0.0

    @property
    def full(self) -> bool:
        return self.size + self._block > self._longest

    def extend(self) -> None:
        """Add P to the basis and compute the new P."""
        old, new = self.size, self.size + self._block
        image = self._search.image(self._rows[old:new])
        # Apply the recurrence first, so that reorthogonalisation only removes rounding errors.
        linked = self._rows[self._linked : new]
        product = linked @ image.T
        image = image - product.T @ linked
        inner = host(product)
        self._small[self._linked : new, old:new] = inner
        self._small[old:new, self._linked : old] = inner[: old - self._linked].T
        self._scale = max(self._scale, float(np.max(np.abs(inner))))
        self._linked, self.size = old, new
        rows, link = self._next_block(self._cleared(image))
        self._rows[new : new + self._block] = rows
        self._small[new : new + self._block, old:new] = link
        self._small[old:new, new : new + self._block] = link.T

    def _cleared(self, rows: Array) -> Array:
        """The rows orthogonalised against Q."""
        basis = self._rows[: self.size]
        if isinstance(rows, np.ndarray) and rows.shape[0] <= 3:
            # For a few rows a matrix product makes BLAS copy the whole basis first. SciPy's BLAS is
            # used because products with A often use it, too; NumPy's has a separate thread pool.
            return np.array(
                [row - dgemv(1.0, basis.T, dgemv(1.0, basis.T, row, trans=1)) for row in rows]
            )
        return rows - (rows @ basis.T) @ basis

    def _next_block(self, rest: Array) -> tuple[Array, Array]:
        """Orthonormal rows P and C with restᵀ = PᵀC; random rows if rest is rank deficient.

        In that case span(Q) is invariant, and random rows extend it.
        """
        with suppress(np.linalg.LinAlgError):
            lower = np.linalg.cholesky(host(rest @ rest.T))
            sizes = np.diag(lower)
            if np.min(sizes) > _MIN_CHOLESKY_PIVOT * max(self._scale, np.max(sizes)):
                if isinstance(rest, np.ndarray):
                    return np.asarray(np.linalg.solve(lower, rest)), np.asarray(lower.T)
                return beside(rest, np.linalg.inv(lower)) @ rest, np.asarray(lower.T)
        return self._difficult_block(rest)

    def _difficult_block(self, rest: Array) -> tuple[Array, Array]:
        """`_next_block` for rows that are nearly linearly dependent, tiny or zero."""
        place = place_of(rest)
        columns, triangle, order = qr(host(rest).T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        self._scale = max(self._scale, float(sizes[0]))
        rank = int(np.sum(sizes > self._search.operator.precision * self._scale))
        rows, link = columns.T, np.zeros_like(triangle)
        link[:rank, order] = triangle[:rank]
        rows[rank:] = self._search.rng.standard_normal(rows[rank:].shape)
        for _ in range(2):  # normalising short rows amplifies their components in span(Q)
            cleared = host(self._cleared(place.put(np.ascontiguousarray(rows))))
            columns, triangle = qr(cleared.T, mode="economic")
            rows = (columns * np.where(np.diag(triangle) < 0, -1.0, 1.0)).T
        return place.put(np.ascontiguousarray(rows)), link

    def norm(self) -> float:
        """The largest ‖T e_j‖, a lower bound on ‖A‖."""
        return float(np.max(np.linalg.norm(self._small[: self.size, : self.size], axis=0)))

    def ritz(self, count: int) -> _Ritz:
        """The leading Ritz pairs of span(Q) and the norms of their residuals, ‖C y‖."""
        m = self.size
        values, weights = largest_pairs(self._small[:m, :m], count)
        return _Ritz(values, weights, np.linalg.norm(self._link(weights), axis=0))

    def _link(self, weights: Array) -> Array:
        """C y for each column y."""
        m, linked = self.size, self._linked
        return self._small[m : m + self._block, linked:m] @ weights[linked:]

    def combine(self, weights: Array) -> Array:
        """The rows weightsᵀ Q."""
        combined: Array = beside(self._rows, weights.T) @ self._rows[: self.size]
        return combined

    def restart(self, ritz: _Ritz) -> None:
        """Replace Q by these Ritz vectors; P is kept and is coupled to all of them by C."""
        m, block, kept = self.size, self._block, ritz.values.size
        link = self._link(ritz.weights)
        self._rows[:kept] = self.combine(ritz.weights)
        self._rows[kept : kept + block] = 1.0 * self._rows[m : m + block]
        self._small[:] = 0.0
        np.fill_diagonal(self._small[:kept, :kept], ritz.values)
        self._small[kept : kept + block, :kept] = link
        self._small[:kept, kept : kept + block] = link.T
        self.size, self._linked = kept, 0
