"""The protocol and base class of losses: convex, smooth functions g of the image z = 𝒜(M)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.places import namespace, number
from gramian.common.types import Array
from gramian.losses.functions import where

Found = TypeVar("Found")


class PerImage(Generic[Found]):
    """Results that a loss stores for each image z, as long as the array z exists.

    A result depends on z alone, so the order of evaluations does not matter and threads may share
    the store. A copy starts empty.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[Any, Found]] = {}

    def get(self, z: Any, find: Callable[[Any], Found]) -> Found:
        """The result for z, computed by `find(z)` the first time."""
        key, found = id(z), self._found
        stored = found.get(key)
        if stored is None or stored[0]() is not z:
            found[key] = stored = ref(z, lambda _: found.pop(key, None)), find(z)
        return stored[1]

    def __reduce__(self) -> Any:
        return PerImage, ()


@runtime_checkable
class Loss(Protocol):
    """A convex, smooth g: Rᵖ → R, with the methods that solvers and certificates need.

    Subclasses inherit `curvature` and `smoothed`; other classes may have the same methods.
    """

    quadratic: bool = False
    """Whether g is quadratic, so that every small search is exact in one step."""

    infimum: float = -np.inf
    """A lower bound of g, −inf if there is none."""

    size: int | None
    """The length of z, None if the loss accepts any length."""

    smoothness: float
    """An upper bound on the largest eigenvalue of ∇²g."""

    def value(self, z: Array) -> float:
        """g(z)."""

    def gradient(self, z: Array) -> Array:
        """∇g(z)."""

    def curvature(self, z: Array, directions: Array) -> Array:
        """Dᵀ ∇²g(z) D for the few columns of D."""
        product = self.hessian(z)
        columns = [product(directions[:, k]) for k in range(directions.shape[1])]
        return directions.T @ namespace(z).stack(columns, axis=1)

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """d ↦ ∇²g(z) d."""

    def smoothed(self, mu: float) -> Loss | None:
        """The same loss with another smoothing parameter μ, None if it has none."""
        return None

    def conjugate(self, w: Array) -> float:
        """g*(w) = sup_z ⟨w, z⟩ − g(z), infinite outside its domain."""


def error_of(loss: Loss, z: Array) -> float:
    """Bound on the error of g(z) and its gradient besides rounding, 0 by default."""
    method = getattr(loss, "error", None)
    return 0.0 if method is None else float(method(z))


def on_simplex(loss: Loss) -> bool:
    """Whether ∇g has a fixed sum, so that g* is infinite after adding a constant to w."""
    return bool(getattr(loss, "simplex", False))


def recession_of(loss: Loss, z: Array, noise: Array) -> float:
    """lim g(tz)/t for t → ∞, with |z_e| ≤ noise_e counted as 0; infinite if unknown."""
    method = getattr(loss, "recession", None)
    if method is not None:
        return float(method(z, noise))
    xp = namespace(z)
    return 0.0 if loss.quadratic and not bool(xp.any(xp.abs(z) > noise)) else np.inf


def bends_of(loss: Loss, z: Array) -> Array | None:
    """The diagonal of ∇²g(z), None if the loss is not a sum over the entries of z."""
    if not getattr(loss, "separable", False):
        return None
    return loss.hessian(z)(namespace(z).ones_like(z))


def softened_of(loss: Loss, mu: float, size: int) -> Any:
    """The loss with a barrier μ on its dual vector, or the loss itself if it needs none."""
    method = getattr(loss, "softened", None)
    softened = None if method is None else method(mu, size)
    return loss if softened is None else softened


@dataclass(frozen=True)
class LeastSquares:
    """g(z) = min over β of ½ Σ_e (s_e z_e + r_e (b_i + c_j) − t_e)² + κ/2 ‖β‖², β = (b, c)."""

    scale: Array | float
    """s, without the factors in `sides`."""
    targets: Array
    ridge: float | None
    """κ of the offsets of the rows and columns of a block, None without offsets."""
    roots: Array | None = None
    """r, default 1."""
    sides: tuple[Array, Array] | None = None
    """Factors of the rows and columns of a block that multiply s."""


