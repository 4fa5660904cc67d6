"""An objective whose parts are on workers: F = Σ_k F_k, or their soft maximum, one part a shard.

The driver holds the factor; one round of tasks gives the value and the slope of all parts, joined
in a fixed order. Solvers and certificates use it as any other `Objective`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._cluster import Cluster
from gramian.linalg.restriction import Restriction
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.supports import Growth, Support
from gramian.proofs import rounded_sum
from gramian.proofs.base import UNIT

Array = NDArray[np.floating]

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


def total(a: Terms, b: Terms) -> Terms:
    """F_a + F_b."""
    return Terms(
        a.value + b.value,
        a.first + b.first,
        None if a.second is None or b.second is None else a.second + b.second,
        a.along + b.along,
        a.rounding + b.rounding,
        a.slack + b.slack,
        a.support + b.support,
    )


def soft(a: Terms, b: Terms, *, mu: float) -> Terms:
    """μ ln(exp(F_a/μ) + exp(F_b/μ)), by the shares π of the two.

    ∇ = Σ π_k ∇F_k and ∇² = Σ π_k ∇²F_k + π_a π_b/μ ggᵀ with g = ∇F_a − ∇F_b.
    """
    value = mu * float(np.logaddexp(a.value / mu, b.value / mu))
    pi, rho = (float(np.exp((part.value - value) / mu)) for part in (a, b))
    second = None
    if a.second is not None and b.second is not None:
        apart = np.multiply.outer(a.first - b.first, a.along - b.along)
        second = pi * a.second + rho * b.second + (pi * rho / mu) * apart
    return Terms(
        value,
        pi * a.first + rho * b.first,
        second,
        pi * a.along + rho * b.along,
        max(a.rounding, b.rounding) + 8 * UNIT * (abs(max(a.value, b.value)) + 2 * mu),
        pi * a.slack + rho * b.slack,
    )


@dataclass(frozen=True)
class ShardFacts:
    """Properties of the objective of a shard."""

    order: int
    facts: Facts
    constant: float
    growth: Growth

    def __add__(self, other: ShardFacts) -> ShardFacts:
        if self.order != other.order:
            raise ValueError(f"shards are of the orders {self.order} and {other.order}")
        return ShardFacts(
            self.order,
            self.facts + other.facts,
            self.constant + other.constant,
            self.growth + other.growth,
        )


@dataclass
class ShardImage:
    """M = ½(XYᵀ + YXᵀ), which is LLᵀ if X is Y, and the results of rounds."""

    factor: Array
    X: Array
    Y: Array
    terms: Terms | None = None
    whole: Terms | None = None
    """The same with the gradient as a matrix."""


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
        found: ShardFacts = cluster.sum("shapes", _facts_of, parts)
        self.order, facts = found.order, found.facts
        quadratic = facts.quadratic and mu is None
        self.facts = Facts(quadratic, facts.terms, dense_numbers=facts.dense_numbers)
        self.constant = found.constant if mu is None else 0.0
        self._growth = found.growth if mu is None else Growth()
        self._join = total if mu is None else partial(soft, mu=mu)

    # --- points --------------------------------------------------------------------------

    def image(self, L: Array) -> ShardImage:
        return ShardImage(L, L, L)

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
            self.order,
            lambda V: first @ V,
            lambda: first,
            errors=lambda: np.zeros(self.order) + slack,
        )

    def _told(self, image: ShardImage) -> Terms:
        if image.terms is None:
            small = self.order <= DENSE
            image.terms = self._look(image, whole=small)
            image.whole = image.terms if small else None
        return image.terms

    def _look(self, image: ShardImage, *, whole: bool) -> Terms:
        sides = self._sides(image)
        found: Terms = self.cluster.sum(
            "gradient", _look, self.parts, *sides, whole, join=self._join,
            size=8.0 * self.order**2 if whole else 0.0,
        )  # fmt: skip
        return found

    def _sides(self, image: ShardImage) -> tuple[Any, Any]:
        X = self.cluster.shared("factor", image.X)
        return X, None if image.Y is image.X else self.cluster.shared("factor", image.Y)

    def hessian_factor(self, image: ShardImage) -> Callable[[Array], Array]:
        X = self.cluster.shared("factor", image.X)
        bends = self.cluster.keep(self.cluster.each("hessian", _bend, self.parts, X))

        def product(D: Array) -> Array:
            shared = self.cluster.shared("direction", np.ascontiguousarray(D))
            bent = self.cluster.sum("curvature", _bent, bends, shared, join=self._join)
            found: Array = bent.second
            return found

        return product

    # --- restrictions --------------------------------------------------------------------

    def combinations(self, images: Sequence[ShardImage], pairs: Pairs) -> Combinations:
        factors = [image.factor for image in images]

        def take(theta: Array, join: Join) -> ShardImage:
            return self.image(np.ascontiguousarray(join(factors)))

        make = partial(_combinations, tuple(pairs))
        return Combinations(self._restricted(make, *factors, size=len(pairs)), take)

    def subspace(self, W: Array) -> Restriction:
        k = W.shape[1]
        return self._restricted(_subspace, W, size=k * (k + 1) // 2)

    def subspace_cost(self, columns: int) -> int:
        """The cost of one shard, since shards are distributed over the workers."""
        entries = self.facts.terms or self.order
        return -(-entries // len(self.parts)) * (columns * (columns + 1) // 2)

    def _restricted(self, make: Any, *factors: Array, size: int) -> Restriction:
        shared = [self.cluster.shared("factor", np.ascontiguousarray(F)) for F in factors]
        made = self.cluster.each("restriction", make, self.parts, *shared)
        if not self.facts.quadratic:
            return RemoteRestriction(self.cluster, self.cluster.keep(made), self._join)
        at = self.cluster.sum("restriction", _at_theta, made, np.zeros(size), join=self._join)
        return QuadraticRestriction(0.5 * at.second, 0.5 * at.first, at.value)

    # --- bounds --------------------------------------------------------------------------

    def growth(self) -> Growth:
        return self._growth

    def support(self, image: ShardImage) -> Support | None:
        if self.mu is not None:
            return None

        def at(shrink: float) -> float:
            sides = self._sides(image)
            return float(self.cluster.sum("bound", _support_at, self.parts, *sides, shrink))

        return Support(self._told(image).support, self._growth.slope, at)

    def recession(self, image: ShardImage) -> tuple[float, float]:
        if self.mu is not None:
            return np.inf, 0.0
        slope, unsure = self.cluster.sum("ray", _recession, self.parts, *self._sides(image))
        return float(slope), float(unsure)


def there(cluster: Cluster, parts: list[Any]) -> list[Any]:
    """The parts without those that are None, of shards without terms."""
    some = cluster.gather(cluster.each("count", _is_there, parts))
    return [part for part, is_there in zip(parts, some, strict=True) if is_there]


class RemoteRestriction:
    """θ ↦ F(Σ θᵢ Mᵢ) with the images of the Mᵢ on the workers: a round for every θ."""

    quadratic = False

    def __init__(self, cluster: Cluster, made: list[Any], join: Any) -> None:
        self.cluster, self.made, self.join = cluster, made, join
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
            terms = self.cluster.sum("restriction", _at_theta, self.made, theta, join=self.join)
            self._seen = theta.tobytes(), terms
        return self._seen[1]


# --- tasks -------------------------------------------------------------------------------


def _is_there(part: Objective | None) -> bool:
    return part is not None


def _facts_of(part: Objective) -> ShardFacts:
    return ShardFacts(part.order, part.facts, part.constant, part.growth())


def _image(part: Objective, X: Array, Y: Array | None) -> Any:
    return part.image(X) if Y is None else part.pair_image(X, Y)


def _look(part: Objective, X: Array, Y: Array | None, whole: bool) -> Terms:
    image = _image(part, X, Y)
    support = part.support(image)
    below = -np.inf if support is None else support.value
    gradient = part.gradient(image) if whole else None
    if gradient is not None:
        first, slack = gradient.dense(), gradient.slack()
    else:
        first = 0.5 * part.gradient_factor(image) if Y is None else X[:, :0]
        slack = np.zeros(part.order)
    rounding = part.rounding(image)
    return Terms(part.value(image), first, rounding=rounding, slack=slack, support=below)


def _bend(part: Objective, L: Array) -> tuple[float, Array, Any]:
    image = part.image(L)
    return part.value(image), part.gradient_factor(image), part.hessian_factor(image)


def _bent(kept: tuple[float, Array, Any], D: Array) -> Terms:
    value, slope, product = kept
    return Terms(value, slope, product(D), float(np.sum(slope * D)))


def _combinations(pairs: Pairs, part: Objective, *factors: Array) -> Restriction:
    return part.combinations([part.image(L) for L in factors], pairs).restriction


def _subspace(part: Objective, W: Array) -> Restriction:
    return part.subspace(W)


def _at_theta(made: Restriction, theta: Array) -> Terms:
    first = made.gradient(theta)
    return Terms(made.value(theta), first, made.hessian(theta), first)


def _support_at(part: Objective, X: Array, Y: Array | None, shrink: float) -> float:
    support = part.support(_image(part, X, Y))
    assert support is not None
    if shrink == 1.0:
        return support.value
    assert support.shrunk is not None
    return support.shrunk(shrink)


def _recession(part: Objective, X: Array, Y: Array | None) -> Array:
    return np.array(part.recession(_image(part, X, Y)))
