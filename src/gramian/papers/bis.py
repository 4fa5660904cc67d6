"""BiS, Algorithm 2: biconvex surrogate minimisation with extrapolation (Hu and Kwok)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.arrays.places import inner, norm
from gramian.bounds import certify_image
from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, at_rest
from gramian.methods.columns import starting_factor
from gramian.objectives import Objective
from gramian.papers import biconvex
from gramian.problem import Problem

DELTA = 0.99
"""δ_ω of eqs. (17) and (18)."""

EPSILON = 1e-6
"""ε of eq. (30), relative to the Lipschitz constant."""

MAX_CAUTION = 64.0
MAX_MU_RATIO = 20.0
"""Upper bound of μ, in units of L."""


@dataclass
class BlockHistory:
    """One of the two blocks: X_{k−1}, X_{k−2} and their Lipschitz constants."""

    now: Array
    before: Array
    L: float
    L_before: float

    def extrapolated(self, omega: float) -> Array:
        """X̂ = X + ω(X − X⁻), eqs. (15)–(18)."""
        weight = min(omega, DELTA * np.sqrt(self.L_before / self.L))
        return self.now + weight * (self.now - self.before)

    def move(self, point: Array, L: float) -> None:
        self.now, self.before, self.L, self.L_before = point, self.now, L, self.L


def bis(
    problem: Problem,
    factor: Array,
    settings: Settings,
    *,
    rule: int = 1,
    extrapolate: bool = True,
    check: int = 20,
) -> Run:
    """min f(X, Y) + ½γ‖X − Y‖² over both, eq. (11), by alternating prox-linear steps:

        X ← αX̂ᵍᵈ + (1 − α)Y,  α = L/(L + γ),  X̂ᵍᵈ = X̂ − ∇_X f(X̂, Y)/L          (23)–(24)

    and the same for Y with X. γ is set by `rule` 1, γ_k = μ_k + ε (30), or 2, the largest μ so far
    (31). The solution is YYᵀ. The paper's (27) is 0/0 at Y = X̂ and unbounded near it, which stops
    both sides: μ is limited to a multiple of L (a γ above L/4 suffices by Theorem 2).
    ω_{k−1} = (t_{k−1} − 1)/t_k. The Lipschitz constants are those along the gradient, as in the
    paper, and may be too small: when F increases, momentum is reset and they are doubled
    temporarily.
    """
    if rule not in (1, 2):
        raise ValueError(f"rule must be 1 (eq. 30) or 2 (eq. 31), got {rule!r}")
    objective = problem.objective
    start = starting_factor(problem, settings) if factor.shape[1] == 0 else factor
    first = max(_curvature(objective, start), 1e-300)
    X, Y = BlockHistory(start, start, first, first), BlockHistory(start, start, first, first)
    t, gamma, value, quiet, k, caution = 1.0, 0.0, np.inf, 0, 0, 1.0
    while quiet < biconvex.MAX_QUIET_ITERATIONS:
        image = objective.image(Y.now)
        new = objective.value(image)
        certificate = certify_image(problem, image) if k % check == 0 else None
        difference = norm(X.now - Y.now) ** 2
        yield Step(Y.now, new, certificate, {"gamma": gamma, "difference": difference})
        quiet = quiet + 1 if value - new <= 1e-15 * abs(new) else 0
        rises = new > value + 1e-12 * abs(value)
        caution = min(2 * caution, MAX_CAUTION) if rises else max(1.0, 0.98 * caution)
        t = 1.0 if rises or not extrapolate else t
        value, k = new, k + 1
        t_next = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
        omega, t = (t - 1) / t_next, t_next
        mu = _step(objective, X, Y.now, omega, gamma, rule, caution)
        gamma = mu + EPSILON * X.L if rule == 1 else max(gamma, mu)
        _step(objective, Y, X.now, omega, gamma, None, caution)
    return at_rest(problem, settings)


def _step(
    objective: Objective,
    side: BlockHistory,
    other: Array,
    omega: float,
    gamma: float,
    rule: int | None,
    caution: float,
) -> float:
    """Move one side by (23); with a rule, first update γ from μ of (27), which is returned."""
    ahead = side.extrapolated(omega)
    slope = biconvex.gradient(objective, ahead, other)
    local = biconvex.lipschitz(objective, ahead, other, slope, side.L)
    L = caution * local
    mu = _mu(L, other - ahead, slope)
    if rule is not None:
        gamma = mu + EPSILON * L if rule == 1 else max(gamma, mu)
    side.move((L * ahead - slope + gamma * other) / (L + gamma), local)
    return mu


def _mu(L: float, difference: Array, slope: Array) -> float:
    """μ = [L + 2 tr((Y − X̂)ᵀ∇f)/‖Y − X̂‖²]₊, eq. (27), limited to a multiple of L."""
    square = inner(difference, difference)
    turn = 2 * inner(difference, slope)
    return float(np.clip(L + turn / max(square, 1e-300), 0.0, MAX_MU_RATIO * L))


def _curvature(objective: Objective, start: Array) -> float:
    slope = biconvex.gradient(objective, start, start)
    size = norm(slope) / max(norm(start), 1e-300)
    return biconvex.lipschitz(objective, start, start, slope, max(size, 1e-300))