def least_squares_of(loss: Loss, dtype: Any = float) -> LeastSquares | None:
    """The loss as a sum of squares in the given precision, None if it is not one."""
    method = getattr(loss, "least_squares", None)
    return None if method is None else method(dtype)


class DiagonalHessian(Loss):
    """A loss whose Hessian is diagonal, given by `bends`."""

    def bends(self, z: Array) -> Array:
        """The diagonal of ∇²g(z)."""
        raise NotImplementedError

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        bends = self.bends(z)
        return lambda d: bends * d

    def curvature(self, z: Array, directions: Array) -> Array:
        return (directions * self.bends(z)[:, None]).T @ directions


class Separable(DiagonalHessian, ABC):
    """A weighted sum g(z) = Σ_e ω_e φ(z_e − c_e); subclasses define φ.

    Every such φ is at least 0, so inf g = 0.
    """

    infimum = 0.0
    separable = True
    steepest = 1.0
    """The largest value of φ''."""

    def __init__(self, centre: ArrayLike = 0.0, *, weight: ArrayLike = 1.0) -> None:
        self.centre = np.asarray(centre, dtype=float)
        self.weight = np.asarray(weight, dtype=float)
        if not np.all(np.isfinite(self.centre)):
            raise ValueError("targets and margins of a loss must not be NaN or infinite")
        if not np.all(np.isfinite(self.weight)) or np.any(self.weight < 0):
            raise ValueError("weights of a loss must be finite and not negative")
        shape = np.broadcast_shapes(self.centre.shape, self.weight.shape)
        if len(shape) > 1:
            raise ValueError(f"targets, margins and weights must be vectors, got shape {shape}")
        self.size = shape[0] if shape else None
        self.smoothness = float(np.max(self.weight, initial=0.0)) * self.steepest

    def value(self, z: Array) -> float:
        found: float = number(namespace(z).sum(self.weight * self._phi(z - self.centre)))
        return found

    def gradient(self, z: Array) -> Array:
        return self.weight * self._slope(z - self.centre)

    def bends(self, z: Array) -> Array:
        return self.weight * self._bend(z - self.centre)

    def recession(self, z: Array, noise: Array) -> float:
        """Σ_e ω_e lim φ(tz_e)/t."""
        xp = namespace(z)
        live = where(xp.abs(z) > noise, z, 0.0)
        weight = xp.broadcast_to(self.weight, live.shape)
        slopes = where(weight > 0, self._far(live), 0.0)
        return float(xp.sum(where(slopes != 0, weight * slopes, 0.0)))

    def conjugate(self, w: Array) -> float:
        """Σ_e w_e c_e + ω_e φ*(w_e / ω_e); a zero weight requires w_e = 0."""
        xp = namespace(w)
        weight = xp.broadcast_to(self.weight, w.shape)
        live = weight > 0
        if bool(xp.any(~live & (w != 0))):
            return np.inf
        dual = self._conjugate_phi(w / where(live, weight, 1.0))
        return float(xp.sum(w * self.centre) + xp.sum(where(live, weight * dual, 0.0)))

    @abstractmethod
    def _phi(self, s: Array) -> Array:
        """φ(s)."""

    @abstractmethod
    def _slope(self, s: Array) -> Array:
        """φ'(s)."""

    @abstractmethod
    def _bend(self, s: Array) -> Array:
        """φ''(s)."""

    def _far(self, s: Array) -> Array:
        """lim φ(ts)/t for t → ∞; infinite unless a subclass overrides it."""
        return where(s == 0, namespace(s).zeros_like(s), np.inf)

    @abstractmethod
    def _conjugate_phi(self, u: Array) -> Array:
        """φ*(u)."""
