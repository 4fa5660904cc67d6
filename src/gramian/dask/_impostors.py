"""LMNN over all impostors of samples on a cluster, of which only those that matter are kept.

As at home, the triplets that a metric violates are found, block against block, the problem of
those is solved, and so on; its bound is one of the whole problem, whose other terms are no less
than 0, and F counts all triplets. Of the violated ones each sample keeps the nearest impostors.
"""

from __future__ import annotations

from dataclasses import dataclass
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
from gramian.objectives import Composite, Linear, Sum
from gramian.problem import Problem

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

EACH = 64
"""Violating impostors that a sample keeps of every block, the nearest."""

ROWS = 1024
"""Anchors whose distances to a block are computed at a time."""


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
class Violated:
    """What the violated triplets come to, and their impostors."""

    push: float
    count: int
    impostors: Impostors

    def __add__(self, other: Violated) -> Violated:
        return Violated(
            self.push + other.push, self.count + other.count, self.impostors + other.impostors
        )


class Task:
    """LMNN in coordinates where the pull is tr M."""

    def __init__(self, cluster: Cluster, anchors: list[Any], starts: list[int], lam: float) -> None:
        self.cluster, self.anchors, self.starts, self.lam = cluster, anchors, starts, lam
        self.active: list[Any] = []
        self.named = False
        """Whether active impostors are named, so that each counts once."""

    def seek(self, factor: Array) -> tuple[float, int]:
        """F with all triplets, and how many are violated; their impostors become active."""
        L, found = self.cluster.shared("factor", factor), []
        for block in self.anchors:
            blocks = [block] * len(self.anchors)
            nodes = self.cluster.each("impostors", _violated, blocks, self.anchors, self.starts, L)
            found.append(self.cluster.tree("impostors", nodes))
        kept = self.cluster.keep(found)
        told = self.cluster.gather(self.cluster.each("push", _told, kept))
        push, number = (sum(part) for part in zip(*told, strict=True))
        if self.named:
            kept = self.cluster.keep(self.cluster.each("active", _union, self.active, kept))
        if self.named or number:
            # The first ones have no names: with them an impostor would count twice.
            self.active, self.named = kept, True
        return float(np.sum(factor * factor)) + self.lam * push, int(number)

    def begin(self, far: list[Any]) -> None:
        """Make the nearest impostors the active ones."""
        self.active = self.cluster.keep(self.cluster.each("active", _first, far))

    def problem(self, order: int) -> Problem:
        """LMNN with the triplets of the active impostors alone."""
        nodes = self.cluster.each("triplets", _part, self.anchors, self.active, self.lam)
        parts = there(self.cluster, self.cluster.keep(nodes))
        return Problem(
            Sum([Sharded(self.cluster, parts), Linear(1.0, order)]),
            name="lmnn",
            formula="Σ_S d_M(i,j) + λ Σ_R max(0, 1 − d_M(i,l) + d_M(i,j))²",
        )


# --- what tasks do -----------------------------------------------------------------------


def whitened(block: Sample, near: Near, mean: Array, R: Array) -> Anchors:
    X = about(block.X, mean)
    return Anchors(X @ R, block.y, (near.vectors - X[:, None]) @ R)


def target_scatter(block: Sample, near: Near, mean: Array) -> Array:
    apart = (near.vectors - about(block.X, mean)[:, None]).reshape(-1, mean.size)
    return np.asarray(apart.T @ apart)


def differences(block: Sample, far: Near, mean: Array, R: Array) -> Array:
    return (far.vectors - about(block.X, mean)[:, None]) @ R


def _first(apart: Array) -> Violated:
    n, k, d = apart.shape
    owner = np.repeat(np.arange(n), k)
    name = -1 - np.tile(np.arange(k), n)  # not among those that are named by their place
    return Violated(0.0, 0, Impostors(owner, name, apart.reshape(-1, d)))


def _violated(block: Anchors, other: Anchors, start: int, L: Array) -> Violated:
    """Triplets (i, j, l) with 1 + d(i, j) − d(i, l) > 0, l of another block."""
    Z, W = block.X @ L, other.X @ L
    close = np.sum((block.near @ L) ** 2, axis=2)
    reach = 1.0 + close.max(axis=1)
    squares, push, count = np.sum(W * W, axis=1), 0.0, 0
    owners, places = [], []
    for first in range(0, len(Z), ROWS):
        rows = slice(first, first + ROWS)
        far = np.sum(Z[rows] ** 2, axis=1)[:, None] + squares - 2 * Z[rows] @ W.T
        apart = (block.y[rows][:, None] != other.y) & (far < reach[rows][:, None])
        i, l = np.nonzero(apart)
        margins = np.maximum(0.0, 1.0 + close[rows][i] - far[i, l][:, None])
        push += float(np.sum(margins**2))
        count += int(np.sum(margins > 0))
        kept = _nearest_of(i, far[i, l])
        owners.append(i[kept] + first)
        places.append(l[kept])
    owner, place = np.concatenate(owners), np.concatenate(places)
    return Violated(push, count, Impostors(owner, place + start, other.X[place] - block.X[owner]))


def _nearest_of(owner: Indices, far: Array) -> Indices:
    """The first few of each owner by distance."""
    order = np.lexsort((far, owner))
    sorted_owner = owner[order]
    starts = np.searchsorted(sorted_owner, sorted_owner)
    kept: Indices = order[np.arange(order.size) - starts < EACH]
    return kept


def _told(found: Violated) -> tuple[float, int]:
    return found.push, found.count


def _union(active: Violated, found: Violated) -> Violated:
    return Violated(0.0, 0, active.impostors + found.impostors)


def _part(block: Anchors, active: Violated, lam: float) -> Composite | None:
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
