"""Lanczos: the recurrence with full or partial reorthogonalisation, and what uses short runs of it.

`CountedOperator` counts products, `probe` estimates the range of the spectrum, and `ritz_pairs`
returns several leading Ritz pairs as directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from gramian.arrays.places import (
    HOST,
    Place,
    beside,
    contiguous,
    host,
    namespace,
    norm,
    numbers,
    recorded,
    size,
    zeros,
)
from gramian.common import clock

Array = NDArray[np.float64]
RandomState = int | np.random.Generator | None

PRODUCTS_PER_CHECK = 20
"""Products between two checks of the stopping criterion."""

MAX_RECORDED_BASIS = 2**24
"""Numbers of a basis on a device up to which each step uses all of its rows (0.13 GB)."""


class LanczosBasis:
    """Orthonormal Q of a Krylov space of A, grown one product at a time.

        A Q_k = Q_k T_k + β_k q_{k+1} e_kᵀ,        T_k = tridiag(β, α, β)

    The caller passes ``A @ basis.last`` to `extend`, so that known products are not repeated, or
    calls `grow`, which computes it. The recurrence also gives A·(Qy) without a product: see
    `image`.

    With `partial`, a vector is orthogonal to all before it only up to the square root of the
    precision. T_k is then as accurate as with full reorthogonalisation (Simon 1984).
    """

    def __init__(
        self, start: Array, capacity: int, precision: float, *, partial: bool = False
    ) -> None:
        self._rows = zeros((capacity + 1, start.shape[0]), start)
        self._rows[0, :] = start / norm(start)
        self._capacity = capacity
        self._precision = precision
        self._scale = 0.0
        self.alphas: list[float] = []
        self.betas: list[float] = []
        self._drift = _Drift(precision) if partial else None

    @classmethod
    def of(
        cls, operator: CountedOperator, start: Array, capacity: int, *, partial: bool = False
    ) -> LanczosBasis:
        """A basis on the device of the operator."""
        if operator.place.is_host:
            return cls(start, capacity, operator.precision, partial=partial)
        return DeviceBasis(operator, start, capacity)

    @property
    def size(self) -> int:
        """Number k of completed steps."""
        return len(self.alphas)

    @property
    def last(self) -> Array:
        """q_{k+1}, the vector whose image `extend` expects."""
        return self._rows[self.size, :]

    @property
    def exhausted(self) -> bool:
        """Whether the space is invariant: β_k = 0 up to rounding."""
        return bool(self.betas) and self.betas[-1] == 0.0

    @property
    def full(self) -> bool:
        """Whether no further step can be taken."""
        return self.exhausted or self.size == self._capacity

    @property
    def vectors(self) -> Array:
        """The rows q_1 … q_k."""
        return self._rows[: self.size, :]

    def extend(self, image: Array) -> None:
        """Take one step, given the image A q_{k+1}."""
        known = self._rows[: self.size + 1, :]
        along = known[-1, :] @ image
        rest = image - along * known[-1, :]
        if self.betas:
            rest -= self.betas[-1] * known[-2, :]
        near = known if self._drift is None else known[-2:]
        rest -= (near @ rest) @ near  # the remaining components are rounding errors
        alpha, square = numbers(along, rest @ rest)
        if self._drift is not None:
            self._scale = max(self._scale, abs(alpha), math.sqrt(square))
            level = self._precision * self._scale
            if self._drift.is_due([*self.alphas, alpha], self.betas, math.sqrt(square), level):
                rest -= (known @ rest) @ known
                (square,) = numbers(rest @ rest)
        beta = self._record(alpha, square)
        self._rows[self.size, :] = rest / beta if beta else 0.0

    def grow(self, operator: CountedOperator) -> None:
        """Take one step, with a product of the operator."""
        self.extend(operator(self.last))

    def _record(self, alpha: float, square: float) -> float:
        """Append α_k and β_k, given β_k²; return β_k, 0 if the space is invariant."""
        if not math.isfinite(alpha + square):
            raise FloatingPointError("the operator returned NaN or infinite values")
        beta = math.sqrt(square)
        self._scale = max(self._scale, abs(alpha), beta)
        beta = beta if beta > self._precision * self._scale else 0.0
        self.alphas.append(alpha)
        self.betas.append(beta)
        return beta

    def read(self) -> None:
        """Read the entries of T_k that are not on the host."""

    def ritz(self) -> tuple[Array, Array]:
        """Return the eigenvalues (ascending) and eigenvectors of T_k."""
        self.read()
        values, vectors = eigh_tridiagonal(self.alphas, self.betas[:-1])
        return values, vectors

    def top(self) -> tuple[float, Array]:
        """Return the largest eigenvalue of T_k and its eigenvector."""
        self.read()
        last = len(self.alphas) - 1
        values, vectors = eigh_tridiagonal(
            self.alphas, self.betas[:-1], select="i", select_range=(last, last)
        )
        return float(values[0]), vectors[:, 0]

    @property
    def reach(self) -> float:
        """Estimate of ‖A‖: the largest entry of T_k."""
        return self._scale

    def tridiagonal(self) -> Array:
        """Return T_k as a dense array."""
        self.read()
        off = self.betas[:-1]
        return np.diag(self.alphas) + np.diag(off, 1) + np.diag(off, -1)

    def combine(self, y: Array) -> Array:
        """Return Q_k y."""
        combined: Array = beside(self._rows, y) @ self.vectors
        return combined

    def image(self, y: Array) -> Array:
        """Return A Q_k y = Q_k (T_k y) + β_k y_k q_{k+1}."""
        tail = self.betas[-1] * float(y[-1])
        inside: Array = self.combine(self.tridiagonal() @ y)
        return inside + tail * self.last

    def residual(self, y: Array) -> float:
        """Return ‖A Q_k y − Q_k T_k y‖ = β_k |y_k|."""
        return self.betas[-1] * abs(float(y[-1]))


class DeviceBasis(LanczosBasis):
    """`LanczosBasis` on a device, always with full reorthogonalisation.

    The entries of T_k stay there until they are needed: a transfer takes longer than the arithmetic
    of a step. A step is recorded together with its product. It therefore uses all rows of a basis
    that is not too large, of which those of later steps are 0.
    """

    def __init__(self, operator: CountedOperator, start: Array, capacity: int) -> None:
        super().__init__(start, capacity, operator.precision)
        each, rows = np.arange(capacity + 1), self._rows
        self._near = operator.place.put(np.column_stack([np.roll(each, 1), each]))
        """The rows of the last two vectors at each step: an unset one at the first."""
        self._unread: list[Array] = []
        self._step: Callable[[Array], Array] | None = None
        if size(rows) <= MAX_RECORDED_BASIS:
            product = operator.product  # a reference to `self` would be a cycle
            self._step = recorded(lambda near: _step(product, rows, near, rows), operator.place)

    @property
    def size(self) -> int:
        return len(self.alphas) + len(self._unread)

    def grow(self, operator: CountedOperator) -> None:
        operator.count(1)
        near = self._near[self.size]
        if self._step is None:
            known = self._rows[: self.size + 1, :]
            self._unread.append(_step(operator.product, self._rows, near, known))
        else:
            self._unread.append(self._step(near))

    def read(self) -> None:
        unread, self._unread = self._unread, []
        entries = host(namespace(*unread).stack(unread)).tolist() if unread else []
        for alpha, square in entries:  # up to a step that completed the space
            if not self._record(alpha, square):
                self._rows[self.size, :] = 0.0
                break


def _step(product: Callable[[Array], Array], rows: Array, near: Array, known: Array) -> Array:
    """Write q_{k+2} to the rows, given the indices of q_k and q_{k+1}; return α and β²."""
    xp = namespace(rows)
    last = xp.take(rows, near, axis=0)
    image = product(last[1, :])
    along = last @ image
    rest = image - along @ last
    rest = rest - (known @ rest) @ known  # the remaining components are rounding errors
    square = rest @ rest
    rows[near[1:] + 1, :] = (rest / square**0.5)[None, :]
    return xp.stack([along[1], square])


class _Drift:
    """Estimated loss of orthogonality of the last two vectors to those before them.

    ω_{j+1} = (Tω_j − α_j ω_j − β_{j−1} ω_{j−1} + rounding)/β_j, with T that of the steps before.
    """

    def __init__(self, precision: float) -> None:
        self.precision, self.most = precision, math.sqrt(np.finfo(float).eps)
        self.before, self.last = np.zeros(0), np.ones(1)
        self.again = False
        """Whether to reorthogonalise the next vector as well: the loss affects two vectors."""

    def is_due(self, alphas: list[float], betas: list[float], beta: float, level: float) -> bool:
        """Whether the next vector, of length `beta`, must be orthogonalised to all others."""
        a, b, w = np.array(alphas), np.array(betas), self.last
        moved = (a[:-1] - a[-1]) * w[:-1] + b * w[1:]
        moved[1:] += b[:-1] * w[:-2]
        if moved.size:
            moved -= b[-1] * self.before
        moved += np.copysign(level, moved)
        lost = moved / beta if beta > 0 else np.full(moved.size, np.inf)
        crossed = not np.all(np.abs(lost) <= self.most)
        due, self.again = crossed or self.again, crossed and not self.again
        lost = np.full(lost.size, self.precision) if due else lost
        self.before, self.last = w, np.concatenate([lost, [self.precision, 1.0]])
        return due


class Operator(Protocol):
    """A symmetric linear operator: ndarray, SciPy sparse array or LinearOperator."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __matmul__(self, other: Any, /) -> Any: ...


