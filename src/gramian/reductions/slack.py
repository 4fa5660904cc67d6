"""Slack as one more row of M: γ tr S + (1 − γ) 1ᵀξ = 1 becomes tr M = 1/γ, DML-eig eq. (16).

The best ξ for an S depends only on its sum, which `FilledSoftMin` determines. M has order d + 1, S
is its leading block and γ M_dd = (1 − γ) 1ᵀξ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from gramian.certificate import Certificate
from gramian.common.types import Array, Indices
from gramian.reductions.base import carried

PARTS = np.geomspace(1e-4, 0.9, 20)
"""Fractions of the trace budget given to slack in starting points."""


@dataclass(frozen=True)
class SlackRow:
    """S and its slack as one matrix of trace 1/γ."""

    gamma: float

    @property
    def trace(self) -> float:
        return 1.0 / self.gamma

    @property
    def rate(self) -> float:
        """1ᵀξ per unit of M_dd."""
        return self.gamma / (1.0 - self.gamma)

    def samples(self, X: Array) -> Array:
        """X and two more points, one at 0 and one that only depends on the last coordinate of M."""
        n, d = X.shape
        padded = np.zeros((n + 2, d + 1))
        padded[:n, :-1], padded[n + 1, -1] = X, 1.0
        return padded

    def pairs(self, pairs: Indices, n: int) -> Indices:
        """Pairs of n samples, and the pair of the two points, whose distance is M_dd."""
        return np.vstack([pairs, [[n, n + 1]]])

    def factor(self, Y: Array) -> Array:
        """A factor of S."""
        return Y[:-1]

    def slack(self, Y: Array) -> float:
        """M_dd."""
        return float(np.sum(Y[-1] ** 2))

    def coordinates(self, L: Array) -> Array:
        """S, with the remaining trace as slack."""
        left = max(self.trace - float(np.sum(L * L)), 0.0)
        return scipy.linalg.block_diag(L, [[np.sqrt(left)]])

    def starts(self, L: Array) -> list[Array]:
        """Starting points from a metric of trace 1, with several fractions of slack."""
        return [self.coordinates(np.sqrt((1 - part) * self.trace) * L) for part in PARTS]

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound, over S and its slack."""
        return replace(carried(found, L), complementarity=np.nan)
