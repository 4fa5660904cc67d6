"""A completion over blocks of ratings: the sum of the objectives of blocks of users on workers.

F = min over b, c of ½ Σ_e ω_e (s_e p_i·q_j + b_i + c_j − t_e)² + κ/2 (‖b‖² + ‖c‖²), and λ/2 tr M.
For given offsets c of the items, the part of a block of users is a `Composite` of its ratings,
which eliminates the offsets of its users. Factors stay on the workers (`Spread`); the driver
receives sums, and vectors with one entry for each user or item. The factor is improved by sweeps
(`_sweeps`), which need neither slopes nor restrictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.places import HOST, host, norm
from gramian.dask._objective import placed
from gramian.dask._ratings import ClusterRatings, RatingBlock
from gramian.dask._spread import SpreadMatrix, spread
from gramian.linalg import conjugate_gradient
from gramian.losses import SquaredWithOffsets
from gramian.losses.offsets import ACCURACY, MOST_STEPS
from gramian.maps import BlockEntries
from gramian.objectives import Composite
from gramian.objectives.base import Facts, Objective, SymmetricOperator
from gramian.objectives.matrices import SparsePlusLowRank
from gramian.objectives.parts import rounding_of_parts
from gramian.objectives.supports import Growth, Support
from gramian.problems.completion import completion_loss
from gramian.proofs import Bipartite, rounded_sum
from gramian.proofs.bipartite import LiftedGram
from gramian.reductions.block_embedding import BlockEmbedding

Array = NDArray[np.floating]

PIECE = 3e7
"""Size in bytes of the part of BᵀB that a task computes at a time."""

SPEED = 5e7
"""Products of two entries of a row added to BᵀB per second."""

NO_WEIGHT = 1e-200
"""The weight of the single rating that represents a block without ratings."""


@dataclass(frozen=True)
class CompletionModel:
    """The part of F that does not depend on the ratings: μ, κ (None without offsets), A and B."""

    mean: float
    ridge: float | None
    rows: Array
    cols: Array
    device: Any = None
    """Where each worker evaluates its blocks; sweeps and products with B are on its processor."""


class Told(NamedTuple):
    """Sums over the blocks of users at a point."""

    value: float
    rounding: float
    with_point: float
    """⟨w, z⟩."""
    square: float
    linear: float
    """g*(sw) = s² square + s linear for the losses of the blocks."""
    by_col: Array
    """The weighted sum of the residuals of each item."""


@dataclass
class RatedImage:
    """M = LLᵀ of a factor on the workers, and the results of rounds."""

    factor: Any
    """A `Spread`."""
    terms: Told | None = None
    offsets: Array | None = None
    """c."""
    residual: Residual | None = None

    @cached_property
    def trace(self) -> float:
        return float(self.factor.square())


class Completed(Objective[RatedImage]):
    """The completion of ratings on a cluster, of order m + n with the factor [P; Q]."""

    constant = 0.0

    def __init__(self, rated: ClusterRatings, model: CompletionModel, lam: float) -> None:
        self.rated, self.model, self.lam = rated, model, float(lam)
        self.order, self.cluster = sum(rated.shape), rated.cluster
        self.facts = Facts(quadratic=True, terms=rated.size, wide=True)
        self._last: RatedImage | None = None

    @cached_property
    def model_there(self) -> Any:
        """The model on the workers, computed again from the graph if it is lost."""
        return self.cluster.keep([self.cluster.shared("model", self.model)])[0]

    def image(self, L: Array | SpreadMatrix) -> RatedImage:
        """The image of a factor. The last image is cached, because offsets take several rounds."""
        if not isinstance(L, SpreadMatrix):
            return RatedImage(spread(self.rated, L))
        if self._last is None or self._last.factor is not L:
            self._last = RatedImage(L)
        return self._last

    def value(self, image: RatedImage) -> float:
        terms, c = self._told(image), image.offsets
        own = 0.0 if c is None or self.model.ridge is None else 0.5 * self.model.ridge * (c @ c)
        return terms.value + float(own) + 0.5 * self.lam * image.trace

    def trace(self, image: RatedImage) -> float:
        return image.trace

    def complementarity(self, image: RatedImage) -> float:
        """⟨∇F(M), M⟩ = Σ w z + λ/2 tr M."""
        return self._told(image).with_point + 0.5 * self.lam * image.trace

    def gradient(self, image: RatedImage) -> SymmetricOperator:
        half = 0.5 * self.lam
        return SymmetricOperator(
            self.order,
            lambda V: self.residual(image).times(V) + half * V,
            lambda: self.residual(image).sparse().toarray() + half * np.eye(self.order),
            lambda: self.residual(image).form(half),
            lambda: rounding_of_parts(
                SparsePlusLowRank(self.order, half, self.residual(image).sparse())
            ),
        )

    def rounding(self, image: RatedImage) -> float:
        """The error of the blocks, of their sum, of ⟨C, M⟩ and of the offsets."""
        terms, linear = self._told(image), 0.5 * self.lam * image.trace
        blocks = rounded_sum(len(self.rated.users.blocks))
        sums = (4 * rounded_sum(1) + blocks) * (abs(terms.value) + abs(linear))
        longest = rounded_sum(max(image.factor.shape))
        return float(terms.rounding + sums + longest * linear + self._rest(image))

    def _rest(self, image: RatedImage) -> float:
        """‖ρ‖²/κ, ρ the residual of the equations of the items' offsets."""
        if image.offsets is None or self.model.ridge is None:
            return 0.0
        left = self.model.ridge * image.offsets - self._told(image).by_col
        return float(left @ left) / self.model.ridge

    def growth(self) -> Growth:
        return Growth(0.0, 0.5 * self.lam)

    def support(self, image: RatedImage) -> Support:
        """−g*(sw): that of the blocks for their offsets c, and ⟨v, c⟩ + ‖v‖²/2κ, where v are the
        sums of sw over users.
        """
        terms, c = self._told(image), image.offsets
        square, linear = terms.square, terms.linear
        if c is not None and self.model.ridge is not None:
            square += float(terms.by_col @ terms.by_col) / (2 * self.model.ridge)
            linear -= float(terms.by_col @ c)

        def at(s: float) -> float:
            return -s * (s * square + linear)

        return Support(at(1.0), 0.5 * self.lam, at)

    def offsets(self, image: RatedImage) -> tuple[Array, Array]:
        """The best b and c of a point; 0 without offsets."""
        if self.model.ridge is None:
            return np.zeros(self.rated.shape[0]), np.zeros(self.rated.shape[1])
        self._told(image)
        assert image.offsets is not None
        nodes = self._tasks("offsets", _row_offsets, image.factor, image.offsets)
        return np.concatenate(self.cluster.gather(nodes)), image.offsets

    def residual(self, image: RatedImage) -> Residual:
        """½ 𝒜*(w) of each block as a sparse matrix, kept on the workers."""
        self._told(image)
        if image.residual is None:
            nodes = self._tasks("residual", _residual, image.factor, image.offsets)
            image.residual = Residual(self.rated, self.cluster.keep(nodes))
        return image.residual

    def _told(self, image: RatedImage) -> Told:
        if image.terms is None:
            if self.model.ridge is not None:
                image.offsets = self._column_offsets(image.factor, self.model.ridge)
            found = self._sum("gradient", _look, image.factor, image.offsets)
            value, rounding, with_point, square, linear = found[:5].tolist()
            image.terms = Told(value, rounding, with_point, square, linear, found[5:])
        return image.terms

    def _column_offsets(self, factor: SpreadMatrix, ridge: float) -> Array:
        """c by conjugate gradients, one round per step, usually eight.

        With N the weights of the ratings, their sums n_i and n_j by row and column, and σ the sums
        of the residuals over users for c = 0, κc_j + n_j c_j − (Nᵀ diag(n_i + κ)⁻¹ N c)_j = σ_j.
        """
        users, items = self.rated.users, self.rated.items
        right: Array = self._sum("offsets", _column_sums, factor, np.zeros(items.counts.size))
        ranges = users.ranges(items)

        def product(c: Array) -> Array:
            there = self.cluster.shared("offsets", c)
            sums: Array = self.cluster.sum("offsets", _reduced, users.blocks, ranges, ridge, there)
            return ridge * c + sums

        counts = items.counts * (self.rated.weight / self.rated.size)
        return conjugate_gradient(
            product,
            right,
            steps=MOST_STEPS,
            precondition=lambda c: c / (counts + ridge),
            residual=ACCURACY * norm(right),
        ).x

    def _tasks(self, name: str, function: Any, factor: SpreadMatrix, c: Array | None) -> list[Any]:
        """A task for each block of users, with the rows of the factor for its users and their
        items, and the offsets of all items.
        """
        users = self.rated.users
        lows = [[factor.lower[b] for b in some] for some in users.reached]
        return self.cluster.each(
            name, _in_scene, function, users.blocks, self.model_there, users.ends(),
            users.ranges(self.rated.items), factor.upper, lows, self.cluster.shared("offsets", c),
        )  # fmt: skip

    def _sum(self, name: str, function: Any, factor: SpreadMatrix, c: Array | None) -> Any:
        nodes = self._tasks(name, function, factor, c)
        return self.cluster.gather([self.cluster.tree(name, nodes)])[0]

    def _not_on_a_cluster(self, *given: Any) -> Any:
        raise NotImplementedError("the factor of a completion on a cluster is improved by sweeps")

    pair_image: Any = _not_on_a_cluster
    hessian_factor = subspace = subspace_cost = combinations = pair_image


