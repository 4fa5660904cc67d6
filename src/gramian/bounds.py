"""Lower bounds on F* and the construction of certificates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.places import as_double, host, inner
from gramian.certificate import ZERO, Certificate, relative
from gramian.objectives import LowerBound, SymmetricOperator
from gramian.objectives.convexity import not_convex
from gramian.objectives.pencil import edge_bounds
from gramian.problem import Problem, as_factor
from gramian.proofs import EXACT_ORDER, PATIENCE, Bottom, estimated, lowest

TRACE_ERROR = 1e-6
"""Largest relative deviation of tr M from the trace of its domain."""

EIGENVALUE_GAP_FRACTION = 0.05
"""Fraction of the allowed gap that the error of λ_min may use."""

QUICK_PRODUCTS = 120
"""Lanczos products for an intermediate certificate; a final one is proved."""

LEAST_TERMS = "sum of the minima of the terms"
"""Method of a bound that follows from the growth of F alone."""

CONTRADICTION = "none: a lower bound is above F"
"""Method of a certificate whose bound was refuted: F or its conjugate is wrong, or not convex."""

VALUE_ROUNDING = 1e-9
"""Largest difference between F and a bound, or F at the start, that is attributed to rounding;
relative to the size of F."""

UNKNOWN = Bottom(-np.inf, "")
"""No information about λ_min: only bounds without an eigenvalue apply."""

B = TypeVar("B", bound=Any)
"""A frozen dataclass with a `value` and the probability `miss` that it is not a lower bound."""


class LowerBounds(Generic[B]):
    """Keeps the highest of several lower bounds on F* and its probability of error.

    The highest of several estimates fails with a probability of at most the sum of their
    probabilities (union bound).
    """

    def __init__(self) -> None:
        self._proved: B | None = None
        self._estimated: B | None = None
        self._miss = 0.0

    def add(self, bound: B) -> None:
        """Add a bound; a bound that is not finite is ignored."""
        if not np.isfinite(bound.value):
            return
        if bound.miss == 0:
            if self._proved is None or bound.value > self._proved.value:
                self._proved = bound
            return
        self._miss += bound.miss
        if self._estimated is None or bound.value > self._estimated.value:
            self._estimated = bound

    @property
    def best(self) -> B | None:
        """The highest bound; None without one."""
        proved, estimated = self._proved, self._estimated
        if estimated is None or (proved is not None and proved.value >= estimated.value):
            return proved
        return replace(estimated, miss=min(1.0, self._miss))


class Bounds:
    """The lower bounds of a run: certifies points by the best bound and keeps it.

    With `keep_estimates`, bounds that depend on an estimated eigenvalue are kept too. Otherwise
    they apply to their own point only, and `minimize` proves the final certificate.
    """

    def __init__(self, problem: Problem, *, keep_estimates: bool = False) -> None:
        self.problem, self.keep_estimates = problem, keep_estimates
        self._kept: LowerBounds[LowerBound] = LowerBounds()

    @property
    def best(self) -> LowerBound | None:
        """The highest bound so far."""
        return self._kept.best

    def add(self, bound: LowerBound | None) -> None:
        """Keep a bound of this problem, or of a problem whose optimum is at most F*."""
        if bound is not None and (self.keep_estimates or bound.miss == 0):
            self._kept.add(bound)

    def look(
        self,
        image: Any,
        bottom: Bottom | float | None = None,
        *,
        known: LowerBound | None = None,
        along: float | None = None,
    ) -> tuple[Certificate, Any]:
        """The certificate of a point by its own bounds, `known` and the best one kept.

        Also returns the dual vector of the bound, None if it is that of the point itself.
        `bottom` and `along` are as for `certify_image`.
        """
        self.add(known)  # first: the failure probabilities of several estimates add up
        best = max(filter(None, (self.best, known)), key=lambda bound: bound.value, default=None)
        certificate = certify_image(self.problem, image, bottom=bottom, known=best, along=along)
        if best is not None and certificate.lower_bound <= best.value:
            return certificate, best.dual
        self.add(certificate.bound)
        kept = self.best
        if kept is not None and kept.value == certificate.lower_bound:
            certificate = replace(certificate, miss=kept.miss)
        return certificate, None


def certificate_of(
    value: float,
    bound: LowerBound | None,
    *,
    rounding: float = 0.0,
    lambda_min: float = -np.inf,
    complementarity: float = np.nan,
    trace: float = np.nan,
    scale: float = 0.0,
    violation: float = 0.0,
) -> Certificate:
    """The certificate of a point with F = `value` and a lower bound (None: no bound).

    `rounding` bounds the error of F, `scale` is |F(0)|; see `Certificate` for the others.
    """
    if bound is None or not np.isfinite(bound.value):
        bound, gap = LowerBound(-np.inf, "none"), None
    elif not violation and is_above(bound, value, rounding, scale):
        bound, gap = LowerBound(-np.inf, CONTRADICTION), None
    else:
        gap = float(max(0.0, value - bound.value) + rounding)
    return Certificate(
        value=value,
        lambda_min=lambda_min,
        complementarity=complementarity,
        gap=gap,
        relative_gap=None if gap is None else relative(gap, value, scale),
        method=bound.method,
        trace=trace,
        proof=bound.how,
        miss=bound.miss,
        scale=scale,
        violation=violation,
    )


def is_above(bound: LowerBound, value: float, rounding: float, scale: float) -> bool:
    """Whether a feasible point with F = `value` refutes the bound."""
    return bound.value > value + rounding + VALUE_ROUNDING * (abs(value) + scale)


def sum_of(certificates: Sequence[Certificate]) -> Certificate:
    """The certificate of a sum of problems without common variables."""
    gaps = [certificate.gap for certificate in certificates]
    value = sum(certificate.value for certificate in certificates)
    bound = None
    if None not in gaps:
        worst = max(certificates, key=lambda certificate: certificate.miss)
        bound = LowerBound(
            value - sum(gap for gap in gaps if gap is not None),
            "sum over the parts",
            how=worst.proof,
            miss=min(1.0, sum(certificate.miss for certificate in certificates)),
        )
    return certificate_of(
        value,
        bound,
        lambda_min=min(certificate.lambda_min for certificate in certificates),
        complementarity=sum(certificate.complementarity for certificate in certificates),
        trace=sum(certificate.trace for certificate in certificates),
        scale=sum(certificate.scale for certificate in certificates),
        violation=max(certificate.violation for certificate in certificates),
    )


@under_own_errstate
def certify(
    problem: Problem,
    factor: ArrayLike,
    *,
    dual: ArrayLike | None = None,
    tol: float = 1e-6,
    time_limit: float = PATIENCE,
) -> Certificate:
    """`gramian.certify` for a problem without constraints."""
    L = as_factor(factor, problem.order, problem.objective.place)
    L = as_double(L)
    _check_trace(problem, L)
    image = problem.objective.image(L)
    w = None if dual is None else _checked_dual(problem, image, dual)
    found = proved_certificate(problem, image, w, tol=tol, seconds=time_limit)[0]
    return without_convexity(problem, host(L), found)


def without_convexity(problem: Problem, L: Any, certificate: Certificate) -> Certificate:
    """The certificate, without its bound if a loss of the user is found not to be convex."""
    if certificate.gap is None or certificate.method == LEAST_TERMS:
        return certificate
    part = not_convex(problem.objective, L)
    if not part:
        return certificate
    reason = f"none: {part} is not convex"
    return replace(certificate, gap=None, relative_gap=None, method=reason, proof="", miss=0.0)


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
    """The certificate of a point, proved if the proof is feasible, and the λ_min that it uses.

    `dual` is a dual vector, not necessarily that of the point: for example the mean over the
    iterates, which is often closer to the dual optimum.
    """
    objective = problem.objective
    known = _best_expensive_bound(problem, image, dual, seconds) if prove else None
    # If another bound decides, λ_min is reported for information and need not be proved.
    decided = known is not None and np.isfinite(known.value)
    prove = prove and not decided
    # λ_min of the point itself would only be estimated, and must not replace the proved one.
    own = None if problem.order <= EXACT_ORDER else UNKNOWN
    direct = dual is None or decided
    bottom = lowest(
        objective.gradient(image) if direct else objective.dual_operator(dual),
        wanted=_eigenvalue_tolerance(problem, image, objective.value(image), tol),
        seconds=seconds,
        prove=prove,
        known=image.factor,
        rescale=True,
    )
    if direct:
        return certify_image(problem, image, bottom=bottom, known=known), bottom
    below = known_bound(problem, dual, bottom)
    return certify_image(problem, image, bottom=own, known=below, tol=tol), bottom


def _best_expensive_bound(
    problem: Problem, image: Any, dual: Any, seconds: float
) -> LowerBound | None:
    """The best of the bounds that cost more than λ_min."""
    objective = problem.objective
    w = objective.dual(image) if dual is None else dual
    return max(edge_bounds(objective, w, seconds), key=lambda b: b.value, default=None)


def known_bound(problem: Problem, dual: Any, bottom: Bottom) -> LowerBound | None:
    """The best bound of a dual vector over the cone, given λ_min of its operator."""
    bounds = problem.objective.dual_bounds(dual, bottom.value)
    best = max((_with_proof(b, bottom) for b in bounds), key=lambda b: b.value, default=None)
    return None if best is None else replace(best, dual=dual)


def certify_image(
    problem: Problem,
    image: Any,
    *,
    bottom: Bottom | float | None = None,
    known: LowerBound | None = None,
    along: float | None = None,
    tol: float = 1e-6,
) -> Certificate:
    """`certify` for a solver that already has the image of its factor.

    `bottom` is a known lower bound on λ_min(∇F) (a float if it is proved), `along` is ⟨∇F, M⟩,
    `known` a lower bound on F* from another point. Above order 1500 λ_min is estimated if it is
    not given; `minimize` proves the final certificate.
    """
    objective = problem.objective
    value, rounding = objective.value(image), objective.rounding(image)
    complementarity, bottom = _slopes(problem, image, value, bottom, along, tol)
    bounds = [*_trace_bounds(problem, value, complementarity, bottom.value)]
    bounds.append(LowerBound(objective.growth().least, LEAST_TERMS))
    if bottom.value > -np.inf:  # otherwise only bounds without an eigenvalue apply
        bounds += [*objective.lower_bounds(image, bottom.value)]
    bounds = [_with_proof(bound, bottom) for bound in bounds]
    bounds += [] if known is None else [known]
    finite = [bound for bound in bounds if np.isfinite(bound.value)]
    if image.factor.shape[1] and any(is_above(b, value, rounding, problem.scale) for b in finite):
        # Bounds are valid for any z, but F of an image that a line search has updated may be off.
        image = objective.image(image.factor)
        value, rounding = objective.value(image), objective.rounding(image)
    # An estimate above F missed an eigenvalue. A proof above F is reported by `certificate_of`.
    kept = [b for b in finite if not (b.miss and is_above(b, value, rounding, problem.scale))]
    return certificate_of(
        value,
        max(kept, key=lambda bound: bound.value, default=None),
        rounding=rounding,
        lambda_min=bottom.value,
        complementarity=complementarity,
        trace=objective.trace(image),
        scale=problem.scale,
    )


def _slopes(
    problem: Problem,
    image: Any,
    value: float,
    bottom: Bottom | float | None,
    along: float | None,
    tol: float,
) -> tuple[float, Bottom]:
    """⟨∇F, M⟩ and a lower bound on λ_min(∇F), which is estimated if not given."""
    along = problem.objective.complementarity(image) if along is None else along
    if bottom is None or along is None:
        gradient = problem.objective.gradient(image)
        along = inner(image.factor, gradient @ image.factor) if along is None else along
        bottom = (
            _estimated_bottom(problem, image, gradient, value, tol) if bottom is None else bottom
        )
    if not isinstance(bottom, Bottom):
        bottom = Bottom(float(bottom), "eigenvalues")
    return along, bottom


def _estimated_bottom(
    problem: Problem, image: Any, gradient: SymmetricOperator, value: float, tol: float
) -> Bottom:
    if gradient.order <= EXACT_ORDER:
        return lowest(gradient)
    wanted = _eigenvalue_tolerance(problem, image, value, tol)
    return estimated(gradient, wanted, starts=1, most=QUICK_PRODUCTS)


def _eigenvalue_tolerance(problem: Problem, image: Any, value: float, tol: float) -> float:
    """The error of λ_min that a relative gap of `tol` permits."""
    reach = problem.domain.trace or problem.objective.growth().trace_below(value)
    reach = reach or problem.objective.trace(image) or 1.0
    return EIGENVALUE_GAP_FRACTION * tol * max(abs(value), ZERO * problem.scale) / reach


def _with_proof(bound: LowerBound, bottom: Bottom) -> LowerBound:
    """Copy the proof and the probability of error from λ_min to a bound that depends on it."""
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
