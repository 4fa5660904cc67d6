"""Properties of an objective that are known without evaluating it, used to choose a method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Facts:
    """Properties of an objective that are known without evaluating it."""

    quadratic: bool = False
    """F is a quadratic function of M."""
    terms: int | None = None
    """Number of linear functions of M that F depends on, besides one linear term; None if unknown.

    It is also the length of the dual vectors."""
    single_loss: bool = False
    """F is one loss of one linear map (a `Composite`)."""
    matrix_quadratic: bool = False
    """F = tr((AM)² + BM² + 2CM) (a `GramQuadratic`)."""
    dense_numbers: int = 0
    """Size of the largest dense matrix that is multiplied by factors."""
    spans: bool = True
    """The gradient may be a multiple of I plus a matrix of low rank."""
    wide: bool = False
    """The optimum usually has a high rank, although the order is far higher."""
    remote: bool = False
    """A product with ∇F is a round of messages, so that hundreds of them are too expensive."""
    streams: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    """Shapes of arrays whose rows may stay on the host if a device has no room for them, and how
    many rows of each are needed together."""

    def __add__(self, other: Facts) -> Facts:
        """The facts of a sum of two objectives."""
        both = self.terms is not None and other.terms is not None
        return Facts(
            quadratic=self.quadratic and other.quadratic,
            terms=(self.terms or 0) + (other.terms or 0) if both else None,
            dense_numbers=max(self.dense_numbers, other.dense_numbers),
        )

    def rank_bound(self, order: int) -> int:
        """An upper bound on the rank of some minimiser over the cone.

        r(r + 1)/2 ≤ p + 1: a minimiser of least rank is a vertex of those with its image.
        """
        if self.terms is None:
            return order
        return min(order, int((np.sqrt(8 * (self.terms + 1) + 1) - 1) / 2))
