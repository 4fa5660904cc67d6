"""Lower bounds of the staircase: the lowest eigenpairs of ∇F and the best lower bound on F*."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, contiguous, inner, norm
from gramian.bounds import QUICK_PRODUCTS, Bounds
from gramian.certificate import Certificate
from gramian.methods.base import Settings
from gramian.methods.columns import columns_by_size
from gramian.methods.cone_search import ADDED_EIGENVECTORS, FIRST_EIGENVECTORS
from gramian.methods.lowest_eigenpairs import (
    LowestEigenpairs,
    estimated_eigenpairs,
    exact_eigenpairs,
)
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, LIVE, Bottom

Array = NDArray[np.floating]

DIRECTION_PRODUCTS = 40
"""Lanczos products for search directions."""

START_NOISE = 1e-2
"""Relative size of the noise added to a start that was used before."""


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
            return exact_eigenpairs(gradient.dense(), level, count)
        start = self.problem.objective.place.normal(self.settings.rng, (order,))
        if self.vector is not None:
            start = self.vector + start * (START_NOISE / norm(start))
        eigenpairs = estimated_eigenpairs(gradient, L, level, count, steps=steps, start=start)
        self.vector = eigenpairs.vectors[:, 0]
        return eigenpairs

    def certify(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate:
        """The certificate by the best lower bound so far.

        If λ_min is estimated and the Ritz value alone, without its residual, would end the run, it
        is computed again from a random start, which is not biased towards an eigenvector found
        before; `minimize` then proves the certificate. No estimate is kept for later points.
        """
        if self.problem.order <= EXACT_ORDER:
            certificate = self.bounds.look(image, eigenpairs.bound)[0]
            if not self.inside or (certificate.gap is not None and self._optimal(certificate)):
                return certificate
            self._look_inside()
            return self.bounds.look(image, eigenpairs.bound)[0]
        if not self._optimal(self._estimated(image, eigenpairs.hope)):
            return self._estimated(image, eigenpairs.bound)
        self.vector = None
        again = self.eigenpairs(image, QUICK_PRODUCTS)
        hoped = self._estimated(image, min(again.hope, eigenpairs.hope))
        if self._optimal(hoped):
            return hoped
        return self._estimated(image, min(again.bound, eigenpairs.hope))

    def _look_inside(self) -> None:
        """Bounds at interior points of the cone, where ∇F ⪰ 0 can hold without a shift.

        They are the only ones for a quadratic that is flat along some direction.
        """
        objective = self.problem.objective
        for S in self.inside:
            with suppress(np.linalg.LinAlgError):
                image = objective.image(objective.place.put(np.linalg.cholesky(S)))
                gradient = objective.gradient(image).dense()
                self.bounds.look(image, exact_eigenpairs(gradient, 0.0, 1).bound)
        self.inside = []

    def _estimated(self, image: Any, bound: float) -> Certificate:
        """The certificate for a λ_min by Lanczos, which requires a proof."""
        return self.bounds.look(image, Bottom(bound, "Lanczos", 1.0))[0]

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
                found = self.certify(fewer, self.eigenpairs(fewer))
                return (fewer, found) if self._optimal(found) else (image, certificate)
        return image, certificate

    def allowed(self, value: float) -> float:
        """The gap that the tolerance permits."""
        return self.settings.tol * max(abs(value), 1e-6 * self.size)
