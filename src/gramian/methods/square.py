"""L-BFGS on a square factor, for metrics of few features and very many triplets.

With as many columns as rows, every local minimum of the factor is the optimum. Along the j-th
column, of length σ_j, the curvature of F is about σ_j², so that the variable Y in
L = Y diag(σ)^(-1/2) reduces the differences between columns. LMNN of 10,000 digits in 50
directions, rank 44, from 1.4 % above the optimum: evaluations to a gap of 7e-5 with powers 0, -1/4,
-1/2 and -1 of σ: 81, 47, 31 and 37; of 2,310 segments in 19, rank 9: 87, 59, 55 and more than 120.
Whitening of the violated pairs in addition: a fifth fewer on digits, a fifth more on segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.arrays.dense import eigh
from gramian.arrays.places import beside, contiguous, host, inner
from gramian.bounds import certify_image
from gramian.certificate import relative
from gramian.common import clock
from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, entering
from gramian.methods.columns import leanest
from gramian.methods.lbfgs import descend
from gramian.methods.lowest_eigenpairs import exact_eigenpairs
from gramian.methods.staircase import staircase
from gramian.problem import Problem
from gramian.proofs import LIVE

MAX_ORDER = 128
"""Maximum order: up to it a square factor costs little more than the columns that M needs. 3,000
digits in 100 directions: 3.2 s, the staircase 4.7 s."""

EIGENVALUE_SHIFT = 0.02
"""Shift of the eigenvalues of M at the start, relative to their mean (a zero column stays 0)."""

MAX_STEPS = 200
"""Maximum number of L-BFGS steps."""

STEPS_BEFORE_FIRST_GAP, STEPS_PER_DECADE, MIN_STEPS_BETWEEN_GAPS = 5, 5.0, 3
"""Steps before the first evaluation of the gap, steps that reduce the gap by a factor of ten if
they converge fast, and minimum number of steps between evaluations (one costs half a step)."""

FINAL_GAP_IN_TOLERANCES, DROPPED_COLUMNS_IN_TOLERANCES = 0.8, 0.05
"""Gap at which the descent ends, and increase of F permitted to drop columns, in tolerances."""

CERTIFIED_START_GAP_IN_TOLERANCES = 3.0
"""Gap, in tolerances, up to which the start itself is certified first."""


def suits(problem: Problem, factor: Array) -> bool:
    """Whether F is a loss of more terms than M has entries, over the cone, with a given start."""
    objective, order = problem.objective, problem.order
    facts = objective.facts
    many = facts.single_loss and (facts.terms or 0) > order * (order + 1) // 2
    smooth = many and facts.spans and not facts.quadratic
    return smooth and order <= MAX_ORDER and factor.shape[1] > 0 and not problem.domain.bounded


@entering("square")
def square(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F(LLᵀ) over square L until the gap is small, then run the staircase."""
    clock.check()
    objective, look = problem.objective, _Look(problem, settings)
    begun = objective.image(factor)
    if look.gap(begun) <= CERTIFIED_START_GAP_IN_TOLERANCES * settings.tol:
        yield _certified(problem, begun)
    L, sizes = filled(factor)
    L = descend(objective, L, settings, iterations=MAX_STEPS, watch=look, scales=sizes**-0.5)
    yield _certified(problem, lean(problem, L, DROPPED_COLUMNS_IN_TOLERANCES * settings.tol))
    return (yield from staircase(problem, L, settings))


def _certified(problem: Problem, image: Any) -> Step:
    """The point with its certificate, by all eigenvalues of ∇F."""
    gradient = problem.objective.gradient(image)
    along, bottom = (
        inner(image.factor, gradient @ image.factor),
        exact_eigenpairs(gradient, 0.0, 1).bound,
    )
    certificate = certify_image(problem, image, bottom=bottom, along=along)
    return Step(image.factor, certificate.value, certificate)


def filled(factor: Array) -> tuple[Array, Array]:
    """A square root of M + εI with orthogonal columns, and their lengths."""
    M = host(factor @ factor.T)
    values, vectors = eigh(M)
    sizes = np.sqrt(
        np.maximum(values, 0.0) + EIGENVALUE_SHIFT * max(float(np.mean(values)), 1e-300)
    )
    return contiguous(beside(factor, vectors * sizes)), sizes


def lean(problem: Problem, L: Array, spare: float) -> Any:
    """The image of M = 0, or of L without weak columns, unless F increases too much."""
    whole = problem.objective.image(L)
    if problem.scale <= (1 + spare) * problem.objective.value(whole):
        return problem.objective.image(contiguous(L[:, :0]))
    return leanest(problem, whole, spare, weakest=LIVE**2)


@dataclass
class _Look:
    """Evaluates the gap when it may be small enough, and returns whether it is."""

    problem: Problem
    settings: Settings
    left: int = STEPS_BEFORE_FIRST_GAP

    def __call__(self, image: Any) -> bool:
        self.left -= 1
        if self.left > 0:
            return False
        small = max(FINAL_GAP_IN_TOLERANCES * self.settings.tol, np.finfo(float).eps)
        over = self.gap(image) / small
        self.left = max(MIN_STEPS_BETWEEN_GAPS, int(STEPS_PER_DECADE * np.log10(max(over, 1.0))))
        return over <= 1.0

    def gap(self, image: Any) -> float:
        """⟨∇F, M⟩ + tr M max(0, −λ_min), the gap of the certificate up to rounding."""
        objective, L = self.problem.objective, image.factor
        G, M = host(objective.gradient(image).dense()), host(L @ L.T)
        lowest = float(np.linalg.eigvalsh(G)[0])
        gap = abs(float(np.sum(G * M))) + float(np.trace(M)) * max(0.0, -lowest)
        return relative(gap, objective.value(image), self.problem.scale)
