"""The staircase: a few columns, Newton on them, a certificate, and more columns if it fails.

M = LLᵀ starts from the leading eigenvectors of −∇F(0). Each round takes Newton steps on L while
they go well. Where they do not (a curved valley, a saddle, a rank too small or too large) it
searches M = W S Wᵀ over all S ⪰ 0, where W joins L with the leading eigenvectors of −∇F(M), the
chief directions of the Newton step and what the last search left over: a convex problem of a few
hundred unknowns, solved exactly, which also finds the rank. The certificate of every round keeps
the best lower bound seen.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from gramian.certificate import Certificate, certify_image
from gramian.eigen import ritz_pairs
from gramian.objectives import LowerBound, Objective
from gramian.objectives.quadratic_form import smat, svec, triangle
from gramian.problem import Problem
from gramian.result import Status
from gramian.search import Slice, bilateral, cone_quadratic
from gramian.solvers.base import Run, Settings, Step, falls_for_ever, is_optimal
from gramian.solvers.lro import UnboundedError, conjugate_gradient
from gramian.solvers.newton import Below, Direction, best_along, newton_direction

Array = NDArray[np.floating]

COLUMNS = 26
"""The widest W: a search over n(n+1)/2 = 351 unknowns takes about a tenth of a second."""

ROOM = 10_000_000
"""Numbers that the restriction of F to W may hold."""

FIRST, MORE = 12, 4
"""Eigenvectors taken at the start, and in every later search."""

CHIEF, MEMORY = 8, 4
"""Columns that stand for a Newton step, and columns kept from the last search."""

DENSE_ORDER = 500
"""Up to this order all eigenvalues of ∇F below zero are computed."""

EXACT_ORDER = 1500
"""Up to this order the lowest eigenvalues are computed, not estimated."""

LANCZOS_STEPS, SHARPER_STEPS = 40, (120, 360)
"""Products for directions, and for a λ_min that may end the run."""

LIVE = 1e-2
"""Columns shorter than this part of the longest may be dying, and ∇F need not vanish on them."""

NOISE = 1e-2
"""The random part of a start that has served before."""

GRADIENT_STEPS, FALL = 60, 0.03
"""Steps of conjugate gradient in a round, and the fall of the gradient to end them at."""

NEWTON_STEPS = 8
PRODUCTS = (30, 400)
"""Products with the Hessian for one direction: at first, and at most."""

SPARE = 1e-2
"""Part of what a search won that may be given back for a smaller rank."""

ROUNDING = 1e-14
"""Values of F that differ by less than this part are the same."""

PATIENCE = 6
"""Rounds without progress before it gives up."""


def staircase(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F over the cone or a slice of it, to the tolerance asked for."""
    climb = _Climb(problem, settings)
    image, quiet = problem.objective.image(factor), 0
    while True:
        ground = climb.ground(image)
        certificate = climb.certify(image, ground)
        image, certificate = climb.trim(image, certificate)
        yield Step(image.factor, certificate.value, certificate, {"products": climb.products})
        try:
            image = climb.round(image, ground, certificate)
        except UnboundedError:
            return Status.UNBOUNDED
        value = problem.objective.value(image)
        quiet = 0 if certificate.value - value > 1e-13 * abs(value) else quiet + 1
        if quiet >= PATIENCE:
            return Status.STALLED
        if climb.falls_for_ever(image, value):
            return Status.UNBOUNDED


@dataclass(frozen=True)
class _Ground:
    """The bottom of the spectrum of ∇F(M)."""

    below: Below
    values: Array
    vectors: Array
    """The lowest eigenpairs, or Ritz pairs, at most a few."""
    bound: float
    """A lower bound on λ_min."""
    hope: float
    """The same if the eigenvalues found were exact."""
    rounding: float = 0.0
    """Eigenvalues nearer to 0 than this may be 0."""

    def falling(self) -> Array:
        """The eigenvectors along which F falls worth mentioning."""
        return self.vectors[:, self.values < min(0.02 * float(self.values[0]), -self.rounding)]


