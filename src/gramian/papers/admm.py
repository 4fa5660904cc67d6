"""ADMM on the split X = Y of the factors, as BiS compares it."""

from __future__ import annotations

import numpy as np

from gramian.arrays.places import namespace, norm
from gramian.bounds import certify_image
from gramian.common.types import Array
from gramian.linalg import Point, quasi_newton
from gramian.methods.base import Run, Settings, Step, at_rest
from gramian.methods.columns import starting_factor
from gramian.objectives import Objective
from gramian.papers import biconvex
from gramian.problem import Problem

PENALTY_GROWTH = 3.0


def admm(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    penalty: float | None = None,
    inner: int = 10,
    check: int = 5,
) -> Run:
    """min f(X, Y) subject to X = Y (BiS eq. 5), by the augmented Lagrangian

        X ← argmin f(X, Y) + ½ρ‖X − Y + U‖²,  Y ← argmin f(X, Y) + ½ρ‖X − Y + U‖²,  U ← U + X − Y.

    Both subproblems are convex and are solved by `inner` L-BFGS iterations. The default of ρ is
    the curvature of f; it is raised every 50 iterations while X and Y differ, since the problem is
    not jointly convex and a small ρ lets them diverge. If F diverges, the run restarts with a
    larger ρ. The solution is YYᵀ.
    """
    objective = problem.objective
    X = starting_factor(problem, settings) if factor.shape[1] == 0 else factor
    Y, U = X, 0.0 * X
    slope = biconvex.gradient(objective, X, Y)
    rho = biconvex.lipschitz(objective, X, Y, slope, 1.0) if penalty is None else float(penalty)
    value, quiet, k = np.inf, 0, 0
    start, limit = X, 10 * abs(objective.value(objective.image(X[:, :0])))
    limit += 10 * abs(objective.value(objective.image(X)))
    while quiet < biconvex.MAX_QUIET_ITERATIONS:
        image = objective.image(Y)
        new = objective.value(image)
        certificate = certify_image(problem, image) if k % check == 0 else None
        difference = norm(X - Y) ** 2
        yield Step(Y, new, certificate, {"difference": difference})
        quiet = quiet + 1 if abs(value - new) <= 1e-14 * abs(new) else 0
        value, k = new, k + 1
        X = _solve(objective, X, Y, Y - U, rho, inner)
        Y = _solve(objective, Y, X, X + U, rho, inner)
        U = U + X - Y
        if k % 50 == 0 and norm(X - Y) ** 2 > 1e-8 * norm(Y) ** 2:
            rho, U = PENALTY_GROWTH * rho, U / PENALTY_GROWTH
        if objective.value(objective.image(Y)) > limit:
            rho, X, Y, U = PENALTY_GROWTH * rho, start, start, 0.0 * U
    return at_rest(problem, settings)


def _solve(
    objective: Objective, start: Array, other: Array, centre: Array, rho: float, steps: int
) -> Array:
    """argmin over X of f(X, other) + ½ρ‖X − centre‖², roughly."""
    xp = namespace(start)

    def evaluate(x: Array) -> Point:
        X = xp.reshape(x, start.shape)
        image = objective.pair_image(X, other)
        away = X - centre
        value = objective.value(image) + 0.5 * rho * norm(away) ** 2
        slope = objective.gradient(image) @ other + rho * away
        return Point(x, value, xp.reshape(slope, (-1,)))

    found = quasi_newton(evaluate, xp.reshape(start, (-1,)), iterations=steps, memory=steps)
    return xp.reshape(found.x, start.shape)
