"""Ordered levels: the problem of their hinges, and sweeps by quadratic upper bounds.

The all-threshold loss of Rennie and Srebro (2005): an entry of K levels is K − 1 signs, one for the
side of each threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.cpu import gather_products
from gramian.common.types import Array
from gramian.completion._ratings import Ratings
from gramian.maps import BlockEntries
from gramian.objectives.halves import Halves, RowFits
from gramian.problem import Problem
from gramian.problems.completion import mmmf
from gramian.reductions.block_embedding import BlockEmbedding

Indices = NDArray[np.int32]
Mask = NDArray[np.bool_]

MOST_LEVELS = 50
"""Maximum number of distinct values that are treated as ordered levels."""


def checked_levels(values: Array) -> Array:
    """The distinct values, ascending; rejected if they are too many or only one."""
    levels: Array = np.unique(values)
    if not 1 < levels.size <= MOST_LEVELS:
        found = levels.size if levels.size <= MOST_LEVELS else f"more than {MOST_LEVELS}"
        raise ValueError(
            f"MMMF predicts two to {MOST_LEVELS} levels, and the entries have {found} different "
            "values: NuclearCompletion predicts numbers"
        )
    return levels


def midway(count: int) -> Array:
    """Thresholds midway between the levels 2k − (K − 1), whose half distance is the margin 1."""
    return 2.0 * np.arange(1, count) - count


def all_thresholds(
    rows: NDArray[np.integer],
    cols: NDArray[np.integer],
    places: NDArray[np.integer],
    shape: tuple[int, int],
    lam: float,
    *,
    offset: Array,
    thresholds: Array,
    learned: bool = False,
    weights: Array | None = None,
    **options: Any,
) -> Problem:
    """MMMF of entries by the indices of their levels, with an offset of each score.

    `learned` makes the thresholds part of the problem; further options are those of
    `gramian.problems.mmmf`.
    """
    repeat = thresholds.size
    signs = np.where(places[:, None] > np.arange(repeat), 1.0, -1.0)
    margins = 1.0 - signs * (offset[:, None] - thresholds)
    return mmmf(
        rows,
        cols,
        signs.ravel(),
        shape,
        lam,
        margin=margins.ravel(),
        weights=None if weights is None else np.repeat(weights, repeat),
        repeat=repeat,
        groups=np.tile(np.arange(repeat), places.size) if learned else None,
        **options,
    )


@dataclass(frozen=True, eq=False)
class Margins:
    """Σ_e ω_e Σ_k h_μ(s_ek) + κ/2 ‖δ‖² with s_ek = 1 − σ_ek (u_e + c_e − θ_k − δ_k), e by rows.

    σ_ek is 1 where the level of e is above threshold k, and −1 elsewhere. An upper bound of h_μ is
    h_μ(s) + h_μ'(s)(t − s) + a/2 (t − s)² with 1/a = μ + 2 dist(s, [0, μ]), the least such a: it
    is equal to h_μ at s, and its minimum is not below 0.
    """

    places: NDArray[np.integer]
    """The number of thresholds below the level of each entry."""
    offsets: Array
    """c."""
    weights: Array
    """ω; 0 for held-out entries."""
    theta: Array
    delta: Array
    """δ, updated in place."""
    mu: float
    ridge: float | None
    """κ; None where δ stays 0."""

    @property
    def thresholds(self) -> Array:
        """θ + δ, in order."""
        return np.maximum.accumulate(self.theta + self.delta)

    def settle(self, z: Array) -> None:
        """Minimize the upper bound at products z over each δ_k, in place."""
        if self.ridge is None:
            return
        for k in range(self.theta.size):
            sigma, s = self._distances(z, k)
            bend = self.weights / self._widths(s)
            slope = sigma * self.weights * np.clip(s / self.mu, 0.0, 1.0)
            total = float(np.sum(slope, dtype=float)) + self.ridge * self.delta[k]
            self.delta[k] -= total / (float(np.sum(bend, dtype=float)) + self.ridge)

    def squares(self, z: Array) -> tuple[Array, Array, float]:
        """a and t of the upper bound ½ Σ a_e (u_e − t_e)² at products z, and its constant."""
        bend, slope, value = np.zeros_like(z), np.zeros_like(z), 0.0
        for k in range(self.theta.size):
            sigma, s = self._distances(z, k)
            bend += self.weights / self._widths(s)
            inside = np.clip(s, 0.0, self.mu)
            slope -= sigma * self.weights * (inside / self.mu)
            hinges = inside * inside / (2 * self.mu) + np.maximum(s - self.mu, 0.0)
            value += float(np.vdot(self.weights, hinges))
        move = slope / np.maximum(bend, np.finfo(bend.dtype).tiny)
        value -= 0.5 * float(np.vdot(slope, move))
        if self.ridge is not None:
            value += 0.5 * self.ridge * float(self.delta @ self.delta)
        return bend, z - move, value

    def _distances(self, z: Array, k: int) -> tuple[Array, Array]:
        """σ_ek and s_ek of all entries."""
        sigma = np.where(self.places > k, z.dtype.type(1), z.dtype.type(-1))
        shift = z.dtype.type(self.theta[k] + self.delta[k])
        return sigma, 1 - sigma * (z + self.offsets - shift)

    def _widths(self, s: Array) -> Array:
        return self.mu + 2 * np.maximum(np.maximum(-s, s - self.mu), 0)


@dataclass(frozen=True, eq=False)
class MarginHalves(Halves):
    """`Halves` of quadratic upper bounds of the hinges, updated before each half is refitted.

    F decreases with every half, since the bound is equal to F at the current point. The offsets of
    a state are added to those of the margins; they are 0 unless `free`.
    """

    pace: ClassVar[int] = 4

    margins: Margins = field(kw_only=True)
    rows: Indices = field(kw_only=True)
    entry: Indices = field(kw_only=True)
    """For the entries in the order of columns, their indices in the order of rows."""

    @classmethod
    def of_levels(
        cls,
        ratings: Ratings,
        scales: tuple[Array, Array],
        margins: Margins,
        lam: float,
        ridge: float | None,
    ) -> MarginHalves:
        """The halves of ratings, in float32; offsets are free if they have a ridge."""
        map = BlockEntries(ratings.rows, ratings.cols, ratings.shape)
        units = np.concatenate(BlockEmbedding(*scales).sides) ** -1.0
        stiffness = np.square(units).astype(np.float32)
        m = ratings.shape[0]
        bend, targets, _ = margins.squares(np.zeros(map.size, dtype=np.float32))
        root, free = np.sqrt(bend), ridge is not None
        upper, lower = (
            RowFits(starts, neighbour, root, root * targets, free, None, stiffness[own])
            for (starts, neighbour, _), own in (
                (map.by_row(), slice(None, m)),
                (map.by_column(), slice(m, None)),
            )
        )
        entry = map.by_column()[2]
        nothing = np.zeros(map.order)
        return cls(
            m, upper, lower, lam, ridge or 1.0, lambda factor: nothing, units=units,
            margins=margins, rows=map.rows, entry=entry,
        )  # fmt: skip

    def without(self, by_row: Mask, by_column: Mask) -> MarginHalves:
        weights = np.where(by_row, 0.0, self.margins.weights).astype(np.float32)
        return replace(self, margins=replace(self.margins, weights=weights))

    def refit_upper(self, state: Array, steps: int) -> float:
        return self._above(self.upper, slice(None), state, steps, upper=True)

    def refit_lower(self, state: Array, steps: int) -> float:
        return self._above(self.lower, self.entry, state, steps, upper=False)

    def _above(self, fits: RowFits, order: Any, state: Array, steps: int, *, upper: bool) -> float:
        P, Q = self._parted(state)
        z = gather_products(P[:, :-1], Q[:, :-1], self.rows, self.upper.neighbour)
        if self.upper.free:
            z += P[self.rows, -1] + Q[self.upper.neighbour, -1]
        z = z.astype(np.float32, copy=False)
        self.margins.settle(z)
        bend, targets, constant = self.margins.squares(z)
        root = np.sqrt(bend)
        scale = root[order]
        fits = replace(
            fits, scale=scale, targets=(root * targets)[order], roots=scale if fits.free else None
        )
        own, other, held = (P, Q, self.lower) if upper else (Q, P, self.upper)
        return constant + self._refit(fits, held, own, other, steps)
