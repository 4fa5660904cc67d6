"""False claims of the library, found by values in extended precision.

A certificate claims that no feasible point lies below value − gap. One feasible point below that
is enough to show it false, whoever found the point.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks._attack.formulas import LD, Formula, Valued

FALSE_VALUE, FALSE_GAP = "false value", "false gap"
FALSE_UNBOUNDED, FALSE_CONVERGED = "false UNBOUNDED", "false CONVERGED"
HANG, TRACEBACK = "hang", "traceback"
KINDS = (FALSE_GAP, FALSE_VALUE, FALSE_UNBOUNDED, FALSE_CONVERGED, HANG, TRACEBACK)

FLOOR = 1e-6
"""`minimize` divides a gap by |F|, or by this fraction of |F(0)| if the optimum is near 0."""
NOISE = 1e-15
"""Relative to the size of F: smaller differences prove nothing."""
NORMWISE = 1e-13
"""Resolution of float64, relative to F at the multiple of I with the same trace."""
WITHOUT_BOUND = 100.0
"""Factor of the tolerance if no bound is known: convergence then refers to residuals only."""


@dataclass(frozen=True)
class Claim:
    """A claim of the library about a factor."""

    by: str
    factor: np.ndarray
    value: float
    gap: float | None
    method: str = ""
    status: str | None = None
    tol: float = 0.0
    limited: bool = False
    """Whether the rank was limited: then F need not be optimal."""


@dataclass
class Truth:
    """The lowest value of any feasible point in extended precision, plus its rounding error."""

    formula: Formula
    value: Any = np.inf
    by: str = "nobody"
    factor: np.ndarray | None = None
    seen: dict[int, tuple[np.ndarray, Valued]] = field(default_factory=dict)

    def at(self, factor: np.ndarray) -> Valued:
        """F at a factor, evaluated once per array."""
        if id(factor) not in self.seen:
            self.seen[id(factor)] = factor, self.formula(factor)
        return self.seen[id(factor)][1]

    def offer(self, by: str, factor: np.ndarray) -> Valued | None:
        """Evaluate a point and keep it if it is the lowest."""
        if not np.all(np.isfinite(factor)):
            return None
        if self.formula.trace is not None and not np.any(factor):
            return None
        found = self.at(factor)
        if np.isfinite(found.value) and found.value + found.slack < self.value:
            self.value, self.by, self.factor = found.value + found.slack, by, factor
        return found


def judge(
    claims: Iterable[Claim], truth: Truth, bounded: bool | None
) -> tuple[list[dict[str, Any]], int]:
    """All false claims, and the number of points with a certified gap."""
    alarms: list[dict[str, Any]] = []
    certified = 0
    proved = bounded is True
    for claim in claims:
        certified += claim.gap is not None
        own = truth.at(claim.factor) if np.all(np.isfinite(claim.factor)) else None
        for kind, reason in _flaws(claim, own, truth, bounded, proved):
            alarms.append(_alarm(kind, reason, claim, truth))
    return alarms, certified


def _flaws(
    claim: Claim, own: Valued | None, truth: Truth, bounded: bool | None, proved: bool
) -> Iterable[tuple[str, str]]:
    if own is None or not np.isfinite(claim.value):
        yield FALSE_VALUE, "the point or its value is not finite"
        return
    floor = NOISE * LD(truth.formula.unit())
    off = abs(LD(claim.value) - own.value)
    if off > own.slack + floor and off > _of_its_size(claim.factor, truth):
        yield FALSE_VALUE, f"off by {off:.2e}, rounding explains {own.slack + floor:.1e}"
    if claim.gap is not None:
        lower = LD(claim.value) - LD(claim.gap)
        excess = lower - truth.value - own.slack - floor
        if np.isnan(claim.gap) or claim.gap < 0:
            yield FALSE_GAP, f"a gap of {claim.gap}"
        elif excess > 0:
            true_gap = LD(claim.value) - truth.value
            yield FALSE_GAP, f"gap {claim.gap:.2e}, but {truth.by} lies {true_gap:.2e} below"
    if claim.status == "UNBOUNDED" and proved:
        yield FALSE_UNBOUNDED, "bounded below by construction"
    if claim.status == "CONVERGED":
        yield from _converged(claim, own, truth, bounded)


def _of_its_size(factor: np.ndarray, truth: Truth) -> Any:
    """Rounding error of F at the multiple of I with the same trace, where large terms cancel."""
    n = factor.shape[0]
    even = np.sqrt(float(np.sum(factor * factor)) / n) * np.eye(n)
    return NORMWISE * abs(truth.formula(even).value)


def _converged(
    claim: Claim, own: Valued, truth: Truth, bounded: bool | None
) -> Iterable[tuple[str, str]]:
    if bounded is False:
        yield FALSE_CONVERGED, "there is no minimum"
        return
    scale, value = FLOOR * truth.formula.at_zero(), LD(claim.value)
    noise = NOISE * LD(truth.formula.unit())
    if claim.gap is not None:
        allowed = claim.tol * max(abs(value), abs(value - LD(claim.gap)), scale)
        if claim.gap > allowed * (1 + 1e-9) + noise:
            yield FALSE_CONVERGED, f"gap {claim.gap:.2e} over the tolerance {allowed:.2e}"
            return
    slack = 1.0 if claim.gap is not None else WITHOUT_BOUND
    allowed = slack * claim.tol * max(abs(value), abs(truth.value), scale)
    below = value - truth.value - own.slack - noise
    if below > allowed * (1 + 1e-9) and not claim.limited:
        yield FALSE_CONVERGED, f"{truth.by} lies {below:.2e} below, tolerance {allowed:.1e}"


def _alarm(kind: str, reason: str, claim: Claim, truth: Truth) -> dict[str, Any]:
    return {
        "kind": kind,
        "reason": reason,
        "by": claim.by,
        "method": claim.method,
        "status": claim.status,
        "value": float(claim.value),
        "gap": claim.gap,
        "best": float(truth.value),
        "best_by": truth.by,
    }
