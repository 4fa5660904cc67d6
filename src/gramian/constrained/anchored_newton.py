"""Newton's method on the free rows of a factor of M with a fixed principal block ("corner").

    L = [R 0; X V],   F(L) = Σ_e φ_e(z_e),   z_e = ⟨A_e, LLᵀ⟩,   w = φ'(z),   Ω = (Σ_e w_e A_e)_free
    (JᵀDJ + 2 Ω ⊗ I + λI) s = −∇F,   J = ∂z/∂(X, V),   D = diag φ''(z)
    s ← −(…)⁻¹(∇F + JᵀD q(s)),   q(s) = ⟨A_e, ssᵀ⟩, the change of z in addition to Js

The last line corrects for the curvature of z, which is quadratic in the factor. It is repeated a
few times with the same factorisation while F decreases (one repetition is the geodesic acceleration
of Transtrum and Sethna 2012). λ increases until the pivots are positive and F decreases. After a
step λ is updated by ϱ, the ratio of the actual to the predicted decrease of F (Nielsen 1999):

    λ ← λ max(1/3, 1 − (2ϱ − 1)³) if ϱ > 0,   otherwise λ ← νλ,   ν = 2, 4, 8, …

The start is harmonic: every free row is the mean of the rows to which its distances are measured,
with the corner fixed (Tutte 1963). The additional columns V are random, because F has fewer local
minima in more dimensions. If F decreases by only a small fraction of the remaining gap, a column
along an eigenvector of a negative eigenvalue of Ω is added. The elimination order is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gramian.arrays.fronts import SYMMETRIC
from gramian.common import clock
from gramian.common.types import Array
from gramian.constrained.corner import Corner
from gramian.constrained.model import Model
from gramian.constrained.points import Candidate, Guide
from gramian.linalg.tolerances import ZERO
from gramian.methods.base import Settings

FIRST_DAMPING = 1e-3
"""Initial λ, relative to the diagonal of the Hessian."""

MAX_FACTORISATIONS, MAX_CORRECTIONS, MAX_NEWTON_STEPS, STEPS_PER_POINT = 40, 5, 2000, 5
"""Maximum numbers of factorisations per step, of curvature corrections per factorisation and of
steps; number of steps between two points that are yielded."""

MIN_DECREASE_PER_GAP = 0.02
"""A column is added if F decreases by less than this fraction of the gap between two yielded
points."""


def refusal(model: Model) -> str | None:
    """The reason why the method does not accept a problem; None if it accepts it."""
    if model.corner is None:
        return "it needs a sum of losses of sparse ⟨A_e, M⟩ and constraints that fix a block of M"
    return None


def anchored_newton(
    model: Model,
    factor: Array,
    y: Array,
    settings: Settings,
    guide: Guide,
    *,
    columns: int = 3,
) -> Iterator[Candidate]:
    """Yield points from the harmonic start with `columns` columns V, or from a given factor.

    The number of columns increases during the run if an additional column decreases F.
    """
    corner = model.corner
    assert corner is not None
    newton = _Newton(corner)
    extra = columns if settings.rank is None else max(0, settings.rank - corner.held.size)
    L = _held(corner, factor) if factor.shape[1] else newton.start(extra, settings.rng)
    value = yielded = newton.value(L)
    for step in range(1, MAX_NEWTON_STEPS):
        L, new = newton.step(L, value)
        stuck, value = new >= value, new
        if step % STEPS_PER_POINT and not stuck:
            continue
        yield Candidate(L, _multipliers(corner, L), {"violation": 0.0, "steps": float(step)})
        slow = stuck or yielded - value <= MIN_DECREASE_PER_GAP * guide.gap
        wider = _with_column(corner, L, guide) if slow and settings.rank is None else None
        if wider is not None:
            L, value = wider, newton.value(wider)
        elif stuck:
            return
        yielded = value


class _Newton:
    """Newton steps; λ is carried over from one step to the next."""

    def __init__(self, corner: Corner) -> None:
        self.corner, self.damping = corner, 0.0
        e, i, j, a = corner.entries
        place = np.full(corner.order, -1)
        place[corner.free] = self._elimination()
        own = place[i] >= 0
        self.e, self.row, self.j, self.a = e[own], place[i[own]], j[own], a[own]
        both = own & (place[j] >= 0)
        self.edge = e[both], place[i[both]], place[j[both]], a[both]
        self.place = place[corner.free]

    def _elimination(self) -> Array:
        """The position of every free row in an elimination order with little fill-in."""
        free = self.corner.free
        pattern = abs(self.corner.adjoint(np.ones(self.corner.measured)))[free][:, free]
        sums = np.asarray(pattern.sum(axis=1)).ravel()
        shifted = sp.csc_array(pattern + sp.diags_array(2 * sums + 1.0))
        return np.asarray(splu(shifted, **SYMMETRIC).perm_c)

    def start(self, extra: int, rng: np.random.Generator) -> Array:
        """The start: X harmonic; rows of V random, about as long as typical errors of distances."""
        corner = self.corner
        d, free = corner.held.size, corner.free
        equal = corner.adjoint(np.ones(corner.measured))
        inside = sp.csc_array(equal[free][:, free])
        size = float(np.max(np.abs(inside.diagonal()), initial=0.0)) or 1.0
        # The ridge is for rows that are not connected to the corner.
        ridge = ZERO * size * sp.eye_array(free.size)
        across = equal[free][:, corner.held].toarray()
        L = np.zeros((corner.order, d + extra))
        L[corner.held, :d] = corner.root
        L[free, :d] = -splu(sp.csc_array(inside + ridge)).solve(across) @ corner.root
        # Errors of the squared distances between mean positions.
        off = np.abs(corner.image(L) - np.broadcast_to(corner.loss.centre, corner.measured))
        length = np.sqrt(float(np.median(off)))
        L[free, d:] = length / np.sqrt(max(extra, 1)) * rng.standard_normal((free.size, extra))
        return L

    def value(self, L: Array) -> float:
        return self.corner.loss.value(self.corner.image(L))

    def step(self, L: Array, value: float) -> tuple[Array, float]:
        """The next factor and its value; unchanged if no step decreases F."""
        H, J, bend, gradient = self._model(L)
        if self.damping == 0:
            self.damping = FIRST_DAMPING * (float(np.mean(np.abs(H.diagonal()))) or 1.0)
        eye, growth = sp.eye_array(H.shape[0], format="csc"), 2.0
        for _ in range(MAX_FACTORISATIONS):
            clock.check()
            factorised = _definite(sp.csc_array(H + self.damping * eye))
            if factorised is None:
                self.damping, growth = growth * self.damping, 2 * growth
                continue
            s = -factorised.solve(gradient)
            foretold = -float(gradient @ s + 0.5 * (s @ (H @ s)))
            change = self._wide(s, L)
            best = self.value(L + change), change
            for _ in range(MAX_CORRECTIONS):
                bent = gradient + J.T @ (bend * self.corner.image(change))
                change = self._wide(-factorised.solve(bent), L)
                reached = self.value(L + change)
                if not reached < best[0]:
                    break
                best = reached, change
            if foretold > 0 and best[0] < value:
                ratio = min((value - best[0]) / foretold, 1.0)
                self.damping *= max(1 / 3, 1 - (2 * ratio - 1) ** 3)
                return L + best[1], best[0]
            self.damping, growth = growth * self.damping, 2 * growth
        return L, value

    def _wide(self, s: Array, L: Array) -> Array:
        """The vector s of unknowns as a change of L, with rows of zeros in the corner."""
        change = np.zeros_like(L)
        change[self.corner.free] = s.reshape(-1, L.shape[1])[self.place]
        return change

    def _model(self, L: Array) -> tuple[sp.csc_array, sp.csr_array, Array, Array]:
        """JᵀDJ + 2Ω ⊗ I, J, D and Jᵀw, with unknowns in the order of elimination."""
        corner, r = self.corner, L.shape[1]
        z, n = corner.image(L), corner.free.size
        w = corner.loss.gradient(z)
        bend = corner.loss.hessian(z)(np.ones_like(z))
        columns = (self.row[:, None] * r + np.arange(r)).ravel()
        values = (2 * self.a[:, None] * L[self.j]).ravel()
        J = sp.csr_array((values, (np.repeat(self.e, r), columns)), shape=(z.size, n * r))
        e, i, j, a = self.edge
        omega = sp.coo_array((2 * a * w[e], (i, j)), shape=(n, n))
        H = J.T @ (sp.diags_array(bend) @ J) + sp.kron(omega, sp.eye_array(r), format="csr")
        return sp.csc_array(H), J, bend, J.T @ w


def _definite(H: sp.csc_array) -> Any:
    """LU factorisation in the given order; None if a pivot is not positive."""
    try:
        lu = splu(H, **{**SYMMETRIC, "permc_spec": "NATURAL"})
    except RuntimeError:  # exactly singular
        return None
    pivots = lu.U.diagonal()
    ordered = np.array_equal(lu.perm_r, np.arange(lu.perm_r.size))
    return lu if ordered and np.all(pivots > 0) else None


def _held(corner: Corner, factor: Array) -> Array:
    """The factor LQ with the rotation Q that maps the fixed rows of L to R, these rows set to R."""
    d = corner.held.size
    wide = np.hstack([factor, np.zeros((factor.shape[0], max(0, d - factor.shape[1])))])
    U, _, Vt = np.linalg.svd(wide[corner.held].T @ corner.root)
    turned = wide @ U
    turned[:, :d] = turned[:, :d] @ Vt
    turned[corner.held] = 0.0
    turned[corner.held, :d] = corner.root
    return np.ascontiguousarray(turned)


def _multipliers(corner: Corner, L: Array) -> Array:
    """y for which the slack is zero on the corner of L: (𝒜*(w)L)_K = YR."""
    G = corner.adjoint(corner.loss.gradient(corner.image(L)))[corner.held] @ L
    Y = np.linalg.solve(corner.root.T, G[:, : corner.held.size].T).T
    return corner.multipliers(0.5 * (Y + Y.T))


def _with_column(corner: Corner, L: Array, guide: Guide) -> Array | None:
    """Add a column along the negative eigenvector of the slack; None if F does not decrease.

    F(LLᵀ + τ²vvᵀ) has its minimum at τ² = −⟨w, 𝒜(vvᵀ)⟩/⟨𝒜(vvᵀ), D𝒜(vvᵀ)⟩, to second order.
    """
    vector = guide.negative()
    if vector is None or L.shape[1] >= L.shape[0]:
        return None
    column = np.zeros((L.shape[0], 1))
    column[corner.free, 0] = vector[corner.free]
    z, along = corner.image(L), corner.image(column)
    slope = float(corner.loss.gradient(z) @ along)
    bend = float(along @ corner.loss.hessian(z)(along))
    if slope >= 0 or bend <= 0:
        return None
    return np.hstack([L, np.sqrt(-slope / bend) * column])
