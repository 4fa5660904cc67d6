"""A completion over blocks of ratings: values, gradients and half-sweeps by tasks.

F = min over b, c of ½ Σ_e ω_e (s_e p_i·q_j + b_i + c_j − t_e)² + κ/2 (‖b‖² + ‖c‖²), and λ/2 tr M.
A block of users has all ratings of its rows, so that their offsets b are eliminated there; those
of the items solve (D_c − Σ_k N_kᵀ D_k⁻¹ N_k) c = g on the driver, by Cholesky's factor where they
are few and by conjugate gradients, a round a step, beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from gramian.backends import cpu
from gramian.dask._ratings import Block, Rated, Side
from gramian.maps.triangle import triangle
from gramian.objectives.base import (
    Blend,
    Growth,
    Line,
    LowerBound,
    Objective,
    SymmetricOperator,
)
from gramian.objectives.parts import Parts, rounding_of_parts
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.supports import Support, feasible
from gramian.proofs import Bipartite, rounded_sum
from gramian.proofs.base import UNIT

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

DIRECT = 5000
"""Items up to which their offsets are found by Cholesky's factor: 0.2 GB on the driver."""

ACCURACY, MOST_STEPS = 1e-13, 500
"""The residual that conjugate gradients end at beyond that, relatively, and their steps."""

NEAR = 2_000_000
"""Ratings up to which the gradient comes home for the many products of a Krylov method: 50 MB."""

REFINED = 1e-14
"""What offsets may leave of F before they are solved for once more."""


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
class Told:
    """What a round tells of F at a point; sums over blocks, but for `upper`, one array a block."""

    loss: float
    """½ Σ ω ρ² + κ/2 ‖b‖², ρ what is left of the ratings; that of c is the driver's."""
    along: float
    """Σ |w z|."""
    square: float
    """½ Σ ω ρ²."""
    against: float
    """Σ ω ρ t."""
    by_row: float
    """‖Σ_j ω ρ‖²."""
    by_col: Array
    """Σ_i ω ρ, a number for each item."""
    lower: Array
    """The rows of ∇F·V that belong to items."""

    def __add__(self, other: Told) -> Told:
        return Told(*(a + b for a, b in zip(_fields(self), _fields(other), strict=True)))


def _fields(told: Told) -> tuple[Any, ...]:
    return tuple(getattr(told, name) for name in told.__dataclass_fields__)


@dataclass
class RatedImage:
    """M = ½(XYᵀ + YXᵀ), LLᵀ where X is Y, and what rounds have told of it."""

    factor: Array
    X: Array
    Y: Array
    told: Told | None = None
    slope: Array | None = None
    """∇F·L."""
    offsets: Array | None = None
    """c."""
    residuals: list[Any] = field(default_factory=list)
    sparse: Any = None
    """½ 𝒜*(w) where it came home."""


