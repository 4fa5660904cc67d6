"""The columns of a factor: initial columns, added columns, dropped columns.

Local methods need a factor with more columns than the optimum has: a spare column can turn to a
direction in which F still decreases.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays.dense import eigh
from gramian.arrays.places import beside, contiguous, host, namespace, norm, place_of
from gramian.common.types import Array
from gramian.linalg import bilateral, ritz_pairs
from gramian.methods.base import Settings
from gramian.objectives import Objective
from gramian.problem import Problem

ZERO_COLUMN_RATIO = 1e-14
"""Squared length, relative to the largest, below which a column of a factor is rounding."""

WEAK_COLUMN_RATIO = 1e-6
"""Squared length, relative to the largest, below which a column is weak: F hardly changes without
it, and it is dropped during a run."""

CUT_NOISE = 0.01
"""Size of the noise that is added to a factor cut to a lower rank, relative to the factor."""

RITZ_PRODUCTS = 60
"""Lanczos products for directions in which F decreases, at least three per direction."""


def columns_by_size(factor: Array) -> tuple[Array, Array]:
    """The eigenvalues of LᵀL, the largest first, and the rotation that they belong to."""
    values, vectors = eigh(host(factor.T @ factor))
    return values[::-1], vectors[:, ::-1]


def compress(factor: Array, rank: int, *, weakest: float = ZERO_COLUMN_RATIO) -> Array:
    """The closest factor of at most `rank` columns, without columns weaker than `weakest`."""
    values, vectors = columns_by_size(factor)
    kept = values > weakest * max(values[0], 0.0) if values.size else values > 0
    return contiguous(factor @ beside(factor, vectors[:, kept][:, :rank]))


def without_weak(factor: Array) -> Array:
    """The factor without weak columns."""
    return compress(factor, factor.shape[1], weakest=WEAK_COLUMN_RATIO)


def leanest(
    problem: Problem, whole: Any, spare: float, *, weakest: float = WEAK_COLUMN_RATIO
) -> Any:
    """The image without weak columns, unless F rises by more than `spare`·|F|."""
    objective, factor = problem.objective, whole.factor
    lean = compress(factor, factor.shape[1], weakest=weakest)
    if lean.shape[1] in (0, factor.shape[1]):
        return whole
    fewer, value = objective.image(problem.domain.rescale(lean)), objective.value(whole)
    return fewer if objective.value(fewer) <= value + spare * abs(value) else whole


def cut(factor: Array, settings: Settings) -> Array:
    """The closest factor of the allowed rank, plus noise of a hundredth of its size.

    A factor cut from an optimum keeps its symmetries (zero blocks, invariant subspaces), which no
    gradient leaves: without noise, descent from it may end at a saddle point.
    """
    closest = compress(factor, settings.rank or factor.shape[0])
    if settings.expired():
        return closest
    noise = place_of(closest).normal(settings.rng, closest.shape)
    spread: Array = CUT_NOISE * norm(closest) / max(norm(noise), 1.0) * noise
    return closest + spread


def starting_factor(problem: Problem, settings: Settings, columns: int | None = None) -> Array:
    """A random factor, scaled to the minimum of F along its ray.

    It has the given number of columns, or as many as the rank allows or an optimum needs. If M = 0
    is the minimum of the ray, the factor is small: at 0 itself the gradient vanishes.
    """
    objective = problem.objective
    columns = columns or settings.rank or objective.facts.rank_bound(objective.order)
    L = objective.place.normal(settings.rng, (problem.order, columns))
    return best_on_ray(objective, L / float(np.sqrt(problem.order)))


def best_on_ray(objective: Objective, L: Array) -> Array:
    """√α L with the α > 0 that minimises F(αLLᵀ), or a small factor if there is none."""
    zero = objective.image(L[:, :0])
    blend = objective.blend(objective.image(L), zero)
    alpha, _, value = bilateral(blend.restriction)
    return L * float(np.sqrt(alpha if np.isfinite(value) and alpha > 0 else 1e-2))


def with_falling(problem: Problem, Y: Array, settings: Settings, most: int) -> Array:
    """Y and up to `most` columns along which F decreases, at the best common length.

    The new columns are Ritz vectors of −∇F, scaled by their values. If many singular values of a
    residual lie at the threshold, as in completion, adding one at a time would be slow.
    """
    objective = problem.objective
    image = objective.image(Y)
    most = min(most, problem.order - Y.shape[1])
    steps = max(RITZ_PRODUCTS, 3 * most)
    found = ritz_pairs(-objective.gradient(image), most, steps=steps, random_state=settings.rng)
    steep = found.values > 0
    if not steep.any():
        return Y
    places = np.flatnonzero(steep)
    D = contiguous(found.vectors[:, places] * beside(Y, np.sqrt(found.values[steep])))
    alpha, beta, value = bilateral(objective.blend(image, objective.image(D)).restriction)
    if not (np.isfinite(value) and beta > 0 and (alpha > 0 or Y.shape[1] == 0)):
        return Y
    parts = [float(np.sqrt(alpha)) * Y, float(np.sqrt(beta)) * D]
    return contiguous(namespace(Y).concat(parts, axis=1))


def with_noise(Y: Array, count: int, size: float, settings: Settings) -> Array:
    """Y and `count` random columns, whose size is `size` times that of Y."""
    noise = place_of(Y).normal(settings.rng, (Y.shape[0], count))
    length = size * norm(Y) / max(norm(noise), 1e-300)
    return contiguous(namespace(Y).concat([Y, length * noise], axis=1))