@dataclass(frozen=True)
class EigenPair:
    """A leading eigenpair (λ, v) of A with its error bound.

    The interval [value − residual, value + residual] contains an eigenvalue of A. That this
    eigenvalue is the largest one is not proved by the residual.
    """

    value: float
    """λ = vᵀAv."""
    vector: Array
    """v, of unit norm."""
    residual: float
    """‖Av − λv‖, from a new product."""
    products: int
    """Number of products of A with a vector."""
    converged: bool
    """Whether residual ≤ tol · max(|λ|, estimate of ‖A‖)."""


class CountedOperator:
    """Products with A, counted, in A's own precision and checked to be finite."""

    def __init__(self, operator: Operator) -> None:
        shape = tuple(operator.shape)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise ValueError(f"operator must be square and not empty, got shape {shape}")
        self.place: Place = getattr(operator, "place", HOST)
        declared = getattr(operator, "dtype", None) if self.place.is_host else None
        dtype = np.dtype(declared or np.float64)
        if dtype.kind == "c":
            raise ValueError("operator must be real symmetric, got a complex dtype")
        self.size: int = shape[0]
        # A float64 vector would make NumPy convert a whole float32 matrix at every product.
        self.dtype = np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)
        self.products = 0
        self._operator = operator

    @property
    def precision(self) -> float:
        """Relative residual below which rounding errors of the products dominate."""
        return 4.0 * float(np.finfo(self.dtype).eps) * float(np.sqrt(self.size))

    def __call__(self, vectors: Array) -> Array:
        """Return A @ vectors."""
        self.count(1 if vectors.ndim == 1 else vectors.shape[1])
        if not self.place.is_host:
            return self._there(vectors)
        with np.errstate(invalid="ignore", over="ignore"):
            image = np.asarray(
                self._operator @ vectors.astype(self.dtype, copy=False), dtype=np.float64
            )
        if not np.isfinite(image).all():
            raise FloatingPointError("the operator returned NaN or infinite values")
        return image

    def count(self, products: int) -> None:
        """Count products, and check the time limit."""
        clock.check()
        self.products += products

    def product(self, vector: Array) -> Array:
        """A @ vector, neither counted nor checked."""
        image: Array = self._operator @ vector
        return image

    def _there(self, vectors: Array) -> Array:
        """Product on a device."""
        image = self.product(vectors)
        if not bool(self.place.xp.all(self.place.xp.isfinite(image))):
            raise FloatingPointError("the operator returned NaN or infinite values")
        return image

    def pair(self, vector: Array, tol: float, reach: float) -> EigenPair:
        """Return the eigenpair at a vector, with its residual from one more product."""
        unit = vector / norm(vector)
        image = self(unit)
        value = float(unit @ image)
        residual = norm(image - value * unit)
        converged = residual <= tol * max(abs(value), reach)
        return EigenPair(value, unit, residual, self.products, converged)


