"""A problem with constraints for the constrained methods: scales, blocks, and dual slacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr

from gramian.common.types import Array
from gramian.constrained.corner import Corner, corner_of
from gramian.domains import PSDCone
from gramian.linalg.tolerances import ZERO
from gramian.linear_constraints import Constraint, Constraints
from gramian.losses import Augmented, Squared
from gramian.maps import Rows, inner_products, rows_of
from gramian.maps.matrices import squares_of
from gramian.objectives import Composite, Linear, LowRankPlusIdentity, Objective, Sum
from gramian.objectives.base import SymmetricOperator
from gramian.objectives.curvature import LSQR
from gramian.objectives.matrices import FULL, MatrixSum, SparsePlusLowRank, size_of
from gramian.objectives.parts import adjoint_parts, parts_of
from gramian.objectives.total import together
from gramian.problem import Problem
from gramian.reductions.theta_border import ThetaBorder, theta_border

Indices = NDArray[np.intp]

MAX_BLOCKS = 200
"""Maximum number of blocks of more than one row that are treated separately."""

DIRECT_PRODUCTS = 5e8
"""Multiplications up to which dense least squares are solved directly."""

DENSE_ORDER = 2000
"""Order up to which a dense matrix and its eigenvalues are affordable in each iteration."""


@dataclass(frozen=True, eq=False)
class Model:
    """min F(M) subject to l ≤ 𝒜(M) ≤ u and M ⪰ 0."""

    problem: Problem

    @classmethod
    def of(cls, problem: Problem) -> Model:
        """The model of a problem; a fixed trace becomes a constraint."""
        trace, n = problem.domain.trace, problem.order
        if trace is None:
            return cls(problem)
        identity = sp.csr_array(sp.eye_array(n).reshape(1, n * n))
        fixed = Constraint.equal(inner_products(identity, n), trace)
        return cls(replace(problem, domain=PSDCone(), constraints=(*problem.constraints, fixed)))

    @property
    def objective(self) -> Objective:
        return self.problem.objective

    @property
    def order(self) -> int:
        return self.problem.order

    @cached_property
    def bounds(self) -> Constraints:
        return self.problem.bounds

    @cached_property
    def linear(self) -> Any:
        """C if F(M) = ⟨C, M⟩ + constant, None otherwise."""
        return self.objective.C if isinstance(self.objective, Linear) else None

    @cached_property
    def rows(self) -> Rows | None:
        """The matrices A_k of 𝒜; None if they are too large."""
        return rows_of(self.bounds.map)

    @cached_property
    def norms(self) -> Array:
        """‖A_k‖ for every row of 𝒜, 1 if it is 0 or unknown."""
        if self.rows is None:
            return np.ones(self.bounds.size)
        sizes = np.sqrt(np.asarray(self.rows.matrix.multiply(self.rows.matrix).sum(axis=1)).ravel())
        return np.where(sizes > 0, sizes, 1.0)

    @cached_property
    def scales(self) -> Array:
        """‖A_k‖, times the unit of the row relative to the median unit."""
        unit = self.bounds.unit
        return self.norms * unit / float(np.median(unit)) if unit.size else self.norms

    @cached_property
    def right(self) -> float:
        """‖b‖ with every row of 𝒜 scaled to 1: the scale of M."""
        nearest = np.clip(0.0, self.bounds.lower, self.bounds.upper) / self.norms
        return float(np.linalg.norm(nearest)) or 1.0

    def sizes_in(self, d: Array) -> tuple[Array, float]:
        """‖DA_kD‖ for every row, and ‖b‖ with the rows scaled to 1 by it."""
        assert self.rows is not None
        i, j = np.divmod(self.rows.places, self.order)
        weights = (d[i] * d[j]).ravel() ** 2
        squares = self.rows.matrix.multiply(self.rows.matrix) @ weights
        norms = np.where(squares > 0, np.sqrt(squares), 1.0)
        nearest = np.clip(0.0, self.bounds.lower, self.bounds.upper) / norms
        return norms, float(np.linalg.norm(nearest)) or 1.0

    @cached_property
    def left(self) -> float:
        """‖C‖, or the approximate size of the gradient at 0."""
        if self.linear is not None:
            return size_of(self.linear) or 1.0
        zero = self.objective.image(np.zeros((self.order, 0)))
        probe = np.random.default_rng(0).standard_normal((self.order, 1))
        return float(np.linalg.norm(self.objective.gradient(zero) @ probe)) or 1.0

    @cached_property
    def homogeneous(self) -> Model:
        """The model with 0 for every finite bound, which a ray must satisfy."""
        lower = np.where(np.isfinite(self.bounds.lower), 0.0, -np.inf)
        upper = np.where(np.isfinite(self.bounds.upper), 0.0, np.inf)
        still = Constraint(self.bounds.map, lower, upper)
        return Model(replace(self.problem, constraints=(still,)))

    def augmented(self, y: Array, penalty: Array, margin: float) -> Objective:
        """F(M) − ε tr M plus the terms of multipliers and penalties."""
        loss = Augmented(self.bounds.lower, self.bounds.upper, y, penalty)
        n = self.order
        if self.linear is not None:
            C = self.linear
            if margin > 0:
                C = MatrixSum(C, LowRankPlusIdentity(n, -margin))
            return Composite(self.bounds.map, loss, C, constant=self.objective.constant)
        return Sum([self.objective, Composite(self.bounds.map, loss, -margin)])

    def slack(self, image: Any, y: Array) -> SymmetricOperator:
        """∇F(M) − 𝒜*(y), which must be positive semidefinite."""
        if self.linear is not None:
            return self.adjoint(-y, self.linear)
        return together([self.objective.gradient(image), self.adjoint(-y)])

    def adjoint(self, y: Array, C: Any = None) -> SymmetricOperator:
        """𝒜*(y) + C."""
        plain = Composite(self.bounds.map, Squared(np.zeros(self.bounds.size)), C)
        return plain.dual_operator(y)

    def dual_value(self, image: Any, y: Array) -> float:
        """The minimum of F(M) over 𝒜(M) within its bounds, if the slack at y is PSD.

        F(N) ≥ F(M) + ⟨∇F(M), N − M⟩ and y·𝒜(N) ≥ y⁺·l − y⁻·u. A bound on rounding errors is
        subtracted.
        """
        base = self.objective.constant
        if self.linear is None:
            L = image.factor
            along = float(np.sum(L * (self.objective.gradient(image) @ L)))
            base = self.objective.value(image) - along - self.objective.rounding(image)
        return self.with_reach(base, y)

    def with_reach(self, base: float, y: Array) -> float:
        """`base` plus the least y·𝒜(M) within the bounds, minus a bound on rounding errors."""
        reach = self.bounds.reach(y)
        ends = np.where(y > 0, self.bounds.lower, self.bounds.upper)
        terms = float(np.sum(np.abs(y * np.where(y == 0, 0.0, ends))))
        return base + reach - 16 * float(np.finfo(float).eps) * (terms + abs(base))

    @cached_property
    def blocks(self) -> list[Indices]:
        """Sets of rows of M that no matrix of the problem connects, the largest first.

        M may be 0 between them. One set if the structure is unknown.
        """
        everything = [np.arange(self.order)]
        if self.linear is None:
            return everything
        y = np.random.default_rng(0).standard_normal(self.bounds.size)
        adjoint, C = adjoint_parts(self.bounds.map, y), parts_of(self.linear)
        if adjoint is None or C is None:
            dense = self.order <= DENSE_ORDER
            pattern = sp.csr_array(self.slack(None, y).dense() != 0) if dense else None
        else:
            pattern = _pattern(adjoint + C)
        if pattern is None:
            return everything
        count, label = connected_components(pattern, directed=False)
        order = np.argsort(label, kind="stable")
        sets = np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
        sets.sort(key=len, reverse=True)
        joined = sum(len(rows) > 1 for rows in sets)
        return everything if joined > MAX_BLOCKS else sets

    def side_by_side(self, blocks: Sequence[Indices], factors: Sequence[Array]) -> Array:
        """Matrices side by side, each in the rows of its block and 0 elsewhere."""
        columns = []
        for rows, factor in zip(blocks, factors, strict=True):
            columns.append(np.zeros((self.order, factor.shape[1])))
            columns[-1][rows] = factor
        return np.ascontiguousarray(np.hstack(columns))

    @cached_property
    def face(self) -> tuple[Array, Array] | None:
        """Q with orthonormal columns in the null space of every feasible M, and u.

        A row vvᵀ with the value 0 implies Mv = 0: then no feasible M is definite, and multipliers
        diverge. 𝒜*(u) is a sum of those vvᵀ, and u does not change the dual value.
        """
        vectors, u = [], np.zeros(self.bounds.size)
        first = 0
        for constraint in self.problem.constraints:
            zero = (constraint.lowest == 0) & (constraint.highest == 0)
            for row, vector, sign in squares_of(constraint.map):
                if zero[row]:
                    vectors.append(vector)
                    u[first + row] = sign / float(vector @ vector)
            first += constraint.map.size
        if not vectors:
            return None
        return np.linalg.qr(np.column_stack(vectors))[0], u

    @cached_property
    def corner(self) -> Corner | None:
        """The fixed corner of M, if the constraints consist of nothing else."""
        return corner_of(self.objective, self.bounds)

    @cached_property
    def bordered(self) -> ThetaBorder | None:
        """The form with a trace, if the problem is a theta number with a border."""
        if self.linear is None or self.rows is None:
            return None
        return theta_border(self.linear, self.rows, self.bounds)

    @cached_property
    def single(self) -> Indices:
        """Rows that are blocks of their own: entries of M that only have to be at least 0."""
        alone = [rows[0] for rows in self.blocks if len(rows) == 1]
        return np.asarray(sorted(alone), dtype=np.intp)


def independent(matrix: sp.csr_array) -> bool:
    """Whether unit rows are independent by their Gram matrix; False if the test is expensive."""
    entries = float(matrix.shape[0]) * matrix.shape[1]
    if matrix.nnz <= FULL * entries or entries * matrix.shape[0] > DIRECT_PRODUCTS:
        return False
    dense = matrix.toarray()
    return bool(np.linalg.eigvalsh(dense @ dense.T)[0] > ZERO)


def least_squares(matrix: sp.csr_array, b: Array) -> Array:
    """x that minimises ‖matrix x − b‖, directly if the matrix is dense with few rows."""
    entries = float(matrix.shape[0]) * matrix.shape[1]
    x: Array
    if matrix.nnz > FULL * entries and entries * min(matrix.shape) <= DIRECT_PRODUCTS:
        x = scipy.linalg.lstsq(matrix.toarray(), b, cond=1e-12, lapack_driver="gelsy")[0]
    else:
        x = lsqr(matrix, b, atol=1e-15, btol=1e-15, iter_lim=LSQR)[0]
    return x


def _pattern(parts: SparsePlusLowRank) -> sp.csr_array:
    """The pattern of the sparse part, and of the columns of the low-rank part."""
    joined = [abs(parts.sparse)] if parts.sparse is not None else []
    if parts.factor is not None:
        for column in parts.factor.T:
            rows = np.flatnonzero(column)
            chain = (np.ones(rows.size - 1), (rows[:-1], rows[1:]))
            joined.append(sp.coo_array(chain, shape=(parts.order,) * 2))
    empty = sp.csr_array((parts.order, parts.order))
    return sp.csr_array(sum(joined, empty))
