"""The soft minimum, and the one with slack: smooth, and not separable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax, xlogy

from gramian.losses.base import Array


class SoftMin:
    """g(z) = μ ln Σ_e exp(−(z_e + b_e) / μ), DML-eig's smoothing of max_e (−z_e − b_e).

    The exponentials are shifted by the smallest z + b, so that μ = 1e-5 does not underflow;
    g lies within μ ln p above −min (z + b). The `offset` b is 0 unless told.
    """

    quadratic = False
    infimum = -np.inf

    def __init__(self, *, mu: float, offset: ArrayLike = 0.0) -> None:
        self.mu = _smoothing(mu)
        self.offset = _offset(offset)
        self.size = self.offset.size if self.offset.ndim else None
        self.smoothness = 1.0 / self.mu

    def value(self, z: Array) -> float:
        return float(self.mu * logsumexp(-(z + self.offset) / self.mu))

    def gradient(self, z: Array) -> Array:
        return -self._share(z)

    def _share(self, z: Array) -> Array:
        return softmax(-(z + self.offset) / self.mu)

    def curvature(self, z: Array, directions: Array) -> Array:
        """Dᵀ (diag(s) − ssᵀ) D / μ with s the soft-max weights."""
        share = self._share(z)
        mean = share @ directions
        return ((directions * share[:, None]).T @ directions - np.outer(mean, mean)) / self.mu

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        share = self._share(z)
        return lambda d: share * (d - share @ d) / self.mu

    def smoothed(self, mu: float) -> SoftMin:
        return SoftMin(mu=mu, offset=self.offset)

    def recession(self, z: Array, noise: Array) -> float:
        return float(-np.min(np.where(np.abs(z) > noise, z, 0.0)))

    def conjugate(self, w: Array) -> float:
        """⟨s, b⟩ + μ Σ s ln s on the simplex s = −w ≥ 0, Σ s = 1; infinite elsewhere."""
        share = -w
        if np.any(share < 0) or abs(np.sum(share) - 1.0) > 1e-9:
            return np.inf
        return float(np.sum(share * self.offset) + self.mu * np.sum(xlogy(share, share)))


class FilledSoftMin:
    """The soft minimum after the smallest values are raised: DML-eig's eq. (16), ξ filled in.

    With z = (c − b, t) it is g(z) = min μ ln Σ_e exp(−(c_e + ξ_e)/μ) over ξ ≥ 0 with Σ ξ = ωt,
    `rate` ω and `offset` b. The best ξ raises every c below a level h to it, so that it is the
    soft minimum of max(c, h), and ∂g/∂(ωt) = −u_max, the weight of a raised value.
    """

    quadratic = False
    infimum = -np.inf

    def __init__(self, *, mu: float, rate: float = 1.0, offset: ArrayLike = 0.0) -> None:
        self.mu = _smoothing(mu)
        self.offset = _offset(offset)
        self.size = self.offset.size + 1 if self.offset.ndim else None
        if not 0 < rate < np.inf:
            raise ValueError(f"the rate of slack must be above 0 and finite, got {rate}")
        self.rate = float(rate)
        self.smoothness = (1.0 + self.rate**2) / self.mu

    def level(self, z: Array) -> float:
        """The h with Σ max(0, h − c) = ωt."""
        ascending = np.sort(z[:-1] + self.offset)
        levels = (self.rate * z[-1] + np.cumsum(ascending)) / np.arange(1, z.size)
        return float(levels[max(0, int(np.sum(levels >= ascending)) - 1)])

    def _raised(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """The values with the least raised to the level, and which were."""
        level, c = self.level(z), z[:-1] + self.offset
        raised = c <= level
        if not raised.any():  # a budget below 0: the least value stands for them
            raised[np.argmin(c)] = True
        return np.where(raised, level, c), raised

    def _filled(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Soft-max weights of the raised values, and which were raised."""
        values, raised = self._raised(z)
        return softmax(-values / self.mu), raised

    def value(self, z: Array) -> float:
        return float(self.mu * logsumexp(-self._raised(z)[0] / self.mu))

    def gradient(self, z: Array) -> Array:
        share, raised = self._filled(z)
        return -np.append(share, self.rate * share[raised][0])

    def _moved(self, raised: NDArray[np.bool_], directions: Array) -> Array:
        """How the raised values move with (c, t)."""
        moved = directions[:-1].copy()
        moved[raised] = (
            directions[:-1][raised].sum(axis=0) + self.rate * directions[-1]
        ) / raised.sum()
        return moved

    def curvature(self, z: Array, directions: Array) -> Array:
        share, raised = self._filled(z)
        moved = self._moved(raised, directions)
        mean = share @ moved
        return ((moved * share[:, None]).T @ moved - np.outer(mean, mean)) / self.mu

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        share, raised = self._filled(z)

        def product(d: Array) -> Array:
            moved = self._moved(raised, d)
            bent = share * (moved - share @ moved) / self.mu
            bent[raised] = bent[raised].sum() / raised.sum()
            return np.append(bent, self.rate * bent[raised][0])

        return product

    def smoothed(self, mu: float) -> FilledSoftMin:
        return FilledSoftMin(mu=mu, rate=self.rate, offset=self.offset)

    def conjugate(self, w: Array) -> float:
        """⟨s, b⟩ + μ Σ s ln s on the simplex s = −w_c, where −w_t/ω is no smaller than any of s."""
        share, ceiling = -w[:-1], -w[-1] / self.rate
        if np.any(share < 0) or abs(np.sum(share) - 1.0) > 1e-9:
            return np.inf
        if ceiling < share.max() * (1 - 1e-12):
            return np.inf
        return float(np.sum(share * self.offset) + self.mu * np.sum(xlogy(share, share)))


def _offset(offset: ArrayLike) -> Array:
    b = np.asarray(offset, dtype=float)
    if b.ndim > 1 or not np.all(np.isfinite(b)):
        raise ValueError("the offset of a soft minimum must be a finite number or vector")
    return b


def _smoothing(mu: float) -> float:
    if not 0 < mu < np.inf:
        raise ValueError(f"the soft minimum needs mu > 0 and finite, got {mu}")
    return float(mu)
