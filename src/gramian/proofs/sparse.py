"""λ_min of a sparse matrix plus a low-rank one, by the signs of pivots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, dijkstra
from scipy.sparse.linalg import splu

from gramian.arrays import cpu
from gramian.arrays.fronts import MIN_FRONT_POINTS, SYMMETRIC, Elimination, Fronts, elimination
from gramian.arrays.threads import blas_threads_for
from gramian.common import clock
from gramian.common.types import Array
from gramian.proofs.base import PATIENCE, UNIT, Factor, Solve, inverse_lanczos
from gramian.proofs.dense import FLOPS, dense_seconds

DIAGONAL_FRACTION = 1e-11
"""Fraction of the diagonal subtracted for rounding: the computed error must be below it."""

ERROR_SAFETY = 8.0
"""Safety factor for the error of a factorisation, relative to an earlier one of the same form."""

TRIAL, TRIAL_GROWTH, MAX_TRIAL_SECONDS = 2000, 2, 2.0
"""Nodes of the first trial factorisation, growth factor from one trial to the next, and the time
limit of a trial in seconds."""

MAX_FILLED_DISTANCE = 6
"""Largest graph distance from one node in a graph with full fill-in, such as a random graph."""

DENSE_RATE = 3e9
"""n³ divided by the seconds of a sparse factorisation with full fill-in (order 1,800: 2 s)."""

SECONDS_PER_NONZERO = 2.5e-7
"""Approximate seconds per nonzero of a sparse factor, in addition to those of its operations;
within 40 % for 1,000 to 6,000 digits and a Swiss roll. Counts are used instead of measured times so
that decisions do not depend on the load of the machine."""

MAX_DENSE_ORDER = 5000
"""Order up to which a dense factorisation (200 MB) is faster than a sparse one with fill-in: for
order 2,000 SuperLU takes 1.6 s on one core, LAPACK 0.3 s. Beyond it trial factorisations decide."""


def _seconds_of(factor: Any) -> float:
    heights = np.diff(factor.L.indptr).astype(float)
    return SECONDS_PER_NONZERO * float(heights.sum()) + 2.0 * float(heights @ heights) / FLOPS


class SparseForm:
    """S + U diag(ω) Uᵀ, tested against multiples of the identity, or of another sparse P ⪰ 0.

    With the low-rank part, [S − tP, U; Uᵀ, −1/ω] has the negative eigenvalues of G − tP and as
    many more as there are ω > 0 (Haynsworth): the signs of the pivots of that sparse matrix give
    the inertia of G − tP.
    """

    how = "sparse Cholesky"

    def __init__(
        self,
        S: Any,
        U: Array | None = None,
        weights: Array | None = None,
        *,
        unit: Any = None,
    ) -> None:
        self.S = sp.csr_array(S)
        self.order = self.S.shape[0]
        self.plain = unit is None
        self.unit = sp.eye_array(self.order, format="csr") if self.plain else sp.csr_array(unit)
        live = np.zeros(0, dtype=bool) if weights is None else np.asarray(weights) != 0
        self.U = np.zeros((self.order, 0)) if U is None else np.asarray(U, dtype=float)[:, live]
        self.weights = np.zeros(0) if weights is None else np.asarray(weights, dtype=float)[live]
        self._seen = np.zeros(self.order + self.weights.size)
        """Error of an earlier factorisation, as an estimate for the next."""

    @cached_property
    def fills(self) -> bool:
        """Whether full fill-in is expected: all nodes are within a few edges of each other."""
        steps = dijkstra(abs(self.S), directed=False, unweighted=True, indices=0)
        return float(np.max(steps, where=np.isfinite(steps), initial=0.0)) <= MAX_FILLED_DISTANCE

    @cached_property
    def as_dense(self) -> bool:
        """Whether the factor of a pencil is stored as a dense one; other forms use `DenseForm`."""
        small = not self.plain and self.plan is None and self.order <= MAX_DENSE_ORDER
        return small and not self.weights.size and self.fills

    @cached_property
    def seconds(self) -> float:
        """Extrapolated from subgraphs around the node of highest degree, doubled in each trial."""
        if self.plan is not None:
            return self.plan.seconds
        if self.as_dense:
            return dense_seconds(self.order)
        pattern = abs(self.S) + abs(self.unit)
        degree = np.diff(sp.csr_array(pattern).indptr)
        near = breadth_first_order(
            pattern, int(np.argmax(degree)), directed=False, return_predecessors=False
        )
        shifted = sp.csr_array(pattern + sp.diags_array(2.0 * pattern.sum(axis=1)))
        size, taken, growth = TRIAL, 0.0, TRIAL_GROWTH**3.0  # with full fill-in, the time is cubic
        while size < near.size and (
            taken == 0 or growth * taken < min(MAX_TRIAL_SECONDS, clock.left())
        ):
            if taken * growth ** np.log2(TRIAL_GROWTH * self.order / size) > PATIENCE:
                break  # beyond most time limits a rough estimate suffices
            part, last = shifted[near[:size]][:, near[:size]], taken
            taken = _seconds_of(splu(sp.csc_array(part), **SYMMETRIC))
            growth = max(growth, taken / last if last > 0 else 0.0)
            size *= TRIAL_GROWTH
        if taken == 0:  # too few nodes for a trial
            return self.order**3 / DENSE_RATE if self.fills else 0.1
        return taken * growth ** np.log2(TRIAL_GROWTH * self.order / size)

    @cached_property
    def plan(self) -> Elimination | None:
        """The multifrontal elimination plan of a pencil with many points."""
        if self.plain or self.order < MIN_FRONT_POINTS:
            return None
        pattern = self._bordered(abs(self.S) + abs(self.unit), 1.0)
        return elimination(pattern, self.weights.size)

    def next_to(self, t: float, solve: Solve) -> tuple[float, Array | None]:
        """The Rayleigh quotient of the pencil; the vector is returned only if P = I."""
        v = inverse_lanczos(self.order, solve, None if self.plain else self.unit)
        along = self.U.T @ v
        value = float(v @ (self.S @ v) + self.weights @ (along * along))
        return value / float(v @ (self.unit @ v)), v if self.plain else None

    def resolution(self, vector: Array, t: float) -> float:
        if not self.plain:  # the vector refers to other coordinates
            return 8 * DIAGONAL_FRACTION * abs(t)
        return 8 * DIAGONAL_FRACTION * float(np.square(vector) @ np.abs(self.S.diagonal() - t))

    def above(self, t: float) -> Factor:
        """LDLᵀ of the matrix with its diagonal reduced by more than the error of the factor.

        With Ã = L diag(d) Lᵀ for the pivots d of a computed LU, |A − Ã| ≤ |L||U − DLᵀ| + γ|L||U|.
        If its row sums are at most the reduction of the diagonal, A has no more negative
        eigenvalues than there are negative pivots. Otherwise the reduction is increased, once.
        Rows and columns are first scaled by powers of 2, which is exact.
        """
        if not np.isfinite(t):
            return Factor(False)
        clock.check()
        scaled, power = self._scaled(t)
        scale = sp.diags_array(power)
        # The rounding of the entries, mainly of S − tP.
        parts = self._bordered(abs(self.S) + abs(t) * abs(self.unit), 1.0)
        made = 8 * UNIT * np.asarray(abs(scale @ parts @ scale).sum(axis=1)).ravel()
        lost = np.maximum(DIAGONAL_FRACTION, ERROR_SAFETY * self._seen)
        if self.as_dense:  # its error bound is known in advance
            lost = np.maximum(lost, 2 * _dense_error(scaled.diagonal()))
        for _ in range(2):
            factor = self._factorised(scaled - sp.diags_array(lost + made))
            if factor is None:
                return Factor(False)
            error = factor.error()
            if np.all(error <= lost):
                break
            lost = 4 * error
        else:
            return Factor(False)
        return self._solved(factor, power)

    def tried(self, t: float) -> Factor:
        """The factor of `above` without error bounds: definiteness is probable, not proved."""
        clock.check()
        scaled, power = self._scaled(t)
        factor = self._factorised(scaled)
        return Factor(False) if factor is None else self._solved(factor, power)

    def _factorised(self, A: Any) -> _Factor | None:
        """A factor of the bordered matrix, or None."""
        if self.plan is None:
            return _by_dense(A) if self.as_dense else _by_pivots(A)
        fronts = Fronts(self.plan, A)
        if not fronts.usable:
            return None
        found = _by_fronts(fronts)
        self._seen = found.error()
        return found

    def _scaled(self, t: float) -> tuple[Any, Array]:
        """The bordered G − tP with rows and columns scaled by powers of 2, and these powers."""
        bordered = self._bordered(sp.csr_array(self.S - t * self.unit), -1.0)
        size = np.abs(bordered.diagonal())
        size = np.where(size > 0, size, np.max(size, initial=1.0))
        power = np.exp2(-np.round(0.5 * np.log2(size)))
        scale = sp.diags_array(power)
        return sp.csc_array(scale @ bordered @ scale), power

    def _solved(self, factor: _Factor, power: Array) -> Factor:
        """Definiteness by the signs of the pivots, and the solve function."""
        if factor.below > np.sum(self.weights > 0):
            return Factor(False)
        n = self.order

        def solve(b: Array) -> Array:
            columns = b[:, None] if b.ndim == 1 else b
            padded = np.zeros((power.size, columns.shape[1]))
            padded[:n] = columns
            found: Array = (power[:, None] * factor.solve(power[:, None] * padded))[:n]
            return found.reshape(b.shape)

        return Factor(True, solve)

    def _bordered(self, A: Any, sign: float) -> Any:
        """[A, U; Uᵀ, ±1/ω], with absolute values of all entries for the upper sign."""
        if not self.weights.size:
            return sp.csr_array(A)
        U, ends = sp.csr_array(self.U), -1.0 / self.weights
        if sign > 0:
            U, ends = abs(U), np.abs(ends)
        return sp.csr_array(sp.block_array([[A, U], [U.T, sp.diags_array(ends)]]))


@dataclass(frozen=True)
class _Factor:
    """A factorisation of a symmetric matrix A as C diag(σ) Cᵀ with signs σ."""

    below: int
    """Number of pivots that are not positive."""
    solve: Solve
    error: Callable[[], Array]
    """Bound on the row sums of |A − C diag(σ) Cᵀ|, in the order of A."""


def _by_pivots(A: Any) -> _Factor | None:
    """LU by SuperLU with a symmetric permutation, read as LDLᵀ."""
    try:
        lu = splu(sp.csc_array(A), **SYMMETRIC)
    except (RuntimeError, MemoryError):  # exactly singular, or too large
        return None
    pivots = lu.U.diagonal()
    if not (np.array_equal(lu.perm_r, lu.perm_c) and np.all(np.isfinite(pivots))):
        return None

    def error() -> Array:
        L, U = sp.csr_array(lu.L), sp.csr_array(lu.U)
        lopsided = np.asarray(abs(U - sp.diags_array(pivots) @ L.T).sum(axis=1)).ravel()
        whole = np.asarray(abs(U).sum(axis=1)).ravel()
        terms = 2 * (np.diff(L.indptr) + 4) * UNIT
        sizes = abs(L)
        return _finite(sizes @ lopsided + terms * (sizes @ whole))[lu.perm_r]

    return _Factor(int(np.sum(pivots <= 0)), lu.solve, error)


def _by_dense(A: Any) -> _Factor | None:
    """Cholesky factor of a sparse matrix stored as a dense one, None if it is not definite."""
    with blas_threads_for(A.shape[0] ** 2):
        solve = cpu.cholesky(A.toarray())
    return None if solve is None else _Factor(0, solve, lambda: _dense_error(A.diagonal()))


def _dense_error(diagonal: Array) -> Array:
    """Bound on the row sums of |A − LLᵀ|: |A − LLᵀ|_ij ≤ φ √(a_ii a_jj), φ ≤ 2(n + 2)u.

    Higham, Theorem 10.3, as in `DenseForm.above`.
    """
    roots = np.sqrt(np.maximum(diagonal, 0.0))
    return 2 * (diagonal.size + 2) * UNIT * roots * float(np.sum(roots))


def _by_fronts(fronts: Fronts) -> _Factor:
    """A multifrontal factorisation, with the error bound γ|C||C|ᵀ1.

    Each term is rounded once, and at each addition after it: within its row, at the end of a
    block, and when added to a front and to its parent, at most once each.
    """
    terms = 4 * (fronts.plan.terms + 4) * UNIT
    return _Factor(fronts.negative, fronts.solve, lambda: _finite(terms * fronts.sizes()))


def _finite(error: Array) -> Array:
    return np.where(np.isfinite(error), error, np.inf)


def gershgorin(matrix: Any) -> float:
    """min over rows of a_ii − Σ|a_ij|, minus its rounding error: exact for a Laplacian."""
    diagonal = matrix.diagonal()
    others = np.asarray(abs(matrix).sum(axis=1)).ravel() - np.abs(diagonal)
    longest = float(np.max(np.diff(sp.csr_array(matrix).indptr), initial=1))
    rounding = (longest + 2) * UNIT * (np.abs(diagonal) + others)
    return float(np.min(diagonal - others - rounding))
