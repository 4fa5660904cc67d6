"""Alternating least squares for a block PQᵀ: conjugate gradients per row, and Anderson mixing.

For fixed Q, every row of P has a small least-squares problem of its own, and vice versa (Halves).
Three conjugate gradient steps from the current row decrease F about as much as its exact solution,
at a fraction of the cost. A sweep over both halves is a map x ↦ g(x) of Q alone, whose fixed points
are the stationary points of F; Anderson's mixing takes

    x⁺ = Σ_k α_k g(x_k)   with   α = argmin ‖Σ_k α_k (g(x_k) − x_k)‖,  Σ_k α_k = 1

over the last few sweeps. A mixture that increases F is rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.bounds import certify_image
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, at_rest, entering, needs_cone
from gramian.methods.columns import starting_factor, with_falling
from gramian.methods.loop import Progress, rounds
from gramian.objectives.halves import halves_of
from gramian.problem import Problem
from gramian.result import Status

CG_STEPS_PER_ROW, MIXED_SWEEPS = 3, 8
"""Conjugate gradient steps per row, and number of sweeps that are mixed."""

MIXING_RIDGE, FLOAT32_MIXING_RIDGE = 1e-10, 1e-6
"""Ridge of the normal equations of the mixing, relative to their trace; the second in float32."""

MAX_FLOAT64_ENTRIES = 5_000_000
"""Entries above which sweeps run in float32 (half the memory); certificates use float64."""

FLOAT32_TOL, MIN_FLOAT32_ENTRIES = 1e-4, 500_000
"""Smallest tolerance, and number of entries, from which sweeps run in float32 to save time: on
MovieLens 1M a gap of 1e-4 took 62 s of CPU time instead of 101 s."""

START_DIRECTIONS = 120
"""Directions of decrease at 0 from which sweeps start."""

RANDOM_COLUMN_SIZE = 0.3
"""Size of random columns relative to the factor."""

SWEEPS_PER_CERTIFICATE, MAX_QUIET_CHUNKS_LIMITED, MAX_QUIET_CHUNKS = 8, 3, 12
"""Sweeps between certificates, and consecutive chunks without progress that end the solver: at a
limited rank (the gap need not close), and otherwise. To 1e-8, ten chunks without progress occur."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept a problem; None if it accepts it."""
    if halves_of(problem.objective) is None:
        return "it needs squares of some entries of a block plus a multiple of the trace"
    return needs_cone(problem, settings)


@entering("alternating")
def alternating(
    problem: Problem, factor: Array, settings: Settings, *, chunk: int = SWEEPS_PER_CERTIFICATE
) -> Run:
    """Sweeps at the maximum rank, certified every `chunk` sweeps.

    Without a start they begin along directions in which F decreases.
    """
    if factor.shape[1] == 0:
        factor = with_falling(problem, factor, settings, settings.rank or START_DIRECTIONS)
    if factor.shape[1] == 0:
        factor = starting_factor(problem, settings)
    return (yield from certified(problem, factor, settings, chunk, certify_image))


def certified(
    problem: Problem,
    factor: Any,
    settings: Settings,
    chunk: int,
    certify: Callable[[Problem, Any], Certificate],
) -> Run:
    """Sweeps from a factor, on any device, certified every `chunk` sweeps."""
    sweeps, status = Sweeps(problem, factor, settings), at_rest(problem, settings)

    def advance(Y: Any) -> Any:
        return sweeps.take(chunk)

    def look(Y: Any, progress: Progress) -> Step:
        certificate = certify(problem, problem.objective.image(Y))
        return Step(Y, certificate.value, certificate)

    patience = MAX_QUIET_CHUNKS if status is Status.STALLED else MAX_QUIET_CHUNKS_LIMITED
    yield from rounds(factor, settings, advance, look, patience=patience, fall=1e-3)
    return status


class Sweeps:
    """Sweeps from a factor, with mixing of the lower half of their state.

    States and their halves belong to `halves`: arrays, or blocks on the workers of a cluster. They
    are only accessed by its methods and by `copy`.
    """

    def __init__(self, problem: Problem, factor: Any, settings: Settings) -> None:
        entries = problem.objective.facts.terms or 0
        self.rough = settings.tol >= FLOAT32_TOL and entries >= MIN_FLOAT32_ENTRIES
        """Whether sweeps run in float32 to save time, as the tolerance permits it."""
        dtype = np.float32 if self.rough or entries > MAX_FLOAT64_ENTRIES else np.float64
        self.problem, self.settings = problem, settings
        self.halves = halves_of(problem.objective, dtype)
        self.damping = MIXING_RIDGE if dtype == np.float64 else FLOAT32_MIXING_RIDGE
        self._begin(self.halves.state(factor))

    def _begin(self, state: Any) -> None:
        """Start from a state, without earlier sweeps to mix."""
        self.state = state
        self.kept = state.copy()
        """The last state whose lower half is g(x) itself, to which the mixing is applied."""
        self.value = np.inf
        """F in the middle of the sweep that led to it."""
        self.points: list[Any] = []
        self.changes: list[Any] = []

    def restart(self, factor: Any) -> None:
        """Continue from another factor, with its optimal offsets."""
        self._begin(self.halves.state(factor))

    def widen(self, count: int) -> None:
        """Add up to `count` columns along which F decreases."""
        settings, own = self.settings, self.kept.shape[1]
        if self.halves.plain:
            wide = self.halves.with_falling(self.kept, count, settings.rng)
        else:
            factor = self.halves.factor(self.kept)
            wide = self.halves.state(with_falling(self.problem, factor, settings, count))
        if wide.shape[1] > own:
            self._begin(wide)

    def take(self, count: int) -> Any:
        """The factor after `count` more sweeps."""
        for _ in range(count):
            self._sweep()
            if self.settings.expired():
                break
        return self.halves.factor(self.kept)

    def _sweep(self) -> None:
        self.halves.refit_upper(self.state, CG_STEPS_PER_ROW)
        before = self.halves.lower_of(self.state)
        value = self.halves.refit_lower(self.state, CG_STEPS_PER_ROW)
        if self.points and not value <= self.value:
            self.points, self.changes = [], []
            self.state = self.kept.copy()
            return
        self.value, self.kept = value, self.state.copy()
        plain = self.halves.lower_of(self.kept)
        self.points = [*self.points[-MIXED_SWEEPS:], plain]
        self.changes = [*self.changes[-MIXED_SWEEPS:], self.halves.change(before, plain)]
        weights = self._weights()
        if weights is not None:
            self.halves.set_lower(self.state, self.halves.mixture(self.points, weights))

    def _weights(self) -> Array | None:
        """The weights of Σ_k α_k g(x_k) on differences of consecutive g(x); None for g(x) alone."""
        products = self.halves.products(self.changes)
        size = float(np.trace(products[:, :-1]))
        if not size > np.finfo(products.dtype).tiny:  # the first sweep, or changes that underflow
            return None
        gram, right = products[:, :-1] / size, products[:, -1] / size
        gram[np.diag_indices_from(gram)] += self.damping
        return np.linalg.solve(gram, right)
