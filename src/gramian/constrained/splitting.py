"""The boundary point method: the augmented Lagrangian of the dual, by eigenvalue decompositions.

For F = ⟨C, M⟩ the dual is max of y⁺·l − y⁻·u over S = C − 𝒜*(y) ⪰ 0. With a penalty σ and M as its
multiplier (Povh, Rendl and Wiegele 2006; Wen, Goldfarb and Yin 2010):

    𝒜𝒜* y = 𝒜(C − S) + (b − 𝒜(M))/σ,      V = M + σ(𝒜*(y) − C),      M = V₊,   S = V₋/σ

Rows with two different bounds get an additional variable between them. M is dense, and its rank is
determined by the projection. The method is for moderate order and many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide, factor_of
from gramian.linalg.tolerances import ROUNDING
from gramian.methods.base import Settings
from gramian.methods.eigenbasis import MAX_RESIDUAL_RATIO, RELAXATION

FIRST_INTERVAL, INTERVAL_GROWTH = 20, 1.25
"""Iterations before the first computation of the residuals, and the growth of that interval."""

PENALTY_RATIO = 1.8
"""Factor by which σ changes if the ratio of the residuals exceeds `MAX_RESIDUAL_RATIO`."""

MAX_ITERATIONS = 20_000
"""Maximum number of iterations."""


def splitting(
    model: Model,
    factor: Array,
    y: Array,
    settings: Settings,
    guide: Guide,
    *,
    penalty: float = 1.0,
) -> Iterator[Candidate]:
    """Iterations of the boundary point method, with a point yielded at increasing intervals."""
    assert model.rows is not None and model.linear is not None
    n, bounds, norms = model.order, model.bounds, model.norms
    A = sp.csr_array(sp.diags_array(1.0 / norms) @ model.rows.whole())
    C = model.linear.dense().ravel() / model.left
    free = bounds.lower != bounds.upper
    lower, upper = (side / norms / model.right for side in (bounds.lower, bounds.upper))
    b = np.where(free, 0.0, lower)
    solve = _normal_equations(A, free)
    M = (factor @ factor.T).ravel() / model.right
    y = y * norms / model.left
    S, s = np.zeros(n * n), np.clip(A @ M, lower, upper)
    T, sigma, look, gap = np.zeros_like(s), penalty, FIRST_INTERVAL, FIRST_INTERVAL
    last: tuple[Array, Array] = (y, M)
    for iteration in range(1, MAX_ITERATIONS):
        clock.check()
        cost = C - (guide.margin / model.left) * np.eye(n).ravel() if guide.margin else C
        residual = b - A @ M + np.where(free, s, 0.0)
        y = solve(A @ (cost - S) + np.where(free, T, 0.0) + residual / sigma)
        V = M + sigma * (A.T @ y - cost)
        values, vectors, positive = _projected(V.reshape(n, n), model)
        S = (positive.ravel() - V) / sigma
        M = (1 - RELAXATION) * M + RELAXATION * positive.ravel()
        v = s - sigma * y
        inside = np.clip(v, lower, upper)
        T = (inside - v) / sigma
        s = (1 - RELAXATION) * s + RELAXATION * inside
        if iteration < look:
            continue
        primal = np.linalg.norm(A @ M - np.where(free, s, b)) / (1 + np.linalg.norm(b))
        dual = np.linalg.norm(cost - A.T @ y - S) / 2 + np.linalg.norm(np.where(free, y - T, 0.0))
        L = factor_of(values, vectors) * np.sqrt(model.right)
        multipliers = bounds.signed(y * model.left / norms)
        record = {"violation": float(primal), "penalty": sigma, "steps": float(iteration)}
        far = iteration > 10 * FIRST_INTERVAL
        change = (y - last[0]) * model.left / norms
        grown = factor_of(*_above_zero((M - last[1]).reshape(n, n))) if far else None
        yield Candidate(L, multipliers, record, grown, change if far else None)
        last = (y, M)
        if primal > MAX_RESIDUAL_RATIO * dual:
            sigma /= PENALTY_RATIO
        elif dual > MAX_RESIDUAL_RATIO * primal:
            sigma *= PENALTY_RATIO
        gap = int(INTERVAL_GROWTH * gap)
        look = iteration + gap


def _normal_equations(A: sp.csr_array, free: Array) -> Callable[[Array], Array]:
    """(𝒜𝒜* + the diagonal of the additional variables)⁻¹, with a ridge for dependent rows."""
    system = A @ A.T + sp.diags_array(np.where(free, 1.0, 0.0) + ROUNDING)
    return splu(sp.csc_array(system)).solve


def _projected(V: Array, model: Model) -> tuple[Array, Array, Array]:
    """Positive eigenvalues and eigenvectors of V, block by block, and V₊."""
    if len(model.blocks) == 1:
        values, vectors = _above_zero(V)
        return values, vectors, (vectors * values) @ vectors.T
    positive, diagonal = np.zeros_like(V), np.diagonal(V)[model.single]
    alone, kept = model.single[diagonal > 0], diagonal[diagonal > 0]
    positive[alone, alone] = kept
    blocks = [alone]
    parts: list[tuple[Array, Array]] = [(kept, np.eye(kept.size))]
    for rows in model.blocks:
        if len(rows) > 1:
            place = np.ix_(rows, rows)
            values, vectors = _above_zero(V[place])
            positive[place] = (vectors * values) @ vectors.T
            blocks.append(rows)
            parts.append((values, vectors))
    all_values, all_vectors = zip(*parts, strict=True)
    return np.concatenate(all_values), model.side_by_side(blocks, all_vectors), positive


def _above_zero(V: Array) -> tuple[Array, Array]:
    """The positive eigenvalues of the symmetric part of V, and their vectors."""
    values, vectors = np.linalg.eigh(0.5 * (V + V.T))
    return values[values > 0], vectors[:, values > 0]
