"""A completion that ends when the error of the ratings held out has stopped moving."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian._random import generator
from gramian.backends.arrays import place
from gramian.callbacks import ProgressBar
from gramian.completion._path import Path, falling
from gramian.completion._progress import Progress
from gramian.completion._ratings import CHUNK, Ratings
from gramian.problem import Problem
from gramian.reductions.block_embedding import BlockEmbedding
from gramian.result import Result
from gramian.solvers.quick import Quick

Array = NDArray[np.floating]
Held = NDArray[np.bool_]

HELD_OUT = 0.1
"""The share of the ratings held out to choose λ and the end of the sweeps."""

LEAST = 20_000
"""Ratings below which the optimum costs no more than an end like this one."""

HELD_LEAST = 50
"""Ratings below which none are held out; with features the optimum costs more from the start."""

PATH_RANK, RANK = 24, 96
"""Columns that tell one λ from another, and those of the answer: on MovieLens 1M 24, 64, 96 and 128
of them end at an RMSE of 0.8435, 0.844, 0.8430 and 0.8428, and a sweep costs as much as it has."""

SHARE, FEWEST = 8, 8
"""Columns for each rating that rows and columns have on average, and how many at least."""

FIRST, NEXT, LAST = 3, 2, 2
"""Sweeps at the first λ, at every other, and over all the ratings."""

PATH_SHARE = 0.5
"""The path's share of the time that there is."""

FINISHING = 2.0
"""What the certificate and the answers take, in units of the time that reading the ratings took."""


def quick(model: Any, ratings: Ratings) -> tuple[Problem | None, Result]:
    """The problem of the λ chosen and its answer; sets `lam_`, and `path_` where λ is "auto".

    The problem is None where the time is up: the offsets of the last sweep are set then.
    """
    limit = np.inf if model.time_limit is None else float(model.time_limit)
    with _sweeps(model, limit) as sweeps:
        halves, state = _whole(model, ratings, sweeps)
        if not model._featured and clock.left() < FINISHING * model._pace * sweeps.reading:
            m = ratings.shape[0]
            model._set_swept(halves, state[:m, -1].astype(float), state[m:, -1].astype(float))
            sweeps.deadline = min(sweeps.deadline, clock.now())
            return None, sweeps.cut_off(halves, state, model._problem_name)
        model._keep_swept(state)
        factor, ahead = halves.factor(state), sweeps.ahead(halves, state)
        del halves  # both orders of the entries, and the certificate needs one
    problem = model._problem(ratings, model.lam_)
    return problem, sweeps.result(problem, factor, ahead)


def swept(model: Any, ratings: Ratings) -> Array:
    """The factor alone, for another solver to go on from; it sets the same."""
    limit = np.inf if model.time_limit is None else PATH_SHARE * float(model.time_limit)
    with _sweeps(model, limit) as sweeps:
        halves, state = _whole(model, ratings, sweeps)
    model._keep_swept(state)
    factor: Array = halves.factor(state)
    return factor


