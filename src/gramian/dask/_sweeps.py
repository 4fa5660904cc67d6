"""Half-sweeps of a completion by tasks, one for each block of users or of items.

A task takes the blocks of the other side that its ratings reach from the workers that have them,
and its new rows stay where they are made. To the driver come a few numbers of each block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import cpu
from gramian.dask._ratings import Block, HeldOut, Rated, Side
from gramian.dask._scene import Model
from gramian.dask._spread import SWEEPS, Spread, home_of, roots_of, spread
from gramian.objectives.halves import NEW_COLUMNS, RowFits, mixture, products, scattered_size

if TYPE_CHECKING:
    from gramian.dask._completion import Completed

Array = NDArray[np.floating]


@dataclass(frozen=True)
class ShardedHalves:
    """Half-sweeps over a state [P b; Q c] on the workers; see `Halves` at home.

    The rows of a state are those of the factor over their `units`, as at home in float32.
    """

    objective: Completed
    rated: Rated
    """The entries of the sweeps."""
    lam: float
    dtype: Any
    constant: float = 0.0

    pace: ClassVar[int] = 1

    @property
    def units(self) -> Array:
        model = self.objective.model
        return np.sqrt(np.concatenate([model.rows, model.cols]))

    def without(self, held: HeldOut) -> ShardedHalves:
        """The same without the entries held out."""
        return replace(self, rated=self.rated.part(~held))

    def state(self, factor: Array | Spread) -> Spread:
        """[P b; Q c] with the best offsets."""
        objective, offsets = self.objective, np.zeros(self.objective.order)
        there = factor if isinstance(factor, Spread) else spread(self.rated, factor)
        if objective.model.ridge is not None:
            image = objective.image(there)
            rows = objective.row_offsets(image)
            assert image.offsets is not None
            offsets = np.concatenate([rows, image.offsets])
        pieces = there.pieces(self.units), there.pieces(offsets)
        made = there.mapped("offsets", _with_offsets, *pieces, self.dtype)
        return replace(made, columns=there.columns + 1)

    def factor_there(self, state: Spread) -> Spread:
        """[P; Q] of a state, in float64."""
        made = state.mapped("factor", _factor, state.pieces(self.units))
        return replace(made, columns=state.columns - 1)

    def factor(self, state: Spread) -> Any:
        """The same, on the driver where that has room for it."""
        there = self.factor_there(state)
        return there.gathered() if self.rated.home is None else there

    def refit_upper(self, state: Spread, steps: int) -> None:
        """Better P and b for these Q and c."""
        rated = self.rated
        nodes = self._refits(_refit_rows, state.upper, state.lower, rated.users, steps)
        state.upper = rated.cluster.keep(nodes)

    def refit_lower(self, state: Spread, steps: int) -> float:
        """Better Q and c for these P and b; F before."""
        rated, cluster = self.rated, self.rated.cluster
        both = self._refits(_refit, state.lower, state.upper, rated.items, steps)
        weights = self._penalties()
        model, ends = self.objective.rounds.model_there, rated.users.ends()
        before = cluster.each("norm", _upper_penalty, state.upper, model, ends, weights)
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
        self, function: Any, own: list[Any], other: list[Any], side: Side, steps: int
    ) -> list[Any]:
        objective = self.objective
        return objective.cluster.each(
            "half-sweep", function, side.blocks, objective.rounds.model_there, side.ends(),
            side is self.rated.items, own,
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
        rated, model = self.rated, self.objective.model
        size = scattered_size(rated.mean_square(model.mean), 1.0, rank)
        lengths = [
            *(np.zeros(end - begin) for begin, end in rated.users.ends()),
            *(size / np.sqrt(part) for part in rated.items.pieces(model.cols)),
        ]
        users, seeds = len(rated.users.blocks), _seeds(rng, len(lengths))
        made = rated.cluster.keep(
            rated.cluster.each("scatter", _scattered, lengths, rank, seeds, str(self.dtype))
        )
        return Spread(rated, made[:users], made[users:], rank + 1)

    def widened(self, state: Spread, rank: int, rng: np.random.Generator) -> Spread:
        """The state with random columns beside its own, up to a rank."""
        own = state.columns - 1
        if rank <= own:
            return state
        units = self.units
        square = state.sum("norm", _penalty, state.pieces(units**2), (2.0, 0.0))
        length = NEW_COLUMNS * np.sqrt(square / (state.shape[0] * (rank - own)))
        lengths = state.pieces(max(float(length), 1e-6) / units)
        made = state.mapped("scatter", _widened, rank, lengths, _seeds(rng, len(state.blocks)))
        return replace(made, columns=rank + 1)


def _side_by_side(matrices: Sequence[Spread]) -> list[list[Any]]:
    """For each block those of all of them."""
    return [list(parts) for parts in zip(*(one.blocks for one in matrices), strict=True)]


def _seeds(rng: np.random.Generator, count: int) -> list[int]:
    return [int(seed) for seed in rng.integers(2**63, size=count)]


# --- what tasks do -----------------------------------------------------------------------


def _refit(
    block: Block, model: Model, ends: list[int], turned: bool, own: Array, other: list[Array],
    weights: tuple[float, float], steps: int,
) -> tuple[float, Array]:  # fmt: skip
    """A few steps of conjugate gradients on each row of a block, and F of the block before."""
    dtype = own.dtype
    stiffness = (model.cols if turned else model.rows)[ends[0] : ends[1]]
    free, roots = model.ridge is not None, None
    targets = (block.values - model.mean).astype(dtype, copy=False)
    if block.weights is not None:
        roots = np.sqrt(block.weights).astype(dtype)
        targets = targets * roots
    fits = RowFits(
        cpu.index_array(block.starts), cpu.index_array(block.neighbour), roots, targets,
        free, roots if free else None, stiffness.astype(dtype),
    )  # fmt: skip
    P = own.copy()
    penalty = np.full(P.shape[1], weights[0])
    penalty[-1] = weights[1]
    return fits.refit(P, np.concatenate(other), penalty, steps), P


def _refit_rows(*given: Any) -> Array:
    """The rows alone."""
    return _refit(*given)[1]


def _first(pair: tuple[float, Array]) -> float:
    return pair[0]


def _second(pair: tuple[float, Array]) -> Array:
    return pair[1]


def _upper_penalty(
    rows: Array, model: Model, ends: list[int], weights: tuple[float, float]
) -> float:
    return _penalty(rows, model.rows[ends[0] : ends[1]], weights)


def _penalty(rows: Array, stiffness: Array, weights: tuple[float, float]) -> float:
    """λ/2 Σ a_i ‖p_i‖² + κ/2 ‖b‖²."""
    squares = np.einsum("ij,ij->i", rows[:, :-1], rows[:, :-1])
    norms = float(stiffness @ squares), float(np.sum(np.square(rows[:, -1]), dtype=float))
    return 0.5 * sum(w * norm for w, norm in zip(weights, norms, strict=True))


def _with_offsets(factor: Array, units: Array, offsets: Array, dtype: Any) -> Array:
    return np.column_stack([factor / units[:, None], offsets]).astype(dtype)


def _factor(rows: Array, units: Array) -> Array:
    return np.array(rows[:, :-1], dtype=float, order="C") * units[:, None]


def _difference(before: Array, after: Array) -> Array:
    return after - before


def _products(last: Array, others: list[Array]) -> Array:
    return products([*others, last]).astype(float)


def _mixture(last: Array, others: list[Array], weights: Array) -> Array:
    return mixture([*others, last], weights.astype(last.dtype))


def _scattered(size: Array, rank: int, seed: int, dtype: str) -> Array:
    """Random columns of a size for each row, and offsets of 0."""
    state = np.zeros((size.shape[0], rank + 1), dtype=dtype)
    if size.any():
        state[:, :-1] = size[:, None] * _noise(seed, (size.shape[0], rank))
    return state


def _widened(state: Array, rank: int, size: Array, seed: int) -> Array:
    own = state.shape[1] - 1
    wide = np.empty((state.shape[0], rank + 1), dtype=state.dtype)
    wide[:, :own], wide[:, -1] = state[:, :-1], state[:, -1]
    wide[:, own:-1] = size[:, None] * _noise(seed, (state.shape[0], rank - own))
    return wide


def _noise(seed: int, shape: tuple[int, int]) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
