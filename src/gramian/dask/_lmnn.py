"""LMNN on a cluster: rounds over the impostors that are violated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramian import metric as home
from gramian.bounds import LowerBounds
from gramian.common import clock
from gramian.dask._base import OnShards
from gramian.dask._cluster import Cluster
from gramian.dask._impostors import Task, differences, target_scatter, whitened
from gramian.dask._labelled import labelled, refuse_indices, rows_of, shaped, tupled, whitening_of
from gramian.dask._neighbours import alignment, sought
from gramian.dask._objective import Sharded
from gramian.dask._triplets import squared
from gramian.estimators.active_set import FINAL_STATUSES, MAX_ROUNDS, ended, whole
from gramian.metric._local import ridge_for
from gramian.objectives import Composite, Linear, LowerBound, Sum
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.result import Result, Status

Array = NDArray[np.floating]


class LMNN(OnShards, home.LMNN):
    """`gramian.metric.LMNN` of Dask collections or files.

    `fit(X, y)` goes over all impostors, block against block, once for each round; `fit_triplets`
    takes a Dask array of shape (t, 3, d).
    """

    def fit(self, X: Any, y: Any) -> LMNN:
        """Learn the metric from labelled samples."""
        started, cluster = clock.now(), Cluster()
        shards, found = labelled(self, cluster, X, y)
        self._check(found.count)
        lam, d = float(self.lam), found.mean.size
        quick = alignment(cluster, shards, found) if self.neighbor_metric == "kta" else None
        near, far = (
            cluster.keep(sought(cluster, shards, found.mean, self.n_neighbors, quick, same))
            for same in (True, False)
        )
        self.ridge_ = ridge_for(self.ridge, shaped(found.count, d))
        mean = cluster.shared("mean", found.mean)
        R = whitening_of(cluster.sum("scatter", target_scatter, shards, near, mean), self.ridge_)
        turn = cluster.shared("whitening", R)
        anchors = cluster.keep(cluster.each("anchors", whitened, shards, near, mean, turn))
        sizes = cluster.gather(cluster.each("count", rows_of, shards))
        task = Task(cluster, anchors, [int(s) for s in np.cumsum([0, *sizes[:-1]])], lam)
        task.begin(cluster.each("impostors", differences, shards, far, mean, turn))
        most = lam * self.n_neighbors * float(found.counts @ (found.count - found.counts))
        result = self._rounds_of(task, self._start(R), most, started)
        gram = found.moments(center=True).gram.dense()
        self._finish(result, result.factor, Dense(R.T @ gram @ R, lower=0.0), R)
        return self

    def _rounds_of(self, task: Task, start: Array | None, most: float, started: float) -> Result:
        """Solve for the active triplets, find those that are violated now, and so on."""
        bounds: LowerBounds[LowerBound] = LowerBounds()
        factor, gap = start, 1.0
        best: tuple[float, int, Array] = np.inf, 0, np.zeros((0, 0))
        for _ in range(MAX_ROUNDS):
            problem = task.problem(self.n_features_in_)
            tol = max(0.3 * self.tol, min(1e-2, 0.03 * gap))
            result = self._minimize(problem, init=factor, tol=tol)
            factor = result.factor
            bounds.add(result.certificate.bound)
            value, count = task.seek(factor)
            moved = abs(best[0] - value) > self.tol * value
            best = min(best, (value, count, factor), key=lambda known: known[0])
            certificate = whole(bounds, result.certificate, best[0], most)
            gap = 1.0 if certificate.relative_gap is None else certificate.relative_gap
            done = certificate.within(self.tol)
            settled = not moved and (tol == 0.3 * self.tol or result.status is not Status.CONVERGED)
            if done or settled or result.status in FINAL_STATUSES or clock.left() <= 0:
                break
        self.n_active_ = best[1]
        return replace(
            result,
            factor=best[2],
            value=certificate.value,
            certificate=certificate,
            status=ended(result.status, done=done, late=clock.left() <= 0),
            seconds=clock.elapsed(started),
        )

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> LMNN:
        """Learn the metric from triplets (anchor, same, other): S are their pairs, each once."""
        refuse_indices(X)
        cluster = Cluster()
        shards, found = tupled(self, cluster, triplets, 3)
        self._check(found.count)
        self.ridge_ = ridge_for(self.ridge, shaped(found.count, found.mean.size))
        keys = cluster.gather(cluster.each("targets", _pair_keys, shards))
        scatter = cluster.sum("scatter", _target_scatter, shards, _firsts(keys))
        R = whitening_of(scatter, self.ridge_)
        shared = cluster.shared("whitening", R)
        parts = cluster.keep(cluster.each("triplets", squared, shards, float(self.lam), shared))
        problem = Problem(
            Sum([Sharded(cluster, parts), Linear(1.0, R.shape[1])]),
            name="lmnn",
            formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
        )
        result = self._minimize(problem, init=self._start(R))
        L = cluster.shared("factor", result.factor)
        self.n_active_ = int(cluster.sum("active", _active, parts, L))
        gram = found.moments(center=True).gram.dense()
        self._finish(result, result.factor, Dense(R.T @ gram @ R, lower=0.0), R)
        return self


def _firsts(keys: list[Any]) -> list[Any]:
    """For each shard which of its pairs no shard before it, nor itself before, has had."""
    every = np.concatenate(keys)
    _, first = np.unique(every, return_index=True)
    is_first: NDArray[np.bool_] = np.zeros(every.size, dtype=bool)
    is_first[first] = True
    return np.split(is_first, np.cumsum([part.size for part in keys])[:-1])


# --- what tasks do -----------------------------------------------------------------------


def _pair_keys(block: tuple[Array, Any]) -> Any:
    rows = block[0][:, :2].reshape(len(block[0]), -1)
    return pd.util.hash_pandas_object(pd.DataFrame(rows), index=False).to_numpy()


def _target_scatter(block: tuple[Array, Any], first: Any) -> Array:
    apart = (block[0][:, 1] - block[0][:, 0])[first]
    return np.asarray(apart.T @ apart)


def _active(part: Composite, L: Array) -> int:
    return int(np.sum(part.image(L).z < 1.0))
