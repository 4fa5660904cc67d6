"""How far from optimal a point can be: one function for every solver and every problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from gramian.eigen import leading_eigenpair
from gramian.objectives import LowerBound, SymmetricOperator
from gramian.problem import Problem, as_factor
from gramian.storage import storable

DENSE_ORDER = 1500
"""Up to this order λ_min comes from a full eigenvalue computation, which cannot miss it."""


@storable
@dataclass(frozen=True)
class Certificate:
    """What is proved about a point M of a problem with minimum F*.

    Attributes
    ----------
    value : float
        F(M).
    lambda_min : float
        A lower bound on the smallest eigenvalue of ∇F(M): at least 0 at an optimum over the cone.
    complementarity : float
        ⟨∇F(M), M⟩: 0 at an optimum over the cone.
    gap : float or None
        F(M) − F* is at most this; None where no true bound is known.
    relative_gap : float or None
        gap / max(|F(M)|, |F(M) − gap|).
    method : str
        The theorem behind the gap.
    """

    value: float
    lambda_min: float
    complementarity: float
    gap: float | None
    relative_gap: float | None
    method: str
    trace: float = float("nan")
    """tr M."""

    @property
    def lower_bound(self) -> float:
        """A number that F never goes below on the domain."""
        return -np.inf if self.gap is None else self.value - self.gap

    def __str__(self) -> str:
        if self.gap is None:
            return (
                f"F = {self.value:.8g}, no bound on the gap is known here "
                f"(λ_min {self.lambda_min:.2e}, complementarity {self.complementarity:.2e})"
            )
        return (
            f"F = {self.value:.8g}, at most {self.gap:.2e} ({_relative(self.relative_gap)}) "
            f"above the optimum, by {self.method}"
        )


def certify(problem: Problem, factor: ArrayLike) -> Certificate:
    """Bound F(LLᵀ) − F* by the tightest of the ways that apply to the problem.

    Trace bound: for convex F and any τ ≥ tr M*, F(M) − F* ≤ ⟨∇F, M⟩ + τ·max(0, −λ_min(∇F)).
    Fenchel dual point and strong convexity: see `lower_bounds` of the objectives.
    """
    L = as_factor(factor, problem.order).astype(float, copy=False)
    image = problem.objective.image(L)
    costly = [*problem.objective.costly_bounds(image)]
    return certify_image(problem, image, known=max(costly, key=lambda b: b.value, default=None))


def certify_image(
    problem: Problem,
    image: Any,
    *,
    bottom: float | None = None,
    known: LowerBound | None = None,
) -> Certificate:
    """`certify` for a solver that has the image of its factor at hand.

    `bottom` is a lower bound on λ_min(∇F) that the solver knows already, `known` a lower bound
    on F* that it got at another point.
    """
    objective = problem.objective
    value = objective.value(image)
    gradient = objective.gradient(image)
    complementarity = float(np.sum(image.factor * (gradient @ image.factor)))
    bottom = lowest_eigenvalue(gradient) if bottom is None else bottom
    trace = float(np.sum(image.factor * image.factor))
    bounds = [*_trace_bounds(problem, value, complementarity, bottom)]
    bounds.append(LowerBound(objective.growth().least, "sum of the least of its terms"))
    bounds += [*objective.lower_bounds(image, bottom)]
    bounds += [] if known is None else [known]
    bounds = [bound for bound in bounds if np.isfinite(bound.value)]
    if not bounds:
        return Certificate(value, bottom, complementarity, None, None, "none", trace)
    best = max(bounds, key=lambda bound: bound.value)
    gap = float(max(0.0, value - best.value) + rounding(value, objective.constant))
    share = relative(gap, value, best.value)
    return Certificate(value, bottom, complementarity, gap, share, best.method, trace)


def relative(gap: float, value: float, lower: float) -> float:
    """gap / max(|F|, |lower bound|), 0 for a gap of 0."""
    return 0.0 if gap == 0 else float(gap / max(abs(value), abs(lower), np.finfo(float).tiny))


def rounding(value: float, constant: float) -> float:
    """What F itself can be off by in floating point: a gap below it would claim too much."""
    return float(16 * np.finfo(float).eps * max(abs(value), abs(constant)))


def lowest_eigenvalue(gradient: SymmetricOperator) -> float:
    """A lower bound on λ_min: exact up to rounding at moderate order, else Lanczos less residual.

    A Krylov estimate of λ_min lies above it; its residual says how far an eigenvalue can be.
    """
    if gradient.order <= DENSE_ORDER:
        G = gradient.dense()
        if not np.all(np.isfinite(G)):
            raise FloatingPointError("the gradient is not finite")
        lowest = scipy.linalg.eigvalsh(G, subset_by_index=[0, 0])[0]
        return float(lowest - 8 * np.finfo(float).eps * np.linalg.norm(G))
    pair = leading_eigenpair(-gradient, tol=1e-7, random_state=0)
    return float(-pair.value - pair.residual)


def _trace_bounds(
    problem: Problem, value: float, complementarity: float, bottom: float
) -> Iterator[LowerBound]:
    """F* ≥ F(M) − ⟨∇F, M⟩ + min over the domain of ⟨∇F, ·⟩, from convexity."""
    if problem.domain.trace is not None:
        least = problem.domain.trace * bottom
        yield LowerBound(value - complementarity + least, "trace bound")
        return
    if bottom >= 0:
        yield LowerBound(value - complementarity, "convexity")
        return
    trace = problem.objective.trace_bound(value)
    if trace is not None:
        yield LowerBound(value - complementarity + trace * bottom, "trace bound")


def _relative(gap: float | None) -> str:
    return "" if gap is None else f"relative {gap:.1e}"
