"""Verified proofs that there is no feasible point, no minimum or no definite slack."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import lsqr

from gramian.common.types import Array
from gramian.constrained.dual import block_bounds
from gramian.constrained.model import Model, independent
from gramian.constrained.polish import polished
from gramian.linalg.tolerances import ROUNDING, ZERO
from gramian.objectives.curvature import LSQR

MIN_INFEASIBLE_TRACE = 1e7
"""A ray is accepted if it only permits matrices of this multiple of the usual trace."""

MAX_NAMED_ROWS = 6
"""Maximum number of rows in a message."""


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
    """V of unit norm if ⟨C, VVᵀ⟩ and all rows of 𝒜(VVᵀ) count as 0.

    The slack of all multipliers has ⟨S, VVᵀ⟩ = ⟨C, VVᵀ⟩ − y·𝒜(VVᵀ) = 0: none is definite, and no
    proof in floating point can distinguish feasible from infeasible ones.
    """
    V, slope, moved = _ray(model, factor)
    return V if max(abs(slope), moved) <= ZERO else None


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
    V = polished(still, factor / norm, goal=ROUNDING)
    norm = float(np.linalg.norm(V))
    if not (np.isfinite(norm) and norm > 0):
        return nothing
    V = np.ascontiguousarray(V / norm)
    slope = float(np.sum(V * (model.linear @ V))) / model.left
    moved = still.bounds.off(still.bounds.map.bilinear(V, V)) / model.norms
    return V, slope, float(np.linalg.norm(moved))


class ContradictionError(ValueError):
    """Equations without a solution; `combination` is y with 𝒜*(y) = 0 and y·b = 1."""

    def __init__(self, message: str, combination: NDArray[np.floating]) -> None:
        super().__init__(message)
        self.combination = combination


def check_rows(model: Model) -> None:
    """Raise ContradictionError for zero rows whose bounds exclude 0 and for contradictory rows.

    The residual r of the least squares 𝒜(M) = b over all symmetric M has 𝒜*(r) = 0 and r·b = ‖r‖²:
    if r is not 0, a combination of the rows implies 0 = ‖r‖².
    """
    bounds = model.bounds
    if model.rows is None:
        return
    rows = model.rows.matrix
    empty = (np.diff(rows.indptr) == 0) & ((bounds.lower > 0) | (bounds.upper < 0))
    if np.any(empty):
        k = int(np.argmax(empty))
        y = np.zeros(bounds.size)
        y[k] = 1.0 / (bounds.lower[k] if bounds.lower[k] > 0 else bounds.upper[k])
        raise ContradictionError(
            f"row {k} of the constraints multiplies every entry of M by 0, but must lie between "
            f"{bounds.lower[k]:g} and {bounds.upper[k]:g} (rows are counted from 0)",
            y,
        )
    equal = np.flatnonzero(bounds.lower == bounds.upper)
    b = bounds.lower[equal] / model.norms[equal]
    if not np.any(b):
        return
    scaled = rows[equal].multiply(1.0 / model.norms[equal][:, None]).tocsr()
    if independent(scaled):
        return
    M = lsqr(scaled, b, atol=1e-14, btol=1e-14, iter_lim=LSQR)[0]
    rest = b - scaled @ M
    size = float(np.linalg.norm(rest))
    if size <= 1e-7 * np.linalg.norm(b) or np.linalg.norm(scaled.T @ rest) > 1e-9 * size:
        return
    guilty = equal[np.abs(rest) > 1e-6 * np.max(np.abs(rest))]
    named = ", ".join(str(k) for k in guilty[:MAX_NAMED_ROWS])
    more = f" and {guilty.size - MAX_NAMED_ROWS} others" if guilty.size > MAX_NAMED_ROWS else ""
    y = np.zeros(bounds.size)
    y[equal] = rest / model.norms[equal] / size**2
    raise ContradictionError(
        f"rows {named}{more} of the constraints contradict each other: a combination of their "
        "matrices is 0, and the same one of their right-hand sides is not (rows are counted "
        "from 0)",
        y,
    )
