"""Certificates: a bound on the distance of a point from the optimum, and its display."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gramian.common import html
from gramian.common.storage import storable
from gramian.objectives import LowerBound

ZERO = 1e-6
"""Floor of the relative gap: an optimum below this fraction of |F(0)| counts as 0."""


@storable
@dataclass(frozen=True)
class Certificate:
    """A proved statement about a point M of a problem with minimum F*.

    Attributes
    ----------
    value : float
        F(M).
    lambda_min : float
        A lower bound on the smallest eigenvalue of ∇F(M): at least 0 at an optimum over the cone;
        −∞ if the bound is that of another dual vector, and this was not computed.
    complementarity : float
        ⟨∇F(M), M⟩: 0 at an optimum over the cone.
    gap : float or None
        An upper bound on F(M) − F*; None if no bound is known.
    relative_gap : float or None
        gap / max(|F(M)|, |F(M) − gap|, 1e-6 |F(0)|). The last term is the reference for an optimum
        of 0. A run has converged if this is at most its `tol`.
    method : str
        The argument that proves the gap.
    proof : str
        How the eigenvalue was bounded: "eigenvalues" (all of them), "Cholesky", "sparse
        Cholesky", "span", "blocks" are proofs; "Lanczos" is an estimate.
    miss : float
        A bound on the probability that the estimate missed an eigenvalue: 0 for a proof, 1 if
        unknown.
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
    """Violation of the linear constraints: ‖𝒜(M) − b‖/(1 + max |b|), and similarly for bounds."""

    @property
    def lower_bound(self) -> float:
        """A lower bound of F on the domain."""
        return -np.inf if self.gap is None else self.value - self.gap

    @property
    def bound(self) -> LowerBound:
        """The lower bound with its argument, how it was computed and its probability of error."""
        return LowerBound(self.lower_bound, self.method, how=self.proof, miss=self.miss)

    @property
    def proved(self) -> bool:
        """Whether the gap is proved, not estimated."""
        return self.miss == 0.0

    def within(self, tol: float) -> bool:
        """Whether the relative gap is at most `tol`.

        Without a bound on the gap, both optimality conditions have to hold to the tolerance:
        ⟨∇F, M⟩, and the possible gain of −λ_min on a matrix of this trace.
        """
        if self.relative_gap is not None:
            return self.relative_gap <= tol
        if self.lambda_min < 0 and self.trace == 0:
            return False
        size = max(abs(self.value), ZERO * self.scale)
        below = -self.lambda_min * self.trace
        return abs(self.complementarity) <= tol * size and below <= tol * size

    def at(self, value: float, trace: float, rounding: float) -> Certificate:
        """The same lower bound for another value of F, with the rounding of that value."""
        if self.gap is None:
            return replace(self, value=value, trace=trace)
        lower = self.lower_bound
        gap = float(max(0.0, value - lower) + rounding)
        share = relative(gap, value, self.scale)
        return replace(self, value=value, trace=trace, gap=gap, relative_gap=share)

    def __str__(self) -> str:
        held = f", violation {self.violation:.1e}" if self.violation else ""
        if self.gap is None:
            return (
                f"F = {self.value:.8g}, no bound on the gap is known here{self._reason()} "
                f"(λ_min {self.lambda_min:.2e}, complementarity {self.complementarity:.2e}){held}"
            )
        sure = "" if self.proved else f", estimated ({self._chance()})"
        return (
            f"F = {self.value:.8g}, at most {self.gap:.2e} ({_relative(self.relative_gap)}) "
            f"above the optimum, by {self.method}{sure}{held}"
        )

    def _reason(self) -> str:
        """Why no bound is known, if there is a reason."""
        return self.method.removeprefix("none")

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        shown = {
            "F(M)": self.value,
            "gap": "no bound is known" if self.gap is None else self.gap,
            "relative gap": self.relative_gap,
            "by": self.method,
            "λ_min": f"{self.lambda_min:.3g} ({self.proof})" if self.proof else self.lambda_min,
            "sure": "proved" if self.proved else self._chance(),
            "violation": self.violation or None,
        }
        return html.facts("certificate", shown)

    def _chance(self) -> str:
        chance = "an unknown probability" if self.miss >= 1 else f"probability {self.miss:.1e}"
        return f"Lanczos misses an eigenvalue with {chance}"


def relative(gap: float, value: float, scale: float = 0.0) -> float:
    """gap / max(|F|, |F − gap|, 1e-6 |F(0)|), 0 for a gap of 0: the definition of relative gap."""
    size = max(abs(value), abs(value - gap), ZERO * abs(scale), np.finfo(float).tiny)
    return 0.0 if gap == 0 else float(gap / size)


def _relative(gap: float | None) -> str:
    return "" if gap is None else f"relative {gap:.1e}"
