"""Completions of ratings on a cluster: the estimators at home with ratings on the workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
from dask.base import is_dask_collection
from numpy.typing import NDArray

from gramian.common.memory import check_memory
from gramian.common.random_state import generator
from gramian.completion._ratings import Ids
from gramian.completion._recommender import Offsets
from gramian.dask._balance import balanced
from gramian.dask._base import OnCluster, bar_for, refuse_device
from gramian.dask._cluster import Cluster
from gramian.dask._folder import Folder
from gramian.dask._ratings import Rated, Swept
from gramian.dask._spread import Spread
from gramian.dask._store import store
from gramian.estimators.persistence import Kept
from gramian.methods.quick import MIN_PROOF_SECONDS, PROOF_TIME_FRACTION
from gramian.objectives.halves import halves_of
from gramian.result import History, Result
from gramian.solvers.auto import MIN_COMPLETION_ORDER

Array = NDArray[np.floating]

KNOWN = 20_000_000
"""Ratings that come home with the model, so that `recommend` leaves them out: 0.25 GB."""

DRIVER_RATINGS = 2_000_000
"""Number of ratings up to which a fit computes on the driver: they take 100 MB there, and the fit
of 10⁶ ratings takes 2.2 times the processor seconds on a worker."""

RATING_BYTES = 50.0
"""Bytes of a rating in a fit on the driver: its indices and value in two orders."""

SPEED = 1.5e8
"""Ratings times columns that are swept over in a second, about."""


class OfRatings(OnCluster, Kept):
    """What completions on a cluster share: ratings that are read and stored on the workers."""

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
            rated: Any = store(cluster, X, seed=seed, **given)
        if factors is not None:
            rated = replace(rated, home=Folder(str(factors)))
        model.columns_, model._sweeps = rated.columns, None
        if factors is None and self._at_home(rated):
            return self._fit_at_home(rated)
        model._look_at(rated)
        return model._fit(rated)

    def _fit_at_home(self, rated: Rated) -> Any:
        """Complete few ratings on the driver: rounds of tasks would cost more than the solve."""
        model: Any = self
        check_memory(RATING_BYTES * rated.size, f"{rated.size:,} ratings", "fit a part of them")
        ratings = rated.gathered()
        model._look_at(ratings)
        model._fit(ratings)
        route = ("ratings on the driver", *model.result_.route)
        model.result_ = replace(model.result_, route=route)
        return model

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

    def _at_home(self, rated: Rated) -> bool:
        """Whether the ratings are completed on the driver."""
        return rated.size <= DRIVER_RATINGS or sum(rated.shape) <= MIN_COMPLETION_ORDER

    # --- ratings on the workers in the place of `Ratings` ---------------------------------

    def _ordered(self, ratings: Any) -> Any:
        if not ratings.remote:
            return super()._ordered(ratings)  # type: ignore[misc]
        return AsStored(ratings)

    def _halves(self, ratings: Any, lam: float, held: Any = None) -> tuple[Any, Offsets]:
        if not ratings.remote:
            return super()._halves(ratings, lam, held)  # type: ignore[misc]
        model: Any = self
        offsets = model._offsets(ratings)
        halves = halves_of(model._problem(ratings, lam, offsets).objective, np.float32)
        return (halves if held is None else halves.without(held)), offsets

    def _of_state(self, halves: Any, ratings: Any, offsets: Offsets, state: Any) -> Any:
        if not isinstance(state, Spread):
            return super()._of_state(halves, ratings, offsets, state)  # type: ignore[misc]
        return Swept(state, offsets)

    def _swept_offsets(self, halves: Any, offsets: Offsets, state: Any) -> Offsets:
        """Those of a state on the workers are found with its certificate."""
        if isinstance(state, Spread):
            return offsets
        return super()._swept_offsets(halves, offsets, state)  # type: ignore[misc]

    def _swept_factor(self, halves: Any, state: Any) -> Any:
        """A balanced factor, on the workers."""
        if not isinstance(state, Spread):
            return super()._swept_factor(halves, state)  # type: ignore[misc]
        return balanced(halves.factor_there(state))

    def _proof_seconds(self, ratings: Any, history: History) -> float | None:
        """By the numbers swept over, so that the proof does not depend on a clock."""
        if not ratings.remote:
            return None
        swept = ratings.size * float(np.sum(history["rank"] + 1))
        return max(MIN_PROOF_SECONDS, PROOF_TIME_FRACTION * swept / SPEED)

    def _progress_bar(self, limit: float) -> Any:
        return bar_for(self, Cluster(), "completion by auto", seconds=limit)


@dataclass(frozen=True)
class AsStored:
    """Ratings on the workers in the order of their ids; see `Canonical`."""

    ratings: Rated

    def averaged(self, result: Result) -> Result:
        return result

    def result(self, result: Result) -> Result:
        return result

    def restored(self, side: int, lines: Any) -> Any:
        return lines

    def offsets(self, side: int, lines: Any) -> Any:
        return lines

    def ids(self, side: int) -> Ids:
        return self.ratings.ids(side)

    def known(self) -> Any:
        return self.ratings.known(KNOWN)


def _predicted(frame: Any, model: Any) -> Any:
    return pd.Series(model.predict(frame), index=frame.index, name="prediction")
