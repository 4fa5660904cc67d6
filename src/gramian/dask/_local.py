"""TripletMetric, DMLEig and LMNN on a cluster: pairs and triplets stay where they were found."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import NDArray

from gramian import metric as home
from gramian.constraints import check_class_sizes
from gramian.dask._alignment import take
from gramian.dask._base import OnShards, check_plain
from gramian.dask._cluster import Cluster
from gramian.dask._collections import Sample, samples, tuples
from gramian.dask._lmnn import Task, differences, target_scatter, whitened
from gramian.dask._moments import Spread, spread, spread_of
from gramian.dask._neighbours import Local, alignment, local, sought
from gramian.dask._objective import Sharded
from gramian.domains import Spectrahedron
from gramian.eigen import leading_eigenpair
from gramian.losses import SmoothedHinge, SoftMin, SquaredHinge
from gramian.maps import Congruence, PairDistances, triplet_margins
from gramian.metric._coordinates import row_keys
from gramian.metric._local import joined, ridge_for
from gramian.metric._max_min import MaxMin
from gramian.metric.dml_eig import SMOOTHING, floor_for, with_floor, without_floor
from gramian.metric.lmnn import ENDED, ROUNDS, is_optimal, whole
from gramian.metric.triplet_metric import WEIGHT
from gramian.objectives import Composite, Linear, Sum
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.local_metric import positive
from gramian.result import Result, Status

Array = NDArray[np.floating]

IDENTICAL = 1e-14
"""Pairs nearer than this part of the farthest cannot be told apart by any metric."""


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
        shards = cluster.keep(tuples(cluster, triplets, 3))
        found = tupled(self, cluster, shards)
        self._check(found.count)
        return self._fit_shards(cluster, shards, found)

    def _fit_shards(self, cluster: Cluster, shards: list[Any], found: Spread) -> TripletMetric:
        d = found.mean.size
        parts = cluster.keep(cluster.each("triplets", hinged, shards, 1.0, self.mu, None))
        objective = Sum([Sharded(cluster, parts), Linear(1.0, d)])
        self.lam_ = positive(float(self.lam), "lam") if self.lam != "auto" else _unit(objective)
        parts = cluster.keep(cluster.each("triplets", hinged, shards, self.lam_, self.mu, None))
        problem = Problem(
            Sum([Sharded(cluster, parts), Linear(1.0, d)]),
            name="triplets",
            formula="tr M + λ Σ h_μ(1 + d_M(i,j) − d_M(i,l))",
        )
        self._solve(problem, found.moments(center=True).gram, None)
        return self


class LMNN(OnShards, home.LMNN):
    """`gramian.metric.LMNN` of Dask collections or files.

    `fit(X, y)` goes over all impostors, block against block, once for each round; `fit_triplets`
    takes a Dask array of shape (t, 3, d).
    """

    def fit(self, X: Any, y: Any) -> LMNN:
        """Learn the metric from labelled samples."""
        started, cluster = time.perf_counter(), Cluster()
        shards, found = labelled(self, cluster, X, y)
        lam, d = self._check(found.count), found.mean.size
        quick = alignment(cluster, shards, found) if self.neighbor_metric == "kta" else None
        near, far = (
            cluster.keep(sought(cluster, shards, found.mean, self.n_neighbors, quick, same))
            for same in (True, False)
        )
        self.ridge_ = ridge_for(self.ridge, _shaped(found.count, d))
        mean = cluster.shared("mean", found.mean)
        R = whitening_of(cluster.sum("scatter", target_scatter, shards, near, mean), self.ridge_)
        turn = cluster.shared("whitening", R)
        anchors = cluster.keep(cluster.each("anchors", whitened, shards, near, mean, turn))
        sizes = cluster.gather(cluster.each("count", _rows_of, shards))
        task = Task(cluster, anchors, [int(s) for s in np.cumsum([0, *sizes[:-1]])], lam)
        task.begin(cluster.each("impostors", differences, shards, far, mean, turn))
        most = lam * self.n_neighbors * float(found.counts @ (found.count - found.counts))
        result = self._rounds_of(task, self._start(R), most, started)
        gram = found.moments(center=True).gram.dense()
        self._finish(result, result.factor, Dense(R.T @ gram @ R, lower=0.0), joined(None, R))
        return self

    def _rounds_of(self, task: Task, start: Array | None, most: float, started: float) -> Result:
        """Solve for the active triplets, find those that are violated now, and so on."""
        factor, lower, gap = start, -np.inf, 1.0
        best: tuple[float, int, Array] = np.inf, 0, np.zeros((0, 0))
        for _ in range(ROUNDS):
            problem = task.problem(self.n_features_in_)
            tol, left = max(0.3 * self.tol, min(1e-2, 0.03 * gap)), self._remaining(started)
            result = self._minimize(problem, init=factor, tol=tol, time_limit=left)
            factor = result.factor
            lower = max(lower, result.certificate.lower_bound)
            value, count = task.seek(factor)
            moved = abs(best[0] - value) > self.tol * value
            best = min(best, (value, count, factor), key=lambda known: known[0])
            certificate = whole(result, best[0], lower, most)
            gap = 1.0 if certificate.relative_gap is None else certificate.relative_gap
            done = is_optimal(certificate, self.tol)
            settled = not moved and (tol == 0.3 * self.tol or result.status is not Status.CONVERGED)
            if done or settled or result.status in ENDED or self._late(started):
                break
        self.n_active_ = best[1]
        return replace(
            result,
            factor=best[2],
            value=certificate.value,
            certificate=certificate,
            status=self._status(result.status, done, started),
            seconds=time.perf_counter() - started,
        )

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> LMNN:
        """Learn the metric from triplets (anchor, same, other): S are their pairs, each once."""
        refuse_indices(X)
        cluster = Cluster()
        shards = cluster.keep(tuples(cluster, triplets, 3))
        found = tupled(self, cluster, shards)
        lam = self._check(found.count)
        self.ridge_ = ridge_for(self.ridge, _shaped(found.count, found.mean.size))
        keys = cluster.gather(cluster.each("targets", _pair_keys, shards))
        scatter = cluster.sum("scatter", _target_scatter, shards, _firsts(keys))
        R = whitening_of(scatter, self.ridge_)
        shared = cluster.shared("whitening", R)
        parts = cluster.keep(cluster.each("triplets", squared, shards, lam, shared))
        problem = Problem(
            Sum([Sharded(cluster, parts), Linear(1.0, R.shape[1])]),
            name="lmnn",
            formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
        )
        result = self._minimize(problem, init=self._start(R))
        L = cluster.shared("factor", result.factor)
        self.n_active_ = int(cluster.sum("active", _active, parts, L))
        gram = found.moments(center=True).gram.dense()
        self._finish(result, result.factor, Dense(R.T @ gram @ R, lower=0.0), joined(None, R))
        return self


class DMLEig(OnShards, home.DMLEig):
    """`gramian.metric.DMLEig` of Dask collections or files.

    `fit(X, y)` seeks targets and impostors block against block; `fit_pairs` takes a Dask array of
    shape (p, 2, d) and marks. One number for each dissimilar pair comes to the driver, for the
    median that μ is measured by and for the threshold.
    """

    def fit(self, X: Any, y: Any) -> DMLEig:
        """Learn the metric from labelled samples."""
        self._refuse_kernel()
        cluster = Cluster()
        shards, found = labelled(self, cluster, X, y)
        self._check(found.count)
        quick = None if self.neighbor_metric == "euclidean" else alignment(cluster, shards, found)
        blocks = local(cluster, shards, found.mean, self.n_neighbors, quick)
        near = cluster.keep(cluster.each("pairs", _split_local, cluster.keep(blocks)))
        return self._fit_shards(cluster, near, found)

    def fit_pairs(self, pairs: Any, same: Any = None, *, X: Any = None) -> DMLEig:
        """Learn the metric from pairs of vectors that are the same or not, and a threshold."""
        refuse_indices(X)
        self._refuse_kernel()
        cluster = Cluster()
        shards = cluster.keep(tuples(cluster, pairs, 2, same))
        found = tupled(self, cluster, shards)
        self._check(found.count)
        self._fit_shards(cluster, cluster.keep(cluster.each("pairs", _split_pairs, shards)), found)
        told = cluster.gather(cluster.each("distances", _pair_distances, shards, self.components_))
        distances, marked = (np.concatenate(part) for part in zip(*told, strict=True))
        self._calibrate(distances, marked)
        return self

    def _refuse_kernel(self) -> None:
        if self.kernel is not None:
            raise ValueError("kernels need all samples at once: fit gramian.metric.DMLEig at home")

    def _fit_shards(self, cluster: Cluster, shards: list[Any], found: Spread) -> DMLEig:
        shape = _shaped(found.count, found.mean.size)
        self.ridge_, self.floor_ = ridge_for(self.ridge, shape), floor_for(self.floor, shape)
        R = whitening_of(cluster.sum("scatter", _similar_scatter, shards), self.ridge_)
        gram = found.moments(center=True).gram.dense()
        R = R @ np.linalg.eigh(R.T @ gram @ R)[1]
        shared = cluster.shared("whitening", R)
        plain = np.concatenate(cluster.gather(cluster.each("distances", _plain, shards, shared)))
        least = _least_apart(plain)
        self.mu_ = SMOOTHING * float(np.median(plain[plain > least]))
        self.mu_ = self.mu_ if self.mu == "auto" else float(self.mu)
        parts = cluster.keep(
            cluster.each("pairs", softened, shards, shared, self.floor_, self.mu_, least)
        )
        parts = [part for part, some in zip(
            parts, cluster.gather(cluster.each("count", _is_there, parts)), strict=True
        ) if some]  # fmt: skip
        objective = Sharded(cluster, parts, mu=self.mu_)
        problem = Problem(
            objective,
            Spectrahedron(1.0),
            name="dml_eig",
            formula="μ ln Σ exp(−⟨X̃_τ, S⟩/μ)",
            variable="S",
        )
        result = self._minimize(problem, init=without_floor(self._start(R), self.floor_))
        self.max_min_ = self._max_min_of(cluster, objective, parts, result.factor)
        factor = with_floor(result.factor, self.floor_)
        self._finish(result, factor, Dense(R.T @ gram @ R, lower=0.0), R)
        return self

    def _max_min_of(
        self, cluster: Cluster, objective: Sharded, parts: list[Any], factor: Array
    ) -> MaxMin:
        """min_D d at this metric, and max_S Σ u_τ d_τ for the weights u that smoothing gives."""
        image = objective.image(factor)
        value = objective.value(image)
        least, plain = cluster.sum("least", _reached, parts, factor, value, join=_least_of)
        largest = float(scipy.linalg.eigvalsh(-objective.gradient(image).dense())[-1])
        return MaxMin(float(least), float(plain) + largest)


def _shaped(n: int, d: int) -> Array:
    """What stands for so many samples of so many features where only that counts."""
    return np.broadcast_to(np.zeros(1), (n, d))


def refuse_indices(X: Any) -> None:
    """Pairs and triplets of a cluster are vectors."""
    if X is not None:
        raise ValueError(
            "X is for indices, and on a cluster pairs and triplets are vectors: pass X[pairs]"
        )


def labelled(model: Any, cluster: Cluster, X: Any, y: Any) -> tuple[list[Any], Spread]:
    """The samples, kept on the workers, and their moments; sets what a fit keeps of them."""
    check_plain(model)
    shards = cluster.keep(samples(cluster, X, y))
    found = spread(cluster, shards)
    take(model, found)
    places = np.repeat(np.arange(found.classes.size), found.counts.astype(int))
    check_class_sizes(places, found.classes, model.n_neighbors)
    outside = found.count - int(found.counts.max())
    if outside < model.n_neighbors:
        raise ValueError(f"only {outside} samples are outside the largest class, fewer than "
                         f"n_neighbors = {model.n_neighbors}: lower it")  # fmt: skip
    return shards, found


def tupled(model: Any, cluster: Cluster, shards: list[Any]) -> Spread:
    """The moments of the vectors of pairs or triplets; sets what a fit keeps of them."""
    check_plain(model)
    found: Spread = cluster.sum("moments", _vector_spread, shards)
    keys = np.unique(np.concatenate(cluster.gather(cluster.each("keys", _vector_keys, shards))))
    model._forget("classes_", "threshold_", "same_values_", "feature_names_in_")
    model.n_features_in_ = found.mean.size
    own = Spread(
        int(keys.size), found.mean, found.gram, found.classes, found.counts, found.sums
    )  # fmt: skip
    model._check_sizes(own.count)
    return own


def whitening_of(scatter: Array, ridge: float) -> Array:
    """R = G⁻ᵀ for the Cholesky factor G of X_S + δI, as `gramian.problems` has it."""
    scatter, order = 0.5 * (scatter + scatter.T), scatter.shape[0]
    if not np.any(np.diag(scatter) > 0):
        raise ValueError("the points of every similar pair are identical: nothing to learn from")
    lifted = scatter + ridge * float(np.trace(scatter)) / order * np.eye(order)
    try:
        G = scipy.linalg.cholesky(lifted, lower=True)
    except np.linalg.LinAlgError:
        G = np.zeros((1, 1))
    if np.min(np.diag(G)) <= 1e-7 * np.max(np.diag(G)):
        raise ValueError(
            "the scatter X_S of the similar pairs is singular: some direction of the features "
            "does not differ within any similar pair. Pass ridge=1e-3, or reduce the features "
            "by PCA first"
        )
    return np.ascontiguousarray(scipy.linalg.solve_triangular(G, np.eye(order), lower=True).T)


def _unit(objective: Sum) -> float:
    """λ in units of that above which −∇F(0) has a root, as at home."""
    gradient = objective.gradient(objective.image(np.zeros((objective.order, 1))))
    steepest = leading_eigenpair(-gradient, tol=1e-2, random_state=0).value
    return WEIGHT / (steepest + 1.0) if steepest + 1.0 > 1e-12 else 1.0


def _least_apart(plain: Array) -> float:
    """The distance below which dissimilar pairs are left out, with a warning where some are."""
    least = IDENTICAL * float(plain.max(initial=0.0))
    lost = int(np.sum(plain <= least))
    if lost == plain.size:
        raise ValueError("the points of all dissimilar pairs are identical: no metric tells them "
                         "apart")  # fmt: skip
    if lost:
        warnings.warn(
            f"the points of {lost} of {plain.size} dissimilar pairs are identical: no metric can "
            "tell those apart, and they are left out",
            stacklevel=4,
        )
    return least


def _firsts(keys: list[Any]) -> list[Any]:
    """For each shard which of its pairs no shard before it, nor itself before, has had."""
    every = np.concatenate(keys)
    _, first = np.unique(every, return_index=True)
    is_first: NDArray[np.bool_] = np.zeros(every.size, dtype=bool)
    is_first[first] = True
    return np.split(is_first, np.cumsum([part.size for part in keys])[:-1])


# --- what tasks do -----------------------------------------------------------------------


def _differences(block: Any) -> tuple[Array, Array, Any]:
    """(same − anchor), (other − anchor), and which of each belong together, an (e, 2) array."""
    if isinstance(block, Local):
        n, k, d = block.near.shape
        at = np.arange(n * k).reshape(n, k)
        pairs = np.column_stack([np.repeat(at, k, axis=1).ravel(), np.tile(at, (1, k)).ravel()])
        return block.near.reshape(-1, d), block.far.reshape(-1, d), pairs
    table = block[0]
    each = np.arange(len(table))
    return table[:, 1] - table[:, 0], table[:, 2] - table[:, 0], np.column_stack([each, each])


def _margins(block: Any, R: Array | None) -> Congruence:
    """The margins of triplets, whose anchors lie at the origin."""
    near, far, pairs = _differences(block)
    X = np.vstack([np.zeros((1, near.shape[1])), near, far])
    X = np.ascontiguousarray(X if R is None else X @ R)
    anchors = np.zeros(len(pairs), dtype=pairs.dtype)
    triplets = np.column_stack([anchors, 1 + pairs[:, 0], 1 + len(near) + pairs[:, 1]])
    return Congruence(triplet_margins(triplets, len(X)), X)


def hinged(block: Any, lam: float, mu: float, R: Array | None) -> Composite:
    """λ Σ h_μ(1 + d(i, j) − d(i, l)) over the triplets of a block."""
    return Composite(_margins(block, R), SmoothedHinge(mu=mu, weight=lam))


def squared(block: Any, lam: float, R: Array) -> Composite:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over the triplets of a block."""
    return Composite(_margins(block, R), SquaredHinge(margin=1.0, weight=lam))


