"""Lower bounds of the staircase: the lowest eigenpairs of ∇F and the best lower bound on F*."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramian.arrays.places import beside, contiguous, inner, norm
from gramian.bounds import QUICK_PRODUCTS, Bounds, known_bound
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.methods.base import Settings
from gramian.methods.columns import columns_by_size
from gramian.methods.cone_search import ADDED_EIGENVECTORS, FIRST_EIGENVECTORS
from gramian.methods.lowest_eigenpairs import (
    LowestEigenpairs,
    estimated_eigenpairs,
    exact_eigenpairs,
    factored_eigenpairs,
)
from gramian.methods.repair import repaired_along
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, LIVE, Bottom, SparseForm
from gramian.proofs.sparse import TRIAL

DIRECTION_PRODUCTS = 40
"""Lanczos products for search directions."""

START_NOISE = 1e-2
"""Relative size of the noise added to a start that was used before."""

MAX_REPAIRED_GAP_IN_TOLERANCES, SLOW_CERTIFICATES = 300.0, 3
"""Largest gap, in tolerances, for which ∇F is factorised and the dual vector repaired, and number
of consecutive certificates with such gaps after which convergence counts as slow. Kernels of 2,000
and 4,000 points in weakly connected clouds, to 1e-4: 1.2 and 1.9 s, without it 3.6 and 6.5 s."""

MAX_FACTORED_ORDER, MAX_FACTOR_SECONDS = 10_000, 1.0
"""Maximum order, and maximum estimated seconds, of the sparse factorisation of ∇F."""


@dataclass
class StaircaseBounds:
    """Eigenpairs of ∇F and lower bounds on F*, kept between rounds."""

    problem: Problem
    settings: Settings
    size: float
    """The magnitude of F, to which rounding errors are relative."""
    first: int = FIRST_EIGENVECTORS
    """Number of eigenvectors computed at M = 0."""
    vector: Array | None = None
    """The last leading eigenvector, the start of the next Lanczos run."""
    guess: float | None = None
    """An estimate of λ_min if convergence is slow."""
    near: int = 0
    """Number of consecutive certificates with a small gap."""
    dual: Any = None
    """The repaired dual vector of the last certificate, if one was used."""
    inside: list[Array] = field(default_factory=list)
    """Interior points of the cone that the last search visited."""

    def __post_init__(self) -> None:
        self.bounds = Bounds(self.problem)

    def eigenpairs(self, image: Any, steps: int = DIRECTION_PRODUCTS) -> LowestEigenpairs:
        """The lowest eigenpairs of ∇F, exact at moderate order."""
        gradient, L = self.problem.objective.gradient(image), image.factor
        order, domain = self.problem.order, self.problem.domain
        count = min(
            order, self.first if L.shape[1] == 0 else max(ADDED_EIGENVECTORS, L.shape[1] // 2)
        )
        level = domain.level(inner(L, gradient @ L)) if domain.bounded else 0.0
        if order <= EXACT_ORDER:
            return exact_eigenpairs(gradient, level, count)
        place = self.problem.objective.place
        start, state = place.normal(self.settings.rng, (order,)), self.settings.state
        if state.direction is not None:
            self.vector, state.direction = place.put(state.direction), None
        if self.vector is not None:
            start = self.vector + start * (START_NOISE / norm(start))
        eigenpairs = None if self.guess is None else self._factored(gradient, count, start)
        if eigenpairs is None:
            eigenpairs = estimated_eigenpairs(gradient, L, level, count, steps=steps, start=start)
        self.vector = eigenpairs.vectors[:, 0]
        return eigenpairs

    def _factored(self, operator: Any, count: int, start: Array) -> LowestEigenpairs | None:
        """The lowest eigenpairs of a sparse matrix over the cone, if its factor is cheap."""
        if self.guess is None:
            return None
        form = operator.form()
        if not (isinstance(form, SparseForm) and form.plain and not form.weights.size):
            return None
        if form.order > TRIAL and form.seconds > MAX_FACTOR_SECONDS:
            return None
        return factored_eigenpairs(form, count, guess=self.guess, start=start)

    def certify(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate:
        """The certificate by the best lower bound so far."""
        self.dual = None
        if self.problem.order > EXACT_ORDER:
            return self._repaired(image, eigenpairs, self._estimated(image, eigenpairs))
        certificate = self.bounds.look(image, eigenpairs.bound)[0]
        if not self.inside or (certificate.gap is not None and self._optimal(certificate)):
            return certificate
        self._look_inside()
        return self.bounds.look(image, eigenpairs.bound)[0]

    def _estimated(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate:
        """The certificate for an estimated λ_min.

        If the Ritz value alone, without its residual, would end the run, it is computed again from
        a random start, which is not biased towards an eigenvector found before; `minimize` then
        proves the certificate. No estimate is kept for later points.
        """
        if not self._optimal(self._look(image, eigenpairs.hope)):
            return self._look(image, eigenpairs.bound)
        self.vector = None
        again = self.eigenpairs(image, QUICK_PRODUCTS)
        hoped = self._look(image, min(again.hope, eigenpairs.hope))
        if self._optimal(hoped):
            return hoped
        return self._look(image, min(again.bound, eigenpairs.hope))

    def _repaired(
        self, image: Any, eigenpairs: LowestEigenpairs, certificate: Certificate
    ) -> Certificate:
        """The certificate by a dual vector repaired along the lowest eigenvectors, if optimal.

        F may be flat where ∇F is not yet positive semidefinite. Convergence is then slow, and the
        bound loses tr M times a λ_min that a few samples cause.
        """
        here = self.problem.objective.place.is_host and not self.problem.domain.bounded
        if not here or self.problem.order > MAX_FACTORED_ORDER:
            return certificate
        gap, tol = certificate.relative_gap, self.settings.tol
        close = gap is not None and gap <= MAX_REPAIRED_GAP_IN_TOLERANCES * tol
        resolved, self.guess = self.guess is not None, None
        self.near = self.near + 1 if close else 0
        if self.near < SLOW_CERTIFICATES or self._optimal(certificate):
            return certificate
        self.guess = min(eigenpairs.hope, -tol * abs(eigenpairs.bound))
        return (self._by_repair(image, eigenpairs) if resolved else None) or certificate

    def _by_repair(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate | None:
        objective, rng = self.problem.objective, self.settings.rng
        moved = repaired_along(objective, image, eigenpairs.vectors)
        w: Any = None if moved is None else objective.dual(moved)
        if w is None:
            return None
        start = objective.place.normal(rng, (self.problem.order,))
        found = self._factored(objective.dual_operator(w), 1, start)
        if found is None:
            return None
        known = known_bound(self.problem, w, _by_lanczos(found.hope))
        better, _ = self.bounds.look(image, _by_lanczos(eigenpairs.bound), known=known)
        if not self._optimal(better):
            return None
        self.dual = w
        return better

    def _look_inside(self) -> None:
        """Bounds at interior points of the cone, where ∇F ⪰ 0 can hold without a shift.

        They are the only ones for a quadratic that is flat along some direction.
        """
        objective = self.problem.objective
        for S in self.inside:
            with suppress(np.linalg.LinAlgError):
                image = objective.image(objective.place.put(np.linalg.cholesky(S)))
                gradient = objective.gradient(image)
                self.bounds.look(image, exact_eigenpairs(gradient, 0.0, 1).bound)
        self.inside = []

    def _look(self, image: Any, bound: float) -> Certificate:
        return self.bounds.look(image, _by_lanczos(bound))[0]

    def _optimal(self, certificate: Certificate) -> bool:
        return certificate.within(self.settings.tol)

    def trim(self, image: Any, certificate: Certificate) -> tuple[Any, Certificate]:
        """A point within the tolerance of smaller rank, if there is one."""
        if not self._optimal(certificate) or image.factor.shape[1] < 2:
            return image, certificate
        objective, domain = self.problem.objective, self.problem.domain
        values, turn = columns_by_size(image.factor)
        L = image.factor @ beside(image.factor, turn)
        room = certificate.value + 0.1 * self.allowed(certificate.value)
        for rank in range(1, L.shape[1]):
            if values[rank] > LIVE**2 * values[0]:
                continue
            fewer = objective.image(contiguous(domain.rescale(L[:, :rank])))
            if objective.value(fewer) <= room:
                dual, found = self.dual, self.certify(fewer, self.eigenpairs(fewer))
                if self._optimal(found):
                    return fewer, found
                self.dual = dual
                return image, certificate
        return image, certificate

    def allowed(self, value: float) -> float:
        """The gap that the tolerance permits."""
        return self.settings.tol * max(abs(value), 1e-6 * self.size)


def _by_lanczos(bound: float) -> Bottom:
    """A bound by Lanczos, which requires a proof."""
    return Bottom(bound, "Lanczos", 1.0)
