"""A rough factor to compare weights: a few steps at a fixed rank, without a certificate."""

from __future__ import annotations

from typing import Any

from gramian.common.random_state import generator
from gramian.common.types import Array
from gramian.methods.alternating import RANDOM_COLUMN_SIZE, Sweeps
from gramian.methods.base import Settings
from gramian.methods.columns import starting_factor, with_falling, with_noise
from gramian.methods.growing import CORRECTION_PAIRS
from gramian.methods.lbfgs import descend
from gramian.objectives.halves import halves_of
from gramian.problem import Problem

ROUGH_SWEEPS, ROUGH_STEPS = 3, 24
"""Sweeps if rows can be solved one by one, otherwise L-BFGS steps."""


def rough(problem: Problem, factor: Array | None, *, rank: int, random_state: Any = None) -> Array:
    """A factor of that rank a few steps from `factor`, or from the steepest directions at 0.

    Missing columns are filled with random ones, which another weight may need.
    """

    settings = Settings(rank=rank, tol=1e-3, rng=generator(random_state))
    if factor is None:
        nothing = problem.objective.place.zeros((problem.order, 0))
        factor = with_falling(problem, nothing, settings, rank)
    if factor.shape[1] == 0:
        factor = starting_factor(problem, settings)
    factor = with_noise(factor, max(rank - factor.shape[1], 0), RANDOM_COLUMN_SIZE, settings)
    if halves_of(problem.objective) is not None:
        return Sweeps(problem, factor, settings).take(ROUGH_SWEEPS)
    return descend(
        problem.objective, factor, settings, iterations=ROUGH_STEPS, memory=CORRECTION_PAIRS
    )
