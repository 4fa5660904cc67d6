"""Nesterov's accelerated projected gradient on the dense M: the slow, independent reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.certificate import certify
from gramian.domains import project
from gramian.problem import Problem
from gramian.result import Status
from gramian.solvers.base import Run, Settings, Step

Array = NDArray[np.floating]

LIMIT = 5000
"""Each iteration takes a full eigenvalue decomposition of this order."""


def projected_gradient(
    problem: Problem, factor: Array, settings: Settings, *, certify_every: int = 25
) -> Run:
    """M ← P(Y − ∇F(Y)/η), Y extrapolated with t_k, backtracking on η, restart when F rises.

    P is the projection onto the domain by a full eigenvalue decomposition.
    """
    objective, domain = problem.objective, problem.domain
    M: Array = factor @ factor.T
    if domain.trace is not None:
        M = _assemble(*project(domain, M))
    Y, t, eta, value = M, 1.0, 1.0, objective.value_dense(M)
    k = 0
    while True:
        G, at_Y = objective.gradient_dense(Y), objective.value_dense(Y)
        eta *= 0.7
        while True:
            eigenvalues, vectors = project(domain, Y - G / eta)
            new = _assemble(eigenvalues, vectors)
            step = new - Y
            model = at_Y + np.sum(G * step) + 0.5 * eta * np.sum(step * step)
            new_value = objective.value_dense(new)
            if not np.isfinite(new_value) or new_value <= model + 1e-13 * abs(model):
                break
            eta *= 2.0
        L = _factor(eigenvalues, vectors)
        certificate = certify(problem, L) if k % certify_every == 0 else None
        yield Step(L, new_value, certificate)
        k += 1
        if new_value > value:
            Y, t = M, 1.0
            continue
        if np.array_equal(new, M):
            return Status.STALLED
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        Y = new + ((t - 1) / t_next) * (new - M)
        M, value, t = new, new_value, t_next


def _assemble(eigenvalues: Array, vectors: Array) -> Array:
    return (vectors * eigenvalues) @ vectors.T


def _factor(eigenvalues: Array, vectors: Array) -> Array:
    kept = eigenvalues > 0
    return vectors[:, kept] * np.sqrt(eigenvalues[kept])
