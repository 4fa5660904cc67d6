"""What an objective offers a solver.

A solver never sees a map, a loss or data. It holds an *image* of its factor L, which carries L
and whatever the objective needs of it, and asks for the value, for the gradient as an operator,
and for small restrictions: F over the two matrices of a bilateral step or along a line of
factors, where each trial costs no product with the data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import HOST, Place, Placed, inner
from gramian.linalg.restriction import Restriction

Array = NDArray[np.floating]


class Image(Protocol):
    """What an objective has computed of M = LLᵀ."""

    factor: Array


@dataclass(frozen=True)
class SymmetricOperator:
    """A symmetric matrix given by its products; `dense` only where the order allows it."""

    order: int
    product: Callable[[Array], Array]
    dense: Callable[[], Array]
    form: Callable[[], Any] = lambda: None
    """What is known of its structure, for a proof of its smallest eigenvalue (see `proofs`)."""
    errors: Callable[[], Array] | None = None
    """e² with |E_ij| ≤ e_i e_j for the rounding errors E that `dense` is made with."""
    place: Place = HOST
    """Where it is multiplied."""
    coordinates: Callable[[], Array | None] = lambda: None
    """T such that the matrix is positive semidefinite where TᵀGT is, and better conditioned."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.order, self.order

    def __matmul__(self, V: Array) -> Array:
        return self.product(V)

    def slack(self) -> Array:
        """The errors, none where nothing is known of them."""
        return np.zeros(self.order) if self.errors is None else self.errors()

    def __neg__(self) -> SymmetricOperator:
        return SymmetricOperator(
            self.order, lambda V: -self.product(V), lambda: -self.dense(), place=self.place
        )


@dataclass(frozen=True)
class Whitening:
    """An objective F̃ with F̃(Y) = F(RY) for every factor, and the ways between Y and L = RY."""

    objective: Objective
    factor: Callable[[Array], Array]
    """Y ↦ RY."""
    coordinates: Callable[[Array], Array]
    """L ↦ a Y with the same F."""


@dataclass(frozen=True)
class SquaredForms:
    """F(M) = ½ Σ_e (u_eᵀMu_e − t_e)²/b_e + ⟨C, M⟩ but for a constant, and what its dual needs.

    −g*(w) = −½ Σ b_e w_e² − Σ t_e w_e bounds F wherever S(w) = C + Σ_e w_e u_eu_eᵀ ⪰ 0.
    """

    U: Any
    """u_e, a row each, sparse or dense."""
    softness: Array
    """b."""
    targets: Array
    """t."""
    C: Array
    unit: Array
    """Weights with Σ_e unit_e u_eu_eᵀ ≻ 0."""


@dataclass(frozen=True)
class Blend:
    """F(αM + βN) and the image of [√α L | √β V] it leads to (BILGO §3.1)."""

    restriction: Restriction
    take: Callable[[float, float], Any]


@dataclass(frozen=True)
class Line:
    """F at (L+μΔ)(L+μΔ)ᵀ, over θ = (1, 2μ, μ²) on LLᵀ, sym(LΔᵀ), ΔΔᵀ (LRO §4)."""

    restriction: Restriction
    take: Callable[[float], Any]


@dataclass(frozen=True)
class Beside:
    """F(M + V S Vᵀ) for a few columns V, to second order in svec(S), and the image it leads to."""

    hessian: Array
    gradient: Array
    image: Callable[[Array], Any]
    """S ↦ the image of M + V S Vᵀ, without a factor."""


@dataclass(frozen=True)
class LowerBound:
    """A number that F never goes below on the domain, and the theorem that says so."""

    value: float
    method: str
    by_bottom: bool = False
    """Whether it stands on the bound on λ_min(∇F) that the objective was told."""
    how: str = ""
    """How the eigenvalue behind it was found, where there is one."""
    miss: float = 0.0
    """The probability that it is no bound: 0 but for eigenvalues that are estimated."""


