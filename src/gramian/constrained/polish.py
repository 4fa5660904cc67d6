"""Polish a factor until its constraints hold, by Newton steps of minimum norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, lsqr

from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.linalg.tolerances import ROUNDING
from gramian.maps.rows import MAX_NUMBERS

MAX_NEWTON_STEPS, MAX_STEP_PRODUCTS = 4, 120
"""Maximum number of Newton steps, and of products per step."""

STEP_RESIDUAL_PER_GOAL = 0.3
"""Tolerance of the residual of a step, relative to the goal, if that is above rounding."""

MIN_ROW_RATIO = 1e-6
"""Smallest squared row norm of a derivative that is used, relative to the largest."""

MAX_VIOLATION_RATIO = 0.5
"""Ratio by which a step must reduce the violation."""

MAX_DIRECT_ROWS, MAX_FALLBACK_ROWS = 300, 1500
"""Rows up to which a step is solved directly, and rows up to which it is solved directly if the
iterative solution failed."""

MIN_DENSE_FRACTION = 0.02
"""Density of a derivative from which it is stored as a dense matrix of at most `MAX_NUMBERS`."""


def polished(model: Model, factor: Array, *, goal: float) -> Array:
    """L + D with 2𝒜(sym(LDᵀ)) = −(violation of the bounds by 𝒜(LLᵀ)), repeated until `goal`.

    Returns the best factor, which is the given one if no step helps or the time is up.
    """
    bounds, norms = model.bounds, model.norms
    best, L = factor, factor
    least = bounds.violation(bounds.map.bilinear(L, L))
    taken = 0.0
    for _ in range(MAX_NEWTON_STEPS):
        off = bounds.off(bounds.map.bilinear(L, L))
        if least <= goal or not np.any(off) or clock.left() <= taken:
            break
        started = clock.now()
        moved = L - _least_change(
            model,
            L,
            off / norms,
            accuracy=max(ROUNDING, STEP_RESIDUAL_PER_GOAL * goal / least),
        )
        violation = bounds.violation(bounds.map.bilinear(moved, moved))
        if not violation < MAX_VIOLATION_RATIO * least and _direct(model):
            moved = L - _direct_change(model, L, off / norms)
            violation = bounds.violation(bounds.map.bilinear(moved, moved))
        L, taken = moved, clock.elapsed(started)
        if not violation < MAX_VIOLATION_RATIO * least:
            return L if violation < least else best
        best, least = L, violation
    return best


def _least_change(model: Model, L: Array, off: Array, *, accuracy: float) -> Array:
    """The smallest D that changes 𝒜(LLᵀ), rows scaled to 1, by `off` where that is not 0."""
    if off.size <= MAX_DIRECT_ROWS and _direct(model):
        return _direct_change(model, L, off)
    bilinear, adjoint = model.bounds.map.fixed(L)
    sizes = _row_sizes(model, L)
    live, off = (off != 0) / model.norms / sizes, off / sizes
    null = None if model.face is None else model.face[0]

    def kept(D: Array) -> Array:
        return D if null is None else D - null @ (null.T @ D)

    system = LinearOperator(
        (off.size, L.size),
        matvec=lambda d: 2 * live * bilinear(kept(np.reshape(d, L.shape))),
        rmatvec=lambda w: 2 * kept(adjoint(live * w)).ravel(),
        dtype=float,
    )
    found = lsqr(system, off, atol=1e-12, btol=accuracy, iter_lim=MAX_STEP_PRODUCTS)[0]
    return found.reshape(L.shape)


def _direct(model: Model) -> bool:
    """Whether a step can be solved directly."""
    return model.rows is not None and model.bounds.size <= MAX_FALLBACK_ROWS and model.face is None


def _row_sizes(model: Model, L: Array) -> Array:
    """‖A_kL‖ with ‖A_k‖ = 1, by which row k of the derivative is divided to speed up lsqr.

    Exact if no row of A_k has two entries; 1 if the matrices are unknown.
    """
    if model.rows is None:
        return np.ones(model.bounds.size)
    own = np.einsum("ij,ij->i", L, L)
    j = model.rows.places % model.order
    squares = model.rows.matrix.multiply(model.rows.matrix) @ own[j] / model.norms**2
    return np.sqrt(np.maximum(squares, MIN_ROW_RATIO * np.max(squares, initial=0.0)) + 1e-300)


def _direct_change(model: Model, L: Array, off: Array) -> Array:
    """D = JᵀJJ⁺off, J the derivative 2𝒜(sym(L·)) with its rows scaled to 1."""
    assert model.rows is not None
    kept = np.flatnonzero(off)
    J = _derivative(model, L, kept)
    normal = J @ J.T if isinstance(J, np.ndarray) else (J @ J.T).toarray()
    scale = float(np.max(np.diagonal(normal), initial=0.0))
    if scale == 0:
        return np.zeros_like(L)
    values, vectors = np.linalg.eigh(normal)
    live_values = values > 4 * np.finfo(float).eps * kept.size * scale
    inverse = np.where(live_values, 1.0 / np.where(live_values, values, 1.0), 0.0)
    w = vectors @ (inverse * (vectors.T @ off[kept]))
    return (J.T @ w).reshape(L.shape)


def _derivative(model: Model, L: Array, kept: Any) -> Any:
    """The rows `kept` of J, dense if the matrices of the rows are dense."""
    assert model.rows is not None
    (n, r), rows = L.shape, model.rows
    matrix = rows.matrix[kept]
    if (
        matrix.nnz > MIN_DENSE_FRACTION * kept.size * n * n
        and kept.size * n * max(n, r) <= MAX_NUMBERS
    ):
        full = np.zeros((kept.size, n * n))
        full[:, rows.places] = matrix.toarray() * (2 / model.norms[kept, None])
        return (full.reshape(kept.size * n, n) @ L).reshape(kept.size, n * r)
    entries = sp.coo_array(matrix)
    k, (i, j) = entries.coords[0], np.divmod(rows.places[entries.coords[1]], n)
    weight = 2 * entries.data / model.norms[kept][k]
    columns = (i[:, None] * r + np.arange(r)).ravel()
    values = (weight[:, None] * L[j]).ravel()
    J = sp.csr_array((values, (np.repeat(k, r), columns)), shape=(kept.size, n * r))
    full = (
        J.nnz > MIN_DENSE_FRACTION * J.shape[0] * J.shape[1]
        and J.shape[0] * J.shape[1] <= MAX_NUMBERS
    )
    return J.toarray() if full else J
