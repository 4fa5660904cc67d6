"""The lowest eigenpairs of a sparse pencil by one factorisation, which also proves a bound.

In whitened coordinates the operator of a dual vector w is RᵀGR. Its λ_min is that of the pencil
(G, P), where P is the Laplacian that R whitens. A sparse factor of G − tP with positive pivots
proves λ_min ≥ t, and solves with it converge to the eigenvalues next above t.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, takewhile
from typing import Any

import numpy as np

from gramian.arrays.dense import eigh
from gramian.arrays.places import backend, beside, contiguous, host
from gramian.common import clock
from gramian.common.types import Array
from gramian.proofs import Bottom, DenseForm, Factor
from gramian.proofs.base import Solve, place_of_matrix

EIGENVECTORS = 20
"""Eigenvectors computed."""

BLOCK_VECTORS, LANCZOS_BLOCKS = 8, 12
"""Vectors of a block of the Lanczos run, for which a factor is read once, and the number of blocks.
20,000 digits: 1.2 s for 20 blocks, against 3.0 s for a hundred single vectors, which find less.
With 12 instead of 20 the eigenvectors of 1,000 digits, and of 1,000 and 3,000 points of a Swiss
roll, take half of the time. The runs to 1e-3 have the same number of iterations and end with gaps
up to a quarter larger; those of 1,000 points to 1e-4 have the same number, too."""

FIRST_SHIFT, MAX_SHIFT_RATIO = 1e-3, 20.0
"""First shift, in units of w: a failed factorisation is faster than blocks from a distant shift;
and the largest ratio of shift to λ_min at which λ_min is accepted."""

SHIFT_BELOW_RATIO, SHIFT_GROWTH, MAX_SHIFTS = 1.5, 6.0, 12
"""Ratio of later shifts to the last λ_min; factor from one shift to the next; and maximum number of
shifts."""

PROOF_DISTANCE = 0.03
"""Relative distance below λ_min at which the proof is attempted."""


@dataclass(frozen=True)
class PencilEigenpairs:
    """An estimate of λ_min and the lowest eigenvectors, without the entry of the first point."""

    value: float
    vectors: Array
    shift: float
    """A probable lower bound on λ_min: the factorised matrix was G − shift·P."""


@dataclass
class PencilBounds:
    """λ_min of a sequence of pencils; each search starts from a previous λ_min."""

    rng: np.random.Generator
    last: dict[int, float] = field(default_factory=dict)
    """−λ_min of the last pencil by the number of repairs before it."""

    def look(
        self, form: Any, size: float, least: float, repairs: int = 0
    ) -> PencilEigenpairs | None:
        """The lowest eigenpairs of a pencil; None if no shift gives a definite factor.

        `size` is the magnitude of w, `least` the −λ_min that is negligible in the gap, and
        `repairs` the number of repairs of w, each of which makes −λ_min several times smaller.
        """
        last, before = self.last.get(repairs, 0.0), self.last.get(repairs - 1, 0.0)
        last = last or before / MAX_SHIFT_RATIO
        shift = max(SHIFT_BELOW_RATIO * last, least) if last > 0 else FIRST_SHIFT * size
        for _ in range(MAX_SHIFTS):
            found = self._next_above(form, shift)
            if found is not None:
                break
            shift *= SHIFT_GROWTH
        else:
            return None
        found = self._nearer(form, found, least)
        self.last[repairs] = max(-found.value, least)
        return found

    def _nearer(self, form: Any, found: PencilEigenpairs, least: float) -> PencilEigenpairs:
        """The eigenpairs computed with a shift closer to λ_min; a distant shift may miss it.

        A negligible λ_min is accepted: the proof decides.
        """
        if -found.value <= least:
            return found
        shift = max(SHIFT_BELOW_RATIO * -found.value, least)
        while MAX_SHIFT_RATIO * shift < -found.shift:
            again = self._next_above(form, shift)
            if again is not None:
                return again
            shift *= SHIFT_GROWTH
        return found

    def _next_above(self, form: Any, shift: float) -> PencilEigenpairs | None:
        """The eigenpairs next above −shift; None if there seem to be eigenvalues below."""
        factor = form.tried(-shift)
        if not factor.definite:
            return None
        assert factor.solve is not None
        values, vectors = next_above(form, -shift, factor.solve, self.rng)
        return PencilEigenpairs(float(values[0]), vectors, -shift)

    def proved(self, form: Any, found: PencilEigenpairs, least: float) -> Bottom:
        """A bound proved by a factorisation, slightly below the estimate if possible."""
        sharp = (1 + PROOF_DISTANCE) * max(-found.value, 0.0) + least
        sure = max(-found.shift, sharp)
        between = takewhile(lambda shift: shift < sure, (sharp * SHIFT_GROWTH**k for k in count()))
        for shift in (*between, sure, SHIFT_GROWTH * sure):
            if form.above(-shift).definite:
                return Bottom(-shift, form.how)
        return Bottom(-np.inf, form.how)


class DensePencil:
    """The pencil (G, P) of a dual vector w on a device, dense, without the first point.

    It is estimated in the coordinates of the points, where G − tP = 𝒜*(w − ts) + C is the sum of a
    few entries per edge, and proved in whitened coordinates, where P = I and errors are small
    relative to t.
    """

    how = DenseForm.how

    def __init__(self, objective: Any, w: Array) -> None:
        self.objective, self.w, self.map = objective, w, objective.map
        self.order, self.place = objective.order, objective.place
        self.unit = self.map.whitened_laplacian
        self.C = objective.C.matrix.dense()[1:, 1:]

    def tried(self, t: float) -> Factor:
        """The factor of G − tP without its error bound, and products with the inverse."""
        clock.check()
        A = self.map.distances.adjoint_matrix(self.w - t * self.map.kept)[1:, 1:] + self.C
        inverse = backend(A).inverse_factor(A)
        if inverse is None:
            return Factor(False)
        return Factor(True, lambda V: inverse.T @ (inverse @ V))

    def above(self, t: float) -> Factor:
        return self._whitened.above(t)

    @cached_property
    def _whitened(self) -> DenseForm:
        operator = self.objective.dual_operator(self.w)
        return DenseForm(operator.dense(), operator.slack())


def next_above(form: Any, t: float, solve: Solve, rng: np.random.Generator) -> tuple[Array, Array]:
    """The eigenvalues of the pencil (G, P) next above t, in ascending order, and their vectors.

    Computed by block Lanczos with (G − tP)⁻¹P in the inner product of P, with full
    reorthogonalisation.
    """
    order, place = form.order, place_of_matrix(form)
    steps = min(LANCZOS_BLOCKS, (order - 1) // BLOCK_VECTORS)
    basis = place.zeros((BLOCK_VECTORS * steps, order))
    small = np.zeros((BLOCK_VECTORS * steps,) * 2)
    V = place.normal(rng, (order, BLOCK_VECTORS))
    for start in range(0, BLOCK_VECTORS * steps, BLOCK_VECTORS):
        clock.check()
        stop = start + BLOCK_VECTORS
        for _ in range(2):
            V = _orthonormal(V - basis[:start].T @ (basis[:start] @ _image(form, V)), form)
        basis[start:stop] = V.T
        V = solve(_image(form, V))
        small[:stop, start:stop] = host(basis[:stop] @ _image(form, V))
    values, turn = eigh(np.triu(small) + np.triu(small, 1).T)
    chosen = np.argsort(-values)[:EIGENVECTORS]
    found = t + 1.0 / np.maximum(values[chosen], 1e-300)
    return found, contiguous(basis.T @ beside(basis, turn[:, chosen]))


def _image(form: Any, V: Array) -> Array:
    """PV."""
    return V if form.unit is None else form.unit @ V


def _orthonormal(V: Array, form: Any) -> Array:
    """Columns with the span of V, orthonormal in the inner product of P."""
    gram = host(V.T @ _image(form, V))
    values, turn = eigh(0.5 * (gram + gram.T))
    return V @ beside(V, turn / np.sqrt(np.maximum(values, 1e-14 * values[-1])))
