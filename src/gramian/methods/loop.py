"""The loop of a solve: advance the point, certify it, resize its columns.

    while time remains:
        point = advance(point)                  a pure step: L-BFGS, row sweeps, a user's function
        certificate = bounds.look(point)        keeps the best bound
        if the gap is within tol: stop          decided by `minimize`
        point = resize(point)                   adds columns where F decreases, drops weak ones

Methods differ in how they advance, in the accuracy of the certificate, and in how they resize.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import inner
from gramian.bounds import Bounds, known_bound
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.linalg import leading_eigenpair
from gramian.linalg.subspace import subspace_pairs
from gramian.methods.base import Run, Settings, Solver, Step, accepts_all, at_rest
from gramian.methods.columns import starting_factor, with_falling, with_noise, without_weak
from gramian.methods.repair import repaired
from gramian.problem import Problem, as_factor
from gramian.proofs import EXACT_ORDER, Bottom, lowest

Vector = NDArray[np.float64]

IDENTITY_ROUNDING = 1e-9
"""Relative error of a matrix 𝒜*(1) that should be the identity."""

MAX_REPAIRED_GAP_IN_TOLERANCES = 10.0
"""Largest gap, in tolerances, at which the dual vector is repaired."""

BLOCK_VECTORS, BLOCK_ROUNDS, BLOCK_GAP_FRACTION = 4, 16, 0.3
"""Vectors and rounds for λ_min of a repaired dual vector, and the fraction of the allowed gap that
its residual may use. On MovieLens 1M they take 0.8 s, and ARPACK to the same residual 3 s."""

FIRST_COLUMNS, SPARE_COLUMNS = 12, 2
"""Columns at the start, and columns in addition to those that are not weak."""

ADDED_COLUMNS = 24, 96
"""Directions of decrease added in a round: half the number of columns, within these limits."""

SPARE_SIZE = 1e-3
"""Size of the spare columns, relative to the factor."""


@dataclass(frozen=True)
class Progress:
    """The progress of the last round of a loop."""

    value: float = np.inf
    gap: float = np.inf
    """The smallest gap so far."""
    falls: bool = True
    """Whether F decreased by more than a small fraction of the tolerance."""
    closer: bool = True
    """Whether the gap became clearly smaller."""


def rounds(
    point: Any,
    settings: Settings,
    advance: Callable[[Any], Any],
    look: Callable[[Any, Progress], Step],
    resize: Callable[[Any, Progress], Any] = lambda point, progress: point,
    *,
    patience: int,
    fall: float = 1e-2,
    closer: float = 0.9,
) -> Iterator[Step]:
    """The steps of the loop, until `patience` consecutive rounds make no progress.

    A round makes progress if F decreases by more than `fall`·tol·|F|, or if the gap is less than
    `closer` times the smallest one before.
    """
    progress, quiet = Progress(), 0
    while quiet < patience:
        point = advance(point)
        step = look(point, progress)
        yield step
        gap = np.inf if step.certificate is None else step.certificate.gap
        gap = np.inf if gap is None else gap
        falls = progress.value - step.value > fall * settings.tol * abs(step.value)
        nearer = gap < closer * progress.gap
        quiet = 0 if falls or nearer else quiet + 1
        progress = Progress(step.value, min(gap, progress.gap), falls, nearer)
        point = resize(point, progress)


class Certifier:
    """Certificates along a run, with λ_min as accurate as the tolerance requires."""

    def __init__(
        self, problem: Problem, settings: Settings, *, repair: bool = False, block: bool = False
    ) -> None:
        self.problem, self.settings, self.repair = problem, settings, repair
        self.block = block
        """Whether λ_min of a repaired dual vector is computed by products with blocks."""
        self.bounds = Bounds(problem, keep_estimates=repair)
        self.vector: Vector | None = None
        """The last leading eigenvector, the start of the next Lanczos run."""

    def at(self, image: Any) -> Step:
        """The point with its certificate and the dual vector of that."""
        value = self.problem.objective.value(image)
        gradient = self.problem.objective.gradient(image)
        enough = needed(value, image.factor, self.settings)
        bottom, self.vector = bottom_of(gradient, self.vector, enough)
        certificate, dual = self.bounds.look(image, bottom)
        if self.repair:
            certificate, dual = self._repaired(image, bottom, certificate, dual)
        return Step(image.factor, value, certificate, dual=dual)

    def _repaired(
        self, image: Any, bottom: Bottom, certificate: Certificate, dual: Any
    ) -> tuple[Certificate, Any]:
        """The certificate by a repaired dual vector, if the gap is close to the tolerance."""
        gap, tol, objective = certificate.relative_gap, self.settings.tol, self.problem.objective
        if gap is None or not tol < gap <= MAX_REPAIRED_GAP_IN_TOLERANCES * tol:
            return certificate, dual
        moved = repaired(objective, image, self.settings.rng)
        if moved is None:
            return certificate, dual
        w: Any = objective.dual(moved)
        operator = objective.dual_operator(w)
        if self.block and operator.order > EXACT_ORDER:
            below = self._bottom_by_block(operator, image)
        else:
            value = objective.value(image)
            below, _ = bottom_of(operator, self.vector, needed(value, image.factor, self.settings))
        return self.bounds.look(image, bottom, known=known_bound(self.problem, w, below))

    def _bottom_by_block(self, operator: Any, image: Any) -> Bottom:
        """λ_min from the range of the factor and random columns."""
        value, L = self.problem.objective.value(image), image.factor
        enough = BLOCK_GAP_FRACTION * self.settings.tol * abs(value) / max(inner(L, L), 1e-300)
        start = with_noise(L, BLOCK_VECTORS, SPARE_SIZE, self.settings)
        found = subspace_pairs(-operator, start, BLOCK_VECTORS, rounds=BLOCK_ROUNDS, enough=enough)
        bottom = Bottom(-float(found.values[0] + found.residuals[0]), "Lanczos", 1.0)
        return bottom.lowered(IDENTITY_ROUNDING)


def bottom_of(gradient: Any, vector: Vector | None, tol: float) -> tuple[Bottom, Vector | None]:
    """A lower bound on λ_min, exact up to `EXACT_ORDER`, otherwise by Lanczos.

    It is lowered slightly, since 𝒜*(1) = I holds only up to rounding.
    """
    if gradient.order <= EXACT_ORDER:
        found = lowest(gradient)
    else:
        pair = leading_eigenpair(-gradient, v0=vector, tol=tol, random_state=0)
        found, vector = Bottom(-pair.value - pair.residual, "Lanczos", 1.0), pair.vector
    return found.lowered(IDENTITY_ROUNDING), vector


def needed(value: float, Y: Array, settings: Settings) -> float:
    """The residual of λ_min, relative to ‖∇F‖, that is negligible in the gap."""
    allowed = 0.1 * settings.tol * abs(value) / max(inner(Y, Y), 1e-300)
    return float(np.clip(allowed, 1e-10, 1e-4))


class GrowingColumns:
    """Columns whose number grows to the rank of the optimum."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        least: int = FIRST_COLUMNS,
        added: tuple[int, int] = ADDED_COLUMNS,
    ) -> None:
        self.problem, self.settings, self.least, self.added = problem, settings, least, added
        self.wide = 0
        """Columns at the start of the last round."""

    def start(self, Y: Array) -> Array:
        """The given factor with spare columns, or a random one if it has no columns."""
        if Y.shape[1] == 0:
            columns = min(self.settings.rank or self.least, self.least, self.problem.order)
            Y = starting_factor(self.problem, self.settings, columns)
            self.wide = Y.shape[1]
            return Y
        return self._with_spare(Y, full=False)

    def full(self, Y: Array) -> bool:
        """Whether no column is weak and more are allowed."""
        return bool(self.wide <= Y.shape[1] < self._most())

    def resize(self, Y: Array, progress: Progress) -> Array:
        """Y with columns along which F decreases and spare ones: twice as many if all are used."""
        full = self.full(Y)
        more = int(np.clip(Y.shape[1] // 2, *self.added))
        if more := min(more, self._most() - Y.shape[1]):
            Y = with_falling(self.problem, Y, self.settings, more)
        return self._with_spare(Y, full)

    def _with_spare(self, Y: Array, full: bool) -> Array:
        spare = max(SPARE_COLUMNS, self.least - Y.shape[1], Y.shape[1] if full else 0)
        spare = max(0, min(spare, self._most() - Y.shape[1]))
        self.wide = Y.shape[1] + spare
        return with_noise(Y, spare, SPARE_SIZE, self.settings) if spare else Y

    def _most(self) -> int:
        return self.settings.rank or self.problem.order


def by_function(advance: Callable[..., Any]) -> Solver:
    """A solver from a function `advance(problem, L, settings)` that returns a better factor."""
    name = getattr(advance, "__name__", type(advance).__name__)

    def run(problem: Problem, factor: Array, settings: Settings) -> Run:
        return _advanced(problem, factor, settings, advance)

    return Solver(name, run, "a function of the user", "depends on the function", accepts_all)


def _advanced(
    problem: Problem, factor: Array, settings: Settings, advance: Callable[..., Any]
) -> Run:
    """The loop around a function of the user, over the cone or at a fixed trace."""
    objective, domain = problem.objective, problem.domain
    columns, looks = GrowingColumns(problem, settings), Certifier(problem, settings)

    def advanced(Y: Array) -> Array:
        L = as_factor(advance(problem, Y, settings), problem.order, objective.place)
        return without_weak(domain.rescale(L))

    def look(Y: Array, progress: Progress) -> Step:
        return looks.at(objective.image(Y))

    def resize(Y: Array, progress: Progress) -> Array:
        if progress.falls or progress.closer:
            return Y
        if domain.bounded:
            spare = min(SPARE_COLUMNS, problem.order - Y.shape[1])
            return domain.rescale(with_noise(Y, spare, SPARE_SIZE, settings))
        return columns.resize(Y, progress)

    start = domain.rescale(columns.start(factor))
    yield from rounds(start, settings, advanced, look, resize, patience=3)
    return at_rest(problem, settings)
