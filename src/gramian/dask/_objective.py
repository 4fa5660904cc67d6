"""An objective whose parts live on workers: F = Σ_k F_k, or their soft maximum, one part a shard.

The driver holds the factor; a round of tasks gives the value, the gradient and small images of all
parts, joined in a fixed order. Solvers and certificates see an `Objective` like any other. What
many products are taken with (gradients, restrictions) is kept on the workers as futures: tasks
whose results can be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask import _parts as tasks
from gramian.dask._cluster import Cluster
from gramian.dask._terms import Bent, ShardFacts, Terms, soft, soft_bent, total, total_bent
from gramian.linalg.restriction import Restriction
from gramian.objectives.base import Combinations, Facts, Join, Objective, Pairs, SymmetricOperator
from gramian.objectives.parts import Parts, joined_form
from gramian.objectives.restriction import QuadraticRestriction
from gramian.objectives.supports import Growth, Support
from gramian.proofs import rounded_sum

Array = NDArray[np.floating]

NEAR = 2_000_000
"""Entries up to which a sparse gradient comes home for the many products of a Krylov method."""

DENSE = 400
"""Up to this order a shard sends its whole gradient: then no product needs the cluster again."""


@dataclass
class ShardImage:
    """M = ½(XYᵀ + YXᵀ), which is LLᵀ where X is Y, and what rounds have told of it."""

    factor: Array
    X: Array
    Y: Array
    told: Terms | None = None
    gradients: list[Any] = field(default_factory=list)
    form: Any = None
    """What the gradient is made of, where it came home."""
    entries: Parts | None = None


class Sharded(Objective[ShardImage]):
    """F(M) = Σ_k F_k(M), or μ ln Σ_k exp(F_k(M)/μ), with F_k an objective on a worker.

    Parameters
    ----------
    cluster : Cluster
    parts : nodes or futures of objectives of one order, without linear terms
    mu : float, optional
        μ of the soft maximum; without it the parts are summed.
    wide : bool
        Whether the optimum usually has a high rank.
    """

    def __init__(
        self, cluster: Cluster, parts: list[Any], *, mu: float | None = None, wide: bool = False
    ) -> None:
        self.cluster, self.parts, self.mu = cluster, parts, mu
        found: ShardFacts = cluster.sum("shapes", tasks.facts_of, parts, DENSE)
        quadratic = found.facts.quadratic and mu is None
        self.order = found.order
        terms, numbers = found.facts.terms, found.facts.dense_numbers
        self.facts = Facts(quadratic, terms, dense_numbers=numbers, wide=wide)
        self.constant = found.constant if mu is None else 0.0
        self._growth = found.growth
        self.whole = self.order <= DENSE
        entries = found.sparse_numbers
        self.near = mu is None and entries is not None and entries <= NEAR
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
        dense: Callable[[], Array] = partial(self._over, image, "gradient", tasks.dense)
        if self.near:
            dense = partial(self._entries, image)
        return SymmetricOperator(
            self.order,
            lambda V: self._product(image, V),
            dense,
            lambda: self._form(image),
            lambda: self._over(image, "rounding", tasks.slack),
        )

    def _told(self, image: ShardImage) -> Terms:
        if image.told is None:
            image.told = self.cluster.sum(
                "gradient", tasks.look, self.parts, *self._sides(image), self.whole, join=self._join
            )
        return image.told

    def _sides(self, image: ShardImage) -> tuple[Any, Any]:
        X = self.cluster.shared("factor", image.X)
        return X, None if image.Y is image.X else self.cluster.shared("factor", image.Y)

    # --- products ------------------------------------------------------------------------

    def _product(self, image: ShardImage, V: Array) -> Array:
        if self.near:
            return self._at_home(image) @ V
        return self._over(image, "product", tasks.times, self.cluster.shared("vectors", V))

    def _at_home(self, image: ShardImage) -> Parts:
        """The gradient by its entries, for the many products of a Krylov method."""
        if image.entries is None:
            image.entries = tasks.entries_of(self._form(image))
        assert image.entries is not None
        return image.entries

    def _entries(self, image: ShardImage) -> Array:
        found = self._at_home(image)
        return np.asarray(found.sparse.toarray() + found.scale * np.eye(self.order))

    def _gradients(self, image: ShardImage) -> list[Any]:
        """Those of the parts, kept on the workers."""
        if not image.gradients:
            X, Y = self._sides(image)
            nodes = self.cluster.each("gradient", tasks.kept_gradient, self.parts, X, Y)
            image.gradients = self.cluster.keep(nodes)
        return image.gradients

    def _over(self, image: ShardImage, name: str, function: Any, *arguments: Any) -> Any:
        """A round over the gradients of the parts; those of a soft maximum with their shares."""
        whole = None if self.mu is None else self._told(image).value
        return self.cluster.sum(name, function, self._gradients(image), whole, self.mu, *arguments)

    def _form(self, image: ShardImage) -> Any:
        if self.mu is not None:
            return None
        if image.form is None:
            forms = self.cluster.gather(
                self.cluster.each("form", tasks.form, self._gradients(image))
            )
            image.form = joined_form(self.order, forms)
        return image.form

    def hessian_factor(self, image: ShardImage) -> Callable[[Array], Array]:
        X = self.cluster.shared("factor", image.X)
        bends = self.cluster.keep(self.cluster.each("hessian", tasks.bend, self.parts, X))
        join = total_bent if self.mu is None else partial(soft_bent, mu=self.mu)

        def product(D: Array) -> Array:
            D = np.ascontiguousarray(D)
            shared = self.cluster.shared("direction", D)
            bent: Bent = self.cluster.sum("curvature", tasks.bent, bends, shared, join=join)
            return bent.product

        return product

    # --- restrictions --------------------------------------------------------------------

    def combinations(self, images: Sequence[ShardImage], pairs: Pairs) -> Combinations:
        factors = [image.factor for image in images]

        def take(theta: Array, join: Join) -> ShardImage:
            return self.image(np.ascontiguousarray(join(factors)))

        make = partial(tasks.combinations, tuple(pairs))
        return Combinations(self._restricted(make, *factors, size=len(pairs)), take)

    def subspace(self, W: Array) -> Restriction:
        k = W.shape[1]
        return self._restricted(tasks.subspace, W, size=k * (k + 1) // 2)

    def subspace_cost(self, columns: int) -> int:
        """As at home for one shard: they are spread over the workers."""
        entries = self.facts.terms or self.order
        return -(-entries // len(self.parts)) * (columns * (columns + 1) // 2)

    def _restricted(self, make: Any, *factors: Array, size: int) -> Restriction:
        shared = [self.cluster.shared("factor", np.ascontiguousarray(F)) for F in factors]
        made = self.cluster.each("restriction", make, self.parts, *shared)
        if self.facts.quadratic:
            zero: Array = np.zeros(size)
            at = self.cluster.sum("restriction", tasks.at_theta, made, zero, join=self._join)
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
            found: float = self.cluster.sum("bound", tasks.support_at, self.parts, *sides, shrink)
            return found

        return Support(self._told(image).support, self._growth.slope, at)

    def recession(self, image: ShardImage) -> tuple[float, float]:
        if self.mu is not None:
            return np.inf, 0.0
        slope, unsure = self.cluster.sum("ray", tasks.recession, self.parts, *self._sides(image))
        return float(slope), float(unsure)


def there(cluster: Cluster, parts: list[Any]) -> list[Any]:
    """The parts that are any: a shard that adds nothing has None in its place."""
    some = cluster.gather(cluster.each("count", tasks.is_there, parts))
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
            told = self.cluster.sum("restriction", tasks.at_theta, self.made, theta, join=self.join)
            self._seen = theta.tobytes(), told
        return self._seen[1]
