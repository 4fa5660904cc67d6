"""L-BFGS in whitened coordinates: what unfolds thousands of points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.certificate import DENSE_ORDER, Certificate, certify_image, lowest_eigenvalue
from gramian.eigen import leading_eigenpair
from gramian.objectives import LowerBound
from gramian.problem import Problem
from gramian.result import Status
from gramian.solvers.base import Run, Settings, Step, compress, no_rank_limit, starting_factor
from gramian.solvers.lbfgs import descend
from gramian.solvers.staircase import staircase

Array = NDArray[np.floating]
Vector = NDArray[np.float64]

RANK, SPARE = 12, 2
"""Columns at the start, and beyond those that carry something: more than the optimum has, so that
there is always one free to turn to where ∇F still falls."""

FIRST, MOST = 100, 800
"""Steps of L-BFGS between certificates."""

ROUNDING = 1e-9
"""What the root of a Laplacian can be off by, relatively."""

WEAK = 1e-6
"""A column whose square is less than this part of the largest carries nothing."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Why the problem has no whitened coordinates, None where it has."""
    if problem.domain.trace is not None or problem.objective.whitened() is None:
        return (
            "it needs distances along the edges of a connected graph, over M ⪰ 0, and an "
            "objective that a shift of all points does not change"
        )
    return no_rank_limit(problem, settings)


def whitened(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F(RYYᵀRᵀ) over Y, R a root of the graph's inverse Laplacian.

    The Hessian of a sum over edges is near the square of their Laplacian, whose conditioning grows
    with the number of points; in the coordinates Y it is the identity. L-BFGS goes on between
    certificates while F falls, and the staircase ends what it leaves.
    """
    white = problem.objective.whitened()
    assert white is not None
    inner = Problem(white.objective, problem.domain, name=problem.name)
    Y = white.coordinates(factor)
    for step in _descent(inner, Y, settings):
        Y = step.factor
        yield _placed(step, white.factor(Y))
    run = staircase(inner, compress(Y, Y.shape[1]), settings)
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            status: Status = end.value
            return status
        yield _placed(step, white.factor(step.factor))


def _descent(inner: Problem, Y: Array, settings: Settings) -> Iterator[Step]:
    """L-BFGS at a rank above the optimum's, certified now and then, while F falls."""
    objective, last, steps = inner.objective, np.inf, FIRST
    known: LowerBound | None = None
    vector: Vector | None = None
    while True:
        Y = _kept(descend(objective, _with_spare(inner, Y, settings), settings, iterations=steps))
        image = objective.image(Y)
        value = objective.value(image)
        bottom, vector = _bottom(objective.gradient(image), vector, _needed(value, Y, settings))
        certificate = certify_image(inner, image, bottom=bottom, known=known)
        known = _better(known, certificate)
        yield Step(Y, value, certificate, {"rank": Y.shape[1]})
        if last - value <= 1e-2 * settings.tol * abs(value):
            return
        last, steps = value, min(2 * steps, MOST)


def _with_spare(inner: Problem, Y: Array, settings: Settings) -> Array:
    """Y and some new columns, small beside it."""
    if Y.shape[1] == 0:
        return starting_factor(inner, replace(settings, rank=min(RANK, inner.order)))
    spare = max(SPARE, RANK - Y.shape[1])
    noise = settings.rng.standard_normal((Y.shape[0], spare))
    size = 1e-3 * np.linalg.norm(Y) / np.linalg.norm(noise)
    return np.ascontiguousarray(np.hstack([Y, size * noise]))


def _kept(Y: Array) -> Array:
    """Y without columns that carry nothing."""
    values, turn = np.linalg.eigh(Y.T @ Y)
    return np.ascontiguousarray(Y @ turn[:, values > WEAK * values[-1]])


def _bottom(gradient: Any, vector: Vector | None, tol: float) -> tuple[float, Vector | None]:
    """A lower bound on λ_min, computed in full where the order allows it, else by Lanczos.

    A little below it, since 𝒜*(1) = I holds to rounding only.
    """
    if gradient.order <= DENSE_ORDER:
        lowest = lowest_eigenvalue(gradient)
    else:
        pair = leading_eigenpair(-gradient, v0=vector, tol=tol, random_state=0)
        lowest, vector = -pair.value - pair.residual, pair.vector
    return lowest - ROUNDING * abs(lowest), vector


def _needed(value: float, Y: Array, settings: Settings) -> float:
    """The residual of λ_min that does not show in the gap, as a part of ‖∇F‖."""
    allowed = 0.1 * settings.tol * abs(value) / max(float(np.sum(Y * Y)), 1e-300)
    return float(np.clip(allowed, 1e-10, 1e-4))


def _better(known: LowerBound | None, certificate: Certificate) -> LowerBound | None:
    if certificate.gap is None:
        return known
    found = LowerBound(certificate.lower_bound, certificate.method)
    return found if known is None or found.value > known.value else known


def _placed(step: Step, factor: Array) -> Step:
    """The step in the coordinates of the problem, where λ_min is not known."""
    certificate = step.certificate
    if certificate is not None:
        trace = float(np.sum(factor * factor))
        certificate = replace(certificate, lambda_min=float("nan"), trace=trace)
    return replace(step, source=factor, certificate=certificate)
