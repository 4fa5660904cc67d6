"""The central path of a small problem: min F(M) − μ ln det M over M ≻ 0, for decreasing μ.

On the path ∇F(M) = μM⁻¹ ≻ 0, so that every point of it proves a gap ⟨∇F, M⟩ = μn, independently of
the rank of the optimum, the scale of the data and the conditioning. With M = WWᵀ, each Newton step
is taken in the coordinates in which M = I, F over WSWᵀ: the Hessian of the barrier is μI there.
Losses with kinks are smoothed by a barrier on their dual variables, with the same μ
(`losses/softened`).

The next μ starts from a step along the tangent of the path; Newton steps with an exact line search
return to the path. With p terms that have curvature and N = n(n + 1)/2 entries, a step factorises a
matrix of order min(p, N).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from scipy.optimize import minimize_scalar

from gramian.arrays.places import contiguous
from gramian.bounds import certify_image, known_bound
from gramian.common import clock
from gramian.common.types import Array
from gramian.linalg.cone_quadratic import BOUNDARY_FRACTION
from gramian.linalg.svec import smat, svec, triangle_size
from gramian.methods.barrier import MU_RATIO
from gramian.methods.base import Run, Settings, Step, entering, needs_cone, no_rank_limit
from gramian.methods.columns import starting_factor
from gramian.methods.lbfgs import descend
from gramian.methods.primal_dual import MAX_ROW_ENTRIES
from gramian.objectives import Composite
from gramian.objectives.operators import coordinates_of
from gramian.problem import Problem
from gramian.proofs import lowest
from gramian.result import Status

MAX_ORDER = 100
"""Maximum order. A Newton step then factorises a matrix of order at most 5,050."""

MAX_STEP_PRODUCTS = 2e10
"""Maximum number of multiplications of a Newton step."""

START_COLUMNS, START_STEPS = 8, 60
"""Columns and L-BFGS steps of the descent that estimates the size of M if no start is given."""

START_SHIFT = 0.1
"""Shift of the eigenvalues of the start into the interior, as a multiple of their mean."""

MAX_CENTRED_DECREMENT = 0.5
"""Newton decrement below which a point counts as on the path."""

MAX_NEWTON_STEPS = 200
"""Maximum number of Newton steps; 15 to 45 are usual for a relative gap of 1e-6."""

MAX_STEPS_WITHOUT_DECREASE = 6
"""Maximum number of consecutive Newton steps without a decrease above rounding."""

FINAL_GAP_IN_TOLERANCES = 0.5
"""Gap at which the final certificate is computed, as a fraction of the tolerance."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept the problem; None if it accepts it."""
    objective = problem.objective
    reason = needs_cone(problem, settings) or no_rank_limit(problem, settings)
    if reason is not None:
        return reason
    if problem.order > MAX_ORDER:
        return f"it accepts orders up to {MAX_ORDER}, and this problem has {problem.order}"
    if (
        step_work(problem) > MAX_STEP_PRODUCTS
        or objective.subspace_cost(problem.order) > MAX_ROW_ENTRIES
    ):
        return "a Newton step would take too much time or memory: the problem has too many terms"
    seen = coordinates_of(objective) if isinstance(objective, Composite) else None
    if seen is None or not seen.shape[1]:
        return "it needs a loss of a linear map that depends on some of M, on the host"
    return None


def step_work(problem: Problem) -> float:
    """Approximate number of multiplications of one Newton step."""
    terms, entries = problem.objective.facts.terms or 0, triangle_size(problem.order)
    small, large = sorted((terms, entries))
    return float(small) ** 2 * (large + small / 3) + 4 * terms * entries


