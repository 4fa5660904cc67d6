"""LMNN, DMLEig and TripletMetric on a cluster: pairs and triplets of vectors stay on the workers.

A shard is an array (t, width, d) of vectors and, for pairs, their marks. The driver receives a key
of each vector; its checks and counts are those of tuples of indices outside `gramian.dask`.
Labelled samples are copied to the driver (`OnDriver`): the time of a neighbour search is quadratic
in the number of samples, so it becomes infeasible before they exceed the driver's memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import softmax

from gramian import metric as home
from gramian.common.types import Array
from gramian.dask._alignment import Spread, spread_of
from gramian.dask._base import OnWorkers
from gramian.dask._cluster import Cluster
from gramian.dask._collections import Sample, filled, tuples
from gramian.dask._driver import OnDriver
from gramian.dask._objective import Sharded, placed
from gramian.domains import Spectrahedron
from gramian.metric._input import NAMES, check_triplets, marks, split_pairs
from gramian.metric._local import MaxMin, floor_for, ridge_for
from gramian.metric.dml_eig import SMOOTHING, separable
from gramian.metric.triplet_metric import weight_unit
from gramian.objectives import Linear, Objective, Sum
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.local_metric import dml_eig_whitened, lmnn_of_triplets, triplets
from gramian.reductions.floor import Floor
from gramian.reductions.scatter_whitening import scatter_whitening

Block = tuple[Array, Any]


@dataclass(frozen=True)
class Tuples:
    """Pairs or triplets on the workers, and their vectors as indices of distinct ones."""

    cluster: Cluster
    shards: list[Any]
    sizes: list[int]
    found: Spread
    """The moments of the vectors."""
    indices: NDArray[np.integer]

    def each(self, name: str, function: Any, *columns: Any) -> list[Any]:
        """A task for each shard, kept on the workers."""
        return self.cluster.keep(self.cluster.each(name, function, self.shards, *columns))

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The values that belong to each shard."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def gathered(self, name: str, function: Any, *columns: Any) -> Array:
        """One array for each shard, concatenated on the driver."""
        nodes = self.cluster.each(name, function, self.shards, *columns)
        return np.concatenate(self.cluster.gather(nodes))

    @property
    def numbered(self) -> Array:
        """Numbers of the distinct vectors in place of samples: checks compare them only."""
        return np.arange(self.found.count, dtype=float)[:, None]

    def whitening(self, mask: NDArray[np.bool_], ridge: float) -> Array:
        """R of the whitening by the scatter of the first two vectors of some tuples."""
        scatter = self.cluster.sum("scatter", _scatter, self.shards, self.split(mask))
        return scatter_whitening(0.5 * (scatter + scatter.T), ridge).matrix

    def gram(self, R: Array | None = None) -> Dense:
        """The scatter of the vectors, in the coordinates of R."""
        gram = self.found.moments(center=True).gram.dense()
        return Dense(gram if R is None else R.T @ gram @ R, lower=0.0)


class OfTuples(OnWorkers, OnDriver):
    """A metric learner of pairs or triplets on the workers."""

    def _tuples(self, given: Any, width: int, X: Any, same: Any = None) -> Tuples:
        """Pairs or triplets, kept on the workers; sets the fitted attributes that describe them."""
        model: Any = self
        if X is not None:
            raise ValueError(
                "X is for indices, and on a cluster pairs and triplets are vectors: pass X[pairs]"
            )
        if model.shrinkage not in ("auto", 0):
            raise ValueError(
                f"a cluster learns without shrinkage: pass shrinkage=0, not {model.shrinkage!r}"
            )
        model._check_parameters()
        model._forget("path_", "classes_", "threshold_", "same_values_", "feature_names_in_")
        model.shrinkage_, cluster = 0.0, Cluster()
        shards = cluster.keep(tuples(cluster, given, width, same))
        shards, sizes = filled(cluster, shards, _size, NAMES[width])
        found: Spread = cluster.sum("moments", _vector_spread, shards)
        keys = np.concatenate(cluster.gather(cluster.each("keys", _keys, shards)))
        points, indices = np.unique(keys, return_inverse=True)
        found, indices = replace(found, count=points.size), indices.reshape(-1, width)
        model.n_features_in_ = found.mean.size
        model._check_sizes(found.count)
        return Tuples(cluster, shards, sizes, found, indices)


class LMNN(OfTuples, home.LMNN):
    """`gramian.metric.LMNN` of Dask collections or files.

    The samples of `fit(X, y)` are copied to the driver; `fit_triplets` takes a Dask array of shape
    (t, 3, d), which stays on the workers.
    """

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> LMNN:
        """Learn the metric from triplets (anchor, same, other): S are their pairs, each once."""
        given = self._tuples(triplets, 3, X)
        check_triplets(given.numbered, given.indices)
        self.ridge_ = ridge_for(self.ridge, given.found.like)
        first = np.zeros(len(given.indices), dtype=bool)
        first[np.unique(given.indices[:, :2], axis=0, return_index=True)[1]] = True
        R, cluster = given.whitening(first, self.ridge_), given.cluster
        shared = cluster.shared("whitening", R)
        parts = given.each("triplets", _squared, float(self.lam), shared, self.device)
        problem = Problem(
            Sum([Sharded(cluster, parts), Linear(1.0, R.shape[1])]),
            name="lmnn",
            formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
        )
        result = self._minimize(problem, init=self._start(R), rank=self._limit(R.shape[1]))
        L = cluster.shared("factor", result.factor)
        self.n_active_ = int(cluster.sum("active", _active, parts, L))
        self._finish(result, result.factor, given.gram(R), R)
        return self


class DMLEig(OfTuples, home.DMLEig):
    """`gramian.metric.DMLEig` of Dask collections or files.

    The samples of `fit(X, y)` are copied to the driver. `fit_pairs` takes a Dask array of shape
    (p, 2, d) and labels of pairs, which stay on the workers. One number for each pair is sent to
    the driver, for the threshold and for the median that is the unit of μ.
    """

    def fit_pairs(self, pairs: Any, same: Any = None, *, X: Any = None) -> DMLEig:
        """Learn the metric from pairs of vectors that are the same or not, and a threshold."""
        if self.kernel is not None:
            raise ValueError("kernels need all samples in memory: use gramian.metric.DMLEig")
        given = self._tuples(pairs, 2, X, same)
        same = given.gathered("marks", _marks)
        split_pairs(given.numbered, given.indices, same)
        cluster, alike = given.cluster, marks(same, same.size)
        self.ridge_ = ridge_for(self.ridge, given.found.like)
        self.floor_ = floor_for(
            self.floor, given.found.like, self._limit(given.found.like.shape[1])
        )
        R = given.whitening(alike, self.ridge_)
        R = R @ np.linalg.eigh(given.gram(R).dense())[1]
        there, far = cluster.shared("whitening", R), np.flatnonzero(~alike)
        plain = given.gathered("distances", _distances, there)[far] / R.shape[1]
        apart = separable(given.indices[far], plain, far)
        plain, kept, floor = plain[apart], np.zeros(same.size, dtype=bool), Floor(self.floor_)
        kept[far[apart]] = True
        self.mu_ = SMOOTHING * float(np.median(plain)) if self.mu == "auto" else float(self.mu)
        parts = given.each(
            "pairs", _softened, given.split(kept), there, floor, self.mu_, self.device
        )
        some = [part for part, own in zip(parts, given.split(kept), strict=True) if own.any()]
        objective = Sharded(cluster, some, mu=self.mu_)
        problem = Problem(
            objective,
            Spectrahedron(1.0),
            name="dml_eig",
            formula="μ ln Σ exp(−⟨X̃_τ, S⟩/μ)",
            variable="S",
        )
        start, k = floor.coordinates(self._start(R)), self._limit(R.shape[1])
        result = self._minimize(problem, init=start, rank=k)
        learned = given.gathered("distances", _distances, R @ result.factor)[kept]
        reached = floor.distances(learned, plain)
        slope = objective.gradient(objective.image(result.factor)).dense()
        weighed = self.floor_ * float(softmax(-reached / self.mu_) @ plain)
        largest = float(scipy.linalg.eigvalsh(-slope)[-1])
        self.max_min_ = MaxMin(float(reached.min()), weighed + largest)
        self._finish(result, floor.factor(result.factor), given.gram(R), R)
        lengths = given.gathered("distances", _distances, self.components_.T)
        self._calibrate(np.sqrt(lengths), same)
        return self


class TripletMetric(OfTuples, home.TripletMetric):
    """`gramian.metric.TripletMetric` of Dask collections or files.

    The samples of `fit(X, y)` are copied to the driver; `fit_triplets` takes a Dask array of shape
    (t, 3, d), which stays on the workers.
    """

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> TripletMetric:
        """Learn the metric from triplets (anchor, same, other) of vectors."""
        given = self._tuples(triplets, 3, X)
        check_triplets(given.numbered, given.indices)

        def objective(lam: float) -> Sum:
            parts = given.each("triplets", _hinged, lam, self.mu, self.device)
            return Sum([Sharded(given.cluster, parts), Linear(1.0, given.found.mean.size)])

        self.lam_ = float(self.lam) if self.lam != "auto" else weight_unit(objective(1.0))
        problem = Problem(
            objective(self.lam_),
            name="triplets",
            formula="tr M + λ Σ h_μ(1 + d_M(i,j) − d_M(i,l))",
        )
        self._solve(problem, given.gram(), None)
        return self


# --- tasks -------------------------------------------------------------------------------


def _size(block: Block) -> int:
    return len(block[0])


def _marks(block: Block) -> Any:
    if block[1] is None:
        raise ValueError("same is needed: one mark for each pair, True or 1 where it is")
    return block[1]


def _vector_spread(block: Block) -> Spread:
    rows = block[0].reshape(-1, block[0].shape[2])
    return spread_of(Sample(rows, np.zeros(len(rows), dtype=int)))


def _keys(block: Block) -> Any:
    """A hash of each vector."""
    t, width, d = block[0].shape
    rows = pd.DataFrame(block[0].reshape(-1, d) + 0.0)  # −0 is 0
    return pd.util.hash_pandas_object(rows, index=False).to_numpy().reshape(t, width)


def _scatter(block: Block, mask: NDArray[np.bool_]) -> Array:
    """Σ (x − z)(x − z)ᵀ of the first two vectors of some tuples."""
    apart = (block[0][:, 1] - block[0][:, 0])[mask]
    return np.asarray(apart.T @ apart, dtype=float)


def _distances(block: Block, L: Array) -> Array:
    """‖Lᵀ(x − z)‖² of each pair."""
    apart = (block[0][:, 0] - block[0][:, 1]) @ L
    return np.asarray(np.einsum("ed,ed->e", apart, apart))


def _from_anchors(table: Array, R: Array | None = None) -> tuple[Array, NDArray[np.integer]]:
    """Samples and tuples of indices, with the anchor of every tuple at the origin, sample 0."""
    t, width, d = table.shape
    apart = (table[:, 1:] - table[:, :1]).reshape(-1, d)
    apart = apart if R is None else apart @ R
    X = np.vstack([np.zeros((1, apart.shape[1])), apart])
    others = 1 + np.arange(len(apart)).reshape(t, width - 1)
    return X, np.column_stack([np.zeros(t, dtype=int), others])


def _hinged(block: Block, lam: float, mu: float, device: Any) -> Objective:
    """λ Σ h_μ(1 + d(i, j) − d(i, l)) over the triplets of a block."""
    objective: Any = triplets(*_from_anchors(block[0]), lam, mu).objective
    return placed(objective.with_linear(None), device)


def _squared(block: Block, lam: float, R: Array, device: Any) -> Objective:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over the triplets of a block."""
    X, indices = _from_anchors(block[0], R)
    return placed(lmnn_of_triplets(X, indices[:0], indices, lam, pull=0.0).objective, device)


def _active(part: Any, L: Array) -> int:
    return int((part.image(part.place.put(L)).z < 1.0).sum())


def _softened(
    block: Block, kept: NDArray[np.bool_], R: Array, floor: Floor, mu: float, device: Any
) -> Objective | None:
    """μ ln Σ exp(−d/μ) over some pairs of a block, None without any."""
    if not kept.any():
        return None
    X, pairs = _from_anchors(block[0][kept], R)
    plain = np.einsum("ed,ed->e", X[1:], X[1:]) / X.shape[1]
    problem = dml_eig_whitened(floor.samples(X), pairs, mu, offset=floor.rho * plain)
    return placed(problem.objective, device)
