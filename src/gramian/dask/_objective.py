"""An objective whose parts are on workers: F = Σ_k F_k, or their soft maximum, one part a shard.

The driver holds the factor; one round of tasks gives the value and the slope of all parts, joined
in a fixed order. Solvers and certificates use it as any other `Objective`. A part is an objective
of the library, on the processor or on a device of its worker; results are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from gramian.arrays.places import host, moved
from gramian.common.types import Array
from gramian.dask._cluster import Cluster
from gramian.linalg.restriction import Restriction
from gramian.methods.room import place_for
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.supports import Growth, Support
from gramian.problem import Problem
from gramian.proofs import rounded_sum
from gramian.proofs.base import UNIT

DENSE = 400
"""Order up to which the round of a value also gives the gradient as a matrix. Beyond it the
gradient takes a round of its own."""


@dataclass(frozen=True)
class Terms:
    """F of a shard at a point, its derivatives and bounds on rounding errors."""

    value: float
    first: Array
    second: Array | None = None
    """The second derivative, or its product with a direction D."""
    along: Any = 0.0
    """`first`, or ⟨first, D⟩."""
    rounding: float = 0.0
    slack: Array | float = 0.0
    support: float = 0.0
    """d of the linear function d + ⟨G, ·⟩ ≤ F that equals F here; for sums only."""


def joined(a: Terms, b: Terms, mu: float | None = None) -> Terms:
    """F_a + F_b; with μ, μ ln(exp(F_a/μ) + exp(F_b/μ)), by the shares π of the two.

    ∇ = Σ π_k ∇F_k and ∇² = Σ π_k ∇²F_k + π_a π_b/μ ggᵀ with g = ∇F_a − ∇F_b.
    """
    value, rounding, pi, rho = a.value + b.value, a.rounding + b.rounding, 1.0, 1.0
    if mu is not None:
        value = mu * float(np.logaddexp(a.value / mu, b.value / mu))
        pi, rho = (float(np.exp((part.value - value) / mu)) for part in (a, b))
        larger = max(a.value, b.value)
        rounding = max(a.rounding, b.rounding) + 8 * UNIT * (abs(larger) + 2 * mu)
    second = None
    if a.second is not None and b.second is not None:
        second = pi * a.second + rho * b.second
        if mu is not None:
            apart = np.multiply.outer(a.first - b.first, a.along - b.along)
            second = second + (pi * rho / mu) * apart
    first, along, slack = (
        pi * getattr(a, name) + rho * getattr(b, name) for name in ("first", "along", "slack")
    )
    return Terms(value, first, second, along, rounding, slack, a.support + b.support)


@dataclass
class ShardImage:
    """M = ½(XYᵀ + YXᵀ), which is LLᵀ if Y is None, and the results of rounds."""

    factor: Array
    X: Array
    Y: Array | None = None
    terms: Terms | None = None
    whole: Terms | None = None
    """`terms`, with the gradient as a matrix."""


class Sharded(Objective[ShardImage]):
    """F(M) = Σ_k F_k(M), or μ ln Σ_k exp(F_k(M)/μ), with F_k an objective on a worker.

    Parameters
    ----------
    cluster : Cluster
    parts : nodes or futures of objectives of one order, without linear terms
    mu : float, optional
        μ of the soft maximum; without it the parts are summed.
    """

    def __init__(self, cluster: Cluster, parts: list[Any], *, mu: float | None = None) -> None:
        self.cluster, self.parts, self.mu = cluster, parts, mu
        found = cluster.gather(cluster.each("shapes", _shape, parts))
        orders, facts, constants, growths = zip(*found, strict=True)
        if len(set(orders)) > 1:
            raise ValueError(f"shards are of the orders {sorted(set(orders))}")
        self.order, every = orders[0], reduce(add, facts)
        self.facts = Facts(terms=every.terms, dense_numbers=every.dense_numbers)
        self.constant = sum(constants) if mu is None else 0.0
        self._growth = reduce(add, growths) if mu is None else Growth()

    def image(self, L: Array) -> ShardImage:
        return ShardImage(L, L)

    def pair_image(self, X: Array, Y: Array) -> ShardImage:
        return ShardImage(X[:, :0], X, Y)

    def value(self, image: ShardImage) -> float:
        return self._told(image).value

    def rounding(self, image: ShardImage) -> float:
        terms = self._told(image)
        return terms.rounding + rounded_sum(len(self.parts)) * abs(terms.value)

    def gradient_factor(self, image: ShardImage) -> Array:
        first = self._told(image).first
        return 2.0 * (first if image.whole is not image.terms else first @ image.factor)

    def gradient(self, image: ShardImage) -> SymmetricOperator:
        self._told(image)
        if image.whole is None:
            image.whole = self._look(image, whole=True)
        first, slack = image.whole.first, image.whole.slack
        return SymmetricOperator(
            self.order, lambda V: first @ V, lambda: first,
            errors=lambda: np.zeros(self.order) + slack,
        )  # fmt: skip

    def hessian_factor(self, image: ShardImage) -> Callable[[Array], Array]:
        X = self.cluster.shared("factor", image.X)
        bends = self.cluster.keep(self.cluster.each("hessian", _bend, self.parts, X))

        def product(D: Array) -> Array:
            return self._sum("curvature", _bent, D, parts=bends).second

        return product

    def combinations(self, images: Sequence[ShardImage], pairs: Pairs) -> Combinations:
        factors = [image.factor for image in images]

        def take(theta: Array, join: Join) -> ShardImage:
            return self.image(np.ascontiguousarray(join(factors)))

        return Combinations(self._restricted(partial(_combinations, tuple(pairs)), *factors), take)

    def subspace(self, W: Array) -> Restriction:
        return self._restricted(_subspace, W)

    def subspace_cost(self, columns: int) -> int:
        """The cost of one shard, since shards are distributed over the workers."""
        entries = self.facts.terms or self.order
        return -(-entries // len(self.parts)) * (columns * (columns + 1) // 2)

    def growth(self) -> Growth:
        return self._growth

    def support(self, image: ShardImage) -> Support | None:
        if self.mu is not None:
            return None

        def at(shrink: float) -> float:
            return float(self._sum("bound", partial(_support, shrink), image.X, image.Y, join=add))

        return Support(self._told(image).support, self._growth.slope, at)

    def _told(self, image: ShardImage) -> Terms:
        if image.terms is None:
            small = self.order <= DENSE
            image.terms = self._look(image, whole=small)
            image.whole = image.terms if small else None
        return image.terms

    def _look(self, image: ShardImage, *, whole: bool) -> Terms:
        size = 8.0 * self.order**2 if whole else 0.0
        return self._sum("gradient", partial(_look, whole), image.X, image.Y, size=size)

    def _sum(
        self, name: str, function: Any, *factors: Array | None, parts: Any = None, join: Any = None,
        size: float = 0.0,
    ) -> Any:  # fmt: skip
        """One round: a function of each part and of arrays that all of them need."""
        join = partial(joined, mu=self.mu) if join is None else join
        parts = self.parts if parts is None else parts
        return self.cluster.sum(name, function, parts, *self._shared(factors), join=join, size=size)

    def _shared(self, factors: Sequence[Array | None]) -> list[Any]:
        return [
            None if F is None else self.cluster.shared("factor", np.ascontiguousarray(F))
            for F in factors
        ]

    def _restricted(self, make: Any, *factors: Array) -> RemoteRestriction:
        nodes = self.cluster.each("restriction", make, self.parts, *self._shared(factors))
        return RemoteRestriction(self, self.cluster.keep(nodes))


class RemoteRestriction:
    """θ ↦ F(Σ θᵢ Mᵢ) with the images of the Mᵢ on the workers: a round for every θ."""

    quadratic = False

    def __init__(self, objective: Sharded, made: list[Any]) -> None:
        self.objective, self.made = objective, made
        self._seen: tuple[bytes, Terms] = b"", Terms(0.0, np.zeros(0))

    def value(self, theta: Array) -> float:
        return self._at(theta).value

    def gradient(self, theta: Array) -> Array:
        return self._at(theta).first

    def hessian(self, theta: Array) -> Array:
        second = self._at(theta).second
        assert second is not None
        return second

    def along(self, theta: Array, move: Array) -> Callable[[float], float]:
        return lambda t: self.value(theta + t * move)

    def _at(self, theta: Array) -> Terms:
        theta = np.asarray(theta, dtype=float)
        if self._seen[0] != theta.tobytes():
            terms = self.objective._sum("restriction", _at_theta, theta, parts=self.made)
            self._seen = theta.tobytes(), terms
        return self._seen[1]


# --- tasks -------------------------------------------------------------------------------


def placed(part: Objective, device: Any) -> Objective:
    """The part on a device of its worker, with rows of data on the host if it has no room."""
    if device in (None, "cpu"):
        return part
    return moved(part, place_for(Problem(part), device))


def _shape(part: Objective) -> tuple[Any, ...]:
    return part.order, part.facts, part.constant, part.growth()


def _image(part: Objective, X: Array, Y: Array | None = None) -> Any:
    there = part.place.put
    return part.image(there(X)) if Y is None else part.pair_image(there(X), there(Y))


def _look(whole: bool, part: Objective, X: Array, Y: Array | None) -> Terms:
    image = _image(part, X, Y)
    support = part.support(image)
    below = -np.inf if support is None else support.value
    slack: Array | float = 0.0
    if whole:
        gradient = part.gradient(image)
        first, slack = host(gradient.dense()), host(gradient.slack())
    else:
        first = X[:, :0] if Y is not None else 0.5 * host(part.gradient_factor(image))
    rounding = part.rounding(image)
    return Terms(part.value(image), first, rounding=rounding, slack=slack, support=below)


def _bend(part: Objective, L: Array) -> tuple[float, Array, Any]:
    image = _image(part, L)
    bend, there = part.hessian_factor(image), part.place.put
    return part.value(image), host(part.gradient_factor(image)), lambda D: host(bend(there(D)))


def _bent(kept: tuple[float, Array, Any], D: Array) -> Terms:
    value, slope, product = kept
    return Terms(value, slope, product(D), float(np.sum(slope * D)))


def _combinations(pairs: Pairs, part: Objective, *factors: Array) -> Restriction:
    return part.combinations([_image(part, L) for L in factors], pairs).restriction


def _subspace(part: Objective, W: Array) -> Restriction:
    return part.subspace(part.place.put(W))


def _at_theta(made: Restriction, theta: Array) -> Terms:
    first = made.gradient(theta)
    return Terms(made.value(theta), first, made.hessian(theta), first)


def _support(shrink: float, part: Objective, X: Array, Y: Array | None) -> float:
    support = part.support(_image(part, X, Y))
    assert support is not None
    if shrink == 1.0:
        return support.value
    assert support.shrunk is not None
    return support.shrunk(shrink)
