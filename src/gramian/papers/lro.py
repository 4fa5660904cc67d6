"""LRO, Algorithm 1: conjugate gradient on the factor with the exact quartic step.

Gradient descent with that step is a baseline of BiS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from gramian.arrays.places import inner, norm
from gramian.bounds import certify_image
from gramian.common.types import Array
from gramian.linalg import quartic
from gramian.methods.base import Run, Settings, Step, at_rest
from gramian.methods.columns import starting_factor
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.result import Status


class UnboundedError(Exception):
    """F is unbounded below along a line of factors."""


REFRESH_STEPS = 50
"""Steps after which an image that is updated incrementally is recomputed."""


def conjugate_gradient(
    objective: Objective,
    factor: Array,
    *,
    conjugate: bool = True,
    precondition: Callable[[Any, Array], Array] = lambda image, gradient: gradient,
) -> Iterator[tuple[Any, Array]]:
    """Images of L_t and ∂F/∂L_t for Polak–Ribière⁺ directions Δ_t, until no step descends.

    ρ = max(0, ⟨∂F_t, ∂F_t − ∂F_{t−1}⟩ / ⟨∂F_{t−1}, ∂F_{t−1}⟩), Δ_t = −∂F_t + ρΔ_{t−1}. (The paper
    prints the denominator at t; Polak and Ribière's is at t − 1.) A direction of ascent is replaced
    by −∂F_t, and without `conjugate` every direction is. With a preconditioner B_t, which may
    change between steps, B_t∂F_t is used in the directions and in the products.
    """
    image = objective.image(factor)
    gradient = objective.gradient_factor(image)
    steep = precondition(image, gradient)
    direction, restarted = -steep, True
    t = 0
    while True:
        yield image, gradient
        if inner(direction, gradient) >= 0:
            direction, restarted = -steep, True
        line = objective.line(image, direction)
        mu, value = quartic(line.restriction)
        if value == -np.inf:
            raise UnboundedError
        if mu == 0:
            if restarted:
                return
            direction, restarted = -steep, True
            continue
        t += 1
        image = line.take(mu)
        if t % REFRESH_STEPS == 0:
            image = objective.image(image.factor)
        previous, gradient = gradient, objective.gradient_factor(image)
        before = inner(previous, steep)
        steep = precondition(image, gradient)
        rho = max(0.0, inner(steep, gradient - previous) / before) if conjugate else 0.0
        direction, restarted = -steep + rho * direction, rho == 0


def descend(
    objective: Objective, factor: Array, settings: Settings, *, iterations: int, tol: float = 0.0
) -> Array:
    """A local minimum of L ↦ F(LLᵀ) near `factor`, or the best point within the iterations."""
    if factor.shape[1] == 0:
        return factor
    first = None
    with suppress(UnboundedError):  # detected by the search over atoms
        for t, (image, gradient) in enumerate(conjugate_gradient(objective, factor)):
            factor = image.factor
            size = norm(gradient)
            first = size if first is None else first
            if t >= iterations or size <= tol * first or settings.expired():
                break
    return factor


def lro(problem: Problem, factor: Array, settings: Settings, *, check: int = 20) -> Run:
    """Minimise F(LLᵀ) over L of the given rank.

    Every `check` steps ω = λ_max(−∇F) and the gap are computed: a small change of F or L, the
    paper's test, does not imply optimality.
    """
    return _line_searched(problem, factor, settings, check=check, conjugate=True)


def gd(problem: Problem, factor: Array, settings: Settings, *, check: int = 20) -> Run:
    """L ← L − μ ∂F/∂L with μ the best step along the line (BiS §IV)."""
    return _line_searched(problem, factor, settings, check=check, conjugate=False)


def _line_searched(
    problem: Problem, factor: Array, settings: Settings, *, check: int, conjugate: bool
) -> Run:
    """The run of a method with exact line searches on the factor."""
    objective = problem.objective
    if factor.shape[1] == 0:
        factor = starting_factor(problem, settings)
    first = None
    steps = enumerate(conjugate_gradient(objective, factor, conjugate=conjugate))
    while True:
        try:
            t, (image, gradient) = next(steps)
        except UnboundedError:
            return Status.UNBOUNDED
        except StopIteration:
            break
        size = norm(gradient)
        first = size if first is None else first
        settled = size <= 1e-12 * first
        certificate = certify_image(problem, image) if t % check == 0 or settled else None
        value = objective.value(image)
        yield Step(image.factor, value, certificate, {"gradient_norm": size})
        if settled:
            break
    return at_rest(problem, settings)
