"""L-BFGS on a square factor: what a metric of few features and very many triplets starts with.

A factor of as many columns as rows has no minima but that of F. Along its j-th column, of length
σ_j, F bends by about σ_j² as M = LLᵀ moves, so that steps of Y in L = Y diag(σ)^(-1/2) see less of
how unlike the columns are. LMNN of 10,000 digits in 50 directions, rank 44, from 1.4 % above the
optimum: evaluations to a gap of 7e-5 with powers 0, -1/4, -1/2 and -1 of σ: 81, 47, 31 and 37; of
2,310 segments in 19, rank 9: 87, 59, 55 and more than 120. Coordinates in which the violated pairs
have unit scatter, beside that: a fifth fewer on digits, a fifth more on segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.places import beside, contiguous, host, inner
from gramian.bounds import certify_image
from gramian.certificate import relative
from gramian.common import clock
from gramian.methods.base import Run, Settings, Step, entering
from gramian.methods.columns import columns_by_size
from gramian.methods.lbfgs import descend
from gramian.methods.lowest_eigenpairs import exact_ground
from gramian.methods.staircase import staircase
from gramian.problem import Problem
from gramian.proofs import LIVE

Array = NDArray[np.floating]

WIDEST = 128
"""The order up to which a square factor costs little more than the columns that M would do with.
3,000 digits in 100 directions: 3.2 s, by the staircase 4.7 s."""

FLOOR = 0.02
"""What is added to the eigenvalues of M at the start, of their mean: a column of 0 stays so."""

STEPS = 200
"""Steps at most."""

FIRST, DECADE, LEAST = 5, 5.0, 3
"""Steps before the first look at the gap, those that it takes to a tenth of it where they are
quick, and those between two looks at least: a look costs as much as half a step."""

AIM, SPARED = 0.8, 0.05
"""The parts of the tolerance that the gap should come to, and that fewer columns may cost."""

NEAR = 3.0
"""Gaps of so many times the tolerance may be those of a start that has nothing left to do."""


def suits(problem: Problem, factor: Array) -> bool:
    """Whether F is a loss of more terms than M has entries, over the cone, and a start is given."""
    objective, order = problem.objective, problem.order
    facts = objective.facts
    many = facts.single_loss and (facts.terms or 0) > order * (order + 1) // 2
    smooth = many and facts.spans and not facts.quadratic
    return smooth and order <= WIDEST and factor.shape[1] > 0 and not problem.domain.bounded


@entering("square")
def square(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F(LLᵀ) over square L until the gap seems small enough; what is left of it, if any,
    is the staircase's."""
    clock.check()
    objective, look = problem.objective, _Look(problem, settings)
    begun = objective.image(factor)
    if look.gap(begun) <= NEAR * settings.tol:
        yield _certified(problem, begun)
    L, sizes = filled(factor)
    L = descend(objective, L, settings, iterations=STEPS, watch=look, scales=sizes**-0.5)
    yield _certified(problem, lean(problem, L, SPARED * settings.tol))
    return (yield from staircase(problem, L, settings))


def _certified(problem: Problem, image: Any) -> Step:
    """The point with its certificate, by all eigenvalues of ∇F."""
    G = problem.objective.gradient(image).dense()
    along, bottom = inner(image.factor, G @ image.factor), exact_ground(G, 0.0, 1).bound
    certificate = certify_image(problem, image, bottom=bottom, along=along)
    return Step(image.factor, certificate.value, certificate)


def filled(factor: Array) -> tuple[Array, Array]:
    """A square root of M + εI with orthogonal columns, and their lengths."""
    M = host(factor @ factor.T)
    values, vectors = eigh(M)
    sizes = np.sqrt(np.maximum(values, 0.0) + FLOOR * max(float(np.mean(values)), 1e-300))
    return contiguous(beside(factor, vectors * sizes)), sizes


def lean(problem: Problem, L: Array, spare: float) -> Any:
    """The image of M = 0, or of L without weak columns, unless F is the worse for it."""
    objective, (values, turn) = problem.objective, columns_by_size(L)
    whole = objective.image(L)
    room = (1 + spare) * objective.value(whole)
    live = 0 if problem.scale <= room else int(np.sum(values > LIVE**2 * values[0]))
    few = objective.image(contiguous(L @ beside(L, turn[:, :live])))
    return few if objective.value(few) <= room else whole


@dataclass
class _Look:
    """Looks at the gap when it may have become small enough, and says whether it has."""

    problem: Problem
    settings: Settings
    left: int = FIRST

    def __call__(self, image: Any) -> bool:
        self.left -= 1
        if self.left > 0:
            return False
        over = self.gap(image) / (AIM * self.settings.tol)
        self.left = max(LEAST, int(DECADE * np.log10(max(over, 1.0))))
        return over <= 1.0

    def gap(self, image: Any) -> float:
        """⟨∇F, M⟩ + tr M max(0, −λ_min), what the certificate comes to, but for rounding."""
        objective, L = self.problem.objective, image.factor
        G, M = host(objective.gradient(image).dense()), host(L @ L.T)
        lowest = float(np.linalg.eigvalsh(G)[0])
        gap = abs(float(np.sum(G * M))) + float(np.trace(M)) * max(0.0, -lowest)
        return relative(gap, objective.value(image), self.problem.scale)
