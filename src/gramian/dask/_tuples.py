"""LMNN, DMLEig and TripletMetric on a cluster: pairs and triplets of vectors stay on the workers.

Labelled samples are copied to the driver (`OnDriver`): the time of a neighbour search is quadratic
in the number of samples, so it becomes infeasible before they exceed the driver's memory.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import NDArray

from gramian import metric as home
from gramian.dask._alignment import Spread, spread_of
from gramian.dask._base import bar_for, refuse_device
from gramian.dask._cluster import Cluster
from gramian.dask._collections import NAMES, Sample, filled, tuples
from gramian.dask._driver import OnDriver
from gramian.dask._objective import Sharded, there
from gramian.domains import Spectrahedron
from gramian.linalg import leading_eigenpair
from gramian.losses import SmoothedHinge, SoftMin, SquaredHinge
from gramian.maps import Congruence, PairDistances, triplet_margins
from gramian.metric._input import row_keys
from gramian.metric._local import MaxMin, floor_for, ridge_for
from gramian.metric.dml_eig import SMOOTHING
from gramian.metric.triplet_metric import WEIGHT
from gramian.objectives import Composite, Linear, Sum
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.reductions.floor import with_floor, without_floor
from gramian.reductions.scatter_whitening import scatter_whitening

Array = NDArray[np.floating]

IDENTICAL = 1e-14
"""Squared distance, relative to the largest, up to which points are considered identical."""


class OfTuples(OnDriver):
    """A metric learner of pairs or triplets on the workers."""

    def _minimize(self, problem: Any, *, init: Any = None, **changes: Any) -> Any:
        """`gramian.minimize` with the parameters of the estimator; its bar shows the traffic."""
        parts = getattr(problem.objective, "parts", ())
        found = [part.cluster for part in (problem.objective, *parts) if hasattr(part, "cluster")]
        bar = bar_for(self, found[0], problem.name) if found else None
        if bar is None:
            return super()._minimize(problem, init=init, **changes)  # type: ignore[misc]
        try:
            changes |= {"progress": False, "callback": bar}
            return super()._minimize(problem, init=init, **changes)  # type: ignore[misc]
        finally:
            bar.close()

    def _tuples(
        self, cluster: Cluster, given: Any, width: int, X: Any, marks: Any = None
    ) -> tuple[list[Any], Spread]:
        """Pairs or triplets, kept on the workers, and the moments of their vectors.

        Sets the fitted attributes that describe them.
        """
        model: Any = self
        if X is not None:
            raise ValueError(
                "X is for indices, and on a cluster pairs and triplets are vectors: pass X[pairs]"
            )
        refuse_device(model)
        if model.shrinkage not in ("auto", 0):
            raise ValueError(
                f"a cluster learns without shrinkage: pass shrinkage=0, not {model.shrinkage!r}"
            )
        model._forget("path_", "classes_", "threshold_", "same_values_", "feature_names_in_")
        model.shrinkage_ = 0.0
        shards = cluster.keep(tuples(cluster, given, width, marks))
        shards = filled(cluster, shards, _tuples_of, NAMES[width])[0]
        _refuse_contradictions(cluster, shards, width)
        found: Spread = cluster.sum("moments", _vector_spread, shards)
        answers = cluster.gather(cluster.each("keys", _vector_keys, shards))
        found = replace(found, count=int(np.unique(np.concatenate(answers)).size))
        model.n_features_in_ = found.mean.size
        model._check_sizes(found.count)
        model._check(found.count)
        return shards, found


class LMNN(OfTuples, home.LMNN):
    """`gramian.metric.LMNN` of Dask collections or files.

    The samples of `fit(X, y)` are copied to the driver; `fit_triplets` takes a Dask array of shape
    (t, 3, d), which stays on the workers.
    """

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> LMNN:
        """Learn the metric from triplets (anchor, same, other): S are their pairs, each once."""
        cluster = Cluster()
        shards, found = self._tuples(cluster, triplets, 3, X)
        self.ridge_ = ridge_for(self.ridge, found.like)
        keys = cluster.gather(cluster.each("targets", _pair_keys, shards))
        scatter = cluster.sum("scatter", _target_scatter, shards, _firsts(keys))
        R = _whitening(scatter, self.ridge_)
        shared = cluster.shared("whitening", R)
        parts = cluster.keep(cluster.each("triplets", _squared, shards, float(self.lam), shared))
        problem = Problem(
            Sum([Sharded(cluster, parts), Linear(1.0, R.shape[1])]),
            name="lmnn",
            formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
        )
        result = self._minimize(problem, init=self._start(R), rank=self._limit(R.shape[1]))
        L = cluster.shared("factor", result.factor)
        self.n_active_ = int(cluster.sum("active", _active, parts, L))
        gram = found.moments(center=True).gram.dense()
        self._finish(result, result.factor, Dense(R.T @ gram @ R, lower=0.0), R)
        return self


class DMLEig(OfTuples, home.DMLEig):
    """`gramian.metric.DMLEig` of Dask collections or files.

    The samples of `fit(X, y)` are copied to the driver. `fit_pairs` takes a Dask array of shape
    (p, 2, d) and labels of pairs, which stay on the workers. One number for each dissimilar pair is
    sent to the driver, for the threshold and for the median that is the unit of μ.
    """

    def fit_pairs(self, pairs: Any, same: Any = None, *, X: Any = None) -> DMLEig:
        """Learn the metric from pairs of vectors that are the same or not, and a threshold."""
        if self.kernel is not None:
            raise ValueError("kernels need all samples in memory: use gramian.metric.DMLEig")
        cluster = Cluster()
        shards, found = self._tuples(cluster, pairs, 2, X, same)
        self._fit_shards(cluster, cluster.keep(cluster.each("pairs", _split_pairs, shards)), found)
        nodes = cluster.each("distances", _pair_distances, shards, self.components_)
        answers = zip(*cluster.gather(nodes), strict=True)
        distances, marked = (np.concatenate(part) for part in answers)
        self._calibrate(distances, marked)
        return self

    def _fit_shards(self, cluster: Cluster, shards: list[Any], found: Spread) -> None:
        self.ridge_ = ridge_for(self.ridge, found.like)
        self.floor_ = floor_for(self.floor, found.like, self._limit(found.like.shape[1]))
        R = _whitening(cluster.sum("scatter", _similar_scatter, shards), self.ridge_)
        gram = found.moments(center=True).gram.dense()
        R = R @ np.linalg.eigh(R.T @ gram @ R)[1]
        shared = cluster.shared("whitening", R)
        plain = np.concatenate(cluster.gather(cluster.each("distances", _plain, shards, shared)))
        least = _least_apart(plain)
        typical = SMOOTHING * float(np.median(plain[plain > least]))
        self.mu_ = typical if self.mu == "auto" else float(self.mu)
        nodes = cluster.each("pairs", _softened, shards, shared, self.floor_, self.mu_, least)
        parts = there(cluster, cluster.keep(nodes))
        objective = Sharded(cluster, parts, mu=self.mu_)
        problem = Problem(
            objective,
            Spectrahedron(1.0),
            name="dml_eig",
            formula="μ ln Σ exp(−⟨X̃_τ, S⟩/μ)",
            variable="S",
        )
        start, k = without_floor(self._start(R), self.floor_), self._limit(R.shape[1])
        result = self._minimize(problem, init=start, rank=k)
        self.max_min_ = self._max_min_of(objective, result.factor)
        factor = with_floor(result.factor, self.floor_)
        self._finish(result, factor, Dense(R.T @ gram @ R, lower=0.0), R)

    def _max_min_of(self, objective: Sharded, factor: Array) -> MaxMin:
        """min_D d at this metric, and max_S Σ u_τ d_τ for the weights u of the smoothing."""
        image, cluster = objective.image(factor), objective.cluster
        value = objective.value(image)
        least, plain = cluster.sum(
            "least", _reached, objective.parts, factor, value, join=_least_of
        )
        largest = float(scipy.linalg.eigvalsh(-objective.gradient(image).dense())[-1])
        return MaxMin(float(least), float(plain) + largest)


class TripletMetric(OfTuples, home.TripletMetric):
    """`gramian.metric.TripletMetric` of Dask collections or files.

    The samples of `fit(X, y)` are copied to the driver; `fit_triplets` takes a Dask array of shape
    (t, 3, d), which stays on the workers.
    """

    def fit_triplets(self, triplets: Any, *, X: Any = None) -> TripletMetric:
        """Learn the metric from triplets (anchor, same, other) of vectors."""
        cluster = Cluster()
        shards, found = self._tuples(cluster, triplets, 3, X)

        def objective(lam: float) -> Sum:
            parts = cluster.keep(cluster.each("triplets", _hinged, shards, lam, self.mu))
            return Sum([Sharded(cluster, parts), Linear(1.0, found.mean.size)])

        self.lam_ = float(self.lam) if self.lam != "auto" else _unit(objective(1.0))
        problem = Problem(
            objective(self.lam_),
            name="triplets",
            formula="tr M + λ Σ h_μ(1 + d_M(i,j) − d_M(i,l))",
        )
        self._solve(problem, found.moments(center=True).gram, None)
        return self


def _refuse_contradictions(cluster: Cluster, shards: list[Any], width: int) -> None:
    """Raise ValueError for pairs of one kind only, and tuples that occur in both orientations."""
    answers = cluster.gather(cluster.each("keys", _oriented, shards))
    keys, forth = (np.concatenate(part) for part in zip(*answers, strict=True))
    if width == 2 and (forth.all() or not forth.any()):
        kind, other = ("similar", "dissimilar") if forth.all() else ("dissimilar", "similar")
        raise ValueError(
            f"all {forth.size} pairs are {kind}: a metric is learned from the difference between "
            f"similar and dissimilar pairs, so add {other} ones"
        )
    both = np.intersect1d(keys[forth], keys[~forth])
    if both.size:
        how = "are marked the same and not the same" if width == 2 else "are there both ways round"
        raise ValueError(f"contradictory {NAMES[width]}: {both.size} of them {how}")


def _firsts(keys: list[Any]) -> list[Any]:
    """For each shard which of its pairs occur for the first time."""
    every = np.concatenate(keys)
    is_first: NDArray[np.bool_] = np.zeros(every.size, dtype=bool)
    is_first[np.unique(every, return_index=True)[1]] = True
    return np.split(is_first, np.cumsum([part.size for part in keys])[:-1])


def _whitening(scatter: Array, ridge: float) -> Array:
    """R of the whitening by a sum of scatters."""
    return scatter_whitening(0.5 * (scatter + scatter.T), ridge).matrix


def _least_apart(plain: Array) -> float:
    """The squared distance up to which pairs are omitted, with a warning if there are any."""
    least = IDENTICAL * float(plain.max(initial=0.0))
    lost = int(np.sum(plain <= least))
    if lost == plain.size:
        raise ValueError(
            "the points of all dissimilar pairs are identical: no metric tells them apart"
        )
    if lost:
        warnings.warn(
            f"the points of {lost} of {plain.size} dissimilar pairs are identical: no metric can "
            "tell those apart, and they are left out",
            stacklevel=4,
        )
    return least


def _unit(objective: Sum) -> float:
    """The unit of λ: the value above which −∇F(0) has a positive eigenvalue."""
    gradient = objective.gradient(objective.image(np.zeros((objective.order, 1))))
    steepest = leading_eigenpair(-gradient, tol=1e-2, random_state=0).value
    return WEIGHT / (steepest + 1.0) if steepest + 1.0 > 1e-12 else 1.0


# --- tasks: a block is an array (t, width, d) and the labels of its pairs ----------------


def _vector_spread(block: tuple[Array, Any]) -> Spread:
    rows = block[0].reshape(-1, block[0].shape[2])
    return spread_of(Sample(rows, np.zeros(len(rows), dtype=int)))


def _tuples_of(block: tuple[Array, Any]) -> int:
    return len(block[0])


def _hashes(rows: Array) -> Any:
    return pd.util.hash_pandas_object(pd.DataFrame(rows), index=False).to_numpy()


def _oriented(block: tuple[Array, Any]) -> tuple[Any, Any]:
    """A key for each pair or triplet that is independent of its orientation, and the latter."""
    table, same = block
    hashes = [_hashes(table[:, k] + 0.0) for k in range(table.shape[1])]
    if len(hashes) == 2:
        if same is None:
            raise ValueError("same is needed: one mark for each pair, True or 1 where it is")
        return hashes[0] + hashes[1], np.asarray(same) == 1
    anchor, near, far = hashes
    return anchor * np.uint64(0x9E3779B97F4A7C15) + (near + far), near < far


def _vector_keys(block: tuple[Array, Any]) -> Array:
    return np.unique(row_keys(block[0].reshape(-1, block[0].shape[2])))


def _pair_keys(block: tuple[Array, Any]) -> Any:
    return _hashes(block[0][:, :2].reshape(len(block[0]), -1))


def _target_scatter(block: tuple[Array, Any], first: Any) -> Array:
    apart = (block[0][:, 1] - block[0][:, 0])[first]
    return np.asarray(apart.T @ apart)


def _margins(block: tuple[Array, Any], R: Array | None = None) -> Congruence:
    """The margins of triplets, with their anchors at the origin."""
    table = block[0] if R is None else block[0] @ R
    near, far = table[:, 1] - table[:, 0], table[:, 2] - table[:, 0]
    X = np.ascontiguousarray(np.vstack([np.zeros((1, near.shape[1])), near, far]))
    each = 1 + np.arange(len(near))
    triplets = np.column_stack([np.zeros_like(each), each, len(near) + each])
    return Congruence(triplet_margins(triplets, len(X)), X)


def _hinged(block: tuple[Array, Any], lam: float, mu: float) -> Composite:
    """λ Σ h_μ(1 + d(i, j) − d(i, l)) over the triplets of a block."""
    return Composite(_margins(block), SmoothedHinge(mu=mu, weight=lam))


def _squared(block: tuple[Array, Any], lam: float, R: Array) -> Composite:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over the triplets of a block."""
    return Composite(_margins(block, R), SquaredHinge(margin=1.0, weight=lam))


