"""NuclearCompletion of ratings on a cluster: sweeps over blocks, and a certificate of their sum."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian import completion as home
from gramian._random import generator
from gramian.completion import _quick as quick
from gramian.completion._path import Path, falling
from gramian.completion.nuclear_completion import GUESS
from gramian.dask._base import bar_for
from gramian.dask._completion import Completed
from gramian.dask._rating_sums import errors, spread
from gramian.dask._ratings import Block, Rated
from gramian.dask._recommend import OfRatings
from gramian.dask._recovery import Progress
from gramian.dask._rounds import Rounds
from gramian.dask._scene import Model
from gramian.dask._sweeps import ShardedHalves
from gramian.problem import Problem
from gramian.solvers.quick import Quick

Array = NDArray[np.floating]


class NuclearCompletion(OfRatings, home.NuclearCompletion):
    """`gramian.completion.NuclearCompletion` of ratings on a cluster, in blocks.

    Ratings are stored twice, by blocks of users and of items; sweeps, offsets, the path of λ and
    the certificate run over them by tasks. The driver holds the factors.
    """

    def _of(self, rated: Rated, lam: float, *, train: bool = False, like: Any = None) -> Problem:
        if like is not None:
            return replace(like, objective=like.objective.trace_weighted(lam))
        rows, cols = self._scales_of(rated, train)
        mean = 0.0
        if self.biases:
            mean = _mean_of(rated, train)
        if not train:
            self.mean_ = mean
        ridge = float(self.bias_ridge) if self.biases else None
        return Problem(
            Completed(rated, Model(mean, ridge, rows, cols, train), lam),
            name="nuclear_completion",
            formula="½ Σ (U_ij + b_i + c_j − R_ij)² + λ ‖A^½UB^½‖_*",
            variable="[P U; Uᵀ Q]",
        )

    def _solved_on(self, rated: Rated) -> Problem:
        plain = self.tol == "auto" and self.solver == "auto" and self.max_iter is None
        flat = self.biases and rated.span[0] == rated.span[1]
        if not plain or flat or rated.size < quick.LEAST:
            return super()._solved_on(rated)
        self._set_bounds(np.array(rated.span))
        return self._settled(rated)

    def _settled(self, rated: Rated) -> Problem:
        """Sweeps until the error of the ratings held out has stopped moving, as `quick` at home."""
        started = time.perf_counter()
        limit = clock.left()
        progress = Progress(self._mark_of(rated))
        bar = bar_for(self, rated.cluster, "completion by auto", seconds=limit)
        sweeps = Quick(generator(self.random_state), started + limit, started, watch=bar)
        try:
            state = self._swept(rated, sweeps, progress, limit)
            whole = self._of(rated, self.lam_)
            objective: Any = whole.objective
            halves = objective.halves(np.float32)
            sweeps.sweep(halves, state, quick.LAST)
            self.result_ = sweeps.result(whole, halves.factor(state))
        finally:
            if bar is not None:
                bar.close()
        return whole

    def _mark_of(self, rated: Rated) -> dict[str, Any]:
        """What two fits have in common where one may go on for the other."""
        names = ("lam", "rank", "biases", "bias_ridge", "weight_power", "duplicates")
        given = {name: getattr(self, name) for name in names}
        data = {"shape": list(rated.shape), "ratings": rated.size, "weight": rated.weight}
        return given | data | {"seed": rated.seed, "mark": rated.mark}

    def _swept(self, rated: Rated, sweeps: Quick, progress: Progress, limit: float) -> Array:
        """A state whose error on what is held out does not move any more."""
        stored = progress.stored()
        guess = self._guess_on(rated, True) if stored is None else float(stored["lam"])
        objective: Any = self._of(rated, guess, train=True).objective
        halves = objective.halves(np.float32)
        size = quick.SHARE * rated.size / sum(rated.shape)
        most = int(np.clip(size, quick.FEWEST, quick.RANK))
        most = min(self.rank or most, *rated.shape)
        if stored is not None:
            state, self.lam_ = np.array(stored["state"]), float(stored["lam"])
            if stored["path"] is not None:
                self.path_ = Path(*(np.asarray(part) for part in stored["path"]))
        else:
            first = min(quick.PATH_RANK, most)
            until = sweeps.started + quick.PATH_SHARE * limit
            state = self._path_on(objective, halves, sweeps, first, until)
            state = sweeps.widened(state, most)
        of_lam = replace(halves, lam=self.lam_)
        told = getattr(self, "path_", None)
        path = None if told is None else [told.lams, told.rmse]

        def error_of(state: Array) -> float:
            progress.keep(lam=self.lam_, path=path, state=state)
            return _rmse(objective, state, self.bounds_)

        progress.keep(now=True, lam=self.lam_, path=path, state=state)
        sweeps.until_still(of_lam, state, error_of)
        progress.keep(now=True, lam=self.lam_, path=path, state=state)
        return state

    def _path_on(
        self, objective: Completed, halves: ShardedHalves, sweeps: Quick, rank: int, until: float
    ) -> Array:
        """λ by the error held out, where it is to be chosen, and the state that had the least."""
        state = halves.scattered(sweeps.rng, rank)
        if self.lam != "auto":
            self.lam_ = float(self.lam)
            sweeps.sweep(replace(halves, lam=self.lam_), state, quick.FIRST)
            return state
        best: tuple[float, Array] = (np.inf, state)

        def error_at(lam: float) -> float:
            nonlocal best
            count = quick.NEXT if len(sweeps.history) else quick.FIRST
            sweeps.sweep(replace(halves, lam=lam), state, count)
            error = _rmse(objective, state, self.bounds_)
            if error < best[0]:
                best = error, state.copy()
            return error

        self.path_ = falling(
            halves.lam, error_at, lambda: sweeps.interrupted or time.perf_counter() >= until
        )
        self.lam_ = self.path_.best
        return best[1]

    def _guess_on(self, rated: Rated, train: bool) -> float:
        """λ for noise of the size of the entries beside their offsets, as at home."""
        rows, cols = rated.counts(train)
        ridge = float(self.bias_ridge) if self.biases else None
        rows_scale, cols_scale = (np.ones(size) for size in rated.shape)
        rounds = Rounds(rated, Model(0.0, ridge, rows_scale, cols_scale, train))
        count = float(np.sum(rows))
        size = float(np.sqrt(spread(rounds, cols, self.bias_ridge) / count)) or 1.0
        users, items = (int(np.sum(side > 0)) for side in (rows, cols))
        return GUESS * size * float(np.sqrt(count / users) + np.sqrt(count / items))

    def _error_on(self, rated: Rated, problem: Problem, factor: Array) -> float:
        objective: Any = problem.objective
        return _rmse(objective, objective.halves().state(factor), self.bounds_)

    def _unpack_on(self, rated: Rated, problem: Problem, factor: Array) -> None:
        L = self._factors(rated, factor)
        objective: Any = problem.objective
        if self.biases:
            image = objective.image(L)
            self.row_biases_ = objective.row_offsets(image)
            self.col_biases_ = image.offsets


def _mean_of(rated: Rated, train: bool) -> float:
    if not train:
        return rated.mean
    total, weight = rated.cluster.sum("mean", _train_mean, rated.users.blocks)
    return float(total / weight)


def _rmse(objective: Completed, state: Array, bounds: Any) -> float:
    count, square = errors(objective.rounds, state, bounds)
    return float(np.sqrt(square / max(count, 1.0)))


# --- what tasks do -----------------------------------------------------------------------


def _train_mean(block: Block) -> Array:
    part = block.part(True)
    omega = np.ones(part.values.size) if part.weights is None else part.weights
    return np.array([omega @ part.values.astype(float), omega.sum()])
