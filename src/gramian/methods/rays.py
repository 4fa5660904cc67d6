"""Search for a ray of PSD matrices along which F is unbounded below."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gramian.arrays.dense import eigh
from gramian.common.types import Array
from gramian.domains import Spectrahedron
from gramian.linalg import ritz_pairs
from gramian.methods import lbfgs
from gramian.methods.base import Settings
from gramian.objectives import Objective
from gramian.objectives.curvature import flat_directions, flattened
from gramian.problem import Problem

SLICE_TRACES = (1e3, 1e7, 1e11)
"""Traces at which F is minimised over a slice, in units of the trace of the last iterate."""

SLICE_COLUMNS, SLICE_STEPS = 6, 200
"""Columns and L-BFGS steps of that minimisation."""

UNBOUNDED_DECREASE = 1e12
"""Decrease of F along a ray, in units of F at the start and at the end of the run, that counts as
unbounded. Rounding can hide that F is bounded along a direction; the value of F at distant points
shows it."""

MAX_COLUMN_DECADES = 8
"""Largest distance, in powers of 10, of the columns of a candidate ray to the longest column."""


def find_ray(problem: Problem, factor: Array, settings: Settings) -> Array | None:
    """V of unit norm with F(tVVᵀ) → −∞ for t → ∞, verified; None if none is found.

    F is convex, so that it is unbounded below along a ray D = VVᵀ if and only if its recession
    slope lim F(tD)/t is negative, which the objective provides: ⟨C, D⟩ if D has no curvature.
    Candidates are the lowest eigenvectors of the linear term among the directions without
    curvature, if the objective provides those; otherwise the largest columns of the last point,
    and of the minima over slices of increasing trace.
    """
    objective = problem.objective
    if problem.domain.bounded or np.isfinite(objective.growth().least):
        return None
    with np.errstate(all="ignore"):
        for V in _candidates(objective, factor, settings):
            norm = float(np.linalg.norm(V))
            if not (np.isfinite(norm) and norm > 0):
                continue
            V = flattened(objective, V / norm)
            V = np.ascontiguousarray(V / np.linalg.norm(V))
            slope, unsure = objective.recession(objective.image(V))
            if slope < -unsure and _falls(problem, V, slope, factor):
                return V
    return None


def _falls(problem: Problem, V: Array, slope: float, factor: Array) -> bool:
    """Whether F is below −`UNBOUNDED_DECREASE` times its size at the t given by its slope."""
    objective = problem.objective
    reached = problem.value(factor) if np.all(np.isfinite(factor)) else 0.0
    size = max(problem.scale, abs(reached) if np.isfinite(reached) else 0.0, 1e-200)
    size = min(size, 1e200)  # F would overflow beyond it
    t = 4 * UNBOUNDED_DECREASE * size / -slope
    there = objective.value(objective.image(np.sqrt(t) * V)) if np.isfinite(t) else np.nan
    return bool(there <= -UNBOUNDED_DECREASE * size)


def _candidates(objective: Objective, factor: Array, settings: Settings) -> Iterator[Array]:
    flat = flat_directions(objective)
    zero = objective.gradient(objective.image(factor[:, :0]))
    if flat is not None:
        if flat.shape[1]:  # otherwise every direction is curved
            small = flat.T @ (zero @ flat)
            yield flat @ eigh(0.5 * (small + small.T))[1][:, :1]
        return
    if not np.all(np.isfinite(factor)):
        factor = factor[:, :0]
    yield from _largest_columns(factor)
    start: Array = ritz_pairs(-zero, SLICE_COLUMNS, steps=3 * SLICE_COLUMNS, random_state=0).vectors
    trace = max(float(np.sum(factor * factor)), 1.0)
    for far in SLICE_TRACES:
        if not np.isfinite(far * trace):
            return
        there = Spectrahedron(far * trace)
        start = lbfgs.descend(
            objective, there.rescale(start), settings, iterations=SLICE_STEPS, domain=there
        )
        yield from _largest_columns(start)


def _largest_columns(factor: Array) -> Iterator[Array]:
    if factor.shape[1] == 0 or not np.all(np.isfinite(factor)):
        return
    U, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    last = 0
    for depth in range(MAX_COLUMN_DECADES + 1):
        kept = sizes >= 10.0**-depth * sizes[0]
        if np.sum(kept) > last:
            last = int(np.sum(kept))
            yield U[:, kept] * sizes[kept]
