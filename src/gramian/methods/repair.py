"""Repair of a dual vector: the smallest change that makes it feasible on its worst eigenvectors.

Scaling or shifting the whole of w by one scalar costs the worst eigenvector everywhere. Instead,
with V the lowest eigenvectors of 𝒜*(w) + C, the small convex problem

    min over S ⪰ 0 of F(M + V S Vᵀ)

has a solution at which Vᵀ(𝒜*(w') + C)V ⪰ 0 for its own w' = ∇g (a spectral bundle); the scalar
then only corrects the complement of V.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramian.arrays.dense import eigh
from gramian.arrays.places import contiguous, host, size
from gramian.common.types import Array
from gramian.linalg import ritz_pairs
from gramian.linalg.cone_quadratic import cone_quadratic
from gramian.linalg.subspace import subspace_pairs
from gramian.linalg.svec import svec
from gramian.objectives import Objective
from gramian.objectives.composite import near
from gramian.objectives.halves import halves_of

REPAIR_EIGENVECTORS, LANCZOS_PRODUCTS = 16, 100
"""Eigenvectors of the repair, and Lanczos products for them. MovieLens 100K, gap before and after
at six points of a run: 865 → 434, 210 → 205, 108 → 62, 56 → 9, 19 → 7, 18 → 1.4."""

MAX_ENTRIES = 60_000_000
"""Maximum number of entries of the columns of the map."""

MANY_EIGENVECTORS, MANY_ROUNDS, MANY_STEPS = 48, 3, 8
"""Eigenvectors, rounds of their computation and proximal steps of a repair with more entries. After
12 sweeps of MovieLens 1M (gap 122) the proved gap is 21, after 1.8 s; 64, 4 and 12 take 3.2 s and
gain nothing."""

DEVICE_BYTES_PER_ENTRY = 48
"""Bytes on a device per such entry: six copies."""


def repaired(objective: Objective, image: Any, rng: np.random.Generator) -> Any:
    """The image of M + V S Vᵀ, whose dual vector is repaired; None if that is not possible."""
    w = objective.dual(image)
    place = objective.place
    room = MAX_ENTRIES if place.is_host else place.free_memory() / DEVICE_BYTES_PER_ENTRY
    if w is None:
        return None
    if size(w) * REPAIR_EIGENVECTORS * (REPAIR_EIGENVECTORS + 1) // 2 > room:
        return _repaired_by_steps(objective, image, w)
    operator = objective.dual_operator(w)
    count = min(REPAIR_EIGENVECTORS, operator.order)
    V = ritz_pairs(-operator, count, steps=LANCZOS_PRODUCTS, random_state=rng).vectors
    return repaired_along(objective, image, contiguous(V))


def _repaired_by_steps(objective: Any, image: Any, w: Any) -> Any:
    """`repaired` along many eigenvectors, for squares of entries; None for other objectives."""
    halves = halves_of(objective, np.float32)
    if halves is None or not getattr(halves, "plain", False) or not image.factor.shape[1]:
        return None
    operator = objective.dual_operator(w)
    found = subspace_pairs(-operator, image.factor, MANY_EIGENVECTORS, rounds=MANY_ROUNDS)
    V = contiguous(found.vectors[:, found.values > 0])
    if not V.shape[1]:
        return None
    S = halves.raised(V, V.T @ (operator @ V), MANY_STEPS)
    change = objective.pair_image(V @ S, V)
    return replace(change, z=image.z + change.z, linear=image.linear + change.linear)


def repaired_along(objective: Objective, image: Any, V: Array, spare: Array | None = None) -> Any:
    """The image of the best M + V S Vᵀ; None if F has no curvature along V.

    S ⪰ 0, or S ⪰ −T with T = `spare`, the part of M along V that can be removed: then the dual
    vector is not only raised where it is infeasible, but also lowered where it has slack.
    """
    model = near(objective, image, V)
    if model is None or not np.any(np.diag(model.hessian) > 0):
        return None
    least = np.zeros((V.shape[1],) * 2) if spare is None else spare
    best = cone_quadratic(model.hessian, model.gradient, svec(least), None)
    return model.image(best.S - least)


def spare_along(L: Array, V: Array, unsure: float) -> Array:
    """T ⪰ 0 with V T Vᵀ ⪯ LLᵀ + εI, approximately the largest, for orthonormal columns V.

    (Vᵀ(LLᵀ + εI)⁻¹V)⁻¹ − εI, with ε = `unsure` times the mean square of the columns of L.
    """
    gram, cross = host(L.T @ L), host(V.T @ L)
    epsilon = unsure * float(np.trace(gram)) / max(gram.shape[0], 1)
    if not epsilon > 0:
        return np.zeros((V.shape[1],) * 2)
    inner = np.linalg.solve(gram + epsilon * np.eye(len(gram)), cross.T)
    schur = (np.eye(V.shape[1]) - cross @ inner) / epsilon
    values, turn = eigh(0.5 * (schur + schur.T))
    kept = 1.0 / np.maximum(values, 1e-300) - epsilon
    kept = np.where(values > 1e-14 * values[-1], np.maximum(kept, 0.0), 0.0)
    spare: Array = (turn * kept) @ turn.T
    return spare
