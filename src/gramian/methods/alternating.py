"""Alternating least squares for a block PQᵀ: a few conjugate gradients a row, then mixed.

With Q held, every row of P has a small least-squares problem of its own, and the other way round
(Halves). Three steps of conjugate gradients from where the row is fall about as far as its exact
solution, at a fraction of the cost. A sweep over both halves is a map x ↦ g(x) of Q alone, whose
fixed points are the stationary ones of F; Anderson's mixing takes

    x⁺ = Σ_k α_k g(x_k)   with   α = argmin ‖Σ_k α_k (g(x_k) − x_k)‖,  Σ_k α_k = 1

over the last few sweeps. A mixture that F does not like is taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.bounds import certify_image
from gramian.certificate import Certificate
from gramian.methods.base import Run, Settings, Step, at_rest, entering, needs_cone
from gramian.methods.columns import starting_factor, with_falling
from gramian.methods.loop import Progress, rounds
from gramian.objectives.halves import halves_of
from gramian.problem import Problem
from gramian.result import Status

Array = NDArray[np.floating]

STEPS, DEPTH = 3, 8
"""Steps of conjugate gradients a row, and sweeps that are mixed."""

DAMPING, SINGLE_DAMPING = 1e-10, 1e-6
"""What the mixing's normal equations are lifted by, of their trace; the second in float32."""

SINGLE = 5_000_000
"""Entries above which sweeps run in float32: half the bytes, and certificates stay in float64."""

FIRST = 120
"""Directions in which F falls at 0 that sweeps begin with."""

SPARE = 0.3
"""The size of columns in random directions, beside those that carry something."""

CHUNK, PATIENCE, HOPE = 8, 3, 12
"""Sweeps between certificates, and chunks running without a change that end the solver: fewer where
a limit of the rank may leave a gap. To 1e-8 sweeps have stood still for ten."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Why it cannot take a problem."""
    if halves_of(problem.objective) is None:
        return "it needs squares of some entries of a block beside a multiple of the trace"
    return needs_cone(problem, settings)


@entering("alternating")
def alternating(problem: Problem, factor: Array, settings: Settings, *, chunk: int = CHUNK) -> Run:
    """Sweeps at the rank allowed, certified every `chunk` of them.

    They begin along directions in which F falls, where no start is given.
    """
    if factor.shape[1] == 0:
        factor = with_falling(problem, factor, settings, settings.rank or FIRST)
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
    """Sweeps from a factor, wherever it is, certified every `chunk` of them."""
    sweeps, status = Sweeps(problem, factor, settings), at_rest(problem, settings)

    def advance(Y: Any) -> Any:
        return sweeps.take(chunk)

    def look(Y: Any, progress: Progress) -> Step:
        certificate = certify(problem, problem.objective.image(Y))
        return Step(Y, certificate.value, certificate)

    patience = HOPE if status is Status.STALLED else PATIENCE
    yield from rounds(factor, settings, advance, look, patience=patience, fall=1e-3)
    return status


class Sweeps:
    """Sweeps from a factor, the lower half of their state mixed.

    States and their halves are what `halves` makes of them, arrays here and blocks on the workers
    of a cluster: nothing is asked of them but by its methods, and `copy`.
    """

    def __init__(self, problem: Problem, factor: Any, settings: Settings) -> None:
        entries = problem.objective.facts.terms or 0
        dtype = np.float32 if entries > SINGLE else np.float64
        self.halves, self.settings = halves_of(problem.objective, dtype), settings
        self.damping = DAMPING if dtype == np.float64 else SINGLE_DAMPING
        self.state = self.halves.state(factor)
        self.kept = self.state.copy()
        """The last state whose lower half is g(x) itself, from which the mixture goes on."""
        self.value = np.inf
        """F in the middle of the sweep that led there."""
        self.points: list[Any] = []
        self.changes: list[Any] = []

    def take(self, count: int) -> Any:
        """The factor after `count` sweeps more."""
        for _ in range(count):
            self._sweep()
            if self.settings.expired():
                break
        return self.halves.factor(self.kept)

    def _sweep(self) -> None:
        self.halves.refit_upper(self.state, STEPS)
        before = self.halves.lower_of(self.state)
        value = self.halves.refit_lower(self.state, STEPS)
        if self.points and not value <= self.value:
            self.points, self.changes = [], []
            self.state = self.kept.copy()
            return
        self.value, self.kept = value, self.state.copy()
        plain = self.halves.lower_of(self.kept)
        self.points = [*self.points[-DEPTH:], plain]
        self.changes = [*self.changes[-DEPTH:], self.halves.change(before, plain)]
        weights = self._weights()
        if weights is not None:
            self.halves.set_lower(self.state, self.halves.mixture(self.points, weights))

    def _weights(self) -> Array | None:
        """What Σ_k α_k g(x_k) takes of each move from one g(x) to the next; None for g(x) alone."""
        told = self.halves.products(self.changes)
        size = float(np.trace(told[:, :-1]))
        if not size > np.finfo(told.dtype).tiny:  # the first sweep, or changes that underflow
            return None
        gram, right = told[:, :-1] / size, told[:, -1] / size
        gram[np.diag_indices_from(gram)] += self.damping
        weights: Array = np.linalg.solve(gram, right)
        return weights
