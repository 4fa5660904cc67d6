"""A kernel in a basis of few smooth eigenvectors: M = QYQᵀ, thesis eqs. (3.11) and (3.12).

The columns of Q are the smoothest eigenvectors of a graph Laplacian. This restricts the problem:
bounds hold among the kernels of this form only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gramian.common.types import Array
from gramian.maps import Congruence, LinearMap
from gramian.reductions.base import Substitution


@dataclass(frozen=True)
class Waves(Substitution):
    """M = QYQᵀ with the columns of Q orthonormal."""

    matrix: Any
    """Q."""
    whole: ClassVar[bool] = False

    def map(self, base: LinearMap) -> Congruence:
        """Y ↦ 𝒜(QYQᵀ)."""
        return Congruence(base, self.matrix)

    def coordinates(self, L: Array) -> Array:
        """QᵀL."""
        return self.matrix.T @ L
