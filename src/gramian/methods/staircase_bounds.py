"""Lower bounds of the staircase: the lowest eigenpairs of ∇F and the best lower bound on F*."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, contiguous, inner, norm
from gramian.bounds import QUICK_PRODUCTS, Bounds, known_bound
from gramian.certificate import Certificate
from gramian.methods.base import Settings
from gramian.methods.columns import columns_by_size
from gramian.methods.cone_search import ADDED_EIGENVECTORS, FIRST_EIGENVECTORS, ConeSearch
from gramian.methods.lowest_eigenpairs import (
    LowestEigenpairs,
    estimated_eigenpairs,
    exact_eigenpairs,
    factored_eigenpairs,
    span_eigenpairs,
)
from gramian.methods.repair import repaired_along
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, LIVE, Bottom, LowRank, SparseForm
from gramian.proofs.sparse import TRIAL

Array = NDArray[np.floating]

DIRECTION_PRODUCTS = 40
"""Lanczos products for search directions."""

MAX_SPAN_COLUMNS = 600
"""Columns of a low-rank part of the gradient up to which its eigenpairs are computed in full."""

START_NOISE = 1e-2
"""Relative size of the noise added to a start that was used before."""

MAX_REPAIRED_GAP_IN_TOLERANCES = 300.0
"""Largest gap, in tolerances, for which ∇F is factorised and the dual vector repaired. 2,000 points
of a graph in weakly connected parts, one gap before and after the repair: 0.28 and 0.004 at
F = 107."""

SLOW_CERTIFICATES = 3
"""Consecutive certificates with such gaps after which convergence counts as slow."""

MAX_FACTORED_ORDER, MAX_FACTOR_SECONDS = 10_000, 1.0
"""Maximum order, and maximum estimated seconds, of the sparse factorisation of ∇F."""


@dataclass
class StaircaseBounds:
    """Eigenpairs of ∇F and lower bounds on F*, kept between rounds."""

    problem: Problem
    settings: Settings
    search: ConeSearch
    size: float
    """The magnitude of F, to which rounding errors are relative."""
    first: int = FIRST_EIGENVECTORS
    """Number of eigenvectors computed at M = 0."""
    vector: Array | None = None
    """The last leading eigenvector, the start of the next Lanczos run."""
    lift: float = 1.0
    """Fraction of an estimated λ_min by which ∇F is shifted in the Hessian."""
    guess: float | None = None
    """An estimate of λ_min if convergence is slow."""
    near: int = 0
    """Number of consecutive certificates with a small gap."""
    factors: bool | None = None
    """Whether a sparse factorisation of ∇F is cheap; None before it was tested."""
    dual: Any = None
    """The repaired dual vector of the last certificate, if one was used."""
    wait: int = 0
    """Number of certificates before the next repair."""
    failed: int = 0

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
        form = gradient.form() if self.problem.objective.facts.spans else None
        if isinstance(form, LowRank) and 0 < form.U.shape[1] <= MAX_SPAN_COLUMNS:
            return span_eigenpairs(form, level, count)
        place, start = self.problem.objective.place, self._start()
        hint, self.settings.hint.vector = self.settings.hint.vector, None
        if hint is not None and hint.shape == start.shape:
            self.vector = place.put(hint)
        start = start if self.vector is None else self.vector + start
        eigenpairs = self._factored(gradient, count, start) if self.guess is not None else None
        if eigenpairs is None:
            eigenpairs = estimated_eigenpairs(
                gradient, L, level, count, steps=steps, start=start, lift=self.lift
            )
        self.vector = eigenpairs.vectors[:, 0]
        return eigenpairs

    def _start(self) -> Array:
        start = self.problem.objective.place.normal(self.settings.rng, (self.problem.order,))
        return start * (START_NOISE / norm(start))

    def _factored(self, operator: Any, count: int, start: Array) -> LowestEigenpairs | None:
        """The lowest eigenpairs of a sparse matrix over the cone, if its factor is cheap."""
        form = operator.form() if self.factors is not False else None
        if self.factors is None:
            self.factors = self._cheap(form)
        if self.guess is None or form is None or not self.factors:
            return None
        return factored_eigenpairs(form, count, guess=self.guess, start=start, lift=self.lift)

    def _cheap(self, form: Any) -> bool:
        plain = isinstance(form, SparseForm) and form.plain and not form.weights.size
        here = self.problem.objective.place.is_host and not self.problem.domain.bounded
        if not (plain and here and form.order <= MAX_FACTORED_ORDER):
            return False
        return form.order <= TRIAL or form.seconds <= MAX_FACTOR_SECONDS

    def certify(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate:
        """The certificate by the best lower bound so far."""
        self.dual = None
        if self.problem.order > EXACT_ORDER:
            return self._repaired(image, eigenpairs, self._estimated(image, eigenpairs))
        certificate = self._certificate(image, eigenpairs.bound)
        if self.search.inside and (certificate.gap is None or not self._optimal(certificate)):
            self._bound_inside()
            certificate = self._certificate(image, eigenpairs.bound)
        return certificate

    def _estimated(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate:
        """The certificate for an estimated λ_min.

        If the Ritz value alone, without its residual, would end the run, it is computed again from
        a random start, which is not biased towards an eigenvector found before; `minimize` then
        proves the certificate. No bound is kept for later points.
        """
        if self._optimal(self._certificate(image, _guess(eigenpairs.hope))):
            self.vector = None
            again = self.eigenpairs(image, QUICK_PRODUCTS)
            hoped = self._certificate(image, _guess(min(again.hope, eigenpairs.hope)))
            if self._optimal(hoped):
                return hoped
            return self._certificate(image, _guess(min(again.bound, eigenpairs.hope)))
        return self._certificate(image, _guess(eigenpairs.bound))

    def _repaired(
        self, image: Any, eigenpairs: LowestEigenpairs, certificate: Certificate
    ) -> Certificate:
        """The certificate by a dual vector repaired along the lowest eigenvectors, if optimal.

        F may be flat where ∇F is not yet positive semidefinite. Convergence is then slow, and the
        bound loses tr M times a λ_min that a few samples cause.
        """
        gap, tol = certificate.relative_gap, self.settings.tol
        resolved, self.guess = self.guess is not None, None
        self.near = (
            self.near + 1 if gap is not None and gap <= MAX_REPAIRED_GAP_IN_TOLERANCES * tol else 0
        )
        if self.near < SLOW_CERTIFICATES or self._optimal(certificate):
            return certificate
        self.guess = min(eigenpairs.hope, -tol * abs(eigenpairs.bound))
        if not (resolved and self.factors):
            return certificate
        if self.wait > 0:
            self.wait -= 1
            return certificate
        repaired = self._by_repair(image, eigenpairs)
        if repaired is None:
            self.failed += 1
            self.wait = self.failed
        return repaired or certificate

    def _by_repair(self, image: Any, eigenpairs: LowestEigenpairs) -> Certificate | None:
        objective = self.problem.objective
        if objective.dual(image) is None:
            return None
        moved = repaired_along(objective, image, eigenpairs.vectors)
        if moved is None:
            return None
        w: Any = objective.dual(moved)
        found = self._factored(objective.dual_operator(w), 1, self._start())
        if found is None:
            return None
        known = known_bound(self.problem, w, _guess(found.hope))
        better, _ = self.bounds.look(image, _guess(eigenpairs.bound), known=known)
        if not self._optimal(better):
            return None
        self.dual = w
        return better

    def _certificate(self, image: Any, bottom: Bottom | float) -> Certificate:
        return self.bounds.look(image, bottom)[0]

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

    def _bound_inside(self) -> None:
        """Lower bounds at interior points of the cone, where ∇F ⪰ 0 can hold without a shift."""
        for S in self.search.inside:
            with suppress(np.linalg.LinAlgError):
                objective = self.problem.objective
                image = objective.image(objective.place.put(np.linalg.cholesky(S)))
                bottom = exact_eigenpairs(
                    self.problem.objective.gradient(image).dense(), 0.0, 1
                ).bound
                self._certificate(image, bottom)
        self.search.inside = []


def _guess(bound: float) -> Bottom:
    """A bound by Lanczos, which requires a proof."""
    return Bottom(bound, "Lanczos", 1.0)
