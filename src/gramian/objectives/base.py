"""The base class of objectives.

A solver does not access maps, losses or data. It holds an *image* of its factor L, which contains
L and intermediate results of the objective, and asks for the value, the gradient as an operator,
and small restrictions: F over the two matrices of a bilateral step or along a line of
factors, where each trial needs no product with the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from gramian.arrays.places import HOST, Place, Placed, inner, side_by_side
from gramian.common.types import Array
from gramian.linalg.restriction import Restriction
from gramian.objectives.supports import Growth, LowerBound, Support, feasible


@dataclass(frozen=True)
class Facts:
    """Properties of an objective that are known without evaluating it."""

    quadratic: bool = False
    """F is a quadratic function of M."""
    terms: int | None = None
    """Number of linear functions of M that F depends on, besides one linear term; None if unknown.

    It is also the length of the dual vectors."""
    single_loss: bool = False
    """F is one loss of one linear map (a `Composite`)."""
    matrix_quadratic: bool = False
    """F = tr((AM)² + BM² + 2CM) (a `GramQuadratic`)."""
    dense_numbers: int = 0
    """Size of the largest dense matrix that is multiplied by factors."""
    spans: bool = True
    """The gradient may be a multiple of I plus a matrix of low rank."""
    wide: bool = False
    """The optimum usually has a high rank, although the order is far higher."""
    streams: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    """Shapes of arrays whose rows may stay on the host if a device has no room for them, and how
    many rows of each are needed together."""

    def __add__(self, other: Facts) -> Facts:
        """The facts of a sum of two objectives."""
        both = self.terms is not None and other.terms is not None
        return Facts(
            quadratic=self.quadratic and other.quadratic,
            terms=(self.terms or 0) + (other.terms or 0) if both else None,
            dense_numbers=max(self.dense_numbers, other.dense_numbers),
        )

    def rank_bound(self, order: int) -> int:
        """An upper bound on the rank of some minimiser over the cone.

        r(r + 1)/2 ≤ p + 1: a minimiser of least rank is a vertex of those with its image.
        """
        if self.terms is None:
            return order
        return min(order, int((np.sqrt(8 * (self.terms + 1) + 1) - 1) / 2))


class Image(Protocol):
    """Intermediate results of an objective at M = LLᵀ."""

    @property
    def factor(self) -> Array: ...


Point = TypeVar("Point", bound=Image)


@dataclass(frozen=True)
class SymmetricOperator:
    """A symmetric matrix given by its products; `dense` is for small orders only."""

    order: int
    product: Callable[[Array], Array]
    dense: Callable[[], Array]
    form: Callable[[], Any] = lambda: None
    """Its structure, for a proof of its smallest eigenvalue (see `proofs`)."""
    errors: Callable[[], Array] | None = None
    """e² with |E_ij| ≤ e_i e_j for the rounding errors E of the entries of `dense`."""
    place: Place = HOST
    """The device of its products."""
    coordinates: Callable[[], Array | None] = lambda: None
    """T such that the matrix is PSD if TᵀGT is, and TᵀGT is better conditioned."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Array) -> Array:
        return self.product(V)

    def slack(self) -> Array:
        """The error bounds, 0 if unknown."""
        return np.zeros(self.order) if self.errors is None else self.errors()

    def __neg__(self) -> SymmetricOperator:
        return SymmetricOperator(
            self.order, lambda V: -self.product(V), lambda: -self.dense(), place=self.place
        )


Pairs = Sequence[tuple[int, int]]
"""Indices of the two factors of each matrix ½(XYᵀ + YXᵀ)."""

Join = Callable[[Sequence[Array]], Array]
"""The factor of a combination, as a linear function of the given factors."""


@dataclass(frozen=True)
class Combinations:
    """F(Σ θ_k M_k) over a few matrices M_k = ½(XYᵀ + YXᵀ), and the images of such sums."""

    restriction: Restriction
    take: Callable[[Array, Join], Image]


@dataclass(frozen=True)
class Blend:
    """F(αM + βN) and the image of [√α L | √β V] (BILGO §3.1)."""

    restriction: Restriction
    take: Callable[..., Image]


class Line(Blend):
    """F at (L+μΔ)(L+μΔ)ᵀ, over θ = (1, 2μ, μ²) on LLᵀ, sym(LΔᵀ), ΔΔᵀ (LRO §4)."""