# --- the gradient ------------------------------------------------------------------------


class Residual:
    """[0, B; Bᵀ, 0] = ½ 𝒜*(w) at a point, B by blocks of users that are kept on the workers."""

    def __init__(self, rated: ClusterRatings, kept: list[Any]) -> None:
        self.rated, self.cluster, self.kept = rated, rated.cluster, kept
        self.shape = rated.shape

    @cached_property
    def block(self) -> sp.csr_array:
        """B on the driver."""
        return sp.csr_array(sp.vstack(self.cluster.gather(self.kept)))

    def sparse(self) -> sp.csr_array:
        """[0, B; Bᵀ, 0] on the driver, for small orders."""
        return sp.csr_array(sp.block_array([[None, self.block], [self.block.T, None]]))

    def form(self, half: float) -> Bipartite:
        """The structure of ∇F = [aI, B; Bᵀ, aI]; its λ_min takes more than a hundred products, each
        of which is a round unless B is on the driver.
        """
        return Bipartite(half, self.block) if self.rated.is_small else RemoteBlock(half, self)

    def times(self, V: Array) -> Array:
        """[0, B; Bᵀ, 0]V, one round unless B is on the driver."""
        users = self.rated.shape[0]
        if self.rated.is_small:
            return np.concatenate([self.block @ V[users:], self.block.T @ V[:users]])
        tops = self.rated.users.pieces(V[:users])
        low = self.cluster.shared("vectors", np.ascontiguousarray(V[users:]))
        below, above = self.cluster.sum("product", _times, self.kept, tops, low, join=_stacked)
        return np.concatenate([above, below])

    @cached_property
    def gram(self) -> Array:
        """BᵀB: a sum over blocks of users, some columns a round."""
        items = self.rated.shape[1]
        width = max(1, int(PIECE / (8 * items)))
        return np.hstack([
            self.cluster.sum("gram", _gram, self.kept, first, min(first + width, items))
            for first in range(0, items, width)
        ])  # fmt: skip

    def gram_times(self, V: Array) -> Array:
        """BᵀBV for a few columns V, one round unless BᵀB is known."""
        if "gram" in vars(self):
            return self.gram @ V
        there = self.cluster.shared("vectors", np.ascontiguousarray(V))
        found: Array = self.cluster.sum("product", _gram_times, self.kept, there)
        return found


