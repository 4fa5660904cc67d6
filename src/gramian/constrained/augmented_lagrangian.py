"""The augmented Lagrangian over low-rank factors (Burer and Monteiro 2003, 2005).

    min over L of  F(LLᵀ) + Σ_i σ_i/2 dist²(𝒜(LLᵀ)_i − y_i/σ_i, [l_i, u_i]) − y_i²/(2σ_i)

and then y ← y − σ(𝒜(LLᵀ) − s), where s are the nearest values within the bounds. The weights are
σ_i = σ γ/(β‖A_i‖²) with the norms γ of C and β of the right-hand side, so that σ does not depend on
the units.

If rounds end at their maximum number of steps and M is one block, the variable becomes K in L = DK
with D_ii² = M_ii relative to their mean, and ‖A_i‖ becomes ‖D^½A_iD^½‖: if the M_ii differ by
orders of magnitude, that takes a tenth of the steps. With ‖DA_iD‖, multipliers of rows with small
entries of M, and with them the bound, would diverge.

If a row implies Mv = 0, L stays orthogonal to v, and the row needs no multiplier. Distances along a
connected graph use coordinates in which its Laplacian is the identity.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.constrained.points import PROGRESS_RATIO, Candidate, Guide
from gramian.linalg.tolerances import ZERO
from gramian.losses import Augmented
from gramian.methods.base import Settings
from gramian.methods.columns import columns_by_size
from gramian.methods.exact_lbfgs import CORRECTION_PAIRS, Descent, descend_exactly
from gramian.objectives import Composite
from gramian.reductions.graph_whitening import centred_whitening

PENALTY_GROWTH, MAX_PENALTY = 5.0, 1e9
"""The factor by which σ grows, and its maximum."""

KEPT_PENALTY_RATIO = 0.25
"""σ is kept if the violation is at most this multiple of the smallest one so far."""

FIRST_ROUND_STEPS, MAX_ROUND_STEPS = 100, 2000
"""Maximum number of steps of the first round, which increases by half of it in each further round,
and the limit of this number."""

MAX_ROUNDS = 400

MAX_CUT_ROUNDS, MIN_DIAGONAL_RATIO = 2, 1e-2
"""Consecutive rounds at the maximum number of steps after which L is scaled by the lengths of its
rows, and the smallest M_ii used there, relative to their mean."""

GRADIENT_RATIO = 0.2
"""Factor by which the gradient tolerance is reduced if the dual converges more slowly."""

MIN_LARGE_ORDER, FIRST_COLUMNS = 1000, 30
"""Order above which the first factor has half the required number of columns, but at least the
second number."""

MIN_ORDER_PER_COLUMN = 6
"""Ratio of the order to the number of columns below which a factor is hardly smaller than M."""

MAX_STUCK_ROUNDS, MIN_RAY_TRACE = 4, 1e4
"""Number of rounds without progress after which the violation alone is minimised to search for a
proof of infeasibility, and the normalised trace of M above which a ray is examined."""


def augmented_lagrangian(
    model: Model,
    factor: Array,
    y: Array,
    settings: Settings,
    guide: Guide,
    *,
    penalty: float = 1.0,
    memory: int = CORRECTION_PAIRS,
    uneven: bool = False,
) -> Iterator[Candidate]:
    """Rounds of L-BFGS with an exact line search, with a multiplier update after each.

    With `uneven`, the scaling for M_ii of different magnitudes is used from the second round.
    """
    bounds, L = model.bounds, factor if factor.shape[1] else first_factor(model, settings)
    null = None if model.face is None else model.face[0]
    if null is not None:
        L = L - null @ (null.T @ L)
    least, stuck, sigma, strict, cut = np.inf, 0, penalty, 1.0, 0
    lengths: Array | None = None
    for round in range(MAX_ROUNDS):
        norms, right = model.norms, model.right
        if lengths is not None:
            norms, right = model.sizes_in(np.sqrt(lengths))
        unit = model.left / right / (norms * model.scales / model.norms) ** 2
        objective = model.augmented(y, sigma * unit, guide.margin)
        white = centred_whitening(objective)
        start = L if white is None else white.coordinates(L)
        place = start if lengths is None else start / lengths
        goal = strict * max(1e-2 * min(1.0, least), 1e-2 * settings.tol)
        steps = min(FIRST_ROUND_STEPS * (2 + round) // 2, MAX_ROUND_STEPS)
        found = descend_exactly(
            objective if white is None else white.objective,
            start,
            iterations=steps,
            # ⟨gradient, factor⟩ relative to ‖C‖ tr M, in any coordinates.
            tol=goal
            * model.left
            * float(np.sum(L * L))
            / max(float(np.linalg.norm(place)), 1e-300),
            expired=settings.expired,
            memory=memory,
            null=null,
            units=lengths,
        )
        L = found.image.factor if white is None else white.factor(found.image.factor)
        z = bounds.map.bilinear(L, L)
        violation = float(np.linalg.norm(bounds.off(z) / norms)) / right
        loss = Augmented(bounds.lower, bounds.upper, y, sigma * unit)
        y = bounds.signed(-loss.gradient(z))
        if violation <= settings.tol:  # only the dual has not converged
            strict *= GRADIENT_RATIO
        falls = violation <= PROGRESS_RATIO * least
        cut = cut + 1 if found.steps == steps else 0
        uneven = uneven or cut >= MAX_CUT_ROUNDS
        slow = not (violation <= KEPT_PENALTY_RATIO * least or (falls and found.steps == steps))
        stuck = stuck + 1 if not falls and violation > settings.tol else 0
        least = min(least, violation)
        record = {"violation": violation, "penalty": sigma, "steps": float(found.steps)}
        yield Candidate(L, y, record, *_rays(model, L, y, found, stuck, settings))
        if stuck > MAX_STUCK_ROUNDS:
            stuck = 0
        if slow:
            sigma = min(PENALTY_GROWTH * sigma, MAX_PENALTY)
        L = _columns(model, L, settings, guide)
        lengths = _lengths(model, L) if uneven and white is None else None


def first_factor(model: Model, settings: Settings) -> Array:
    """A random factor of the size given by the right-hand side."""
    n, bounds = model.order, model.bounds
    seen = bounds.size + (n if model.objective.facts.terms is None else model.objective.facts.terms)
    most = rank_for(seen)
    columns = settings.rank or min(
        n, most, max(FIRST_COLUMNS, most // 2) if n > MIN_LARGE_ORDER else n
    )
    L: Array = settings.rng.standard_normal((n, columns)) / np.sqrt(n * columns)
    z = bounds.map.bilinear(L, L) / model.norms
    target = np.clip(0.0, bounds.lower, bounds.upper) / model.norms
    along = float(z @ target) / max(float(z @ z), 1e-300)
    return L * np.sqrt(along if along > 0 else model.right)


def _lengths(model: Model, L: Array) -> Array | None:
    """d with d_i² = M_ii relative to their mean; None if L has a null space or several blocks."""
    if model.face is not None or model.rows is None or len(model.blocks) > 1:
        return None
    squares = np.sum(L * L, axis=1, keepdims=True)
    mean = float(np.mean(squares))
    if not 0 < mean < np.inf:
        return None
    lengths: Array = np.sqrt(np.maximum(squares / mean, MIN_DIAGONAL_RATIO))
    return lengths / np.sqrt(np.mean(lengths**2))


def rank_for(rows: int) -> int:
    """The smallest r with r(r + 1)/2 > m: then local minima are usually global (Boumal 2016)."""
    return int((np.sqrt(8 * rows + 1) - 1) / 2) + 1


def crowded(model: Model) -> bool:
    """Whether a factor is hardly smaller than M: √(2m) is more than a sixth of the order."""
    return MIN_ORDER_PER_COLUMN * rank_for(model.bounds.size) > model.order


def _rays(
    model: Model, L: Array, y: Array, found: Descent, stuck: int, settings: Settings
) -> tuple[Array | None, Array | None]:
    """Candidate proofs that there is no minimum, and that there is no feasible point."""
    trace = float(np.sum(L * L))
    far = found.endless or trace > MIN_RAY_TRACE * max(model.right, 1.0)
    primal = L if far else None
    if stuck <= MAX_STUCK_ROUNDS:
        return primal, None
    # Minimise the violation alone: if its minimum is not 0, its gradient there is the ray.
    penalty = 1.0 / model.norms**2
    alone = Augmented(model.bounds.lower, model.bounds.upper, np.zeros_like(y), penalty)
    nearest = descend_exactly(
        Composite(model.bounds.map, alone),
        L,
        iterations=MAX_ROUND_STEPS,
        tol=1e-12 * model.right,
        expired=settings.expired,
    )
    return primal, -alone.gradient(nearest.image.z)


def _columns(model: Model, L: Array, settings: Settings, guide: Guide) -> Array:
    """L without negligible columns, and with the direction of a negative eigenvalue."""
    values, axes = columns_by_size(L)
    live = int(np.sum(values > ZERO * max(values[0], 0.0)))
    if live < L.shape[1] // 2:
        kept = live + max(2, live // 4)
        L = np.ascontiguousarray(L @ axes[:, :kept])
    vector = guide.negative()
    most = settings.rank or model.order
    full = live >= L.shape[1] and L.shape[1] < most
    if vector is not None and full:
        size = np.sqrt(max(values[-1], ZERO * values[0]))
        if model.face is not None:
            vector = vector - model.face[0] @ (model.face[0].T @ vector)
        L = np.hstack([L, size * vector[:, None]])
    return L
