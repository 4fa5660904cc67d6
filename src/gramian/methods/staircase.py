"""The staircase: local steps on a few columns, a certificate, and more columns if it fails.

M = LLᵀ starts from the leading eigenvectors of −∇F(0). Each round takes first-order steps on L.
Where they converge slowly (a curved valley, a saddle point, a rank too small or too large), and at
moderate order, it minimises over M = W S Wᵀ for all S ⪰ 0, where W combines L, the leading
eigenvectors of −∇F(M) and columns that the previous search removed: a convex problem of a few
hundred unknowns, solved exactly, which also determines the rank. The certificate of every round
uses the best lower bound so far.

Newton steps on L (conjugate gradients on the convex part of the Hessian) gained nothing: neither
for the problems of `benchmarks.auto_table`, nor for small problems to 1e-10.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from gramian.arrays.places import beside, contiguous, inner
from gramian.certificate import Certificate
from gramian.linalg import bilateral
from gramian.methods.base import Run, Settings, Step, entering, is_unbounded_on_ray
from gramian.methods.columns import columns_by_size
from gramian.methods.cone_search import (
    ADDED_EIGENVECTORS,
    FIRST_EIGENVECTORS,
    VALUE_ROUNDING,
    ConeSearch,
)
from gramian.methods.first_descent import FirstDescent
from gramian.methods.lowest_eigenpairs import MIN_DIRECTION_RATIO, LowestEigenpairs
from gramian.methods.staircase_bounds import Array, StaircaseBounds
from gramian.methods.staircase_steps import LocalSteps
from gramian.papers.lro import UnboundedError
from gramian.problem import Problem
from gramian.result import Status

MIN_COLUMN_RATIO = 1e-10
"""Columns of M with less than this fraction of the largest squared length are dropped."""

PRECONDITIONED_EIGENVECTORS = 24
"""Eigenvectors at the start if steps are preconditioned. A rank that is too small is increased
slowly: a9a (rank 18) takes 160 steps from here, and 350 from 12."""

LOCAL_GAP_FRACTION = 0.03
"""Gap due to the gradient on the factor at which local steps end, as a fraction of the allowed
gap."""

HIGH_RANK_EIGENVECTORS = 12
"""Eigenvectors added in a round if the rank is high."""

SLICE_COLUMNS = 16
"""Columns of the first steps at a fixed trace and larger order. USPS's 21,873 pairs of 256 features
(`dml_eig`, rank 10), evaluations to a gap of 1e-4 from 8, 12, 16 and 24 columns: 124, 37, 36 and
98; from one column, to which a few are added at a time, 163."""

MAX_QUIET_ROUNDS = 6
"""Rounds without progress after which the solver stops."""


@entering("staircase")
def staircase(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Minimise F over the cone or over a fixed trace, to the tolerance."""
    run = _StaircaseRun(problem, settings)
    image, quiet, least = run.begun(factor), 0, np.inf
    if run.leaves_zero(image):
        yield Step(image.factor, run.zero)
        image = run.descended(image)
        if run.is_unbounded_on_ray(image, problem.objective.value(image)):
            return Status.UNBOUNDED
    while True:
        eigenpairs = run.bounds.eigenpairs(image)
        certificate = run.bounds.certify(image, eigenpairs)
        image, certificate = run.bounds.trim(image, certificate)
        yield Step(image.factor, certificate.value, certificate, dual=run.bounds.dual)
        try:
            image = run.round(image, eigenpairs, certificate)
        except UnboundedError:
            return Status.UNBOUNDED
        value = problem.objective.value(image)
        falls = certificate.value - value > 1e-13 * abs(value)
        gap = np.inf if certificate.gap is None else certificate.gap
        quiet = 0 if falls or gap < 0.5 * least else quiet + 1
        least = min(gap, least)
        if quiet >= MAX_QUIET_ROUNDS:
            return Status.STALLED
        if run.is_unbounded_on_ray(image, value):
            return Status.UNBOUNDED


