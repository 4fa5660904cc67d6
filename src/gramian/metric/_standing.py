"""Cached impostors: anchors are searched again only if their impostors can have changed.

A search stores, for each anchor i, all pairs (i, l) within a radius c_i of the metric M₀ at that
time. For another metric M let M − ρM₀ = P − EEᵀ with P ⪰ 0. Then every other l has

    d_M(i, l) ≥ ρ d_{M₀}(i, l) − ‖Eᵀ(x_i − x_l)‖² ≥ ρ c_i − (‖Eᵀx_i‖ + max_l ‖Eᵀx_l‖)².

If this exceeds the distance of its farthest target plus the margin, i only has triplets of its
stored pairs. ρ < 1 is for metrics that have shrunk slightly in many directions.
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
"""Relative excess of the radius of an anchor over its reach. Between the last two searches of
10,000 digits the metric moves by 7 %: with 0.3, 0.5 and 1, 56, 98 and 100 % of them need none."""

HELD = 200
"""Largest mean number of pairs stored per anchor: more cost as much as a search."""

FEW = 0.3
"""Fraction of safe anchors below which all anchors are searched."""

SHARES = (1.0, 0.97, 0.93, 0.85)
"""Values of ρ, of which the best is used for each anchor."""

ROUNDED = 1e-11
"""Error of the bound, relative to the largest possible distances."""


@dataclass
class Standing:
    """The stored pairs of the last searches."""

    pairs: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """i n + l."""
    radius: Array = field(default_factory=lambda: np.empty(0))
    """c, reduced by the rounding error; −∞ for an anchor without pairs."""
    search: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The factor with which each anchor was last searched."""
    factors: list[Array] = field(default_factory=list)
    asked: Array | None = None
    """The factor of the last search for all anchors."""
    answer: Any = None
    """Its result."""
    seconds: float = 0.0
    """Its time in seconds."""

    def remember(self, factor: Array, answer: Any, seconds: float) -> None:
        """Store the result of a search for all anchors."""
        self.asked, self.answer, self.seconds = factor, answer, seconds

    def answers(self, factor: Array) -> bool:
        """Whether the last search used this factor, as if a solve had no time to change it."""
        return self.asked is not None and np.array_equal(self.asked, factor)

    def blocks(self, asked: Impostors, X: Array, factor: Array) -> list[Found]:
        """The triplets of all anchors; only anchors that are not safe are searched."""
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
        """The anchors whose stored pairs contain everything within their reach."""
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
        """Replace the stored pairs of the searched anchors."""
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