@dataclass(frozen=True)
class Growth:
    """F(M) ≥ floor + slope·t + bend·t² over the cone, t = tr M, with bend ≥ 0."""

    floor: float = -np.inf
    slope: float = -np.inf
    bend: float = 0.0

    def __add__(self, other: Growth) -> Growth:
        return Growth(self.floor + other.floor, self.slope + other.slope, self.bend + other.bend)

    @property
    def least(self) -> float:
        """The smallest value over t ≥ 0 that this allows."""
        if self.slope >= 0:
            return self.floor
        return self.floor - self.slope**2 / (4 * self.bend) if self.bend > 0 else -np.inf

    def trace_below(self, value: float) -> float | None:
        """The largest trace that a value of F leaves possible, None where it leaves them all."""
        room = value - self.floor
        if not (np.isfinite(room) and np.isfinite(self.slope)):
            return None
        room = max(room, 0.0)
        if self.bend > 0:
            root = np.sqrt(self.slope**2 + 4 * self.bend * room)
            if self.slope > 0:
                return float(2 * room / (root + self.slope))
            return float((root - self.slope) / (2 * self.bend))
        return float(room / self.slope) if self.slope > 0 else None


class Objective(Placed, ABC):
    """A convex F of a symmetric matrix of a given order."""

    order: int
    quadratic: bool
    constant: float
    distant: bool = False
    """Whether a product with ∇F is a round of messages, so that hundreds of them cost too much."""
    sees: int | None = None
    """Of how many linear functions of M it is made, beside one linear term, where it is."""
    dense_numbers: int = 0
    """The numbers of the largest dense matrix that it multiplies factors by."""
    spans: bool = True
    """Whether its gradient may be a multiple of I and a matrix of low rank."""
    wide: bool = False
    """Whether its optimum is of high rank as a rule, though the order is far higher."""

    @property
    def apart(self) -> dict[tuple[int, ...], int]:
        """Shapes of its arrays whose rows may stay on the host where a device has no room for them,
        and how many rows of each come together; none unless a subclass knows better."""
        return {}

    @property
    def modulus(self) -> float:
        """m with F(N) ≥ F(M) + ⟨∇F(M), N − M⟩ + m‖N − M‖²: 0 unless a subclass knows better."""
        return 0.0

    @property
    def unit(self) -> float:
        """How far F can fall from F(0), about, where F(0) does not tell the size of F."""
        return 0.0

    def single(self) -> Objective | None:
        """The same with data in float32, to sweep with; None where there is nothing to gain."""
        return None

    @property
    def for_steps(self) -> Objective:
        """The same to rounding, and quicker: to descend with, not to certify by."""
        return self

    @abstractmethod
    def image(self, L: Array) -> Any:
        """Everything F needs of M = LLᵀ."""

    @abstractmethod
    def pair_image(self, X: Array, Y: Array) -> Any:
        """The same for ½(XYᵀ + YXᵀ); it has a value and a gradient, and no factor to move along."""

    @abstractmethod
    def value(self, image: Any) -> float:
        """F(M)."""

    @abstractmethod
    def gradient(self, image: Any) -> SymmetricOperator:
        """∇F(M) as an operator."""

    @abstractmethod
    def hessian_factor(self, image: Any) -> Callable[[Array], Array]:
        """The second derivative of L ↦ F(LLᵀ): D ↦ 2∇F(M)D + 2∇²F(M)[LDᵀ + DLᵀ]L."""

    @abstractmethod
    def subspace(self, W: Array) -> Restriction:
        """svec(S) ↦ F(W S Wᵀ) for a few columns W."""

    @abstractmethod
    def subspace_cost(self, columns: int) -> int:
        """How many numbers `subspace` keeps for so many columns."""

    @abstractmethod
    def blend(self, image: Any, other: Any) -> Blend:
        """F over the cone of two images."""

    @abstractmethod
    def line(self, image: Any, direction: Array) -> Line:
        """F along L + μΔ."""

    @abstractmethod
    def value_dense(self, M: Array) -> float:
        """F at a dense symmetric matrix, for reference solvers."""

    @abstractmethod
    def gradient_dense(self, M: Array) -> Array:
        """∇F at a dense symmetric matrix, for reference solvers."""

    def gradient_factor(self, image: Any) -> Array:
        """The gradient of L ↦ F(LLᵀ): 2 ∇F(M) L."""
        return 2.0 * (self.gradient(image) @ image.factor)

    def trace(self, image: Any) -> float:
        """tr M."""
        return inner(image.factor, image.factor)

    def metric(self) -> Array | None:
        """A definite P with ∇²F(M) near P ⊗ P up to scale, where one is known and small."""
        return None

    def preconditioner(self, image: Any) -> Callable[[Array], Array] | None:
        """A product near the inverse of the Hessian on the factor, where a cheap one is known."""
        return None

    def whitened(self) -> Whitening | None:
        """F of other coordinates, in which its curvature is more even, where some are known."""
        return None

    def halves(self, dtype: Any = float) -> Any:
        """F as least squares in each half of the factor's rows (`Halves`), where it is that."""
        return None

    def forms(self) -> SquaredForms | None:
        """F as squares of forms u_eᵀMu_e, where it is that, M that of the points but the first."""
        return None

    def dual(self, image: Any) -> Array | None:
        """The dual vector that belongs to a point, where the objective has such."""
        return None

    def toward(self, image: Any, other: Any, share: float) -> Any:
        """The image of (1 − share) M + share N, without a factor, where there are dual vectors."""
        raise NotImplementedError

    def beside(self, image: Any, V: Array) -> Beside | None:
        """F near M along a few columns V, where the objective has dual vectors."""
        return None

    def dual_operator(self, w: Array) -> SymmetricOperator:
        """What has to be positive semidefinite for w to be feasible: ∇F at the w of a point."""
        raise NotImplementedError

    def support(self, image: Any) -> Any:
        """A linear function below F that touches it at M (`Support`), None where there is none."""
        return None

    def dual_support(self, w: Array) -> Any:
        """The linear function below F that belongs to a dual vector (`Support`)."""
        raise NotImplementedError

    def dual_bounds(self, w: Array, bottom: float) -> Iterator[LowerBound]:
        """Lower bounds on F over the cone by w, `bottom` ≤ λ_min of its operator."""
        return iter(())

    def costly_bounds(self, w: Array | None, seconds: float) -> Iterator[LowerBound]:
        """Lower bounds by w that may take these seconds, for a last certificate."""
        return iter(())

    def rank_bound(self) -> int:
        """A rank that some minimiser over the cone has or stays below.

        r(r + 1)/2 ≤ p + 1: a minimiser of least rank is a vertex of those with its image.
        """
        if self.sees is None:
            return self.order
        return min(self.order, int((np.sqrt(8 * (self.sees + 1) + 1) - 1) / 2))

    def smoothed(self, mu: float) -> Objective | None:
        """The same objective with its loss smoothed by μ, None where no μ is part of it."""
        return None

    def coordinates(self) -> Array | None:
        """T with M = TSTᵀ in units of the data, where the order is small and they are known.

        F is blind to what T does not span.
        """
        return None

    def growth(self) -> Growth:
        """How F is known to grow with the trace; nothing known unless a subclass says so."""
        return Growth()

    def trace_bound(self, value: float) -> float | None:
        """A τ with tr M* ≤ τ for every minimiser over the cone, given a value F reaches."""
        return self.growth().trace_below(value)

    def recession(self, image: Any) -> tuple[float, float]:
        """lim F(tD)/t for t → ∞ at D = LLᵀ, and what of it may be rounding; +inf unless known."""
        return np.inf, 0.0

    def flat(self) -> Array | None:
        """Columns that span the directions D ⪰ 0 without curvature, where they are known."""
        return None

    def flattened(self, V: Array) -> Array:
        """V moved a little so that F has less curvature along VVᵀ, where that can be done."""
        return V

    def complementarity(self, image: Any) -> float | None:
        """⟨∇F(M), M⟩, where it takes no product with the factor."""
        return None

    def rounding(self, image: Any) -> float:
        """What the computed F(M) and ⟨∇F(M), M⟩ can be off by in floating point."""
        return 16 * float(np.finfo(float).eps) * max(abs(self.value(image)), abs(self.constant))

    def lower_bounds(self, image: Any, bottom: float) -> Iterator[LowerBound]:
        """Lower bounds on F over the cone got at this point; `bottom` ≤ λ_min(∇F(M))."""
        return iter(())
