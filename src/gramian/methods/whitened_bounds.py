"""Lower bounds of an unfolding: the dual vector of the mean iterate, repaired.

F is within 5e-5 of the optimum long before any dual vector is feasible to that accuracy: a shift
along all edges costs the worst of some twenty eigenvectors on every edge. The dual vector of the
mean of the last iterates is closer to the optimum than theirs, and its remaining infeasibility is
repaired on the lowest eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import contiguous, largest, namespace, size
from gramian.bounds import UNKNOWN, Bounds, known_bound
from gramian.certificate import Certificate, relative
from gramian.common.types import Array
from gramian.linalg import leading_eigenpair
from gramian.methods.base import Settings
from gramian.methods.loop import IDENTITY_ROUNDING, needed
from gramian.methods.pencil import EIGENVECTORS, DensePencil, PencilBounds, PencilEigenpairs
from gramian.methods.repair import MAX_ENTRIES, repaired_along, spare_along
from gramian.objectives import Objective
from gramian.objectives.composite import toward
from gramian.problem import Problem
from gramian.proofs import EXACT_ORDER, Bottom, SparseForm, lowest
from gramian.proofs.dense import dense_seconds

Placing = Callable[[Array], Array]
"""Maps places of the points to their whitened coordinates."""

MAX_REPAIRED_GAPS_IN_TOLERANCES = (100.0, 30.0, 10.0)
"""Largest gaps, in tolerances, at which the dual vector is repaired a first, a second and a third
time. A repair may make the vector worse and the next one make it better than before: 2,591 points
of w1a after 1,800 steps: 1.4e-3, 3.0e-3, 6.5e-4."""

SPARE_REGULARISATION = 5e-5
"""Regularisation of the spare part of the mean along an eigenvector, as a fraction of the gap.
1,000 digits, six neighbours, after 800 steps: 4.6e-4 → 2.0e-4 without subtraction, 2.4e-5 with it;
a Swiss roll after 1,200: 4.3e-3 → 3.0e-4 and 6.4e-5. More eigenvectors gain nothing."""

SUFFICIENT_GAP_IN_TOLERANCES, MAX_DOUBLINGS = 0.9, 30
"""Gap, in tolerances, at which a bound is proved without the eigenvectors of its dual vector, and
the number of shifts tested."""

EIGENVALUE_GAP_FRACTION = 0.02
"""Error of λ_min, as a fraction of the allowed gap."""

MAX_DENSE_ORDER = 150
"""Order up to which all eigenvalues are cheaper than a sparse factor."""

FACTORS_PER_CERTIFICATE = 4
"""Approximate number of sparse factorisations per certificate."""

DENSE_MATRICES_PER_CERTIFICATE = 5
"""Dense matrices that a certificate allocates on a device."""


class MeanImage:
    """The image of the mean of iterates, each weighted by the square of its number.

    The dual vectors oscillate around their limit, and early ones are further away. 1,000 points of
    a Swiss roll, an S-curve and a roll with a hole after 125 steps, gap after three repairs: by
    this mean 6e-4, 1.1e-3 and 8e-4, by one of the last 25 steps 1.4e-3, 3.7e-3 and 2.9e-3, by the
    last iterate 7e-3, 7e-3 and 1.3e-2.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective, self.count, self.image = objective, 0, None

    def __call__(self, image: Any) -> None:
        self.count += 1
        mean = image if self.image is None else self.image
        self.image = toward(self.objective, mean, image, 3.0 / (self.count + 2))


class DualCandidate(NamedTuple):
    """A dual vector with the lowest eigenpairs of its pencil, and the resulting bound."""

    dual: Any
    form: Any
    found: PencilEigenpairs
    bound: float


