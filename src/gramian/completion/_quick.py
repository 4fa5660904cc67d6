"""Completion by sweeps in float32 that end when the held-out error no longer decreases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.checkpoint import SavedProgress
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.common.types import Array
from gramian.completion._ratings import Ratings
from gramian.completion._selection import (
    HELD_OUT_SHARE,
    PATH_RANK,
    PATH_SHARE,
    Judged,
    Solved,
    Start,
    falling,
    guess_for_split,
)
from gramian.estimators.path import EvidencePath
from gramian.methods.quick import Quick

Held = NDArray[np.bool_]

MAX_RANK = 95
"""Largest number of columns: on MovieLens 1M 24, 64, 96 and 128 columns end at an RMSE of 0.8435,
0.844, 0.8430 and 0.8428. With the offsets, rows of 96 numbers are multiples of the 32 that the
compiled sweeps process at a time: a sweep takes 0.12 s of CPU time, with 97 numbers 0.17 s."""

COLUMNS_PER_ENTRY = 8
"""Number of columns for each entry that rows and columns have on average."""

FIRST_SWEEPS, NEXT_SWEEPS = 3, 2
"""Sweeps at the first λ; at every other λ, and at the end over all entries."""

FINAL_COLUMNS, MAX_WIDENED_ENTRIES = 128, 5_000_000
"""Columns that are added before a last sweep, if F decreases along them and the rank is not given,
and the number of entries above which they would take too much memory. On MovieLens 1M they reduce
the certified gap from 11 % to 2.7 %, in 1.15 times the time of the fit; the RMSE does not change.
The second number is estimated, not measured."""

FINISHING_TIME = 2.0
"""Time of the certificate and the predictions, in units of the time of reading the ratings."""

STAGES = ("path", "still", "whole")
"""Stages of a fit: λ is chosen, the held-out error no longer decreases, all ratings are swept."""

PARAMETERS = (
    "lam", "biases", "bias_ridge", "weight_power", "rank", "alpha", "feature_weight", "mu",
    "thresholds", "item_share",
)  # fmt: skip
"""Parameters that must be equal, like the ratings, for one fit to resume another."""


class StagedProgress(SavedProgress):
    """The checkpoint of a fit by stages.

    `found` holds the held-out ratings ("held", as bits), the λ tried and their errors ("lams",
    "errors"), the state of the last sweep and that of the least error ("state", "best"), the last
    complete stage ("stage"), and the chosen λ and its path ("lam", "path").
    """

    def __init__(self, model: Any, ratings: Ratings) -> None:
        given = {name: getattr(model, name) for name in PARAMETERS if hasattr(model, name)}
        seed = model.random_state if isinstance(model.random_state, int) else None
        mark = {"estimator": type(model).__name__, **given, "random_state": seed}
        super().__init__(lambda: {**mark, **ratings.mark})

    def done(self, stage: str) -> bool:
        """Whether an earlier call of the same fit has finished a stage."""
        reached = self.found.get("stage")
        return reached in STAGES and STAGES.index(reached) >= STAGES.index(stage)

    def held(self, drawn: Held) -> Held:
        """The held-out ratings: those of the earlier call, or these."""
        if not isinstance(drawn, np.ndarray):  # on the workers of a cluster
            return drawn
        if "held" not in self.found:
            self.keep(now=True, held=np.packbits(drawn))
            return drawn
        return np.unpackbits(self.found["held"], count=drawn.size).astype(bool)


def quick(model: Any, ratings: Ratings) -> Solved:
    """λ and the end of the sweeps by held-out entries, and the certificate of the last state."""
    limit = np.inf if model.time_limit is None else float(model.time_limit)
    with _sweeps(model, limit) as sweeps:
        halves, state, start = SweptFit(model, ratings, sweeps).whole()
        late = clock.left() < FINISHING_TIME * model._pace * sweeps.reading
        if late and not (ratings.featured or ratings.remote):
            sweeps.deadline = min(sweeps.deadline, clock.now())
            return Solved(sweeps.cut_off(halves, state, model._problem_name), None, start)
        factor = model._swept_factor(halves, state)
        ahead = None if ratings.remote else sweeps.ahead(halves, state)
        del halves  # both orders of the entries, and the certificate needs one
    problem = model._problem(ratings, start.lam, start.offsets)
    seconds = model._proof_seconds(ratings, sweeps.history)
    image = problem.objective.image(factor)
    result = sweeps.result(problem, image, ahead, seconds=seconds)
    special = ratings.featured or ratings.remote
    known = None if special else model._known_offsets(problem, image, start.offsets)
    return Solved(result, problem, start, known)


def swept(model: Any, ratings: Ratings) -> Start:
    """The starting point of another solver after the sweeps."""
    limit = np.inf if model.time_limit is None else PATH_SHARE * float(model.time_limit)
    with _sweeps(model, limit) as sweeps:
        halves, state, start = SweptFit(model, ratings, sweeps).whole()
    return replace(start, factor=halves.factor(state))


@contextmanager
def _sweeps(model: Any, limit: float) -> Iterator[Quick]:
    """Sweeps within a time limit, with a progress bar if the model asks for one.

    The certificate after them takes about as long as reading the ratings did.
    """
    started = clock.now()
    reading = 0.0 if model.time_limit is None else max(model.time_limit - clock.left(), 0.0)
    deadline = min(started + limit, clock.budget_end() - reading)
    bar = model._progress_bar(limit)
    try:
        rng = generator(model.random_state)
        yield Quick(rng, deadline, started, watch=bar, reading=reading)
    finally:
        if bar is not None:
            bar.close()


class SweptFit:
    """The stages of a fit by sweeps, each of which a checkpoint can resume."""

    def __init__(self, model: Any, ratings: Ratings, sweeps: Quick) -> None:
        self.model, self.ratings, self.sweeps = model, ratings, sweeps
        self.kept = StagedProgress(model, ratings)
        # As many columns as the entries of a row or column determine.
        mean = max(ratings.size / sum(ratings.shape), 1.0)
        columns = model.rank or int(min(COLUMNS_PER_ENTRY * mean, MAX_RANK))
        self.columns = min(columns, *ratings.shape)
        self.blend: EvidencePath | None = None

    def whole(self) -> tuple[Any, Array, Start]:
        """The last sweeps, over all the ratings: their halves, state, λ and offsets."""
        lam, path, state = self._settled()
        model, sweeps = self.model, self.sweeps
        halves, offsets = model._halves(self.ratings, lam)
        if state is None:
            state = self._scattered(halves)
            sweeps.sweep(halves, state, (FIRST_SWEEPS + NEXT_SWEEPS) * halves.pace)
        elif not self.kept.done("whole"):
            sweeps.sweep(halves, state, NEXT_SWEEPS * halves.pace)
            state = self._completed(halves, state)
            self._reached("whole", state=self.ratings.kept(state))
        offsets = model._swept_offsets(halves, offsets, state)
        return halves, state, Start(lam, path, None, offsets, self.blend)

    def _completed(self, halves: Any, state: Any) -> Any:
        """A state with the columns that the largest rank of the sweeps excludes.

        Without them the dual vector is far from feasible, and the certified gap wide.
        """
        special = self.ratings.remote or halves.pace > 1 or halves.everywhere
        large = self.ratings.size > MAX_WIDENED_ENTRIES
        if special or large or self.model.rank or self.sweeps.interrupted or self.sweeps.expired():
            return state
        state = halves.with_falling(state, FINAL_COLUMNS, self.sweeps.rng)
        self.sweeps.sweep(halves, state, 1)
        return state

    def _settled(self) -> tuple[float, EvidencePath | None, Array | None]:
        """λ, its path unless λ is given, and a state whose held-out error no longer decreases.

        Without time to hold entries out, λ is its guess, and there is no state. This is a function
        of its own so that its arrays are freed before the last sweeps.
        """
        model, ratings, sweeps, kept = self.model, self.ratings, self.sweeps, self.kept
        if kept.done("still"):
            return self._stored()
        given = None if model.lam == "auto" else float(model.lam)
        left = sweeps.deadline - clock.now()
        if left < model._pace * sweeps.reading and not kept.done("path"):
            return model._guess(ratings) if given is None else given, None, None
        held = kept.held(ratings.split(sweeps.rng, HELD_OUT_SHARE))
        halves, offsets = model._halves(ratings, guess_for_split(model, ratings), held)
        judged, held_out = self._judging(halves, offsets, held), int(held.sum())
        del held

        def error_of(state: Array) -> float:
            return float(model._error(*judged(state)))

        path, state = None, None
        if kept.done("path"):
            lam, path, state = self._stored()
        elif given is None:
            path, state = self._by_path(halves, error_of, held_out)
            lam = path.value
        else:
            lam, state = given, self._scattered(halves)
            sweeps.sweep(replace(halves, lam=lam), state, FIRST_SWEEPS * halves.pace)
        state = halves.widened(state, self.columns, sweeps.rng)
        self._reached("path", lam=lam, state=ratings.kept(state), path=path)

        def error_kept(state: Array) -> float:
            kept.keep()
            return error_of(state)

        sweeps.until_still(replace(halves, lam=lam), state, error_kept)
        if not (sweeps.interrupted or sweeps.expired()):
            self.blend = model._blend_path([judged(state)])
        self._reached("still", state=ratings.kept(state), blend=self.blend)
        return lam, path, state

    def _by_path(
        self, halves: Any, error_of: Callable[[Array], float], held_out: int
    ) -> tuple[EvidencePath, Array]:
        """The path of the held-out error, and the state with the least of it.

        The λ that an earlier call has tried take no sweep.
        """
        ratings, sweeps, kept = self.ratings, self.sweeps, self.kept
        until = sweeps.started + PATH_SHARE * (sweeps.deadline - sweeps.started)
        tried = dict(zip(kept.found.get("lams", ()), kept.found.get("errors", ()), strict=True))
        if tried:
            state, best = (ratings.restored(kept.found[name]) for name in ("state", "best"))
        else:
            best = state = self._scattered(halves)

        def error_at(lam: float) -> float:
            nonlocal best
            if lam in tried:
                return tried[lam]
            count = halves.pace * (NEXT_SWEEPS if tried else FIRST_SWEEPS)
            sweeps.sweep(replace(halves, lam=lam), state, count)
            error = error_of(state)
            if not tried or error < min(tried.values()):
                best = state.copy()
            tried[lam] = error
            states = {"state": ratings.kept(state), "best": ratings.kept(best)}
            kept.keep(lams=[*tried], errors=[*tried.values()], **states)
            return error

        def enough() -> bool:
            return sweeps.interrupted or clock.passed(until)

        measure = self.model._measure
        path = falling(halves.lam, error_at, enough, measure=measure, held_out=held_out)
        kept.keep(now=True)
        return path, best

    def _judging(self, halves: Any, offsets: Any, held: Held) -> Callable[[Array], Judged]:
        """The matrix of a state of the sweeps, and the held-out and the other entries."""
        model, ratings = self.model, self.ratings
        test, bounds = ratings.part(held), model._bounds_for(ratings.span)
        train = ratings.part(~held) if model._ranks else ratings

        def judged(state: Array) -> Judged:
            found = model._of_state(halves, ratings, offsets, state)
            return replace(found, bounds=bounds), test, train

        return judged

    def _scattered(self, halves: Any) -> Any:
        """A random state with the columns of the path."""
        return halves.scattered(self.sweeps.rng, min(PATH_RANK, self.columns))

    def _reached(self, stage: str, **content: Any) -> None:
        """Store that a stage is complete, unless the time limit or an interrupt ended it."""
        if not (self.sweeps.interrupted or self.sweeps.expired()):
            self.kept.keep(now=True, stage=stage, **content)

    def _stored(self) -> tuple[float, EvidencePath | None, Array]:
        """The λ, its path and the state that an earlier call of the same fit stored."""
        found = self.kept.found
        self.blend = found.get("blend")
        path = found["path"] if self.model.lam == "auto" else None
        return float(found["lam"]), path, self.ratings.restored(found["state"])
