"""Nesterov's accelerated gradient on the factor, a baseline of BiS."""

from __future__ import annotations

import numpy as np

from gramian.arrays.places import inner, norm
from gramian.bounds import certify_image
from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, at_rest
from gramian.methods.columns import starting_factor
from gramian.papers.biconvex import MAX_QUIET_ITERATIONS
from gramian.problem import Problem


def agd(problem: Problem, factor: Array, settings: Settings, *, check: int = 20) -> Run:
    """L ← P − (1/η) ∂F/∂P at P = L + ((t − 1)/t⁺)(L − L⁻), backtracking on η (BiS §IV).

    F(LLᵀ) is not convex in L, so the momentum is reset when F increases.
    """
    objective = problem.objective
    L = starting_factor(problem, settings) if factor.shape[1] == 0 else factor
    image = objective.image(L)
    P, ahead = L, image
    t, value = 1.0, objective.value(image)
    eta = _first_scale(L, objective.gradient_factor(image))
    k, quiet = 0, 0
    while quiet < MAX_QUIET_ITERATIONS:
        certificate = certify_image(problem, image) if k % check == 0 else None
        yield Step(L, value, certificate, {"step": 1 / eta})
        gradient, at_P = objective.gradient_factor(ahead), objective.value(ahead)
        slope = inner(gradient, gradient)
        eta *= 0.8
        while True:
            moved = objective.image(P - gradient / eta)
            new = objective.value(moved)
            if new <= at_P - 0.5 * slope / eta or slope / eta <= 1e-16 * abs(at_P):
                break
            eta *= 2.0
        k += 1
        quiet = quiet + 1 if value - new <= 1e-15 * abs(value) else 0
        if new > value:
            P, ahead, t = L, image, 1.0
            continue
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        P = moved.factor + ((t - 1) / t_next) * (moved.factor - L)
        L, image, value, t = moved.factor, moved, new, t_next
        ahead = objective.image(P)
    return at_rest(problem, settings)


def _first_scale(L: Array, gradient: Array) -> float:
    """The inverse of a step that moves L by a tenth of its size."""
    size = norm(L)
    return max(10 * norm(gradient) / max(size, 1e-300), 1e-300)
