"""Semidefinite programs of graphs: MaxCut, Lovász's theta, and sensor localisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.common.types import Array
from gramian.linear_constraints import Constraint
from gramian.losses import Squared
from gramian.maps import Entries, Mix
from gramian.maps.base import index_columns, refuse_rows
from gramian.objectives import Composite, Linear, LowRankPlusIdentity
from gramian.objectives.matrices import Sparse
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem


@under_own_errstate
def maxcut(graph: Any) -> Problem:
    """min −¼⟨L, M⟩ subject to M_ii = 1, M ⪰ 0, with L the Laplacian (Goemans and Williamson 1995).

    `graph` is a symmetric matrix of weights, dense or sparse. Minus the value is an upper bound on
    the weight of every cut. If no weight is negative, the signs of a random combination of the
    factor's columns give a cut of at least 0.878 of the bound on average.

    Examples
    --------
    >>> import numpy as np, gramian as gm
    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> round(-gm.minimize(gm.problems.maxcut(triangle)).value, 4)
    2.25
    """
    W = _weights(graph)
    n = W.shape[0]
    degree = np.asarray(W.sum(axis=1)).ravel()
    C = sp.csr_array(0.25 * (W - sp.diags_array(degree)))
    every = np.column_stack([np.arange(n)] * 2)
    return Problem(
        Linear(Sparse(C)),
        name="maxcut",
        formula="−¼⟨L, M⟩",
        constraints=(Constraint.equal(Entries(every, n), 1.0),),
        conditions="M_ii = 1",
    )


@under_own_errstate
def lovasz_theta(graph: Any) -> Problem:
    """min −⟨J, M⟩ subject to tr M = 1, M_ij = 0 for every edge, M ⪰ 0 (Lovász 1979).

    `graph` is a symmetric matrix, dense or sparse, whose nonzero entries are the edges. Minus the
    value lies between the sizes of the largest independent set and of the smallest clique cover.

    Examples
    --------
    >>> import numpy as np, gramian as gm
    >>> pentagon = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    >>> round(-gm.minimize(gm.problems.lovasz_theta(pentagon)).value, 4)  # √5
    2.2361
    """
    W = _weights(graph)
    n = W.shape[0]
    i, j = sp.coo_array(sp.triu(W, 1)).coords
    diagonal = np.arange(n)
    places = Entries(
        np.column_stack([np.concatenate([diagonal, i]), np.concatenate([diagonal, j])]), n
    )
    rows = np.concatenate([np.zeros(n, dtype=int), 1 + np.arange(i.size)])
    weights = sp.csr_array((np.ones(rows.size), (rows, np.arange(rows.size))))
    ones = LowRankPlusIdentity(n, 0.0, np.ones((n, 1)), np.array([-1.0]))
    return Problem(
        Linear(ones),
        name="lovasz_theta",
        formula="−⟨J, M⟩",
        constraints=(Constraint.equal(Mix(places, weights), np.eye(1, 1 + i.size).ravel()),),
        conditions="tr M = 1, M_ij = 0 on edges",
    )


@under_own_errstate
def sensor_localization(
    edges: ArrayLike, distances: ArrayLike, anchors: ArrayLike, *, n: int | None = None
) -> Problem:
    """min Σ_e (d_e(M) − δ_e²)² over M = [I, Xᵀ; X, Y] ⪰ 0 (Biswas and Ye 2004).

    Parameters
    ----------
    edges : integer array of shape (p, 2)
        Pairs of points with measured distances: sensors are 0 … n−1, and n + k is anchor k.
    distances : array of shape (p,)
        The measured distances δ.
    anchors : array of shape (k, d)
        Positions of the anchors.
    n : int, optional
        Number of sensors; by default determined by the largest index of the edges.

    Returns
    -------
    Problem
        Of order d + n. `sensor_positions(result.factor, d)` returns the positions X.
    """
    places = np.atleast_2d(np.asarray(anchors, dtype=float))
    if places.ndim != 2 or 0 in places.shape or not np.all(np.isfinite(places)):
        raise ValueError("anchors must be finite positions, an array of shape (k, d)")
    count, d = places.shape
    if n is None:
        n = int(np.max(np.asarray(edges), initial=0)) + 1 - count
    if n < 1:
        raise ValueError(f"the edges contain no sensor besides {count} anchors; pass n")
    i, j = index_columns(edges, n + count, 2, "edges")
    low, high = np.minimum(i, j), np.maximum(i, j)
    table = np.column_stack([low, high])
    refuse_rows(table, low >= n, "edges", "joins two anchors, whose positions are known")
    refuse_rows(table, low == high, "edges", "joins a point to itself")
    measured = np.asarray(distances, dtype=float)
    if measured.shape != low.shape or not np.all(np.isfinite(measured)) or np.any(measured < 0):
        raise ValueError(f"distances must be {low.size} finite numbers that are not negative")
    map, known = _squared_distances(low, high, places, n)
    above, right = np.triu_indices(d)
    corner = Entries(np.column_stack([above, right]), d + n)
    return Problem(
        Composite(map, Squared(measured**2 - known)),
        name="sensor_localization",
        formula="Σ_e (d_e(M) − δ_e²)²",
        constraints=(Constraint.equal(corner, (above == right).astype(float)),),
        conditions="M = [I, Xᵀ; X, Y]",
    )


@under_own_errstate
def sensor_positions(factor: ArrayLike, dimension: int) -> Array:
    """X of M = LLᵀ = [I, Xᵀ; X, Y]: the positions of the sensors, one per row."""
    L = np.asarray(factor, dtype=float)
    return L[dimension:] @ L[:dimension].T


def _squared_distances(
    low: NDArray[np.integer], high: NDArray[np.integer], anchors: Array, n: int
) -> tuple[Mix, Array]:
    """d_e(M) minus its constant part, ‖a‖² for an anchor a.

    ‖x_i − x_j‖² = Y_ii + Y_jj − 2Y_ij, and ‖x_i − a‖² = Y_ii − 2 Σ_k a_k X_ik + ‖a‖².
    """
    d, e = anchors.shape[1], np.arange(low.size)
    pair = high < n
    i, j = low[pair] + d, high[pair] + d
    to, at = low[~pair] + d, anchors[high[~pair] - n]
    rows = [e[pair]] * 3 + [e[~pair]] + [e[~pair]] * d
    first = [i, j, i, to, *[np.full(to.size, k) for k in range(d)]]
    second = [i, j, j, to, *[to] * d]
    ones = np.ones(i.size)
    weights = [ones, ones, -2 * ones, np.ones(to.size), *(-2 * at.T)]
    order = d + n
    keys, entry = np.unique(
        np.concatenate(first).astype(np.int64) * order + np.concatenate(second),
        return_inverse=True,
    )
    W = sp.coo_array((np.concatenate(weights), (np.concatenate(rows), entry)))
    known = np.zeros(low.size)
    known[~pair] = np.sum(at**2, axis=1)
    return Mix(Entries(np.column_stack(np.divmod(keys, order)), order), sp.csr_array(W)), known


def _weights(graph: Any) -> sp.csr_array:
    """A validated graph as a sparse matrix without a diagonal."""
    checked = as_symmetric(graph, "graph")
    W = checked.matrix if isinstance(checked, Sparse) else sp.csr_array(checked.dense())
    W = sp.csr_array(W - sp.diags_array(W.diagonal()))
    W.eliminate_zeros()
    return W