@dataclass(frozen=True)
class Probe:
    """A Ritz vector u after a few Lanczos steps, its image Au, and the range of the spectrum."""

    vector: Array
    image: Array
    low: float
    high: float
    residual: float

    @property
    def norm(self) -> float:
        """Lower estimate of ‖A‖."""
        return max(abs(self.low), abs(self.high))


def probe(operator: CountedOperator, start: Array) -> Probe:
    """Run six steps of Lanczos and return the leading Ritz vector."""
    basis = LanczosBasis.of(operator, start, min(6, operator.size))
    while not basis.full:
        basis.grow(operator)
    values, vectors = basis.ritz()
    y = vectors[:, -1]
    return Probe(
        vector=basis.combine(y),
        image=basis.image(y),
        low=float(values[0]),
        high=float(values[-1]),
        residual=basis.residual(y),
    )


def starting_vector(
    n: int, v0: Array | None, tol: float, random_state: RandomState, place: Place = HOST
) -> Array:
    """Return v0 plus a small random part, or a random vector.

    Without the random part, a v0 orthogonal to the leading eigenvector is a saddle point of f
    (and spans an invariant Krylov space) that the methods cannot leave. The part is √tol, larger
    than tol so that another eigenvector is not accepted at once, and between 1e-4 and 0.1.
    """
    noise = place.normal(np.random.default_rng(random_state), (n,))
    noise /= norm(noise)
    if v0 is None:
        return noise
    given = np.asarray(v0, dtype=np.float64) if place.is_host else place.put(v0)
    if given.shape != (n,) or not bool(place.xp.all(place.xp.isfinite(given))):
        raise ValueError(f"v0 must be a finite vector of shape ({n},), got shape {given.shape}")
    length = norm(given)
    if length == 0.0:
        return noise
    mixed: Array = given / length + float(np.clip(np.sqrt(tol), 1e-4, 0.1)) * noise
    return mixed


