"""λ_min of a dense matrix: all eigenvalues for a moderate order, else a Cholesky factorisation."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from gramian.arrays.places import (
    HOST,
    Place,
    backend,
    eye,
    host,
    largest,
    namespace,
    norm,
    place_of,
)
from gramian.arrays.threads import blas_threads_for, dense_threads
from gramian.common import clock
from gramian.common.types import Array
from gramian.proofs.base import (
    UNIT,
    Bottom,
    Factor,
    Solve,
    inverse_lanczos,
    place_of_matrix,
    rounded_sum,
)

DEVICE_FLOPS, DEVICE_START_SECONDS = 8e12, 0.01
"""Floating point operations per second of a device (an H200 has 25e12 at order 10,000), and the
start-up time in seconds."""

FLOPS, GAIN_PER_CORE = 8e9, 0.5
"""Operations per second of a Cholesky factorisation on one core, at least, and the relative gain
of each further core (order 1500: 45 ms with one, 23 with 4, 14 with 16; more for larger orders)."""


class DenseForm:
    """A dense symmetric G, known up to E with |E_ij| ≤ e_i e_j."""

    how = "Cholesky"

    def __init__(self, G: Array, slack: Array) -> None:
        self.G, self.slack = G, slack
        self.order = G.shape[0]
        self.place = place_of(G)

    def __matmul__(self, V: Array) -> Array:
        return self.G @ V

    @property
    def _share(self) -> float:
        """The fraction of the diagonal that is subtracted."""
        return 2 * self.order * (self.order + 2) * UNIT

    def resolution(self, vector: Array, t: float) -> float:
        lost = self.order * self.slack + self._share * np.abs(self._diagonal - t)
        return 2 * float(np.square(host(vector)) @ lost)

    def next_to(self, t: float, solve: Solve) -> tuple[float, Array]:
        found = inverse_lanczos(self.order, lambda b: host(solve(self.place.put(b))))
        vector = self.place.put(found)
        return float(vector @ (self.G @ vector)), vector

    @property
    def seconds(self) -> float:
        return dense_seconds(self.order, self.place)

    @cached_property
    def _diagonal(self) -> Array:
        return host(namespace(self.G).linalg.diagonal(self.G))

    def above(self, t: float) -> Factor:
        """Cholesky factorisation of A = G − tI with its diagonal reduced by the rounding errors.

        If the algorithm completes, A + Δ is positive semidefinite for some |Δ_ij| ≤ φ √(a_ii a_jj)
        with φ = γ_{n+1}/(1 − γ_{n+1}) (Higham, Theorem 10.3; Rump 2006). An error bounded by
        e_i e_j is at least −n diag(e²). The diagonal is therefore reduced by nφ times itself and
        by n e_i². The reduction of a row does not depend on the size of other rows.
        """
        diagonal = self._diagonal - t
        diagonal = (diagonal - self.order * self.slack) * (1.0 - self._share)
        if not np.all(diagonal > 0):
            return Factor(False)
        clock.check(self.seconds)
        A, every = namespace(self.G).asarray(self.G, copy=True), np.arange(self.order)
        A[every, every] = self.place.put(diagonal)
        with blas_threads_for(self.order**2):
            solve = backend(A).cholesky(A)
        return Factor(solve is not None, solve)


def dense_seconds(order: int, place: Place = HOST) -> float:
    """Approximate seconds of a Cholesky factorisation of this order."""
    if not place.is_host:
        return order**3 / 3 / DEVICE_FLOPS + DEVICE_START_SECONDS
    return order**3 / 3 / (FLOPS * (1 + GAIN_PER_CORE * (dense_threads(order**2) - 1)))


def eigen_seconds(order: int, place: Place = HOST) -> float:
    """Approximate seconds for the smallest eigenvalue of a dense matrix of this order."""
    return 4 * dense_seconds(order, place)


def all_eigenvalues(matrix: Any) -> Bottom:
    """The smallest of all eigenvalues, minus the backward error of its computation."""
    clock.check(eigen_seconds(matrix.order, place_of_matrix(matrix)))
    G = matrix.dense()
    xp = namespace(G)
    if not bool(xp.all(xp.isfinite(G))):
        raise FloatingPointError("the gradient is not finite")
    if xp is np:
        with blas_threads_for(G.size):
            lowest = scipy.linalg.eigvalsh(G, subset_by_index=[0, 0], check_finite=False)[0]
    else:
        values, vectors = xp.linalg.eigh(0.5 * (G + G.T))
        lost = lost_by(G, values, vectors) + float(np.sum(matrix.slack()))
        return Bottom(float(values[0]) - lost, "eigenvalues")
    return Bottom(float(lowest) - rounding_of(G, matrix.slack()), "eigenvalues")


def definite_in(matrix: Any, T: Array) -> bool:
    """Whether TᵀGT is proved positive definite.

    Then G is positive semidefinite, if it vanishes outside the span of T. Coordinates in units of
    the data can prove this if the entries of G have very different sizes.

    With |E_ij| ≤ e_i e_j for the errors of G, those of TᵀGT are at most f_i f_j, f = |T|ᵀe, and the
    two products add γ |T|ᵀ|G||T|, whose entries are at most the square root of the product of
    their row and column sums.
    """
    G = matrix.dense()
    made = np.sqrt(np.maximum(matrix.slack(), 0.0)) @ np.abs(T)
    sizes = np.abs(T).T @ (np.abs(G) @ np.abs(T))
    slack = made**2 + 2 * rounded_sum(matrix.order) * np.sum(sizes, axis=1)
    A = T.T @ G @ T
    if not np.all(np.isfinite(A)):
        return False
    return DenseForm(0.5 * (A + A.T), 2 * slack).above(0.0).definite


def lost_by(G: Array, values: Array, vectors: Array) -> float:
    """Bound on the distance of λ_min(G) below the smallest computed eigenvalue, from residuals.

    With R = GV − VΛ and D = VᵀV − I, VᵀGV ⪰ (λ₁ − ‖D‖‖Λ‖ − ‖V‖‖R‖)I = μI, and x = Vy has
    ‖x‖² within (1 ± ‖D‖)‖y‖²: so λ_min ≥ μ/(1 + ‖D‖), or μ/(1 − ‖D‖) below 0. R and D are computed
    and their rounding is bounded, without assumptions on how a device computed Λ and V.
    """
    G = 0.5 * (G + G.T)
    n, unit, size = G.shape[0], rounded_sum(G.shape[0]), norm(G)
    gram = vectors.T @ vectors
    skew = norm(gram - eye(n, place_of(G))) + unit * n
    if not skew < 1:
        return np.inf
    rest = norm(G @ vectors - vectors * values) + (unit * n**0.5 + 4 * UNIT) * size * (1 + skew)
    first, reach = float(values[0]), largest(values)
    below = first - skew * reach - (1 + skew) * rest
    return first - (below / (1 + skew) if below > 0 else below / (1 - skew))


def rounding_of(G: Array, slack: Array) -> float:
    """Error bound of a computed eigenvalue: that of the algorithm, and of the entries of G."""
    return float(16 * UNIT * norm(G) + np.sum(slack))
