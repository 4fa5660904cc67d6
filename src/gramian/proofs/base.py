"""What a proof of λ_min is, and what the forms of a matrix offer to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from gramian.arrays.places import HOST, Place, norm

Array = NDArray[np.floating]

UNIT = float(np.finfo(float).eps) / 2
"""The unit roundoff u."""

EXACT_ORDER = 1500
"""Up to this order all eigenvalues of a dense matrix are computed: half a second on one core."""

PROVED = 0.0

INVERSE_STEPS = 30

Solve = Callable[[Array], Array]
"""b ↦ A⁻¹b."""


@dataclass(frozen=True)
class Bottom:
    """A lower bound on λ_min: how it was found, and how likely it is to be wrong."""

    value: float
    how: str
    """eigenvalues, Cholesky, sparse Cholesky, span, blocks, Gershgorin or Lanczos."""
    miss: float = PROVED
    """A bound on the probability that an eigenvalue lies below; 0 for a proof, 1 for a guess."""
    vector: Array | None = None
    """An approximate eigenvector, where one was found."""
    hope: float | None = None
    """What λ_min probably is, where an estimate had to allow for a large residual."""

    @property
    def proved(self) -> bool:
        return self.miss == PROVED

    def lowered(self, share: float) -> Bottom:
        """The bound less `share` of its size."""
        return replace(self, value=self.value - share * abs(self.value))


@dataclass(frozen=True)
class Factor:
    """The outcome of one factorisation of G − tI."""

    definite: bool
    """Whether it proves that G − tI is positive semidefinite."""
    solve: Solve | None = None
    """b ↦ (G − tI)⁻¹b, to find the eigenvalue next to t."""


class Form(Protocol):
    """A symmetric matrix that can be factorised after a shift."""

    how: str

    @property
    def seconds(self) -> float:
        """About what one factorisation takes; infinite where memory does not hold it."""

    def above(self, t: float) -> Factor:
        """Try to prove G ⪰ tI."""

    def next_to(self, t: float, solve: Solve) -> tuple[float, Array | None]:
        """The eigenvalue next to a t below all of them, and its vector."""

    def resolution(self, vector: Array, t: float) -> float:
        """What a proof near t costs at least, for the eigenvector given."""


class Matrix(Protocol):
    """What `lowest` is asked about."""

    @property
    def order(self) -> int: ...

    def __matmul__(self, V: Array, /) -> Array: ...

    def dense(self) -> Array: ...

    def form(self) -> Any:
        """What is known of its structure: a `Form`, a `LowRank`, a `Bipartite`, or None."""

    def slack(self) -> Array:
        """e² with |E_ij| ≤ e_i e_j for the rounding errors E that `dense` was made with."""


def place_of_matrix(matrix: Any) -> Place:
    """Where the products of a matrix are made: on the host unless it says so."""
    found: Place = getattr(matrix, "place", HOST)
    return found


def typical_size(matrix: Any) -> float:
    """About ‖G‖/√n, the root mean square of the eigenvalues, from one product."""
    probe = np.random.default_rng(0).standard_normal(matrix.order)
    image = matrix @ place_of_matrix(matrix).put(probe)
    return norm(image) / norm(probe) or 1.0


def rounded_sum(terms: float) -> float:
    """What a sum of so many rounded products is off by, in units of the sum of their sizes.

    γ_m = mu/(1 − mu) with m = terms + 2, which holds for every order of summation (Higham 2002,
    §3.1): no model of how roundings are distributed stands behind it. Infinite where mu is 1 or
    more.
    """
    lost = (max(terms, 1.0) + 2) * UNIT
    return float(lost / (1 - lost)) if lost < 1 else np.inf


def inverse_lanczos(order: int, solve: Solve, unit: Any = None) -> Array:
    """The vector of the least eigenvalue of A, or of the pencil (A, P), by products with A⁻¹."""
    inverse = LinearOperator((order, order), matvec=lambda b: solve(np.ravel(b)), dtype=float)
    start: Array = np.random.default_rng(1).standard_normal(order)
    least = min(INVERSE_STEPS, order - 1)
    try:
        _, vectors = eigsh(
            inverse, k=1, M=unit, sigma=0.0, OPinv=inverse, v0=start, ncv=least, tol=1e-6
        )
        return np.ascontiguousarray(vectors[:, 0])
    except ArpackError:  # a few steps of inverse iteration are as good a guess
        for _ in range(INVERSE_STEPS):
            start = solve(start if unit is None else unit @ start)
            start /= np.linalg.norm(start)
        return start
