"""L-BFGS with more columns than the optimum has, for optima of high rank."""

from __future__ import annotations

from collections.abc import Iterator

from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, entering
from gramian.methods.columns import compress, without_weak
from gramian.methods.lbfgs import descend
from gramian.methods.loop import (
    ADDED_COLUMNS,
    FIRST_COLUMNS,
    Certifier,
    GrowingColumns,
    Progress,
    rounds,
)
from gramian.methods.room import wide_rank
from gramian.methods.staircase import staircase
from gramian.problem import Problem

ROUND_STEPS, DEVICE_ROUND_STEPS = (10, 80), (60, 160)
"""L-BFGS steps of the first round and of the longest; on a device a pass with few columns costs
as much as one with many."""

DEVICE_ADDED_COLUMNS = 24, 24
"""Directions of decrease added in a round on a device. On an H200 MovieLens 1M to 1e-4 takes 0.90 s
with these and 1.04 s with up to 96; on the host up to 96 save a fifth of the time at 1e-6."""

CORRECTION_PAIRS = 6
"""Correction pairs of L-BFGS: twenty cost as much as the objective and do not reduce the steps."""


@entering("growing")
def growing(problem: Problem, factor: Array, settings: Settings) -> Run:
    """L-BFGS with spare columns, twice as many if all are used; then the staircase."""
    for step in _descent(problem, factor, settings):
        factor = step.factor
        yield step
    return (yield from staircase(problem, compress(factor, factor.shape[1]), settings))


def _descent(problem: Problem, factor: Array, settings: Settings) -> Iterator[Step]:
    """Rounds of L-BFGS, each twice as long as the previous one unless columns are missing."""
    objective, here = problem.objective, problem.objective.place.is_host
    least = FIRST_COLUMNS if here else wide_rank(problem.order)
    added = ADDED_COLUMNS if here else DEVICE_ADDED_COLUMNS
    columns = GrowingColumns(problem, settings, least, added)
    looks = Certifier(problem, settings, repair=True)
    count, most = ROUND_STEPS if here else DEVICE_ROUND_STEPS

    def advance(Y: Array) -> Array:
        return without_weak(
            descend(objective, Y, settings, iterations=count, memory=CORRECTION_PAIRS)
        )

    def look(Y: Array, progress: Progress) -> Step:
        return looks.at(objective.image(Y))

    def resize(Y: Array, progress: Progress) -> Array:
        nonlocal count
        count = count if columns.full(Y) else min(2 * count, most)
        return columns.resize(Y, progress)

    start = columns.start(factor)
    yield from rounds(start, settings, advance, look, resize, patience=2, closer=0.7)
