"""Data exchanged between a constrained method and the referee: points, and advice."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gramian.common.types import Array

PROGRESS_RATIO = 0.9
"""Ratio of an error to the smallest so far up to which it counts as progress."""

MIN_EIGENVALUE_RATIO = 1e-12
"""Eigenvalues of M below this fraction of the largest are omitted from its factor."""


@dataclass(frozen=True)
class Candidate:
    """A factor and multipliers found by a method."""

    factor: Array
    y: Array
    trace: dict[str, float] = field(default_factory=dict)
    """Further columns of the history."""
    primal_ray: Array | None = None
    """A direction that may prove that F has no minimum."""
    dual_ray: Array | None = None
    """Multipliers that may prove that there is no feasible M."""
    sure: bool = False
    """Whether the method considers it a solution: it is certified at any cost."""
    flat_ray: Array | None = None
    """A direction along which F and the constraints may be constant."""


@dataclass
class Guide:
    """Information for a method between its rounds."""

    margin: float = 0.0
    """ε: the method should find a dual point with a slack of at least εI."""
    vector: Array | None = None
    """An eigenvector of the slack with a negative eigenvalue."""
    least: float = 0.0
    """That eigenvalue."""
    gap: float = 0.0
    """Upper bound on F − F* at the best point; 0 if unknown."""

    def negative(self) -> Array | None:
        """The eigenvector if its eigenvalue is negative; returned only once."""
        vector, self.vector = self.vector, None
        return vector if self.least < 0 else None


def factor_of(values: Array, vectors: Array) -> Array:
    """L of LLᵀ = Σ λ v vᵀ over the eigenvalues above `MIN_EIGENVALUE_RATIO` times the largest."""
    kept = values > MIN_EIGENVALUE_RATIO * np.max(values, initial=0.0)
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))
