"""A lower bound on the eigenvalues of a whitened metric: S = (1 − ρ) S' + ρ (tr S'/d) I.

The maximum of a minimum over few pairs has a very low rank; the floor keeps a part of the plain
whitening. Distances d_S are (1 − ρ) d_S' plus, if tr S' = 1, ρ times the `plain` distances of I/d:
the same problem with scaled samples and a constant added to each distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gramian.arrays.dense import eigh
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.reductions.base import carried

MIN_EIGENVALUE_RATIO, MIN_RATIO_OF_OTHER_PAIRS = 1e-6, 1e-2
"""Eigenvalues of a starting point, relative to the largest, that are dropped: without a floor, and
with one that stems from other pairs."""


@dataclass(frozen=True)
class Floor:
    """S ⪰ ρ (tr S/d) I."""

    rho: float

    def samples(self, X: Array) -> Array:
        """Samples scaled so that their distances by S' are the learned part of those by S."""
        return np.sqrt(1.0 - self.rho) * X

    def distances(self, learned: Array, plain: Array) -> Array:
        """d_S from d_S' and the plain distances."""
        return (1.0 - self.rho) * learned + self.rho * plain

    def factor(self, Y: Array) -> Array:
        """A factor of S."""
        return with_floor(Y, self.rho)

    def coordinates(self, L: Array | None) -> Array | None:
        """A factor of S' of trace 1, None if nothing remains above the floor."""
        return without_floor(L, self.rho)

    def certificate(self, found: Certificate, L: Array) -> Certificate:
        """The same bound, among matrices S above the floor."""
        return replace(carried(found, L), complementarity=np.nan)


def with_floor(factor: Array, floor: float) -> Array:
    """A factor of (1 − ρ)LLᵀ + ρ (tr LLᵀ/d) I."""
    if floor == 0:
        return np.ascontiguousarray(factor)
    order = factor.shape[0]
    values, vectors = eigh(factor @ factor.T)
    mean = float(np.sum(factor * factor)) / order
    return vectors * np.sqrt((1 - floor) * np.maximum(values, 0.0) + floor * mean)


def without_floor(factor: Array | None, floor: float) -> Array | None:
    """A factor of the S of trace 1 from which the floor gives M, None if there is none."""
    if factor is None:
        return None
    values, vectors = eigh(factor @ factor.T)
    values = np.maximum(values - floor * float(np.mean(values)), 0.0)
    kept = values > (MIN_RATIO_OF_OTHER_PAIRS if floor > 0 else MIN_EIGENVALUE_RATIO) * values[-1]
    if not kept.any():
        return None
    return vectors[:, kept] * np.sqrt(values[kept] / float(values[kept].sum()))
