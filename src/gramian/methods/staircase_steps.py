"""The local steps of the staircase: L-BFGS, or preconditioned conjugate gradients."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gramian.arrays.places import as_double, as_single, norm
from gramian.common.types import Array
from gramian.methods import lbfgs
from gramian.methods.base import Settings
from gramian.objectives.curvature import row_preconditioner
from gramian.papers.lro import UnboundedError, conjugate_gradient
from gramian.problem import Problem
from gramian.reductions.variants import single_precision

MIN_LARGE_ORDER = 500
"""Order above which a subspace search over the cone costs more than local steps that converge."""

CG_STEPS = 60
"""Conjugate gradient steps in a round."""

MAX_FACTOR_CHANGE = 0.03
"""Relative change of the factor after which its preconditioner is recomputed."""

MAX_SINGLE_ERROR_RATIO, MAX_SINGLE_GRADIENT_RATIO = 1.5, 0.5
"""float32 is abandoned if the gradient in float64 is above the first ratio times that in float32,
or above the second ratio times that at the start of the round."""

LBFGS_STEPS = 150
"""L-BFGS steps in a round."""

MIN_GRADIENT_RATIO, MAX_GRADIENT_RATIO = 1e-3, 0.03
"""Gradient ratios between which the steps of a round end."""

SLOW_GRADIENT_RATIO = 0.2
"""Gradient ratio after a round above which its steps do not converge."""


@dataclass
class LocalSteps:
    """Steps on the factor, and the state between rounds."""

    problem: Problem
    settings: Settings
    converging: bool = True
    """Whether the steps of the last round converged."""
    preconditioned: bool = False
    """Whether the objective has a preconditioner, and a subspace search is too expensive."""
    single: bool = True
    """Whether the precision of float32 is sufficient for preconditioned steps."""

    def __post_init__(self) -> None:
        self.objective, self.domain = self.problem.objective, self.problem.domain
        self.large = self.problem.order > MIN_LARGE_ORDER and not self.domain.bounded
        if self.large and self.objective.facts.quadratic:
            nothing = self.objective.image(self.objective.place.zeros((self.problem.order, 1)))
            self.preconditioned = row_preconditioner(self.objective, nothing) is not None

    def take(self, image: Any, enough: float) -> Any:
        """A round of steps, to a gradient of ‖∂F‖‖L‖ ≤ `enough` or a fraction of the first."""
        if image.factor.shape[1] == 0:
            return image
        first = norm(self._slope(image))
        target = enough / max(norm(image.factor), 1e-300)
        if self.preconditioned:
            goal = max(MIN_GRADIENT_RATIO * first, target)
            return self._conjugate_gradient(image, first, goal)
        ratio = np.clip(target / max(first, 1e-300), MIN_GRADIENT_RATIO, MAX_GRADIENT_RATIO)
        image = self._quasi_newton(image, float(ratio))
        last = norm(self._slope(image))
        self.converging = last <= max(SLOW_GRADIENT_RATIO * first, target)
        if not self.converging and self.objective.facts.quadratic and not self.domain.bounded:
            # Exact line searches continue where rounding of F stops those of L-BFGS.
            image = self._lines(self.objective, image, target)
        return image

    def _conjugate_gradient(self, image: Any, first: float, target: float) -> Any:
        """LRO's preconditioned steps to a gradient of norm `target`, in float32 if that suffices.

        On x86 a9a took 5.5 s with it and 8.9 s in float64 alone (other processes were running); on
        ARM it gained nothing.
        """
        rough = single_precision(self.objective) if self.single else None
        if rough is None:
            return self._lines(self.objective, image, target)
        single = self._lines(rough, rough.image(as_single(image.factor)), target)
        found = self.objective.image(as_double(single.factor))
        last, claimed = norm(self._slope(found)), norm(rough.gradient_factor(single))
        self.single = last <= min(
            MAX_SINGLE_ERROR_RATIO * claimed, MAX_SINGLE_GRADIENT_RATIO * first
        )
        if self.single or self.objective.value(found) < self.objective.value(image):
            return found
        return self._lines(self.objective, image, target)

    def _lines(self, objective: Any, image: Any, target: float) -> Any:
        """Preconditioned steps for this objective, in float64 or float32."""
        precondition = _Preconditioner(objective)
        with suppress(UnboundedError):
            steps = conjugate_gradient(objective, image.factor, precondition=precondition)
            for found, gradient in islice(steps, CG_STEPS):
                image = found
                if norm(gradient) <= target or self.settings.expired():
                    break
        return image

    def _quasi_newton(self, image: Any, ratio: float) -> Any:
        """L-BFGS, which can keep the trace fixed and needs one evaluation per trial."""
        factor = lbfgs.descend(
            self.objective,
            image.factor,
            self.settings,
            iterations=LBFGS_STEPS,
            tol=ratio,
            domain=self.domain,
        )
        return self.objective.image(factor)

    def _slope(self, image: Any) -> Array:
        """∂F, projected to the tangent plane if the trace is fixed."""
        return self.domain.tangent(self.objective.gradient_factor(image), image.factor)


class _Preconditioner:
    """The preconditioner of the objective, recomputed when the factor has changed."""

    def __init__(self, objective: Any) -> None:
        self.objective = objective
        self.factor: Any = None
        self.near: Any = None

    def __call__(self, image: Any, gradient: Array) -> Array:
        L = image.factor
        if self.factor is None or norm(L - self.factor) > MAX_FACTOR_CHANGE * norm(L):
            self.near, self.factor = row_preconditioner(self.objective, image), L
        return gradient if self.near is None else self.near(gradient)
