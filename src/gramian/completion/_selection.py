"""The choice of λ by held-out entries: a path of warm solves, and the mean error of splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import host, moved
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.common.storage import storable
from gramian.common.types import Array
from gramian.completion._ratings import Ratings
from gramian.completion._recommender import Factorization, Offsets
from gramian.estimators.path import EvidencePath
from gramian.methods.room import place_for
from gramian.methods.rough import rough
from gramian.problem import Problem
from gramian.problems.completion import trace_weighted
from gramian.result import Result

Judged = tuple[Factorization, Ratings, Ratings]

HELD_OUT_SHARE = 0.1
"""The share of the ratings that is held out to choose λ and the end of the sweeps."""

LEAST_RATINGS = 50
"""Number of ratings below which none are held out."""

HELD_OUT_ENTRIES = 3000
"""Number of entries that all splits together hold out where the optimum is cheap. With 100 entries
held out, the chosen λ varied by a factor of 20 with the split."""

PATH_RANK = 23
"""Columns of the factors of the path. On MovieLens 1M paths of 24, 64, 96 and 128 columns lead to
an RMSE of 0.8435, 0.844, 0.8430 and 0.8428. One less than 24: with the offsets, rows have 24
numbers, a multiple of the 8 that compiled sweeps process at a time; they take 0.8 of the time."""

PATH_SHARE = 0.5
"""The path's share of the time limit."""

FIRST_WEIGHT, NEXT_WEIGHT, WEIGHTS_TRIED = 1.5, 0.8, 12
"""The first λ in units of its guess, the factor to the next, and how many at most."""

ERROR_RESOLUTION = 1e-3
"""Relative difference of held-out errors below which two λ count as equally good."""


@dataclass(frozen=True)
class Start:
    """The chosen λ, its path, a starting point of the last solve, and the offsets of the problem.

    Without held-out data `path` is None, without a starting point `factor` is None. `blend` is the
    path of a share that the model selects by the same held-out data.
    """

    lam: float
    path: EvidencePath | None
    factor: Array | None
    offsets: Offsets
    blend: EvidencePath | None = None


@dataclass(frozen=True)
class Solved:
    """The result of a solve and its start; `problem` is None if there was no time to form it.

    `offsets` are the optimal offsets of the factor, if they are already known.
    """

    result: Result
    problem: Problem | None
    start: Start
    offsets: Offsets | None = None


def falling(
    guess: float,
    error_of: Callable[[float], float],
    enough: Callable[[], bool],
    *,
    measure: str,
    held_out: int,
) -> EvidencePath:
    """Decrease λ from above the guess until the held-out error has risen twice in a row.

    Where the first λ has the least error, increase λ from it instead. No λ is begun once `enough`
    is true. The largest λ whose error is within `ERROR_RESOLUTION` of the least is taken.
    """
    down = _until_it_rises(FIRST_WEIGHT * guess, NEXT_WEIGHT, error_of, enough)
    up = down[:1]
    if min(error for _, error in down) == down[0][1] and not enough():
        up = [*up, *_until_it_rises(down[0][0] / NEXT_WEIGHT, 1 / NEXT_WEIGHT, error_of, enough)]
    lams, errors = np.array([*reversed(up), *down[1:]]).T
    return _path_of(lams, errors, measure, held_out)


def _path_of(lams: Array, errors: Array, measure: str, held_out: int) -> EvidencePath:
    chosen = int(np.argmax(errors <= (1 + ERROR_RESOLUTION) * errors.min()))
    return EvidencePath("lam", lams, errors, chosen, measure, held_out)


def _until_it_rises(
    lam: float, factor: float, error_of: Callable[[float], float], enough: Callable[[], bool]
) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    while len(found) < WEIGHTS_TRIED and not (found and enough()):
        clock.phase(f"the path of λ: {lam:.3g}")
        found.append((lam, error_of(lam)))
        if len(found) > 2 and found[-1][1] > found[-2][1] > found[-3][1]:
            break
        lam *= factor
    return found


@storable
class Path:
    """Reads the path of a model file that was written before `EvidencePath` existed."""

    @staticmethod
    def _from_store(state: dict[str, Any]) -> EvidencePath:
        return _path_of(np.asarray(state["lams"]), np.asarray(state["rmse"]), "error", 0)


def guess_for_split(model: Any, ratings: Ratings) -> float:
    """The guess of λ for the part of the entries that is not held out."""
    return float(np.sqrt(1.0 - HELD_OUT_SHARE)) * float(model._guess(ratings))


def by_folds(model: Any, ratings: Ratings) -> Start:
    """λ by the path of the mean held-out error of several splits, each solved roughly."""
    guess, parts = guess_for_split(model, ratings), round(1 / HELD_OUT_SHARE)
    limit = np.inf if model.time_limit is None else float(model.time_limit)
    until = clock.now() + PATH_SHARE * limit
    count = int(np.clip(-(-HELD_OUT_ENTRIES * parts // ratings.size), 1, parts))
    held = ratings.folds(generator(model.random_state), parts, count)
    folds = [Fold(model, ratings, each, guess) for each in held]
    found: dict[float, Array] = {}

    def enough() -> bool:
        return clock.passed(until) or clock.interrupted()

    def error(lam: float) -> float:
        """The mean over the splits: the first λ by those within the time, any other by all.

        Ctrl-C counts as the end of the time.
        """
        errors: list[float] = []
        for fold in folds:
            if errors and enough():
                break
            try:
                errors.append(fold.error(lam))
            except (KeyboardInterrupt, clock.TimeUpError) as cut:
                if clock.interrupted() or not (errors or found):
                    raise
                if isinstance(cut, KeyboardInterrupt):
                    clock.interrupt()
                break
        if found and len(errors) < len(folds):
            return np.inf
        found[lam] = host(folds[0].factor)
        return float(np.mean(errors))

    held_out = sum(fold.test.size for fold in folds)
    path = falling(guess, error, enough, measure=model._measure, held_out=held_out)
    blend = model._blend_path([fold.judged(path.value) for fold in folds if fold.found])
    return Start(path.value, path, found[path.value], model._offsets(ratings), blend)


class Fold:
    """One split of the ratings, and the last factor of the part that is not held out."""

    def __init__(self, model: Any, ratings: Ratings, held: NDArray[np.bool_], guess: float) -> None:
        self.model = model
        self.factor: Any = None
        self.found: dict[float, Factorization] = {}
        self.train, self.test = ratings.part(~held), ratings.part(held)
        self.offsets, self.bounds = model._offsets(self.train), model._bounds_for(ratings.span)
        problem = model._problem(self.train, guess, self.offsets)
        self.rank = min(PATH_RANK, problem.order, model.rank or PATH_RANK)
        self.problem = moved(problem, place_for(problem, model.device, self.rank))

    def error(self, lam: float) -> float:
        """The held-out error after a rough solve from the last factor."""
        problem, model = trace_weighted(self.problem, lam), self.model
        self.factor = rough(problem, self.factor, rank=self.rank, random_state=model.random_state)
        found = model._factorized(self.train, problem, self.factor, self.offsets)
        self.found[lam] = replace(found, bounds=self.bounds)
        return float(model._error(*self.judged(lam)))

    def judged(self, lam: float) -> Judged:
        """The factorization for a λ that was tried, and the held-out and the other ratings."""
        return self.found[lam], self.test, self.train
