"""NuclearCompletion of ratings on a cluster: sweeps over blocks, and a certificate of their sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import completion as home
from gramian.checkpoint import Progress
from gramian.common import clock
from gramian.common.random_state import generator
from gramian.completion import _base
from gramian.completion._path import PATH_RANK, PATH_SHARE, falling
from gramian.completion._quick import FIRST_SWEEPS, NEXT_SWEEPS, columns_for
from gramian.completion.nuclear_completion import LAM_PER_NOISE
from gramian.dask._balance import balanced
from gramian.dask._base import bar_for
from gramian.dask._completion import Completed
from gramian.dask._folder import parts_of
from gramian.dask._precise import to_a_gap
from gramian.dask._rating_sums import errors, spread
from gramian.dask._ratings import Block, Rated, weighed
from gramian.dask._recommend import OfRatings
from gramian.dask._rounds import Rounds
from gramian.dask._scene import Model
from gramian.dask._spread import Spread, home_of
from gramian.dask._sweeps import ShardedHalves
from gramian.estimators.fitting import AUTO
from gramian.methods.quick import MIN_PROOF_SECONDS, PROOF_TIME_FRACTION, Quick
from gramian.objectives.halves import halves_of
from gramian.problem import Problem
from gramian.proofs import PATIENCE
from gramian.result import Result

Array = NDArray[np.floating]

SPEED = 1.5e8
"""Ratings times columns that are swept over in a second, about."""


class NuclearCompletion(OfRatings, home.NuclearCompletion):
    """`gramian.completion.NuclearCompletion` of ratings on a cluster, in blocks.

    Ratings are stored twice, by blocks of users and of items; sweeps, offsets, the path of λ and
    the certificate run over them by tasks, and factors stay on the workers in between. At the end
    they come to the driver, or are kept in the folder `factors` of `fit`, whatever their size: then
    `row_factors_`, `col_factors_` and `result_.factor` are read from there as they are asked for.
    """

    _far = True

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
        if rated.home is None and (not plain or flat or rated.size < _base.LEAST_SWEPT):
            return super()._solved_on(rated)
        self.bounds_ = self._bounds_for(np.array(rated.span))
        return self._settled(rated, None if plain else AUTO if self.tol == "auto" else self.tol)

    def _settled(self, rated: Rated, tol: Any) -> Problem:
        """Sweeps until the error of the ratings held out has stopped moving, as `quick` at home,
        and on to a certified gap where a `tol` is told.
        """
        started = clock.now()
        limit = clock.left()
        progress = Progress(lambda: self._mark_of(rated))
        bar = bar_for(self, rated.cluster, "completion by auto", seconds=limit)
        sweeps = Quick(generator(self.random_state), started + limit, started, watch=bar)
        try:
            state = self._swept(rated, sweeps, progress, limit)
            whole = self._of(rated, self.lam_)
            self.result_ = self._ended(whole, state, sweeps, tol)
        finally:
            if bar is not None:
                bar.close()
        return whole

    def _ended(self, whole: Problem, state: Spread, sweeps: Quick, tol: Any) -> Result:
        """The last sweeps, over all ratings, and the certificate of where they end."""
        objective: Any = whole.objective
        halves = halves_of(objective, np.float32)
        sweeps.sweep(halves, state, NEXT_SWEEPS)
        factor, status = halves.factor_there(state), None
        limits = {"seconds": _proof_seconds(objective.rated, sweeps)}
        if tol is not None:
            factor, status = to_a_gap(whole, factor, sweeps, tol, self.max_iter)
            limits = {"tol": tol, "seconds": PATIENCE}
        image = objective.image(balanced(factor))
        self.row_biases_, self.col_biases_ = self._offsets_at(objective, image)
        result = sweeps.result_of(whole, image, **limits)
        return result if status is None else replace(result, status=status)

    def _offsets_at(self, objective: Completed, image: Any) -> tuple[Array, Array]:
        """Those of users and of items that belong to a point."""
        if not self.biases:
            m, n = objective.rated.shape
            return np.zeros(m), np.zeros(n)
        rows = objective.row_offsets(image)
        return rows, image.offsets

    def _mark_of(self, rated: Rated) -> dict[str, Any]:
        """What two fits must agree in for one to resume the other."""
        names = ("lam", "rank", "biases", "bias_ridge", "weight_power", "duplicates")
        given = {name: getattr(self, name) for name in names}
        data = {"shape": list(rated.shape), "ratings": [rated.size, rated.mark]}
        there = {"weights": rated.weight, "factors": rated.home is not None}
        return given | data | there | {"random_state": rated.seed}

    def _swept(self, rated: Rated, sweeps: Quick, progress: Progress, limit: float) -> Spread:
        """A state whose error on what is held out does not move any more."""
        stored = progress.found
        train = rated.trained()
        guess = self._guess_on(train, False) if not stored else float(stored["lam"])
        objective: Any = self._of(train, guess).objective
        halves = halves_of(objective, np.float32)
        most = columns_for(rated.size, rated.shape, self.rank)
        home = home_of(rated)
        if stored:
            state, self.lam_ = home.restored(rated, stored["state"]), float(stored["lam"])
            if stored["path"] is not None:
                self.path_ = stored["path"]
        else:
            first = min(PATH_RANK, most)
            until = sweeps.started + PATH_SHARE * limit
            held_out = rated.size - train.size
            state = self._path_on(objective, halves, sweeps, first, until, held_out)
            state = halves.widened(state, most, sweeps.rng)
        of_lam = replace(halves, lam=self.lam_)
        reached: dict[str, Any] = {
            "lam": self.lam_,
            "path": getattr(self, "path_", None),
            "state": lambda: home.stored(state),
        }

        def error_of(state: Any) -> float:
            progress.keep(**reached)
            return _rmse(objective, state, self.bounds_)

        progress.keep(now=True, **reached)
        sweeps.until_still(of_lam, state, error_of)
        progress.keep(now=True, **reached)
        return state

    def _path_on(
        self,
        objective: Completed,
        halves: ShardedHalves,
        sweeps: Quick,
        rank: int,
        until: float,
        held_out: int,
    ) -> Spread:
        """λ by the error held out, where it is to be chosen, and the state that had the least."""
        state = halves.scattered(sweeps.rng, rank)
        if self.lam != "auto":
            self.lam_ = float(self.lam)
            sweeps.sweep(replace(halves, lam=self.lam_), state, FIRST_SWEEPS)
            return state
        best: tuple[float, Spread] = (np.inf, state)

        def error_at(lam: float) -> float:
            nonlocal best
            count = NEXT_SWEEPS if len(sweeps.history) else FIRST_SWEEPS
            sweeps.sweep(replace(halves, lam=lam), state, count)
            error = _rmse(objective, state, self.bounds_)
            if error < best[0]:
                best = error, state.copy()
            return error

        def enough() -> bool:
            return sweeps.interrupted or clock.passed(until)

        self.path_ = falling(halves.lam, error_at, enough, measure=self._measure, held_out=held_out)
        self.lam_ = self.path_.value
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
        return LAM_PER_NOISE * size * float(np.sqrt(count / users) + np.sqrt(count / items))

    def _error_on(self, rated: Rated, problem: Problem, factor: Array) -> float:
        objective: Any = problem.objective
        return _rmse(objective, halves_of(objective).state(factor), self.bounds_)

    def _unpack_on(self, rated: Rated, problem: Problem, factor: Any) -> None:
        objective: Any = problem.objective
        if not isinstance(factor, Spread):
            L = self._factors(rated, factor)
            self.row_biases_, self.col_biases_ = self._offsets_at(objective, objective.image(L))
            return
        rows, cols = self._scales_of(rated, False)
        kept: Any = factor.gathered() if rated.home is None else rated.home.kept(factor)
        self.result_ = replace(self.result_, factor=kept)
        scales = np.concatenate([rows, cols])
        if rated.home is None:
            over = kept / np.sqrt(scales)[:, None]
            self.row_factors_, self.col_factors_ = over[: rows.size], over[rows.size :]
        else:
            parts: Any = parts_of(kept, rows.size, scales)
            self.row_factors_, self.col_factors_ = parts


def _mean_of(rated: Rated, train: bool) -> float:
    if not train:
        return rated.mean
    total, weight = rated.cluster.sum("mean", _train_mean, rated.users.blocks)
    return float(total / weight)


def _proof_seconds(rated: Rated, sweeps: Quick) -> float:
    """What a proof may take beside the sweeps, as `Quick` has it, but told without a clock."""
    swept = rated.size * float(np.sum(sweeps.history["rank"] + 1))
    return max(MIN_PROOF_SECONDS, PROOF_TIME_FRACTION * swept / SPEED)


def _rmse(objective: Completed, state: Any, bounds: Any) -> float:
    count, square = errors(objective.rounds, state, bounds)
    return float(np.sqrt(square / max(count, 1.0)))


# --- what tasks do -----------------------------------------------------------------------


def _train_mean(block: Block) -> Array:
    return weighed(block.part(True))
