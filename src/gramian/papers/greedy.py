"""The loop shared by the rank-one methods M ← αM + βvvᵀ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.arrays.places import place_of
from gramian.bounds import certify_image
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.linalg import EigenPair, Method, bilateral, leading_eigenpair
from gramian.methods.base import Run, Settings, Step, slack_norm
from gramian.methods.columns import compress
from gramian.objectives import Objective
from gramian.papers.lro import REFRESH_STEPS
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, Bottom
from gramian.result import Status

MAX_CHEAP_ORDER = 100
"""Order up to which a certificate costs less than a step and is computed at every iterate."""

MAX_SHARPENED_GAP = 1e-2
"""Relative gap below which certificates use a more accurate eigenvalue than the step needs."""

Atom = Callable[[Any, EigenPair], Array]
"""The vector v to add, from the image of M and the leading eigenpair of −∇F(M)."""

Refine = Callable[[Array, int], Array]
"""A local search on the factor, called with the iteration; it may return the same factor."""


def greedy(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    atom: Atom,
    refine: Refine | None = None,
    cap_alpha: bool = False,
    fix_alpha: bool = False,
    eigen: Method = "krylov",
    eigen_tol: float = 1e-4,
    certify_every: int = 10,
) -> Run:
    """M⁰ = LLᵀ, then one atom per iteration until the KKT conditions hold.

    Yields λ_max(−∇F), the slack ‖∇F·M‖, α and β; the factor [√α L | √β v] is compressed to the
    maximum rank.
    """
    objective = problem.objective
    limit = min(settings.rank or problem.order, problem.order)
    limited = refine is not None and limit < problem.order
    quiet_change = 1e-2 * settings.tol if limited else 1e-15
    image = objective.image(factor)
    vector, alpha, beta, stalls, k = None, np.nan, np.nan, 0, 0
    while True:
        gradient_factor = objective.gradient_factor(image)
        pair = leading_eigenpair(
            -objective.gradient(image),
            method=eigen,
            v0=_next_direction(settings, vector),
            tol=eigen_tol,
            random_state=settings.rng,
        )
        vector = pair.vector
        certificate = _certificate(problem, image, pair, k, certify_every)
        yield Step(
            image.factor,
            objective.value(image),
            certificate,
            {
                "lambda_max": pair.value,
                "slack": slack_norm(image.factor, gradient_factor),
                "alpha": alpha,
                "beta": beta,
            },
        )
        before = objective.value(image)
        blend = objective.blend(image, objective.image(atom(image, pair)[:, None]))
        alpha, beta, value = bilateral(blend.restriction, cap_alpha=cap_alpha, fix_alpha=fix_alpha)
        if value == -np.inf:
            return Status.UNBOUNDED
        image = _within(objective, image, blend.take(alpha, beta), limit)
        if refine is not None:
            refined = refine(image.factor, k)
            image = image if refined is image.factor else objective.image(refined)
        k += 1
        if k % REFRESH_STEPS == 0:
            image = objective.image(image.factor)
        stalls = stalls + 1 if before - objective.value(image) <= quiet_change * abs(before) else 0
        if stalls >= 2 * certify_every:
            return Status.LOCAL if limited else Status.STALLED


def journee(
    problem: Problem, factor: Array, settings: Settings, *, eigen: Method = "krylov"
) -> Run:
    """M ← M + πvvᵀ, the rule of Journée et al. as BILGO §4 states it.

    Add the leading eigenvector of −∇F with the best π ≥ 0, without shrinking M.

    F stops decreasing at λ_max(−∇F) ≤ 0 although ⟨∇F, M⟩ may be far from 0: a reference for
    BILGO's Fig. 2, not recommended for use.
    """
    return greedy(
        problem,
        factor,
        settings,
        atom=lambda image, pair: pair.vector,
        fix_alpha=True,
        eigen=eigen,
    )


def random_conic_pursuit(
    problem: Problem, factor: Array, settings: Settings, *, chi: float = 0.5
) -> Run:
    """M ← αM + βxxᵀ with x ~ N(0, (1 − χ)M + χI) and the best α, β ≥ 0.

    Kleiner et al., as BILGO §4 and §6.1 state it.
    """
    if not 0 < chi <= 1:
        raise ValueError(f"chi must lie in (0, 1], got {chi}")

    def atom(image: Any, pair: Any) -> Array:
        L = image.factor
        place = place_of(L)
        inside = L @ place.normal(settings.rng, (L.shape[1],))
        outside = place.normal(settings.rng, (problem.order,))
        return float(np.sqrt(1 - chi)) * inside + float(np.sqrt(chi)) * outside

    return greedy(problem, factor, settings, atom=atom)


def _next_direction(settings: Settings, vector: Any) -> Any:
    """A direction found by a proof (used once), or else the last eigenvector."""
    found, settings.state.direction = settings.state.direction, None
    return vector if found is None else found


def _certificate(
    problem: Problem, image: Any, pair: EigenPair, k: int, every: int
) -> Certificate | None:
    if k % every and problem.order > MAX_CHEAP_ORDER:
        return None
    if problem.order <= EXACT_ORDER:  # λ_min is computed, not estimated
        return certify_image(problem, image)
    guess = Bottom(-pair.value - pair.residual, "Lanczos", 1.0, pair.vector)
    cheap = certify_image(problem, image, bottom=guess)
    # A more accurate eigenvalue is only needed near the optimum.
    near = cheap.relative_gap is None or cheap.relative_gap < MAX_SHARPENED_GAP
    return certify_image(problem, image) if near else cheap


def _within(objective: Objective, old: Any, new: Any, limit: int) -> Any:
    """The new image within the rank limit, or the old one if the cut increases F above it."""
    if new.factor.shape[1] <= limit:
        return new
    cut = objective.image(compress(new.factor, limit))
    return cut if objective.value(cut) <= objective.value(old) else old
