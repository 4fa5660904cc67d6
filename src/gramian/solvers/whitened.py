"""L-BFGS in whitened coordinates: what unfolds thousands of points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import contiguous, inner, norm, place_of, side_by_side
from gramian.certificate import Certificate, certify_image, known_bound
from gramian.eigen import leading_eigenpair
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, Bottom, lowest
from gramian.result import Status
from gramian.solvers.base import Run, Settings, Step, no_rank_limit, starting_factor
from gramian.solvers.growing import PAIRS, needed, with_falling, without_weak
from gramian.solvers.lbfgs import descend
from gramian.solvers.staircase import staircase

Array = NDArray[np.floating]

COLUMNS = 24
"""Columns to begin with, and to keep: more than most optima have. With those that carry alone the
thousand digits stay at a gap of 2e-3 for ever, with 24 they are at 1e-4 after 1,800 steps."""

STEPS = (200, 400)
"""Steps of L-BFGS between the first certificates, and between the others."""

WINDOW = 20
"""Iterates that the mean of the dual vectors goes over, about: 2 to 9 times nearer to the best than
the last of them (1,000 digits: 1.9e-2 and 4.1e-3 at a primal error of 3e-5)."""

ROUNDING = 1e-9
"""What a matrix that should be the identity can be off by, relatively."""

FACTORS = 4
"""Sparse factorisations of a proof, about."""

SPARED = 0.02
"""The part of the tolerance that fewer columns may cost."""

PATIENCE = 3
"""Rounds without a better gap, with more columns each, before the staircase takes over."""


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
    certificates while F or the gap falls, and the staircase ends what it leaves.
    """
    settings.enters("whitened")
    white = problem.objective.whitened()
    assert white is not None
    even = Problem(white.objective, problem.domain, name=problem.name)
    Y = white.coordinates(factor)
    for step in _descent(even, Y, settings):
        Y = step.factor
        yield _placed(step, white.factor(Y))
    run = staircase(even, Y, settings)
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            status: Status = end.value
            return status
        yield _placed(step, white.factor(step.factor))


class MeanDual:
    """The mean of the dual vectors of the last iterates, about: each weighs 1/WINDOW at least."""

    def __init__(self, objective: Objective) -> None:
        self.objective, self.count, self.w = objective, 0, None

    def __call__(self, image: Any) -> None:
        w: Any = self.objective.dual(image)
        self.count += 1
        if self.w is None:
            self.w = 1.0 * w
        else:
            self.w += (w - self.w) / min(self.count, WINDOW)


def _descent(problem: Problem, Y: Array, settings: Settings) -> Iterator[Step]:
    """L-BFGS with columns to spare, certified by the mean of its dual vectors."""
    objective, count, quiet, least = problem.objective, STEPS[0], 0, np.inf
    vector = None
    Y = _widened(problem, Y, settings)
    while quiet < PATIENCE:
        mean = MeanDual(objective)
        Y = descend(objective, Y, settings, iterations=count, memory=PAIRS, watch=mean)
        count = STEPS[1]
        image = _lean(objective, Y, settings.tol)
        dual = objective.dual(image) if mean.w is None else mean.w
        assert dual is not None
        bottom = _bottom(problem, dual, image, vector, settings)
        vector = bottom.vector
        certificate = certify_image(
            problem, image, bottom=Bottom(-np.inf, ""), known=known_bound(problem, dual, bottom)
        )
        yield Step(image.factor, certificate.value, certificate, dual=dual)
        gap = np.inf if certificate.gap is None else certificate.gap
        if gap < 0.8 * least:
            quiet, least = 0, gap
        else:
            quiet += 1
            Y = with_falling(problem, Y, settings, COLUMNS // 2)


def _bottom(problem: Problem, dual: Array, image: Any, vector: Any, settings: Settings) -> Bottom:
    """λ_min of the operator of a dual vector, a little below it: 𝒜*(1) = I to rounding only."""
    operator = problem.objective.dual_operator(dual)
    seconds = settings.proof_seconds()
    share = needed(problem.objective.value(image), image.factor, settings)
    form = operator.form() if operator.place.is_host else None
    sparse = form is not None and FACTORS * form.seconds <= seconds
    if operator.order > EXACT_ORDER and not sparse and operator.place.is_host:
        pair = leading_eigenpair(-operator, v0=vector, tol=share, random_state=settings.rng)
        found = Bottom(-pair.value - pair.residual, "Lanczos", 1.0, pair.vector)
    else:  # factorisations are quicker than products with the inverse of a root
        found = lowest(operator, wanted=share, seconds=seconds)
    return replace(found, value=found.value - ROUNDING * abs(found.value))


def _lean(objective: Objective, Y: Array, tol: float) -> Any:
    """The image of Y without columns that carry nothing, unless F is the worse for it."""
    whole, lean = objective.image(Y), objective.image(without_weak(Y))
    value = objective.value(whole)
    return lean if objective.value(lean) <= value + SPARED * tol * abs(value) else whole


def _widened(problem: Problem, Y: Array, settings: Settings) -> Array:
    """Y with so many columns, the new ones random and small beside it."""
    columns = min(COLUMNS, problem.order)
    if Y.shape[1] == 0:
        return starting_factor(problem, replace(settings, rank=columns))
    missing = max(2, columns - Y.shape[1])
    noise = place_of(Y).normal(settings.rng, (Y.shape[0], missing))
    size = 1e-2 * norm(Y) / max(norm(noise), 1e-300)
    return contiguous(side_by_side([Y, size * noise]))


def _placed(step: Step, factor: Array) -> Step:
    """The step in the coordinates of the problem, where λ_min is not known."""
    certificate = step.certificate
    if certificate is not None:
        certificate = _unlabelled(certificate, inner(factor, factor))
    return replace(step, source=factor, certificate=certificate)


def _unlabelled(certificate: Certificate, trace: float) -> Certificate:
    return replace(certificate, lambda_min=float("nan"), trace=trace)