def softened(
    block: tuple[Array, Array], R: Array, floor: float, mu: float, least: float
) -> Composite | None:
    """μ ln Σ exp(−d/μ) over the dissimilar pairs of a block, None where it has none."""
    far = block[1] @ R
    plain = np.einsum("ed,ed->e", far, far) / far.shape[1]
    far, plain = far[plain > least], plain[plain > least]
    if not len(far):
        return None
    X = np.vstack([np.zeros((1, far.shape[1])), np.sqrt(1.0 - floor) * far])
    pairs = np.column_stack([np.zeros(len(far), dtype=int), 1 + np.arange(len(far))])
    distances = Congruence(PairDistances(pairs, len(X)), np.ascontiguousarray(X))
    return Composite(distances, SoftMin(mu=mu, offset=floor * plain))


def _is_there(part: Any) -> bool:
    return part is not None


def _split_local(block: Local) -> tuple[Array, Array]:
    d = block.near.shape[2]
    return block.near.reshape(-1, d), block.far.reshape(-1, d)


def _split_pairs(block: tuple[Array, Any]) -> tuple[Array, Array]:
    table, same = block
    if same is None:
        raise ValueError("same is needed: one mark for each pair, True or 1 where it is")
    alike = np.asarray(same) == 1
    apart = table[:, 0] - table[:, 1]
    return apart[alike], apart[~alike]


