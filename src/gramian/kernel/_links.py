"""Must-link and cannot-link pairs: validation and collection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components
from sklearn.utils.validation import check_array

from gramian.arrays.samples import (
    UNKNOWN,
    check_size,
    known_labels,
    real_numbers,
    refuse_masked,
)
from gramian.common.storage import storable
from gramian.common.types import Array
from gramian.estimators.row_names import numbered
from gramian.maps.base import index_columns, refuse_rows
from gramian.reductions.merge import Merge

Pairs = NDArray[np.integer]

LABELLED, PARTNERS = 300, 20
"""Number of labelled samples up to which all their pairs are linked; beyond, the number of random
partners of each kind per sample."""

STARTS = 20
"""Samples from which a set of samples is searched that are all separated by cannot-links."""


@storable
@dataclass(frozen=True)
class Links:
    """Pairs i < j of n samples without duplicates, with targets and weights.

    A target of 1 is a must-link, 0 a cannot-link, and values in between are soft links.
    """

    n: int
    pairs: Pairs
    targets: Array
    weights: Array

    @property
    def must(self) -> Pairs:
        return self.pairs[self.targets == 1]

    @property
    def cannot(self) -> Pairs:
        return self.pairs[self.targets == 0]

    @property
    def soft(self) -> bool:
        """Whether there are soft links."""
        return bool(np.any((self.targets > 0) & (self.targets < 1)))

    @cached_property
    def groups(self) -> Pairs:
        """The groups of samples joined by must-links, one number per group."""
        return connected_components(_graph(self.must, self.n), directed=False)[1]

    def apart(self, most: int) -> Pairs:
        """Up to `most` samples that cannot-links separate pairwise, found by a greedy search.

        Samples that must-links join count as one.
        """
        groups, count = self.groups, int(self.groups.max(initial=-1)) + 1
        ends = groups[self.cannot]
        graph = _graph(np.vstack([ends, ends[:, ::-1]]), count)
        graph.data[:] = 1.0
        degrees = np.diff(graph.indptr)
        found: Pairs = np.empty(0, dtype=int)
        for start in np.argsort(-degrees, kind="stable")[:STARTS]:
            chosen, left = [int(start)], graph[[start]].indices
            while left.size and len(chosen) < most:
                shared = graph[left][:, left].sum(axis=1)
                chosen.append(int(left[np.argmax(shared)]))
                left = np.intersect1d(left, graph[[chosen[-1]]].indices)
            found = max(found, np.array(chosen), key=np.size)
            if found.size == most:
                break
        return np.sort(np.unique(groups, return_index=True)[1][found])

    def violation(self, factor: Array) -> float:
        """max |Z_ij − T_ij| over the links and the diagonal, whose targets are 1."""
        i, j = self.pairs.T
        linked = np.einsum("er,er->e", factor[i], factor[j]) - self.targets
        own = np.sum(factor * factor, axis=1) - 1.0
        return float(max(np.abs(linked).max(initial=0.0), np.abs(own).max()))

    @property
    def merge(self) -> Merge:
        """The merge of samples joined by must-links."""
        return Merge(self.groups)

    def with_diagonal(self, merged: bool) -> tuple[Pairs, Array, Array]:
        """Entries, targets and weights of the penalty, including the diagonal.

        If `merged`, groups replace their samples: the penalty is the same, and every must-link
        holds exactly.
        """
        entries = np.vstack([np.column_stack([np.arange(self.n)] * 2), self.pairs])
        targets = np.append(np.ones(self.n), self.targets)
        weights = np.append(np.ones(self.n), self.weights)
        place = self.merge if merged else Merge(np.arange(self.n))
        return place.entries(entries, targets, weights)


def gather(
    n: int,
    y: ArrayLike | None = None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    links: Any = None,
    targets: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    names: NDArray[Any] | None = None,
    order: Pairs | None = None,
) -> Links:
    """All links between n samples; ValueError if they are contradictory.

    Pairs are indices of samples, or strings that are among their `names`. For many labelled samples
    random pairs are drawn, in this `order` of the samples.
    """
    parts = [
        _hard(numbered(must_link, names, "must_link"), n, 1.0, "must_link"),
        _hard(numbered(cannot_link, names, "cannot_link"), n, 0.0, "cannot_link"),
        _given(numbered(links, names, "links"), targets, weights, n),
        _from_labels(y, n, np.arange(n) if order is None else order),
    ]
    pairs, wanted, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(pairs):
        raise ValueError(
            "nothing is known of any pair: pass labels y (-1 where unknown), must_link, "
            "cannot_link, or links"
        )
    called = np.arange(n) if names is None else names
    found = _once(n, pairs, wanted, counts, called)
    _refuse_contradictions(found, called)
    return found


def _hard(pairs: ArrayLike | None, n: int, target: float, name: str) -> tuple[Pairs, Array, Array]:
    table = _pairs(pairs, n, name)
    return table, np.full(len(table), target), np.ones(len(table))


def _pairs(pairs: ArrayLike | None, n: int, name: str) -> Pairs:
    """Validated pairs i < j, possibly with duplicates."""
    refuse_masked(pairs, name)
    if pairs is None or np.size(pairs) == 0:
        return np.empty((0, 2), dtype=np.intp)
    table = np.column_stack(index_columns(pairs, n, 2, name))
    refuse_rows(table, table[:, 0] == table[:, 1], name, "links a sample to itself")
    return np.sort(table, axis=1).astype(np.intp)


def _given(
    links: Any, targets: ArrayLike | None, weights: ArrayLike | None, n: int
) -> tuple[Pairs, Array, Array]:
    """A sparse matrix of signed weights, or pairs with targets and weights."""
    more = targets is not None or weights is not None
    if links is None:
        if more:
            raise ValueError("targets and weights are of the pairs in links: pass those too")
        return _hard(None, n, 0.0, "links")
    if sp.issparse(links):
        if more:
            raise ValueError("a sparse matrix of links has its signs for targets and its weights")
        return _of_matrix(links, n)
    table = _pairs(links, n, "links")
    if targets is None:
        raise ValueError("links as pairs need targets in [0, 1], one for each")
    wanted = _column(targets, len(table), "targets")
    refuse_rows(wanted, (wanted < 0) | (wanted > 1), "targets", "is outside [0, 1]")
    counts = np.ones(len(table)) if weights is None else _column(weights, len(table), "weights")
    refuse_rows(counts, counts <= 0, "weights", "is not above 0")
    check_size(counts, "weights")
    return table, wanted, counts


def _of_matrix(links: Any, n: int) -> tuple[Pairs, Array, Array]:
    if links.shape != (n, n):
        raise ValueError(f"links must be {n} × {n}, one row for each sample, got {links.shape}")
    matrix = sp.coo_array(links)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    table = np.column_stack(matrix.coords)
    refuse_rows(table, table[:, 0] == table[:, 1], "links", "links a sample to itself")
    values = check_array(matrix.data.reshape(-1, 1), dtype=float, input_name="links",
                         ensure_min_samples=0).ravel()  # fmt: skip
    check_size(values, "links")
    return np.sort(table, axis=1).astype(np.intp), (values > 0).astype(float), np.abs(values)


def _column(values: ArrayLike, size: int, name: str) -> Array:
    column = real_numbers(values, name)
    if column.shape != (size,):
        raise ValueError(
            f"{name} must hold one number for each of {size} pairs, got shape {column.shape}"
        )
    refuse_rows(column, ~np.isfinite(column), name, "is not finite")
    return column


def _from_labels(y: ArrayLike | None, n: int, order: Pairs) -> tuple[Pairs, Array, Array]:
    """All pairs of labelled samples, or for many samples some random pairs of each kind."""
    if y is None:
        return _hard(None, n, 0.0, "y")
    labels = known_labels(y, n)
    known = np.flatnonzero(labels != UNKNOWN)
    if known.size <= LABELLED:
        table: Pairs = known[np.column_stack(np.triu_indices(known.size, k=1))]
    else:
        table = _drawn(renamed(labels, order), order[labels[order] != UNKNOWN])
    same = labels[table[:, 0]] == labels[table[:, 1]]
    return table.astype(np.intp), same.astype(float), np.ones(len(table))


def renamed(labels: Pairs, order: Pairs) -> Pairs:
    """The classes numbered by first occurrence in an order of the samples."""
    known = order[labels[order] != UNKNOWN]
    names, first = np.unique(labels[known], return_index=True)
    number = np.full(int(names.max(initial=0)) + 1, UNKNOWN)
    number[names[np.argsort(first)]] = np.arange(names.size)
    return np.where(labels == UNKNOWN, UNKNOWN, number[labels])


def _drawn(labels: Pairs, known: Pairs) -> Pairs:
    """For each labelled sample some random partners of its class and of other classes."""
    rng = np.random.default_rng(0)
    order = known[np.argsort(labels[known], kind="stable")]
    sizes = np.bincount(labels[order])
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    size, place = np.repeat(sizes, sizes), np.arange(order.size)
    shape = (order.size, PARTNERS)
    near = start[:, None] + rng.integers(0, 2**31, shape) % size[:, None]
    others = np.maximum(order.size - size, 1)
    far = (start + size)[:, None] + rng.integers(0, 2**31, shape) % others[:, None]
    partners = np.hstack([near, far % order.size])
    table = order[np.stack([np.repeat(place, 2 * PARTNERS), partners.ravel()], axis=1)]
    table = np.sort(table[table[:, 0] != table[:, 1]], axis=1)
    return np.unique(table, axis=0)


def _once(n: int, pairs: Pairs, targets: Array, weights: Array, names: NDArray[Any]) -> Links:
    """Links without duplicates, with the largest weight of each pair."""
    keys = pairs[:, 0].astype(np.int64) * n + pairs[:, 1]
    order = np.lexsort((-weights, keys))
    _, first = np.unique(keys[order], return_index=True)
    chosen = order[first]
    kept = targets[chosen][np.searchsorted(keys[chosen], keys)]
    other = np.flatnonzero(kept != targets)
    if other.size:
        i, j = names[pairs[other[0]]]
        raise ValueError(
            f"samples {i} and {j} are linked in two ways, with targets {kept[other[0]]:g} and "
            f"{targets[other[0]]:g} (1 is must-link, 0 cannot-link)"
        )
    return Links(n, pairs[chosen], targets[chosen], weights[chosen])


def _refuse_contradictions(links: Links, names: NDArray[Any]) -> None:
    """Raise ValueError if a chain of must-links joins a cannot-linked pair."""
    i, j = links.cannot.T
    broken = np.flatnonzero(links.groups[i] == links.groups[j])
    if broken.size:
        i, j = map(int, links.cannot[broken[0]])
        before = breadth_first_order(_graph(links.must, links.n), i, directed=False)[1]
        shortest = [j]
        while shortest[-1] != i:
            shortest.append(int(before[shortest[-1]]))
        chain = " ~ ".join(map(str, names[shortest[::-1]]))
        raise ValueError(
            f"contradictory links: {names[i]} and {names[j]} must not be linked, but must-links "
            f"join them ({chain}); cannot-links that must-links contradict: {broken.size}"
        )


def _graph(pairs: Pairs, n: int) -> sp.csr_array:
    return sp.csr_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(n, n))
