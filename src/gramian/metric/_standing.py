"""Impostors found again where they can have changed, and counted again where they cannot.

A search leaves behind, for each anchor i, all pairs (i, l) within a radius c_i of the metric M₀ of
that time. For another metric M let M − ρM₀ = P − EEᵀ with P ⪰ 0. Then every other l has

    d_M(i, l) ≥ ρ d_{M₀}(i, l) − ‖Eᵀ(x_i − x_l)‖² ≥ ρ c_i − (‖Eᵀx_i‖ + max_l ‖Eᵀx_l‖)²,

and where that is beyond the reach of i, its farthest target and the margin, i has no triplets but
those of its pairs. ρ below 1 is for metrics that have shrunk a little in many directions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.metric._impostors import Found, Impostors

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

HOLD = 0.5
"""How much wider than its reach the radius of an anchor is. Between the last two searches of
10,000 digits the metric moves by 7 %: with 0.3, 0.5 and 1 56, 98 and 100 % of them need none."""

HELD = 200
"""Pairs that are kept for an anchor, on the average, at most: more cost as much as a search."""

FEW = 0.3
"""A search for all but so few of the anchors is one for all of them."""

SHARES = (1.0, 0.97, 0.93, 0.85)
"""ρ, of which each anchor has the best."""

ROUNDED = 1e-11
"""What the bound can be off by, in units of the largest distances that there can be."""


@dataclass
class Standing:
    """The pairs of the last searches, one after the other, and what they are good for."""

    pairs: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """i n + l."""
    radius: Array = field(default_factory=lambda: np.empty(0))
    """c, with what rounding needs taken off; −∞ of an anchor without pairs."""
    search: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """By which of the factors each anchor was searched last."""
    factors: list[Array] = field(default_factory=list)
    asked: Array | None = None
    """The factor of the last search for all anchors,"""
    answer: Any = None
    """what it found,"""
    seconds: float = 0.0
    """and how long it took."""

    def remember(self, factor: Array, answer: Any, seconds: float) -> None:
        """Keep the answer of a search for all anchors."""
        self.asked, self.answer, self.seconds = factor, answer, seconds

    def answers(self, factor: Array) -> bool:
        """Whether the last search was for this factor, as where a solve had no time to move it."""
        return self.asked is not None and np.array_equal(self.asked, factor)

    def blocks(self, asked: Impostors, X: Array, factor: Array) -> list[Found]:
        """The triplets of all anchors, of which only those that are not sure are searched."""
        n = X.shape[0]
        sure = self.sure(X, factor, asked.reach)
        if np.mean(sure) < FEW:
            sure = np.zeros(n, dtype=bool)
        kept = self.pairs[sure[self.pairs // n]] if self.pairs.size else self.pairs
        found, left = [], np.flatnonzero(~sure)
        if left.size:
            wider = replace(asked, anchors=left, hold=HOLD)
            found = wider.blocks()
            self._renew(sure, kept, found, wider, factor)
        return [*found, *asked.counted(kept)]

    def sure(self, X: Array, factor: Array, reach: Array) -> NDArray[np.bool_]:
        """The anchors whose pairs have all that is within their reach."""
        if self.radius.size == 0:
            return np.zeros(X.shape[0], dtype=bool)
        centred = X - X.mean(axis=0)
        largest = float(np.max(np.einsum("ij,ij->i", centred, centred)))
        beyond = np.full(X.shape[0], -np.inf)
        M = factor @ factor.T
        for number in np.unique(self.search):
            mine = self.search == number
            before = self.factors[number] @ self.factors[number].T
            room = ROUNDED * 4 * largest * float(np.trace(M) + np.trace(before))
            for share in SHARES:
                values, vectors = eigh(M - share * before)
                fallen = vectors * np.sqrt(np.maximum(-values, 0.0))
                lost = np.linalg.norm(centred @ fallen, axis=1)
                bound = share * self.radius - (lost + lost.max()) ** 2 - room
                beyond[mine] = np.maximum(beyond, bound)[mine]
        return beyond >= reach

    def _renew(
        self,
        sure: NDArray[np.bool_],
        kept: Indices,
        found: list[Found],
        asked: Impostors,
        factor: Array,
    ) -> None:
        """Take what was found now in the place of what was known of those anchors."""
        n = sure.size
        most = min(HELD, asked.most / asked.near.shape[1]) * n
        if kept.size + sum(part.pairs.shape[0] for part in found) > most:
            self.pairs, self.radius = self.pairs[:0], self.radius[:0]
            return
        if not np.any(sure):
            self.radius, self.search = np.full(n, -np.inf), np.zeros(n, dtype=np.intp)
            self.factors = []
        self.factors.append(factor)
        self.search[~sure] = len(self.factors) - 1
        self.radius[~sure] = asked.reach
        self.pairs = np.concatenate([kept, *(part.pairs for part in found)])
