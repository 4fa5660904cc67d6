"""LMNN over all impostors of samples on a cluster: the sum of `gramian.estimators.active_set`.

The triplets that a metric violates are found block against block. Of each block a sample keeps the
nearest of its violating impostors; F counts all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._checked import Sample
from gramian.dask._cluster import Cluster
from gramian.dask._moments import about
from gramian.dask._neighbours import Near
from gramian.dask._objective import Sharded, there
from gramian.losses import SquaredHinge
from gramian.maps import Congruence, triplet_margins
from gramian.metric._lmnn_task import LMNNTask
from gramian.objectives import Composite, Linear, Sum
from gramian.problem import Problem

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
    """Impostors of the samples of a block: whose, which, and the differences to them."""

    owner: Indices
    name: Indices
    apart: Array

    def __add__(self, other: Impostors) -> Impostors:
        """Both, each once."""
        owner, name = (np.concatenate(part) for part in (
            (self.owner, other.owner), (self.name, other.name)))  # fmt: skip
        _, first = np.unique(np.column_stack([owner, name]), axis=0, return_index=True)
        apart = np.concatenate([self.apart, other.apart])
        return Impostors(owner[first], name[first], apart[first])


@dataclass(frozen=True)
class Found:
    """Impostors of the samples of a block, and what its violated triplets come to."""

    impostors: Impostors
    push: float = 0.0
    count: int = 0

    def __add__(self, other: Found) -> Found:
        impostors = self.impostors + other.impostors
        return Found(impostors, self.push + other.push, self.count + other.count)


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
        return self.active(self.cluster.each("active", _union, keys.blocks, others.blocks))

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


def _nothing(block: Anchors) -> Found:
    empty: Indices = np.zeros(0, dtype=np.int64)
    return Found(Impostors(empty, empty, np.zeros((0, block.X.shape[1]))))


def _violated(
    block: Anchors, other: Anchors, start: int, asked: Indices, L: Array, margin: float
) -> Found:
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
    return Found(Impostors(owner, place + start, other.X[place] - block.X[owner]), push, count)


def _nearest_of(owner: Indices, far: Array) -> Indices:
    """The first few of each owner by distance."""
    order = np.lexsort((far, owner))
    sorted_owner = owner[order]
    starts = np.searchsorted(sorted_owner, sorted_owner)
    kept: Indices = order[np.arange(order.size) - starts < EACH]
    return kept


def _told(found: Found) -> tuple[float, int, int]:
    return found.push, found.count, found.impostors.owner.size


def _number(found: Found) -> int:
    return int(found.impostors.owner.size)


def _union(active: Found, found: Found) -> Found:
    return Found(active.impostors + found.impostors)


def _unmet(block: Anchors, active: Found, L: Array, slack: float) -> Found:
    some = active.impostors
    far = np.sum((some.apart @ L) ** 2, axis=1)
    close = np.sum((block.near[some.owner] @ L) ** 2, axis=2)
    kept = far < 1.0 + slack + close.max(axis=1, initial=0.0)
    return Found(Impostors(some.owner[kept], some.name[kept], some.apart[kept]))


def _part(block: Anchors, active: Found, lam: float) -> Composite | None:
    """λ Σ max(0, 1 + d(i, j) − d(i, l))² over the active impostors, where there are any, and all
    targets.
    """
    n, k, d = block.near.shape
    some = active.impostors
    if not some.owner.size:
        return None
    X = np.vstack([np.zeros((1, d)), block.near.reshape(-1, d), some.apart])
    impostor = np.repeat(np.arange(some.owner.size), k)
    target = (some.owner[:, None] * k + np.arange(k)).ravel()
    anchor = np.zeros(target.size, dtype=target.dtype)
    triplets = np.column_stack([anchor, 1 + target, 1 + n * k + impostor])
    margins = Congruence(triplet_margins(triplets, len(X)), np.ascontiguousarray(X))
    return Composite(margins, SquaredHinge(margin=1.0, weight=lam))
