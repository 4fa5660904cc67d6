"""Leading eigenpairs by block Lanczos: few products with A, orthogonality by matrix products."""

from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import qr
from scipy.linalg.blas import dgemv

from gramian.arrays.places import beside, host, namespace, place_of, side_by_side, zeros
from gramian.linalg._base import Array, CountedOperator, Operator
from gramian.linalg.krylov import DENSE_ORDER, dense_pairs, largest_pairs, rayleigh_ritz

_DENSE_SHARE = 4
_BASIS_NUMBERS = 2**27
"""Numbers a basis may hold (1 GiB), unless k pairs need more."""
_LONG_BASIS = (600, 20)
"""Vectors kept before a restart: so many, or so many for each pair wanted."""
_UNSEEN_GROWTH = 1.12
_SLOWEST_GROWTH = 1.03
_MAX_PRODUCTS = 100_000
_TELLS_COPIES = 1e-5
"""At larger residuals many eigenvalues could coincide, and the search for copies costs more than
smaller residuals do."""
_FEW_ROWS = 3
_CHOLESKY_IS_SAFE = 0.03
"""Below it the square of the condition would show in the orthogonality."""


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

    The Krylov space of `block` random vectors, with a thick restart (Wu and Simon) only where the
    basis grows long: a restart costs products, and those are what a dense A makes slow.

    A Krylov space of b random vectors holds, with probability one, min(b, μ) copies of an
    eigenvalue of multiplicity μ. So where fewer than b of the values found coincide none is
    missing. Where b or more do, and smaller ones were found too, the search goes on beside the
    pairs found, with a block twice as large each time, until nothing larger turns up.

    Parameters
    ----------
    operator : anything with ``shape == (n, n)`` and ``@`` on (n, b) arrays.
    k : number of pairs.
    block : number b of random vectors to start with.
    tol : the residuals asked for, relative to the norm of A as far as the basis shows it. It is
        raised to what products in the operator's precision can show, and for several pairs
        lowered to 1e-5.
    max_products : products with a vector at most; the residuals then say what was reached.
    max_basis : vectors kept before a restart; by default what fits in 1 GiB, and no more than
        pay off.
    random_state : seed or generator of the random start.
    """
    counted = CountedOperator(operator)
    n = counted.size
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and {n}, got {k}")
    if n <= DENSE_ORDER or _DENSE_SHARE * k >= n:
        return dense_pairs(counted, k)
    if k > 1:
        tol = min(tol, _TELLS_COPIES)
    longest = max_basis or min(max(_LONG_BASIS[0], _LONG_BASIS[1] * k), _BASIS_NUMBERS // n)
    search = _Search(
        counted,
        max(tol / 2, counted.precision),  # pairs joined from two searches are a little worse
        max_products or _MAX_PRODUCTS,
        longest,
        np.random.default_rng(random_state),
    )
    block = min(block, n // 16)
    vectors = search.run(k, block)
    values, vectors, residuals = rayleigh_ritz(vectors, counted(vectors))
    rising = _may_miss_copies(values, residuals, block, counted.precision)
    while rising and not search.spent:
        more_vectors = search.beside(values, vectors).run(min(k, block), block)
        together = side_by_side((vectors, more_vectors))
        more, vectors, residuals = (
            part[..., :k] for part in rayleigh_ritz(together, counted(together))
        )
        rising = float(np.max(more - values)) > search.tol * search.norm
        values, block = more, min(2 * block, n // 16)
    return values, vectors, residuals


def _may_miss_copies(values: Array, residuals: Array, block: int, precision: float) -> bool:
    """Whether `block` values or more coincide above the least: further copies may exist.

    Further copies of the least value would change nothing.
    """
    norm = float(np.max(np.abs(values)))
    same = 10 * np.maximum(residuals[1:], residuals[:-1]) + precision * norm
    apart = np.flatnonzero(values[:-1] - values[1:] > same)
    groups = np.diff(np.concatenate(([-1], apart)))
    return bool(np.any(groups >= block))


@dataclass
class _Search:
    """What stays the same from basis to basis."""

    operator: CountedOperator
    tol: float
    max_products: int
    max_basis: int
    rng: np.random.Generator
    found: tuple[Array, Array] | None = None
    """Eigenvalues and vectors to look beside."""
    norm: float = 0.0
    """The norm of A, as far as it is known: never too large."""

    @property
    def spent(self) -> bool:
        return self.operator.products >= self.max_products

    def beside(self, values: Array, vectors: Array) -> "_Search":
        """The search that has these pairs moved below all others."""
        return replace(self, found=(values, vectors))

    def image(self, rows: Array) -> Array:
        """A, or A − V diag(λ + 2‖A‖) Vᵀ beside pairs found, times the rows, as rows."""
        image = self.operator(rows.T).T
        if self.found is not None:
            values, vectors = self.found
            lifted = beside(rows, values + 2 * self.norm)
            image = image - ((rows @ vectors) * lifted) @ vectors.T
        return image

    def run(self, k: int, block: int) -> Array:
        """The k leading Ritz vectors, in columns, once they are good enough or time is up."""
        n = self.operator.size
        longest = min(max(self.max_basis, 3 * (k + 2 * block)), n - block)
        basis = _Basis(self, block, longest)
        pace, begun = _Pace(k, block), self.operator.products
        while True:
            basis.extend()
            products = self.operator.products - begun
            if not basis.full and products < pace.next_look and not self.spent:
                continue
            self._measure(basis)
            if basis.size < k:
                continue
            ritz = basis.ritz(k)
            worst, goal = float(np.max(ritz.residuals)), self.tol * self.norm
            if worst <= goal or self.spent:
                return basis.combine(ritz.weights).T
            pace.saw(products, worst, goal, self.norm)
            if basis.full:
                basis.restart(basis.ritz(k + (basis.size - k) // 3))

    def _measure(self, basis: "_Basis") -> None:
        # Beside pairs found, the operator is another one, of larger norm.
        if self.found is None:
            self.norm = max(self.norm, basis.norm())


@dataclass
class _Pace:
    """When to look at the Ritz pairs next, in products: looking costs O(m³)."""

    k: int
    block: int
    next_look: float = field(init=False)
    _last: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        self.next_look = 2 * self.k + 40

    def saw(self, products: int, worst: float, goal: float, norm: float) -> None:
        """Extrapolate the fall of the worst residual, which is geometric once it has begun."""
        ahead = _UNSEEN_GROWTH * products
        if 0 < worst < 0.1 * norm:
            if self._last is None:
                ahead = 0.0  # soon, to see how fast it falls
            elif worst < self._last[1]:
                fall = np.log(self._last[1] / worst) / (products - self._last[0])
                ahead = min(ahead, products + np.log(worst / goal) / fall)
            self._last = (products, worst)
        self.next_look = max(ahead, _SLOWEST_GROWTH * products, products + self.block)


@dataclass(frozen=True)
class _Ritz:
    """Ritz values, largest first, weights of their vectors in the basis, residual norms."""

    values: Array
    weights: Array
    residuals: Array


class _Basis:
    """Orthonormal rows Q with the block Lanczos relation.

        A Qᵀ = Qᵀ T + Pᵀ C,        P the next block, orthonormal and orthogonal to Q

    C touches only the last block, or after a restart all of the Ritz vectors kept.
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
        """Take the next block in and find the one after it."""
        old, new = self.size, self.size + self._block
        image = self._search.image(self._rows[old:new])
        # The recurrence first, so that the pass over all rows has only rounding to take away.
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
        """The rows without what they have of Q."""
        basis = self._rows[: self.size]
        if isinstance(rows, np.ndarray) and rows.shape[0] <= _FEW_ROWS:
            # A matrix product of a few rows makes BLAS copy the whole basis first. And SciPy's
            # own BLAS, not NumPy's: where products with A are SciPy's too, two pools of threads
            # in turn hinder each other.
            return np.array(
                [row - dgemv(1.0, basis.T, dgemv(1.0, basis.T, row, trans=1)) for row in rows]
            )
        return rows - (rows @ basis.T) @ basis

    def _next_block(self, rest: Array) -> tuple[Array, Array]:
        """Orthonormal rows P and C with restᵀ = PᵀC; random rows where rest has too small a rank.

        Such a space is invariant: the random rows start the search anew beside it.
        """
        with suppress(np.linalg.LinAlgError):
            lower = np.linalg.cholesky(host(rest @ rest.T))
            sizes = np.diag(lower)
            if np.min(sizes) > _CHOLESKY_IS_SAFE * max(self._scale, np.max(sizes)):
                return self._divided(lower, rest), np.asarray(lower.T)
        rows, link = self._difficult_block(rest)
        return rows, link

    def _divided(self, lower: Array, rest: Array) -> Array:
        """C⁻¹ rest for a small triangular C."""
        if isinstance(rest, np.ndarray):
            return np.asarray(np.linalg.solve(lower, rest))
        inverse: Array = beside(rest, np.linalg.inv(lower)) @ rest
        return inverse

    def _difficult_block(self, rest: Array) -> tuple[Array, Array]:
        """The same where rows are nearly dependent, tiny or zero."""
        place = place_of(rest)
        columns, triangle, order = qr(host(rest).T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        self._scale = max(self._scale, float(sizes[0]))
        rank = int(np.sum(sizes > self._search.operator.precision * self._scale))
        rows, link = columns.T, np.zeros_like(triangle)
        link[:rank, order] = triangle[:rank]
        rows[rank:] = self._search.rng.standard_normal(rows[rank:].shape)
        for _ in range(2):  # short rows carry what is left of Q in them, magnified
            cleared = host(self._cleared(place.put(np.ascontiguousarray(rows))))
            columns, triangle = qr(cleared.T, mode="economic")
            rows = (columns * np.where(np.diag(triangle) < 0, -1.0, 1.0)).T
        return place.put(np.ascontiguousarray(rows)), link

    def norm(self) -> float:
        """‖T e_j‖ at its largest, which ‖A‖ is no less than."""
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
        """Keep these Ritz vectors and the next block, which is linked to all of them."""
        m, block, kept = self.size, self._block, ritz.values.size
        link = self._link(ritz.weights)
        self._rows[:kept] = self.combine(ritz.weights)
        self._rows[kept : kept + block] = 1.0 * self._rows[m : m + block]
        self._small[:] = 0.0
        np.fill_diagonal(self._small[:kept, :kept], ritz.values)
        self._small[kept : kept + block, :kept] = link
        self._small[:kept, kept : kept + block] = link.T
        self.size, self._linked = kept, 0
