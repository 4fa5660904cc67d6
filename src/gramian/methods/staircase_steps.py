"""The local steps of the staircase: first-order steps while they converge fast, then Newton's."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import as_double, as_single, norm
from gramian.methods import lbfgs
from gramian.methods.base import Settings
from gramian.methods.lowest_eigenpairs import DENSE_ORDER, LowestEigenpairs
from gramian.methods.newton import Direction, best_along, newton_direction
from gramian.objectives.curvature import row_preconditioner
from gramian.papers.lro import UnboundedError, conjugate_gradient
from gramian.problem import Problem
from gramian.reductions.variants import single_precision

Array = NDArray[np.floating]

CG_STEPS, CG_GRADIENT_RATIO = 60, 0.03
"""Conjugate gradient steps in a round, and the gradient ratio at which they end."""

PRECONDITIONED_GRADIENT_RATIO = 1e-3
"""The same ratio for preconditioned steps."""

MAX_FACTOR_CHANGE = 0.03
"""Relative change of the factor after which its preconditioner is recomputed."""

MAX_SINGLE_ERROR_RATIO, MAX_SINGLE_GRADIENT_RATIO = 1.5, 0.5
"""float32 is abandoned if the gradient in float64 is above the first ratio times that in float32,
or above the second ratio times that at the start of the round."""

LBFGS_STEPS, LBFGS_GRADIENT_RATIO = 150, 1e-3
"""L-BFGS steps in a round, and the gradient ratio at which they end."""

NEWTON_STEPS = 8
HESSIAN_PRODUCTS = (30, 400)
"""Hessian products for one direction: initial and maximum number."""


@dataclass
class LocalSteps:
    """Steps on the factor, and the state between rounds."""

    problem: Problem
    settings: Settings
    limit: int = HESSIAN_PRODUCTS[0]
    products: int = 0
    well_conditioned: bool = True
    """Whether conjugate gradient converges fast enough."""
    preconditioned: bool = False
    """Whether it uses the preconditioner of the objective."""
    single: bool = True
    """Whether the precision of float32 is sufficient for it."""
    lift: float = 1.0
    """Fraction of an estimated λ_min by which ∇F is shifted in the Hessian."""
    steepest: float = 0.0
    """The largest gradient on the factor so far."""

    def __post_init__(self) -> None:
        self.objective, self.domain = self.problem.objective, self.problem.domain
        if self.large:
            nothing = self.objective.image(self.objective.place.zeros((self.problem.order, 1)))
            self.preconditioned = self._has_preconditioner(nothing)

    @property
    def large(self) -> bool:
        """Whether a subspace search is too expensive unless local steps fail."""
        return self.problem.order > DENSE_ORDER and not self.domain.bounded

    def first_order(self, image: Any, enough: float) -> tuple[Any, bool]:
        """First-order steps while they converge, and whether no Newton steps are needed."""
        if image.factor.shape[1] == 0 or not self.well_conditioned:
            return image, False
        first = norm(self._slope(image))
        fall = PRECONDITIONED_GRADIENT_RATIO if self.preconditioned else CG_GRADIENT_RATIO
        target = max(fall * first, enough / max(norm(image.factor), 1e-300))
        if not self.domain.bounded and self.objective.facts.quadratic:
            image, least = self._conjugate_gradient(image, target)
        else:
            image, least = self.quasi_newton(image, enough)
        if least > max(0.2 * first, target):
            self.well_conditioned = self.preconditioned = self._has_preconditioner(image)
        return image, least <= target or (self.large and self.well_conditioned)

    def _has_preconditioner(self, image: Any) -> bool:
        """Whether a preconditioner exists and a subspace search is too expensive."""
        suited = self.large and self.objective.facts.quadratic
        return suited and row_preconditioner(self.objective, image) is not None

    def _conjugate_gradient(self, image: Any, target: float) -> tuple[Any, float]:
        """LRO's steps to a gradient of size `target`, and the smallest gradient reached."""
        rough = single_precision(self.objective) if self.preconditioned and self.single else None
        if rough is None:
            return self._lines(self.objective, image, target)
        first, before = norm(self._slope(image)), self.objective.value(image)
        single, _ = self._lines(rough, rough.image(as_single(image.factor)), target)
        found = self.objective.image(as_double(single.factor))
        least, single_norm = norm(self._slope(found)), norm(rough.gradient_factor(single))
        self.single = least <= min(
            MAX_SINGLE_ERROR_RATIO * single_norm, MAX_SINGLE_GRADIENT_RATIO * first
        )
        if self.single or self.objective.value(found) < before:
            return found, least
        return self._lines(self.objective, image, target)

    def _lines(self, objective: Any, image: Any, target: float) -> tuple[Any, float]:
        """The same for this objective, in float64 or float32."""
        near = _Preconditioner(objective) if self.preconditioned else _unchanged
        best, least = image, np.inf
        with suppress(UnboundedError):
            steps = conjugate_gradient(objective, image.factor, precondition=near)
            for step in islice(steps, CG_STEPS):
                best, least = step[0], min(least, norm(step[1]))
                if least <= target or self.settings.expired():
                    break
        return best, least

    def quasi_newton(self, image: Any, enough: float) -> tuple[Any, float]:
        """L-BFGS, which can keep the trace fixed and needs one evaluation per trial."""
        first = float(norm(self._slope(image)) * norm(image.factor))
        factor = lbfgs.descend(
            self.objective,
            image.factor,
            self.settings,
            iterations=LBFGS_STEPS,
            tol=max(LBFGS_GRADIENT_RATIO, min(CG_GRADIENT_RATIO, enough / max(first, 1e-300))),
            domain=self.domain,
        )
        image = self.objective.image(factor)
        return image, norm(self._slope(image))

    def newton(
        self, image: Any, eigenpairs: LowestEigenpairs, enough: float
    ) -> tuple[Any, Any, Direction | None]:
        """Newton steps of length about 1 while the gradient decreases fast.

        Returns their last point, the best point along the direction that ended them, and the
        direction.
        """
        last = np.inf
        for k in range(NEWTON_STEPS):
            L = image.factor
            if L.shape[1] == 0:
                break
            gradient = self._slope(image)
            size = norm(gradient)
            if size * norm(L) <= enough or size > 0.3 * last or self.settings.expired():
                break
            last, self.steepest = size, max(size, self.steepest)
            direction = newton_direction(
                self.objective,
                image,
                gradient,
                below=eigenpairs.below if k == 0 else None,
                domain=self.domain,
                tol=float(np.clip(np.sqrt(size / self.steepest), 1e-3, 0.1)),
                limit=self.limit,
            )
            self.products += direction.products
            self.lift = max(0.3 * self.lift, 1e-4) if direction.clean else min(4 * self.lift, 1.0)
            moved, mu = best_along(self.objective, image, direction.blocks[0], self.domain)
            if not mu > 0.5:
                self.limit = max(self.limit // 2, HESSIAN_PRODUCTS[0])
                return image, moved, direction
            self.limit = min(2 * self.limit, HESSIAN_PRODUCTS[1])
            image = moved
        return image, image, None

    def _slope(self, image: Any) -> Array:
        """∂F, projected to the tangent plane if the trace is fixed."""
        return self.domain.tangent(self.objective.gradient_factor(image), image.factor)


def _unchanged(image: Any, gradient: Array) -> Array:
    return gradient


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
        found: Array = gradient if self.near is None else self.near(gradient)
        return found
