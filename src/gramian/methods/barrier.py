"""The central path of a dual: Newton's method on g*(w) − μ log det S(w).

F(M) = ½ Σ_e (u_eᵀMu_e − t_e)²/b_e + ⟨C, M⟩ has the dual max −g*(w) over S(w) ⪰ 0 (`SquaredForms`).
With U the rows u_e and K = S⁻¹, the gradient of the barrier problem is bw + t − μ diag(UKUᵀ), its
Hessian diag(b) + μ (UKUᵀ)∘². If the gradient is 0, M = μK satisfies the optimality conditions
except SM = 0, instead of which SM = μI: its gap is μ times the order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import brentq

from gramian.common.types import Array
from gramian.reductions.squared_forms import SquaredForms

MU_RATIO = 0.1
"""Ratio of consecutive values of μ."""

MAX_CENTRED_DECREMENT = 1.0
"""Newton decrement below which the linearised M = μK(S − ΔS)K is PSD and accurate enough."""

MAX_NEWTON_STEPS = 40
"""Maximum number of Newton steps per μ; 4 to 11 were counted from a μ ten times larger."""

BOUNDARY_FRACTION = 0.95
"""Largest step, as a fraction of the distance to the boundary."""

FIRST_SHIFT, SHIFT_GROWTH = 1e-9, 3.0
"""The first shift into the cone, relative to w, and the factor from one shift to the next."""


FIRST_RIDGE, MAX_RIDGE = 1e-14, 1e-9
"""First and largest ridge, relative to the diagonal, of a Hessian that is not definite."""


class Barrier:
    """A dual vector w with S(w) ≻ 0, and the Cholesky factor of S(w)."""

    def __init__(self, forms: SquaredForms, w: Array) -> None:
        """Start from a vector, shifted along the unit until it is feasible."""
        self.forms = forms
        shift = FIRST_SHIFT * max(float(np.abs(w).max()), float(np.abs(forms.C).max()))
        while True:
            try:
                self._move(w + shift * forms.unit)
                break
            except np.linalg.LinAlgError:
                shift *= SHIFT_GROWTH
        self._move(self.w + shift * forms.unit)

    @property
    def bound(self) -> float:
        """−g*(w)."""
        forms = self.forms
        return -float(0.5 * self.w @ (forms.softness * self.w) + forms.targets @ self.w)

    def centre(self, mu: float, expired: Callable[[], bool]) -> Array | None:
        """M of the path at μ; None if the time is up or the precision is insufficient."""
        try:
            for _ in range(MAX_NEWTON_STEPS):
                if expired():
                    return None
                M = self._step(mu)
                if M is not None:
                    return M
        except np.linalg.LinAlgError:
            pass
        return None

    def _step(self, mu: float) -> Array | None:
        """One Newton step; returns M if it started near the path."""
        forms = self.forms
        K = _inverse(self.root)
        G = forms.U @ (forms.U @ K).T
        level = forms.softness * self.w + forms.targets
        slope = level - mu * np.diagonal(G)
        np.multiply(G, G, out=G)
        G *= mu
        G[np.diag_indices_from(G)] += forms.softness
        factor = _factored(G)
        d = -scipy.linalg.cho_solve(factor, slope, check_finite=False)
        decrement = np.sqrt(max(-(slope @ d), 0.0) / mu)
        change = self._sum(d)
        found = mu * (K - K @ change @ K) if decrement < MAX_CENTRED_DECREMENT else None
        half = scipy.linalg.solve_triangular(self.root, change, lower=True, check_finite=False)
        turned = scipy.linalg.solve_triangular(self.root, half.T, lower=True, check_finite=False)
        along = np.linalg.eigvalsh(turned)
        self._move(self.w + _length(level @ d, d @ (forms.softness * d), mu, along) * d)
        return None if found is None else 0.5 * (found + found.T)

    def _move(self, w: Array) -> None:
        self.root = np.linalg.cholesky(self.forms.C + self._sum(w))
        self.w = w

    def _sum(self, w: Array) -> Array:
        """Σ_e w_e u_eu_eᵀ."""
        U = self.forms.U
        return (U.T @ sp.diags_array(w) @ U).toarray() if sp.issparse(U) else (U.T * w) @ U


def _factored(G: Array) -> tuple[Array, bool]:
    """Cholesky factor, with a ridge if rounding has made G indefinite."""
    places, diagonal, ridge = np.diag_indices_from(G), np.diagonal(G).copy(), 0.0
    while ridge <= MAX_RIDGE:
        G[places] = (1.0 + ridge) * diagonal
        try:
            return scipy.linalg.cho_factor(G, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge = max(FIRST_RIDGE, SHIFT_GROWTH * ridge)
    raise np.linalg.LinAlgError("the Hessian is singular to working precision")


def _inverse(root: Array) -> Array:
    """(LLᵀ)⁻¹."""
    found, _ = scipy.linalg.lapack.dpotri(root, lower=1)
    found += np.tril(found, -1).T
    return found


def _length(slope: float, bend: float, mu: float, along: Array) -> float:
    """The best step of at most 1: slope + αbend = μ Σ_i λ_i/(1 + αλ_i), inside the cone."""

    def rise(alpha: float) -> float:
        return float(slope + alpha * bend - mu * np.sum(along / (1 + alpha * along)))

    most = min(1.0, BOUNDARY_FRACTION / max(-along[0], 1e-300))
    if rise(most) <= 0 or rise(0.0) >= 0:
        return most
    return float(brentq(rise, 0.0, most, xtol=1e-3 * most))
