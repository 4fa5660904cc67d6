"""Kinds of input: samples, distances between all of them, or a graph with edge lengths.

Each kind validates the input, merges equal samples, builds the graph, and finds neighbours of new
samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.samples import ready
from gramian.graph import Graph, neighbor_graph
from gramian.manifold._barycentric import barycentric, barycentric_weights, dense
from gramian.manifold._copies import Copies
from gramian.manifold._distances import (
    both_ways,
    by_rows,
    distance_graph,
    refuse_asymmetric,
    refuse_negative,
)
from gramian.neighbours import Neighbours, nearest

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

METRICS = ("euclidean", "precomputed")


class Places:
    """Samples given by features, with Euclidean distances."""

    def checked(self, X: Any) -> Any:
        return ready(X)

    def copies(self, X: Any) -> Copies:
        return Copies.of(X)

    def part(self, X: Any, points: Indices) -> Any:
        return X[points]

    def graph(self, X: Any, k: int, connect: str, **options: Any) -> Graph:
        return neighbor_graph(X, k, connect=connect, **options)

    def near(self, known: Any, k: int, X: Any) -> Neighbours:
        return nearest(known, k, queries=X)

    def weights(self, X: Any, known: Any, near: Neighbours) -> Array:
        return barycentric(dense(X), known, near.indices)

    def of_part(self, X: Any, points: Indices) -> Any:
        """New samples as input of a component of the fit."""
        return X


class Distances(Places):
    """A square array of distances between all samples; for new samples, to those of the fit."""

    def checked(self, X: Any) -> Any:
        refuse_negative(X)
        refuse_asymmetric(X)
        return ready(X)

    def copies(self, X: Any) -> Copies:
        return Copies.at_zero(X)

    def part(self, X: Any, points: Indices) -> Any:
        return np.ascontiguousarray(X[np.ix_(points, points)])

    def graph(self, X: Any, k: int, connect: str, **options: Any) -> Graph:
        return distance_graph(X, k, connect)

    def near(self, known: Any, k: int, X: Any) -> Neighbours:
        refuse_negative(X)
        return by_rows(X, k)

    def weights(self, X: Any, known: Any, near: Neighbours) -> Array:
        """From ⟨x_j − x, x_k − x⟩ = ½(d_j² + d_k² − d_jk²), without its negative part."""
        found, squares = near.indices, near.sq_distances
        between = known[found[:, :, None], found[:, None]] ** 2
        values, turn = np.linalg.eigh(0.5 * (squares[:, :, None] + squares[:, None] - between))
        grams = (turn * np.maximum(values, 0.0)[:, None]) @ turn.transpose(0, 2, 1)
        return barycentric_weights(grams, squares)

    def of_part(self, X: Any, points: Indices) -> Any:
        return X[:, points]


class Links(Distances):
    """A sparse matrix of edge lengths, in one or both directions."""

    def checked(self, X: Any) -> Any:
        return ready(both_ways(X))

    def copies(self, X: Any) -> Copies:
        return Copies.none(X.shape[0])

    def part(self, X: Any, points: Indices) -> Any:
        return X[points][:, points]

    def graph(self, X: Any, k: int, connect: str, **options: Any) -> Graph:
        upper = sp.coo_array(sp.triu(X, k=1))
        graph = Graph(X.shape[0], np.column_stack(upper.coords).astype(np.int64), upper.data**2)
        if connect != "components" and graph.n_parts > 1:
            raise ValueError(
                f"the given graph falls into {graph.n_parts} components without distances between "
                'them: add edges, or pass connect="components" to treat each separately'
            )
        return graph

    def near(self, known: Any, k: int, X: Any) -> Neighbours:
        raise ValueError(
            "new samples cannot be embedded with a graph: fit to the distances between all samples "
            "(dense), or to the samples themselves"
        )


def space_of(metric: str, X: Any) -> Places:
    """The kind of the given input."""
    if metric == "euclidean":
        return Places()
    return Links() if sp.issparse(X) else Distances()
