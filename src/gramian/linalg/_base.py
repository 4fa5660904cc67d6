"""Common parts of the eigenpair methods: the result, counted products, a short Lanczos probe."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import HOST, Place, norm, recorded
from gramian.common import clock
from gramian.linalg._lanczos import LanczosBasis

Array = NDArray[np.float64]
RandomState = int | np.random.Generator | None

OUTER_ITERATIONS = 500
"""Default limit on the iterations of a method (restarts, Newton steps)."""
_PROBE_STEPS = 6
"""Products of the Lanczos run before the first iteration."""
_MIX_RANGE = (1e-4, 1e-1)
"""Bounds on the random part of a starting vector, relative to the given part."""


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
        self._recorded = recorded(operator.__matmul__, self.place)

    @property
    def precision(self) -> float:
        """Relative residual below which rounding errors of the products dominate."""
        return 4.0 * float(np.finfo(self.dtype).eps) * float(np.sqrt(self.size))

    def __call__(self, vectors: Array) -> Array:
        """Return A @ vectors."""
        clock.check()
        self.products += 1 if vectors.ndim == 1 else vectors.shape[1]
        if not self.place.is_host:
            return self._there(vectors)
        with np.errstate(invalid="ignore", over="ignore"):
            image = np.asarray(
                self._operator @ vectors.astype(self.dtype, copy=False), dtype=np.float64
            )
        if not np.isfinite(image).all():
            raise FloatingPointError("the operator returned NaN or infinite values")
        return image

    def _there(self, vectors: Array) -> Array:
        """Product on a device; the basis checks single vectors for finite values."""
        if vectors.ndim == 1:
            quick: Array = self._recorded(vectors)
            return quick
        image: Array = self._operator @ vectors
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
    """Run a few steps of Lanczos and return the leading Ritz vector."""
    basis = LanczosBasis(start, min(_PROBE_STEPS, operator.size), operator.precision)
    while not basis.full:
        basis.extend(operator(basis.last))
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
    than tol so that another eigenvector is not accepted at once.
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
    mixed: Array = given / length + float(np.clip(np.sqrt(tol), *_MIX_RANGE)) * noise
    return mixed
