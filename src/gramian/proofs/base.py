"""The result of a proof of λ_min, and the protocol of matrix structures that support one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from gramian.arrays.places import HOST, Place, norm
from gramian.common.types import Array

UNIT = float(np.finfo(float).eps) / 2
"""The unit roundoff u."""

EXACT_ORDER = 1500
"""Order up to which all eigenvalues of a dense matrix are computed: half a second on one core."""

PATIENCE = 60.0
"""Default time limit in seconds of the factorisations of one proof."""

MAX_INVERSE_STEPS = 30

Solve = Callable[[Array], Array]
"""b ↦ A⁻¹b."""


@dataclass(frozen=True)
class Bottom:
    """A lower bound on λ_min, how it was found, and a bound on the probability that it is wrong."""

    value: float
    how: str
    """eigenvalues, Cholesky, sparse Cholesky, span, blocks, Gershgorin or Lanczos."""
    miss: float = 0.0
    """Bound on the probability that an eigenvalue lies below; 0 for a proof, 1 for a guess."""
    vector: Array | None = None
    """An approximate eigenvector, or None."""
    hope: float | None = None
    """The probable λ_min, if an estimate had to subtract a large residual."""

    @property
    def proved(self) -> bool:
        return self.miss == 0

    def lowered(self, share: float) -> Bottom:
        """The bound minus `share` of its absolute value."""
        return replace(self, value=self.value - share * abs(self.value))


@dataclass(frozen=True)
class Factor:
    """The result of one factorisation of G − tI."""

    definite: bool
    """Whether it proves G − tI positive semidefinite."""
    solve: Solve | None = None
    """b ↦ (G − tI)⁻¹b, to find the eigenvalue closest to t."""


class Form(Protocol):
    """A symmetric matrix that can be factorised after a shift."""

    how: str

    @property
    def seconds(self) -> float:
        """Approximate seconds of one factorisation; infinite if it does not fit into memory."""

    def above(self, t: float) -> Factor:
        """Try to prove G ⪰ tI."""

    def next_to(self, t: float, solve: Solve) -> tuple[float, Array | None]:
        """The smallest eigenvalue, for a t below it, and its eigenvector."""

    def resolution(self, vector: Array, t: float) -> float:
        """The smallest loss of a proof near t, for the given eigenvector."""


class SymmetricMatrix(Protocol):
    """The argument of `lowest`."""

    @property
    def order(self) -> int: ...

    def __matmul__(self, V: Array, /) -> Array: ...

    def dense(self) -> Array: ...

    def form(self) -> Any:
        """The structure of the matrix: a `Form`, a `LowRank`, a `Bipartite`, or None."""

    def slack(self) -> Array:
        """e² with |E_ij| ≤ e_i e_j for the rounding errors E of the entries of `dense`."""


def place_of_matrix(matrix: Any) -> Place:
    """The device of the products with a matrix, by default the host."""
    return getattr(matrix, "place", HOST)


def typical_size(matrix: Any) -> float:
    """Estimate of ‖G‖/√n, the root mean square of the eigenvalues, from one product."""
    probe = np.random.default_rng(0).standard_normal(matrix.order)
    image = matrix @ place_of_matrix(matrix).put(probe)
    return norm(image) / norm(probe) or 1.0


def rounded_sum(terms: float) -> float:
    """Error bound of a sum of `terms` rounded products, relative to the sum of their sizes.

    γ_m = mu/(1 − mu) with m = terms + 2, which holds for every order of summation (Higham 2002,
    §3.1) without assumptions on the distribution of rounding errors. Infinite if mu ≥ 1.
    """
    lost = (max(terms, 1.0) + 2) * UNIT
    return float(lost / (1 - lost)) if lost < 1 else np.inf


def inverse_lanczos(order: int, solve: Solve, unit: Any = None) -> Array:
    """The eigenvector of the smallest eigenvalue of A, or of the pencil (A, P), by A⁻¹."""
    inverse = LinearOperator((order, order), matvec=lambda b: solve(np.ravel(b)), dtype=float)
    start: Array = np.random.default_rng(1).standard_normal(order)
    least = min(MAX_INVERSE_STEPS, order - 1)
    try:
        _, vectors = eigsh(
            inverse, k=1, M=unit, sigma=0.0, OPinv=inverse, v0=start, ncv=least, tol=1e-6
        )
        return np.ascontiguousarray(vectors[:, 0])
    except ArpackError:  # fall back to a few steps of inverse iteration
        for _ in range(MAX_INVERSE_STEPS):
            start = solve(start if unit is None else unit @ start)
            start /= np.linalg.norm(start)
        return start
