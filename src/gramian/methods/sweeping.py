"""Alternating sweeps with spare columns, for the completion of large matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gramian.methods.alternating import RANDOM_COLUMN_SIZE, START_DIRECTIONS, Sweeps
from gramian.methods.base import Run, Settings, Step, entering
from gramian.methods.columns import compress, leanest, with_falling, with_noise, without_weak
from gramian.methods.loop import Certifier, Progress, rounds
from gramian.methods.staircase import staircase
from gramian.problem import Problem

Array = NDArray[np.floating]

ADDED_COLUMNS = 24, 160
"""Columns added if all are used: half the present number, within these limits."""

SWEEPS_PER_ROUND = 4
"""Sweeps per round."""

MAX_USED_FRACTION = 0.8
"""Fraction of columns that are not weak up to which the weak ones are dropped."""


@entering("alternating")
def sweeping(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Sweeps with more columns than the optimum has, then the staircase."""
    for step in _descent(problem, factor, settings):
        factor = step.factor
        yield step
    return (yield from staircase(problem, compress(factor, factor.shape[1]), settings))


def _descent(problem: Problem, factor: Array, settings: Settings) -> Iterator[Step]:
    """Rounds of sweeps, which restart when the columns change."""
    objective, looks = problem.objective, Certifier(problem, settings)
    start = _widened(problem, factor, settings, START_DIRECTIONS)
    if not start.shape[1]:
        return
    sweeps = Sweeps(problem, start, settings)

    def advance(Y: Array) -> Array:
        return sweeps.take(SWEEPS_PER_ROUND)

    def look(Y: Array, progress: Progress) -> Step:
        return looks.at(leanest(problem, objective.image(Y), 1e-2 * settings.tol))

    def resize(Y: Array, progress: Progress) -> Array:
        nonlocal sweeps
        live = without_weak(Y)
        if live.shape[1] == Y.shape[1] < problem.order and not progress.closer:
            Y = _widened(problem, Y, settings, int(np.clip(Y.shape[1] // 2, *ADDED_COLUMNS)))
        elif live.shape[1] <= MAX_USED_FRACTION * Y.shape[1]:
            Y = live
        else:
            return Y
        sweeps = Sweeps(problem, Y, settings)
        return Y

    yield from rounds(start, settings, advance, look, resize, patience=3, closer=0.5)


def _widened(problem: Problem, Y: Array, settings: Settings, more: int) -> Array:
    """Y with columns along which F decreases, and a quarter as many in random directions."""
    wide = with_falling(problem, Y, settings, more)
    spare = min(wide.shape[1] // 4, problem.order - wide.shape[1])
    return with_noise(wide, spare, RANDOM_COLUMN_SIZE, settings)