class Completed(Objective):
    """The completion of ratings on a cluster, of order m + n with the factor [P; Q]."""

    quadratic, wide, constant = True, True, 0.0

    def __init__(self, rated: Rated, model: Model, lam: float) -> None:
        self.rated, self.model, self.lam = rated, model, float(lam)
        self.order, self.split = sum(rated.shape), rated.shape[0]
        self.sees: int | None = rated.size

    @property
    def cluster(self) -> Any:
        return self.rated.cluster

    def trace_weighted(self, lam: float) -> Completed:
        """The same with another λ, sharing what does not depend on it."""
        made = Completed(self.rated, self.model, lam)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if k.startswith("_once")})
        return made

    # --- points --------------------------------------------------------------------------

    def image(self, L: Array) -> RatedImage:
        return RatedImage(L, L, L)

    def pair_image(self, X: Array, Y: Array) -> RatedImage:
        return RatedImage(X[:, :0], X, Y)

    def value(self, image: RatedImage) -> float:
        told, c = self._told(image), image.offsets
        own = 0.0 if c is None or self.model.ridge is None else 0.5 * self.model.ridge * (c @ c)
        return told.loss + float(own) + 0.5 * self.lam * float(np.sum(image.X * image.Y))

    def gradient_factor(self, image: RatedImage) -> Array:
        self._told(image)
        assert image.slope is not None
        return 2.0 * image.slope + self.lam * image.factor

    def gradient(self, image: RatedImage) -> SymmetricOperator:
        return SymmetricOperator(
            self.order,
            lambda V: self._product(image, V) + 0.5 * self.lam * V,
            lambda: self._sparse(image).toarray() + 0.5 * self.lam * np.eye(self.order),
            lambda: self._form(image),
            lambda: rounding_of_parts(
                Parts(self.order, 0.5 * self.lam, sp.csr_array(self._sparse(image)))
            ),
        )

    def rounding(self, image: RatedImage) -> float:
        """As at home: of the loss, its slope along z, ⟨C, M⟩, and what the offsets leave."""
        told = self._told(image)
        linear = 0.5 * self.lam * float(np.sum(image.X * image.Y))
        longest = rounded_sum(max(image.factor.shape))
        terms = abs(told.loss) + abs(linear) + told.along
        blocks = rounded_sum(len(self.rated.users.blocks))
        rest = self._rest(image)
        return float(
            (4 * rounded_sum(1) + blocks) * terms + (longest + 16 * UNIT) * told.along
            + longest * linear + rest
        )  # fmt: skip

    def _rest(self, image: RatedImage) -> float:
        """‖ρ‖²/κ, ρ what the equations of the items' offsets leave."""
        if image.offsets is None or self.model.ridge is None:
            return 0.0
        left = self.model.ridge * image.offsets - self._told(image).by_col
        return float(left @ left) / self.model.ridge

    def _told(self, image: RatedImage) -> Told:
        if image.told is None:
            if self.model.ridge is not None:
                image.offsets = self._solve(self._rights(image.X, image.Y, targets=True)[:, 0])
            self._look(image)
            if self._rest(image) > REFINED * abs(self.value(image)):
                assert image.offsets is not None and self.model.ridge is not None
                assert isinstance(image.told, Told)
                left = image.told.by_col - self.model.ridge * image.offsets
                image.offsets = image.offsets + self._solve(left)
                self._look(image)
        assert image.told is not None
        return image.told

    def _look(self, image: RatedImage) -> None:
        nodes = self._each("gradient", _look, image, image.offsets)
        image.told, image.slope = self._joined("gradient", nodes)

    # --- rounds --------------------------------------------------------------------------

    def _each(self, name: str, function: Any, image: RatedImage, *more: Any) -> list[Any]:
        """A task for each block of users with the factors that it needs."""
        return self._tasks(name, function, image.X, image.Y, *more)

    def _tasks(self, name: str, function: Any, X: Array, Y: Array, *more: Any) -> list[Any]:
        tops, lows = self._pieces(X), self._reaching(X)
        if Y is X:
            return self._call(name, function, tops, lows, None, None, *more)
        return self._call(name, function, tops, lows, self._pieces(Y), self._reaching(Y), *more)

    def _call(self, name: str, function: Any, *columns: Any) -> list[Any]:
        users = self.rated.users
        return self._counted(
            name, function, users.blocks, self._once_model, users.ends(),
            users.ranges(self.rated.items), *columns,
        )  # fmt: skip

    def _counted(self, name: str, function: Any, *columns: Any) -> list[Any]:
        nodes: list[Any] = self.cluster.each(name, function, *columns)
        self.cluster.traffic.tasks += len(nodes)
        return nodes

    @cached_property
    def _once_model(self) -> Any:
        """The model on the workers: made again from the graph where it is lost."""
        return self.cluster.keep([self.cluster.shared("model", self.model)])[0]

    def _pieces(self, X: Array) -> list[Any]:
        return [np.ascontiguousarray(piece) for piece in self.rated.users.pieces(X[: self.split])]

    def _reaching(self, X: Array) -> list[Any]:
        nodes = self.rated.taken(X[self.split :], self.rated.items, "factor")
        return [[nodes[b] for b in some] for some in self.rated.users.reached]

    def _joined(self, name: str, nodes: list[Any]) -> tuple[Any, Array]:
        """What blocks tell together, and the rows of the product, users above items."""
        told, upper = self.cluster.beside(name, nodes)
        return told, np.concatenate([upper, told.lower])

    # --- offsets -------------------------------------------------------------------------

    def _rights(self, X: Array, Y: Array, *, targets: bool) -> Array:
        """g − Nᵀ D⁻¹ f of the items for what the users' offsets leave, a column."""
        nodes = self._tasks("offsets", _right, X, Y, targets)
        return self.cluster.gather([self.cluster.tree("offsets", nodes)])[0]

    def _solve(self, right: Array) -> Array:
        if self.rated.shape[1] <= DIRECT:
            found: Array = scipy.linalg.cho_solve(self._once_factor, right)
            return found
        if right.ndim == 2:
            return np.column_stack([self._solve(column) for column in right.T])
        mass = self._once_mass
        system = LinearOperator((right.size,) * 2, matvec=self._schur_product, dtype=float)
        jacobi = LinearOperator((right.size,) * 2, matvec=lambda c: c / mass, dtype=float)
        found, _ = cg(system, right, rtol=ACCURACY, maxiter=MOST_STEPS, M=jacobi)
        return found

    def _schur_product(self, c: Array) -> Array:
        column = np.ascontiguousarray(np.reshape(c, (-1, 1)))
        below = np.zeros((self.order, 1))
        below[self.split :] = column
        nodes = self._tasks("offsets", _schur_times, below, below)
        return (
            self._once_mass * np.ravel(c)
            - self.cluster.gather([self.cluster.tree("offsets", nodes)])[0]
        )

    @cached_property
    def _once_mass(self) -> Array:
        """D_c: the ratings of each item, weighted, and κ."""
        nothing = np.zeros((self.order, 0))
        nodes = self._tasks("offsets", _column_mass, nothing, nothing)
        return self.cluster.gather([self.cluster.tree("offsets", nodes)])[0] + self.model.ridge

    @cached_property
    def _once_factor(self) -> Any:
        nothing = np.zeros((self.order, 0))
        nodes = self._tasks("offsets", _schur, nothing, nothing)
        lost = self.cluster.gather([self.cluster.tree("offsets", nodes)])[0]
        schur = np.diag(self._once_mass) - lost
        return scipy.linalg.cho_factor(schur, lower=True, overwrite_a=True, check_finite=False)

    def row_offsets(self, image: RatedImage) -> Array:
        """b that belongs to a point; c is that of the image."""
        self._told(image)
        nodes = self._each("offsets", _row_offsets, image, image.offsets)
        return np.concatenate(self.cluster.gather(nodes))

    def sizes(self) -> tuple[float, float]:
        """The mean squares of the targets and of the scales of entries."""
        nothing = np.zeros((self.order, 0))
        nodes = self._tasks("sizes", _sizes, nothing, nothing)
        count, targets, scales = self.cluster.gather([self.cluster.tree("sizes", nodes)])[0]
        return float(targets / count), float(scales / count)

    def scores(self) -> Array:
        """How many ratings count, and the sum of what is fitted of them."""
        nothing = np.zeros((self.order, 0))
        nodes = self._tasks("sizes", _scores, nothing, nothing)
        found: Array = self.cluster.gather([self.cluster.tree("sizes", nodes)])[0]
        return found

    def spread(self, counts: Indices, ridge: float) -> float:
        """The squares of ratings beside shrunken means of items, then, with offsets, of users."""
        nothing = np.zeros((self.order, 0))
        if self.model.ridge is None:
            return float(self.sizes()[0] * np.sum(counts))
        count, total = self.scores()
        nodes = self._tasks("sizes", _item_sums, nothing, nothing, float(total / count))
        sums = self.cluster.gather([self.cluster.tree("sizes", nodes)])[0]
        means = float(total / count) + sums / (counts + ridge)
        nodes = self._tasks("sizes", _beside_items, nothing, nothing, means)
        rest = float(self.cluster.gather([self.cluster.tree("sizes", nodes)])[0]) / count
        nodes = self._tasks("sizes", _beside_both, nothing, nothing, means + rest, ridge)
        return float(self.cluster.gather([self.cluster.tree("sizes", nodes)])[0])

    def errors(self, state: Array, bounds: Any) -> Array:
        """How many ratings are held out, and what a state [P b; Q c] is off by for them in all:
        squares, or levels.
        """
        nodes = self._tasks("held-out", _errors, state, state, bounds)
        found: Array = self.cluster.gather([self.cluster.tree("held-out", nodes)])[0]
        return found

    # --- products ------------------------------------------------------------------------

    def _residuals(self, image: RatedImage) -> list[Any]:
        """½ 𝒜*(w) of each block as a sparse matrix, kept on the workers."""
        self._told(image)
        if not image.residuals:
            image.residuals = self.cluster.keep(
                self._each("residual", _residual, image, image.offsets)
            )
        return image.residuals

    def _product(self, image: RatedImage, V: Array) -> Array:
        if self.rated.size <= NEAR:
            return np.asarray(self._sparse(image) @ V)
        columns = V[:, None] if V.ndim == 1 else V
        tops = [np.ascontiguousarray(p) for p in self.rated.users.pieces(columns[: self.split])]
        low = self.cluster.shared("vectors", np.ascontiguousarray(columns[self.split :]))
        nodes = self._counted("product", _times, self._residuals(image), tops, low)
        below, above = self.cluster.beside("product", nodes)
        found = np.concatenate([above, below])
        return found[:, 0] if V.ndim == 1 else found

    def _sparse(self, image: RatedImage) -> sp.csr_array:
        if image.sparse is None:
            block = sp.csr_array(sp.vstack(self.cluster.gather(self._residuals(image))))
            image.sparse = sp.csr_array(sp.block_array([[None, block], [block.T, None]]))
        return image.sparse

    def _form(self, image: RatedImage) -> Any:
        return _Blocks(0.5 * self.lam, self, image)

    def gram(self, image: RatedImage) -> Array:
        """BᵀB for the block B of the gradient: a sum over blocks of users."""
        return self.cluster.sum("gram", _gram, self._residuals(image))

    def hessian_factor(self, image: RatedImage) -> Callable[[Array], Array]:
        gradient = self.gradient(image)

        def product(D: Array) -> Array:
            D = np.ascontiguousarray(D)
            c = None
            if self.model.ridge is not None:
                c = self._solve(self._rights(image.X, D, targets=False)[:, 0])
            nodes = self._tasks("curvature", _bent, image.X, D, c)
            return 2.0 * (gradient @ D) + 4.0 * self._joined("curvature", nodes)[1]

        return product

    # --- restrictions --------------------------------------------------------------------

    def blend(self, image: RatedImage, other: RatedImage) -> Blend:
        def take(alpha: float, beta: float) -> RatedImage:
            kept = [(np.sqrt(s), i.factor) for s, i in ((alpha, image), (beta, other)) if s > 0]
            empty = [image.factor[:, :0]]
            return self.image(np.hstack([root * factor for root, factor in kept] or empty))

        L, V = image.factor, other.factor
        return Blend(self._restricted([(L, L), (V, V)]), take)

    def line(self, image: RatedImage, direction: Array) -> Line:
        def take(mu: float) -> RatedImage:
            return self.image(np.ascontiguousarray(image.factor + mu * direction))

        L, D = image.factor, np.ascontiguousarray(direction)
        return Line(self._restricted([(L, L), (L, D), (D, D)]), take)

    def subspace(self, W: Array) -> QuadraticRestriction:
        places = zip(*triangle(W.shape[1]), strict=True)
        return self._restricted([(scale * W[:, [i]], W[:, [j]]) for i, j, scale in places])

    def subspace_cost(self, columns: int) -> int:
        blocks = len(self.rated.users.blocks)
        return -(-self.rated.size // blocks) * (columns * (columns + 1) // 2)

    def _restricted(self, pairs: list[tuple[Array, Array]]) -> QuadraticRestriction:
        """F over Σ θ_k M_k by the products of their images beside the targets."""
        X, Y = (np.ascontiguousarray(np.hstack(side)) for side in zip(*pairs, strict=True))
        widths = tuple(pair[0].shape[1] for pair in pairs)
        c = None
        if self.model.ridge is not None:
            nodes = self._tasks("offsets", _rights, X, Y, widths)
            c = self._solve(self.cluster.gather([self.cluster.tree("offsets", nodes)])[0])
        nodes = self._tasks("restriction", _products, X, Y, widths, c)
        G = self.cluster.gather([self.cluster.tree("restriction", nodes)])[0]
        if c is not None and self.model.ridge is not None:
            G = G + self.model.ridge * (c.T @ c)
        linear = 0.5 * self.lam * np.array([float(np.sum(a * b)) for a, b in pairs])
        return QuadraticRestriction(0.5 * G[1:, 1:], 0.5 * (linear - G[0, 1:]), 0.5 * G[0, 0])

    # --- bounds --------------------------------------------------------------------------

    def growth(self) -> Growth:
        return Growth(0.0, 0.5 * self.lam)

    def support(self, image: RatedImage) -> Support:
        """−g*(sw): ½ s² Σ ω ρ² − s Σ ω ρ t + s²/2κ ‖the offsets' sums of ωρ‖², with the sign."""
        told = self._told(image)
        bend = told.square
        if self.model.ridge is not None:
            sums = told.by_row + float(told.by_col @ told.by_col)
            bend += sums / (2 * self.model.ridge)

        def at(s: float) -> float:
            return s * told.against - s * s * bend

        return Support(at(1.0), 0.5 * self.lam, at)

    def lower_bounds(self, image: RatedImage, bottom: float) -> Iterator[LowerBound]:
        return feasible(self.support(image), bottom)

    # --- dense matrices, for reference solvers -------------------------------------------

    def value_dense(self, M: Array) -> float:
        return self.value(self.pair_image(np.ascontiguousarray(M), np.eye(self.order)))

    def gradient_dense(self, M: Array) -> Array:
        image = self.pair_image(np.ascontiguousarray(M), np.eye(self.order))
        return self.gradient(image).dense()

    # --- sweeps --------------------------------------------------------------------------

    def halves(self, dtype: Any = float) -> ShardedHalves:
        return ShardedHalves(self, self.lam, np.dtype(dtype))


@dataclass(frozen=True)
class _Blocks(Bipartite):
    """[aI, B; Bᵀ, aI] whose block is on the workers: BᵀB, a sum over them, comes to the driver.

    In the place of B stands the objective that knows where it is.
    """

    image: Any = None

    @property
    def order(self) -> int:
        return int(self.B.rated.shape[1])

    def smaller(self) -> Any:
        longest = float(np.max(self.B.rated.items.counts, initial=1))
        return _Lifted(self.scale, self.B.gram(self.image), longest)


@dataclass(frozen=True)
class _Lifted:
    """a²I − BᵀB, formed from the sum over blocks."""

    a: float
    gram: Array
    longest: float

    @property
    def order(self) -> int:
        return int(self.gram.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Array) -> Array:
        return self.a**2 * V - self.gram @ V

    def dense(self) -> Array:
        return self.a**2 * np.eye(self.order) - self.gram

    def form(self) -> None:
        return None

    def slack(self) -> Array:
        """|E_ij| ≤ γ(|B|ᵀ|B|)_ij ≤ γ √(k_i k_j), k the diagonal of BᵀB, and a² beside it."""
        k = np.diagonal(self.gram)
        return rounded_sum(self.longest) * k + 4 * UNIT * (self.a**2 + k)


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
        found = cluster.gather(objective._counted(
            "half-sweep", _refit, side.blocks, objective._once_model, side.ends(),
            side.ranges(across), side is objective.rated.items, side.pieces(own),
            [[shared[b] for b in some] for some in side.reached], (self.lam, ridge), steps,
        ))  # fmt: skip
        own[:] = np.concatenate([rows for _, rows in found])
        norms = np.sum(other[:, :-1] ** 2, dtype=float), np.sum(other[:, -1] ** 2, dtype=float)
        beside = 0.5 * (self.lam * norms[0] + ridge * norms[1])
        return self.constant + float(beside) + sum(lost for lost, _ in found)

    def scattered(self, rng: np.random.Generator, rank: int) -> Array:
        """A state of random Q, of the size that products as large as the targets need."""
        spread, scale = self.objective.sizes()
        state = np.zeros((self.objective.order, rank + 1), dtype=self.dtype)
        size = np.sqrt(max(np.sqrt(spread / max(scale, 1e-300)), 1e-30)) / rank**0.25
        Q = state[self.split :, :-1]
        Q[:] = size * rng.standard_normal(Q.shape, dtype=np.float32)
        return state


# --- what tasks do -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Scene:
    """A block with the factors that its ratings need, and the numbers of each rating."""

    block: Block
    rows: Any
    top: Array
    low: Array
    model: Model
    ends: list[int]
    reached: list[list[int]]

    @property
    def omega(self) -> Array | float:
        return 1.0 if self.block.weights is None else self.block.weights

    @cached_property
    def scale(self) -> Array:
        a = self.model.rows[self.ends[0] : self.ends[1]]
        return (a[self.rows] * self.own(self.model.cols)[self.block.neighbour]) ** -0.5

    @property
    def targets(self) -> Array:
        return self.model.scores(self.block.values) - self.model.mean

    @property
    def mass(self) -> Array:
        """D_k: the ratings of each row, weighted, and κ."""
        assert self.model.ridge is not None
        ones = np.broadcast_to(np.asarray(self.omega, dtype=float), self.rows.shape)
        sums: Any = np.bincount(self.rows, ones, minlength=self.block.rows)
        return np.asarray(sums + self.model.ridge)

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
        ones = np.broadcast_to(np.asarray(self.omega, dtype=float), self.rows.shape)
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


def _scene(block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any) -> _Scene:
    block = block.part(model.train)
    joined = np.concatenate(low) if low else np.zeros((0, top.shape[1]))
    return _Scene(block, block.row_of(), top, joined, model, ends, reached)


def _entries(scene: _Scene, top: Array, low: Array) -> Array:
    """s_e p_i·q_j."""
    found = cpu.gather_products(
        np.ascontiguousarray(top), np.ascontiguousarray(low), scene.rows, scene.block.neighbour
    )
    return scene.scale * found


def _images(scene: _Scene, top: Array | None, low: Any) -> Array:
    """The entries of ½(XYᵀ + YXᵀ), Y where there is one beside the scene's own."""
    if top is None:
        return _entries(scene, scene.top, scene.low)
    other = np.concatenate(low)
    return 0.5 * (_entries(scene, scene.top, other) + _entries(scene, top, scene.low))


def _look(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> tuple[Told, Array]:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    z, t = _images(scene, top2, low2), scene.targets
    b, left = scene.fitted(t - z, c)
    weighted = scene.omega * left
    square = 0.5 * float(left @ weighted)
    loss = square + (0.0 if model.ridge is None else 0.5 * model.ridge * float(b @ b))
    rows, cols = scene.by_row(left), scene.by_col(left)
    told = (loss, float(np.abs(weighted) @ np.abs(z)), square, float(weighted @ t))
    G = scene.gradient(-weighted)
    upper = cpu.sparse_product(G, scene.low)
    lower = scene.whole(sp.csr_array(G.T) @ scene.top)
    return Told(*told, float(rows @ rows), scene.whole(cols), lower), upper


def _right(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    targets: bool,
) -> Array:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    z = _images(scene, top2, low2)
    return scene.whole(scene.right(scene.targets - z if targets else z)[:, None])


def _columns(scene: _Scene, top2: Any, low2: Any, widths: tuple[int, ...]) -> Array:
    """The targets, and the entries of each of several ½(XYᵀ + YXᵀ) side by side."""
    found = [scene.targets]
    at, other = 0, scene.low if low2 is None else np.concatenate(low2)
    above = scene.top if top2 is None else top2
    for width in widths:
        part = slice(at, at + width)
        one = _entries(scene, scene.top[:, part], other[:, part])
        two = _entries(scene, above[:, part], scene.low[:, part])
        found.append(0.5 * (one + two))
        at += width
    return np.column_stack(found)


def _rights(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    widths: tuple[int, ...],
) -> Array:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    E = _columns(scene, top2, low2, widths)
    return scene.whole(np.column_stack([scene.right(e) for e in E.T]))


def _products(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    widths: tuple[int, ...], C: Array | None,
) -> Array:  # fmt: skip
    """Σ ω e_k e_l + κ ⟨b_k, b_l⟩ of what is left of each column."""
    scene = _scene(block, model, ends, reached, top, low)
    E = _columns(scene, top2, low2, widths)
    B = np.zeros((scene.block.rows, E.shape[1]))
    for k in range(E.shape[1]):
        B[:, k], E[:, k] = scene.fitted(E[:, k], None if C is None else C[:, k])
    omega = scene.omega if scene.block.weights is None else scene.block.weights[:, None]
    ridge = 0.0 if model.ridge is None else model.ridge
    return E.T @ (omega * E) + ridge * (B.T @ B)


def _schur_times(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = _scene(block, model, ends, reached, top, low)
    N = scene.links()
    return scene.whole(N.T @ ((N @ scene.low[:, 0]) / scene.mass))


def _column_mass(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = _scene(block, model, ends, reached, top, low)
    return scene.whole(scene.by_col(np.ones(scene.rows.size)))


def _schur(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    """Nᵀ D⁻¹ N among all items."""
    scene = _scene(block, model, ends, reached, top, low)
    N = scene.links()
    weighted = sp.csr_array(sp.diags_array(1.0 / scene.mass) @ N)
    return scene.whole(scene.whole((N.T @ weighted).toarray()).T)


def _row_offsets(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> Array:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    return scene.fitted(scene.targets - _images(scene, top2, low2), c)[0]


def _residual(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> sp.csr_array:  # fmt: skip
    """½G of a block among all items."""
    scene = _scene(block, model, ends, reached, top, low)
    _, left = scene.fitted(scene.targets - _images(scene, top2, low2), c)
    items = scene.own(np.arange(model.cols.size))
    data = -0.5 * scene.scale * (scene.omega * left)
    indices = items[scene.block.neighbour].astype(np.int32)
    shape = scene.block.rows, model.cols.size
    return sp.csr_array((data, indices, scene.block.starts), shape=shape)


def _bent(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    c: Array | None,
) -> tuple[Told, Array]:  # fmt: skip
    """𝒜*(∇²g 𝒜(sym(LDᵀ)))L of a block."""
    scene = _scene(block, model, ends, reached, top, low)
    _, left = scene.fitted(_images(scene, top2, low2), c)
    G = scene.gradient(scene.omega * left)
    lower = scene.whole(sp.csr_array(G.T) @ scene.top)
    nothing = np.zeros(model.cols.size)
    return Told(0.0, 0.0, 0.0, 0.0, 0.0, nothing, lower), cpu.sparse_product(G, scene.low)


def _times(G: sp.csr_array, top: Array, low: Array) -> tuple[Array, Array]:
    return sp.csr_array(G.T) @ top, G @ low


def _gram(G: sp.csr_array) -> Array:
    return (G.T @ G).toarray()


def _sizes(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = _scene(block, model, ends, reached, top, low)
    t, s = scene.targets, scene.scale
    return np.array([t.size, t @ t, s @ s])


def _scores(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, *_: Any
) -> Array:
    scene = _scene(block, model, ends, reached, top, low)
    omega = np.broadcast_to(np.asarray(scene.omega, dtype=float), scene.rows.shape)
    return np.array([omega.sum(), omega @ model.scores(scene.block.values)])


def _item_sums(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    mean: float,
) -> Array:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    count = sum(b - a for a, b in scene.reached)
    return scene.whole(np.bincount(scene.block.neighbour, scene.targets - mean, minlength=count))


def _beside_items(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    means: Array,
) -> float:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    return float(np.sum(scene.targets - scene.own(means)[scene.block.neighbour]))


def _beside_both(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    means: Array, ridge: float,
) -> float:  # fmt: skip
    scene = _scene(block, model, ends, reached, top, low)
    left = scene.targets - scene.own(means)[scene.block.neighbour]
    sums = np.bincount(scene.rows, left, minlength=scene.block.rows)
    left -= (sums / (np.diff(scene.block.starts) + ridge))[scene.rows]
    return float(left @ left)


def _errors(
    block: Block, model: Model, ends: Any, reached: Any, top: Array, low: Any, top2: Any, low2: Any,
    bounds: Any,
) -> Array:  # fmt: skip
    """Of the ratings held out: how many, and Σ (prediction − rating)², for a state [P b; Q c]."""
    test, whole = block.test(), replace(model, train=False)
    scene = _scene(test, whole, ends, reached, np.asarray(top, dtype=float), low)
    low_rows = scene.low.astype(float)
    found = model.mean + _entries(scene, scene.top[:, :-1], low_rows[:, :-1])
    found += scene.top[scene.rows, -1] + low_rows[test.neighbour, -1]
    if model.levels is not None:  # levels that a prediction is off by
        K = model.levels.size
        steps = np.searchsorted(2.0 * np.arange(1, K) - K, found)
        return np.array(
            [found.size, np.sum(np.abs(steps - np.searchsorted(model.levels, test.values)))]
        )
    off = (found if bounds is None else np.clip(found, *bounds)) - test.values
    return np.array([off.size, off @ off])


def _refit(
    block: Block, model: Model, ends: list[int], reached: list[list[int]], turned: bool, own: Array,
    other: list[Array], weights: tuple[float, float], steps: int,
) -> tuple[float, Array]:  # fmt: skip
    """A few steps of conjugate gradients on each row of a block, and F of the block before."""
    block, dtype = block.part(model.train), own.dtype
    own_scale, other_scale = (model.cols, model.rows) if turned else (model.rows, model.cols)
    reaching = np.concatenate([other_scale[a:b] for a, b in reached])
    entries = own_scale[ends[0] : ends[1]][block.row_of()] * reaching[block.neighbour]
    scale, targets = (entries**-0.5).astype(dtype), (block.values - model.mean).astype(dtype)
    roots = None
    if block.weights is not None:
        roots = np.sqrt(block.weights).astype(dtype)
        scale, targets = scale * roots, targets * roots
    fits = cpu.RowFits(
        cpu.index_array(block.starts), cpu.index_array(block.neighbour), scale, targets,
        model.ridge is not None, roots,
    )  # fmt: skip
    P = np.array(own, order="C")
    penalty = np.full(P.shape[1], weights[0])
    penalty[-1] = weights[1]
    Q = np.ascontiguousarray(np.concatenate(other), dtype=dtype)
    return fits.refit(P, Q, penalty, steps), P
