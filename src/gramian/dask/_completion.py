"""A completion of ratings on a cluster: `Composite` with entries, loss and gradient in blocks.

F = min over b, c of ½ Σ_e ω_e (s_e p_i·q_j + b_i + c_j − t_e)² + κ/2 (‖b‖² + ‖c‖²), and λ/2 tr M.
The factor, the image z and the dual vector w are on the workers, by blocks of users. A pass of the
loss over the entries is a round of tasks, each of which makes the pass of `SquaredWithOffsets` over
one block; sums, and vectors with one entry for each user or item, are sent to the driver. The
factor is improved by sweeps (`_sweeps`), which need neither slopes nor restrictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from gramian.arrays.cpu import csr, index_array
from gramian.arrays.places import Place, backend, host, moved, place
from gramian.common.types import Array
from gramian.dask._ratings import ClusterRatings, RatingBlock
from gramian.dask._spread import RemoteRows, SpreadMatrix, spread
from gramian.losses import SquaredWithOffsets
from gramian.losses.base import PerImage
from gramian.losses.offsets import EliminatedOffsets, Sides
from gramian.maps import BlockEntries
from gramian.objectives import Composite
from gramian.objectives.composite import CompositeImage
from gramian.objectives.supports import Support
from gramian.proofs import rounded_sum
from gramian.reductions.block_embedding import BlockEmbedding

PIECE = 3e7
"""Size in bytes of the part of GᵀG that a task computes at a time."""

SPEED = 5e7
"""Products of two entries of a row added to GᵀG per second."""

FIXED = 1e300
"""The ridge κ of offsets that are 0."""


@dataclass(frozen=True)
class CompletionModel:
    """The part of F that does not depend on the ratings: μ, κ (None without offsets), A and B."""

    mean: float
    ridge: float | None
    rows: Array
    cols: Array
    device: Any = None
    """Where each worker evaluates its blocks; sweeps and products with G are on its processor."""


class Completed(Composite):
    """The completion of ratings on a cluster, of order m + n with the factor [P; Q]."""

    loss: RatedSquares

    def __init__(self, rated: ClusterRatings, model: CompletionModel, lam: float) -> None:
        self.rated, self.model, self.lam = rated, model, float(lam)
        self._last: CompositeImage | None = None
        super().__init__(RatedEntries(rated, model.device), RatedSquares(rated, model), 0.5 * lam)

    def image(self, L: Any) -> Any:
        """The image of a factor. That of the last one on the workers is cached, because offsets
        take several rounds.
        """
        if self._last is not None and self._last.factor is L:
            return self._last
        factor: Any = spread(self.rated, L)
        z, linear = self.map.bilinear(factor, factor), 0.5 * self.lam * factor.square()
        found = CompositeImage(factor, z, linear, np.zeros((0, 0)))
        if factor is L:
            self._last = found
        return found

    def trace(self, image: Any) -> float:
        return float(image.linear / (0.5 * self.lam))

    def dual(self, image: Any) -> Any:
        """None: dual vectors stay on the workers."""
        return None

    def support(self, image: Any) -> Support:
        return self.dual_support(self.loss.gradient(image.z))

    def rounding(self, image: Any) -> float:
        """The rounding error of the values of the blocks and of their sum."""
        sums = rounded_sum(len(self.rated.users.blocks)) * abs(self.value(image))
        return super().rounding(image) + sums

    def offsets(self, L: SpreadMatrix) -> Sides:
        """The optimal b and c of a factor."""
        return self.loss.offsets(self.image(L).z)

    def _not_on_a_cluster(self, *given: Any) -> Any:
        raise NotImplementedError("the factor of a completion on a cluster is improved by sweeps")

    pair_image: Any = _not_on_a_cluster
    hessian_factor = subspace = subspace_cost = combinations = pair_image


class RatedEntries(BlockEntries):
    """The map to the entries of (PQᵀ) that are rated, by blocks of users."""

    streamed: ClassVar[Any] = False
    apart: ClassVar[Any] = {}

    def __init__(self, rated: ClusterRatings, device: Any) -> None:
        self.rated, self.device, self.cluster = rated, device, rated.cluster
        self.shape, self.order, self.size = rated.shape, sum(rated.shape), rated.size
        self._matrices: PerImage[Any] = PerImage()

    def bilinear(self, U: Any, V: Any) -> Any:
        """z of a factor, kept on the workers."""
        users = self.rated.users
        near = users.near(U.lower)
        made = self.cluster.each("entries", _entries, users.blocks, U.upper, near, self.device)
        return RemoteRows(self.cluster, self.cluster.keep(made), np.zeros(0), self.size)

    def matrix(self, w: Any) -> Any:
        """G, on the driver if it is small: an estimate of λ_min takes more than a hundred products,
        each of which would be a round.
        """
        return self._matrices.get(w, self._matrix)

    def _matrix(self, w: Any) -> Any:
        users = self.rated.users
        parts = w.blocks if isinstance(w, RemoteRows) else users.entries(w)
        made = self.cluster.each("matrix", RatingBlock.matrix, users.blocks, self.shape[1], parts)
        found = RatedMatrix(self.rated, self.cluster.keep(made))
        return found.gathered() if self.rated.is_small else found

    def adjoint(self, w: Any, V: Array) -> Array:
        G, m = self.matrix(w), self.shape[0]
        if isinstance(G, RatedMatrix):
            return 0.5 * G.times(V)
        return 0.5 * np.concatenate([G @ V[m:], G.T @ V[:m]])

    def vector_product(self, w: Any) -> Callable[[Array], Array]:
        return lambda v: self.adjoint(w, v)


class RatedSquares(SquaredWithOffsets):
    """`SquaredWithOffsets` of ratings on a cluster: the offsets of users are eliminated."""

    def __init__(self, rated: ClusterRatings, model: CompletionModel) -> None:
        self.rated, self.model, self.cluster = rated, model, rated.cluster
        self.ridge = FIXED if model.ridge is None else model.ridge
        self.shape, self.size = rated.shape, rated.size
        self._looked: PerImage[Any] = PerImage()
        self._slopes: PerImage[Any] = PerImage()

    def gradient(self, z: Any) -> Any:
        return self._slopes.get(z, super().gradient)

    def squares(self, z: Any, fitted: Sides) -> float:
        return float(self._looked.get(z, lambda z: self._sum(_looked, fitted, z))[0][0])

    def sums_left(self, z: Any, fitted: Sides | None = None) -> Sides:
        if fitted is None:
            return self._sum(SquaredWithOffsets.sums_left, None, z)[1]
        return self._looked.get(z, lambda z: self._sum(_looked, fitted, z))[1]

    def slopes(self, z: Any, fitted: Sides) -> Any:
        kept = self.cluster.keep(self._tasks(SquaredWithOffsets.slopes, fitted, z))
        return RemoteRows(self.cluster, kept, np.zeros(0), self.rated.size)

    def divided(self, w: Any) -> tuple[float, float, Sides]:
        numbers, sums = self._sum(SquaredWithOffsets.divided, None, w)
        return float(numbers[0]), float(numbers[1]), sums

    def linked(self, side: int, values: Array) -> Array:
        empty = np.zeros(self.shape[side])
        given = (empty, values) if side == 0 else (values, empty)
        return self._sum(_linked, given)[1][side]

    @property
    def masses(self) -> Sides:
        ones = np.ones(self.shape[0]), np.ones(self.shape[1])
        by_row, by_col = self._sum(_linked, ones)[1]
        return by_row + self.ridge, by_col + self.ridge

    def _fitted(self, z: Any) -> Sides:
        """The optimal offsets by conjugate gradients, usually eight rounds."""
        if self.model.ridge is None:
            return np.zeros(self.shape[0]), np.zeros(self.shape[1])
        return self._system(self.sums_left(z))

    @cached_property
    def _system(self) -> Any:
        return _RatedOffsets(self).solve

    @cached_property
    def model_there(self) -> Any:
        """The model on the workers, computed again from the graph if it is lost."""
        return self.cluster.keep([self.cluster.shared("model", self.model)])[0]

    def _tasks(self, function: Any, fitted: Sides | None, *entries: RemoteRows) -> list[Any]:
        """A pass over each block of users, for offsets of its users and of all items."""
        users = self.rated.users
        b, c = (None, None) if fitted is None else fitted
        return self.cluster.each(
            function.__name__.strip("_"), _in_block, function, users.blocks, self.model_there,
            None if b is None else users.pieces(b),
            None if c is None else self.cluster.shared("offsets", c),
            *(one.blocks for one in entries),
        )  # fmt: skip

    def _sum(
        self, function: Any, fitted: Sides | None, *entries: RemoteRows
    ) -> tuple[Array, Sides]:
        """Numbers, and sums by row and by column, in one round."""
        nodes = self._tasks(function, fitted, *entries)
        found, by_row = self.cluster.gather([self.cluster.tree("sums", nodes, _stacked)])[0]
        numbers, by_col = np.split(found, [found.size - self.shape[1]])
        return numbers, (by_row, by_col)


class _RatedOffsets(EliminatedOffsets):
    """The equations of the offsets of items, by conjugate gradients."""

    _inverse: Any = None

    def __init__(self, loss: RatedSquares) -> None:
        self.loss, self.long = loss, 0
        self.masses, self.linked = loss.masses, loss.linked

    def coupled(self, own: Array) -> Array:
        """NᵀD⁻¹N c in one round."""
        cluster, blocks = self.loss.cluster, self.loss.rated.users.blocks
        there = cluster.shared("offsets", own)
        return cluster.sum("offsets", _coupled, blocks, self.loss.ridge, there)


class RatedMatrix:
    """G, a sparse matrix in blocks of users that are kept on the workers."""

    def __init__(self, rated: ClusterRatings, kept: list[Any]) -> None:
        self.rated, self.cluster, self.kept, self.shape = rated, rated.cluster, kept, rated.shape

    def gathered(self) -> sp.csr_array:
        """The matrix on the driver."""
        return sp.csr_array(sp.vstack(self.cluster.gather(self.kept)))

    def times(self, V: Array) -> Array:
        """[0, G; Gᵀ, 0]V, one round."""
        users = self.rated.shape[0]
        tops = self.rated.users.pieces(V[:users])
        low = self.cluster.shared("vectors", np.ascontiguousarray(V[users:]))
        below, above = self.cluster.sum("product", _times, self.kept, tops, low, join=_stacked)
        return np.concatenate([above, below])

    @cached_property
    def gram(self) -> Array:
        """GᵀG: a sum over blocks of users, some columns a round."""
        items = self.shape[1]
        width = max(1, int(PIECE / (8 * items)))
        return np.hstack([
            self.cluster.sum("gram", _gram, self.kept, first, min(first + width, items))
            for first in range(0, items, width)
        ])  # fmt: skip

    def gram_times(self, V: Array) -> Array:
        """GᵀGV for a few columns V, one round unless GᵀG is known."""
        if "gram" in vars(self):
            return self.gram @ V
        there = self.cluster.shared("vectors", np.ascontiguousarray(V))
        return self.cluster.sum("product", _gram_times, self.kept, there)

    @property
    def forming(self) -> float:
        """Estimated seconds on one worker, so that decisions do not depend on the cluster size."""
        return float(np.sum(np.square(self.rated.users.counts, dtype=float))) / SPEED

    @property
    def longest(self) -> int:
        """The largest number of entries of a column."""
        return int(np.max(self.rated.items.counts, initial=1))


# --- tasks -------------------------------------------------------------------------------


def _entries(block: RatingBlock, top: Array, low: list[Array], device: Any) -> Array:
    put = _place(block, device).put
    P, Q, rows, cols = map(put, (top, np.concatenate(low), block.row_of(), block.neighbour))
    return host(backend(P).gather_products(P, Q, rows, cols))


def _place(block: RatingBlock, device: Any) -> Place:
    """The device, or the processor for a block without ratings."""
    return place(device if block.values.size else None)


def _in_block(
    function: Callable[..., Any], block: RatingBlock, model: CompletionModel, b: Array | None,
    c: Array | None, *entries: Array,
) -> Any:  # fmt: skip
    """A pass over the entries of a block, with their items numbered among those of the block."""
    items = block.columns
    embedding = BlockEmbedding(model.rows[slice(*block.ends)], model.cols[items])
    ridge = FIXED if model.ridge is None else model.ridge
    loss = moved(
        SquaredWithOffsets(
            block.values, block.row_of(), block.neighbour, embedding.shape, ridge=ridge,
            scale=embedding.sides, weight=block.weights, centre=model.mean,
        ),
        _place(block, model.device),
    )  # fmt: skip
    put = loss.place.put
    given = [*map(put, entries)]
    given += [] if b is None or c is None else [(put(b), put(c[items]))]
    found = function(loss, *given)
    if not isinstance(found, tuple):
        return host(found)
    *numbers, (by_row, by_col) = found if isinstance(found[-1], tuple) else (found,)
    sums = block.among_all(host(by_col), model.cols.size)
    return np.concatenate([[float(one) for one in numbers], sums]), host(by_row)


def _looked(loss: SquaredWithOffsets, z: Array, fitted: Sides) -> Any:
    return loss.squares(z, fitted), loss.sums_left(z, fitted)


def _linked(loss: SquaredWithOffsets, values: Sides) -> Any:
    """N c and Nᵀb."""
    return loss.linked(0, values[1]), loss.linked(1, values[0])


def _coupled(block: RatingBlock, ridge: float, c: Array) -> Array:
    """NᵀD⁻¹N c of the users of a block, for all items."""
    items = c[block.columns]
    omega = np.ones(block.values.size) if block.weights is None else block.weights
    N = csr(omega, block.neighbour, index_array(block.starts), (block.rows, items.size))
    mass, sums = (N @ np.column_stack([np.ones(items.size), items])).T
    return block.among_all(N.T @ (sums / (mass + ridge)), c.size)


def _times(G: sp.csr_array, top: Array, low: Array) -> tuple[Array, Array]:
    return G.T @ top, G @ low


def _stacked(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
    return a[0] + b[0], np.concatenate([a[1], b[1]])


def _gram_times(G: sp.csr_array, V: Array) -> Array:
    """GᵀGV."""
    return np.asarray(G.T @ (G @ V))


def _gram(G: sp.csr_array, first: int, last: int) -> Array:
    """Some columns of GᵀG, dense."""
    return (G.T @ sp.csc_array(G[:, first:last])).toarray()
