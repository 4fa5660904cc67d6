"""Completions of ratings on a cluster: the local estimators with ratings on the workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection

from gramian import completion as home
from gramian.common.memory import check_memory
from gramian.common.random_state import generator
from gramian.completion._quick import quick, swept
from gramian.completion._reading import DUPLICATES
from gramian.completion._recommender import Factorization, Offsets
from gramian.completion._selection import Solved
from gramian.completion._stored import StoredRows
from gramian.dask._base import OnCluster, bar_for
from gramian.dask._cluster import Cluster
from gramian.dask._completion import Completed, CompletionModel
from gramian.dask._spread import SharedFolder, balanced, parts_of
from gramian.dask._store import GivenRatings, given_ratings, store
from gramian.dask._sweeps import to_a_gap
from gramian.estimators.persistence import Kept
from gramian.methods.quick import MIN_PROOF_SECONDS, PROOF_TIME_FRACTION
from gramian.objectives.halves import halves_of
from gramian.problem import Problem
from gramian.reductions.block_embedding import BlockEmbedding
from gramian.result import History
from gramian.solvers.auto import MIN_COMPLETION_ORDER

DRIVER_RATINGS = 2_000_000
"""Number of ratings up to which a fit computes on the driver: they take 100 MB there, and the fit
of 10⁶ ratings takes 2.2 times the processor seconds on a worker."""

RATING_BYTES = 50.0
"""Bytes of a rating in a fit on the driver: its indices and value in two orders."""

SPEED = 1.5e8
"""Approximate number of ratings times columns processed per second of a sweep."""


class OfRatings(OnCluster, Kept):
    """A mixin of completions: ratings are read and stored on the workers."""

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
            A folder that the driver and all workers can access, on a shared disk or an address
            such as s3://…: the factors are stored there in blocks and never copied to the driver
            (`NuclearCompletion` with solver="auto").
        """
        model: Any = self
        model._check_parameters()
        if factors is not None and not self._on_workers():
            raise ValueError(
                'factors stay on the workers in NuclearCompletion with solver="auto" alone: leave '
                "factors out"
            )
        if model.duplicates not in DUPLICATES:
            raise ValueError(f"duplicates must be one of {DUPLICATES}, got {model.duplicates!r}")
        cluster = Cluster()
        with cluster.in_time("the ratings of the cluster"):
            given = given_ratings(cluster, X, sample_weight)
            few = given.size <= DRIVER_RATINGS
            on_driver = factors is None and (few or not self._on_workers(given))
            found: Any = _gathered(given) if on_driver else store(
                given, duplicates=model.duplicates,
                seed=int(generator(model.random_state).integers(2**31)),
            )  # fmt: skip
        if on_driver:
            self._fit_on_driver("ratings", found[:3], None, *found[3:])
            model.columns_ = given.columns
            return model
        if factors is not None:
            found = replace(found, home=SharedFolder(str(factors)))
        model.columns_, model._sweeps = given.columns, None
        model._look_at(found)
        return model._fit(found)

    def _on_workers(self, given: GivenRatings | None = None) -> bool:
        """Whether the completion runs on the workers, for the given ratings if any."""
        return False

    def predict(self, pairs: Any, *, return_known: bool = False) -> Any:
        """The predicted entries of pairs; lazy for a Dask array or frame."""
        if not is_dask_collection(pairs):
            return super().predict(pairs, return_known=return_known)  # type: ignore[misc]
        if return_known:
            raise ValueError("return_known is for pairs in memory: compute them first")
        dtype = getattr(self, "classes_", np.zeros(0)).dtype
        if isinstance(pairs, da.Array):
            return self._lazily("predict", pairs, None, dtype)
        return pairs.map_partitions(_predicted, self.at_home(), meta=("prediction", dtype))


class ImplicitCompletion(OfRatings, home.ImplicitCompletion):
    """`gramian.completion.ImplicitCompletion` for a Dask frame, Dask arrays or files.

    The workers read and check the entries, and the driver fits the model: each half-sweep needs the
    Gram matrix of all rows of the other half, and held-out lists need all columns.
    """


class MMMF(OfRatings, home.MMMF):
    """`gramian.completion.MMMF` for a Dask frame, Dask arrays or files.

    The workers read and check the ratings, and the driver fits the model, because sweeps over
    hinges change the targets of all ratings. 200,000 ratings take 4 CPU seconds on the driver;
    L-BFGS over blocks took more than 35 on one worker.
    """


