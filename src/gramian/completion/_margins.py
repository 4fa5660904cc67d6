"""Sweeps over rows and columns for hinges of ordered levels, by squares that lie above them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.backends.cpu import gather_products
from gramian.completion._ratings import Ratings
from gramian.maps import BlockEntries
from gramian.objectives.halves import Halves
from gramian.objectives.row_fits import RowFits
from gramian.reductions.block_embedding import BlockEmbedding

Array = NDArray[np.floating]
Indices = NDArray[np.int32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Margins:
    """Σ_e ω_e Σ_k h_μ(s_ek) + κ/2 ‖δ‖² with s_ek = 1 − σ_ek (u_e + c_e − θ_k − δ_k), e by rows.

    σ_ek is 1 where the level of e is above threshold k, and −1 elsewhere. Above h_μ at s lies
    h_μ(s) + h_μ'(s)(t − s) + a/2 (t − s)² with 1/a = μ + 2 dist(s, [0, μ]), the least such a: it
    touches at s, and its least value is not below 0 where that is what h_μ falls to.
    """

    places: NDArray[np.integer]
    """How many thresholds are below the level of an entry."""
    offsets: Array
    """c."""
    weights: Array
    """ω; 0 for entries that are held out."""
    theta: Array
    delta: Array
    """δ, moved in place."""
    mu: float
    ridge: float | None
    """κ; None where δ stays 0."""

    @property
    def thresholds(self) -> Array:
        """θ + δ, in order."""
        found: Array = np.maximum.accumulate(self.theta + self.delta)
        return found

    def settle(self, z: Array) -> None:
        """A step of each δ_k to the least value of the squares above, at products z."""
        if self.ridge is None:
            return
        for k in range(self.theta.size):
            sigma, s = self._distances(z, k)
            bend = self.weights / self._widths(s)
            slope = sigma * self.weights * np.clip(s / self.mu, 0.0, 1.0)
            total = float(np.sum(slope, dtype=float)) + self.ridge * self.delta[k]
            self.delta[k] -= total / (float(np.sum(bend, dtype=float)) + self.ridge)

    def squares(self, z: Array) -> tuple[Array, Array, float]:
        """a and t of ½ Σ a_e (u_e − t_e)² at products z, and what F has beside those squares."""
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
    """`Halves` of squares above the hinges, taken anew before each half is refitted.

    F falls with every half: squares that touch it there lie above it elsewhere. Offsets of a state
    are beside those of the margins, and 0 unless they are `free`.
    """

    pace: ClassVar[int] = 4

    margins: Margins = field(kw_only=True)
    rows: Indices = field(kw_only=True)
    entry: Indices = field(kw_only=True)
    """Which entry by rows each is in the order of columns."""

    @classmethod
    def of_levels(
        cls,
        ratings: Ratings,
        scales: tuple[Array, Array],
        margins: Margins,
        lam: float,
        ridge: float | None,
    ) -> MarginHalves:
        """Those of ratings by rows, in float32; offsets are free where they have a ridge."""
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
        bend, targets, beside = self.margins.squares(z)
        root = np.sqrt(bend)
        scale = root[order]
        fits = replace(
            fits, scale=scale, targets=(root * targets)[order], roots=scale if fits.free else None
        )
        own, other, held = (P, Q, self.lower) if upper else (Q, P, self.upper)
        return beside + self._refit(fits, held, own, other, steps)
