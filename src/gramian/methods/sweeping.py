"""Alternating sweeps with spare columns, for the completion of large matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gramian.common.types import Array
from gramian.methods.alternating import FLOAT32_TOL, Sweeps
from gramian.methods.base import Run, Settings, Step, entering
from gramian.methods.columns import WEAK_COLUMN_RATIO, compress, leanest, without_weak
from gramian.methods.loop import Certifier, Progress, rounds
from gramian.methods.staircase import staircase
from gramian.problem import Problem

FIRST_COLUMNS = 240
"""Columns at the start. With more columns than the optimum has, λ_min converges faster: after 6
sweeps of MovieLens 1M (rank 170) the gap is 2,048, 702 and 568 from 200, 240 and 300 columns."""

LEAN_COLUMN_RATIO = 1e-4
"""Squared length, relative to the largest, of columns that a certified point of a low accuracy
does without, if F does not rise. MovieLens 100K to 1e-3 ends with 93 columns instead of 142, 1M to
1e-4 with 196 instead of 239, in the same time."""

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
    objective, sweeps = problem.objective, Sweeps(problem, factor, settings)
    rough = sweeps.rough
    looks = Certifier(problem, settings, repair=rough, block=rough)
    sweeps.widen(FIRST_COLUMNS)
    start = sweeps.take(0)
    if not start.shape[1]:
        return

    def advance(Y: Array) -> Array:
        return sweeps.take(SWEEPS_PER_ROUND)

    def look(Y: Array, progress: Progress) -> Step:
        whole, spare = objective.image(Y), 1e-2 * settings.tol
        weakest = LEAN_COLUMN_RATIO if settings.tol >= FLOAT32_TOL else WEAK_COLUMN_RATIO
        return looks.at(leanest(problem, whole, spare, weakest=weakest))

    def resize(Y: Array, progress: Progress) -> Array:
        live = without_weak(Y)
        if live.shape[1] == Y.shape[1] < problem.order and not progress.closer:
            sweeps.widen(int(np.clip(Y.shape[1] // 2, *ADDED_COLUMNS)))
        elif live.shape[1] <= MAX_USED_FRACTION * Y.shape[1]:
            sweeps.restart(live)
        return Y

    yield from rounds(start, settings, advance, look, resize, patience=3, closer=0.5)
