"""Verified rays: proofs that there is no feasible point, no minimum or no definite slack."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.constrained.bottoms import block_bounds
from gramian.constrained.model import Model
from gramian.constrained.polish import polished

Array = NDArray[np.floating]

MIN_INFEASIBLE_TRACE = 1e7
"""A ray is accepted if it only permits matrices of this multiple of the usual trace."""

MAX_FLAT_SLOPE = 1e-10
"""Relative tolerance of ⟨C, VVᵀ⟩ and 𝒜(VVᵀ) along a ray on which nothing changes."""

RAY_ROUNDING = 1e-13
"""Size of 𝒜 of a ray of unit norm that is attributed to rounding."""


def proves_infeasible(model: Model, y: Array) -> Array | None:
    """y scaled to y·b = 1 if it proves that no M ⪰ 0 of reasonable size is feasible.

    With y·𝒜(M) ≥ 1 for all M within the bounds and 𝒜*(y) ⪯ δI, a feasible M has 1 ≤ δ tr M. If
    δ ≤ 0 there is none; otherwise its trace is at least 1/δ, which is attributed to rounding if
    that is 10⁷ times the size of the right-hand side.
    """
    y = model.bounds.signed(y)
    reach = model.bounds.reach(y)
    if not (np.isfinite(reach) and reach > 0):
        return None
    ray = y / reach
    found = block_bounds(model, model.adjoint(-ray))
    if found.miss > 0:
        return None
    delta = max(0.0, -found.least)
    return ray if delta * MIN_INFEASIBLE_TRACE * max(1.0, model.right) <= 1.0 else None


def proves_unattained(model: Model, factor: Array) -> Array | None:
    """V of unit norm if neither ⟨C, VVᵀ⟩ nor any row of 𝒜(VVᵀ) is above rounding.

    The slack of all multipliers has ⟨S, VVᵀ⟩ = ⟨C, VVᵀ⟩ − y·𝒜(VVᵀ) = 0: none is definite, and no
    proof in floating point can distinguish feasible from infeasible ones.
    """
    V, slope, moved = _ray(model, factor)
    return V if max(abs(slope), moved) <= MAX_FLAT_SLOPE else None


def proves_unbounded(model: Model, factor: Array) -> Array | None:
    """V of unit norm if ⟨C, VVᵀ⟩ < 0 and 𝒜(VVᵀ) moves no row against its bounds."""
    V, slope, moved = _ray(model, factor)
    return V if slope < 0 and MIN_INFEASIBLE_TRACE * moved <= -slope else None


def _ray(model: Model, factor: Array) -> tuple[Array | None, float, float]:
    """The factor as a ray V of unit norm, ⟨C, VVᵀ⟩, and the violation of the bounds by 𝒜(VVᵀ)."""
    still, nothing = model.homogeneous, (None, np.nan, np.nan)
    norm = float(np.linalg.norm(factor))
    if model.linear is None or not (np.isfinite(norm) and norm > 0):
        return nothing
    V = polished(still, factor / norm, goal=RAY_ROUNDING)
    norm = float(np.linalg.norm(V))
    if not (np.isfinite(norm) and norm > 0):
        return nothing
    V = np.ascontiguousarray(V / norm)
    slope = float(np.sum(V * (model.linear @ V))) / model.left
    moved = still.bounds.off(still.bounds.map.bilinear(V, V)) / model.norms
    return V, slope, float(np.linalg.norm(moved))
