"""The augmented Lagrangian of the dual, with a semismooth Newton method for its subproblems.

For F = ⟨C, M⟩ the dual is max of y⁺·l − y⁻·u over S = C − 𝒜*(y) ⪰ 0. With a penalty σ, M as its
multiplier and s the values 𝒜(M) within their bounds (Zhao, Sun and Toh 2010, eqs. 9 to 19):

    W(y) = M − σ(C − 𝒜*(y)),    p(y) = the point of [l, u] nearest to s − σy
    min over y of  φ(y) = ‖W₊‖²/(2σ) − p·y − ‖p − s‖²/(2σ),    ∇φ = 𝒜(W₊) − p

and then M ← W₊, s ← p. φ is convex and ∇φ piecewise smooth: with W = QΛQᵀ, its columns Q₁ for the k
positive eigenvalues, and H = 𝒜*(d), a generalised derivative of ∇φ is

    d ↦ σ𝒜(Q(Ω ∘ QᵀHQ)Qᵀ) + σ(d where p is not at a bound),   Ω = [1, ν; νᵀ, 0],   ν = λ₁/(λ₁ − λ₂)

which takes two products of n × n with n × k; if k > n/2, of the other columns, by 𝒜𝒜* minus the
same with 1 − Ω. Steps are computed by conjugate gradients and halved until φ decreases enough.
Every step takes an eigenvalue decomposition, as in the boundary point method, but there are five to
ten times fewer. The method is for moderate order and many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide, factor_of
from gramian.linalg import conjugate_gradient
from gramian.linalg.quasi_newton import ARMIJO_FRACTION
from gramian.linalg.tolerances import ROUNDING
from gramian.methods.base import Settings

GRADIENT_PER_CHANGE, GRADIENT_IN_TOLERANCES = 0.2, 1e-2
"""‖∇φ‖ at which a subproblem ends, relative to the change of M, and in any case relative to the
tolerance."""

SOLUTION_RESIDUAL_RATIO, FINAL_RESIDUAL_RATIO = 10.0, 1e-4
"""Largest residual, in units of the latter, at which M is reported as a solution, and at which the
run ends."""

MAX_NEWTON_STEPS, MAX_SUBPROBLEMS = 30, 100
"""Maximum number of Newton steps of a subproblem, and of subproblems."""

MAX_PRODUCTS, CG_RESIDUAL = 300, 0.03
"""Maximum number of products of a step, and its residual relative to ‖∇φ‖."""

DERIVATIVE_RIDGE = 0.1
"""Ridge added to the derivative, in units of σ‖∇φ‖²."""

MAX_TRIALS = 12
"""Trial steps of a line search."""

PENALTY_RATIO, MANY_STEPS = 2.0, 8
"""Factor by which σ changes, and the number of steps above which it decreases."""

RAY_TRACE_GROWTH = 1.5
"""Growth of the trace of M in one subproblem from which it may diverge along a ray."""


class ScaledProgram:
    """The problem with ‖A_k‖ = 1, and C and right-hand side of norm 1."""

    def __init__(self, model: Model) -> None:
        assert model.rows is not None and model.linear is not None
        self.model = model
        self.A = sp.csr_array(sp.diags_array(1.0 / model.norms) @ model.rows.whole())
        self.At = sp.csr_array(self.A.T)
        self.C = model.linear.dense() / model.left
        ends = (model.bounds.lower, model.bounds.upper)
        self.lower, self.upper = (end / model.norms / model.right for end in ends)

    def of(self, M: Array) -> Array:
        """𝒜(M)."""
        return self.A @ M.ravel()

    def adjoint(self, y: Array) -> Array:
        """𝒜*(y)."""
        return np.reshape(self.At @ y, self.C.shape)

    def weights(self, p: Array) -> Array:
        """⟨A_k, Π(A_k)⟩ approximately, for a projector with diagonal p."""
        i, j = np.divmod(self.A.indices, self.C.shape[0])
        entries = self.A.data**2 * (p[i] + p[j] - p[i] * p[j])
        weighed = sp.csr_array((entries, self.A.indices, self.A.indptr), shape=self.A.shape)
        return np.asarray(weighed.sum(axis=1)).ravel()


@dataclass(frozen=True, eq=False)
class Subproblem:
    """M, s and σ, which define φ."""

    scaled: ScaledProgram
    cost: Array
    M: Array
    s: Array
    sigma: float

    def at(self, y: Array) -> DualIterate:
        clock.check()
        W = self.M - self.sigma * (self.cost - self.scaled.adjoint(y))
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        return DualIterate(self, y, values, vectors)


@dataclass(frozen=True, eq=False)
class DualIterate:
    """y, with the eigenvalues (in ascending order) and eigenvectors of W(y)."""

    centre: Subproblem
    y: Array
    values: Array
    vectors: Array

    @property
    def below(self) -> int:
        """Number of eigenvalues ≤ 0."""
        return int(np.searchsorted(self.values, 0.0, side="right"))

    @cached_property
    def positive(self) -> Array:
        """W₊."""
        kept = slice(self.below, None)
        return (self.vectors[:, kept] * self.values[kept]) @ self.vectors[:, kept].T

    @cached_property
    def p(self) -> Array:
        centre = self.centre
        moved = centre.s - centre.sigma * self.y
        return np.clip(moved, centre.scaled.lower, centre.scaled.upper)

    @cached_property
    def value(self) -> float:
        centre = self.centre
        away = float(np.sum((self.p - centre.s) ** 2))
        above = float(np.sum(self.values[self.below :] ** 2))
        return (above - away) / (2 * centre.sigma) - float(self.p @ self.y)

    @cached_property
    def gradient(self) -> Array:
        return self.centre.scaled.of(self.positive) - self.p

    @cached_property
    def change(self) -> float:
        """‖(W₊, p) − (M, s)‖/σ: the dual residual."""
        moved = np.linalg.norm(self.positive - self.centre.M)
        return float(np.hypot(moved, np.linalg.norm(self.p - self.centre.s))) / self.centre.sigma

    def derivative(self) -> tuple[Callable[[Array], Array], Array]:
        """d ↦ ∂(∇φ)d, and approximately its diagonal."""
        scaled, sigma, low = self.centre.scaled, self.centre.sigma, self.below
        n, mirrored = self.values.size, 2 * self.below < self.values.size
        few = slice(0, low) if mirrored else slice(low, n)
        others = slice(low, n) if mirrored else slice(0, low)
        Q, Q1 = self.vectors, np.ascontiguousarray(self.vectors[:, few])
        weight = np.full((n, Q1.shape[1]), 0.5)
        own, other = np.abs(self.values[few]), np.abs(self.values[others])
        weight[others] = own / (own + other[:, None])
        inside = np.where(self.p == self.centre.s - sigma * self.y, 1.0, 0.0)
        inside[scaled.lower == scaled.upper] = 0.0
        normal = scaled.A @ scaled.At if mirrored else None

        def product(d: Array) -> Array:
            seen = 2 * scaled.of(Q1 @ (Q @ (weight * (Q.T @ (scaled.adjoint(d) @ Q1)))).T)
            seen = seen if normal is None else normal @ d - seen
            return sigma * (seen + inside * d)

        share = np.einsum("ij,ij->i", Q1, Q1)
        diagonal = scaled.weights(1 - share if mirrored else share)
        return product, sigma * (diagonal + inside)

    @property
    def factor(self) -> Array:
        """L of M = LLᵀ, in the units of the problem."""
        return factor_of(self.values, self.vectors) * np.sqrt(self.centre.scaled.model.right)


def dual_newton(
    model: Model,
    factor: Array,
    y: Array,
    settings: Settings,
    guide: Guide,
    *,
    penalty: float = 1.0,
) -> Iterator[Candidate]:
    """Solve the subproblems in y in turn, and yield a point after each."""
    scaled, n = ScaledProgram(model), model.order
    M, y = factor @ factor.T / model.right, y * model.norms / model.left
    s, sigma, steps = np.clip(scaled.of(M), scaled.lower, scaled.upper), penalty, 0
    unit, exact = model.left / model.norms, GRADIENT_IN_TOLERANCES * settings.tol
    for round in range(MAX_SUBPROBLEMS):
        cost = scaled.C - (guide.margin / model.left) * np.eye(n) if guide.margin else scaled.C
        before = y
        point, taken = _solved(Subproblem(scaled, cost, M, s, sigma).at(y), exact)
        y, steps, off = point.y, steps + taken, float(np.linalg.norm(point.gradient))
        least = max(off, point.change)
        record = {"violation": off, "penalty": sigma, "steps": float(steps)}
        grown = _growth(point) if round else None
        ray = (y - before) * unit if round else None
        multipliers = model.bounds.signed(y * unit)
        yield Candidate(
            point.factor, multipliers, record, grown, ray, least <= SOLUTION_RESIDUAL_RATIO * exact
        )
        if least <= FINAL_RESIDUAL_RATIO * exact:
            return
        if off > max(point.change, exact):  # only a solution updates M
            sigma /= PENALTY_RATIO**2
            continue
        M, s = np.asarray(point.positive), point.p
        if off < GRADIENT_PER_CHANGE * point.change:
            sigma *= PENALTY_RATIO
        elif taken > MANY_STEPS:
            sigma /= PENALTY_RATIO


def _growth(point: DualIterate) -> Array | None:
    """A factor of (W₊ − M)₊ if M grows as along a ray."""
    if not np.trace(point.positive) > RAY_TRACE_GROWTH * np.trace(point.centre.M):
        return None
    return factor_of(*np.linalg.eigh(point.positive - point.centre.M))


def _solved(point: DualIterate, least: float) -> tuple[DualIterate, int]:
    """Newton steps until ∇φ is small relative to the change of M."""
    for taken in range(MAX_NEWTON_STEPS):
        off = float(np.linalg.norm(point.gradient))
        if off <= max(GRADIENT_PER_CHANGE * point.change, least):
            return point, taken
        after = _step(point, off, GRADIENT_PER_CHANGE * point.change)
        if after is None:
            return point, taken
        point = after
    return point, MAX_NEWTON_STEPS


def _step(point: DualIterate, off: float, wanted: float) -> DualIterate | None:
    """The point after conjugate gradients and halving; None if φ does not decrease."""
    product, diagonal = point.derivative()
    ridge = DERIVATIVE_RIDGE * point.centre.sigma * min(off, 1e-2) ** 2
    goal = max(CG_RESIDUAL * off, 0.3 * wanted)
    scale = np.maximum(diagonal, 1e-3 * float(np.max(diagonal, initial=0.0))) + ridge

    def ridged(d: Array) -> Array:
        clock.check()
        return product(d) + ridge * d

    newton = conjugate_gradient(
        ridged, -point.gradient, steps=MAX_PRODUCTS, precondition=lambda r: r / scale, residual=goal
    ).x
    # If W has few positive eigenvalues the derivative may be 0; then the gradient is used.
    for direction in (newton, -point.gradient / point.centre.sigma):
        after = _along(point, direction)
        if after is not None:
            return after
    return None


def _along(point: DualIterate, direction: Array) -> DualIterate | None:
    """The first point of y + direction, y + direction/2, … at which φ decreases enough."""
    slope, length = float(point.gradient @ direction), 1.0
    for _ in range(MAX_TRIALS):
        after = point.centre.at(point.y + length * direction)
        if after.value <= point.value + ARMIJO_FRACTION * length * slope + ROUNDING * abs(
            point.value
        ):
            return after
        length /= 2
    return None
