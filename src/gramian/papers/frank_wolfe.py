"""Frank–Wolfe over the spectrahedron, and over the cone if the trace can be bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from gramian.arrays.places import column_squares, host, namespace, norm, side_by_side
from gramian.bounds import certify_image
from gramian.common.types import Array
from gramian.linalg import leading_eigenpair
from gramian.linalg.restriction import Restriction
from gramian.methods import lbfgs
from gramian.methods.base import Run, Settings, Step
from gramian.methods.columns import compress
from gramian.objectives import Objective
from gramian.problem import Problem
from gramian.reductions.variants import smoothed

STEP_RULES = ("hazan", "exact", "away")
MAX_COLUMNS = 200
"""Number of columns above which the factor is compressed."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept the problem; None if it accepts it.

    It needs a fixed trace, or an upper bound on the trace of the optima.
    """
    if settings.rank is not None and settings.rank < problem.order:
        return "it adds a rank-one term at every step and cannot limit the rank"
    if _trace(problem) is None:
        return "nothing bounds the trace of M: it is not fixed, and no term of F grows with it"
    return None


def frank_wolfe(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    step: str = "exact",
    local: bool = True,
    local_every: int = 5,
    smoothing: float | None = None,
    certify_every: int = 5,
) -> Run:
    """M ← (1 − η)M + ητvvᵀ, where v is the leading eigenvector of −∇F(M) and τ the trace.

    `step` is "hazan" (η = 2/(t + 1), DML-eig Table 1), "exact" (the best η in [0, 1]) or "away"
    (the better one of the exact step and a step that removes weight from the worst atom, which
    BILGO mentions as future work). An atom is a rank-one matrix τvvᵀ. With `local`, L-BFGS at fixed
    trace refines the factor after every `local_every` steps (the hybrid method of Laue, which BiS
    calls FW). For a smoothed loss, `smoothing` is the initial μ, which decreases as 1/√t to the μ
    of the problem. The Frank–Wolfe gap is the trace bound of the certificate.
    """
    if step not in STEP_RULES:
        raise ValueError(f"step must be one of {STEP_RULES}, got {step!r}")
    domain, bound = problem.domain, _trace(problem)
    assert bound is not None
    L, vector, t = factor, None, 0
    while True:
        objective = _smoothed(problem.objective, smoothing, t)
        image = problem.objective.image(L)
        working = image if objective is problem.objective else objective.image(L)
        gradient = objective.gradient(working)
        pair = leading_eigenpair(-gradient, v0=vector, tol=1e-4, random_state=settings.rng)
        vector = pair.vector
        due = t % certify_every == 0
        yield Step(
            L,
            problem.objective.value(image),
            certify_image(problem, image) if due else None,
            {"lambda_max": pair.value},
        )
        atom = domain.vertex(pair.value, pair.vector[:, None], bound)
        t += 1
        if step == "hazan":
            L = _mix(L, atom, 2.0 / (t + 1))
        else:
            L = _searched(objective, working, atom, gradient, bound, away=step == "away")
        if local and t % local_every == 0:
            L = lbfgs.descend(objective, L, settings, iterations=50, domain=domain)
        if L.shape[1] > min(MAX_COLUMNS, 2 * problem.order):
            L = compress(L, problem.order)


def _trace(problem: Problem) -> float | None:
    """The fixed trace, or an upper bound on the trace of the optima; None if there is none."""
    if problem.domain.trace is not None:
        return problem.domain.trace
    objective = problem.objective
    zero = objective.image(objective.place.zeros((problem.order, 0)))
    return objective.growth().trace_below(objective.value(zero))


def _smoothed(objective: Objective, smoothing: float | None, t: int) -> Objective:
    """The objective with μ_t = smoothing/√(t + 1), or with its own μ if that is larger."""
    if smoothing is None:
        return objective
    own = getattr(getattr(objective, "loss", None), "mu", None)
    softer = None if own is None else smoothed(objective, max(own, smoothing / np.sqrt(t + 1)))
    return objective if softer is None else softer


def _mix(L: Array, atom: Array, eta: float) -> Array:
    return side_by_side([float(np.sqrt(1 - eta)) * L, float(np.sqrt(eta)) * atom])


def _searched(
    objective: Objective, image: Any, atom: Array, gradient: Any, bound: float, *, away: bool
) -> Array:
    """The best point towards the atom, or away from the worst column if F is lower there."""
    L = image.factor
    restriction = objective.blend(image, objective.image(atom)).restriction
    eta, value = _best(restriction, lambda eta: np.array([1 - eta, eta]), 1.0)
    best = _mix(L, atom, eta)
    if not away or L.shape[1] < 2:
        return best
    squares = host(column_squares(L))
    scores = host(namespace(L).sum(L * (gradient @ L), axis=0)) / np.maximum(squares, 1e-300)
    worst = int(np.argmax(np.where(squares > 0, scores, -np.inf)))
    weight = float(squares[worst]) / bound
    column = L[:, worst : worst + 1] * float(np.sqrt(bound / squares[worst]))
    restriction = objective.blend(image, objective.image(column)).restriction
    limit = weight / (1 - weight) if weight < 1 else 0.0
    eta, away_value = _best(restriction, lambda eta: np.array([1 + eta, -eta]), limit)
    if away_value >= value:
        return best
    kept = L * float(np.sqrt(1 + eta))
    left = max(0.0, (1 + eta) * weight - eta) * bound
    kept[:, worst] *= float(np.sqrt(left)) / norm(kept[:, worst])
    if left > 0:
        return kept
    return kept[:, np.flatnonzero(np.arange(L.shape[1]) != worst)]


def _best(
    restriction: Restriction, theta: Callable[[float], Array], limit: float
) -> tuple[float, float]:
    """The minimiser η in [0, limit] of a convex function, and its value."""
    found = scipy.optimize.minimize_scalar(
        lambda eta: restriction.value(theta(eta)),
        bounds=(0.0, limit),
        method="bounded",
        options={"xatol": 1e-12},
    )
    ends = [(eta, restriction.value(theta(eta))) for eta in (0.0, limit)]
    return min([*ends, (float(found.x), float(found.fun))], key=lambda point: point[1])