class NuclearCompletion(OfRatings, home.NuclearCompletion):
    """`gramian.completion.NuclearCompletion` of ratings on a cluster, in blocks.

    Ratings are stored twice, by blocks of users and of items. Tasks over these blocks compute the
    sweeps, the offsets, the path of λ and the certificate, and factors stay on the workers. At the
    end they are copied to the driver, or stored in the folder `factors` of `fit`; then
    `row_factors_`, `col_factors_` and `result_.factor` are read from there on access. Small data,
    and any data with a `solver` other than "auto", are fitted on the driver.
    """

    def _on_workers(self, given: GivenRatings | None = None) -> bool:
        if self.solver != "auto" or given is None:
            return bool(self.solver == "auto")
        return sum(given.shape) > MIN_COMPLETION_ORDER and not (self.biases and given.flat)

    def _fit(self, ratings: Any) -> Any:
        """Complete the ratings on the workers, in the order of their ids."""
        self.__dict__.pop("path_", None)  # of an earlier fit
        self._finish(ratings, self._solved(ratings))
        self._rows, self._cols, self._known = ratings.row_ids, ratings.col_ids, ratings.known()
        self.row_ids_, self.col_ids_ = self._rows.names, self._cols.names
        return self

    def _problem(self, ratings: Any, lam: float, offsets: Offsets | None = None) -> Problem:
        mean = (offsets or self._offsets(ratings)).mean
        model = CompletionModel(mean, self._ridge, *self._scales(ratings), self.device)
        return Problem(
            Completed(ratings, model, lam),
            name=self._problem_name,
            formula="½ Σ (U_ij + b_i + c_j − R_ij)² + λ ‖A^½UB^½‖_*",
            variable="[P U; Uᵀ Q]",
        )

    def _solved(self, ratings: Any) -> Solved:
        if self.tol == "auto" and self.max_iter is None:
            return quick(self, ratings)
        start = swept(self, ratings)
        problem = self._problem(ratings, start.lam, start.offsets)
        return Solved(to_a_gap(self, problem, start.factor), problem, start)

    def _halves(self, ratings: Any, lam: float, held: Any = None) -> tuple[Any, Offsets]:
        offsets = self._offsets(ratings)
        halves = halves_of(self._problem(ratings, lam, offsets).objective, np.float32)
        return (halves if held is None else halves.without(held)), offsets

    def _of_state(self, halves: Any, ratings: Any, offsets: Offsets, state: Any) -> Any:
        return Factorization(state.upper, state.lower, offsets)

    def _swept_offsets(self, halves: Any, offsets: Offsets, state: Any) -> Offsets:
        """Offsets of a state on the workers are computed with its certificate."""
        return offsets

    def _swept_factor(self, halves: Any, state: Any) -> Any:
        return balanced(halves.factor(state))

    def _proof_seconds(self, ratings: Any, history: History) -> float | None:
        """Estimated from counts, so that the choice of the proof does not depend on timings."""
        rounds = ratings.size * float(np.sum(history["rank"] + 1))
        return max(MIN_PROOF_SECONDS, PROOF_TIME_FRACTION * rounds / SPEED)

    def _progress_bar(self, limit: float) -> Any:
        return bar_for(self, Cluster(), "completion by auto", seconds=limit)

    def _factorized(
        self, ratings: Any, problem: Problem | None, factor: Any, offsets: Offsets
    ) -> Factorization:
        assert problem is not None
        objective: Any = problem.objective
        rows, cols = objective.offsets(factor)
        kept, scales = ratings.home.kept(factor), self._scales(ratings)
        self.result_ = replace(self.result_, factor=kept)
        stored = isinstance(kept, StoredRows)
        parts: Any = parts_of(kept, scales) if stored else BlockEmbedding(*scales).halves(kept)
        return Factorization(parts[0], parts[1], replace(offsets, rows=rows, cols=cols))


def _gathered(given: GivenRatings) -> tuple[Any, ...]:
    """Users, items, values and perhaps weights on the driver."""
    check_memory(RATING_BYTES * given.size, f"{given.size:,} ratings", "fit a part of them")
    blocks = [block for block in given.cluster.gather(given.shards) if block[0].size]
    return tuple(np.concatenate(parts) for parts in zip(*blocks, strict=True))


def _predicted(frame: Any, model: Any) -> Any:
    return pd.Series(model.predict(frame), index=frame.index, name="prediction")
