"""A completion over blocks of ratings: an objective whose values and gradients are rounds of tasks.

Factors are arrays of the driver, or lie on the workers (`Spread`). Of the latter the driver sees
sums, and vectors of as many numbers as there are users or items; there is no slope along them.

F = min over b, c of ½ Σ_e ω_e (s_e p_i·q_j + b_i + c_j − t_e)² + κ/2 (‖b‖² + ‖c‖²), and λ/2 tr M.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import altered
from gramian.dask._looks import Told, bent, look, products, residual
from gramian.dask._offsets import Offsets
from gramian.dask._proof import Blocks
from gramian.dask._ratings import Rated
from gramian.dask._residual import Residual
from gramian.dask._rounds import Factor, Rounds
from gramian.dask._scene import Model
from gramian.dask._spread import Spread
from gramian.dask._sweeps import ShardedHalves
from gramian.linalg.svec import triangle
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.halves import halves_of
from gramian.objectives.parts import Parts, rounding_of_parts
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.supports import Growth, Support
from gramian.proofs import rounded_sum

Array = NDArray[np.floating]

NEAR = 10_000_000
"""Ratings up to which the gradient comes home for the many products of a Krylov method: 120 MB. A
product takes a hundredth of a second there for a million of them, and a round three or four."""

REFINED = 1e-14
"""What offsets may leave of F before they are solved for once more."""


@dataclass
class RatedImage:
    """M = ½(XYᵀ + YXᵀ), LLᵀ where X is Y, and what rounds have told of it."""

    factor: Any
    X: Any
    Y: Any
    told: Told | None = None
    slope: Array | None = None
    """∇F·L, where the driver has L."""
    offsets: Array | None = None
    """c."""
    residual: Residual | None = None
    trace: float | None = None


class Completed(Objective[RatedImage]):
    """The completion of ratings on a cluster, of order m + n with the factor [P; Q]."""

    constant = 0.0

    def __init__(self, rated: Rated, model: Model, lam: float) -> None:
        self.rated, self.model, self.lam = rated, model, float(lam)
        self.order, self.split = sum(rated.shape), rated.shape[0]
        self.facts = Facts(quadratic=True, terms=rated.size, wide=True, remote=rated.size > NEAR)
        self.cluster, self.rounds = rated.cluster, Rounds(rated, model)
        self.offsets = None if model.ridge is None else Offsets(self.rounds, model.ridge)

    def trace_weighted(self, lam: float) -> Completed:
        """The same with another λ, sharing what does not depend on it."""
        made: Completed = altered(self, lam=float(lam))
        return made

    # --- points --------------------------------------------------------------------------

    def image(self, L: Factor) -> RatedImage:
        return RatedImage(L, L, L)

    def pair_image(self, X: Array, Y: Array) -> RatedImage:
        return RatedImage(X[:, :0], X, Y)

    def value(self, image: RatedImage) -> float:
        told, c = self._told(image), image.offsets
        own = 0.0 if c is None or self.model.ridge is None else 0.5 * self.model.ridge * (c @ c)
        return told.value + float(own) + 0.5 * self.lam * self.trace(image)

    def trace(self, image: RatedImage) -> float:
        if image.trace is None:
            there = isinstance(image.X, Spread)
            image.trace = image.X.square() if there else float(np.sum(image.X * image.Y))
        return image.trace

    def complementarity(self, image: RatedImage) -> float:
        """⟨∇F(M), M⟩ by the entries alone: Σ w z and λ/2 tr M."""
        return self._told(image).with_point + 0.5 * self.lam * self.trace(image)

    def gradient_factor(self, image: RatedImage) -> Array:
        self._told(image)
        assert image.slope is not None
        return 2.0 * image.slope + self.lam * image.factor

    def gradient(self, image: RatedImage) -> SymmetricOperator:
        half = 0.5 * self.lam
        return SymmetricOperator(
            self.order,
            lambda V: self.residual(image).times(V) + half * V,
            lambda: self.residual(image).sparse().toarray() + half * np.eye(self.order),
            lambda: Blocks(half, self, image),
            lambda: rounding_of_parts(Parts(self.order, half, self.residual(image).sparse())),
        )

    def rounding(self, image: RatedImage) -> float:
        """That of the blocks, of their sum and ⟨C, M⟩, and what the offsets leave."""
        told, linear = self._told(image), 0.5 * self.lam * self.trace(image)
        blocks = rounded_sum(len(self.rated.users.blocks))
        sums = (4 * rounded_sum(1) + blocks) * (abs(told.value) + abs(linear))
        longest = rounded_sum(max(image.factor.shape))
        return float(told.rounding + sums + longest * linear + self._rest(image))

    def _rest(self, image: RatedImage) -> float:
        """‖ρ‖²/κ, ρ what the equations of the items' offsets leave."""
        if image.offsets is None or self.model.ridge is None:
            return 0.0
        left = self.model.ridge * image.offsets - self._told(image).by_col
        return float(left @ left) / self.model.ridge

    def _told(self, image: RatedImage) -> Told:
        if image.told is None:
            if self.offsets is not None:
                image.offsets = self.offsets.of(image.X, image.Y, targets=True)
            self._look(image)
            if self._rest(image) > REFINED * abs(self.value(image)):
                assert image.offsets is not None and self.offsets is not None
                assert isinstance(image.told, Told)
                left = image.told.by_col - self.offsets.ridge * image.offsets
                image.offsets = image.offsets + self.offsets.solve(left)
                self._look(image)
        assert image.told is not None
        return image.told

    def _look(self, image: RatedImage) -> None:
        sloping = not isinstance(image.X, Spread)
        nodes = self.rounds.tasks("gradient", look, image.X, image.Y, image.offsets, sloping)
        image.told, upper = self.cluster.beside("gradient", nodes)
        image.slope = np.concatenate([upper, image.told.lower])

    def row_offsets(self, image: RatedImage) -> Array:
        """b that belongs to a point; c is that of the image."""
        self._told(image)
        assert self.offsets is not None and image.offsets is not None
        return self.offsets.of_rows(image.X, image.Y, image.offsets)

    # --- products ------------------------------------------------------------------------

    def residual(self, image: RatedImage) -> Residual:
        """½ 𝒜*(w) of each block as a sparse matrix, kept on the workers."""
        self._told(image)
        if image.residual is None:
            nodes = self.rounds.tasks("residual", residual, image.X, image.Y, image.offsets)
            kept = self.cluster.keep(nodes)
            image.residual = Residual(self.rounds, kept, near=not self.facts.remote)
        return image.residual

    def hessian_factor(self, image: RatedImage) -> Callable[[Array], Array]:
        gradient = self.gradient(image)

        def product(D: Array) -> Array:
            D = np.ascontiguousarray(D)
            c = None if self.offsets is None else self.offsets.of(image.X, D, targets=False)
            nodes = self.rounds.tasks("curvature", bent, image.X, D, c)
            lower, upper = self.cluster.beside("curvature", nodes)
            return 2.0 * (gradient @ D) + 4.0 * np.concatenate([upper, lower])

        return product

    # --- restrictions --------------------------------------------------------------------

    def combinations(self, images: Sequence[RatedImage], pairs: Pairs) -> Combinations:
        factors = [np.ascontiguousarray(image.factor) for image in images]

        def take(theta: Array, join: Join) -> RatedImage:
            return self.image(np.ascontiguousarray(join(factors)))

        return Combinations(self._restricted([(factors[i], factors[j]) for i, j in pairs]), take)

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
        c = None if self.offsets is None else self.offsets.of_columns(X, Y, widths)
        G = self.rounds.sum("restriction", products, X, Y, widths, c)
        G = 0.5 * (G + G.T)
        linear = 0.5 * self.lam * np.array([float(np.sum(a * b)) for a, b in pairs])
        return QuadraticRestriction(0.5 * G[1:, 1:], 0.5 * (linear - G[0, 1:]), 0.5 * G[0, 0])

    # --- bounds --------------------------------------------------------------------------

    def growth(self) -> Growth:
        return Growth(0.0, 0.5 * self.lam)

    def support(self, image: RatedImage) -> Support:
        """−g*(sw): that of the blocks, for their offsets c, and ⟨v, c⟩ + ‖v‖²/2κ of v, the sums of
        sw over users.
        """
        told, c = self._told(image), image.offsets
        square, linear = told.square, told.linear
        if c is not None and self.model.ridge is not None:
            square += float(told.by_col @ told.by_col) / (2 * self.model.ridge)
            linear -= float(told.by_col @ c)

        def at(s: float) -> float:
            return -s * (s * square + linear)

        return Support(at(1.0), 0.5 * self.lam, at)


@halves_of.register
def _(objective: Completed, dtype: Any = float) -> ShardedHalves:
    return ShardedHalves(objective, objective.rated, objective.lam, np.dtype(dtype))