class RitzPairs(NamedTuple):
    """The largest Ritz values, descending, with unit vectors and residual norms."""

    values: Array
    vectors: Array
    residuals: Array


def ritz_pairs(
    operator: Operator,
    k: int,
    *,
    steps: int,
    v0: Array | None = None,
    random_state: RandomState = None,
    enough: Callable[[int, float, float], bool] | None = None,
) -> RitzPairs:
    """Return the k largest Ritz pairs of a Lanczos run with `steps` steps from v0 or at random.

    The number of products is fixed unless `enough` is given, which is called every
    `PRODUCTS_PER_CHECK` products with their number, the largest value and its residual, and may end
    the run. Multiple eigenvalues are found once.
    """
    counted = CountedOperator(operator)
    noise = counted.place.normal(np.random.default_rng(random_state), (counted.size,))
    start, most = noise if v0 is None else v0, min(steps, counted.size)
    basis = LanczosBasis.of(counted, start, most, partial=True)
    while not basis.full:
        basis.grow(counted)
        if enough is not None and basis.size % PRODUCTS_PER_CHECK == 0:
            value, y = basis.top()
            if enough(basis.size, value, basis.residual(y)):
                break
    values, vectors = basis.ritz()
    chosen = vectors[:, ::-1][:, :k]
    residuals = np.array([basis.residual(y) for y in chosen.T])
    found = contiguous(basis.combine(np.ascontiguousarray(chosen.T)).T)
    return RitzPairs(values[::-1][:k].copy(), found, residuals)