class Objective(Placed, ABC, Generic[Point]):
    """A convex F of a symmetric matrix of a given order."""

    order: int
    constant: float
    facts: Facts

    @cached_property
    def _results(self) -> dict[str, Any]:
        """Cached results of functions decorated by `once`."""
        return {}

    @property
    def modulus(self) -> float:
        """m with F(N) ≥ F(M) + ⟨∇F(M), N − M⟩ + m‖N − M‖²; 0 by default."""
        return 0.0

    @abstractmethod
    def image(self, L: Array) -> Point:
        """The intermediate results of F at M = LLᵀ."""

    @abstractmethod
    def pair_image(self, X: Array, Y: Array) -> Point:
        """The intermediate results of F at ½(XYᵀ + YXᵀ), which has no factor."""

    @abstractmethod
    def value(self, image: Point) -> float:
        """F(M)."""

    @abstractmethod
    def gradient(self, image: Point) -> SymmetricOperator:
        """∇F(M) as an operator."""

    @abstractmethod
    def hessian_factor(self, image: Point) -> Callable[[Array], Array]:
        """The second derivative of L ↦ F(LLᵀ): D ↦ 2∇F(M)D + 2∇²F(M)[LDᵀ + DLᵀ]L."""

    @abstractmethod
    def subspace(self, W: Array) -> Restriction:
        """svec(S) ↦ F(W S Wᵀ) for a few columns W."""

    @abstractmethod
    def subspace_cost(self, columns: int) -> int:
        """The number of elements that `subspace` stores for this many columns."""

    @abstractmethod
    def combinations(self, images: Sequence[Point], pairs: Pairs) -> Combinations:
        """F over linear combinations of the matrices given by pairs of factors of these images.

        No trial needs a further product with the data. Solvers use `blend` or `line`.
        """

    def blend(self, image: Point, other: Point) -> Blend:
        """F over the cone of two images."""
        cone = self.combinations((image, other), ((0, 0), (1, 1)))

        def take(alpha: float, beta: float) -> Image:
            return cone.take(np.array([alpha, beta]), partial(_scaled_columns, (alpha, beta)))

        return Blend(cone.restriction, take)

    def line(self, image: Point, direction: Array) -> Line:
        """F along L + μΔ."""
        curve = self.combinations((image, self.image(direction)), ((0, 0), (0, 1), (1, 1)))

        def take(mu: float) -> Image:
            return curve.take(np.array([1.0, 2 * mu, mu * mu]), lambda both: both[0] + mu * both[1])

        return Line(curve.restriction, take)

    def gradient_factor(self, image: Point) -> Array:
        """The gradient of L ↦ F(LLᵀ): 2 ∇F(M) L."""
        return 2.0 * (self.gradient(image) @ image.factor)

    def trace(self, image: Point) -> float:
        """tr M."""
        return inner(image.factor, image.factor)

    def dual(self, image: Point) -> Array | None:
        """The dual vector of a point, None if the objective has none."""
        return None

    def dual_operator(self, w: Array) -> SymmetricOperator:
        """The matrix that is PSD if w is feasible: ∇F for the w of a point."""
        raise NotImplementedError

    def support(self, image: Point) -> Support | None:
        """A linear function below F that equals F at M, None if there is none."""
        w = self.dual(image)
        return None if w is None else self.dual_support(w)

    def dual_support(self, w: Array) -> Support:
        """The linear function below F given by a dual vector."""
        raise NotImplementedError

    def dual_bounds(self, w: Array, bottom: float) -> Iterator[LowerBound]:
        """Lower bounds on F over the cone from w; `bottom` ≤ λ_min of its operator."""
        return feasible(self.dual_support(w), bottom)

    def lower_bounds(self, image: Point, bottom: float) -> Iterator[LowerBound]:
        """Lower bounds on F over the cone from this point; `bottom` ≤ λ_min(∇F(M))."""
        w = self.dual(image)
        if w is not None:
            return self.dual_bounds(w, bottom)
        support = self.support(image)
        return iter(()) if support is None else feasible(support, bottom)

    def growth(self) -> Growth:
        """A lower bound on F as a function of the trace; none by default."""
        return Growth()

    def recession(self, image: Point) -> tuple[float, float]:
        """lim F(tD)/t for t → ∞ at D = LLᵀ, and its rounding error; +inf by default."""
        return np.inf, 0.0

    def complementarity(self, image: Point) -> float | None:
        """⟨∇F(M), M⟩, None if it needs a product with the factor."""
        return None

    def rounding(self, image: Point) -> float:
        """Bound on the floating point error of F(M) and ⟨∇F(M), M⟩."""
        return 16 * float(np.finfo(float).eps) * max(abs(self.value(image)), abs(self.constant))


Chosen = TypeVar("Chosen", bound=Objective)
Result = TypeVar("Result")


def once(function: Callable[[Chosen], Result]) -> Callable[[Chosen], Result]:
    """Decorator: cache the result of a function of an objective."""
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def known(objective: Chosen) -> Result:
        results = objective._results
        if name not in results:
            results[name] = function(objective)
        return results[name]

    return known


def _scaled_columns(weights: Sequence[float], factors: Sequence[Array]) -> Array:
    """A factor of Σ w_k L_kL_kᵀ, without matrices of weight 0."""
    kept = [float(np.sqrt(w)) * L for w, L in zip(weights, factors, strict=True) if w > 0]
    return side_by_side(kept or [factors[0][:, :0]])
