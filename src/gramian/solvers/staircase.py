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
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from gramian.certificate import Certificate, certify_image
from gramian.objectives import LowerBound, Objective
from gramian.objectives.quadratic_form import smat, svec, triangle
from gramian.problem import Problem
from gramian.result import Status
from gramian.search import Slice, bilateral, cone_quadratic
from gramian.solvers import lbfgs
from gramian.solvers.base import (
    Run,
    Settings,
    Step,
    falls_for_ever,
    is_optimal,
    starting_factor,
)
from gramian.solvers.ground import (
    DENSE_ORDER,
    EXACT_ORDER,
    LIVE,
    Ground,
    estimated_ground,
    exact_ground,
)
from gramian.solvers.lro import UnboundedError, conjugate_gradient
from gramian.solvers.newton import Direction, best_along, newton_direction

Array = NDArray[np.floating]

COLUMNS = 26
"""The widest W: a search over n(n+1)/2 = 351 unknowns takes about a tenth of a second."""

ROOM = 10_000_000
"""Numbers that the restriction of F to W may hold."""

FIRST, MORE = 12, 4
"""Eigenvectors taken at the start, and in every later search."""

CHIEF, MEMORY = 8, 4
"""Columns that stand for a Newton step, and columns kept from the last search."""

LANCZOS_STEPS, SHARPER_STEPS = 40, (120, 360)
"""Products for directions, and for a λ_min that may end the run."""

DEAD = 1e-10
"""Columns of M that carry less than this part of the largest are dropped before more come."""

NOISE = 1e-2
"""The random part of a start that has served before."""

GRADIENT_STEPS, FALL = 60, 0.03
"""Steps of conjugate gradient in a round, and the fall of the gradient to end them at."""

