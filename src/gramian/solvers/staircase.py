"""The staircase: a few columns, local steps on them, a certificate, more columns if it fails.

M = LLᵀ starts from the leading eigenvectors of −∇F(0). Each round takes first-order steps on L
while they pay, and Newton steps where they do not. Where neither goes well (a curved valley, a
saddle, a rank too small or too large) it searches M = W S Wᵀ over all S ⪰ 0, where W joins L with
the leading eigenvectors of −∇F(M), the chief directions of the Newton step and what the last
search left over: a convex problem of a few hundred unknowns, solved exactly, which also finds the
rank. The certificate of every round keeps the best lower bound seen.
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
from gramian.problem import Problem
from gramian.proofs import Bottom, LowRank
from gramian.result import Status
from gramian.search import bilateral
from gramian.solvers import lbfgs
from gramian.solvers.base import (
    Run,
    Settings,
    Step,
    falls_for_ever,
    is_optimal,
    starting_factor,
)
from gramian.solvers.cone_search import FIRST, MORE, ROUNDING, ConeSearch, scaled
from gramian.solvers.ground import (
    DENSE_ORDER,
    EXACT_ORDER,
    LIVE,
    Ground,
    estimated_ground,
    exact_ground,
    span_ground,
)
from gramian.solvers.lro import UnboundedError, conjugate_gradient
from gramian.solvers.newton import Direction, best_along, newton_direction

Array = NDArray[np.floating]

LANCZOS_STEPS, SHARPER_STEPS = 40, 120
"""Products for directions, and for a λ_min that may end the run."""

SPAN = 600
"""Columns of a low-rank part of the gradient up to which its eigenpairs are computed in full."""

DEAD = 1e-10
"""Columns of M that carry less than this part of the largest are dropped before more come."""

NOISE = 1e-2
"""The random part of a start that has served before."""

GRADIENT_STEPS, FALL = 60, 0.03
"""Steps of conjugate gradient in a round, and the fall of the gradient to end them at."""

QUASI_STEPS, QUASI_FALL = 150, 1e-3
"""The same for L-BFGS."""

DESCENT_STEPS, FAR = 100, 1e6
"""Steps of L-BFGS on all columns that a small problem starts with, and a fall not to be trusted."""

NEAR = 0.03
"""Part of the gap allowed that a gradient on the factor may stand for when its steps end."""

NEWTON_STEPS = 8
PRODUCTS = (30, 400)
"""Products with the Hessian for one direction: at first, and at most."""

MANY = 12
"""Eigenvectors taken in a round where the rank is high."""

PATIENCE = 6
"""Rounds without progress before it gives up."""


def staircase(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F over the cone or a slice of it, to the tolerance asked for."""
    settings.enters("staircase")
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
    limit: int = PRODUCTS[0]
    products: int = 0
    well_conditioned: bool = True
    """Whether conjugate gradient still pays."""
    lift: float = 1.0
    """The part of λ_min by which ∇F is raised in the Hessian, where it is only estimated."""
    fresh: bool = True
    """Whether nothing has been tried yet."""
    steepest: float = 0.0
    """The largest gradient on the factor seen."""
    size: float = field(init=False)
    """The size of F: what is small beside it is rounding."""

    def __post_init__(self) -> None:
        self.zero = self.objective.value(self.objective.image(np.zeros((self.problem.order, 0))))
        self.size = max(abs(self.zero), 1e-300)
        self.search = ConeSearch(self.objective, self.trace)

    @property
    def objective(self) -> Objective:
        return self.problem.objective

    @property
    def large(self) -> bool:
        """Whether a search costs more than it finds, unless the rest has failed."""
        return self.problem.order > DENSE_ORDER and self.trace is None

    def outgrown(self, image: Any) -> bool:
        """Whether the rank leaves no room for a search, where many columns are cheap."""
        room = self.search.widest - image.factor.shape[1]
        return room < MORE and not (self.search.whole or self.large or self.objective.quadratic)

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
        form = gradient.form()
        if isinstance(form, LowRank) and 0 < form.U.shape[1] <= SPAN:
            return span_ground(form, level, count)
        start = self.settings.rng.standard_normal(order)
        start *= NOISE / np.linalg.norm(start)
        hint, self.settings.hint.vector = self.settings.hint.vector, None
        if hint is not None and hint.shape == start.shape:
            self.vector = hint
        start = start if self.vector is None else self.vector + start
        ground = estimated_ground(
            gradient, L, level, count, steps=steps, start=start, lift=self.lift
        )
        self.vector = ground.vectors[:, 0]
        return ground

    def certify(self, image: Any, ground: Ground) -> Certificate:
        """The gap by the best lower bound seen."""
        if self.problem.order > EXACT_ORDER:
            return self._hoped(image, ground)
        certificate = self._certificate(image, ground.bound)
        if self.search.inside and (certificate.gap is None or not self._optimal(certificate)):
            self._bound_inside()
            certificate = self._certificate(image, ground.bound)
        self._keep(certificate)
        return certificate

    def _keep(self, certificate: Certificate) -> None:
        """Keep a bound that is proved for the points to come."""
        if certificate.gap is not None and certificate.proved:
            self.lower = LowerBound(
                certificate.lower_bound, certificate.method, how=certificate.proof
            )

    def _hoped(self, image: Any, ground: Ground) -> Certificate:
        """The certificate of a λ_min that is only estimated.

        One that would end the run by the eigenvalue alone, without what it may be off by, is found
        again from a random start, which has not been drawn to an eigenvector that another one has
        passed by: `minimize` proves what is left of it. No bound is kept for later points.
        """
        if self._optimal(self._certificate(image, _guess(ground.hope))):
            self.vector = None
            again = self.ground(image, SHARPER_STEPS)
            hoped = self._certificate(image, _guess(min(again.hope, ground.hope)))
            if self._optimal(hoped):
                return hoped
            return self._certificate(image, _guess(min(again.bound, ground.hope)))
        return self._certificate(image, _guess(ground.bound))

    def _certificate(self, image: Any, bottom: Bottom | float) -> Certificate:
        return certify_image(self.problem, image, bottom=bottom, known=self.lower)

    def _optimal(self, certificate: Certificate) -> bool:
        return is_optimal(certificate, self.settings.tol)

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
            fewer = self.objective.image(np.ascontiguousarray(scaled(L[:, :rank], self.trace)))
            if self.objective.value(fewer) <= room:
                found = self.certify(fewer, self.ground(fewer))
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
        if self.fresh and self.search.whole:
            self.fresh = False
            return self._better(self._descent(image), image)
        enough = NEAR * self._allowed(certificate.value)
        if self.outgrown(image):
            return self._quasi_newton(self._append(image, ground, MANY), enough)[0]
        direction = None
        image, done = self._first_order(image, enough)
        straight = image
        if not done:
            image, straight, direction = self._newton(image, ground, enough)
        rank, count = image.factor.shape[1], ground.vectors.shape[1]
        if self.large and direction is None and self.well_conditioned:
            return self._append(image, ground)
        if self.search.whole or rank + min(count, MORE) <= self.search.widest:
            W = self.search.columns(image, ground, direction)
            found = self.search.best(image, W, 1e-4 * enough)
            if found is not None:
                return self._better(found, straight)
        return self._append(straight, ground)

    def _descent(self, image: Any) -> Any:
        """L-BFGS on a factor of every column: where the order is small it often is enough."""
        factor = starting_factor(self.problem, replace(self.settings, rank=self.problem.order))
        if image.factor.shape[1] > 1:
            factor = np.hstack([image.factor, 1e-2 * factor])
        start = self.objective.image(scaled(factor, self.trace))
        usual = max(self.size, abs(self.zero - self.objective.value(start)))
        with np.errstate(all="ignore"):
            factor = lbfgs.descend(
                self.objective,
                start.factor,
                self.settings,
                iterations=DESCENT_STEPS,
                tol=0.3 * self.settings.tol,
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
        if self.trace is None and self.objective.quadratic:
            image, least = self._conjugate_gradient(image, target)
        else:
            image, least = self._quasi_newton(image, enough)
        self.well_conditioned = least <= max(0.2 * first, target)
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

    def _quasi_newton(self, image: Any, enough: float) -> tuple[Any, float]:
        """L-BFGS, which can keep to a trace and whose trials cost one evaluation each."""
        first = float(np.linalg.norm(self._slope(image)) * np.linalg.norm(image.factor))
        factor = lbfgs.descend(
            self.objective,
            image.factor,
            self.settings,
            iterations=QUASI_STEPS,
            tol=max(QUASI_FALL, min(FALL, enough / max(first, 1e-300))),
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

    def _bound_inside(self) -> None:
        """Lower bounds at points inside the cone, where ∇F ⪰ 0 can hold without a shift."""
        for S in self.search.inside:
            with suppress(np.linalg.LinAlgError):
                image = self.objective.image(np.linalg.cholesky(S))
                bottom = exact_ground(self.objective.gradient(image).dense(), 0.0, 1).bound
                certificate = self._certificate(image, bottom)
                self._keep(certificate)
        self.search.inside = []

    def _append(self, image: Any, ground: Ground, more: int = MORE) -> Any:
        """The lowest eigenvectors, by a bilateral search."""
        if self.trace is None and ground.values[0] >= -ground.rounding:
            return image
        image = self._without_dead_columns(image)
        count = FIRST if image.factor.shape[1] == 0 else more
        values, lowest = ground.values[:count], float(ground.values[0])
        share = np.clip(values / lowest, 1e-2, 1.0) if lowest < 0 else np.ones(values.size)
        atoms = scaled(ground.vectors[:, :count] * np.sqrt(share), self.trace)
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
            np.ascontiguousarray(scaled(image.factor @ turn[:, live], self.trace))
        )


def _guess(bound: float) -> Bottom:
    """A bound by Lanczos, which a proof has to confirm."""
    return Bottom(bound, "Lanczos", 1.0)


def _best_mixture(restriction: Any) -> tuple[float, float]:
    """(1 − η, η) with the least F: the way to a point of the same trace."""
    found = scipy.optimize.minimize_scalar(
        lambda eta: restriction.value(np.array([1 - eta, eta])), bounds=(0.0, 1.0), method="bounded"
    )
    return 1 - float(found.x), float(found.x)