@entering("central-path")
def central_path(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Follow the path until its gap is within the tolerance, then certify the point."""
    objective = problem.objective
    assert isinstance(objective, Composite)
    W = _start(problem, factor, settings)
    mu, best, blind = _first_mu(objective, W), np.inf, 0
    W, point = _opened(objective, W, mu), None
    for _ in range(MAX_NEWTON_STEPS):
        clock.check()
        try:
            point = _Newton(objective, W, mu)
            gap = point.gap() if point.centred else np.inf
            size = max(abs(point.value), 1e-6 * problem.scale)
            if gap <= FINAL_GAP_IN_TOLERANCES * settings.tol * size and gap < MU_RATIO * best:
                best = gap
                yield _certified(problem, point)
            elif point.centred:
                yield Step(contiguous(W), point.value, None)
            if settings.expired() or (point.centred and gap <= 1e-15 * size):
                break
            W, mu, lower = point.moved()
        except np.linalg.LinAlgError:
            break
        blind = 0 if lower else blind + 1
        if blind > MAX_STEPS_WITHOUT_DECREASE or not (
            lower or point.decrement < MAX_CENTRED_DECREMENT
        ):
            break
    if not best < np.inf and point is not None and point.lies_inside:
        yield _certified(problem, point)
    return Status.STALLED


class _Newton:
    """Newton's method for F − μ ln det S at M = WWᵀ, in the coordinates WSWᵀ."""

    def __init__(self, objective: Composite, W: Array, mu: float) -> None:
        self.objective, self.W, self.mu = objective, W, mu
        self.order = W.shape[1]
        self.unit = svec(np.eye(self.order))
        self.plain = objective.subspace(W)
        self.value = self.plain.value(self.unit)
        self.F = self.plain.softened(mu)
        self.slope = self.F.gradient(self.unit)
        if not (np.isfinite(self.value) and np.all(np.isfinite(self.slope))):
            raise np.linalg.LinAlgError("F is not finite")
        self._factorise()
        self.direction = self._solved(self.mu * self.unit - self.slope)
        bend = float(self.direction @ self._hessian(self.direction))
        square = float(self.direction @ self.direction)
        self.decrement = float(np.sqrt(max(bend + mu * square, 0.0) / mu))
        lowest = np.linalg.eigvalsh(smat(self.slope, self.order))[0]
        self.lies_inside = bool(lowest > 0)
        """Whether ∇F ≻ 0 over WSWᵀ, so that the dual vector proves a bound."""

    @property
    def centred(self) -> bool:
        return self.decrement < MAX_CENTRED_DECREMENT and self.lies_inside

    @property
    def dual(self) -> Array:
        """w = ∇g, feasible if `lies_inside`."""
        return self.F.dual(self.unit)

    def gap(self) -> float:
        """F minus the bound of the dual vector."""
        bounds = self.objective.dual_bounds(self.dual, 0.0)
        return self.value - max((bound.value for bound in bounds), default=-np.inf)

    def moved(self) -> tuple[Array, float, bool]:
        """W and μ after the next step, and whether F − μ ln det M has decreased."""
        if not self.centred:
            W, lower = self._searched(self.F, self.direction, self.mu)
            return W, self.mu, lower
        mu = MU_RATIO * self.mu
        ahead = self.plain.softened(mu)
        right = mu * self.unit - self.slope + (1 - MU_RATIO) * self.F.drift(self.unit)
        W, _ = self._searched(ahead, self._solved(right), mu)
        return W, mu, True

    def _searched(self, F: Any, direction: Array, mu: float) -> tuple[Array, bool]:
        """The minimum of F − μ ln det M along the direction, and whether it is a decrease."""
        values, turn = np.linalg.eigh(smat(direction, self.order))
        line = F.along(self.unit, direction)

        def barrier(t: float) -> float:
            clock.check()  # along a ray of unbounded decrease there are a thousand evaluations
            return float(line(t) - mu * np.sum(np.log1p(t * values)))

        most = BOUNDARY_FRACTION / max(-float(values[0]), 1e-300)
        t = _line_minimum(barrier, most)
        lower = t > 0
        if not lower:  # if rounding hides the decrease, take the full Newton step
            t = min(1.0, most)
        return contiguous((self.W @ turn) * np.sqrt(1 + t * values)), lower

    def _factorise(self) -> None:
        """Cholesky factor of H + μI, or of RRᵀ + μI if H = BᵀB has fewer rows, Bᵀ = QR.

        With Q, the component of a direction in the null space of H is computed to full precision,
        for any condition number of H on the complement.
        """
        self.root = self.F.hessian_root(self.unit)
        if self.root is None:
            self.H = self.F.hessian(self.unit)
            K = self.H.copy()
        else:
            self.Q, R = scipy.linalg.qr(self.root.T, mode="economic", check_finite=False)
            K = R @ R.T
        K[np.diag_indices_from(K)] += self.mu
        self.factor = scipy.linalg.cho_factor(K, lower=True, check_finite=False)

    def _solved(self, right: Array) -> Array:
        """(H + μI)⁻¹ times the right-hand side."""
        if self.root is None:
            return scipy.linalg.cho_solve(self.factor, right, check_finite=False)
        bent = self.Q.T @ right
        flat = right - self.Q @ bent
        flat -= self.Q @ (self.Q.T @ flat)
        inner = scipy.linalg.cho_solve(self.factor, bent, check_finite=False)
        return flat / self.mu + self.Q @ inner

    def _hessian(self, d: Array) -> Array:
        return self.H @ d if self.root is None else self.root.T @ (self.root @ d)


def _line_minimum(f: Callable[[float], float], most: float) -> float:
    """A t ≤ most near the minimum of a convex f over t > 0; 0 if no t is below f(0)."""
    first, t = f(0.0), min(1.0, most)
    value = f(t)
    if value < first:
        while 2 * t < most and (further := f(2 * t)) < value:
            t, value = 2 * t, further
        if t > 1:
            return t
    options = {"xatol": 1e-2 * t}
    inner = float(minimize_scalar(f, bounds=(0.0, t), method="bounded", options=options).x)
    t = inner if f(inner) < value else t
    return t if f(t) < first else 0.0


def _start(problem: Problem, factor: Array, settings: Settings) -> Array:
    """A factor of M + εTTᵀ, with M of the start, or of a short descent if the start is 0."""
    objective: Any = problem.objective
    T = coordinates_of(objective)
    assert T is not None
    if not np.any(factor):
        few = replace(settings, rank=min(START_COLUMNS, problem.order))
        factor = starting_factor(problem, few)
        factor = descend(objective, factor, settings, iterations=START_STEPS)
    Y = np.linalg.lstsq(T, factor, rcond=None)[0]
    U, sizes, _ = np.linalg.svd(Y, full_matrices=True)
    values = np.zeros(T.shape[1])
    values[: sizes.size] = sizes[: values.size] ** 2
    mean = float(np.mean(values))
    mean = mean if np.isfinite(mean) and mean > 0 else _even_size(objective, T)
    return contiguous(T @ (U * np.sqrt(values + START_SHIFT * mean)))


def _opened(objective: Composite, W: Array, mu: float) -> Array:
    """W with S = I + μ Σ vvᵀ/g over the eigenpairs (g, v), g > 0, of ∇F, if that decreases F.

    On the path S = μ(∇F)⁻¹. Along directions that only enter a small linear term, S is much larger
    than the scale of the data, and Newton's method would reach it by repeated doubling.
    """
    unit = svec(np.eye(W.shape[1]))
    F = objective.subspace(W).softened(mu)
    values, turn = np.linalg.eigh(smat(F.gradient(unit), W.shape[1]))
    up = values > 0
    sizes = 1 + np.divide(mu, values, out=np.zeros_like(values), where=up)
    more = contiguous((W @ turn) * np.sqrt(sizes))
    if not np.all(np.isfinite(more)):
        return W
    ahead = objective.subspace(more).softened(mu).value(unit) - mu * float(np.sum(np.log(sizes)))
    return more if ahead < F.value(unit) else W


def _even_size(objective: Any, T: Array) -> float:
    """The power a of 10 with the smallest F(aTTᵀ)."""
    F, unit = objective.subspace(T), svec(np.eye(T.shape[1]))
    powers = 10.0 ** np.arange(-15, 16)
    values = np.array([F.value(a * unit) for a in powers])
    return float(powers[np.argmin(np.where(np.isfinite(values), values, np.inf))])


def _first_mu(objective: Composite, W: Array) -> float:
    """The μ whose gap is about ⟨∇F, M⟩, or a thousandth of F."""
    F, unit = objective.subspace(W), svec(np.eye(W.shape[1]))
    along = abs(float(F.gradient(unit) @ unit))
    barriers = W.shape[1] + F.corners
    return max(along, 1e-3 * abs(F.value(unit)), 1e-290) / barriers


def _certified(problem: Problem, point: _Newton) -> Step:
    """The point without unnecessary columns, certified by its dual vector."""
    objective, w = problem.objective, point.dual
    known = known_bound(problem, w, lowest(objective.dual_operator(w), rescale=True))
    image = _lean(objective, point)
    certificate = certify_image(problem, image, known=known)
    return Step(image.factor, certificate.value, certificate, dual=w)


def _lean(objective: Any, point: _Newton) -> Any:
    """The image of the fewest leading columns at which F is not larger than at the point."""
    T = coordinates_of(objective)
    assert T is not None
    U, sizes, _ = np.linalg.svd(np.linalg.lstsq(T, point.W, rcond=None)[0])
    columns, best = T @ (U * sizes), objective.image(point.W)
    room = point.value + 1e-15 * abs(point.value)
    for rank in range(columns.shape[1] - 1, -1, -1):
        fewer = objective.image(contiguous(columns[:, :rank]))
        if not objective.value(fewer) <= room:
            break
        best = fewer
    return best
