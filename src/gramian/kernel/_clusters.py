"""Clusters that satisfy links: k-means over must-linked groups with cannot-link constraints."""

from __future__ import annotations

import heapq
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from gramian.arrays.threads import dense_threads
from gramian.common import clock
from gramian.common.types import Array
from gramian.graph import canonical_order
from gramian.kernel._links import Links, Pairs

MAX_KMEANS_STEPS = 20
"""Largest number of k-means iterations."""


def linked_clusters(rows: Array, links: Links | None, means: KMeans) -> tuple[Pairs, Array]:
    """Labels and centres of k-means on the rows, satisfying the links, if any, where possible.

    Samples joined by must-links are one point with their total weight. Cannot-linked points are
    assigned in order of the fewest remaining choices (Brélaz's order for graph colouring), each to
    the nearest centre that no partner has.
    """
    if links is None or links.merge.counts.size <= means.n_clusters:
        return k_means(means, rows)
    merge = links.merge
    sizes, points = merge.counts, merge.coordinates(rows)
    centres = k_means(means, points, sizes)[1]
    conflicts = _conflicts(links, sizes.size)
    labels = np.full(sizes.size, -1)
    for _ in range(MAX_KMEANS_STEPS):
        before = labels
        labels = _kept_apart(euclidean_distances(points, centres, squared=True), conflicts)
        if np.array_equal(before, labels) or clock.left() <= 0:
            break
        for cluster in np.unique(labels):  # an empty cluster keeps its centre
            own = labels == cluster
            centres[cluster] = np.average(points[own], axis=0, weights=sizes[own])
    return labels[links.groups], centres


def k_means(means: KMeans, points: Any, sizes: Array | None = None) -> tuple[Pairs, Array]:
    """Labels and centres of k-means, with starts that do not depend on the order of the points.

    Warnings about coinciding points, which links cause, are suppressed. The threads of scikit-learn
    spin while they wait, so small data use one.
    """
    order = canonical_order(points)
    threads = dense_threads(points.size * means.n_clusters)
    if clock.left() <= 0:
        means.set_params(n_init=1)
    with warnings.catch_warnings(), threadpool_limits(threads, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(points[order], sample_weight=None if sizes is None else sizes[order])
    return means.labels_[np.argsort(order)], means.cluster_centers_


def share_met(links: Links, labels: Pairs) -> float:
    """The fraction of must-links and cannot-links that clusters satisfy; 1 without links."""
    together, apart = (labels[p[:, 0]] == labels[p[:, 1]] for p in (links.must, links.cannot))
    met = np.concatenate([together, ~apart])
    return float(np.mean(met)) if met.size else 1.0


def _kept_apart(squares: Array, conflicts: sp.csr_array) -> Pairs:
    """For each point the nearest centre that no assigned partner has."""
    labels: Pairs = np.argmin(squares, axis=1)
    bound = np.flatnonzero(np.diff(conflicts.indptr) > 0)
    taken = np.zeros((bound.size, squares.shape[1]), dtype=int)
    place = {int(point): row for row, point in enumerate(bound)}
    ranked = np.sort(squares[bound], axis=1)
    margin = ranked[:, 1] - ranked[:, 0] if squares.shape[1] > 1 else ranked[:, 0]
    queue = [(0, -float(margin[row]), row) for row in range(bound.size)]
    heapq.heapify(queue)
    done = np.zeros(bound.size, dtype=bool)
    while queue:
        freedom, _, row = heapq.heappop(queue)
        if done[row] or -freedom != int(np.count_nonzero(taken[row])):
            continue
        done[row], point = True, bound[row]
        fewest = taken[row] == taken[row].min()
        labels[point] = int(np.argmin(np.where(fewest, squares[point], np.inf)))
        for partner in conflicts.indices[conflicts.indptr[point] : conflicts.indptr[point + 1]]:
            other = place[int(partner)]
            taken[other, labels[point]] += 1
            if not done[other]:
                held = int(np.count_nonzero(taken[other]))
                heapq.heappush(queue, (-held, -float(margin[other]), other))
    return labels


def _conflicts(links: Links, size: int) -> sp.csr_array:
    """The pairs of groups that cannot-links separate."""
    i, j = links.groups[links.cannot].T
    ones = np.ones(2 * i.size)
    return sp.csr_array((ones, (np.append(i, j), np.append(j, i))), shape=(size, size))
