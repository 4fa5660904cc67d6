"""Scaling of a semidefinite program with features of different units: M = DM̂D, D diagonal.

⟨A_k, M⟩ = ⟨DA_kD, M̂⟩: the values of the rows, their bounds and the multipliers do not change. D
holds powers of 2, so that scaling is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.linear_constraints import Constraint
from gramian.maps import Rows, inner_products, rows_of
from gramian.maps.rows import MAX_NUMBERS
from gramian.objectives import Linear
from gramian.problem import Problem
from gramian.reductions.base import carried

MAX_ORDER = 200
"""Largest order that is scaled."""

MIN_RATIO_OF_UNITS = 64.0
"""Ratio of the largest to the smallest entry of D from which the program is scaled."""

TINY = 1e-8
"""Ratio of an entry a_ij to √(a_ii a_jj) up to which it is not used to determine units."""


@dataclass(frozen=True)
class FeatureScaling:
    """M = DM̂D, D = diag(d); d = None means the identity."""

    problem: Problem
    """The program for M̂."""
    d: Array | None = None

    def factor(self, Y: Array) -> Array:
        """DY."""
        return Y if self.d is None else np.ascontiguousarray(self.d[:, None] * Y)

    def coordinates(self, L: Array) -> Array:
        """D⁻¹L."""
        return L if self.d is None else np.ascontiguousarray(L / self.d[:, None])

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound: F, the rows and the multipliers have the same values."""
        return found if self.d is None else carried(found, L)


def feature_scaling(problem: Problem) -> FeatureScaling:
    """The program in units in which the entries of all features have about the same size.

    Returns the program itself if its features are already balanced, or if it is too large.
    """
    objective = problem.objective
    if not isinstance(objective, Linear) or problem.order > MAX_ORDER:
        return FeatureScaling(problem)
    rows = rows_of(problem.bounds.map)
    if rows is None or rows.matrix.shape[0] * float(problem.order) ** 2 > MAX_NUMBERS:
        return FeatureScaling(problem)
    C = objective.C.dense()
    d = _units(rows, C)
    if d is None:
        return FeatureScaling(problem)
    scaled = sp.csr_array(rows.whole() @ sp.diags_array(np.outer(d, d).ravel()))
    bounds = problem.bounds
    constraint = Constraint(
        inner_products(scaled, problem.order), bounds.lower, bounds.upper, bounds.unit
    )
    cost = Linear(C * np.outer(d, d), constant=objective.constant)
    return FeatureScaling(replace(problem, objective=cost, constraints=(constraint,)), d)


def _units(rows: Rows, C: Array) -> Array | None:
    """d that makes log |a_ij| + log d_i + log d_j as constant as possible in every matrix A.

    By least squares over all nonzero entries, after subtracting the mean of each matrix.
    """
    n = rows.order
    every = _without_tiny(sp.csr_array(sp.vstack([rows.whole(), C.reshape(1, n * n)])), n)
    lengths = np.diff(every.indptr)
    if not every.nnz:
        return None
    logs = np.log2(np.abs(every.data))
    owner = np.repeat(np.arange(lengths.size), lengths)
    means = np.bincount(owner, logs, lengths.size) / np.maximum(lengths, 1)
    counts = np.bincount(every.indices, minlength=n * n).reshape(n, n).astype(float)
    sums = np.bincount(every.indices, logs - means[owner], n * n).reshape(n, n)
    normal = counts + np.diag(counts.sum(axis=1))
    found = np.linalg.lstsq(normal, -sums.sum(axis=1), rcond=1e-10)[0]
    d = np.exp2(np.round(found - np.median(found)))
    return d if np.max(d) >= MIN_RATIO_OF_UNITS * np.min(d) else None


def _without_tiny(every: sp.csr_array, n: int) -> sp.csr_array:
    """The entries a_ij of the matrices except those far below √(a_ii a_jj), and zeros.

    They do not determine the units of i and j.
    """
    row, column = np.repeat(np.arange(every.shape[0]), np.diff(every.indptr)), every.indices
    i, j = np.divmod(column, n)
    diagonal = np.zeros((every.shape[0], n))
    diagonal[row[i == j], i[i == j]] = np.abs(every.data[i == j])
    size = np.sqrt(diagonal[row, i]) * np.sqrt(diagonal[row, j])
    kept = np.abs(every.data) > TINY * size
    found = sp.csr_array((every.data[kept], (row[kept], column[kept])), shape=every.shape)
    return found