class WhitenedBounds:
    """Certificates along a run in whitened coordinates."""

    def __init__(self, problem: Problem, place: Placing, settings: Settings) -> None:
        self.problem, self.place, self.settings = problem, place, settings
        self.bottoms = PencilBounds(settings.rng)
        self.vector: NDArray[np.float64] | None = None
        self.seconds: float | None = None
        self.bounds = Bounds(problem)

    def seconds_at(self, image: Any) -> float:
        """Approximate seconds of a certificate; 0 without factorisations."""
        if self.seconds is None:
            self._form(self.problem.objective.dual(image))
        return FACTORS_PER_CERTIFICATE * (self.seconds or 0.0)

    def certified(self, image: Any, mean: Any) -> tuple[Certificate, Array]:
        """The certificate of a point by the dual vector of another, and the dual vector used."""
        objective = self.problem.objective
        dual: Any = objective.dual(mean)
        form = self._form(dual)
        if form is None:
            return self._by(image, dual, self._bottom(dual, image))
        least = self._least(dual, image)
        found = self.bottoms.look(form, largest(dual), least)
        if found is None:
            return self._by(image, dual, UNKNOWN)
        best = self._seen(dual, form, found, least)
        at, value = mean, objective.value(image)
        for repairs, worth in enumerate(MAX_REPAIRED_GAPS_IN_TOLERANCES, start=1):
            gap = relative(value - best.bound, value, self.problem.scale)
            if not self.settings.tol < gap <= worth * self.settings.tol or self.settings.expired():
                break
            V = self._columns(found.vectors)
            at = repaired_along(
                objective, at, V, spare_along(image.factor, V, SPARE_REGULARISATION * gap)
            )
            if at is None:
                break
            trial: Any = objective.dual(at)
            form = self._form(trial)
            if form is None:
                break
            enough = self._enough(trial, value, least)
            if enough is not None and form.above(-enough).definite:
                return self._by(image, trial, Bottom(-enough, form.how))
            found = self.bottoms.look(form, largest(trial), least, repairs)
            if found is None:
                break
            seen = self._seen(trial, form, found, least)
            best = seen if seen.bound > best.bound else best
        return self._by(image, best.dual, self.bottoms.proved(best.form, best.found, least))

    def _seen(self, dual: Any, form: Any, found: PencilEigenpairs, least: float) -> DualCandidate:
        """The estimated bound of the dual vector."""
        known = known_bound(self.problem, dual, Bottom(found.value - least, ""))
        return DualCandidate(dual, form, found, -np.inf if known is None else known.value)

    def _enough(self, dual: Any, value: float, least: float) -> float | None:
        """The −λ_min, within a factor of 2, at which the gap is well within the tolerance.

        It is proved by one factorisation, without eigenvectors. None if even `least` is too much.
        """

        def suffices(shift: float) -> bool:
            known = known_bound(self.problem, dual, Bottom(-shift, ""))
            if known is None:
                return False
            gap = relative(value - known.value, value, self.problem.scale)
            return gap <= SUFFICIENT_GAP_IN_TOLERANCES * self.settings.tol

        doubled = takewhile(suffices, (least * 2.0**k for k in range(MAX_DOUBLINGS)))
        return max(doubled, default=None)

    def by_dual(self, image: Any, dual: Array) -> tuple[Certificate, Array]:
        """The certificate of a point by a dual vector that is (nearly) feasible."""
        return self._by(image, dual, self._bottom(dual, image))

    def _by(self, image: Any, dual: Any, bottom: Bottom) -> tuple[Certificate, Array]:
        """The certificate by this dual vector, or by a better one proved before."""
        known = known_bound(self.problem, dual, bottom)
        certificate, behind = self.bounds.look(image, UNKNOWN, known=known)
        return certificate, dual if behind is None else behind

    def _columns(self, vectors: Array) -> Array:
        """Vectors of all points except the first, in whitened coordinates."""
        xp = namespace(vectors)
        return contiguous(self.place(xp.concat([xp.zeros_like(vectors[:1]), vectors])))

    def _least(self, dual: Any, image: Any) -> float:
        """The −λ_min that is negligible in the gap: a shift t along all edges costs about t·p."""
        value = self.problem.objective.value(image)
        return EIGENVALUE_GAP_FRACTION * self.settings.tol * abs(value) / size(dual)

    def _form(self, dual: Any) -> SparseForm | DensePencil | None:
        """The pencil of a dual vector, if its factors and repairs are cheap enough."""
        operator = self.problem.objective.dual_operator(dual)
        if (
            operator.order <= MAX_DENSE_ORDER
            or size(dual) * EIGENVECTORS * (EIGENVECTORS + 1) // 2 > MAX_ENTRIES
        ):
            return None
        if not operator.place.is_host:
            need = DENSE_MATRICES_PER_CERTIFICATE * 8.0 * operator.order**2
            if need > operator.place.free_memory():
                return None
            self.seconds = dense_seconds(operator.order, operator.place)
            return DensePencil(self.problem.objective, dual)
        form = operator.form()
        if not isinstance(form, SparseForm):
            return None
        if self.seconds is None:
            self.seconds = form.seconds
        return (
            form
            if FACTORS_PER_CERTIFICATE * self.seconds <= self.settings.proof_seconds()
            else None
        )

    def _bottom(self, dual: Any, image: Any) -> Bottom:
        """λ_min if there is no such pencil, slightly lowered: 𝒜*(1) = I only up to rounding."""
        operator, settings = self.problem.objective.dual_operator(dual), self.settings
        share = needed(self.problem.objective.value(image), image.factor, settings)
        if operator.order > EXACT_ORDER and operator.place.is_host:
            start, rng = self.vector, settings.rng
            pair = leading_eigenpair(-operator, v0=start, tol=share, random_state=rng)
            self.vector = pair.vector
            found = Bottom(-pair.value - pair.residual, "Lanczos", 1.0, pair.vector)
        else:
            found = lowest(operator, wanted=share, seconds=settings.proof_seconds())
        return found.lowered(IDENTITY_ROUNDING)