@dataclass(frozen=True)
class RemoteBlock(Bipartite):
    """[aI, B; Bᵀ, aI] with a `Residual` B: the sum BᵀB of its blocks is sent to the driver."""

    tall = True

    @property
    def order(self) -> int:
        return int(self.block.shape[1])

    @property
    def forming(self) -> float:
        """Estimated seconds on one worker, so that decisions do not depend on the cluster size."""
        return float(np.sum(np.square(self.block.rated.users.counts, dtype=float))) / SPEED

    def smaller(self) -> Any:
        return _Lifted(self.block, self.scale, 1.0)


class _Lifted(LiftedGram):
    """a²I − BᵀB for a `Residual` B."""

    place = HOST

    def __matmul__(self, V: Array) -> Array:
        return self.a**2 * V - self.N.gram_times(V)

    @property
    def _gram(self) -> Array:
        return self.N.gram

    @property
    def longest(self) -> int:
        return int(np.max(self.N.rated.items.counts, initial=1))


# --- tasks -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A block with the rows of the factor that its ratings need, users above items, and the
    offsets of all items.
    """

    block: RatingBlock
    model: CompletionModel
    ends: list[int]
    reached: list[list[int]]
    X: Array
    c: Array | None

    @cached_property
    def map(self) -> BlockEntries:
        shape = self.block.rows, sum(b - a for a, b in self.reached)
        return BlockEntries(self.block.row_of(), self.block.neighbour, shape)

    @cached_property
    def part(self) -> Any:
        """F of the block."""
        block, model, c = self.block, self.model, self.c
        embedding = BlockEmbedding(model.rows[slice(*self.ends)], self.own(model.cols))
        loss = completion_loss(
            self.map, embedding, block.values, ridge=model.ridge, weights=block.weights,
            centre=model.mean, columns=None if c is None else self.own(c),
        )  # fmt: skip
        return placed(Composite(self.map, loss), model.device)

    @property
    def z(self) -> Any:
        X = self.part.place.put(self.X)
        return self.part.map.bilinear(X, X)

    def own(self, items: NDArray[Any]) -> NDArray[Any]:
        """The entries of the items that occur in the block."""
        return np.concatenate([items[a:b] for a, b in self.reached])

    def column_sums(self, z: Any) -> Array:
        """The weighted sums of the residuals over users, for all items; 0 without offsets."""
        size, loss = self.model.cols.size, self.part.loss
        if not isinstance(loss, SquaredWithOffsets):
            return np.zeros(size)
        return _among_all(host(loss.column_sums(z)), self.reached, size)


def _in_scene(
    function: Callable[..., Any], block: RatingBlock, model: CompletionModel, ends: list[int],
    reached: list[list[int]], top: Array, low: list[Array], c: Array | None,
) -> Any:  # fmt: skip
    """A function of the scene of a block."""
    if not block.values.size:
        starts, first = np.minimum(np.arange(block.rows + 1), 1), np.zeros(1, dtype=np.int32)
        block = RatingBlock(
            starts, first, np.zeros(1), np.zeros(1, dtype=bool), np.full(1, NO_WEIGHT)
        )
    return function(Scene(block, model, ends, reached, np.concatenate([top, *low]), c))


def _among_all(values: Array, reached: list[list[int]], size: int) -> Array:
    """The values of the items that occur in a block, among all items."""
    found, at = np.zeros(size), 0
    for a, b in reached:
        found[a:b] = values[at : at + b - a]
        at += b - a
    return found


def _look(scene: Scene) -> Array:
    """The sums over a block as one array: its scalars, then the residual sums of the items."""
    part = scene.part
    image = part.image(part.place.put(scene.X))
    w = part.dual(image)
    support = part.dual_support(w)
    assert support.shrunk is not None
    once, twice = -support.value, -support.shrunk(2.0)
    square = 0.5 * twice - once
    numbers = part.value(image), part.rounding(image), float(w @ image.z), square, once - square
    return np.concatenate([numbers, scene.column_sums(image.z)])


def _column_sums(scene: Scene) -> Array:
    return scene.column_sums(scene.z)


def _reduced(block: RatingBlock, reached: list[list[int]], ridge: float, c: Array) -> Array:
    """n_j c_j − (Nᵀ diag(n_i + κ)⁻¹ N c)_j of the users of a block, for all items."""
    items = np.concatenate([c[a:b] for a, b in reached])
    omega = np.ones(block.values.size) if block.weights is None else block.weights
    N = sp.csr_array((omega, block.neighbour, block.starts), shape=(block.rows, items.size))
    mass, sums = (N @ np.column_stack([np.ones(items.size), items])).T
    mass, sums = (N.T @ np.column_stack([np.ones(block.rows), sums / (mass + ridge)])).T
    return _among_all(mass * items - sums, reached, c.size)


def _row_offsets(scene: Scene) -> Array:
    return host(scene.part.loss.offsets(scene.z)[0])


def _residual(scene: Scene) -> sp.csr_array:
    """The block ½G of 𝒜*(w) among all items."""
    G = scene.map.matrix(0.5 * host(scene.part.loss.gradient(scene.z)))
    items = scene.own(np.arange(scene.model.cols.size)).astype(np.int32)
    shape = scene.block.rows, scene.model.cols.size
    return sp.csr_array((G.data, items[G.indices], G.indptr), shape=shape)


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