@contextmanager
def _sweeps(model: Any, limit: float) -> Iterator[Quick]:
    """Sweeps that end in time, shown by a bar where one is asked for.

    What follows them takes about as long as reading the ratings did.
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


def _whole(model: Any, ratings: Ratings, sweeps: Quick) -> tuple[Any, Array]:
    """The state after the last sweeps, over all the ratings, and what they go over."""
    kept = Progress(model, ratings)
    state = _settled(model, ratings, sweeps, kept)
    halves = model._halves(ratings, model.lam_)
    if state is None:
        state = sweeps.scattered(halves, sum(ratings.shape), _first_columns(model, ratings))
        sweeps.sweep(halves, state, (FIRST + LAST) * halves.pace)
    elif not kept.done("whole"):
        sweeps.sweep(halves, state, LAST * halves.pace)
        _reached(kept, sweeps, "whole", state=state)
    return halves, state


def _reached(kept: Progress, sweeps: Quick, stage: str, **content: Any) -> None:
    """Keep that a stage is done, unless it was cut off: then it is gone on with."""
    if not (sweeps.interrupted or sweeps.expired()):
        kept.keep(now=True, stage=stage, **content)


def _settled(model: Any, ratings: Ratings, sweeps: Quick, kept: Progress) -> Array | None:
    """A state whose error on what is held out does not move any more; sets `lam_` and `path_`.

    None where there is no time to hold anything out: then λ is its guess.

    Apart from `_whole`, so that what is made here is gone before the last sweeps.
    """
    if kept.done("still"):
        return _chosen(model, kept)
    rng, started = sweeps.rng, sweeps.started
    left = sweeps.deadline - clock.now()
    if left < model._pace * sweeps.reading and not kept.done("path"):
        model.lam_ = model._guess(ratings) if model.lam == "auto" else float(model.lam)
        return None
    held = kept.held(_some(rng, ratings.values.size))
    guess = float(np.sqrt(1 - HELD_OUT)) * model._guess(ratings)
    halves = model._halves(ratings, guess, held)
    error_of = _error(model, halves, ratings, held)
    del held
    if kept.done("path"):
        state = _chosen(model, kept)
    elif model.lam == "auto":
        until = started + PATH_SHARE * (sweeps.deadline - started)
        path, state = _path(sweeps, halves, error_of, _first_columns(model, ratings), until, kept)
        model.path_, model.lam_ = path, path.best
    else:
        model.lam_ = float(model.lam)
        state = sweeps.scattered(halves, sum(ratings.shape), _first_columns(model, ratings))
        sweeps.sweep(replace(halves, lam=model.lam_), state, FIRST * halves.pace)
    state = sweeps.widened(state, _most_columns(model, ratings), halves.noise)
    _reached(kept, sweeps, "path", lam=model.lam_, state=state)

    def error_kept(state: Array) -> float:
        kept.keep()
        return float(error_of(state))

    sweeps.until_still(replace(halves, lam=model.lam_), state, error_kept)
    _reached(kept, sweeps, "still", state=state)
    return state


def _chosen(model: Any, kept: Progress) -> Array:
    """The state of an earlier call that had chosen λ; sets `lam_` and `path_`."""
    model.lam_ = float(kept.found["lam"])
    if model.lam == "auto":
        model.path_ = _path_of(kept.found["lams"], kept.found["errors"])
    return np.array(kept.found["state"])


def _path_of(lams: list[float], errors: list[float]) -> Path:
    """λ, falling, and their errors, in whatever order they were tried."""
    order = np.argsort(lams)[::-1]
    return Path(np.array(lams)[order], np.array(errors)[order])


def _most_columns(model: Any, ratings: Ratings) -> int:
    """Columns that the ratings of a row or column can tell apart, about, up to `RANK`."""
    enough = int(np.clip(SHARE * ratings.values.size / sum(ratings.shape), FEWEST, RANK))
    return min(model.rank or enough, *ratings.shape)


def _first_columns(model: Any, ratings: Ratings) -> int:
    return min(PATH_RANK, _most_columns(model, ratings))


def is_quick(model: Any, ratings: Ratings) -> bool:
    """Whether a fit ends so: asked for, no other solver, and the optimum not as cheap."""
    return model.tol == "auto" and sweeps_pay(model, ratings)


def sweeps_pay(model: Any, ratings: Ratings) -> bool:
    """Whether sweeps are the way to begin, where nothing else is asked for."""
    plain = model.solver == "auto" and model.max_iter is None and place(model.device).is_host
    least = HELD_LEAST if model._featured else LEAST
    return bool(plain and ratings.values.size >= least and not (model.biases and ratings.flat))


def _path(
    sweeps: Quick, halves: Any, error_of: Any, rank: int, until: float, kept: Progress
) -> tuple[Path, Array]:
    """λ by the error held out, and the state that had the least of it.

    The λ that an earlier call has tried are passed without a sweep.
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
        count = halves.pace * (NEXT if tried else FIRST)
        sweeps.sweep(replace(halves, lam=lam), state, count)
        error = float(error_of(state))
        if not tried or error < min(tried.values()):
            best = state.copy()
        tried[lam] = error
        kept.keep(lams=[*tried], errors=[*tried.values()], state=state, best=best)
        return error

    path = falling(halves.lam, error_at, lambda: sweeps.interrupted or clock.passed(until))
    kept.keep(now=True)
    return path, best


def _some(rng: np.random.Generator, size: int) -> Held:
    """Which ratings are held out, drawn a block at a time."""
    held = np.empty(size, dtype=bool)
    for start in range(0, size, CHUNK):
        part = held[start : start + CHUNK]
        part[:] = rng.random(part.size) < HELD_OUT
    return held


def _error(model: Any, halves: Any, ratings: Ratings, held: Held) -> Any:
    """The error of the ratings held out, of a state of those that are not."""
    m, test = ratings.shape[0], ratings.part(held)
    train = ratings.part(~held) if model._ranks else ratings
    embedding = BlockEmbedding(*model._scales(ratings))

    def error(state: Array) -> float:
        own = np.ascontiguousarray(state[:, :-1])
        if halves.units is None:
            own = embedding.factor(own)
        model.row_factors_, model.col_factors_ = own[:m], own[m:]
        model._set_swept(halves, state[:m, -1], state[m:, -1])
        found = float(model._error(test, train))
        for name in ("row_factors_", "col_factors_", "row_biases_", "col_biases_"):
            del vars(model)[name]
        return found

    return error
