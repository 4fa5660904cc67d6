"""Half-sweeps of a completion by tasks, one for each block of users or of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends import cpu
from gramian.dask._rating_sums import sizes
from gramian.dask._ratings import Block, Side
from gramian.dask._scene import Model

if TYPE_CHECKING:
    from gramian.dask._completion import Completed

Array = NDArray[np.floating]


@dataclass(frozen=True)
class ShardedHalves:
    """Half-sweeps over a state [P b; Q c] by tasks, one for each block; see `Halves` at home."""

    objective: Completed
    lam: float
    dtype: Any
    constant: float = 0.0

    @property
    def split(self) -> int:
        return self.objective.split

    def state(self, factor: Array) -> Array:
        """[P b; Q c] with the best offsets, as an array of its own."""
        offsets = np.zeros((factor.shape[0], 1))
        if self.objective.model.ridge is not None:
            image = self.objective.image(factor)
            rows = self.objective.row_offsets(image)
            assert image.offsets is not None
            offsets[:, 0] = np.concatenate([rows, image.offsets])
        return np.hstack([factor, offsets]).astype(self.dtype)

    def factor(self, state: Array) -> Array:
        """[P; Q] of a state, in float64."""
        return np.array(state[:, :-1], dtype=float, order="C")

    def refit_upper(self, state: Array, steps: int) -> float:
        """Better P and b for these Q and c, in place; F before."""
        rated = self.objective.rated
        return self._refit(
            state[: self.split], state[self.split :], rated.users, rated.items, steps
        )

    def refit_lower(self, state: Array, steps: int) -> float:
        """Better Q and c for these P and b, in place; F before."""
        rated = self.objective.rated
        return self._refit(
            state[self.split :], state[: self.split], rated.items, rated.users, steps
        )

    def _refit(self, own: Array, other: Array, side: Side, across: Side, steps: int) -> float:
        objective = self.objective
        model, cluster = objective.model, objective.cluster
        ridge = 1.0 if model.ridge is None else model.ridge
        shared = objective.rated.taken(other, across, "factor")
        found = cluster.gather(cluster.each(
            "half-sweep", _refit, side.blocks, objective.rounds.model_there, side.ends(),
            side.ranges(across), side is objective.rated.items, side.pieces(own),
            [[shared[b] for b in some] for some in side.reached], (self.lam, ridge), steps,
        ))  # fmt: skip
        own[:] = np.concatenate([rows for _, rows in found])
        norms = np.sum(other[:, :-1] ** 2, dtype=float), np.sum(other[:, -1] ** 2, dtype=float)
        beside = 0.5 * (self.lam * norms[0] + ridge * norms[1])
        return self.constant + float(beside) + sum(lost for lost, _ in found)

    def scattered(self, rng: np.random.Generator, rank: int) -> Array:
        """A state of random Q, of the size that products as large as the targets need."""
        spread, scale = sizes(self.objective.rounds)
        state = np.zeros((self.objective.order, rank + 1), dtype=self.dtype)
        size = np.sqrt(max(np.sqrt(spread / max(scale, 1e-300)), 1e-30)) / rank**0.25
        Q = state[self.split :, :-1]
        Q[:] = size * rng.standard_normal(Q.shape, dtype=np.float32)
        return state


def _refit(
    block: Block, model: Model, ends: list[int], reached: list[list[int]], turned: bool, own: Array,
    other: list[Array], weights: tuple[float, float], steps: int,
) -> tuple[float, Array]:  # fmt: skip
    """A few steps of conjugate gradients on each row of a block, and F of the block before."""
    block, dtype = block.part(model.train), own.dtype
    own_scale, other_scale = (model.cols, model.rows) if turned else (model.rows, model.cols)
    stiffness = own_scale[ends[0] : ends[1]]
    reaching = np.concatenate([other_scale[a:b] for a, b in reached])
    free, roots = model.ridge is not None, None
    targets = (block.values - model.mean).astype(dtype, copy=False)
    if block.weights is not None:
        roots = np.sqrt(block.weights).astype(dtype)
        targets = targets * roots
    fits = cpu.RowFits(
        cpu.index_array(block.starts), cpu.index_array(block.neighbour), roots, targets,
        free, roots if free else None, stiffness.astype(dtype),
    )  # fmt: skip
    P, Q = _over(own, stiffness), _over(np.concatenate(other), reaching)
    penalty = np.full(P.shape[1], weights[0])
    penalty[-1] = weights[1]
    lost = fits.refit(P, Q, penalty, steps)
    P[:, :-1] *= np.sqrt(stiffness)[:, None]
    return lost, P


def _over(state: Array, scale: Array) -> Array:
    """[P/√a b]: in these units no rating has a scale of its own."""
    found = np.array(state, order="C")
    found[:, :-1] /= np.sqrt(scale)[:, None]
    return found
