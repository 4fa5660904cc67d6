"""Cliques of a distance graph: null vectors of every feasible unfolding.

Distances between all points of a clique determine its Gram matrix G. A vector v of its null space
has vᵀMv = 0 for every feasible M, so that Mv = 0: the feasible set has no interior, and multipliers
diverge along vvᵀ = −Σ v_i v_j (e_i − e_j)(e_i − e_j)ᵀ, which costs Σ −v_i v_j D_ij = 0. Five points
in three dimensions form such a clique; more neighbours give more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.common.types import Array
from gramian.linalg.tolerances import ZERO

MIN_CLIQUE_POINTS = 4
"""Minimum number of points of a clique: three collinear points have a null vector too, but only if
their distances have no rounding errors."""


@dataclass(frozen=True)
class Face:
    """Null vectors of all feasible M, and the edge weights that represent their squares."""

    vectors: Array
    """One per column, orthogonal to the constants."""
    weights: Array
    """Σ_e weights_e (e_i − e_j)(e_i − e_j)ᵀ = Σ vvᵀ."""


def face_of(edges: NDArray[np.integer], sq_distances: Array, n: int) -> Face:
    """The face given by the cliques that contain the edges."""
    place = {(int(i), int(j)): e for e, (i, j) in enumerate(np.sort(edges, axis=1))}
    vectors, weights = [], np.zeros(len(edges))
    for clique in _cliques(edges, n):
        i, j = np.triu_indices(len(clique), 1)
        own = np.array([place[clique[a], clique[b]] for a, b in zip(i, j, strict=True)])
        D = np.zeros((len(clique),) * 2)
        D[i, j] = D[j, i] = sq_distances[own]
        for v in _null_vectors(D):
            weights[own] -= v[i] * v[j]
            vectors.append(np.zeros(n))
            vectors[-1][list(clique)] = v
    return Face(np.array(vectors).reshape(-1, n).T, weights)


def _cliques(edges: NDArray[np.integer], n: int) -> Iterator[tuple[int, ...]]:
    """For every edge a clique around it, extended by the point with the most common neighbours."""
    beside: list[set[int]] = [set() for _ in range(n)]
    for i, j in edges.tolist():
        beside[i].add(j)
        beside[j].add(i)
    seen = set()
    for i, j in edges.tolist():
        clique, left = [i, j], beside[i] & beside[j]
        while left:
            clique.append(max(left, key=lambda k: (len(beside[k] & left), -k)))
            left = left & beside[clique[-1]]
        found = tuple(sorted(clique))
        if len(found) >= MIN_CLIQUE_POINTS and found not in seen:
            seen.add(found)
            yield found


def _null_vectors(D: Array) -> Array:
    """Rows: the null space of −½JDJ, J = I − 11ᵀ/k, except the constants."""
    k = len(D)
    means = D.mean(axis=0)
    G = -0.5 * (D - means - means[:, None] + D.mean())
    values, vectors = np.linalg.eigh(G + D.max() / k)  # removes the constants from the null space
    null: Array = vectors[:, np.abs(values) <= ZERO * D.max()].T
    return null - null.mean(axis=1, keepdims=True)