def _active(part: Composite, L: Array) -> int:
    return int(np.sum(part.image(L).z < 1.0))


def _split_pairs(block: tuple[Array, Any]) -> tuple[Array, Array]:
    """The differences of similar and of dissimilar pairs."""
    table, same = block
    alike = np.asarray(same) == 1
    apart = table[:, 0] - table[:, 1]
    return apart[alike], apart[~alike]


def _similar_scatter(block: tuple[Array, Array]) -> Array:
    return block[0].T @ block[0]


def _plain(block: tuple[Array, Array], R: Array) -> Array:
    far = block[1] @ R
    return np.asarray(np.einsum("ed,ed->e", far, far) / far.shape[1])


def _softened(
    block: tuple[Array, Array], R: Array, floor: float, mu: float, least: float
) -> Composite | None:
    """μ ln Σ exp(−d/μ) over the dissimilar pairs of a block, None without any."""
    plain = _plain(block, R)
    far, plain = (block[1] @ R)[plain > least], plain[plain > least]
    if not len(far):
        return None
    X = np.vstack([np.zeros((1, far.shape[1])), np.sqrt(1.0 - floor) * far])
    pairs = np.column_stack([np.zeros(len(far), dtype=int), 1 + np.arange(len(far))])
    distances = Congruence(PairDistances(pairs, len(X)), np.ascontiguousarray(X))
    return Composite(distances, SoftMin(mu=mu, offset=floor * plain))


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
