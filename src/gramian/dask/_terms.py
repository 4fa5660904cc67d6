"""What shards tell of F, and how two of them are one: of a sum, or of a soft maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.objectives.base import Facts
from gramian.objectives.supports import Growth
from gramian.proofs.base import UNIT

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Terms:
    """What a shard says of F at a point: its value, derivatives, and what rounding may take."""

    value: float
    first: Array
    second: Array | None = None
    rounding: float = 0.0
    slack: Array | float = 0.0
    support: float = 0.0
    """d of the linear function d + ⟨G, ·⟩ below F that touches it here; of sums only."""


def total(a: Terms, b: Terms) -> Terms:
    """F_a + F_b."""
    second = None if a.second is None or b.second is None else a.second + b.second
    return Terms(
        a.value + b.value,
        a.first + b.first,
        second,
        a.rounding + b.rounding,
        a.slack + b.slack,
        a.support + b.support,
    )


def soft(a: Terms, b: Terms, *, mu: float) -> Terms:
    """μ ln(exp(F_a/μ) + exp(F_b/μ)), by the shares π of the two.

    ∇ = Σ π_k ∇F_k and ∇² = Σ π_k (∇²F_k + ∇F_k ∇F_kᵀ/μ) − ∇∇ᵀ/μ.
    """
    value, (pi, rho) = _shares(a.value, b.value, mu)
    first = pi * a.first + rho * b.first
    second = None
    if a.second is not None and b.second is not None:
        apart = a.first - b.first  # the spread of two points: Σ π gg ᵀ − ggᵀ = πρ (g_a − g_b)(…)ᵀ
        second = pi * a.second + rho * b.second + (pi * rho / mu) * np.outer(apart, apart)
    rounding = max(a.rounding, b.rounding) + 8 * UNIT * (abs(max(a.value, b.value)) + 2 * mu)
    return Terms(value, first, second, rounding, pi * a.slack + rho * b.slack)


@dataclass(frozen=True)
class Bent:
    """The second derivative on the factor along D: value, slope s, ⟨s, D⟩ and the product."""

    value: float
    slope: Array
    along: float
    product: Array


def total_bent(a: Bent, b: Bent) -> Bent:
    return Bent(a.value + b.value, a.slope + b.slope, a.along + b.along, a.product + b.product)


def soft_bent(a: Bent, b: Bent, *, mu: float) -> Bent:
    """The same for the soft maximum: the products, and πρ/μ (s_a − s_b)⟨s_a − s_b, D⟩."""
    value, (pi, rho) = _shares(a.value, b.value, mu)
    product = pi * a.product + rho * b.product
    product += (pi * rho / mu) * (a.along - b.along) * (a.slope - b.slope)
    slope = pi * a.slope + rho * b.slope
    return Bent(value, slope, pi * a.along + rho * b.along, product)


def _shares(a: float, b: float, mu: float) -> tuple[float, tuple[float, float]]:
    value = mu * float(np.logaddexp(a / mu, b / mu))
    return value, (float(np.exp((a - value) / mu)), float(np.exp((b - value) / mu)))


@dataclass(frozen=True)
class ShardFacts:
    """What is known of the objective of a shard before it is evaluated."""

    order: int
    facts: Facts
    constant: float
    growth: Growth
    sparse_numbers: int | None = None
    """Number of entries of the gradient if that is sparse, None otherwise."""

    def __add__(self, other: ShardFacts) -> ShardFacts:
        if self.order != other.order:
            raise ValueError(f"shards are of the orders {self.order} and {other.order}")
        return ShardFacts(
            self.order,
            self.facts + other.facts,
            self.constant + other.constant,
            self.growth + other.growth,
            None
            if self.sparse_numbers is None or other.sparse_numbers is None
            else self.sparse_numbers + other.sparse_numbers,
        )
