"""What passes between an outer loop and its judge: a point there, advice back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

NEGLIGIBLE = 1e-12
"""The part of the largest eigenvalue of M below which one is left out of its factor."""


@dataclass(frozen=True)
class Candidate:
    """A factor and multipliers, as a loop has found them."""

    factor: Array
    y: Array
    trace: dict[str, float] = field(default_factory=dict)
    """What the loop tells of itself."""
    primal_ray: Array | None = None
    """A direction that may show that F has no minimum."""
    dual_ray: Array | None = None
    """Multipliers that may show that there is no feasible M."""
    sure: bool = False
    """Whether the loop takes it for a solution: it is looked at whatever that takes."""
    flat_ray: Array | None = None
    """A direction along which F and the constraints may not change."""


@dataclass
class Guide:
    """What a loop is told between its rounds."""

    margin: float = 0.0
    """ε: the loop is to find a dual point with a slack of at least εI."""
    vector: Array | None = None
    """An eigenvector of the slack with a negative eigenvalue."""
    least: float = 0.0
    """That eigenvalue."""
    gap: float = 0.0
    """What the best point is known to be above the optimum by, at most; 0 where nothing is."""

    def negative(self) -> Array | None:
        """The eigenvector, once, where its eigenvalue is negative."""
        vector, self.vector = self.vector, None
        return vector if self.least < 0 else None


def factor_of(values: Array, vectors: Array) -> Array:
    """L of LLᵀ = Σ λ v vᵀ over the eigenvalues above `NEGLIGIBLE` times the largest."""
    kept = values > NEGLIGIBLE * np.max(values, initial=0.0)
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
