"""Matrix completion from some entries: BiS §IV-B, with weights and offsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_size, real_numbers, refuse_masked
from gramian.common.parameters import positive
from gramian.common.types import Array, Indices
from gramian.domains import Spectrahedron
from gramian.losses import (
    FilledSoftMin,
    Signed,
    SmoothedHinge,
    Squared,
    SquaredWithOffsets,
    WithThresholds,
)
from gramian.losses.base import Loss
from gramian.maps import Entries, Mix
from gramian.maps.base import check_order, index_columns, refuse_rows
from gramian.objectives import BlockSquares, Composite, Everywhere, Featured, Prior
from gramian.problem import Problem
from gramian.reductions.block_embedding import BlockEmbedding


@under_own_errstate
def nuclear_completion(
    rows: ArrayLike,
    cols: ArrayLike,
    values: ArrayLike,
    shape: tuple[int, int],
    lam: float,
    *,
    row_scale: Array | float = 1.0,
    col_scale: Array | float = 1.0,
    ridge: float | None = None,
    weights: ArrayLike | None = None,
    centre: float = 0.0,
    row_features: ArrayLike | None = None,
    col_features: ArrayLike | None = None,
) -> Problem:
    """min ½ Σ_e ω_e (U_e + b_i + c_j − R_e)² + λ ‖A^½ U B^½‖_* + κ/2 (‖b‖² + ‖c‖²), BiS eq. (32).

    Uses the block embedding (BiS eq. 33, `gramian.reductions.block_embedding`): M ⪰ 0 of order
    m + n has the factor [P; Q] and U = A^{-½}PQᵀB^{-½}, so F is a loss of some entries of M plus
    λ/2 tr M. Entries may be in any order; dual vectors are sorted by rows.

    Parameters
    ----------
    row_scale, col_scale : positive numbers, or one for each row and column
        The diagonals of A and B of the weighted trace norm.
    ridge : float, optional
        κ of the offsets b and c; None means no offsets.
    weights : positive numbers, one for each entry, optional
        ω, default 1.
    centre : float
        R is `values` minus this number. With a ridge, R is not stored: no array with one element
        per entry is made besides sorted values and indices of their final types.
    row_features, col_features : arrays of shape (m, d) and (n, e), optional
        X and Y. Then U = (V + XF)(W + YG)ᵀ, and the norm becomes
        λ/2 (‖A^½V‖² + ‖F‖² + ‖B^½W‖² + ‖G‖²), the nuclear norm of an operator on rows and features
        together, which is also convex. Requires a ridge.
    """
    (m, n), i, j = _entries(rows, cols, shape)
    R = _one_each(values, i.size, "values")
    omega = None if weights is None else _weights(weights, i.size)
    i, j, R, omega = _by_rows(i, j, R, omega)
    block = _block(row_scale, col_scale, (m, n))
    map = block.map(i, j)
    if ridge is None:
        share, scale = 1.0 if omega is None else omega, block.units(i, j)
        loss: Loss = Squared((R - centre) / scale, weight=0.5 * share * scale * scale)
    else:
        loss = SquaredWithOffsets(
            R, map.rows, map.cols, map.shape, ridge=positive(ridge, "ridge"), scale=block.sides,
            weight=omega, centre=centre,
        )  # fmt: skip
    objective = Composite(map, loss, 0.5 * positive(lam, "lam"))
    if row_features is not None or col_features is not None:
        if ridge is None:
            raise ValueError("features need offsets: pass a ridge")
        rows_of = _prior(row_features, i, block.row_scale, "row_features")
        objective = Featured(
            objective, rows_of, _prior(col_features, j, block.col_scale, "col_features")
        )
    return Problem(
        objective,
        name="nuclear_completion",
        formula="½ Σ (U_ij + b_i + c_j − R_ij)² + λ ‖A^½UB^½‖_*",
        variable="[P U; Uᵀ Q]",
    )


@under_own_errstate
def implicit_completion(
    rows: ArrayLike,
    cols: ArrayLike,
    confidence: ArrayLike,
    shape: tuple[int, int],
    lam: float,
    *,
    unknown: float = 1.0,
    row_scale: Array | float = 1.0,
    col_scale: Array | float = 1.0,
) -> Problem:
    """min ½ Σ_ij ω_ij (U_ij − t_ij)² + λ ‖A^½ U B^½‖_* over all entries, Hu et al. (2008) eq. (3).

    t_ij is 1 with weight ω_e for the given entries, and 0 with a common weight for all others. The
    factor [P; Q] and the scales are those of `nuclear_completion`. The sum over all entries is
    computed from low-rank products. Each entry is given once, in any order.

    Parameters
    ----------
    confidence : numbers above `unknown`, one for each entry
        ω_e.
    unknown : float
        The weight of all other entries.
    """
    (m, n), i, j = _entries(rows, cols, shape)
    omega, rest = _one_each(confidence, i.size, "confidence"), positive(unknown, "unknown")
    refuse_rows(omega, omega <= rest, "confidence", f"is not above that of all others, {rest:g}")
    i, j, omega = _by_rows(i, j, omega)
    block = _block(row_scale, col_scale, (m, n))
    map, units, root = block.map(i, j), block.units(i, j), np.sqrt(omega - rest)
    targets = omega / root
    loss = Squared(targets / (root * units), weight=0.5 * (root * units) ** 2)
    constant = 0.5 * float(np.sum(omega) - targets @ targets)
    some = Composite(map, loss, 0.5 * positive(lam, "lam"), constant=constant)
    return Problem(
        Everywhere(some, BlockSquares(rest, block.row_scale, block.col_scale), root, targets),
        name="implicit_completion",
        formula="½ Σ ω_ij (U_ij − t_ij)² + λ ‖A^½UB^½‖_*",
        variable="[P U; Uᵀ Q]",
    )


def trace_weighted(problem: Problem, lam: float) -> Problem:
    """The same completion with another λ; everything independent of λ is shared."""
    objective = problem.objective
    if not isinstance(objective, Composite):
        own: Any = objective
        return replace(problem, objective=own.trace_weighted(positive(lam, "lam")))
    C = 0.5 * positive(lam, "lam")
    return replace(problem, objective=objective.with_linear(C))


@under_own_errstate
def mmmf(
    rows: ArrayLike,
    cols: ArrayLike,
    signs: ArrayLike,
    shape: tuple[int, int],
    lam: float,
    *,
    margin: Array | float = 1.0,
    mu: float = 0.1,
    row_scale: Array | float = 1.0,
    col_scale: Array | float = 1.0,
    weights: ArrayLike | None = None,
    repeat: int = 1,
    groups: ArrayLike | None = None,
    ridge: float = 1.0,
) -> Problem:
    """min Σ_e ω_e h_μ(m_e − Y_e X_e) + λ ‖A^½XB^½‖_*, h_μ the smoothed hinge: DML-eig eq. (27).

    The printed γ Tr(M) is 2γ times the nuclear norm; here λ multiplies the norm. An entry may occur
    several times, with different signs and margins, in any order. With `repeat` every entry of
    `rows` and `cols` has that many signs in succession, and its product is computed once. With
    `groups`, integers from 0, X_e is replaced by X_e − δ_k, where k is the group of e and δ is free
    with the penalty κ/2 ‖δ‖², κ the `ridge`: thresholds between levels, learned with X.
    """
    (m, n), i, j = _entries(rows, cols, shape)
    count = i.size * repeat
    if np.ndim(margin):
        margin = _one_each(margin, count, "margin")
    omega = 1.0 if weights is None else _weights(weights, count)
    k = None if groups is None else _indices(groups, count, "groups")
    if k is not None and k.size != count:
        raise ValueError(f"groups must have one number for each of {count} signs, got {k.size}")
    given = _signs(signs, count), margin, omega, k
    i, j, *several = _by_rows(i, j, *(_in_lines(each, repeat) for each in given))
    y, margin, omega, k = (each.ravel() if np.ndim(each) else each for each in several)
    block = _block(row_scale, col_scale, (m, n))
    map, scale = block.map(i, j, repeat), np.repeat(block.units(i, j), repeat)
    loss: Loss = Signed(SmoothedHinge(margin, mu=mu, weight=omega), y * scale)
    if k is not None:
        kappa = positive(ridge, "ridge")
        loss = WithThresholds(loss, k, int(k.max()) + 1, scale, ridge=kappa)
    return Problem(
        Composite(map, loss, 0.5 * positive(lam, "lam")),
        name="mmmf",
        formula="Σ h_μ(m − Y_ij X_ij) + λ ‖A^½XB^½‖_*",
        variable="[P X; Xᵀ Q]",
    )


@under_own_errstate
def mmmf_eig(
    rows: ArrayLike,
    cols: ArrayLike,
    signs: ArrayLike,
    shape: tuple[int, int],
    gamma: float,
    mu: float,
) -> Problem:
    """min μ ln Σ_S exp(−(ξ_e + Y_e M_e)/μ) with γ tr M + 1ᵀξ = 1: DML-eig Theorem 8 and eq. (28).

    The slack is minimised out exactly for every M, so one number represents it: the variable has
    order m + n + 1 and its last diagonal entry is 1ᵀξ/γ, which makes the domain tr = 1/γ. The
    optimum t of the max–min problem is 1/F for the smallest F of γ tr M + Σ max(0, 1 − Y_e X_e).
    """
    (m, n), i, j = _entries(rows, cols, shape)
    gamma = positive(gamma, "gamma")
    y = _signs(signs, i.size)
    last = m + n
    pairs = np.vstack([np.column_stack([i, m + j]), [[last, last]]])
    map = Mix(Entries(pairs, last + 1), sp.diags_array(np.append(y, 1.0), format="csr"))
    return Problem(
        Composite(map, FilledSoftMin(mu=mu, rate=gamma)),
        Spectrahedron(1.0 / gamma),
        name="mmmf_eig",
        formula="μ ln Σ exp(−(ξ_e + Y_e M_e)/μ)",
    )


def _prior(features: ArrayLike | None, index: Indices, scale: Array, name: str) -> Prior | None:
    """The prior of the factors of rows, or of columns, given their features."""
    if features is None:
        return None
    X = real_numbers(features, name)
    if X.ndim != 2 or X.shape[0] != scale.size or not np.all(np.isfinite(X)):
        raise ValueError(f"{name} must have {scale.size} rows of finite numbers, got {X.shape}")
    live = np.zeros(scale.size)
    live[index] = 1.0
    return Prior(X, live * scale)


def _entries(
    rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int]
) -> tuple[tuple[int, int], Indices, Indices]:
    """The shape, and validated rows and columns of entries within it."""
    if len(shape) != 2 or not all(isinstance(size, (int, np.integer)) for size in shape):
        raise ValueError(f"shape must be two integers, rows and columns, got {shape!r}")
    m, n = check_order(shape[0]), check_order(shape[1])
    i, j = _indices(rows, m, "rows"), _indices(cols, n, "cols")
    if i.size != j.size:
        raise ValueError(f"rows and cols must have equal lengths, got {i.size} and {j.size}")
    return (m, n), i, j


def _by_rows(i: Indices, *others: Any) -> tuple[Any, ...]:
    """Entries sorted by row, with the arrays that belong to them."""
    if np.all(i[1:] >= i[:-1]):
        return i, *others
    order = np.argsort(i, kind="stable")
    return i[order], *(each[order] if np.ndim(each) else each for each in others)


def _in_lines(each: Any, count: int) -> Any:
    """Reshape to one line of `count` numbers per entry."""
    return each.reshape(-1, count) if np.ndim(each) else each


def _indices(given: ArrayLike, size: int, name: str) -> Indices:
    refuse_masked(given, name)
    table = np.asarray(given)
    if table.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {table.shape}")
    return np.asarray(index_columns(table[:, None], size, 1, name)[0])


def _one_each(given: ArrayLike, count: int, name: str) -> Array:
    """One finite number for each entry; a shorter array would be broadcast silently."""
    numbers = real_numbers(given, name)
    if numbers.shape != (count,):
        raise ValueError(
            f"{name} must hold one number for each of {count} entries, got shape {numbers.shape}"
        )
    refuse_rows(numbers, ~np.isfinite(numbers), name, "is not finite")
    check_size(numbers, name)
    return numbers


def _weights(given: ArrayLike, count: int) -> Array:
    weights = _one_each(given, count, "weights")
    refuse_rows(weights, weights <= 0, "weights", "is not positive")
    return weights


def _signs(given: ArrayLike, count: int) -> Array:
    signs = _one_each(given, count, "signs")
    refuse_rows(signs, np.abs(signs) != 1, "signs", "is neither 1 nor -1")
    return signs


def _block(row_scale: Any, col_scale: Any, shape: tuple[int, int]) -> BlockEmbedding:
    m, n = shape
    return BlockEmbedding(_scale(row_scale, m, "row_scale"), _scale(col_scale, n, "col_scale"))


def _scale(value: Array | float, size: int, name: str) -> Array:
    scale = real_numbers(value, name)
    if scale.shape not in ((), (size,)):
        raise ValueError(f"{name} must be one number or {size} numbers, got shape {scale.shape}")
    scale = np.broadcast_to(scale, (size,))
    if not np.all(np.isfinite(scale) & (scale > 0)):
        raise ValueError(f"{name} must be positive and finite")
    return scale
