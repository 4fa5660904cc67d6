"""Completion by sweeps in float32 that end when the held-out error no longer decreases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.callbacks import ProgressBar
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.completion._path import HELD_OUT_SHARE, PATH_RANK, PATH_SHARE, falling
from gramian.completion._progress import StagedProgress
from gramian.completion._ratings import Ratings
from gramian.completion._recommender import Factorization
from gramian.completion._selection import Solved, Start, guess_for_split
from gramian.estimators.path import EvidencePath
from gramian.methods.quick import Quick
from gramian.reductions.block_embedding import BlockEmbedding

Array = NDArray[np.floating]
Held = NDArray[np.bool_]

MAX_RANK = 96
"""Number of columns at most: on MovieLens 1M 24, 64, 96 and 128 columns end at an RMSE of 0.8435,
0.844, 0.8430 and 0.8428, and the cost of a sweep is proportional to their number."""

COLUMNS_PER_ENTRY = 8
"""Number of columns for each entry that rows and columns have on average."""

FIRST_SWEEPS, NEXT_SWEEPS = 3, 2
"""Sweeps at the first λ; at every other λ, and at the end over all entries."""

FINISHING_TIME = 2.0
"""Time of the certificate and the predictions, in units of the time of reading the ratings."""


class Choice(NamedTuple):
    """λ, its path, and a state of sweeps; no path where λ is given, no state without time."""

    lam: float
    path: EvidencePath | None
    state: Array | None


def quick(model: Any, ratings: Ratings) -> Solved:
    """λ and the end of the sweeps by held-out entries, and the certificate of where they end."""
    limit = np.inf if model.time_limit is None else float(model.time_limit)
    with _sweeps(model, limit) as sweeps:
        halves, state, start = _whole(model, ratings, sweeps)
        if not ratings.featured and clock.left() < FINISHING_TIME * model._pace * sweeps.reading:
            sweeps.deadline = min(sweeps.deadline, clock.now())
            return Solved(sweeps.cut_off(halves, state, model._problem_name), None, start)
        factor, ahead = halves.factor(state), sweeps.ahead(halves, state)
        del halves  # both orders of the entries, and the certificate needs one
    problem = model._problem(ratings, start.lam, start.offsets)
    return Solved(sweeps.result(problem, factor, ahead), problem, start)


def swept(model: Any, ratings: Ratings) -> Start:
    """Where another solver continues after the sweeps."""
    limit = np.inf if model.time_limit is None else PATH_SHARE * float(model.time_limit)
    with _sweeps(model, limit) as sweeps:
        halves, state, start = _whole(model, ratings, sweeps)
    return replace(start, factor=halves.factor(state))


@contextmanager
def _sweeps(model: Any, limit: float) -> Iterator[Quick]:
    """Sweeps within a time limit, with a progress bar if the model asks for one.

    The certificate after them takes about as long as reading the ratings did.
    """
    started = clock.now()
    reading = 0.0 if model.time_limit is None else max(model.time_limit - clock.left(), 0.0)
    deadline = min(started + limit, clock.budget_end() - reading)
    bar = ProgressBar("completion by auto", 0.0, seconds=limit) if model.progress else None
    try:
        rng = generator(model.random_state)
        yield Quick(rng, deadline, started, watch=bar, reading=reading)
    finally:
        if bar is not None:
            bar.close()


def _whole(model: Any, ratings: Ratings, sweeps: Quick) -> tuple[Any, Array, Start]:
    """The last sweeps, over all the ratings: their halves, state, λ and offsets."""
    kept = StagedProgress(model, ratings)
    lam, path, state = _settled(model, ratings, sweeps, kept)
    halves, offsets = model._halves(ratings, lam)
    if state is None:
        state = sweeps.scattered(halves, sum(ratings.shape), _path_columns(model, ratings))
        sweeps.sweep(halves, state, (FIRST_SWEEPS + NEXT_SWEEPS) * halves.pace)
    elif not kept.done("whole"):
        sweeps.sweep(halves, state, NEXT_SWEEPS * halves.pace)
        _reached(kept, sweeps, "whole", state=state)
    return halves, state, Start(lam, path, None, model._swept_offsets(halves, offsets, state))


def _reached(kept: StagedProgress, sweeps: Quick, stage: str, **content: Any) -> None:
    """Store that a stage is complete, unless the time limit or an interrupt ended it."""
    if not (sweeps.interrupted or sweeps.expired()):
        kept.keep(now=True, stage=stage, **content)


def _settled(model: Any, ratings: Ratings, sweeps: Quick, kept: StagedProgress) -> Choice:
    """λ, and a state whose held-out error no longer decreases.

    Without time to hold entries out, λ is its guess, and there is no state. This is a function of
    its own so that its arrays are freed before the last sweeps.
    """
    if kept.done("still"):
        return _stored(model, kept)
    given = None if model.lam == "auto" else float(model.lam)
    left = sweeps.deadline - clock.now()
    if left < model._pace * sweeps.reading and not kept.done("path"):
        return Choice(model._guess(ratings) if given is None else given, None, None)
    held = kept.held(_split(sweeps.rng, ratings))
    halves, offsets = model._halves(ratings, guess_for_split(model, ratings), held)
    error_of, held_out = _held_out_error(model, halves, offsets, ratings, held), int(held.sum())
    del held
    rank = _path_columns(model, ratings)
    if kept.done("path"):
        lam, path, state = _stored(model, kept)
    elif given is None:
        until = sweeps.started + PATH_SHARE * (sweeps.deadline - sweeps.started)
        lam, path, state = _by_path(model, sweeps, halves, error_of, rank, until, kept, held_out)
    else:
        lam, path = given, None
        state = sweeps.scattered(halves, sum(ratings.shape), rank)
        sweeps.sweep(replace(halves, lam=lam), state, FIRST_SWEEPS * halves.pace)
    assert state is not None
    columns = columns_for(ratings.values.size, ratings.shape, model.rank)
    state = sweeps.widened(state, columns, halves.noise)
    _reached(kept, sweeps, "path", lam=lam, state=state, path=path)

    def error_kept(state: Array) -> float:
        kept.keep()
        return float(error_of(state))

    sweeps.until_still(replace(halves, lam=lam), state, error_kept)
    _reached(kept, sweeps, "still", state=state)
    return Choice(lam, path, state)


def _stored(model: Any, kept: StagedProgress) -> Choice:
    """The λ and the state that an earlier call of the same fit stored."""
    found = kept.found
    path = found["path"] if model.lam == "auto" else None
    return Choice(float(found["lam"]), path, np.array(found["state"]))


def columns_for(entries: int, shape: tuple[int, int], rank: int | None) -> int:
    """The number of columns that the entries of a row or column determine, up to `MAX_RANK`."""
    mean = max(entries / sum(shape), 1.0)
    return min(rank or int(min(COLUMNS_PER_ENTRY * mean, MAX_RANK)), *shape)


def _path_columns(model: Any, ratings: Ratings) -> int:
    return min(PATH_RANK, columns_for(ratings.values.size, ratings.shape, model.rank))


def _by_path(
    model: Any,
    sweeps: Quick,
    halves: Any,
    error_of: Any,
    rank: int,
    until: float,
    kept: StagedProgress,
    held_out: int,
) -> Choice:
    """λ by the held-out error, and the state with the least of it.

    The λ that an earlier call has tried take no sweep.
    """
    tried = dict(zip(kept.found.get("lams", ()), kept.found.get("errors", ()), strict=True))
    if tried:
        state, best = np.array(kept.found["state"]), np.array(kept.found["best"])
    else:
        state = sweeps.scattered(halves, halves.split + halves.lower.indptr.size - 1, rank)
        best = state

    def error_at(lam: float) -> float:
        nonlocal best
        if lam in tried:
            return tried[lam]
        count = halves.pace * (NEXT_SWEEPS if tried else FIRST_SWEEPS)
        sweeps.sweep(replace(halves, lam=lam), state, count)
        error = float(error_of(state))
        if not tried or error < min(tried.values()):
            best = state.copy()
        tried[lam] = error
        kept.keep(lams=[*tried], errors=[*tried.values()], state=state, best=best)
        return error

    def enough() -> bool:
        return sweeps.interrupted or clock.passed(until)

    path = falling(halves.lam, error_at, enough, measure=model._measure, held_out=held_out)
    kept.keep(now=True)
    return Choice(path.value, path, best)


def _split(rng: np.random.Generator, ratings: Ratings) -> Held:
    """The entries that are held out, drawn a block at a time."""
    held = np.empty(ratings.values.size, dtype=bool)
    for part in ratings.parts():
        drawn = held[part]
        drawn[:] = rng.random(drawn.size) < HELD_OUT_SHARE
    return held


def _held_out_error(
    model: Any, halves: Any, offsets: Any, ratings: Ratings, held: Held
) -> Callable[[Array], float]:
    """The error of the held-out entries as a function of a state of the sweeps."""
    m, test = ratings.shape[0], ratings.part(held)
    train = ratings.part(~held) if model._ranks else ratings
    embedding, bounds = BlockEmbedding(*model._scales(ratings)), model._bounds_for(ratings.values)

    def error(state: Array) -> float:
        own = np.ascontiguousarray(state[:, :-1])
        if halves.units is None:
            own = embedding.factor(own)
        beside = model._swept_offsets(halves, offsets, state)
        return float(model._error(Factorization(own[:m], own[m:], beside, bounds), test, train))

    return error
