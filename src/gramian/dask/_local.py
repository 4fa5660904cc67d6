"""DMLEig and TripletMetric on a cluster: targets and impostors are searched block against block."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian import metric as home
from gramian.dask._alignment import chosen
from gramian.dask._base import OnShards
from gramian.dask._cluster import Cluster
from gramian.dask._collections import Sample
from gramian.dask._objective import Sharded, there
from gramian.dask._samples import (
    Spread,
    about,
    labelled,
    refuse_indices,
    shaped,
    tupled,
    whitening_of,
)
from gramian.domains import Spectrahedron
from gramian.linalg import leading_eigenpair
from gramian.losses import SmoothedHinge, SoftMin, SquaredHinge
from gramian.maps import Congruence, PairDistances, triplet_margins
from gramian.metric._floor import floor_for
from gramian.metric._local import ridge_for
from gramian.metric._max_min import MaxMin
from gramian.metric.dml_eig import SMOOTHING
from gramian.metric.triplet_metric import WEIGHT
from gramian.neighbours import nearest
from gramian.objectives import Composite, Linear, Sum
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import Moments
from gramian.reductions.floor import with_floor, without_floor
from gramian.run import minimize

Array = NDArray[np.floating]


ROUGH = 1e-2
"""The tolerance of the alignment that neighbours are sought by, as at home."""


@dataclass(frozen=True)
class Near:
    """For each sample of a block the k nearest found so far: squared distances, and vectors."""

    squares: Array
    vectors: Array

    def __add__(self, other: Near) -> Near:
        k = self.squares.shape[1]
        squares = np.hstack([self.squares, other.squares])
        order = np.argsort(squares, axis=1, kind="stable")[:, :k]
        vectors = np.concatenate([self.vectors, other.vectors], axis=1)
        return Near(
            np.take_along_axis(squares, order, axis=1),
            np.take_along_axis(vectors, order[:, :, None], axis=1),
        )


@dataclass(frozen=True)
class Local:
    """The samples of a block with the differences to their targets and impostors, (n, k, d)."""

    near: Array
    far: Array


def local(
    cluster: Cluster, shards: list[Any], mean: Array, k: int, factor: Array | None = None
) -> list[Any]:
    """A node for each block: its samples' k targets and k impostors, where LLᵀ measures."""
    sides = [sought(cluster, shards, mean, k, factor, same) for same in (True, False)]
    return cluster.each("local", _local, shards, cluster.shared("mean", mean), *sides)


def sought(
    cluster: Cluster, shards: list[Any], mean: Array, k: int, factor: Array | None, same: bool
) -> list[Any]:
    """A node for each block: the k nearest samples of the same class, or of others."""
    shared = cluster.shared("mean", mean)
    L = None if factor is None else cluster.shared("factor", factor)
    found = []
    for a, block in enumerate(shards):
        own = [a == b for b in range(len(shards))]
        nodes = cluster.each(
            "neighbours", _near, [block] * len(shards), shards, own, same, shared, L, k
        )
        found.append(cluster.tree("neighbours", nodes))
    return found


def alignment(cluster: Cluster, shards: list[Any], found: Spread) -> Array:
    """A factor of KTA's metric, in which neighbours are sought, for samples at unit size."""
    data = found.moments(center=True)
    size = float(np.sqrt(data.trace / (found.count * found.mean.size)))
    if size == 0:
        return np.eye(found.mean.size)
    gram = Dense(data.gram.dense() / size**2, lower=0.0)
    unit = Moments(gram, data.sums / size, data.counts, data.trace / size**2)
    lam = chosen(cluster, shards, found, unit, size=size).value
    return minimize(kta_from_moments(unit, lam), tol=ROUGH).factor / size


def _near(
    block: Sample, other: Sample, own: bool, same: bool, mean: Array, L: Array | None, k: int
) -> Near:
    A, B = about(block.X, mean), about(other.X, mean)
    Z, W = (A, B) if L is None else (A @ L, B @ L)
    squares = np.full((len(A), k), np.inf)
    vectors = np.zeros((len(A), k, A.shape[1]))
    for c in np.unique(block.y):
        asking = np.flatnonzero(block.y == c)
        asked = np.flatnonzero((other.y == c) if same else (other.y != c))
        itself = own and same
        count = min(k + itself, asked.size)
        if count == 0:
            continue
        near = nearest(W[asked], count, queries=Z[asking])
        place, far = asked[near.indices], np.array(near.sq_distances, dtype=float)
        if itself:
            far[place == asking[:, None]] = np.inf
            order = np.argsort(far, axis=1, kind="stable")[:, :k]
            far, place = (np.take_along_axis(part, order, axis=1) for part in (far, place))
        width = far.shape[1]
        squares[asking, :width], vectors[asking, :width] = far, B[place]
    return Near(squares, vectors)


def _local(block: Sample, mean: Array, near: Near, far: Near) -> Local:
    anchors = about(block.X, mean)[:, None]
    return Local(near.vectors - anchors, far.vectors - anchors)


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


def margins_of(near: Array, far: Array, pairs: Any, R: Array | None = None) -> Congruence:
    """The margins of triplets with anchors at the origin, by pairs of a target and an impostor."""
    X = np.vstack([np.zeros((1, near.shape[1])), near, far])
    X = np.ascontiguousarray(X if R is None else X @ R)
    anchors = np.zeros(len(pairs), dtype=pairs.dtype)
    triplets = np.column_stack([anchors, 1 + pairs[:, 0], 1 + len(near) + pairs[:, 1]])
    return Congruence(triplet_margins(triplets, len(X)), X)


def hinged(block: Any, lam: float, mu: float, R: Array | None) -> Composite:
    """λ Σ h_μ(1 + d(i, j) − d(i, l)) over the triplets of a block."""
    return Composite(margins_of(*_differences(block), R), SmoothedHinge(mu=mu, weight=lam))


def squared(block: Any, lam: float, R: Array) -> Composite:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over the triplets of a block."""
    return Composite(margins_of(*_differences(block), R), SquaredHinge(margin=1.0, weight=lam))


IDENTICAL = 1e-14
"""Pairs nearer than this part of the farthest cannot be told apart by any metric."""


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
        shards, found = tupled(self, cluster, pairs, 2, same)
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
        shape = shaped(found.count, found.mean.size)
        self.ridge_ = ridge_for(self.ridge, shape)
        self.floor_ = floor_for(self.floor, shape, self.rank)
        R = whitening_of(cluster.sum("scatter", _similar_scatter, shards), self.ridge_)
        gram = found.moments(center=True).gram.dense()
        R = R @ np.linalg.eigh(R.T @ gram @ R)[1]
        shared = cluster.shared("whitening", R)
        plain = np.concatenate(cluster.gather(cluster.each("distances", _plain, shards, shared)))
        least = _least_apart(plain)
        self.mu_ = SMOOTHING * float(np.median(plain[plain > least]))
        self.mu_ = self.mu_ if self.mu == "auto" else float(self.mu)
        nodes = cluster.each("pairs", softened, shards, shared, self.floor_, self.mu_, least)
        parts = there(cluster, cluster.keep(nodes))
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


# --- what tasks do -----------------------------------------------------------------------


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


def _split_local(block: Local) -> tuple[Array, Array]:
    d = block.near.shape[2]
    return block.near.reshape(-1, d), block.far.reshape(-1, d)


def _split_pairs(block: tuple[Array, Any]) -> tuple[Array, Array]:
    table, same = block
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
