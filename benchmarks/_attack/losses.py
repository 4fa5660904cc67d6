"""Losses in the precision of their argument: terms, slopes, and their form as a conic model.

`terms` are numbers whose sum is g(z), `slope` is ∇g(z), and `bend` is the coefficient of z² (0 if
there is none).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

LD = np.longdouble


class Loss:
    """A convex function g of z, with the methods `terms`, `slope` and `model(model, R)`.

    `model` adds min g(Rs) to a conic model whose first variables are s.
    """

    centre: Any = 0.0
    bend: Any = 0.0
    unit: Any = 0.0
    """The size of g near its curved part, used if g(0) = 0."""

    terms: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    model: Callable[[Any, np.ndarray], None]


@dataclass(frozen=True)
class Weighted(Loss):
    """Σ ω z."""

    weight: Any = 1.0

    def terms(self, z: np.ndarray) -> np.ndarray:
        return self.weight * z

    def slope(self, z: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.weight, z.shape).astype(z.dtype)

    def model(self, model: Any, R: np.ndarray) -> None:
        model.add_linear(np.broadcast_to(self.weight, len(R)).astype(float) @ R)


@dataclass(frozen=True)
class Squares(Loss):
    """Σ ω (z − t)²."""

    centre: Any = 0.0
    weight: Any = 1.0

    @property
    def bend(self) -> Any:
        return self.weight

    def terms(self, z: np.ndarray) -> np.ndarray:
        return self.weight * (z - self.centre) ** 2

    def slope(self, z: np.ndarray) -> np.ndarray:
        return 2 * self.weight * (z - self.centre)

    def model(self, model: Any, R: np.ndarray) -> None:
        model.add_squares(R, self.weight, self.centre)


@dataclass(frozen=True)
class SquaredHinges(Loss):
    """Σ ω max(0, m − z)²."""

    centre: Any = 1.0
    weight: Any = 1.0

    @property
    def bend(self) -> Any:
        return self.weight

    def terms(self, z: np.ndarray) -> np.ndarray:
        return self.weight * np.maximum(self.centre - z, 0) ** 2

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -2 * self.weight * np.maximum(self.centre - z, 0)

    def model(self, model: Any, R: np.ndarray) -> None:
        """u ≥ m − z, u ≥ 0, min Σ ω u²."""
        u = model.variables(len(R))
        model.add_squares(u, self.weight)
        model.nonnegative([u])
        model.nonnegative([u, R], -self.centre)


@dataclass(frozen=True)
class SmoothedHinges(Loss):
    """Σ ω h_μ(m − z): h_μ is 0 below 0, s²/2μ up to μ, s − μ/2 beyond."""

    mu: float
    centre: Any = 1.0
    weight: Any = 1.0

    @property
    def unit(self) -> Any:
        return self.mu * np.max(self.weight)

    def terms(self, z: np.ndarray) -> np.ndarray:
        s, mu = self.centre - z, z.dtype.type(self.mu)
        inside = np.clip(s, 0, mu)
        return self.weight * (inside * inside / (2 * mu) + np.maximum(s - mu, 0))

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -self.weight * np.clip((self.centre - z) / self.mu, 0, 1)

    def model(self, model: Any, R: np.ndarray) -> None:
        """a + b ≥ m − z, a, b ≥ 0, min Σ ω (a²/2μ + b)."""
        a, b = model.variables(len(R)), model.variables(len(R))
        weight = np.broadcast_to(self.weight, len(R)).astype(float)
        model.add_squares(a, weight / (2 * self.mu))
        model.add_linear(weight @ b)
        model.nonnegative([a])
        model.nonnegative([b])
        model.nonnegative([a, b, R], -self.centre)


@dataclass(frozen=True)
class Logistics(Loss):
    """Σ ω ln(1 + exp(m − z))."""

    centre: Any = 0.0
    weight: Any = 1.0

    def terms(self, z: np.ndarray) -> np.ndarray:
        return self.weight * np.logaddexp(z.dtype.type(0), self.centre - z)

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -self.weight * np.exp(-np.logaddexp(z.dtype.type(0), z - self.centre))

    def model(self, model: Any, R: np.ndarray) -> None:
        """exp(m − z − t) ≤ p, exp(−t) ≤ q, p + q ≤ 1, min Σ ω t."""
        t, p, q = (model.variables(len(R)) for _ in range(3))
        model.add_linear(np.broadcast_to(self.weight, len(R)).astype(float) @ t)
        model.nonnegative([-p, -q], 1.0)
        model.exponentials([-R, -t], p, self.centre)
        model.exponentials([-t], q)


@dataclass(frozen=True)
class SoftMinimum(Loss):
    """μ ln Σ exp(−z/μ); with slack, its budget is the last entry of z and raises the smallest ones.

    With c the other entries it is the minimum of μ ln Σ exp(−(c + ξ)/μ) over ξ ≥ 0 with
    Σ ξ = `rate` times the budget.
    """

    mu: float
    rate: float | None = None

    def terms(self, z: np.ndarray) -> np.ndarray:
        c = self._raised(z)[0]
        least, mu = c.min(), z.dtype.type(self.mu)
        return np.array([-least, mu * np.log(np.sum(np.exp((least - c) / mu)))])

    def slope(self, z: np.ndarray) -> np.ndarray:
        c, raised = self._raised(z)
        share = np.exp((c.min() - c) / self.mu)
        share = share / share.sum()
        return -share if self.rate is None else -np.append(share, self.rate * share[raised][0])

    def _raised(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """c with its smallest entries raised to a common level by the budget, and their mask."""
        if self.rate is None:
            return z, np.zeros(z.size, dtype=bool)
        c, budget = z[:-1], max(z[-1], 0) * z.dtype.type(self.rate)
        ascending = np.sort(c)
        levels = (budget + np.cumsum(ascending)) / np.arange(1, c.size + 1)
        level = levels[max(0, int(np.sum(levels >= ascending)) - 1)]
        raised = c <= level
        raised[np.argmin(c)] = True
        return np.maximum(c, level), raised

    def model(self, model: Any, R: np.ndarray) -> None:
        """Σ exp(−c/μ − t) ≤ 1, min μ t."""
        count = len(R) - (self.rate is not None)
        t, p = model.variables(1), model.variables(count)
        parts = [R[:count] / -self.mu, -np.repeat(t, count, axis=0)]
        if self.rate is not None:
            xi = model.variables(count)
            model.nonnegative([xi])
            model.zero([xi.sum(axis=0)[None], -self.rate * R[-1:]])
            parts.append(xi / -self.mu)
        model.add_linear(self.mu * t[0])
        model.nonnegative([-p.sum(axis=0)[None]], 1.0)
        model.exponentials(parts, p)


@dataclass(frozen=True)
class OffsetSquares(Loss):
    """min over β of ½ Σ (s z + (Eβ) − R)² + κ/2 ‖β‖², E the incidence of rows and columns."""

    targets: np.ndarray
    scale: np.ndarray
    incidence: sp.csr_array
    ridge: float
    solver: list[Any]
    """Cache of the factorisation of EᵀE + κI."""

    @property
    def centre(self) -> Any:
        return np.abs(self.targets) / self.scale

    def terms(self, z: np.ndarray) -> np.ndarray:
        left, beta = self._fitted(z)
        half = z.dtype.type(0.5)
        return np.concatenate([half * left * left, half * self.ridge * beta * beta])

    def slope(self, z: np.ndarray) -> np.ndarray:
        return self.scale * self._fitted(z)[0]

    def _fitted(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residual after the best offsets, and these, by a solve refined three times."""
        E = self.incidence.astype(z.dtype)
        if not self.solver:
            system = (self.incidence.T @ self.incidence).tocsc()
            system = system + self.ridge * sp.eye_array(system.shape[0], format="csc")
            self.solver.append(scipy.sparse.linalg.splu(sp.csc_matrix(system)))
        left = self.scale * z - self.targets
        beta = np.zeros(E.shape[1], dtype=z.dtype)
        for _ in range(4 if z.dtype == LD else 1):
            downhill = -(E.T @ (left + E @ beta)) - self.ridge * beta
            beta = beta + self.solver[0].solve(downhill.astype(float))
        return left + E @ beta, beta

    def model(self, model: Any, R: np.ndarray) -> None:
        beta = model.variables(self.incidence.shape[1])
        fit = model.sum([self.scale[:, None] * R, self.incidence.toarray() @ beta])
        model.add_squares(fit, 0.5, self.targets)
        model.add_squares(beta, 0.5 * self.ridge)
