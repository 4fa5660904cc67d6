"""How far from optimal a point can be: one function for every solver and every problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gramian import html
from gramian.backends.arrays import as_double, host, inner
from gramian.backends.errstate import under_own_errstate
from gramian.objectives import LowerBound, SymmetricOperator
from gramian.objectives.pencil import edge_bounds
from gramian.problem import Problem, as_factor
from gramian.proofs import EXACT_ORDER, PATIENCE, Bottom, estimated, lowest
from gramian.storage import storable

ZERO = 1e-6
"""The floor of the relative gap: an optimum smaller than this part of |F(0)| counts as 0."""

TRACE_ERROR = 1e-6
"""How far tr M may be from the trace of its domain, relatively."""

SHARE = 0.05
"""The part of the gap allowed that the accuracy of λ_min may take."""

QUICK_STEPS = 120
"""Products of Lanczos for a certificate on the way, which a proof confirms at the end."""


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
        gap / max(|F(M)|, |F(M) − gap|, 1e-6 |F(0)|). The last is what an optimum of 0 is measured
        by. A run has converged where this is at most its `tol`.
    method : str
        The theorem behind the gap.
    proof : str
        How the eigenvalue behind it was bounded: "eigenvalues" (all of them), "Cholesky", "sparse
        Cholesky", "span", "blocks" are proofs; "Lanczos" is an estimate.
    miss : float
        A bound on the probability that the estimate missed an eigenvalue: 0 for a proof, 1 where
        nothing can be said.
    """

    value: float
    lambda_min: float
    complementarity: float
    gap: float | None
    relative_gap: float | None
    method: str
    trace: float = float("nan")
    """tr M."""
    proof: str = ""
    miss: float = 0.0
    scale: float = 0.0
    """|F(0)|."""
    violation: float = 0.0
    """How far M is from the linear constraints: ‖𝒜(M) − b‖/(1 + max |b|), and so for bounds."""

    @property
    def lower_bound(self) -> float:
        """A number that F never goes below on the domain."""
        return -np.inf if self.gap is None else self.value - self.gap

    @property
    def bound(self) -> LowerBound:
        """The lower bound with the theorem behind it, how it was found and how sure it is."""
        return LowerBound(self.lower_bound, self.method, how=self.proof, miss=self.miss)

    @property
    def proved(self) -> bool:
        """Whether the gap is a theorem, and no estimate."""
        return self.miss == 0.0

    def at(self, value: float, trace: float, rounding: float) -> Certificate:
        """The same lower bound for another value of F, with the rounding of that value."""
        if self.gap is None:
            return replace(self, value=value, trace=trace)
        lower = self.lower_bound
        gap = float(max(0.0, value - lower) + rounding)
        share = relative(gap, value, self.scale)
        return replace(self, value=value, trace=trace, gap=gap, relative_gap=share)

    def __str__(self) -> str:
        if self.gap is None:
            return (
                f"F = {self.value:.8g}, no bound on the gap is known here "
                f"(λ_min {self.lambda_min:.2e}, complementarity {self.complementarity:.2e})"
            )
        held = f", violation {self.violation:.1e}" if self.violation else ""
        sure = "" if self.proved else f", estimated ({self._chance()})"
        return (
            f"F = {self.value:.8g}, at most {self.gap:.2e} ({_relative(self.relative_gap)}) "
            f"above the optimum, by {self.method}{sure}{held}"
        )

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        told = {
            "F(M)": self.value,
            "gap": "no bound is known" if self.gap is None else self.gap,
            "relative gap": self.relative_gap,
            "by": self.method,
            "λ_min": f"{self.lambda_min:.3g} ({self.proof})" if self.proof else self.lambda_min,
            "sure": "proved" if self.proved else self._chance(),
            "violation": self.violation or None,
        }
        return html.facts("certificate", told)

    def _chance(self) -> str:
        chance = "an unknown probability" if self.miss >= 1 else f"probability {self.miss:.1e}"
        return f"Lanczos misses an eigenvalue with {chance}"


B = TypeVar("B", bound=Any)
"""A frozen dataclass with a `value` and the probability `miss` that it is no bound."""


class LowerBounds(Generic[B]):
    """Keeps the highest of several lower bounds on F* together with its probability of error.

    Of estimates the highest is taken, whichever it is: it is wrong with a probability of at most
    the sum of theirs.
    """

    def __init__(self) -> None:
        self._proved: B | None = None
        self._estimated: B | None = None
        self._doubt = 0.0

    def add(self, bound: B) -> None:
        """Take a bound in; one that is not finite says nothing."""
        if not np.isfinite(bound.value):
            return
        if bound.miss == 0:
            if self._proved is None or bound.value > self._proved.value:
                self._proved = bound
            return
        self._doubt += bound.miss
        if self._estimated is None or bound.value > self._estimated.value:
            self._estimated = bound

    @property
    def best(self) -> B | None:
        """The highest bound, None where there is none."""
        proved, estimated = self._proved, self._estimated
        if estimated is None or (proved is not None and proved.value >= estimated.value):
            return proved
        return replace(estimated, miss=min(1.0, self._doubt))


