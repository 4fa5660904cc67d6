"""Interior points of the dual, for accurate unfoldings of some hundred points.

L-BFGS in whitened coordinates is within 1e-4 of the optimum long before any of its dual vectors
proves it. The central path of the dual starts from such a vector; a Newton step takes (edges)³
operations, and about four reduce the gap by a factor of ten. Points of the path are also primal
points, from which L-BFGS continues.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays.dense import eigh
from gramian.arrays.places import contiguous
from gramian.common.types import Array
from gramian.methods import whitened as white
from gramian.methods.barrier import MU_RATIO, Barrier
from gramian.methods.base import Run, Settings, Step, entering
from gramian.methods.columns import leanest
from gramian.methods.growing import CORRECTION_PAIRS
from gramian.methods.lbfgs import descend
from gramian.methods.whitened_bounds import MeanImage, WhitenedBounds
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.reductions.graph_whitening import GraphWhitening, graph_whitening
from gramian.reductions.squared_forms import squared_forms

MAX_STEP_PRODUCTS = 1e10
"""Maximum number of multiplications of a Newton step: 700 points with six neighbours, some 0.4 s.
The path is slow beyond it: 1,300 points of w1a (3,600 edges) take over 20 steps per tenth of μ."""

STEPS_BEFORE_PATH, STEPS_PER_POINT = 200, 100
"""L-BFGS steps before the path, and after each of its points."""

LAST_MU_RATIO = 1e-10
"""Ratio of the last μ to the first: below it M = μS⁻¹ consists of rounding errors."""

EIGENVALUE_THRESHOLDS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
"""Thresholds below which eigenvalues of a point are dropped, relative to the largest, if F
permits."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept the problem; None if it accepts it."""
    reason = white.refusal(problem, settings)
    if reason is not None:
        return reason
    edges, n = problem.objective.facts.terms or 0, problem.order
    whitening = graph_whitening(problem) if edges**3 / 3 + 4 * n**3 <= MAX_STEP_PRODUCTS else None
    if whitening is None or squared_forms(whitening.problem.objective) is None:
        return "it needs squares of distances, about 2,500 at most, on the host"
    return None


@entering("interior")
def interior(problem: Problem, factor: Array, settings: Settings) -> Run:
    """L-BFGS for a start, then the dual's path with L-BFGS from its points, each certified."""
    whitening = graph_whitening(problem)
    assert whitening is not None
    even = whitening.problem
    objective, mean = even.objective, MeanImage(even.objective)
    bounds = WhitenedBounds(even, whitening.coordinates, settings)
    place = whitening.coordinates
    Y = white.widened(even, place(factor), settings, place)
    Y = descend(
        objective, Y, settings, iterations=STEPS_BEFORE_PATH, memory=CORRECTION_PAIRS, watch=mean
    )
    image = leanest(even, objective.image(Y), white.DROPPED_COLUMNS_IN_TOLERANCES * settings.tol)
    certificate, dual = bounds.certified(image, mean.image or image)
    yield white.placed(Step(image.factor, certificate.value, certificate, dual=dual), whitening)
    forms = squared_forms(objective)
    assert forms is not None
    barrier, value = Barrier(forms, dual), certificate.value
    first = max(value - objective.constant - barrier.bound, settings.tol * abs(value)) / even.order
    mu = first
    while mu > LAST_MU_RATIO * first and (M := barrier.centre(mu, settings.expired)) is not None:
        Y = _better(objective, _evened(whitening, M), image, 0.1 * mu * even.order)
        Y = descend(objective, Y, settings, iterations=STEPS_PER_POINT, memory=CORRECTION_PAIRS)
        image = leanest(
            even, objective.image(Y), white.DROPPED_COLUMNS_IN_TOLERANCES * settings.tol
        )
        certificate, dual = bounds.by_dual(image, barrier.w)
        step = Step(image.factor, certificate.value, certificate, dual=dual)
        yield white.placed(step, whitening)
        mu *= MU_RATIO
    return (yield from white.whitened(problem, whitening.factor(image.factor), settings))


def _evened(whitening: GraphWhitening, M: Array) -> Array:
    """R⁻¹MR⁻ᵀ of all points except the first."""

    def half(A: Array) -> Array:
        return whitening.coordinates(np.pad(A, ((1, 0), (0, 0))))

    return half(half(M).T)


def _better(objective: Objective, M: Array, image: Any, spare: float) -> Array:
    """The current factor, or one of M if F is smaller there, with as few columns as F permits."""
    values, vectors = eigh(M)
    best: Array = image.factor
    least = objective.value(image)
    for cut in reversed(EIGENVALUE_THRESHOLDS):
        kept = values > cut * values[-1]
        Y = contiguous(vectors[:, kept] * np.sqrt(values[kept]))
        value = objective.value(objective.image(Y))
        if value > least + spare:
            break
        best, least = Y, min(value, least)
    return best