DESCENT_STEPS, FAR = 100, 1e6
"""Steps of L-BFGS on all columns that a small problem starts with, and a fall not to be trusted."""

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
    fresh: bool = True
    """Whether nothing has been tried yet."""
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

    def ground(self, image: Any, steps: int = LANCZOS_STEPS) -> Ground:
        """The lowest eigenpairs of ∇F, exact at moderate order."""
        gradient, L, order = self.objective.gradient(image), image.factor, self.problem.order
        count = min(order, FIRST if L.shape[1] == 0 else max(MORE, L.shape[1] // 3))
        level = 0.0 if self.trace is None else float(np.sum(L * (gradient @ L))) / self.trace
        if order <= EXACT_ORDER:
            return exact_ground(gradient.dense(), level, count)
        start = self.settings.rng.standard_normal(order)
        start *= NOISE / np.linalg.norm(start)
        start = start if self.vector is None else self.vector + start
        ground = estimated_ground(
            gradient, L, level, count, steps=steps, start=start, lift=self.lift
        )
        self.vector = ground.vectors[:, 0]
        return ground

    def certify(self, image: Any, ground: Ground) -> Certificate:
        """The gap by the best lower bound seen; a sharper λ_min only where it could end the run."""
        certificate = self._certificate(image, ground.bound)
        if self.problem.order > EXACT_ORDER and not self._optimal(certificate):
            for steps in SHARPER_STEPS:
                if not self._optimal(self._certificate(image, ground.hope)):
                    break
                ground = self.ground(image, steps)
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

    def round(self, image: Any, ground: Ground, certificate: Certificate) -> Any:
        """Conjugate gradient or Newton steps while they go well, then a search beside them."""
        if self.fresh and self.problem.order <= self.widest:
            self.fresh = False
            return self._better(self._descent(image), image)
        enough = 1e-3 * self._allowed(certificate.value)
        direction = None
        image, done = self._first_order(image, enough)
        straight = image
        if not done:
            image, straight, direction = self._newton(image, ground, enough)
        rank, count = image.factor.shape[1], ground.vectors.shape[1]
        if self.large and direction is None and self.well_conditioned:
            return self._append(image, ground)
        if self.problem.order <= self.widest or rank + min(count, MORE) <= self.widest:
            found = self._search(image, self._columns(image, ground, direction))
            if found is not None:
                return self._better(found, straight)
        return self._append(straight, ground)

    def _descent(self, image: Any) -> Any:
        """L-BFGS on a factor of every column: where the order is small it often is enough."""
        factor = starting_factor(self.problem, replace(self.settings, rank=self.problem.order))
        if image.factor.shape[1] > 1:
            factor = np.hstack([image.factor, 1e-2 * factor])
        start = self.objective.image(self._scaled(factor))
        usual = max(self.size, abs(self.zero - self.objective.value(start)))
        with np.errstate(all="ignore"):
            factor = lbfgs.descend(
                self.objective,
                start.factor,
                self.settings,
                iterations=DESCENT_STEPS,
                tol=1e-8,
                trace=self.trace,
            )
            found = self.objective.image(factor)
            value = self.objective.value(found)
        # Far out F may be flat to rounding, which only looks like a minimum.
        return found if self.zero - value < FAR * usual else image

    def _better(self, found: Any, straight: Any) -> Any:
        """The lower of the two; the searched one, of smaller gradient, where F cannot tell."""
        value, other = self.objective.value(found), self.objective.value(straight)
        return straight if other < value - ROUNDING * abs(value) else found

    def _first_order(self, image: Any, enough: float) -> tuple[Any, bool]:
        """First-order steps while they pay, and whether they leave nothing to Newton."""
        if image.factor.shape[1] == 0 or not self.well_conditioned:
            return image, False
        first = float(np.linalg.norm(self._slope(image)))
        target = max(FALL * first, enough / max(float(np.linalg.norm(image.factor)), 1e-300))
        steps = self._conjugate_gradient if self.trace is None else self._quasi_newton
        image, least = steps(image, target)
        self.well_conditioned = least <= max(0.5 * first, target)
        return image, least <= target or (self.large and self.well_conditioned)

    def _conjugate_gradient(self, image: Any, target: float) -> tuple[Any, float]:
        """LRO's steps to a gradient of the size asked for, and the least that was met."""
        best, least = image, np.inf
        with suppress(UnboundedError):
            steps = conjugate_gradient(self.objective, image.factor)
            for step in islice(steps, GRADIENT_STEPS):
                best, least = step[0], min(least, float(np.linalg.norm(step[1])))
                if least <= target or self.settings.expired():
                    break
        return best, least

    def _quasi_newton(self, image: Any, target: float) -> tuple[Any, float]:
        """The same by L-BFGS, which can keep to a trace."""
        factor = lbfgs.descend(
            self.objective,
            image.factor,
            self.settings,
            iterations=GRADIENT_STEPS,
            tol=FALL,
            trace=self.trace,
        )
        image = self.objective.image(factor)
        return image, float(np.linalg.norm(self._slope(image)))

    def _newton(
        self, image: Any, ground: Ground, enough: float
    ) -> tuple[Any, Any, Direction | None]:
        """Steps of length about 1 whose gradient falls fast, then the direction that ends them.

        Returns where they end, the best point along that direction, and the direction.
        """
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
                return image, moved, direction
            self.limit = min(2 * self.limit, PRODUCTS[1])
            image = moved
        return image, image, None

    def _slope(self, image: Any) -> Array:
        """∂F, on the tangent plane where the trace is fixed."""
        gradient = self.objective.gradient_factor(image)
        if self.trace is None:
            return gradient
        L = image.factor
        return gradient - (float(np.sum(gradient * L)) / self.trace) * L

    def _columns(self, image: Any, ground: Ground, direction: Direction | None) -> Array:
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
            bottom = exact_ground(self.objective.gradient(image).dense(), 0.0, 1).bound
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

    def _append(self, image: Any, ground: Ground) -> Any:
        """The lowest eigenvectors, by a bilateral search."""
        if self.trace is None and ground.values[0] >= -ground.rounding:
            return image
        image = self._without_dead_columns(image)
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

    def _without_dead_columns(self, image: Any) -> Any:
        if image.factor.shape[1] == 0:
            return image
        values, turn = np.linalg.eigh(image.factor.T @ image.factor)
        live = values > DEAD * values[-1]
        if np.all(live):
            return image
        return self.objective.image(
            np.ascontiguousarray(self._scaled(image.factor @ turn[:, live]))
        )


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
