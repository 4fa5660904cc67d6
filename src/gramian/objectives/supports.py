"""Feasible dual points: linear functions below F, changed until their slope is PSD.

If F(N) ≥ d + ⟨G, N⟩ for every N ⪰ 0 and G ⪰ 0, then F ≥ d. The slope ∇F(M) of a point is usually
not PSD, and one scalar makes it so: it is scaled towards the linear term of F, or shifted along
the identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LowerBound:
    """A lower bound of F on the domain, and the argument that proves it."""

    value: float
    method: str
    by_bottom: bool = False
    """Whether it depends on the bound on λ_min(∇F) passed to the objective."""
    how: str = ""
    """How its eigenvalue was computed, if any."""
    miss: float = 0.0
    """The probability that it is not valid: 0 unless an eigenvalue is estimated."""
    dual: Any = None
    """Its dual vector, if that is not the dual vector of the point."""


@dataclass(frozen=True)
class Growth:
    """F(M) ≥ floor + slope·t + bend·t² over the cone, t = tr M, with bend ≥ 0."""

    floor: float = -np.inf
    slope: float = -np.inf
    bend: float = 0.0

    def __add__(self, other: Growth) -> Growth:
        return Growth(self.floor + other.floor, self.slope + other.slope, self.bend + other.bend)

    @property
    def least(self) -> float:
        """The smallest value over t ≥ 0 that this allows."""
        if self.slope >= 0:
            return self.floor
        return self.floor - self.slope**2 / (4 * self.bend) if self.bend > 0 else -np.inf

    def trace_below(self, value: float) -> float | None:
        """The largest trace compatible with a value of F, None if there is no limit."""
        room = value - self.floor
        if not (np.isfinite(room) and np.isfinite(self.slope)):
            return None
        room = max(room, 0.0)
        if self.bend > 0:
            root = np.sqrt(self.slope**2 + 4 * self.bend * room)
            if self.slope > 0:
                return float(2 * room / (root + self.slope))
            return float((root - self.slope) / (2 * self.bend))
        return float(room / self.slope) if self.slope > 0 else None


@dataclass(frozen=True)
class Support:
    """d and G with F(N) ≥ d + ⟨G, N⟩ over the cone, and d as a function of changes of G."""

    value: float
    floor: float = -np.inf
    """c with C ⪰ cI for the linear term C of F."""
    shrunk: Callable[[float], float] | None = None
    """s ↦ d for the slope sG + (1 − s)C, 0 ≤ s ≤ 1."""
    shifted: Callable[[float], float] | None = None
    """t ↦ d for the slope G + tI."""


def total(parts: Sequence[Support]) -> Support:
    """The sum of supports, one per part of a sum; shifts the part with the smallest cost."""
    value = sum(part.value for part in parts)
    shrinks = [part.shrunk for part in parts]
    shifts = [(part.value, part.shifted) for part in parts if part.shifted is not None]

    def shrunk(s: float) -> float:
        return sum(shrink(s) for shrink in shrinks if shrink is not None)

    def shifted(t: float) -> float:
        return max(value - own + shift(t) for own, shift in shifts)

    return Support(
        value,
        sum(part.floor for part in parts),
        shrunk if all(shrinks) else None,
        shifted if shifts else None,
    )


def feasible(support: Support, bottom: float) -> Iterator[LowerBound]:
    """The bounds of a support whose slope has λ_min ≥ `bottom`: s = c/(c − bottom), t = −bottom."""
    if bottom >= 0:
        yield _bound(support.value)
        return
    if not np.isfinite(bottom):
        return
    if support.floor > 0 and support.shrunk is not None:
        yield _bound(support.shrunk(support.floor / (support.floor - bottom)))
    if support.shifted is not None:
        yield _bound(support.shifted(-bottom))


def _bound(value: float) -> LowerBound:
    return LowerBound(value, "Fenchel dual point", by_bottom=True)
