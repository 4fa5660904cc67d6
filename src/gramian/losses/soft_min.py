"""The soft minimum, also with slack: smooth, and not separable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.places import namespace
from gramian.common.parameters import positive
from gramian.losses.base import Array, Loss
from gramian.losses.functions import entropy, logsumexp, softmax, where


class SoftMin(Loss):
    """g(z) = μ ln Σ_e exp(−(z_e + b_e) / μ), DML-eig's smoothing of max_e (−z_e − b_e).

    The exponentials are shifted by the smallest z + b, so that μ = 1e-5 does not underflow;
    g lies within μ ln p above −min (z + b). The `offset` b is 0 by default.
    """

    simplex = True

    def __init__(self, *, mu: float, offset: ArrayLike = 0.0) -> None:
        self.mu = positive(mu, "mu")
        self.offset = _offset(offset)
        self.size = self.offset.size if self.offset.ndim else None
        self.smoothness = 1.0 / self.mu

    def value(self, z: Array) -> float:
        return self.mu * logsumexp(-(z + self.offset) / self.mu)

    def gradient(self, z: Array) -> Array:
        return -self._share(z)

    def _share(self, z: Array) -> Array:
        return softmax(-(z + self.offset) / self.mu)

    def curvature(self, z: Array, directions: Array) -> Array:
        return _spread(self._share(z), directions) / self.mu

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        share = self._share(z)
        return lambda d: share * (d - share @ d) / self.mu

    def smoothed(self, mu: float) -> SoftMin:
        return SoftMin(mu=mu, offset=self.offset)

    def recession(self, z: Array, noise: Array) -> float:
        xp = namespace(z)
        return -float(xp.min(where(xp.abs(z) > noise, z, 0.0)))

    def conjugate(self, w: Array) -> float:
        return _conjugate(-w, self.offset, self.mu)


class FilledSoftMin(Loss):
    """The soft minimum after raising the smallest values: DML-eig eq. (16), minimised over ξ.

    With z = (c − b, t) it is g(z) = min μ ln Σ_e exp(−(c_e + ξ_e)/μ) over ξ ≥ 0 with Σ ξ = ωt,
    `rate` ω and `offset` b. The optimal ξ raises every c below a level h to h, so g is the
    soft minimum of max(c, h), and ∂g/∂(ωt) = −u_max, the weight of a raised value.
    """

    simplex = True

    def __init__(self, *, mu: float, rate: float = 1.0, offset: ArrayLike = 0.0) -> None:
        self.mu = positive(mu, "mu")
        self.offset = _offset(offset)
        self.size = self.offset.size + 1 if self.offset.ndim else None
        self.rate = positive(rate, "rate")
        self.smoothness = (1.0 + self.rate**2) / self.mu

    def level(self, z: Array) -> float:
        """The h with Σ max(0, h − c) = ωt."""
        xp = namespace(z)
        ascending = xp.sort(z[:-1] + self.offset)
        counts = xp.cumulative_sum(xp.ones_like(ascending))
        levels = (self.rate * z[-1] + xp.cumulative_sum(ascending)) / counts
        filled = xp.astype(levels >= ascending, z.dtype)
        return float(levels[max(0, int(xp.sum(filled)) - 1)])

    def _raised(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """The values with the smallest ones raised to the level, and the mask of these."""
        level, c = self.level(z), z[:-1] + self.offset
        xp, raised = namespace(z), c <= level
        if not bool(xp.any(raised)):  # a negative budget: treat the smallest value as raised
            raised[int(xp.argmin(c))] = True
        return where(~raised, c, level), raised

    def _filled(self, z: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Soft-max weights of the raised values, and the mask of these."""
        values, raised = self._raised(z)
        return softmax(-values / self.mu), raised

    def value(self, z: Array) -> float:
        return self.mu * logsumexp(-self._raised(z)[0] / self.mu)

    def gradient(self, z: Array) -> Array:
        share, raised = self._filled(z)
        return -_appended(share, self.rate * share[raised][:1])

    def _moved(self, raised: NDArray[np.bool_], directions: Array) -> Array:
        """Derivative of the raised values along directions of (c, t)."""
        xp = namespace(directions)
        inside = directions[:-1][raised]
        level = (xp.sum(inside, axis=0) + self.rate * directions[-1]) / inside.shape[0]
        moved = xp.asarray(directions[:-1], copy=True)
        moved[raised] = level
        return moved

    def curvature(self, z: Array, directions: Array) -> Array:
        share, raised = self._filled(z)
        return _spread(share, self._moved(raised, directions)) / self.mu

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        share, raised = self._filled(z)

        def product(d: Array) -> Array:
            moved = self._moved(raised, d)
            bent = share * (moved - share @ moved) / self.mu
            bent[raised] = namespace(d).mean(bent[raised])
            return _appended(bent, self.rate * bent[raised][:1])

        return product

    def smoothed(self, mu: float) -> FilledSoftMin:
        return FilledSoftMin(mu=mu, rate=self.rate, offset=self.offset)

    def conjugate(self, w: Array) -> float:
        """⟨s, b⟩ + μ Σ s ln s on the simplex s = −w_c, if −w_t/ω is at least the largest s."""
        share, ceiling = -w[:-1], -float(w[-1]) / self.rate
        if ceiling < float(namespace(w).max(share)) * (1 - 1e-12):
            return np.inf
        return _conjugate(share, self.offset, self.mu)


def _spread(share: Array, directions: Array) -> Array:
    """Dᵀ (diag(s) − ssᵀ) D with s the soft-max weights."""
    mean = share @ directions
    return (directions * share[:, None]).T @ directions - mean[:, None] * mean


def _conjugate(share: Array, offset: Array, mu: float) -> float:
    """⟨s, b⟩ + μ Σ s ln s on the simplex s ≥ 0, Σ s = 1; infinite elsewhere."""
    xp = namespace(share)
    if bool(xp.any(share < 0)) or abs(float(xp.sum(share)) - 1.0) > 1e-9:
        return np.inf
    return float(xp.sum(share * offset) + mu * xp.sum(entropy(share)))


def _appended(values: Array, last: Array) -> Array:
    return namespace(values).concat([values, last])


def _offset(offset: ArrayLike) -> Array:
    b = np.asarray(offset, dtype=float)
    if b.ndim > 1 or not np.all(np.isfinite(b)):
        raise ValueError("the offset of a soft minimum must be a finite number or vector")
    return b