@dataclass
class _Climb:
    """What a run remembers from round to round."""

    problem: Problem
    settings: Settings
    lower: LowerBound | None = None
    vector: Array | None = None
    """The last leading eigenvector, a start for the next."""
    leftover: Array | None = None
    """Columns that the last search gave up for a smaller rank."""
    limit: int = PRODUCTS[0]
    products: int = 0
    well_conditioned: bool = True
    """Whether conjugate gradient still pays."""
    lift: float = 1.0
    """The part of λ_min by which ∇F is raised in the Hessian, where it is only estimated."""
    damping: float = 1e-6
    """What is added to the curvature of a model that is not F itself."""
    steepest: float = 0.0
    """The largest gradient on the factor seen."""
    size: float = field(init=False)
    """The size of F: what is small beside it is rounding."""

    def __post_init__(self) -> None:
        self.zero = self.objective.value(self.objective.image(np.zeros((self.problem.order, 0))))
        self.size = max(abs(self.zero), 1e-300)
        self.widest = _widest(self.objective)

    @property
    def objective(self) -> Objective:
        return self.problem.objective

    @property
    def large(self) -> bool:
        """Whether a search costs more than it finds, unless the rest has failed."""
        return self.problem.order > DENSE_ORDER and self.trace is None

    @property
    def trace(self) -> float | None:
        return self.problem.domain.trace

    # --- what is below ---------------------------------------------------------------

    def ground(self, image: Any) -> _Ground:
        """The lowest eigenpairs of ∇F: all those below 0, the lowest few, or Ritz pairs."""
        if self.problem.order > EXACT_ORDER:
            return self._estimated(image, LANCZOS_STEPS)
        return self._exact(self.objective.gradient(image).dense(), image.factor.shape[1])

    def _estimated(self, image: Any, steps: int) -> _Ground:
        """Ritz pairs of ∇F beside the range of L, where near the optimum nothing lies at 0.

        With Q a basis of that range, a ≤ QᵀGQ, c ≤ G beside it and b = ‖(I − QQᵀ)GQ‖, every
        xᵀGx is at least that of the matrix (a, b; b, c) at some vector of the same length.
        """
        gradient, Q = self.objective.gradient(image), _live_range(image.factor)
        start = self.settings.rng.standard_normal(self.problem.order)
        start /= np.linalg.norm(start)
        start = start if self.vector is None else self.vector + NOISE * start
        found = ritz_pairs(
            _Beside(gradient, Q),
            _count(image.factor.shape[1], self.problem.order),
            steps=steps,
            v0=start - Q @ (Q.T @ start),
        )
        self.vector = found.vectors[:, 0]
        hope = -float(found.values[0])
        bound = hope - float(found.residuals[0])
        if Q.shape[1]:
            GQ = gradient @ Q
            inside = Q.T @ GQ
            a = float(np.linalg.eigvalsh(0.5 * (inside + inside.T))[0])
            b = float(np.linalg.norm(GQ - Q @ inside, 2))
            hope, bound = (0.5 * (a + c) - float(np.hypot(0.5 * (a - c), b)) for c in (hope, bound))
        below = Below(found.values[:0], found.vectors[:, :0], self.lift * min(0.0, bound))
        return _Ground(below, -found.values, found.vectors, bound, hope)

    def _exact(self, G: Array, rank: int) -> _Ground:
        if not np.all(np.isfinite(G)):
            raise FloatingPointError("the gradient is not finite")
        order = G.shape[0]
        count = _count(rank, order)
        if order <= DENSE_ORDER:
            values, vectors = scipy.linalg.eigh(G, check_finite=False)
            negative = int(np.sum(values < 0))
            below = Below(values[:negative], vectors[:, :negative], 0.0)
        else:
            values, vectors = scipy.linalg.eigh(
                G, subset_by_index=[0, count - 1], check_finite=False
            )
            below = Below(np.minimum(values, 0.0), vectors, min(0.0, float(values[-1])))
        rounding = 8 * np.finfo(float).eps * float(np.linalg.norm(G))
        bound = float(values[0]) - rounding
        return _Ground(below, values[:count], vectors[:, :count], bound, bound, rounding)

    def certify(self, image: Any, ground: _Ground) -> Certificate:
        """The gap by the best lower bound seen; a sharper λ_min only where it could end the run."""
        certificate = self._certificate(image, ground.bound)
        if self.problem.order > EXACT_ORDER and not self._optimal(certificate):
            for steps in SHARPER_STEPS:
                if not self._optimal(self._certificate(image, ground.hope)):
                    break
                ground = self._estimated(image, steps)
                certificate = self._certificate(image, ground.bound)
                if self._optimal(certificate):
                    break
        if certificate.gap is not None:
            self.lower = LowerBound(certificate.lower_bound, certificate.method)
        return certificate

    def _certificate(self, image: Any, bottom: float) -> Certificate:
        return certify_image(self.problem, image, bottom=bottom, known=self.lower)

    def _optimal(self, certificate: Certificate) -> bool:
        return is_optimal(certificate, self.settings.tol, self.size)

    def trim(self, image: Any, certificate: Certificate) -> tuple[Any, Certificate]:
        """An answer within the tolerance at a smaller rank, where one is."""
        if not self._optimal(certificate) or image.factor.shape[1] < 2:
            return image, certificate
        values, turn = np.linalg.eigh(image.factor.T @ image.factor)
        L = image.factor @ turn[:, ::-1]
        room = certificate.value + 0.1 * self._allowed(certificate.value)
        for rank in range(1, L.shape[1]):
            if values[-rank - 1] > LIVE**2 * values[-1]:
                continue
            fewer = self.objective.image(np.ascontiguousarray(self._scaled(L[:, :rank])))
            if self.objective.value(fewer) <= room:
                found = self._certificate(fewer, self.ground(fewer).bound)
                return (fewer, found) if self._optimal(found) else (image, certificate)
        return image, certificate

    def _allowed(self, value: float) -> float:
        """The gap that the tolerance leaves."""
        return self.settings.tol * max(abs(value), 1e-6 * self.size)

    def falls_for_ever(self, image: Any, value: float) -> bool:
        """Whether F is a falling line along the ray of M, and has fallen far."""
        fallen = self.zero - value
        if self.trace is not None or not fallen > 1e3 * self.size:
            return False
        slope = 0.5 * float(np.sum(self.objective.gradient_factor(image) * image.factor))
        return slope < -0.1 * fallen and falls_for_ever(self.objective, image)

    # --- one round -------------------------------------------------------------------

    def round(self, image: Any, ground: _Ground, certificate: Certificate) -> Any:
        """Conjugate gradient or Newton steps while they go well, then a search beside them."""
        enough = 1e-3 * self._allowed(certificate.value)
        direction = None
        image, done = self._first_order(image, enough)
        if not done:
            image, direction = self._newton(image, ground, enough)
        rank, count = image.factor.shape[1], ground.vectors.shape[1]
        if self.large and direction is None and self.well_conditioned:
            return self._append(image, ground, None)
        if self.problem.order <= self.widest or rank + min(count, MORE) <= self.widest:
            found = self._search(image, self._columns(image, ground, direction))
            if found is not None:
                return found
        return self._append(image, ground, direction)

    def _first_order(self, image: Any, enough: float) -> tuple[Any, bool]:
        """LRO's conjugate gradient while it pays, and whether it leaves nothing to Newton."""
        if image.factor.shape[1] == 0 or self.trace is not None or not self.well_conditioned:
            return image, False
        first = norm = least = np.inf
        with suppress(UnboundedError):
            steps = enumerate(conjugate_gradient(self.objective, image.factor))
            for k, (image, gradient) in steps:
                norm, length = float(np.linalg.norm(gradient)), float(np.linalg.norm(image.factor))
                first, least = norm if k == 0 else first, min(norm, least)
                target = max(FALL * first, enough / max(length, 1e-300))
                if norm <= target or k == GRADIENT_STEPS or self.settings.expired():
                    break
            self.well_conditioned = least <= max(0.5 * first, target)
        return image, norm <= target or (self.large and self.well_conditioned)

    def _newton(self, image: Any, ground: _Ground, enough: float) -> tuple[Any, Direction | None]:
        """Steps of length about 1 whose gradient falls fast; the direction that ends them."""
        last = np.inf
        for k in range(NEWTON_STEPS):
            L = image.factor
            if L.shape[1] == 0:
                break
            gradient = self._slope(image)
            norm = float(np.linalg.norm(gradient))
            if norm * np.linalg.norm(L) <= enough or norm > 0.3 * last or self.settings.expired():
                break
            last, self.steepest = norm, max(norm, self.steepest)
            direction = newton_direction(
                self.objective,
                image,
                gradient,
                below=ground.below if k == 0 else None,
                trace=self.trace,
                tol=float(np.clip(np.sqrt(norm / self.steepest), 1e-3, 0.1)),
                limit=self.limit,
            )
            self.products += direction.products
            self.lift = max(0.3 * self.lift, 1e-4) if direction.clean else min(4 * self.lift, 1.0)
            moved, mu = best_along(self.objective, image, direction.blocks[0], self.trace)
            if not mu > 0.5:
                self.limit = max(self.limit // 2, PRODUCTS[0])
                return image, direction
            self.limit = min(2 * self.limit, PRODUCTS[1])
            image = moved
        return image, None

    def _slope(self, image: Any) -> Array:
        """∂F, on the tangent plane where the trace is fixed."""
        gradient = self.objective.gradient_factor(image)
        if self.trace is None:
            return gradient
        L = image.factor
        return gradient - (float(np.sum(gradient * L)) / self.trace) * L

    def _columns(self, image: Any, ground: _Ground, direction: Direction | None) -> Array:
        """An orthonormal W for the search: everything, where the order is small."""
        order = self.problem.order
        if order <= self.widest:
            return np.eye(order)
        L = image.factor
        V = ground.falling()[:, : MORE if L.shape[1] else FIRST]
        blocks = [L, V]
        room = self.widest - L.shape[1] - V.shape[1]
        if self.leftover is not None and room > 0:
            blocks.append(self.leftover[:, :room])
            room -= blocks[-1].shape[1]
        if direction is not None:
            share = min(CHIEF, room // len(direction.blocks))
            blocks += [_chief(D, L, share) for D in direction.blocks]
        return _orthonormal(blocks)

    def _search(self, image: Any, W: Array) -> Any | None:
        """The best of W S Wᵀ, at the least rank that keeps nearly all of what it wins.

        None where F has no curvature at all, as far out on a hinge.
        """
        if W.shape[1] == 0:
            return image
        restriction = self.objective.subspace(W)
        part = W.T @ image.factor
        here = svec(part @ part.T)
        H, gradient = restriction.hessian(here), restriction.gradient(here)
        if not np.any(np.diag(H) > 0):
            return None
        within = None if self.trace is None else Slice(np.eye(W.shape[1]), self.trace)
        damping = 0.0 if restriction.quadratic else self.damping
        found = cone_quadratic(H, gradient, here, within, damping=damping)
        there = svec(found.S)
        if not restriction.quadratic:
            there, part = _best_between(restriction, here, there)
            self.damping = min(1.0, max(1e-8, self.damping * (10.0 if part < 0.3 else 0.1)))
        if W.shape[1] == self.problem.order:
            for inside in found.inside:
                self._bound_inside(inside)
        factor, leftover = self._least_rank(restriction, H, here, there, W.shape[1])
        new = self.objective.image(np.ascontiguousarray(W @ factor))
        before, after = self.objective.value(image), self.objective.value(new)
        if not after < before + ROUNDING * abs(before):
            self.leftover = None
            return image
        self.leftover = W @ leftover
        return new

    def _bound_inside(self, S: Array) -> None:
        """The lower bound at a point inside the cone, where ∇F ⪰ 0 can hold without a shift."""
        with suppress(np.linalg.LinAlgError):
            image = self.objective.image(np.linalg.cholesky(S))
            bottom = self._exact(self.objective.gradient(image).dense(), S.shape[0]).bound
            certificate = self._certificate(image, bottom)
            if certificate.gap is not None:
                self.lower = LowerBound(certificate.lower_bound, certificate.method)

    def _least_rank(
        self, restriction: Any, H: Array, here: Array, there: Array, order: int
    ) -> tuple[Array, Array]:
        """B with BBᵀ near S, and the next few columns that were not worth their place."""
        i, j, _ = triangle(order)
        S, bend = smat(there, order), np.diag(H)[i == j]
        weight = np.maximum(bend, 1e-16 * max(float(np.max(bend)), 1e-300)) ** 0.25
        values, vectors = np.linalg.eigh(S * np.outer(weight, weight))
        B = (vectors * np.sqrt(np.maximum(values, 0.0)) / weight[:, None])[:, ::-1]
        best = restriction.value(there)
        won = restriction.value(here) - best
        whole = order == self.problem.order
        spare = 1e-6 * self._allowed(best)
        spare = spare if whole else max(spare, SPARE * won)
        rank = order
        while rank > 1:
            fewer = self._scaled(B[:, : rank - 1])
            if not restriction.value(svec(fewer @ fewer.T)) <= best + spare:
                break
            rank -= 1
        if self.trace is None and restriction.value(np.zeros_like(there)) <= best + spare:
            rank = 0
        return self._scaled(B[:, :rank]), B[:, rank : rank + MEMORY]

    def _scaled(self, B: Array) -> Array:
        return B if self.trace is None else B * np.sqrt(self.trace / np.sum(B * B))

    def _append(self, image: Any, ground: _Ground, direction: Direction | None) -> Any:
        """The direction by a line search, then the eigenvectors by a bilateral one."""
        if direction is not None:
            moved, mu = best_along(self.objective, image, direction.blocks[0], self.trace)
            image = moved if mu > 0 else image
        if self.trace is None and ground.values[0] >= -ground.rounding:
            return image
        count = FIRST if image.factor.shape[1] == 0 else MORE
        values, lowest = ground.values[:count], float(ground.values[0])
        share = np.clip(values / lowest, 1e-2, 1.0) if lowest < 0 else np.ones(values.size)
        atoms = self._scaled(ground.vectors[:, :count] * np.sqrt(share))
        blend = self.objective.blend(image, self.objective.image(np.ascontiguousarray(atoms)))
        if self.trace is not None:
            return blend.take(*_best_mixture(blend.restriction))
        alpha, beta, value = bilateral(blend.restriction)
        if value == -np.inf:
            raise UnboundedError
        return blend.take(alpha, beta)


@dataclass(frozen=True)
class _Beside:
    """−(I − QQᵀ)G(I − QQᵀ) as an operator on vectors beside the range of Q."""

    gradient: Any
    Q: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.gradient.shape

    def __matmul__(self, v: Array) -> Array:
        image = self.gradient @ v
        return self.Q @ (self.Q.T @ image) - image


def _live_range(L: Array) -> Array:
    """An orthonormal basis of what the columns span, without those that are dying out."""
    U, sizes, _ = scipy.linalg.svd(L, full_matrices=False, check_finite=False)
    return U[:, sizes > LIVE * np.max(sizes, initial=0.0)]


def _count(rank: int, order: int) -> int:
    """How many eigenvectors to ask for: a third of the columns there are."""
    return min(order, FIRST if rank == 0 else max(MORE, rank // 3))


def _widest(objective: Objective) -> int:
    """The most columns that a search may have."""
    columns = COLUMNS
    while columns > 1 and objective.subspace_cost(columns) > ROOM:
        columns -= 1
    return columns


def _chief(D: Array, L: Array, count: int) -> Array:
    """The chief directions in which LDᵀ + DLᵀ leaves the range of L."""
    values, turn = np.linalg.eigh(L.T @ L)
    moves = D @ ((turn * np.sqrt(np.maximum(values, 0.0))) @ turn.T)
    basis = np.linalg.qr(L)[0]
    moves = moves - basis @ (basis.T @ moves)
    U, sizes, _ = scipy.linalg.svd(moves, full_matrices=False, check_finite=False)
    return U[:, : min(count, int(np.sum(sizes > 1e-8 * sizes[0])))]


def _orthonormal(blocks: list[Array]) -> Array:
    """An orthonormal basis of the span of the columns, each taken at unit length."""
    columns = np.hstack(blocks)
    lengths = np.linalg.norm(columns, axis=0)
    columns = columns[:, lengths > 0] / lengths[lengths > 0]
    if columns.shape[1] == 0:
        return columns
    Q, R, _ = scipy.linalg.qr(columns, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(R))
    return np.ascontiguousarray(Q[:, : sizes.size][:, sizes > 1e-10 * sizes[0]])


def _best_mixture(restriction: Any) -> tuple[float, float]:
    """(1 − η, η) with the least F: the way to a point of the same trace."""
    found = scipy.optimize.minimize_scalar(
        lambda eta: restriction.value(np.array([1 - eta, eta])), bounds=(0.0, 1.0), method="bounded"
    )
    return 1 - float(found.x), float(found.x)


def _best_between(restriction: Any, here: Array, there: Array) -> tuple[Array, float]:
    """The best point of the segment, along which F is convex, and how far along it lies.

    Where the model had no curvature its minimum may lie far beyond that of F.
    """
    move = there - here
    start, reach = restriction.value(here), 1.0
    if abs(restriction.value(there) - start) <= ROUNDING * abs(start):
        return there, 1.0  # F cannot tell them apart any more, its gradient can
    while not restriction.value(here + reach * move) < start and reach > 1e-15:
        reach *= 0.25
    found = scipy.optimize.minimize_scalar(
        lambda part: restriction.value(here + part * reach * move),
        bounds=(0.0, min(4.0, 1.0 / reach)),
        method="bounded",
    )
    ends = (float(found.x), 1.0, 1.0 / reach if reach > 0.25 else 1.0)
    part = reach * min(ends, key=lambda part: restriction.value(here + part * reach * move))
    return here + part * move, part
