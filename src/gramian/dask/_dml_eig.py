"""DMLEig on a cluster: pairs stay where they were found."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian import metric as home
from gramian.dask._base import OnShards
from gramian.dask._cluster import Cluster
from gramian.dask._labelled import labelled, refuse_indices, shaped, tupled, whitening_of
from gramian.dask._moments import Spread
from gramian.dask._neighbours import Local, alignment, local
from gramian.dask._objective import Sharded, there
from gramian.domains import Spectrahedron
from gramian.losses import SoftMin
from gramian.maps import Congruence, PairDistances
from gramian.metric._local import MaxMin, floor_for, ridge_for
from gramian.metric.dml_eig import SMOOTHING
from gramian.objectives import Composite
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.reductions.floor import with_floor, without_floor

Array = NDArray[np.floating]

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
