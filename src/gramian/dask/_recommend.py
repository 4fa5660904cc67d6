"""NuclearCompletion and MMMF of ratings on a cluster."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from numpy.typing import NDArray

from gramian import completion as home
from gramian._random import generator
from gramian.certificate import relative
from gramian.completion import _quick as quick
from gramian.completion._base import LAST, LEAST, PATH_RANK, PATH_SHARE, balanced, powers
from gramian.completion._path import Path, falling
from gramian.completion.mmmf import GUESS as MARGIN
from gramian.completion.mmmf import MOST_LEVELS
from gramian.completion.nuclear_completion import GUESS
from gramian.dask._base import OnCluster, bar_for
from gramian.dask._cluster import Cluster
from gramian.dask._completion import Completed, Model, ShardedHalves
from gramian.dask._objective import Sharded
from gramian.dask._ratings import Block, Rated, store
from gramian.dask._recovery import Progress
from gramian.fitting import AUTO, settle
from gramian.objectives import Composite
from gramian.problem import Problem
from gramian.problems.completion import mmmf
from gramian.solvers import minimize
from gramian.solvers.auto import WIDE
from gramian.solvers.quick import Quick
from gramian.solvers.rough import rough

Array = NDArray[np.floating]

KNOWN = 20_000_000
"""Ratings that come home with the model, so that `recommend` leaves them out: 0.25 GB."""


class OfRatings(OnCluster):
    """What completions on a cluster share: reading ratings, choosing λ, ids and factors."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Complete the matrix.

        Parameters
        ----------
        X : Dask frame of ratings, (rows, cols, values) of Dask arrays, or Parquet or NPZ files
            A folder, a pattern or a list; an NPZ file has the arrays rows, cols and values.
        y : ignored
        sample_weight : str, or Dask array, optional
            The column of weights, or an array for (rows, cols, values).
        """
        model: Any = self
        model._check_parameters()
        seed = int(generator(model.random_state).integers(2**31))
        rated = store(Cluster(), X, duplicates=model.duplicates, weights=sample_weight, seed=seed)
        model.columns_ = rated.columns
        model.__dict__.pop("path_", None)
        if sum(rated.shape) <= WIDE:
            return self._fit_at_home(rated)
        self._prepare(rated)
        problem = self._solved_on(rated)
        settle(model, model.result_)
        model._set_bounds(np.array(rated.span))
        self._unpack_on(rated, problem, model.result_.factor)
        model._rows, model._cols = rated.row_ids, rated.col_ids
        model.row_ids_, model.col_ids_ = rated.row_ids.names, rated.col_ids.names
        model._known = rated.known(KNOWN)
        model._n_features_out = model.col_factors_.shape[1]
        return self

    def _fit_at_home(self, rated: Rated) -> Any:
        """So few rows and columns are completed on the driver: a round costs more than a solve."""
        model: Any = self
        ratings = rated.gathered()
        model._look_at(ratings)
        model._finish(ratings, model._solved(ratings))
        return self

    def predict(self, pairs: Any, *, return_known: bool = False) -> Any:
        """The entries of pairs; those of a Dask array or frame stay lazy."""
        if not is_dask_collection(pairs):
            return super().predict(pairs, return_known=return_known)  # type: ignore[misc]
        if return_known:
            raise ValueError("return_known is for pairs in memory: compute them first")
        dtype = getattr(self, "classes_", np.zeros(0)).dtype
        if isinstance(pairs, da.Array):
            return self._lazily("predict", pairs, None, dtype)
        return pairs.map_partitions(_predicted, self.at_home(), meta=("prediction", dtype))

    def _look_at(self, ratings: Any) -> None:
        """What a fit at home does with ratings before anything is solved."""

    def _prepare(self, rated: Rated) -> None:
        """The same with those on the cluster."""

    def _solved_on(self, rated: Rated) -> Problem:
        """Choose λ and solve: sets `lam_`, `result_` and, where λ is chosen, `path_`."""
        model: Any = self
        started, start = time.perf_counter(), None
        if model.lam != "auto":
            model.lam_ = float(model.lam)
        elif rated.size < LEAST:
            model.lam_ = self._guess_on(rated, False)
        else:
            start = self._chosen(rated)
        problem = self._of(rated, model.lam_)
        left = None
        if model.time_limit is not None:
            left = max(model.time_limit - (time.perf_counter() - started), LAST)
        bar = bar_for(model, rated.cluster, problem.name)
        try:
            model.result_ = minimize(
                problem, model.solver, init=start, rank=model.rank,
                tol=AUTO if model.tol == "auto" else model.tol, max_iter=model.max_iter,
                time_limit=left, random_state=model.random_state, callback=bar,
            )  # fmt: skip
        finally:
            if bar is not None:
                bar.close()
        return problem

    def _chosen(self, rated: Rated) -> Array:
        """Set λ by the path, and give the factor of its best solve to start from."""
        model: Any = self
        guess = self._guess_on(rated, True)
        problem = self._of(rated, guess, train=True)
        rank = min(PATH_RANK, problem.order, model.rank or PATH_RANK)
        found: dict[float, Array] = {}
        last: Array | None = None

        def error_of(lam: float) -> float:
            nonlocal last
            of_lam = self._of(rated, lam, train=True, like=problem)
            found[lam] = last = rough(of_lam, last, rank=rank, random_state=model.random_state)
            return self._error_on(rated, of_lam, last)

        model._set_bounds(np.array(rated.span))
        started, limit = time.perf_counter(), model.time_limit
        until = np.inf if limit is None else started + PATH_SHARE * float(limit)
        model.path_ = falling(guess, error_of, lambda: time.perf_counter() >= until)
        model.lam_ = model.path_.best
        return found[model.lam_]

    def _scales_of(self, rated: Rated, train: bool) -> tuple[Array, Array]:
        model: Any = self
        rows, cols = rated.counts(train)
        return powers(rows, model.weight_power), powers(cols, model.weight_power)

    def _factors(self, rated: Rated, factor: Array) -> Array:
        """[P; Q] balanced; sets the factors in the units of the entries."""
        model: Any = self
        m, (rows, cols) = rated.shape[0], self._scales_of(rated, False)
        L = balanced(factor, m)
        model.row_factors_ = L[:m] / np.sqrt(rows)[:, None]
        model.col_factors_ = L[m:] / np.sqrt(cols)[:, None]
        model.row_biases_, model.col_biases_ = np.zeros(m), np.zeros(rated.shape[1])
        return L

    def _of(self, rated: Rated, lam: float, *, train: bool = False, like: Any = None) -> Problem:
        """The problem for one λ."""
        raise NotImplementedError

    def _guess_on(self, rated: Rated, train: bool) -> float:
        """A λ of the right size."""
        raise NotImplementedError

    def _error_on(self, rated: Rated, problem: Problem, factor: Array) -> float:
        """The error of the entries held out."""
        raise NotImplementedError

    def _unpack_on(self, rated: Rated, problem: Problem, factor: Array) -> None:
        """Set factors and offsets."""
        raise NotImplementedError


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
        limit = np.inf if self.time_limit is None else float(self.time_limit)
        progress = Progress({"order": sum(rated.shape), "ratings": rated.size, "lam": self.lam})
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
        plain = Completed(rated, Model(0.0, ridge, rows_scale, cols_scale, train), 1.0)
        count = float(np.sum(rows))
        size = float(np.sqrt(plain.spread(cols, self.bias_ridge) / count)) or 1.0
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


class MMMF(OfRatings, home.MMMF):
    """`gramian.completion.MMMF` of ratings on a cluster; thresholds of more than two levels fixed.

    Learned thresholds couple all ratings of a level: pass thresholds="fixed" for more than two.
    """

    def _look_at(self, ratings: Any) -> None:
        self._take_levels(np.unique(ratings.values))

    def _take_levels(self, levels: Array) -> None:
        self.classes_ = levels
        K = self.classes_.size
        if not 1 < K <= MOST_LEVELS:
            raise ValueError(
                f"MMMF predicts two to {MOST_LEVELS} levels, and the entries have more or fewer "
                "different values: NuclearCompletion predicts numbers"
            )

    def _prepare(self, rated: Rated) -> None:
        self._take_levels(rated.levels(MOST_LEVELS))
        if self._learned:
            raise ValueError(
                'thresholds="learned" couples all ratings, which is done at home only: pass '
                'thresholds="fixed"'
            )
        self.mean_ = 0.0
        self._row_offsets, self._col_offsets = np.zeros(rated.shape[0]), np.zeros(rated.shape[1])

    def _offsets_on(self, rated: Rated, train: bool) -> None:
        """The offsets of the levels by least squares, beside which the signs are told."""
        if not self.biases:
            return
        rows, cols = (np.ones(size) for size in rated.shape)
        model = Model(0.0, float(self.bias_ridge), rows, cols, train, self.classes_)
        count, total = Completed(rated, model, 1.0).scores()
        self.mean_ = float(total / count)
        objective = Completed(rated, replace(model, mean=self.mean_), 1.0)
        image = objective.image(np.zeros((objective.order, 0)))
        self._row_offsets = objective.row_offsets(image)
        assert image.offsets is not None
        self._col_offsets = image.offsets

    def _of(self, rated: Rated, lam: float, *, train: bool = False, like: Any = None) -> Problem:
        if like is None:
            self._offsets_on(rated, train)
        rows, cols = self._scales_of(rated, train)
        cluster, users = rated.cluster, rated.users
        facts = {
            "mean": self.mean_, "mu": self.mu, "classes": self.classes_,
            "thresholds": self._midway(), "row_offsets": self._row_offsets,
            "col_offsets": self._col_offsets, "rows": rows, "cols": cols, "train": train,
        }  # fmt: skip
        shared = cluster.shared("model", facts)
        share = lam / len(users.blocks)
        parts = cluster.keep(
            cluster.each(
                "signs",
                _signs,
                users.blocks,
                shared,
                users.ends(),
                users.ranges(rated.items),
                share,
            )
        )
        objective = Sharded(cluster, parts)
        objective.wide = True
        return Problem(
            objective,
            name="mmmf",
            formula="Σ h_μ(m − Y_ij X_ij) + λ ‖A^½XB^½‖_*",
            variable="[P X; Xᵀ Q]",
        )

    def _guess_on(self, rated: Rated, train: bool) -> float:
        rows, cols = rated.counts(train)
        m, n = (int(np.sum(side > 0)) for side in (rows, cols))
        size = float(np.sum(rows)) * (self.classes_.size - 1.0)
        return MARGIN * float(np.sqrt(size / m) + np.sqrt(size / n))

    def _error_on(self, rated: Rated, problem: Problem, factor: Array) -> float:
        rows, cols = self._scales_of(rated, True)
        model = Model(self.mean_, None, rows, cols, True, self.classes_)
        offsets = np.concatenate([self._row_offsets, self._col_offsets])
        state = np.column_stack([factor, offsets])
        count, off = Completed(rated, model, 1.0).errors(state, None)
        return float(off / max(count, 1.0))

    def _unpack_on(self, rated: Rated, problem: Problem, factor: Array) -> None:
        self._factors(rated, factor)
        self.row_biases_, self.col_biases_ = self._row_offsets, self._col_offsets
        self.thresholds_ = self._midway()
        objective: Any = problem.objective
        L = rated.cluster.shared("factor", factor)
        value = float(rated.cluster.sum("hinge", _sharp, objective.parts, L))
        self.hinge_gap_ = relative(value - self.certificate_.lower_bound, value)


def _mean_of(rated: Rated, train: bool) -> float:
    if not train:
        return rated.mean
    total, weight = rated.cluster.sum("mean", _train_mean, rated.users.blocks)
    return float(total / weight)


def _rmse(objective: Completed, state: Array, bounds: Any) -> float:
    count, square = objective.errors(state, bounds)
    return float(np.sqrt(square / max(count, 1.0)))


# --- what tasks do -----------------------------------------------------------------------


def _train_mean(block: Block) -> Array:
    part = block.part(True)
    omega = np.ones(part.values.size) if part.weights is None else part.weights
    return np.array([omega @ part.values.astype(float), omega.sum()])


def _signs(
    block: Block, facts: dict[str, Any], ends: list[int], reached: list[list[int]], lam: float
) -> Composite:
    """Σ h_μ(m_e − Y_e X_e) over the ratings of a block, and its share of λ/2 tr M."""
    block = block.part(facts["train"])
    items = np.concatenate([np.arange(a, b) for a, b in reached])
    rows, cols = block.row_of() + ends[0], items[block.neighbour]
    places = np.searchsorted(facts["classes"], block.values)
    thresholds = facts["thresholds"]
    offset = facts["mean"] + facts["row_offsets"][rows] + facts["col_offsets"][cols]
    signs = np.where(places[:, None] > np.arange(thresholds.size), 1.0, -1.0)
    margins = 1.0 - signs * (offset[:, None] - thresholds)
    repeat = thresholds.size
    objective = mmmf(
        np.repeat(rows, repeat), np.repeat(cols, repeat), signs.ravel(),
        (facts["rows"].size, facts["cols"].size), lam, margin=margins.ravel(), mu=facts["mu"],
        row_scale=facts["rows"], col_scale=facts["cols"],
        weights=None if block.weights is None else np.repeat(block.weights, repeat),
    ).objective  # fmt: skip
    assert isinstance(objective, Composite)
    return objective


def _sharp(part: Any, L: Array) -> float:
    """The hinge itself in the place of the smoothed one."""
    image = part.image(L)
    return float(part.loss.smoothed(1e-12).value(image.z) + image.linear)


def _predicted(frame: Any, model: Any) -> Any:
    return pd.Series(model.predict(frame), index=frame.index, name="prediction")
