"""Alternating least squares for a block PQᵀ: a few conjugate gradients a row, then mixed.

With Q held, every row of P has a small least-squares problem of its own, and the other way round
(Halves). Three steps of conjugate gradients from where the row is fall about as far as its exact
solution, at a fraction of the cost. A sweep over both halves is a map x ↦ g(x) of Q alone, whose
fixed points are the stationary ones of F; Anderson's mixing takes

    x⁺ = Σ_k α_k g(x_k)   with   α = argmin ‖Σ_k α_k (g(x_k) − x_k)‖,  Σ_k α_k = 1

over the last few sweeps. A mixture that F does not like is taken back.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gramian.certificate import certify_image
from gramian.problem import Problem
from gramian.solvers.base import Run, Settings, Step, at_rest, needs_cone, starting_factor
from gramian.solvers.growing import with_falling

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

CHUNK, PATIENCE = 8, 3
"""Sweeps between certificates, and chunks running without a change that end the solver."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """Why it cannot take a problem."""
    if problem.objective.halves() is None:
        return "it needs squares of some entries of a block beside a multiple of the trace"
    return needs_cone(problem, settings)


def alternating(problem: Problem, factor: Array, settings: Settings, *, chunk: int = CHUNK) -> Run:
    """Sweeps at the rank allowed, certified every `chunk` of them.

    They begin along directions in which F falls, where no start is given.
    """
    settings.enters("alternating")
    if factor.shape[1] == 0:
        factor = with_falling(problem, factor, settings, settings.rank or FIRST)
    if factor.shape[1] == 0:
        factor = starting_factor(problem, settings)
    sweeps, value, gap, quiet = Sweeps(problem, factor, settings), np.inf, np.inf, 0
    while quiet < PATIENCE:
        factor = sweeps.take(chunk)
        image = problem.objective.image(factor)
        certificate = certify_image(problem, image)
        falls = value - certificate.value > 1e-3 * settings.tol * abs(value)
        now = np.inf if certificate.gap is None else certificate.gap
        quiet = 0 if falls or now < 0.9 * gap else quiet + 1
        value, gap = certificate.value, min(gap, now)
        yield Step(factor, value, certificate)
    return at_rest(problem, settings)


class Sweeps:
    """Sweeps from a factor, the lower half of their state mixed."""

    def __init__(self, problem: Problem, factor: Array, settings: Settings) -> None:
        entries = problem.objective.sees or 0
        dtype = np.float32 if entries > SINGLE else np.float64
        self.halves, self.settings = problem.objective.halves(dtype), settings
        self.damping = DAMPING if dtype == np.float64 else SINGLE_DAMPING
        self.state = self.halves.state(factor)
        self.mixed = self.state[self.halves.split :]
        self.kept = self.state.copy()
        """The last state whose lower half is g(x) itself, from which the mixture goes on."""
        self.value = np.inf
        """F in the middle of the sweep that led there."""
        self.points: list[Array] = []
        self.changes: list[Array] = []

    def take(self, count: int) -> Array:
        """The factor after `count` sweeps more."""
        for _ in range(count):
            self._sweep()
            if self.settings.expired():
                break
        factor: Array = self.halves.factor(self.kept)
        return factor

    def _sweep(self) -> None:
        self.halves.refit_upper(self.state, STEPS)
        before = self.mixed.copy()
        value = self.halves.refit_lower(self.state, STEPS)
        if self.points and not value <= self.value:
            self.points, self.changes = [], []
            self.state[:] = self.kept
            return
        self.value, self.kept = value, self.state.copy()
        plain = self.kept[self.halves.split :]
        self.points = [*self.points[-DEPTH:], plain]
        self.changes = [*self.changes[-DEPTH:], plain - before]
        self.mixed[:] = self._mixture()

    def _mixture(self) -> Array:
        """Σ_k α_k g(x_k), by the differences of one sweep from the last."""
        steps, moves = ([b - a for a, b in pairwise(seen)] for seen in (self.changes, self.points))
        gram = np.array([[np.vdot(a, b) for b in steps] for a in steps])
        if not np.any(gram):  # the first sweep, or one that changes nothing
            return self.points[-1]
        gram[np.diag_indices_from(gram)] += self.damping * np.trace(gram)
        weights = np.linalg.solve(gram, [np.vdot(a, self.changes[-1]) for a in steps])
        mixture = self.points[-1].copy()
        for weight, move in zip(weights, moves, strict=True):
            mixture -= weight * move
        return mixture
