"""What a task sees of a block of ratings: the factors that they need, and each one's numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays import cpu
from gramian.dask._ratings import Block

Array = NDArray[np.floating]

COLUMNS = 512
"""Columns of a product of sparse matrices that are formed at a time."""


@dataclass(frozen=True)
class Model:
    """What tasks need to know beside the ratings: μ, κ (None without offsets), A and B."""

    mean: float
    ridge: float | None
    rows: Array
    cols: Array
    train: bool = False
    """Whether the ratings held out are left out."""
    levels: Array | None = None
    """Where ratings are ordered levels k = 0 … K − 1, those: then 2k − (K − 1) stands for each."""

    def scores(self, values: Array) -> Array:
        """What is fitted of ratings, before the mean is taken off."""
        if self.levels is None:
            return np.asarray(values, dtype=float)
        return 2.0 * np.searchsorted(self.levels, values) - (self.levels.size - 1.0)


@dataclass(frozen=True)
class Scene:
    """A block with the factors that its ratings need, and the numbers of each rating."""

    block: Block
    top: Array
    low: Array
    model: Model
    ends: list[int]
    reached: list[list[int]]

    @property
    def omega(self) -> Array | float:
        return 1.0 if self.block.weights is None else self.block.weights

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """The row of each rating."""
        return self.block.row_of()

    @cached_property
    def scale(self) -> Array:
        a, b = self.model.rows[self.ends[0] : self.ends[1]], self.own(self.model.cols)
        return (a**-0.5)[self.rows] * (b**-0.5)[self.block.neighbour]

    @property
    def targets(self) -> Array:
        return self.model.scores(self.block.values) - self.model.mean

    @property
    def mass(self) -> Array:
        """D_k: the ratings of each row, weighted, and κ."""
        assert self.model.ridge is not None
        if self.block.weights is None:
            return np.diff(self.block.starts) + self.model.ridge
        return self.by_row(np.ones(self.rows.size)) + self.model.ridge

    def own(self, items: NDArray[Any]) -> NDArray[Any]:
        """What belongs to the items that the block reaches, of all of them."""
        return np.concatenate([items[a:b] for a, b in self.reached])

    def whole(self, own: NDArray[Any]) -> Array:
        """Back among all items, 0 for those that the block does not reach."""
        found = np.zeros((self.model.cols.size, *own.shape[1:]))
        at = 0
        for a, b in self.reached:
            found[a:b] = own[at : at + b - a]
            at += b - a
        return found

    def by_row(self, e: Array) -> Array:
        return np.bincount(self.rows, self.omega * e, minlength=self.block.rows).astype(float)

    def by_col(self, e: Array) -> Array:
        count = sum(b - a for a, b in self.reached)
        return np.bincount(self.block.neighbour, self.omega * e, minlength=count).astype(float)

    def links(self) -> sp.csr_array:
        ones = np.ones(self.block.values.size) if self.block.weights is None else self.block.weights
        return self.block.matrix(ones, sum(b - a for a, b in self.reached))

    def right(self, e: Array) -> Array:
        """g − Nᵀ D⁻¹ f of the items, for what is to be fitted."""
        return self.by_col(e) - self.links().T @ (self.by_row(e) / self.mass)

    def fitted(self, e: Array, c: Array | None) -> tuple[Array, Array]:
        """b for these c, and what is left of e beside both."""
        if c is None:
            return np.zeros(self.block.rows), e
        own = self.own(c)
        b = (self.by_row(e) - self.links() @ own) / self.mass
        return b, e - b[self.rows] - own[self.block.neighbour]

    def gradient(self, e: Array) -> sp.csr_array:
        """The block ½G of ½[0 G; Gᵀ 0], weighted by e."""
        data = 0.5 * self.scale * e
        return self.block.matrix(data, sum(b - a for a, b in self.reached))


def scene_of(block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any) -> Scene:
    block = block.part(model.train)
    joined = np.concatenate(low) if low else np.zeros((0, top.shape[1]))
    return Scene(block, top, joined, model, ends, reached)


def entries(scene: Scene, top: Array, low: Array) -> Array:
    """s_e p_i·q_j."""
    found = cpu.gather_products(
        np.ascontiguousarray(top), np.ascontiguousarray(low), scene.rows, scene.block.neighbour
    )
    return scene.scale * found


def images(scene: Scene, top: Array | None, low: Any) -> Array:
    """The entries of ½(XYᵀ + YXᵀ), Y where there is one beside the scene's own."""
    if top is None:
        return entries(scene, scene.top, scene.low)
    other = np.concatenate(low)
    return 0.5 * (entries(scene, scene.top, other) + entries(scene, top, scene.low))


def columns(scene: Scene, top2: Any, low2: Any, widths: tuple[int, ...]) -> Array:
    """The targets, and the entries of each of several ½(XYᵀ + YXᵀ) side by side."""
    found = [scene.targets]
    at, other = 0, scene.low if low2 is None else np.concatenate(low2)
    above = scene.top if top2 is None else top2
    for width in widths:
        part = slice(at, at + width)
        one = entries(scene, scene.top[:, part], other[:, part])
        two = entries(scene, above[:, part], scene.low[:, part])
        found.append(0.5 * (one + two))
        at += width
    return np.column_stack(found)


def dense_product(A: sp.csr_array, B: sp.csr_array) -> Array:
    """AᵀB as a dense matrix, some columns at a time: its sparse form would be larger."""
    found, turned = np.empty((A.shape[1], B.shape[1])), sp.csr_array(A.T)
    right = sp.csc_array(B)
    for first in range(0, B.shape[1], COLUMNS):
        part = right[:, first : first + COLUMNS]
        found[:, first : first + COLUMNS] = (turned @ part).toarray()
    return found
