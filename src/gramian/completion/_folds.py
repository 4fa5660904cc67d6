"""Held-out parts of the ratings that choose λ where the optimum is cheap."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian._random import generator
from gramian.backends.arrays import host, moved
from gramian.completion._path import PATH_RANK
from gramian.completion._ratings import Ratings
from gramian.problem import Problem
from gramian.problems.completion import trace_weighted
from gramian.solvers.room import place_for
from gramian.solvers.rough import rough

Array = NDArray[np.floating]

FOLDS, HELD_OUT = 10, 3000
"""Each fold holds out one of so many parts, and there are as many folds as hold out so many ratings
together: with 100 ratings held out, λ varied twentyfold with the split."""


@dataclass
class Fold:
    """One split of the ratings, and the last factor of the part that is not held out."""

    model: Any
    """A copy of the estimator: what a solve sets belongs to the fold."""
    train: Ratings
    test: Ratings
    problem: Problem
    rank: int
    factor: Array | None = None

    @classmethod
    def of(cls, model: Any, ratings: Ratings, held: NDArray[np.bool_], guess: float) -> Fold:
        own, train = copy(model), ratings.part(~held)
        own._set_bounds(ratings.values)
        problem = own._problem(train, guess)
        rank = min(PATH_RANK, problem.order, own.rank or PATH_RANK)
        problem = moved(problem, place_for(problem, own.device, rank))
        return cls(own, train, ratings.part(held), problem, rank)

    def error(self, lam: float) -> float:
        """The error held out after a rough solve from the last factor."""
        problem, model = trace_weighted(self.problem, lam), self.model
        self.factor = rough(problem, self.factor, rank=self.rank, random_state=model.random_state)
        model._unpack(self.train, problem, self.factor)
        return float(model._error(self.test, self.train))


class Folds:
    """The mean error held out of several splits, and the factors of the first one."""

    def __init__(
        self, model: Any, ratings: Ratings, guess: float, enough: Callable[[], bool]
    ) -> None:
        size = ratings.values.size
        part = generator(model.random_state).integers(FOLDS, size=size)
        count = int(np.clip(-(-HELD_OUT * FOLDS // size), 1, FOLDS))
        held = [part == k for k in range(count)]
        self.folds = [Fold.of(model, ratings, each, guess) for each in held if each.any()]
        self.held_out = sum(fold.test.values.size for fold in self.folds)
        self.found: dict[float, Array] = {}
        self.enough = enough

    def error(self, lam: float) -> float:
        """The mean of the errors of all splits.

        When the time is up, the first λ is told by the splits done, and any other is not told.
        """
        errors = [self.folds[0].error(lam)]
        for fold in self.folds[1:]:
            if self.enough():
                break
            errors.append(fold.error(lam))
        assert self.folds[0].factor is not None
        first = not self.found
        self.found[lam] = host(self.folds[0].factor)
        return float(np.mean(errors)) if first or len(errors) == len(self.folds) else np.inf
