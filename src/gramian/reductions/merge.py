"""Groups of points at one position, as one point: Z = SZ'Sᵀ, S_ig = 1 for point i of group g."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.certificate import Certificate
from gramian.common.types import Array, Indices
from gramian.reductions.base import among_these


@dataclass(frozen=True)
class Merge:
    """Groups of points, given by one group index from 0 per point."""

    groups: Indices

    @cached_property
    def counts(self) -> Array:
        """Number of points of each group."""
        return np.bincount(self.groups).astype(float)

    @cached_property
    def membership(self) -> sp.csr_array:
        """S."""
        n = self.groups.size
        return sp.csr_array((np.ones(n), (np.arange(n), self.groups)))

    def factor(self, Y: Array) -> Array:
        """SY: each point gets the row of its group."""
        return Y[self.groups]

    def coordinates(self, L: Array) -> Array:
        """The mean of each group."""
        return self.membership.T @ L / self.counts[:, None]

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """Separated points may be better, unless constraints hold them together."""
        return among_these(found, L)

    def summed(self, C: Any) -> sp.csr_array:
        """SᵀCS, the C of Z'."""
        return sp.csr_array(self.membership.T @ C @ self.membership)

    def entries(
        self, entries: Indices, targets: Array, weights: Array
    ) -> tuple[Indices, Array, Array]:
        """Entries of Z as entries of Z' without duplicates: weighted sums and mean targets.

        Σ ω_e (z − t_e)² is Ω (z − t̄)² plus a constant.
        """
        merged = np.sort(self.groups[entries], axis=1)
        keys = merged[:, 0].astype(np.int64) * self.counts.size + merged[:, 1]
        once, first, place = np.unique(keys, return_index=True, return_inverse=True)
        total: Array = np.bincount(place, weights, minlength=once.size).astype(float)
        mean = np.bincount(place, weights * targets, minlength=once.size) / total
        return merged[first], mean, total
