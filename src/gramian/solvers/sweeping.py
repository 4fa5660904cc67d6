"""Alternating sweeps with columns to spare: the quick way to complete a large matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.certificate import certify_image
from gramian.objectives import Objective
from gramian.objectives.halves import halves_of
from gramian.problem import Problem
from gramian.solvers.alternating import FIRST, SPARE, Sweeps
from gramian.solvers.base import Run, Settings, Step, compress
from gramian.solvers.growing import bottom_of, needed, with_falling, with_noise, without_weak
from gramian.solvers.staircase import staircase

Array = NDArray[np.floating]
Vector = NDArray[np.float64]

FEW = 24
"""Random columns to begin with, where products are dear."""

MORE = 24, 160
"""Columns that are added where there are not enough: half of those there are, within these."""

SWEEPS, PATIENCE = 4, 3
"""Sweeps between certificates, and how many of those running may show nothing new."""

SLOW, WEAK = 0.5, 0.8
"""Columns are added where all carry something and the gap is above this part of the last, and left
out where no more than this part of them do."""


def sweeping(problem: Problem, factor: Array, settings: Settings) -> Run:
    """Sweeps with more columns than the optimum has, then the staircase for what they leave."""
    settings.enters("alternating")
    for step in _sweeps(problem, factor, settings):
        factor = step.factor
        yield step
    return (yield from staircase(problem, compress(factor, factor.shape[1]), settings))


def _sweeps(problem: Problem, Y: Array, settings: Settings) -> Iterator[Step]:
    """Sweeps, certified every few of them, while F or the gap falls."""
    objective, last, last_gap = problem.objective, np.inf, np.inf
    vector: Vector | None = None
    Y = _widened(problem, Y, settings, FIRST)
    sweeps = Sweeps(problem, Y, settings)
    stalls = 0
    while Y.shape[1] and stalls < PATIENCE:
        Y = sweeps.take(SWEEPS)
        live = without_weak(Y)
        image, value = _fewest(objective, Y, live, settings.tol)
        bottom, vector = bottom_of(objective.gradient(image), vector, needed(value, Y, settings))
        certificate = certify_image(problem, image, bottom=bottom)
        yield Step(image.factor, value, certificate)
        gap = np.inf if certificate.gap is None else certificate.gap
        still = last - value <= 1e-2 * settings.tol * abs(value) and not gap < last_gap
        stalls = stalls + 1 if still else 0
        if live.shape[1] == Y.shape[1] < problem.order and gap > SLOW * last_gap:
            more = int(np.clip(Y.shape[1] // 2, *MORE))
            sweeps = Sweeps(problem, _widened(problem, Y, settings, more), settings)
        elif live.shape[1] <= WEAK * Y.shape[1]:
            sweeps = Sweeps(problem, live, settings)
        last, last_gap = value, gap


def _fewest(objective: Objective, Y: Array, live: Array, tol: float) -> tuple[Any, float]:
    """The image of the columns that carry something, where F is hardly more for the others' loss,
    and F there.
    """
    image = objective.image(Y)
    value = objective.value(image)
    if live.shape[1] < Y.shape[1]:
        fewer = objective.image(live)
        less = objective.value(fewer)
        if less <= value + 1e-2 * tol * abs(value):
            return fewer, less
    return image, value


def _widened(problem: Problem, Y: Array, settings: Settings, more: int) -> Array:
    """Y and columns along which F falls, a quarter as many again in random directions.

    Where products are dear all are random: sweeps turn them as well.
    """
    if problem.objective.facts.remote:
        return _with_random(problem.objective, Y, settings, more)
    wide = with_falling(problem, Y, settings, more)
    spare = min(wide.shape[1] // 4, problem.order - wide.shape[1])
    return with_noise(wide, spare, SPARE, settings)


def _with_random(objective: Objective, Y: Array, settings: Settings, more: int) -> Array:
    if Y.shape[1]:
        return with_noise(Y, min(more, objective.order - Y.shape[1]), SPARE, settings)
    halves = halves_of(objective)
    factor: Array = halves.factor(halves.scattered(settings.rng, min(FEW, objective.order)))
    return factor
