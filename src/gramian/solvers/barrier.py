"""The central path of a dual: Newton's method on g*(w) − μ log det S(w).

F(M) = ½ Σ_e (u_eᵀMu_e − t_e)²/b_e + ⟨C, M⟩ has the dual max −g*(w) over S(w) ⪰ 0 (`SquaredForms`).
With U the rows u_e and K = S⁻¹ the slope of the barrier problem is bw + t − μ diag(UKUᵀ), its
Hessian diag(b) + μ (UKUᵀ)∘². Where the slope vanishes M = μK satisfies the conditions of optimality
but for SM = μI: its gap is μ times the order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import brentq

from gramian.objectives.base import SquaredForms

Array = NDArray[np.floating]

NEAR = 1.0
"""The Newton decrement below which the linearised M = μK(S − ΔS)K is PSD, and near enough."""

STEPS = 40
"""Newton's steps for one μ; from a path ten times higher 4 to 11 were counted."""

EDGE = 0.95
"""The part of the way to the boundary that a step may go."""

INSIDE = 1e-9
"""The least λ_min of S to begin with, relative to its size."""


class Barrier:
    """A dual vector w with S(w) ≻ 0, and Cholesky's factor of it."""

    def __init__(self, forms: SquaredForms, w: Array) -> None:
        """Begin from a vector, shifted along the unit until it lies well inside."""
        self.forms = forms
        values = np.linalg.eigvalsh(self._slack(w))
        shift = 2 * max(-values[0], INSIDE * np.abs(values).max())
        self._move(w + shift * forms.unit)

    @property
    def bound(self) -> float:
        """−g*(w)."""
        forms = self.forms
        return -float(0.5 * self.w @ (forms.softness * self.w) + forms.targets @ self.w)

    def centre(self, mu: float, expired: Callable[[], bool]) -> Array | None:
        """M of the path at μ; None where the time is over or digits end."""
        try:
            for _ in range(STEPS):
                if expired():
                    return None
                M = self._step(mu)
                if M is not None:
                    return M
        except np.linalg.LinAlgError:
            pass
        return None

    def _step(self, mu: float) -> Array | None:
        """One step of Newton's method; M where it began near the path."""
        forms = self.forms
        V = scipy.linalg.solve_triangular(self.root, forms.U.T, lower=True, check_finite=False)
        G = V.T @ V
        level = forms.softness * self.w + forms.targets
        slope = level - mu * np.diagonal(G)
        np.multiply(G, G, out=G)
        G *= mu
        G[np.diag_indices_from(G)] += forms.softness
        factor = scipy.linalg.cho_factor(G, lower=True, overwrite_a=True, check_finite=False)
        d = -scipy.linalg.cho_solve(factor, slope, check_finite=False)
        decrement = np.sqrt(max(-(slope @ d), 0.0) / mu)
        turned = V @ (d[:, None] * V.T)  # L⁻¹ ΔS L⁻ᵀ
        found = self._primal(mu, turned) if decrement < NEAR else None
        along = np.linalg.eigvalsh(turned)
        self._move(self.w + _length(level @ d, d @ (forms.softness * d), mu, along) * d)
        return found

    def _primal(self, mu: float, turned: Array) -> Array:
        """μ L⁻ᵀ(I − L⁻¹ΔSL⁻ᵀ)L⁻¹."""
        unit = np.eye(self.root.shape[0])
        inverse = scipy.linalg.solve_triangular(self.root, unit, lower=True, check_finite=False)
        M: Array = mu * (inverse.T @ ((unit - turned) @ inverse))
        return 0.5 * (M + M.T)

    def _move(self, w: Array) -> None:
        self.root = np.linalg.cholesky(self._slack(w))
        self.w = w

    def _slack(self, w: Array) -> Array:
        return self.forms.C + self.forms.U.T @ (w[:, None] * self.forms.U)


def _length(slope: float, bend: float, mu: float, along: Array) -> float:
    """The best step of at most 1: slope + αbend = μ Σ_i λ_i/(1 + αλ_i), inside the cone."""

    def rise(alpha: float) -> float:
        return float(slope + alpha * bend - mu * np.sum(along / (1 + alpha * along)))

    most = min(1.0, EDGE / max(-along[0], 1e-300))
    if rise(most) <= 0 or rise(0.0) >= 0:
        return most
    return float(brentq(rise, 0.0, most, xtol=1e-3 * most))