@under_own_errstate
def certify(
    problem: Problem,
    factor: ArrayLike,
    *,
    dual: ArrayLike | None = None,
    tol: float = 1e-6,
    time_limit: float = PATIENCE,
) -> Certificate:
    """Bound F(LLᵀ) − F* by the tightest of the ways that apply to the problem.

    Trace bound: for convex F and any τ ≥ tr M*, F(M) − F* ≤ ⟨∇F, M⟩ + τ·max(0, −λ_min(∇F)).
    Fenchel dual point and strong convexity: see `lower_bounds` of the objectives.

    λ_min is proved, by all eigenvalues up to order 1500 and by a factorisation beyond it, dense,
    sparse or of the span, where one fits into the memory and the time; otherwise it is estimated
    by Lanczos, and the certificate says so.

    Parameters
    ----------
    problem : Problem
    factor : array of shape (n, r)
        L. Over a fixed trace, tr LLᵀ must be it.
    dual : array, optional
        A dual vector w for the bound, as `result.dual` is; by default that of the point itself.
    tol : float
        The relative gap that is of interest: λ_min is found as exactly as this needs.
    time_limit : float
        Seconds that a proof may take, about.
    """
    L = as_factor(factor, problem.order, problem.objective.place)
    L = as_double(L)
    _check_trace(problem, L)
    image = problem.objective.image(L)
    w = None if dual is None else _checked_dual(problem, image, dual)
    return proved_certificate(problem, image, w, tol=tol, seconds=time_limit)[0]


def _checked_dual(problem: Problem, image: Any, dual: ArrayLike) -> Any:
    own = problem.objective.dual(image)
    w = np.asarray(host(dual) if hasattr(dual, "device") else dual, dtype=float)
    if own is None:
        raise ValueError(f"{problem.name!r} has no dual vectors; leave dual out")
    if w.shape != own.shape or not np.all(np.isfinite(w)):
        raise ValueError(f"dual must hold {len(own)} finite numbers, got shape {w.shape}")
    return problem.objective.place.put(w)


def proved_certificate(
    problem: Problem,
    image: Any,
    dual: Any = None,
    *,
    tol: float,
    seconds: float,
    prove: bool = True,
) -> tuple[Certificate, Bottom]:
    """The certificate of a point by a proof, where one fits, and the λ_min that it stands on.

    `dual` is a dual vector that need not be the point's own: the mean of those on the way to it,
    say, which is often nearer to the best.
    """
    objective = problem.objective
    known = _costly(problem, image, dual, seconds) if prove else None
    # Where another bound decides, λ_min is told for information and need not be proved.
    decided = known is not None and np.isfinite(known.value)
    prove = prove and not decided
    if dual is None or decided:
        bottom = proved_bottom(problem, image, tol=tol, seconds=seconds, prove=prove)
        return certify_image(problem, image, bottom=bottom, known=known), bottom
    wanted = _wanted(problem, image, objective.value(image), tol)
    operator = objective.dual_operator(dual)
    bottom = lowest(
        operator, wanted=wanted, seconds=seconds, prove=prove, known=image.factor, rescale=True
    )
    # The point's own λ_min would only be estimated, and must not stand in for what is proved.
    own = None if problem.order <= EXACT_ORDER else Bottom(-np.inf, "")
    known = known_bound(problem, dual, bottom)
    return certify_image(problem, image, bottom=own, known=known, tol=tol), bottom


def _costly(problem: Problem, image: Any, dual: Any, seconds: float) -> LowerBound | None:
    """The best of the bounds that cost more than λ_min."""
    objective = problem.objective
    w = objective.dual(image) if dual is None else dual
    return max(edge_bounds(objective, w, seconds), key=lambda b: b.value, default=None)


def known_bound(problem: Problem, dual: Any, bottom: Bottom) -> LowerBound | None:
    """The best bound of a dual vector with λ_min of its operator, over the cone."""
    bounds = problem.objective.dual_bounds(dual, bottom.value)
    return max((_with_proof(b, bottom) for b in bounds), key=lambda b: b.value, default=None)


