"""A loss of scores minus free thresholds, one for each group of values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from gramian.arrays.places import backend, namespace, stored
from gramian.common.types import Indices
from gramian.linalg.tolerances import MAX_STEPS, ROUNDING
from gramian.losses.base import Array, Loss, PerImage, recession_of


class WithThresholds(Loss):
    """g(z) = min over δ of h(z − δ_k(e)/s_e) + κ/2 ‖δ‖², k(e) the group of value e.

    Convex in z for a convex h, as a minimum over part of the arguments. Each δ_k solves a problem
    in one variable, by Newton steps within a bracket. A remaining slope ρ causes an error of at
    most ‖ρ‖²/2κ (`error`), and the conjugate h*(w) + Σ_k (Σ_e w_e/s_e)²/2κ is exact. Thresholds of
    ordered levels have this form (Rennie and Srebro 2005).
    """

    def __init__(self, loss: Loss, groups: Indices, count: int, scale: Array, *, ridge: float):
        self.loss, self.groups, self.count = loss, groups, count
        self.scale, self.ridge = scale, float(ridge)
        self.infimum, self.size, self.smoothness = loss.infimum, loss.size, loss.smoothness
        self._start: Array | None = None

    def thresholds(self, z: Array) -> Array:
        """δ for a given z, stored as long as z exists."""
        return self._stored.get(z, self._found)

    @cached_property
    def _stored(self) -> PerImage[Array]:
        return PerImage()

    def value(self, z: Array) -> float:
        return self.value_at(z, self.thresholds(z))

    def value_at(self, z: Array, delta: Array) -> float:
        """h(z − δ_k(e)/s_e) + κ/2 ‖δ‖² for any δ."""
        return self.loss.value(self._moved(z, delta)) + 0.5 * self.ridge * float(delta @ delta)

    def gradient(self, z: Array) -> Array:
        return self.loss.gradient(self._moved(z, self.thresholds(z)))

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """H − H S (SᵀHS + κ)⁻¹ SᵀH, where S holds 1/s in one column for each group."""
        bend = self.loss.hessian(self._moved(z, self.thresholds(z)))
        mass = self._sums(bend(1.0 / self.scale)) + self.ridge

        def product(d: Array) -> Array:
            bent = bend(d)
            return bent - bend(self._each(self._sums(bent) / mass))

        return product

    def smoothed(self, mu: float) -> WithThresholds | None:
        loss = self.loss.smoothed(mu)
        if loss is None:
            return None
        return WithThresholds(loss, self.groups, self.count, self.scale, ridge=self.ridge)

    def error(self, z: Array) -> float:
        """The bound ‖ρ‖²/κ, where ρ is the slope in the thresholds."""
        rest = self._slope(z, self.thresholds(z))
        return float(rest @ rest) / self.ridge

    def recession(self, z: Array, noise: Array) -> float:
        return recession_of(self.loss, z, noise)

    def conjugate(self, w: Array) -> float:
        sums = self._sums(w)
        return self.loss.conjugate(w) + float(sums @ sums) / (2 * self.ridge)

    def _moved(self, z: Array, delta: Array) -> Array:
        return z - self._each(delta)

    def _each(self, delta: Array) -> Array:
        """Sδ."""
        return backend(delta).taken(delta, self.groups) / self.scale

    def _sums(self, w: Array) -> Array:
        """Sᵀw."""
        return backend(w).group_sums(self.groups, w / self.scale, self.count)

    def _slope(self, z: Array, delta: Array) -> Array:
        return self.ridge * delta - self._sums(self.loss.gradient(self._moved(z, delta)))

    def _found(self, z: Array) -> Array:
        """The δ at which the slopes vanish, by Newton's method safeguarded by bisection.

        Newton's method starts at the δ of the last call. The solution does not depend on the start,
        up to rounding.
        """
        xp, z = namespace(z), stored(z)
        delta: Any = self._sums(xp.zeros_like(z)) if self._start is None else self._start
        slope = self._slope(z, delta)
        reach = xp.abs(slope) / self.ridge  # the ridge alone makes the slope 0 within this distance
        low, high = delta - reach, delta + reach
        enough = ROUNDING * self._sums(xp.ones_like(z))
        for _ in range(MAX_STEPS):
            done = xp.abs(slope) <= enough
            if bool(xp.all(done)):
                break
            low, high = xp.where(slope < 0, delta, low), xp.where(slope > 0, delta, high)
            bend = self.loss.hessian(self._moved(z, delta))
            step = delta - slope / (self._sums(bend(1.0 / self.scale)) + self.ridge)
            inside = (step > low) & (step < high)
            delta = xp.where(done, delta, xp.where(inside, step, 0.5 * (low + high)))
            slope = self._slope(z, delta)
        self._start = delta
        return delta
