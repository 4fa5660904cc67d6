"""What the staircase knows from below: the lowest eigenpairs of ∇F, and the best lower bound."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import beside, contiguous, inner, norm
from gramian.certificate import Certificate, certify_image
from gramian.objectives import LowerBound
from gramian.problem import Problem
from gramian.proofs import LIVE, Bottom, LowRank
from gramian.solvers.base import Settings, columns_by_size, is_optimal
from gramian.solvers.cone_search import FIRST, MORE, ConeSearch
from gramian.solvers.lowest_eigenpairs import (
    EXACT_ORDER,
    Ground,
    estimated_ground,
    exact_ground,
    span_ground,
)

Array = NDArray[np.floating]

LANCZOS_STEPS, SHARPER_STEPS = 40, 120
"""Products for directions, and for a λ_min that may end the run."""

SPAN = 600
"""Columns of a low-rank part of the gradient up to which its eigenpairs are computed in full."""

NOISE = 1e-2
"""The random part of a start that has served before."""


@dataclass
class Below:
    """What is known of F from below, kept from round to round."""

    problem: Problem
    settings: Settings
    search: ConeSearch
    size: float
    """The size of F: what is small beside it is rounding."""
    lower: LowerBound | None = None
    vector: Array | None = None
    """The last leading eigenvector, a start for the next."""
    lift: float = 1.0
    """The part of λ_min by which ∇F is raised in the Hessian, where it is only estimated."""

    def ground(self, image: Any, steps: int = LANCZOS_STEPS) -> Ground:
        """The lowest eigenpairs of ∇F, exact at moderate order."""
        gradient, L = self.problem.objective.gradient(image), image.factor
        order, domain = self.problem.order, self.problem.domain
        count = min(order, FIRST if L.shape[1] == 0 else max(MORE, L.shape[1] // 3))
        level = domain.level(inner(L, gradient @ L)) if domain.bounded else 0.0
        if order <= EXACT_ORDER:
            return exact_ground(gradient.dense(), level, count)
        form = gradient.form() if self.problem.objective.spans else None
        if isinstance(form, LowRank) and 0 < form.U.shape[1] <= SPAN:
            return span_ground(form, level, count)
        place = self.problem.objective.place
        start = place.normal(self.settings.rng, (order,))
        start = start * (NOISE / norm(start))
        hint, self.settings.hint.vector = self.settings.hint.vector, None
        if hint is not None and hint.shape == start.shape:
            self.vector = place.put(hint)
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
        objective, domain = self.problem.objective, self.problem.domain
        values, turn = columns_by_size(image.factor)
        L = image.factor @ beside(image.factor, turn)
        room = certificate.value + 0.1 * self.allowed(certificate.value)
        for rank in range(1, L.shape[1]):
            if values[rank] > LIVE**2 * values[0]:
                continue
            fewer = objective.image(contiguous(domain.rescale(L[:, :rank])))
            if objective.value(fewer) <= room:
                found = self.certify(fewer, self.ground(fewer))
                return (fewer, found) if self._optimal(found) else (image, certificate)
        return image, certificate

    def allowed(self, value: float) -> float:
        """The gap that the tolerance leaves."""
        return self.settings.tol * max(abs(value), 1e-6 * self.size)

    def _bound_inside(self) -> None:
        """Lower bounds at points inside the cone, where ∇F ⪰ 0 can hold without a shift."""
        for S in self.search.inside:
            with suppress(np.linalg.LinAlgError):
                objective = self.problem.objective
                image = objective.image(objective.place.put(np.linalg.cholesky(S)))
                bottom = exact_ground(self.problem.objective.gradient(image).dense(), 0.0, 1).bound
                certificate = self._certificate(image, bottom)
                self._keep(certificate)
        self.search.inside = []


def _guess(bound: float) -> Bottom:
    """A bound by Lanczos, which a proof has to confirm."""
    return Bottom(bound, "Lanczos", 1.0)