def _similar_scatter(block: tuple[Array, Array]) -> Array:
    return block[0].T @ block[0]


def _plain(block: tuple[Array, Array], R: Array) -> Array:
    far = block[1] @ R
    return np.asarray(np.einsum("ed,ed->e", far, far) / far.shape[1])


def _reached(part: Any, factor: Array, value: float) -> tuple[float, float]:
    """The smallest distance, and Σ u ρ d/tr over the pairs of a block, u their share of F."""
    z = part.image(factor).z + part.loss.offset
    shares = np.exp(-(z + value) / part.loss.mu)
    return float(z.min()), float(shares @ np.broadcast_to(part.loss.offset, z.shape))


def _least_of(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return min(a[0], b[0]), a[1] + b[1]


def _pair_distances(block: tuple[Array, Any], components: Array) -> tuple[Array, Any]:
    apart = (block[0][:, 0] - block[0][:, 1]) @ components.T
    return np.linalg.norm(apart, axis=1), block[1]


def _vector_spread(block: tuple[Array, Any]) -> Spread:
    rows = block[0].reshape(-1, block[0].shape[2])
    return spread_of(Sample(rows, np.zeros(len(rows), dtype=int)))


def _vector_keys(block: tuple[Array, Any]) -> Array:
    return np.unique(row_keys(block[0].reshape(-1, block[0].shape[2])))


def _pair_keys(block: tuple[Array, Any]) -> Any:
    rows = block[0][:, :2].reshape(len(block[0]), -1)
    return pd.util.hash_pandas_object(pd.DataFrame(rows), index=False).to_numpy()


def _target_scatter(block: tuple[Array, Any], first: Any) -> Array:
    apart = (block[0][:, 1] - block[0][:, 0])[first]
    return np.asarray(apart.T @ apart)


def _rows_of(block: Sample) -> int:
    return int(block.X.shape[0])


def _active(part: Composite, L: Array) -> int:
    return int(np.sum(part.image(L).z < 1.0))
