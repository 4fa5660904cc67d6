"""What completions of ratings on a cluster share: choosing λ, solving, ids and factors."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from numpy.typing import NDArray

from gramian.common import clock
from gramian.common.random_state import generator
from gramian.completion._base import powers
from gramian.completion._path import LEAST_RATINGS, PATH_RANK, PATH_SHARE, falling
from gramian.dask._base import OnCluster, bar_for, refuse_device
from gramian.dask._cluster import Cluster
from gramian.dask._folder import Folder
from gramian.dask._ratings import Rated
from gramian.dask._store import store
from gramian.estimators.fitting import settle
from gramian.estimators.persistence import Kept
from gramian.methods.rough import rough
from gramian.problem import Problem
from gramian.reductions.block_embedding import balanced
from gramian.run import minimize
from gramian.solvers.auto import MIN_COMPLETION_ORDER

Array = NDArray[np.floating]

KNOWN = 20_000_000
"""Ratings that come home with the model, so that `recommend` leaves them out: 0.25 GB."""


class OfRatings(OnCluster, Kept, ABC):
    """What completions on a cluster share: reading ratings, choosing λ, ids and factors."""

    _far = False
    """Whether factors can stay on the workers."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, factors: Any = None) -> Any:
        """Complete the matrix.

        Parameters
        ----------
        X : Dask frame of ratings, (rows, cols, values) of Dask arrays, or Parquet or NPZ files
            A folder, a pattern or a list; an NPZ file has the arrays rows, cols and values.
        y : ignored
        sample_weight : str, or Dask array, optional
            The column of weights, or an array for (rows, cols, values).
        factors : str or Path, optional
            A folder that the driver and all workers reach, on a disk that they share or an address
            such as s3://…: the factors never come to the driver, and are kept there in blocks
            (`NuclearCompletion` with solver="auto").
        """
        model: Any = self
        model._check_parameters()
        refuse_device(model)
        if factors is not None and not (self._far and model.solver == "auto"):
            raise ValueError(
                'factors stay on the workers in NuclearCompletion with solver="auto" alone: leave '
                "factors out"
            )
        seed = int(generator(model.random_state).integers(2**31))
        cluster, given = Cluster(), {"duplicates": model.duplicates, "weights": sample_weight}
        with cluster.in_time("the ratings of the cluster"):
            rated = store(cluster, X, seed=seed, **given)
        if factors is not None:
            rated = replace(rated, home=Folder(str(factors)))
        model.columns_ = rated.columns
        model.__dict__.pop("path_", None)
        if sum(rated.shape) <= MIN_COMPLETION_ORDER and factors is None:
            return self._fit_at_home(rated)
        self._prepare(rated)
        problem = self._solved_on(rated)
        settle(model, model.result_)
        model.bounds_ = model._bounds_for(np.array(rated.span))
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
        return model._fit(ratings)

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
        started, start = clock.now(), None
        if model.lam != "auto":
            model.lam_ = float(model.lam)
        elif rated.size < LEAST_RATINGS:
            model.lam_ = self._guess_on(rated, False)
        else:
            start = self._chosen(rated)
        problem = self._of(rated, model.lam_)
        left = None
        if model.time_limit is not None:
            left = max(model.time_limit - (clock.elapsed(started)), sys.float_info.min)
        bar = bar_for(model, rated.cluster, problem.name)
        try:
            model.result_ = minimize(
                problem, model.solver, init=start, rank=model.rank,
                tol=model._tolerance, max_iter=model.max_iter,
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

        model.bounds_ = model._bounds_for(np.array(rated.span))
        started, limit = clock.now(), model.time_limit
        until = np.inf if limit is None else started + PATH_SHARE * float(limit)
        held_out = rated.size - int(rated.counts(True)[0].sum())
        model.path_ = falling(
            guess,
            error_of,
            lambda: clock.passed(until),
            measure=model._measure,
            held_out=held_out,
        )
        model.lam_ = model.path_.value
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

    @abstractmethod
    def _of(self, rated: Rated, lam: float, *, train: bool = False, like: Any = None) -> Problem:
        """The problem for one λ."""

    @abstractmethod
    def _guess_on(self, rated: Rated, train: bool) -> float:
        """A λ of the right size."""

    @abstractmethod
    def _error_on(self, rated: Rated, problem: Problem, factor: Array) -> float:
        """The error of the entries held out."""

    @abstractmethod
    def _unpack_on(self, rated: Rated, problem: Problem, factor: Array) -> None:
        """Set factors and offsets."""


def _predicted(frame: Any, model: Any) -> Any:
    return pd.Series(model.predict(frame), index=frame.index, name="prediction")
