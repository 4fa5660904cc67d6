"""The choice of λ by cross-validation, and the records that the two ways of fitting share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import host, moved
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.completion._path import PATH_RANK, PATH_SHARE, falling
from gramian.completion._ratings import Ratings
from gramian.completion._recommender import Offsets
from gramian.estimators.path import EvidencePath
from gramian.methods.room import place_for
from gramian.methods.rough import rough
from gramian.problem import Problem
from gramian.problems.completion import trace_weighted
from gramian.result import Result

Array = NDArray[np.floating]

FOLDS = 10
"""A split holds out one of this many parts of the entries."""

HELD_OUT_ENTRIES = 3000
"""Number of entries that all splits together hold out where the optimum is cheap. With 100 entries
held out, the chosen λ varied by a factor of 20 with the split."""


@dataclass(frozen=True)
class Start:
    """The chosen λ, and where the last solve starts.

    Without held-out data `path` is None, without a starting point `factor` is None. `offsets` are
    those that the problem is formulated with.
    """

    lam: float
    path: EvidencePath | None
    factor: Array | None
    offsets: Offsets


@dataclass(frozen=True)
class Solved:
    """The result of a solve and how it was reached.

    Without a `problem`, for lack of time, `offsets` are those of the last sweep.
    """

    result: Result
    problem: Problem | None
    start: Start


def guess_for_split(model: Any, ratings: Ratings) -> float:
    """The guess of λ for the part of the entries that is not held out."""
    return float(np.sqrt(1.0 - 1.0 / FOLDS)) * float(model._guess(ratings))


def by_folds(model: Any, ratings: Ratings) -> Start:
    """λ by the path of the mean held-out error of several splits, each solved roughly."""
    guess = guess_for_split(model, ratings)
    limit = np.inf if model.time_limit is None else float(model.time_limit)
    until = clock.now() + PATH_SHARE * limit

    def enough() -> bool:
        return clock.passed(until)

    part = generator(model.random_state).integers(FOLDS, size=ratings.values.size)
    count = int(np.clip(-(-HELD_OUT_ENTRIES * FOLDS // part.size), 1, FOLDS))
    held = [part == k for k in range(count)]
    folds = [Fold.of(model, ratings, each, guess) for each in held if each.any()]
    found: dict[float, Array] = {}

    def error(lam: float) -> float:
        """The mean over the splits: the first λ by those within the time, any other by all."""
        errors = [folds[0].error(lam)]
        for fold in folds[1:]:
            if enough():
                break
            errors.append(fold.error(lam))
        first = not found
        found[lam] = host(folds[0].factor)
        return float(np.mean(errors)) if first or len(errors) == len(folds) else np.inf

    held_out = sum(fold.test.values.size for fold in folds)
    path = falling(guess, error, enough, measure=model._measure, held_out=held_out)
    return Start(path.value, path, found[path.value], model._offsets(ratings))


@dataclass
class Fold:
    """One split of the ratings, and the last factor of the part that is not held out."""

    model: Any
    train: Ratings
    test: Ratings
    problem: Problem
    offsets: Offsets
    bounds: tuple[float, float] | None
    rank: int
    factor: Any = None

    @classmethod
    def of(cls, model: Any, ratings: Ratings, held: NDArray[np.bool_], guess: float) -> Fold:
        train = ratings.part(~held)
        offsets, bounds = model._offsets(train), model._bounds_for(ratings.values)
        problem = model._problem(train, guess, offsets)
        rank = min(PATH_RANK, problem.order, model.rank or PATH_RANK)
        problem = moved(problem, place_for(problem, model.device, rank))
        return cls(model, train, ratings.part(held), problem, offsets, bounds, rank)

    def error(self, lam: float) -> float:
        """The held-out error after a rough solve from the last factor."""
        problem, model = trace_weighted(self.problem, lam), self.model
        self.factor = rough(problem, self.factor, rank=self.rank, random_state=model.random_state)
        found = model._factorized(self.train, problem, self.factor, self.offsets)
        return float(model._error(replace(found, bounds=self.bounds), self.test, self.train))
