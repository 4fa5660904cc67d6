"""A block of ratings as a task sees it: the objective at home over the ratings of the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._ratings import Block
from gramian.losses import Loss, Squared, SquaredWithOffsets
from gramian.maps import BlockEntries
from gramian.objectives import Composite
from gramian.reductions.block_embedding import BlockEmbedding

Array = NDArray[np.floating]

NO_WEIGHT = 1e-200
"""The weight of the one rating that stands for those of a block without any."""


@dataclass(frozen=True)
class Model:
    """What tasks need to know beside the ratings: μ, κ (None without offsets), A and B."""

    mean: float
    ridge: float | None
    rows: Array
    cols: Array


@dataclass(frozen=True)
class Scene:
    """A block with the rows of the factors X and Y that its ratings need, users above items."""

    block: Block
    model: Model
    ends: list[int]
    reached: list[list[int]]
    X: Array
    Y: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of users and of items that the block reaches."""
        return self.block.rows, sum(b - a for a, b in self.reached)

    @cached_property
    def map(self) -> BlockEntries:
        return BlockEntries(self.block.row_of(), self.block.neighbour, self.shape)

    @cached_property
    def embedding(self) -> BlockEmbedding:
        return BlockEmbedding(self.model.rows[slice(*self.ends)], self.own(self.model.cols))

    @cached_property
    def z(self) -> Array:
        """The entries of ½(XYᵀ + YXᵀ)."""
        return self.map.bilinear(self.X, self.Y)

    def part(self, c: Array | None = None, *, targets: bool = True) -> Composite:
        """F of the block with the offsets c of the items, 0 by default; those of users are free.

        Without targets its gradient is the second derivative of F along z, where −c belongs to z.
        """
        block, model = self.block, self.model
        values = block.values if targets else np.zeros(block.values.size)
        mean = model.mean if targets else 0.0
        if model.ridge is None:
            units = self.embedding.units(self.map.rows, self.map.cols)
            omega = 1.0 if block.weights is None else block.weights
            loss: Loss = Squared((values - mean) / units, weight=0.5 * omega * units**2)
        else:
            loss = SquaredWithOffsets(
                values, self.map.rows, self.map.cols, self.map.shape, ridge=model.ridge,
                scale=self.embedding.sides, weight=block.weights, centre=mean,
                columns=self.own(np.zeros(model.cols.size) if c is None else c),
            )  # fmt: skip
        return Composite(self.map, loss)

    def residual_sums(self, part: Composite, z: Array) -> Array:
        """The sums over users of what a part leaves at z, for all items; 0 without offsets."""
        if not isinstance(part.loss, SquaredWithOffsets):
            return np.zeros(self.model.cols.size)
        return self.whole(part.loss.column_sums(z))

    def own(self, items: NDArray[Any]) -> NDArray[Any]:
        """What belongs to the items that the block reaches, of all of them."""
        return np.concatenate([items[a:b] for a, b in self.reached])

    def whole(self, own: NDArray[Any]) -> Array:
        """Back among all items, 0 for those that the block does not reach."""
        found, at = np.zeros((self.model.cols.size, *own.shape[1:])), 0
        for a, b in self.reached:
            found[a:b] = own[at : at + b - a]
            at += b - a
        return found


def in_scene(
    function: Callable[..., Any], block: Block, model: Model, ends: list[int],
    reached: list[list[int]], top: Array, low: list[Array], top2: Any, low2: Any, *more: Any,
) -> Any:  # fmt: skip
    """A function of the scene of a block."""
    if not block.values.size:
        block = _without_weight(block)
    X = np.concatenate([top, *low])
    Y = X if top2 is None else np.concatenate([top2, *low2])
    return function(Scene(block, model, ends, reached, X, Y), *more)


def _without_weight(block: Block) -> Block:
    starts = np.minimum(np.arange(block.rows + 1), 1)
    first: NDArray[np.int32] = np.zeros(1, dtype=np.int32)
    return Block(starts, first, np.zeros(1), np.zeros(1, dtype=bool), np.full(1, NO_WEIGHT))