def certify_image(
    problem: Problem,
    image: Any,
    *,
    bottom: Bottom | float | None = None,
    known: LowerBound | None = None,
    along: float | None = None,
    tol: float = 1e-6,
) -> Certificate:
    """`certify` for a solver that has the image of its factor at hand.

    `bottom` is a lower bound on λ_min(∇F) that the solver knows already, a number where it is
    proved, `along` is ⟨∇F, M⟩, `known` a lower bound on F* that it got at another point. Beyond
    order 1500 λ_min is estimated unless it is told: `minimize` proves what a run is to end with.
    """
    objective = problem.objective
    value = objective.value(image)
    complementarity, bottom = _slopes(problem, image, value, bottom, along, tol)
    trace = objective.trace(image)
    bounds = [*_trace_bounds(problem, value, complementarity, bottom.value)]
    bounds.append(LowerBound(objective.growth().least, "sum of the least of its terms"))
    if bottom.value > -np.inf:  # otherwise only what costs nothing is asked for
        bounds += [*objective.lower_bounds(image, bottom.value)]
    bounds = [_with_proof(bound, bottom) for bound in bounds]
    bounds += [] if known is None else [known]
    bounds = [bound for bound in bounds if np.isfinite(bound.value)]
    scale = problem.scale
    if not bounds:
        return Certificate(
            value, bottom.value, complementarity, None, None, "none", trace, scale=scale
        )
    best = max(bounds, key=lambda bound: bound.value)
    gap = float(max(0.0, value - best.value) + objective.rounding(image))
    share = relative(gap, value, scale)
    return Certificate(
        value,
        bottom.value,
        complementarity,
        gap,
        share,
        best.method,
        trace,
        best.how,
        best.miss,
        scale,
    )


def _slopes(
    problem: Problem,
    image: Any,
    value: float,
    bottom: Bottom | float | None,
    along: float | None,
    tol: float,
) -> tuple[float, Bottom]:
    """⟨∇F, M⟩ and a lower bound on λ_min(∇F), estimated where none is told."""
    along = problem.objective.complementarity(image) if along is None else along
    if bottom is None or along is None:
        gradient = problem.objective.gradient(image)
        along = inner(image.factor, gradient @ image.factor) if along is None else along
        bottom = _quick_bottom(problem, image, gradient, value, tol) if bottom is None else bottom
    if not isinstance(bottom, Bottom):
        bottom = Bottom(float(bottom), "eigenvalues")
    return along, bottom


def relative(gap: float, value: float, scale: float = 0.0) -> float:
    """gap / max(|F|, |F − gap|, 1e-6 |F(0)|), 0 for a gap of 0: the one definition of it."""
    size = max(abs(value), abs(value - gap), ZERO * abs(scale), np.finfo(float).tiny)
    return 0.0 if gap == 0 else float(gap / size)


def proved_bottom(
    problem: Problem,
    image: Any,
    *,
    tol: float,
    seconds: float,
    start: Any = None,
    prove: bool = True,
) -> Bottom:
    """λ_min(∇F) from below as exactly as a gap of `tol` needs, proved where that fits."""
    objective = problem.objective
    wanted = _wanted(problem, image, objective.value(image), tol)
    return lowest(
        objective.gradient(image),
        wanted=wanted,
        seconds=seconds,
        start=start,
        prove=prove,
        known=image.factor,
        rescale=True,
    )


def _quick_bottom(
    problem: Problem, image: Any, gradient: SymmetricOperator, value: float, tol: float
) -> Bottom:
    if gradient.order <= EXACT_ORDER:
        return lowest(gradient)
    wanted = _wanted(problem, image, value, tol)
    return estimated(gradient, wanted, starts=1, most=QUICK_STEPS)


def _wanted(problem: Problem, image: Any, value: float, tol: float) -> float:
    """The error of λ_min that a relative gap of `tol` can bear."""
    reach = problem.domain.trace or problem.objective.growth().trace_below(value)
    reach = reach or problem.objective.trace(image) or 1.0
    return SHARE * tol * max(abs(value), ZERO * problem.scale) / reach


def _with_proof(bound: LowerBound, bottom: Bottom) -> LowerBound:
    """A bound that stands on λ_min is as sure as that is."""
    return replace(bound, how=bottom.how, miss=bottom.miss) if bound.by_bottom else bound


def _check_trace(problem: Problem, L: Any) -> None:
    trace, fixed = inner(L, L), problem.domain.trace
    if fixed is not None and abs(trace - fixed) > TRACE_ERROR * fixed:
        raise ValueError(
            f"the factor has tr LLᵀ = {trace:.6g}, but this problem is over {problem.domain}; "
            f"scale it by {np.sqrt(fixed / trace) if trace > 0 else np.inf:.6g}"
        )


def _trace_bounds(
    problem: Problem, value: float, complementarity: float, bottom: float
) -> Iterator[LowerBound]:
    """F* ≥ F(M) − ⟨∇F, M⟩ + min over the domain of ⟨∇F, ·⟩, from convexity."""
    least = problem.domain.least(bottom)
    if problem.domain.bounded or bottom >= 0:
        how = "trace bound" if problem.domain.bounded else "convexity"
        yield LowerBound(value - complementarity + least, how, by_bottom=True)
        return
    trace = problem.objective.growth().trace_below(value)
    if trace is not None:
        least = trace * bottom
        yield LowerBound(value - complementarity + least, "trace bound", by_bottom=True)


def _relative(gap: float | None) -> str:
    return "" if gap is None else f"relative {gap:.1e}"
