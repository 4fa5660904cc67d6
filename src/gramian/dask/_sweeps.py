"""Half-sweeps of a completion by tasks, one for each block of users or of items.

A task takes the blocks of the other side that its ratings reach from the workers that have them,
and its new rows stay where they are made. To the driver come a few numbers of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import cpu
from gramian.dask._rating_sums import sizes
from gramian.dask._ratings import Block, Side
from gramian.dask._scene import Model
from gramian.dask._spread import SWEEPS, Spread, home_of, roots_of, spread
from gramian.methods.quick import RANDOM_COLUMN_SIZE
from gramian.objectives import mixing
from gramian.objectives.row_fits import RowFits

if TYPE_CHECKING:
    from gramian.dask._completion import Completed

Array = NDArray[np.floating]


@dataclass(frozen=True)
class ShardedHalves:
    """Half-sweeps over a state [P b; Q c] on the workers; see `Halves` at home."""

    objective: Completed
    lam: float
    dtype: Any
    constant: float = 0.0

    @property
    def split(self) -> int:
        return self.objective.split

    def state(self, factor: Array | Spread) -> Spread:
        """[P b; Q c] with the best offsets."""
        objective, offsets = self.objective, np.zeros(self.objective.order)
        there = factor if isinstance(factor, Spread) else spread(objective.rated, factor)
        if objective.model.ridge is not None:
            image = objective.image(there)
            rows = objective.row_offsets(image)
            assert image.offsets is not None
            offsets = np.concatenate([rows, image.offsets])
        made = there.mapped("offsets", _with_offsets, there.pieces(offsets), self.dtype)
        return replace(made, columns=there.columns + 1)

    def factor_there(self, state: Spread) -> Spread:
        """[P; Q] of a state, in float64."""
        return replace(state.mapped("factor", _factor), columns=state.columns - 1)

    def factor(self, state: Spread) -> Any:
        """The same, on the driver where that has room for it."""
        there = self.factor_there(state)
        return there if self.objective.rated.home is not None else there.gathered()

    def refit_upper(self, state: Spread, steps: int) -> None:
        """Better P and b for these Q and c."""
        rated = self.objective.rated
        nodes = self._refits(_refit_rows, state.upper, state.lower, rated.users, rated.items, steps)
        state.upper = rated.cluster.keep(nodes)

    def refit_lower(self, state: Spread, steps: int) -> float:
        """Better Q and c for these P and b; F before."""
        rated, cluster = self.objective.rated, self.objective.cluster
        both = self._refits(_refit, state.lower, state.upper, rated.items, rated.users, steps)
        weights = self._penalties()
        before = cluster.each("norm", _penalty, state.upper, weights)
        asked = cluster.keep([
            *cluster.each("half-sweep", _second, both), *cluster.each("loss", _first, both), *before
        ])  # fmt: skip
        count = len(state.lower)
        state.lower, told = asked[:count], asked[count:]
        value = self.constant + sum(cluster.gather(told))
        self._aged(state)
        return float(value)

    def _aged(self, state: Spread) -> None:
        """A sweep older, and planted anew where it comes from far back."""
        state.age += 1
        if state.age >= SWEEPS:
            fresh = home_of(state.rated).replanted(state)
            state.__dict__.update(fresh.__dict__)

    def _penalties(self) -> tuple[float, float]:
        """λ and κ; 1 where no offset is there for it."""
        ridge = self.objective.model.ridge
        return self.lam, 1.0 if ridge is None else ridge

    def _refits(
        self, function: Any, own: list[Any], other: list[Any], side: Side, across: Side, steps: int
    ) -> list[Any]:
        objective = self.objective
        return objective.cluster.each(
            "half-sweep", function, side.blocks, objective.rounds.model_there, side.ends(),
            side.ranges(across), side is objective.rated.items, own,
            [[other[b] for b in some] for some in side.reached], self._penalties(), steps,
        )  # fmt: skip

    # --- mixing, as `Halves` at home -----------------------------------------------------

    def lower_of(self, state: Spread) -> Spread:
        """[Q c] of a state."""
        return state.below()

    def set_lower(self, state: Spread, lower: Spread) -> None:
        state.lower, state.roots = list(lower.lower), state.roots | lower.roots

    def change(self, before: Spread, after: Spread) -> Spread:
        made = before.mapped("change", _difference, after.lower)
        return replace(made, roots=roots_of([before, after]))

    def products(self, changes: Sequence[Spread]) -> Array:
        if len(changes) == 1:
            return np.zeros((0, 1))
        found: Array = changes[-1].sum("mixing", _products, _side_by_side(changes[:-1]))
        return found

    def mixture(self, points: Sequence[Spread], weights: Array) -> Spread:
        made = points[-1].mapped("mixing", _mixture, _side_by_side(points[:-1]), weights)
        return replace(made, roots=roots_of(points))

    # --- columns in random directions ----------------------------------------------------

    def scattered(self, rng: np.random.Generator, rank: int) -> Spread:
        """A state of random Q, of the size that products as large as the targets need."""
        rated = self.objective.rated
        squares, scale = sizes(self.objective.rounds)
        size = np.sqrt(max(np.sqrt(squares / max(scale, 1e-300)), 1e-30)) / rank**0.25
        spans = [end - begin for begin, end in rated.users.ends() + rated.items.ends()]
        users, kind = len(rated.users.blocks), str(self.dtype)
        lengths = [0.0] * users + [float(size)] * (len(spans) - users)
        nodes = rated.cluster.each(
            "scatter", _scattered, spans, rank, lengths, _seeds(rng, len(spans)), kind
        )
        made = rated.cluster.keep(nodes)
        return Spread(rated, made[:users], made[users:], rank + 1)

    def widened(self, state: Spread, rank: int, rng: np.random.Generator) -> Spread:
        """The state with random columns beside its own, up to a rank."""
        own = state.columns - 1
        if rank <= own:
            return state
        square = state.sum("norm", _penalty, (2.0, 0.0))
        length = RANDOM_COLUMN_SIZE * np.sqrt(square / (state.shape[0] * (rank - own)))
        seeds = _seeds(rng, len(state.blocks))
        made = state.mapped("scatter", _widened, rank, max(float(length), 1e-6), seeds)
        return replace(made, columns=rank + 1)


def _side_by_side(matrices: Sequence[Spread]) -> list[list[Any]]:
    """For each block those of all of them."""
    return [list(parts) for parts in zip(*(one.blocks for one in matrices), strict=True)]


def _seeds(rng: np.random.Generator, count: int) -> list[int]:
    return [int(seed) for seed in rng.integers(2**63, size=count)]


# --- what tasks do -----------------------------------------------------------------------


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
    fits = RowFits(
        cpu.index_array(block.starts), cpu.index_array(block.neighbour), roots, targets,
        free, roots if free else None, stiffness.astype(dtype),
    )  # fmt: skip
    P, Q = _over([own], stiffness), _over(other, reaching)
    penalty = np.full(P.shape[1], weights[0])
    penalty[-1] = weights[1]
    lost = fits.refit(P, Q, penalty, steps)
    P[:, :-1] *= np.sqrt(stiffness)[:, None].astype(dtype)
    return lost, P


def _refit_rows(*given: Any) -> Array:
    """The rows alone."""
    return _refit(*given)[1]


def _over(parts: list[Array], scale: Array) -> Array:
    """[P/√a b] of all parts: in these units no rating has a scale of its own."""
    dtype, rows = parts[0].dtype, scale.size
    found, over, begin = np.empty((rows, parts[0].shape[1]), dtype), scale**-0.5, 0
    for part in parts:
        here = slice(begin, begin + part.shape[0])
        np.multiply(part[:, :-1], over[here, None].astype(dtype), out=found[here, :-1])
        found[here, -1] = part[:, -1]
        begin = here.stop
    return found


def _first(pair: tuple[float, Array]) -> float:
    return pair[0]


def _second(pair: tuple[float, Array]) -> Array:
    return pair[1]


def _penalty(rows: Array, weights: tuple[float, float]) -> float:
    """λ/2 ‖P‖² + κ/2 ‖b‖²."""
    norms = (np.sum(np.square(part), dtype=float) for part in (rows[:, :-1], rows[:, -1]))
    return float(0.5 * sum(w * norm for w, norm in zip(weights, norms, strict=True)))


def _with_offsets(factor: Array, offsets: Array, dtype: Any) -> Array:
    return np.column_stack([factor, offsets]).astype(dtype)


def _factor(rows: Array) -> Array:
    return np.array(rows[:, :-1], dtype=float, order="C")


def _difference(before: Array, after: Array) -> Array:
    return after - before


def _products(last: Array, others: list[Array]) -> Array:
    return mixing.products([*others, last]).astype(float)


def _mixture(last: Array, others: list[Array], weights: Array) -> Array:
    return mixing.mixture([*others, last], weights.astype(last.dtype))


def _scattered(rows: int, rank: int, size: float, seed: int, dtype: str) -> Array:
    """Random columns of a size, 0 for none, and offsets of 0."""
    state = np.zeros((rows, rank + 1), dtype=dtype)
    if size:
        state[:, :-1] = size * _noise(seed, (rows, rank))
    return state


def _widened(state: Array, rank: int, size: float, seed: int) -> Array:
    own = state.shape[1] - 1
    wide = np.empty((state.shape[0], rank + 1), dtype=state.dtype)
    wide[:, :own], wide[:, -1] = state[:, :-1], state[:, -1]
    wide[:, own:-1] = size * _noise(seed, (state.shape[0], rank - own))
    return wide


def _noise(seed: int, shape: tuple[int, int]) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
