"""An objective whose parts live on workers: F = Σ_k F_k, or their soft maximum, one part a shard.

The driver holds the factor; a round of tasks gives the value, the gradient and small images of all
parts, joined in a fixed order. Solvers and certificates see an `Objective` like any other. What
many products are taken with (gradients, restrictions) is kept on the workers as futures: tasks
whose results can be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._cluster import Cluster
from gramian.objectives.base import (
    Blend,
    Growth,
    Line,
    LowerBound,
    Objective,
    Restriction,
    SymmetricOperator,
)
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.structure import joined_form
from gramian.objectives.supports import Support, feasible
from gramian.proofs import rounded_sum

Array = NDArray[np.floating]

DENSE = 400
"""Up to this order a shard sends its whole gradient: then no product needs the cluster again."""


@dataclass(frozen=True)
class Terms:
    """What a shard says of F at a point: its value, derivatives, and what rounding may take."""

    value: float
    first: Array
    second: Array | None = None
    rounding: float = 0.0
    slack: Array | float = 0.0
    support: float = 0.0
    """d of the linear function d + ⟨G, ·⟩ below F that touches it here; of sums only."""


def total(a: Terms, b: Terms) -> Terms:
    """F_a + F_b."""
    second = None if a.second is None or b.second is None else a.second + b.second
    return Terms(
        a.value + b.value,
        a.first + b.first,
        second,
        a.rounding + b.rounding,
        a.slack + b.slack,
        a.support + b.support,
    )


def soft(a: Terms, b: Terms, *, mu: float) -> Terms:
    """μ ln(exp(F_a/μ) + exp(F_b/μ)), by the shares π of the two.

    ∇ = Σ π_k ∇F_k and ∇² = Σ π_k (∇²F_k + ∇F_k ∇F_kᵀ/μ) − ∇∇ᵀ/μ.
    """
    value, (pi, rho) = _shares(a.value, b.value, mu)
    first = pi * a.first + rho * b.first
    second = None
    if a.second is not None and b.second is not None:
        apart = a.first - b.first  # the spread of two points: Σ π gg ᵀ − ggᵀ = πρ (g_a − g_b)(…)ᵀ
        second = pi * a.second + rho * b.second + (pi * rho / mu) * np.outer(apart, apart)
    rounding = max(a.rounding, b.rounding)
    return Terms(value, first, second, rounding, pi * a.slack + rho * b.slack)


@dataclass(frozen=True)
class Bent:
    """The second derivative on the factor along D: value, slope s, ⟨s, D⟩ and the product."""

    value: float
    slope: Array
    along: float
    product: Array


def total_bent(a: Bent, b: Bent) -> Bent:
    return Bent(a.value + b.value, a.slope + b.slope, a.along + b.along, a.product + b.product)


def soft_bent(a: Bent, b: Bent, *, mu: float) -> Bent:
    """The same for the soft maximum: the products, and πρ/μ (s_a − s_b)⟨s_a − s_b, D⟩."""
    value, (pi, rho) = _shares(a.value, b.value, mu)
    product = pi * a.product + rho * b.product
    product += (pi * rho / mu) * (a.along - b.along) * (a.slope - b.slope)
    slope = pi * a.slope + rho * b.slope
    return Bent(value, slope, pi * a.along + rho * b.along, product)


def _shares(a: float, b: float, mu: float) -> tuple[float, tuple[float, float]]:
    value = mu * float(np.logaddexp(a / mu, b / mu))
    return value, (float(np.exp((a - value) / mu)), float(np.exp((b - value) / mu)))


@dataclass
class ShardImage:
    """M = ½(XYᵀ + YXᵀ), which is LLᵀ where X is Y, and what rounds have told of it."""

    factor: Array
    X: Array
    Y: Array
    told: Terms | None = None
    gradients: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Facts:
    """What solvers ask of an objective before they begin."""

    order: int
    quadratic: bool
    sees: int | None
    constant: float
    growth: Growth
    dense_numbers: int

    def __add__(self, other: Facts) -> Facts:
        if self.order != other.order:
            raise ValueError(f"shards are of the orders {self.order} and {other.order}")
        both = self.sees is not None and other.sees is not None
        return Facts(
            self.order,
            self.quadratic and other.quadratic,
            (self.sees or 0) + (other.sees or 0) if both else None,
            self.constant + other.constant,
            self.growth + other.growth,
            max(self.dense_numbers, other.dense_numbers),
        )


class Sharded(Objective):
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
        facts: Facts = cluster.sum("shapes", _facts, parts)
        self.order, self.sees = facts.order, facts.sees
        self.quadratic = facts.quadratic and mu is None
        self.constant = facts.constant if mu is None else 0.0
        self.dense_numbers, self._growth = facts.dense_numbers, facts.growth
        self.whole = self.order <= DENSE
        self._join = total if mu is None else partial(soft, mu=mu)

    # --- points --------------------------------------------------------------------------

    def image(self, L: Array) -> ShardImage:
        return ShardImage(L, L, L)

    def pair_image(self, X: Array, Y: Array) -> ShardImage:
        return ShardImage(X[:, :0], X, Y)

    def value(self, image: ShardImage) -> float:
        return self._told(image).value

    def rounding(self, image: ShardImage) -> float:
        told = self._told(image)
        return told.rounding + rounded_sum(len(self.parts)) * abs(told.value)

    def gradient_factor(self, image: ShardImage) -> Array:
        first = self._told(image).first
        return 2.0 * (first @ image.factor if self.whole else first)

    def gradient(self, image: ShardImage) -> SymmetricOperator:
        told = self._told(image)
        if self.whole:
            return SymmetricOperator(
                self.order,
                lambda V: told.first @ V,
                lambda: told.first,
                errors=lambda: np.zeros(self.order) + told.slack,
            )
        return SymmetricOperator(
            self.order,
            lambda V: self._product(image, V),
            lambda: self._over(image, "gradient", _dense),
            lambda: self._form(image),
            lambda: self._over(image, "rounding", _slack),
        )

    def _told(self, image: ShardImage) -> Terms:
        if image.told is None:
            image.told = self.cluster.sum(
                "gradient", _look, self.parts, *self._sides(image), self.whole, join=self._join
            )
        return image.told

    def _sides(self, image: ShardImage) -> tuple[Any, Any]:
        X = self.cluster.shared("factor", image.X)
        return X, None if image.Y is image.X else self.cluster.shared("factor", image.Y)

    # --- products ------------------------------------------------------------------------

    def _product(self, image: ShardImage, V: Array) -> Array:
        return self._over(image, "product", _times, self.cluster.shared("vectors", V))

    def _over(self, image: ShardImage, name: str, function: Any, *arguments: Any) -> Any:
        """A round over the gradients of the parts; those of a soft maximum with their shares."""
        if not image.gradients:
            X, Y = self._sides(image)
            nodes = self.cluster.each("gradient", _gradient, self.parts, X, Y)
            image.gradients = self.cluster.keep(nodes)
        whole = None if self.mu is None else self._told(image).value
        return self.cluster.sum(name, function, image.gradients, whole, self.mu, *arguments)

    def _form(self, image: ShardImage) -> Any:
        if self.mu is not None:
            return None
        self._over(image, "rounding", _slack)  # the gradients are there after it
        return joined_form(
            self.order, self.cluster.gather(self.cluster.each("form", _form, image.gradients))
        )

    def hessian_factor(self, image: ShardImage) -> Callable[[Array], Array]:
        X = self.cluster.shared("factor", image.X)
        bends = self.cluster.keep(self.cluster.each("hessian", _bend, self.parts, X))
        join = total_bent if self.mu is None else partial(soft_bent, mu=self.mu)

        def product(D: Array) -> Array:
            D = np.ascontiguousarray(D)
            shared = self.cluster.shared("direction", D)
            bent: Bent = self.cluster.sum("curvature", _bent, bends, shared, join=join)
            return bent.product

        return product

    # --- restrictions --------------------------------------------------------------------

    def blend(self, image: ShardImage, other: ShardImage) -> Blend:
        def take(alpha: float, beta: float) -> ShardImage:
            kept = [(np.sqrt(s), i.factor) for s, i in ((alpha, image), (beta, other)) if s > 0]
            empty = [image.factor[:, :0]]
            return self.image(np.hstack([root * factor for root, factor in kept] or empty))

        return Blend(self._restricted(_blend, image.factor, other.factor, size=2), take)

    def line(self, image: ShardImage, direction: Array) -> Line:
        def take(mu: float) -> ShardImage:
            return self.image(np.ascontiguousarray(image.factor + mu * direction))

        return Line(self._restricted(_line, image.factor, direction, size=3), take)

    def subspace(self, W: Array) -> Restriction:
        k = W.shape[1]
        return self._restricted(_subspace, W, size=k * (k + 1) // 2)

    def subspace_cost(self, columns: int) -> int:
        """As at home for one shard: they are spread over the workers."""
        entries = self.sees or self.order
        return -(-entries // len(self.parts)) * (columns * (columns + 1) // 2)

    def _restricted(self, make: Any, *factors: Array, size: int) -> Restriction:
        shared = [self.cluster.shared("factor", np.ascontiguousarray(F)) for F in factors]
        made = self.cluster.each("restriction", make, self.parts, *shared)
        if self.quadratic:
            zero: Array = np.zeros(size)
            at = self.cluster.sum("restriction", _restriction, made, zero, join=self._join)
            return QuadraticRestriction(0.5 * at.second, 0.5 * at.first, at.value)
        return RemoteRestriction(self.cluster, self.cluster.keep(made), self._join)

    # --- bounds --------------------------------------------------------------------------

    def growth(self) -> Growth:
        return self._growth if self.mu is None else Growth()

    def support(self, image: ShardImage) -> Support | None:
        if self.mu is not None:
            return None

        def at(shrink: float) -> float:
            sides = self._sides(image)
            found: float = self.cluster.sum("bound", _support, self.parts, *sides, shrink)
            return found

        return Support(self._told(image).support, self._growth.slope, at)

    def lower_bounds(self, image: ShardImage, bottom: float) -> Iterator[LowerBound]:
        support = self.support(image)
        return iter(()) if support is None else feasible(support, bottom)

    def recession(self, image: ShardImage) -> tuple[float, float]:
        if self.mu is not None:
            return np.inf, 0.0
        slope, unsure = self.cluster.sum("ray", _recession, self.parts, *self._sides(image))
        return float(slope), float(unsure)

    # --- dense matrices, for reference solvers -------------------------------------------

    def value_dense(self, M: Array) -> float:
        return self._at_matrix(M).value

    def gradient_dense(self, M: Array) -> Array:
        return self._at_matrix(M).first

    def _at_matrix(self, M: Array) -> Terms:
        shared = self.cluster.shared("matrix", M)
        told: Terms = self.cluster.sum("gradient", _at, self.parts, shared, join=self._join)
        return told


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

    def _at(self, theta: Array) -> Terms:
        theta = np.asarray(theta, dtype=float)
        if self._seen[0] != theta.tobytes():
            told = self.cluster.sum("restriction", _restriction, self.made, theta, join=self.join)
            self._seen = theta.tobytes(), told
        return self._seen[1]


# --- what tasks do -----------------------------------------------------------------------


def _facts(part: Objective) -> Facts:
    growth = part.growth()
    return Facts(
        part.order, part.quadratic, part.sees, part.constant, growth, part.dense_numbers
    )  # fmt: skip


def _image(part: Objective, X: Array, Y: Array | None) -> Any:
    return part.image(X) if Y is None else part.pair_image(X, Y)


def _look(part: Objective, X: Array, Y: Array | None, whole: bool) -> Terms:
    image = _image(part, X, Y)
    gradient = part.gradient(image)
    support = part.support(image)
    below = -np.inf if support is None else support.value
    value, rounding = part.value(image), part.rounding(image)
    if whole:
        return Terms(value, gradient.dense(), None, rounding, gradient.slack(), below)
    slope = 0.5 * part.gradient_factor(image) if Y is None else X[:, :0]
    return Terms(value, slope, None, rounding, 0.0, below)


def _gradient(part: Objective, X: Array, Y: Array | None) -> tuple[float, SymmetricOperator]:
    image = _image(part, X, Y)
    return part.value(image), part.gradient(image)


def _share(value: float, whole: float | None, mu: float | None) -> float:
    return 1.0 if whole is None or mu is None else float(np.exp((value - whole) / mu))


def _times(kept: tuple[float, Any], whole: Any, mu: Any, V: Array) -> Array:
    return _share(kept[0], whole, mu) * (kept[1] @ V)


def _dense(kept: tuple[float, Any], whole: Any, mu: Any) -> Array:
    return _share(kept[0], whole, mu) * kept[1].dense()


def _slack(kept: tuple[float, Any], whole: Any, mu: Any) -> Array:
    return _share(kept[0], whole, mu) * kept[1].slack()


def _form(kept: tuple[float, Any]) -> Any:
    return kept[1].form()


def _bend(part: Objective, L: Array) -> tuple[float, Array, Any]:
    image = part.image(L)
    return part.value(image), part.gradient_factor(image), part.hessian_factor(image)


def _bent(kept: tuple[float, Array, Any], D: Array) -> Bent:
    value, slope, product = kept
    return Bent(value, slope, float(np.sum(slope * D)), product(D))


def _blend(part: Objective, L: Array, V: Array) -> Restriction:
    return part.blend(part.image(L), part.image(V)).restriction


def _line(part: Objective, L: Array, D: Array) -> Restriction:
    return part.line(part.image(L), D).restriction


def _subspace(part: Objective, W: Array) -> Restriction:
    return part.subspace(W)


def _restriction(made: Restriction, theta: Array) -> Terms:
    return Terms(made.value(theta), made.gradient(theta), made.hessian(theta))


def _support(part: Objective, X: Array, Y: Array | None, shrink: float) -> float:
    support = part.support(_image(part, X, Y))
    return float(support.value if shrink == 1.0 else support.shrunk(shrink))


def _recession(part: Objective, X: Array, Y: Array | None) -> Array:
    return np.array(part.recession(_image(part, X, Y)))


def _at(part: Objective, M: Array) -> Terms:
    return Terms(part.value_dense(M), part.gradient_dense(M))