class _StaircaseRun:
    """The rounds of a run and their state."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.objective = problem, problem.objective
        self.domain, self.settings = problem.domain, settings
        nothing = self.objective.place.zeros((problem.order, 0))
        self.zero = self.objective.value(self.objective.image(nothing))
        self.size = max(abs(self.zero), 1e-300)
        self.search = ConeSearch(self.objective, self.domain)
        self.first = FirstDescent(problem, settings, self.zero, self.size)
        self.steps = LocalSteps(problem, settings)
        first = PRECONDITIONED_EIGENVECTORS if self.steps.preconditioned else FIRST_EIGENVECTORS
        self.bounds = StaircaseBounds(problem, settings, self.size, first)

    def leaves_zero(self, image: Any) -> bool:
        """Whether a small problem starts at M = 0 and F decreases there (no bound is close)."""
        if image.factor.shape[1] or self.domain.bounded or not self.search.whole:
            return False
        return self._falls(self.bounds.eigenpairs(image))

    def descended(self, image: Any) -> Any:
        """The end of the first descent of a small problem, if that is lower."""
        return self._better(self.first.on(image), image)

    def begun(self, factor: Array) -> Any:
        """The image of the start; at a fixed trace and a start of rank one, of the best point near
        random columns, more of them than most optima have."""
        objective, image = self.objective, self.objective.image(factor)
        small = self.search.whole or objective.order <= SLICE_COLUMNS
        if not self.domain.bounded or objective.facts.quadratic or small or factor.shape[1] > 1:
            return image
        columns = objective.place.normal(self.settings.rng, (objective.order, SLICE_COLUMNS))
        spread = objective.image(self.domain.rescale(columns))
        enough = LOCAL_GAP_FRACTION * self.bounds.allowed(objective.value(spread))
        found = self.steps.take(spread, enough)
        if self.search.widest >= SLICE_COLUMNS:
            found = self.search.best(found, self.search.columns(found), 1e-4 * enough) or found
        return self._better(found, image)

    def outgrown(self, image: Any) -> bool:
        """Whether the rank leaves no columns for a search and many columns are cheap."""
        room = self.search.widest - image.factor.shape[1]
        return room < ADDED_EIGENVECTORS and not (
            self.search.whole or self.steps.large or self.objective.facts.quadratic
        )

    def is_unbounded_on_ray(self, image: Any, value: float) -> bool:
        """Whether F decreases linearly along the ray of M, and has already decreased far."""
        fallen = self.zero - value
        if self.domain.bounded or not fallen > 1e3 * self.size:
            return False
        slope = 0.5 * inner(self.objective.gradient_factor(image), image.factor)
        return slope < -0.1 * fallen and is_unbounded_on_ray(self.objective, image)

    def round(self, image: Any, eigenpairs: LowestEigenpairs, certificate: Certificate) -> Any:
        """First-order steps, then a search over a subspace, or more columns."""
        if self.search.whole and not self.first.ended:
            return self.descended(image)
        enough = LOCAL_GAP_FRACTION * self.bounds.allowed(certificate.value)
        if self.outgrown(image):
            return self.steps.take(self._append(image, eigenpairs, HIGH_RANK_EIGENVECTORS), enough)
        if self.steps.preconditioned:
            more = max(ADDED_EIGENVECTORS, image.factor.shape[1] // 2)
            return self.steps.take(self._append(image, eigenpairs, more), enough)
        rank, count = image.factor.shape[1], eigenpairs.vectors.shape[1]
        searchable = self.search.whole or (
            rank + min(count, ADDED_EIGENVECTORS) <= self.search.widest
        )
        image = self.steps.take(image, enough)
        if searchable and not (self.steps.large and self.steps.converging):
            W = self.search.columns(image, eigenpairs)
            found = self.search.best(image, W, 1e-4 * enough)
            self.bounds.inside = self.search.inside
            if found is not None:
                return self._better(found, image)
        return self._append(image, eigenpairs)

    def _better(self, found: Any, straight: Any) -> Any:
        """The lower of the two; the searched one (smaller gradient) if F is equal to rounding."""
        value, other = self.objective.value(found), self.objective.value(straight)
        return straight if other < value - VALUE_ROUNDING * abs(value) else found

    def _falls(self, eigenpairs: LowestEigenpairs) -> bool:
        """Whether F decreases along the lowest eigenvectors."""
        return self.domain.bounded or bool(eigenpairs.values[0] < -eigenpairs.rounding)

    def _append(
        self, image: Any, eigenpairs: LowestEigenpairs, more: int = ADDED_EIGENVECTORS
    ) -> Any:
        """Append the lowest eigenvectors, with lengths from a bilateral search."""
        if not self._falls(eigenpairs):
            return image
        image = self._without_dead_columns(image)
        count = self.bounds.first if image.factor.shape[1] == 0 else more
        values, lowest = eigenpairs.values[:count], float(eigenpairs.values[0])
        share = np.clip(values / lowest, 1e-2, 1.0) if lowest < 0 else np.ones(values.size)
        if lowest < 0:  # directions with small slopes would reduce the step along the others
            values = values[values < MIN_DIRECTION_RATIO * lowest]
            share = share[: values.size]
        columns = eigenpairs.vectors[:, : values.size]
        atoms = self.domain.rescale(columns * beside(columns, np.sqrt(share)))
        blend = self.objective.blend(image, self.objective.image(contiguous(atoms)))
        if self.domain.bounded:
            return blend.take(*_best_mixture(blend.restriction))
        alpha, beta, value = bilateral(blend.restriction)
        if value == -np.inf:
            raise UnboundedError
        return blend.take(alpha, beta)

    def _without_dead_columns(self, image: Any) -> Any:
        if image.factor.shape[1] == 0:
            return image
        values, turn = columns_by_size(image.factor)
        live = values > MIN_COLUMN_RATIO * values[0]
        if np.all(live):
            return image
        kept = image.factor @ beside(image.factor, turn[:, live])
        return self.objective.image(contiguous(self.domain.rescale(kept)))


def _best_mixture(restriction: Any) -> tuple[float, float]:
    """(1 − η, η) with the smallest F: the segment to a point of the same trace."""
    found = scipy.optimize.minimize_scalar(
        lambda eta: restriction.value(np.array([1 - eta, eta])), bounds=(0.0, 1.0), method="bounded"
    )
    return 1 - float(found.x), float(found.x)
