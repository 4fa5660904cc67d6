"""A smoothed hinge with a barrier on its dual variable, for interior-point methods.

The smoothed hinge is h(s) = max over 0 ≤ u ≤ 1 of su − νu²/2 (BiS eq. 35, with its smoothing ν).
With logarithmic barriers it becomes

    h_τ(s) = max over 0 < u < 1 of su − νu²/2 + τ ln u + τ ln(1 − u),

which is infinitely differentiable. Newton's method can follow it while τ decreases, whereas the
corners of h would stop it. u stays a dual variable of h: each point has a dual vector of the
original loss.
"""

from __future__ import annotations

import numpy as np

from gramian.linalg.tolerances import MAX_STEPS, ROUNDING
from gramian.losses.base import Array, DiagonalHessian


class SoftenedHinge(DiagonalHessian):
    """g_τ(z) = Σ_e ω_e h_τ(m_e − z_e) with τ_e = μ/ω_e for the barrier parameter μ."""

    separable = True

    def __init__(self, margin: Array, weight: Array, smoothing: float, mu: float) -> None:
        self.margin, self.weight, self.smoothing, self.mu = margin, weight, smoothing, mu
        self.size: int | None = margin.size
        self.smoothness = float(np.max(weight, initial=0.0)) / smoothing
        self.tau = mu / weight

    def value(self, z: Array) -> float:
        u, v, s = self._dual(z)
        terms = s * u - 0.5 * self.smoothing * u * u + self.tau * (np.log(u) + np.log(v))
        return float(self.weight @ terms)

    def gradient(self, z: Array) -> Array:
        return -self.weight * self._dual(z)[0]

    def bends(self, z: Array) -> Array:
        u, v, _ = self._dual(z)
        return self.weight / self._stiffness(u, v)

    def conjugate(self, w: Array) -> float:
        raise NotImplementedError("the conjugate of the original loss is used")

    def drift(self, z: Array) -> Array:
        """μ ∂∇g/∂μ, the change of the gradient as the barrier decreases, for a tangent step."""
        u, v, _ = self._dual(z)
        return -self.weight * self.tau * (1 / u - 1 / v) / self._stiffness(u, v)

    def _stiffness(self, u: Array, v: Array) -> Array:
        """∂s/∂u."""
        return self.smoothing + self.tau / u**2 + self.tau / v**2

    def _dual(self, z: Array) -> tuple[Array, Array, Array]:
        """u with νu − τ/u + τ/(1 − u) = s, v = 1 − u to full precision, and s."""
        s = self.margin - z
        # The equation has the symmetry u ↔ 1 − u, s ↔ ν − s: solve for the smaller of the two.
        turned = s > 0.5 * self.smoothing
        small = _smaller_root(np.where(turned, self.smoothing - s, s), self.smoothing, self.tau)
        return np.where(turned, 1 - small, small), np.where(turned, small, 1 - small), s


def _smaller_root(s: Array, smoothing: float, tau: Array) -> Array:
    """The root u ≤ ½ of νu − τ/u + τ/(1 − u) = s for s ≤ ν/2.

    By Newton's method; a step that leaves its bracket is replaced by bisection.
    """
    low, high = np.zeros_like(s), np.full_like(s, 0.5)
    # The root of νu − τ/u = s is an upper bound, close to the root unless both are near ½.
    root = np.sqrt(s * s + 4 * smoothing * tau)
    u = np.where(s > 0, (s + root) / (2 * smoothing), 2 * tau / (root - s))
    u = np.clip(u, np.finfo(float).tiny, 0.5)
    for _ in range(MAX_STEPS):
        off = smoothing * u - tau / u + tau / (1 - u) - s
        low, high = np.where(off < 0, u, low), np.where(off < 0, high, u)
        # A Newton step in ln u, suitable for functions like 1/u.
        slope = smoothing * u + tau / u + tau * u / (1 - u) ** 2
        new = u * np.exp(np.clip(-off / slope, -30.0, 30.0))
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        done = bool(np.all(np.abs(new - u) <= ROUNDING * new))
        u = new
        if done:
            break
    return u
