"""Scaling of a graph to a mean squared edge length of 1: M = uS, u the mean squared length.

Σ_e (d_M(e) − D_e)² − ν tr(WM) is u² times the same with D/u and ν/u instead of D and ν.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.reductions.base import carried


@dataclass(frozen=True)
class Units:
    """M = uS."""

    unit: float
    """u."""

    def lengths(self, sq_distances: Array) -> Array:
        """D/u."""
        return sq_distances / self.unit

    def factor(self, Y: Array) -> Array:
        """√u Y."""
        return np.sqrt(self.unit) * Y

    def coordinates(self, L: Array) -> Array:
        """L/√u."""
        return L / np.sqrt(self.unit)

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The bound in units of F."""
        return carried(found, L, scale=self.unit**2)
