"""L-BFGS at a rank above the optimum's: the quick way where that rank is high."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import beside, contiguous, inner, namespace, norm, place_of
from gramian.certificate import Certificate, certify_image, known_bound
from gramian.linalg import bilateral, leading_eigenpair, ritz_pairs
from gramian.objectives import LowerBound
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, Bottom, lowest
from gramian.solvers.base import Run, Settings, Step, columns_by_size, compress, starting_factor
from gramian.solvers.lbfgs import descend
from gramian.solvers.repair import repaired
from gramian.solvers.room import wide_rank
from gramian.solvers.staircase import staircase

Array = NDArray[np.floating]
Vector = NDArray[np.float64]

RANK, SPARE = 12, 2
"""Columns at the start, and beyond those that carry something: more than the optimum has, so that
there is always one free to turn to where ∇F still falls."""

WIDE_STEPS = 40, 160
"""Steps on a device, where a pass with few columns costs as much."""

NOISE = 1e-3
"""The size of the columns to spare beside the others."""

STEPS = (10, 80)
"""Steps of L-BFGS between the first certificates, and between the last."""

PAIRS = 6
"""Pairs that L-BFGS keeps: twenty of them cost as much as the objective, and gain no steps."""

LANCZOS, DIRECTIONS = 60, (24, 96)
"""Products to find directions in which F falls, three for each at least, and how many of them are
taken: half the rank, within these."""

FAST = 0.7
"""The part of its last gap that a certificate must be within to go on where F is flat."""

REPAIRED, REPAIRS = 10.0, 1
"""Gaps of so many times the tolerance at most are worth the repair of their dual vector, twice."""

ROUNDING = 1e-9
"""What a matrix that should be the identity can be off by, relatively."""

WEAK = 1e-6
"""A column whose square is less than this part of the largest carries nothing."""


def growing(problem: Problem, factor: Array, settings: Settings) -> Run:
    """L-BFGS with columns to spare, twice as many while all of them carry something.

    The staircase ends what it leaves.
    """
    settings.enters("growing")
    steps = STEPS if problem.objective.place.is_host else WIDE_STEPS
    for step in descent(problem, factor, settings, steps, doubling=True):
        factor = step.factor
        yield step
    return (yield from staircase(problem, compress(factor, factor.shape[1]), settings))


def descent(
    problem: Problem,
    Y: Array,
    settings: Settings,
    steps: tuple[int, int],
    *,
    doubling: bool = False,
) -> Iterator[Step]:
    """L-BFGS at a rank above the optimum's, certified now and then, while F or the gap falls.

    Where the rank may be high, `doubling` gives twice the columns while all of them carry.
    """
    objective, last, last_gap = problem.objective, np.inf, np.inf
    known: LowerBound | None = None
    vector: Vector | None = None
    count, most = steps
    full = False
    while True:
        if doubling and np.isfinite(last):
            Y = with_falling(problem, Y, settings, int(np.clip(Y.shape[1] // 2, *DIRECTIONS)))
        wide = _with_spare(problem, Y, settings, full)
        Y = without_weak(descend(objective, wide, settings, iterations=count, memory=PAIRS))
        full = doubling and Y.shape[1] == wide.shape[1] < problem.order
        image = objective.image(Y)
        value = objective.value(image)
        bottom, vector = bottom_of(objective.gradient(image), vector, needed(value, Y, settings))
        certificate = certify_image(problem, image, bottom=bottom, known=known)
        certificate, dual = _repaired(problem, image, certificate, bottom, settings)
        known = _better(known, certificate)
        yield Step(Y, value, certificate, {"rank": Y.shape[1]}, dual)
        gap = np.inf if certificate.gap is None else certificate.gap
        still = last - value <= 1e-2 * settings.tol * abs(value)
        if still and not full and not gap < FAST * last_gap:
            return
        last, last_gap, count = value, gap, count if full else min(2 * count, most)


def _repaired(
    problem: Problem, image: Any, certificate: Certificate, bottom: Bottom, settings: Settings
) -> tuple[Certificate, Array | None]:
    """The certificate by a repaired dual vector, and that vector, where the gap is near enough."""
    objective, dual, moved = problem.objective, None, image
    for _ in range(REPAIRS):
        gap = certificate.relative_gap
        if gap is None or not settings.tol < gap <= REPAIRED * settings.tol:
            break
        moved = repaired(objective, moved, settings.rng)
        if moved is None:
            break
        w: Any = objective.dual(moved)
        below, _ = bottom_of(objective.dual_operator(w), None, 1e-8)
        found = certify_image(problem, image, bottom=bottom, known=known_bound(problem, w, below))
        if found.lower_bound > certificate.lower_bound:
            certificate, dual = found, w
    return certificate, dual


def with_falling(problem: Problem, Y: Array, settings: Settings, most: int) -> Array:
    """Y and up to `most` columns along which F falls, as long as is best for all of them together.

    Ritz vectors of −∇F, each in proportion to its value: where many singular values of a residual
    lie at the threshold, as in completion, one at a time would take for ever.
    """
    objective = problem.objective
    image = objective.image(Y)
    most = min(most, problem.order - Y.shape[1])
    steps = max(LANCZOS, 3 * most)
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


def _with_spare(problem: Problem, Y: Array, settings: Settings, full: bool) -> Array:
    """Y and some new columns, small beside it."""
    least = RANK if problem.objective.place.is_host else wide_rank(problem.order)
    if Y.shape[1] == 0:
        return starting_factor(problem, replace(settings, rank=min(least, problem.order)))
    spare = max(SPARE, least - Y.shape[1], Y.shape[1] if full else 0)
    return with_noise(Y, min(spare, problem.order - Y.shape[1]), NOISE, settings)


def with_noise(Y: Array, count: int, size: float, settings: Settings) -> Array:
    """Y and columns in random directions, of that size beside it."""
    noise = place_of(Y).normal(settings.rng, (Y.shape[0], count))
    length = size * norm(Y) / max(norm(noise), 1e-300)
    return contiguous(namespace(Y).concat([Y, length * noise], axis=1))


def without_weak(Y: Array) -> Array:
    """Y without columns that carry nothing."""
    values, turn = columns_by_size(Y)
    return contiguous(Y @ beside(Y, turn[:, values > WEAK * values[0]]))


def bottom_of(gradient: Any, vector: Vector | None, tol: float) -> tuple[Bottom, Vector | None]:
    """A lower bound on λ_min, computed in full where the order allows it, else by Lanczos.

    A little below it, since 𝒜*(1) = I holds to rounding only.
    """
    if gradient.order <= EXACT_ORDER:
        found = lowest(gradient)
    else:
        pair = leading_eigenpair(-gradient, v0=vector, tol=tol, random_state=0)
        found, vector = Bottom(-pair.value - pair.residual, "Lanczos", 1.0), pair.vector
    return replace(found, value=found.value - ROUNDING * abs(found.value)), vector


def needed(value: float, Y: Array, settings: Settings) -> float:
    """The residual of λ_min that does not show in the gap, as a part of ‖∇F‖."""
    allowed = 0.1 * settings.tol * abs(value) / max(inner(Y, Y), 1e-300)
    return float(np.clip(allowed, 1e-10, 1e-4))


def _better(known: LowerBound | None, certificate: Certificate) -> LowerBound | None:
    if certificate.gap is None:
        return known
    found = LowerBound(
        certificate.lower_bound,
        certificate.method,
        how=certificate.proof,
        miss=certificate.miss,
    )
    return found if known is None or found.value > known.value else known
