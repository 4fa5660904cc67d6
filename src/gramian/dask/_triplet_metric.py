"""TripletMetric on a cluster: triplets stay where they were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian import metric as home
from gramian.dask._base import OnShards
from gramian.dask._cluster import Cluster
from gramian.dask._labelled import labelled, refuse_indices, tupled
from gramian.dask._moments import Spread
from gramian.dask._neighbours import local
from gramian.dask._objective import Sharded
from gramian.dask._triplets import hinged
from gramian.linalg import leading_eigenpair
from gramian.metric.triplet_metric import WEIGHT
from gramian.objectives import Linear, Sum
from gramian.problem import Problem


class TripletMetric(OnShards, home.TripletMetric):
    """`gramian.metric.TripletMetric` of Dask collections or files.

    `fit(X, y)` seeks targets and impostors block against block; `fit_triplets` takes a Dask array
    of shape (t, 3, d).
    """

    def fit(self, X: Any, y: Any) -> TripletMetric:
        """Learn the metric from labelled samples."""
        cluster = Cluster()
        shards, found = labelled(self, cluster, X, y)
        self._check(found.count)
        blocks = local(cluster, shards, found.mean, self.n_neighbors)
        return self._fit_shards(cluster, cluster.keep(blocks), found)

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> TripletMetric:
        """Learn the metric from triplets (anchor, same, other) of vectors."""
        refuse_indices(X)
        cluster = Cluster()
        shards, found = tupled(self, cluster, triplets, 3)
        self._check(found.count)
        return self._fit_shards(cluster, shards, found)

    def _fit_shards(self, cluster: Cluster, shards: list[Any], found: Spread) -> TripletMetric:
        d = found.mean.size
        parts = cluster.keep(cluster.each("triplets", hinged, shards, 1.0, self.mu, None))
        objective = Sum([Sharded(cluster, parts), Linear(1.0, d)])
        self.lam_ = float(self.lam) if self.lam != "auto" else _unit(objective)
        parts = cluster.keep(cluster.each("triplets", hinged, shards, self.lam_, self.mu, None))
        problem = Problem(
            Sum([Sharded(cluster, parts), Linear(1.0, d)]),
            name="triplets",
            formula="tr M + λ Σ h_μ(1 + d_M(i,j) − d_M(i,l))",
        )
        self._solve(problem, found.moments(center=True).gram, None)
        return self


def _unit(objective: Sum) -> float:
    """λ in units of that above which −∇F(0) has a root, as at home."""
    gradient = objective.gradient(objective.image(np.zeros((objective.order, 1))))
    steepest = leading_eigenpair(-gradient, tol=1e-2, random_state=0).value
    return WEIGHT / (steepest + 1.0) if steepest + 1.0 > 1e-12 else 1.0
