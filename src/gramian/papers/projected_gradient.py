"""Nesterov's accelerated projected gradient on the dense M: a slow, independent reference."""

from __future__ import annotations

import numpy as np

from gramian.arrays.places import beside, inner
from gramian.bounds import certify
from gramian.common.types import Array
from gramian.domains import Domain, project
from gramian.methods.base import Run, Settings, Step, entering, is_unbounded_on_ray
from gramian.objectives import Objective
from gramian.objectives.dense import gradient_dense, value_dense
from gramian.papers.biconvex import MAX_QUIET_ITERATIONS
from gramian.problem import Problem
from gramian.result import Status

MAX_ORDER = 5000
"""Maximum order: each iteration takes a full eigenvalue decomposition."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept the problem; None if it accepts it."""
    if problem.order > MAX_ORDER:
        return f"it keeps M dense, up to order {MAX_ORDER}, and this problem has {problem.order}"
    if settings.rank is not None and settings.rank < problem.order:
        return "its projections cannot limit the rank"
    return None


@entering("projected-gradient")
def projected_gradient(
    problem: Problem, factor: Array, settings: Settings, *, certify_every: int = 10
) -> Run:
    """M ← P(Y − ∇F(Y)/η), Y extrapolated with t_k, backtracking on η, restart when F increases.

    P is the projection onto the domain by a full eigenvalue decomposition. Ends when F has not
    decreased for `MAX_QUIET_ITERATIONS` steps.
    """
    objective, domain = problem.objective, problem.domain
    M: Array = factor @ factor.T
    Y, t, eta, value = M, 1.0, 1.0, value_dense(objective, M)
    least, quiet, k = value, 0, 0
    while True:
        eigenvalues, vectors, eta = _step(objective, domain, Y, 0.7 * eta)
        new = _assemble(eigenvalues, vectors)
        new_value = value_dense(objective, new)
        quiet = 0 if new_value < least - 1e-15 * abs(least) else quiet + 1
        least = min(least, new_value)
        L = _factor(eigenvalues, vectors)
        due = k % certify_every == 0 or quiet == MAX_QUIET_ITERATIONS
        yield Step(L, new_value, certify(problem, L) if due else None)
        if quiet == MAX_QUIET_ITERATIONS:
            return Status.STALLED
        if due and not domain.bounded and is_unbounded_on_ray(objective, objective.image(L)):
            return Status.UNBOUNDED
        k += 1
        if new_value > value:
            Y, t, value = M, 1.0, np.inf
            continue
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        Y = new + ((t - 1) / t_next) * (new - M)
        M, value, t = new, new_value, t_next


def _step(objective: Objective, domain: Domain, Y: Array, eta: float) -> tuple[Array, Array, float]:
    """The projected step from Y as (eigenvalues, eigenvectors), η raised until it majorises F."""
    G, at_Y = gradient_dense(objective, Y), value_dense(objective, Y)
    while True:
        eigenvalues, vectors = project(domain, Y - G / eta)
        new = _assemble(eigenvalues, vectors)
        step = new - Y
        model = at_Y + inner(G, step) + 0.5 * eta * inner(step, step)
        value = value_dense(objective, new)
        if not np.isfinite(value) or value <= model + 1e-13 * abs(model):
            return eigenvalues, vectors, eta
        eta *= 2.0


def _assemble(eigenvalues: Array, vectors: Array) -> Array:
    return (vectors * beside(vectors, eigenvalues)) @ vectors.T


def _factor(eigenvalues: Array, vectors: Array) -> Array:
    kept = eigenvalues > 0
    return vectors[:, np.flatnonzero(kept)] * beside(vectors, np.sqrt(eigenvalues[kept]))
