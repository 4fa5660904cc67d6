"""LMNN on a cluster: the active set of `gramian.estimators`, with impostors on the workers.

The triplets that a metric violates are found block against block. A sample keeps the nearest of its
violating impostors of each block; F includes all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramian import metric as home
from gramian.common import clock
from gramian.dask._base import OnShards
from gramian.dask._cluster import Cluster
from gramian.dask._collections import Sample
from gramian.dask._local import Near, alignment, margins_of, sought, squared
from gramian.dask._objective import Sharded, there
from gramian.dask._samples import (
    about,
    labelled,
    refuse_indices,
    rows_of,
    shaped,
    tupled,
    whitening_of,
)
from gramian.estimators.active_set import ActiveSet
from gramian.losses import SquaredHinge
from gramian.metric._lmnn_task import LMNNTask
from gramian.metric._local import ridge_for
from gramian.objectives import Composite, Linear, Sum
from gramian.objectives.matrices import Dense
from gramian.problem import Problem
from gramian.result import Result

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


EACH = 64
"""Violating impostors that a sample keeps of every block, the nearest."""

ROWS = 1024
"""Anchors whose distances to a block are computed at a time."""

SAMPLE = 500
"""Anchors that come to the driver with their targets, to choose the scale of the start."""


@dataclass(frozen=True)
class Anchors:
    """Whitened samples of a block with the differences to their targets, (n, k, d)."""

    X: Array
    y: NDArray[Any]
    near: Array


@dataclass(frozen=True)
class Impostors:
    """Impostors of the samples of a block: whose, which, and the differences to them.

    `push` and `count` are the sum and the number of all violated triplets of a search.
    """

    owner: Indices
    name: Indices
    apart: Array
    push: float = 0.0
    count: int = 0

    def __add__(self, other: Impostors) -> Impostors:
        """Both, each once."""
        owner, name, apart = (
            np.concatenate(part) for part in zip(self._columns(), other._columns(), strict=True)
        )
        _, first = np.unique(np.column_stack([owner, name]), axis=0, return_index=True)
        push, count = self.push + other.push, self.count + other.count
        return Impostors(owner[first], name[first], apart[first], push, count)

    def __getitem__(self, rows: Any) -> Impostors:
        return Impostors(*(part[rows] for part in self._columns()))

    def _columns(self) -> tuple[Indices, Indices, Array]:
        return self.owner, self.name, self.apart


@dataclass(frozen=True)
class Active:
    """Impostors on the workers, for each block; the keys of an active set."""

    task: Task
    blocks: list[Any]
    count: int
    """Number of impostors of all blocks."""

    @property
    def shape(self) -> tuple[int]:
        """The number of triplets."""
        return (self.count * self.task.targets,)

    def __getitem__(self, slack: Slack) -> Active:
        """Those that some target does not meet by more than the slack."""
        cluster = self.task.cluster
        L = cluster.shared("factor", slack.factor)
        return self.task.active(
            cluster.each("active", _unmet, self.task.blocks, self.blocks, L, slack.size)
        )


@dataclass(frozen=True)
class Slack:
    """A factor, and by how much triplets may be met with it."""

    factor: Array
    size: float


@dataclass(frozen=True)
class Violated:
    """The impostors that a factor violates on the workers, and what they come to."""

    keys: Active
    count: int
    value: float


@dataclass(frozen=True)
class Task:
    """LMNN in coordinates where the pull is tr M; see `gramian.estimators.active_set.Task`."""

    cluster: Cluster
    blocks: list[Any]
    """`Anchors`, on the workers."""
    starts: list[int]
    """The index of the first sample of each block, and the number of all."""
    lam: float
    most: float
    """F(0)."""
    targets: int
    quick: Array

    @property
    def n(self) -> int:
        return self.starts[-1]

    @property
    def anchors(self) -> Indices:
        return np.arange(self.n)

    @property
    def none(self) -> Active:
        return self.active(self.cluster.each("active", _nothing, self.blocks))

    def active(self, nodes: list[Any]) -> Active:
        blocks = self.cluster.keep(nodes)
        return Active(self, blocks, int(self.cluster.sum("count", _number, blocks)))

    @cached_property
    def few(self) -> LMNNTask:
        """The task of a few samples on the driver, whose push weighs as much as that of all."""
        spread = np.linspace(0, self.n - 1, min(self.n, SAMPLE)).astype(int)
        told = self.cluster.gather(
            self.cluster.each("start", _sampled, self.blocks, self._own(np.unique(spread)))
        )
        X, y, near = (np.concatenate(part) for part in zip(*told, strict=True))
        m, k, d = near.shape
        samples = np.vstack([X, (X[:, None] + near).reshape(-1, d)])
        own = m + np.arange(m * k).reshape(m, k)
        back = np.repeat(np.arange(m), k)[:, None] + np.zeros(k, dtype=int)
        classes = np.unique(np.concatenate([y, np.repeat(y, k)]), return_inverse=True)[1]
        lam = self.lam * (self.n / len(samples)) ** 2
        return LMNNTask(samples, classes, np.vstack([own, back]), lam, self.quick)

    def start(self, given: Array | None = None) -> Array:
        return self.few.start(given)

    def scaled(self, factor: Array) -> Array:
        return self.few.scaled(factor)

    def violated(self, factor: Array, anchors: Indices, *, margin: float = 1.0) -> Violated:
        """The violated triplets of the anchors, each block against all.

        Each anchor also keeps its nearest impostor of every block, so that no problem is empty.
        """
        L, own, found = self.cluster.shared("factor", factor), self._own(anchors), []
        for block, rows in zip(self.blocks, own, strict=True):
            given = [block] * len(self.blocks), self.blocks, self.starts[:-1]
            nodes = self.cluster.each("impostors", _violated, *given, rows, L, margin)
            found.append(self.cluster.tree("impostors", nodes))
        kept = self.cluster.keep(found)
        told = self.cluster.gather(self.cluster.each("push", _told, kept))
        push, count, number = (sum(part) for part in zip(*told, strict=True))
        keys = Active(self, kept, int(number))
        return Violated(keys, int(count), float(np.sum(factor * factor)) + self.lam * push)

    def _own(self, anchors: Indices) -> list[Any]:
        """The anchors of each block, counted from its first."""
        ends = np.searchsorted(anchors, self.starts)
        parts = zip(ends[:-1], ends[1:], self.starts[:-1], strict=True)
        return [anchors[a:b] - start for a, b, start in parts]

    def joined(self, keys: Active, others: Active) -> Active:
        return self.active(self.cluster.each("active", add, keys.blocks, others.blocks))

    def some(self, keys: Active, factor: Array) -> Active:
        return keys

    def problem(self, keys: Active, *, share: float = 1.0) -> Problem:
        """LMNN with the triplets of these impostors alone; `share` of the pull."""
        nodes = self.cluster.each("triplets", _part, self.blocks, keys.blocks, self.lam)
        parts = there(self.cluster, self.cluster.keep(nodes))
        order = self.quick.shape[0]
        return Problem(
            Sum([Sharded(self.cluster, parts), Linear(share, order)]),
            name="lmnn",
            formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
        )

    def slope(self, keys: Active, factor: Array, share: float) -> Array:
        objective: Any = self.problem(keys, share=share).objective
        slope: Array = objective.gradient_factor(objective.image(factor))
        return slope

    def unmet(self, problem: Problem, factor: Array, slack: float) -> Slack:
        return Slack(factor, slack)


# --- what tasks do -----------------------------------------------------------------------


def whitened(block: Sample, near: Near, mean: Array, R: Array) -> Anchors:
    X = about(block.X, mean)
    return Anchors(X @ R, block.y, (near.vectors - X[:, None]) @ R)


def target_scatter(block: Sample, near: Near, mean: Array) -> Array:
    apart = (near.vectors - about(block.X, mean)[:, None]).reshape(-1, mean.size)
    return np.asarray(apart.T @ apart)


def _sampled(block: Anchors, rows: Indices) -> tuple[Array, Any, Array]:
    return block.X[rows], block.y[rows], block.near[rows]


def _nothing(block: Anchors) -> Impostors:
    empty: Indices = np.zeros(0, dtype=np.int64)
    return Impostors(empty, empty, np.zeros((0, block.X.shape[1])))


def _violated(
    block: Anchors, other: Anchors, start: int, asked: Indices, L: Array, margin: float
) -> Impostors:
    """Triplets (i, j, l) of the anchors asked for with margin + d(i, j) − d(i, l) > 0, l of another
    block, and what those come to at a margin of 1.
    """
    Z, W = block.X @ L, other.X @ L
    close = np.sum((block.near @ L) ** 2, axis=2)
    squares, push, count = np.sum(W * W, axis=1), 0.0, 0
    owners, places = [asked[:0]], [asked[:0]]
    for first in range(0, asked.size, ROWS):
        rows = asked[first : first + ROWS]
        far = np.sum(Z[rows] ** 2, axis=1)[:, None] + squares - 2 * Z[rows] @ W.T
        far[block.y[rows][:, None] == other.y] = np.inf
        reach = np.maximum(margin + close[rows].max(axis=1), far.min(axis=1, initial=np.inf))
        i, l = np.nonzero((far <= reach[:, None]) & np.isfinite(far))
        margins = np.maximum(0.0, 1.0 + close[rows][i] - far[i, l][:, None])
        push += float(np.sum(margins**2))
        count += int(np.sum(margins > 0))
        kept = _nearest_of(i, far[i, l])
        owners.append(rows[i[kept]])
        places.append(l[kept])
    owner, place = np.concatenate(owners), np.concatenate(places)
    return Impostors(owner, place + start, other.X[place] - block.X[owner], push, count)


def _nearest_of(owner: Indices, far: Array) -> Indices:
    """The first few of each owner by distance."""
    order = np.lexsort((far, owner))
    sorted_owner = owner[order]
    starts = np.searchsorted(sorted_owner, sorted_owner)
    kept: Indices = order[np.arange(order.size) - starts < EACH]
    return kept


def _told(found: Impostors) -> tuple[float, int, int]:
    return found.push, found.count, found.owner.size


def _number(found: Impostors) -> int:
    return int(found.owner.size)


def _unmet(block: Anchors, some: Impostors, L: Array, slack: float) -> Impostors:
    far = np.sum((some.apart @ L) ** 2, axis=1)
    close = np.sum((block.near[some.owner] @ L) ** 2, axis=2)
    return some[far < 1.0 + slack + close.max(axis=1, initial=0.0)]


def _part(block: Anchors, some: Impostors, lam: float) -> Composite | None:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over these impostors and all targets; None without any."""
    k, d = block.near.shape[1:]
    if not some.owner.size:
        return None
    target = (some.owner[:, None] * k + np.arange(k)).ravel()
    pairs = np.column_stack([target, np.repeat(np.arange(some.owner.size), k)])
    margins = margins_of(block.near.reshape(-1, d), some.apart, pairs)
    return Composite(margins, SquaredHinge(margin=1.0, weight=lam))


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
        near = cluster.keep(sought(cluster, shards, found.mean, self.n_neighbors, quick, True))
        self.ridge_ = ridge_for(self.ridge, shaped(found.count, d))
        mean = cluster.shared("mean", found.mean)
        R = whitening_of(cluster.sum("scatter", target_scatter, shards, near, mean), self.ridge_)
        turn = cluster.shared("whitening", R)
        anchors = cluster.keep(cluster.each("anchors", whitened, shards, near, mean, turn))
        starts = np.cumsum([0, *cluster.gather(cluster.each("count", rows_of, shards))]).tolist()
        most = lam * self.n_neighbors * float(found.counts @ (found.count - found.counts))
        quick = np.linalg.solve(R, np.eye(d) if quick is None else quick)
        task = Task(cluster, anchors, starts, lam, most, self.n_neighbors, quick)

        def solve(problem: Problem, *, dtype: Any = None, **options: Any) -> Result:
            return self._minimize(problem, **options)

        rounds = ActiveSet(task, solve, self.tol, self.rank)
        result, self.n_active_ = rounds.run(self._start(R))
        result = replace(result, seconds=clock.elapsed(started))
        gram = found.moments(center=True).gram.dense()
        self._finish(result, result.factor, Dense(R.T @ gram @ R, lower=0.0), R)
        return self

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
