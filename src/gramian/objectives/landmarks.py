"""A starting point for unfoldings from shortest paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from gramian.arrays.places import at_home, host
from gramian.common.types import Array
from gramian.losses.base import least_squares_of

LANDMARKS, LANDMARK_DIMENSIONS = 40, 3
"""Landmarks of the starting point, and the number of their principal axes."""


def from_landmarks(objective: Any, number: int) -> tuple[Array, float] | None:
    """Coordinates from the lengths of shortest paths to landmarks, None if no lengths are known.

    With Δ the squared lengths between landmarks, −½HΔH ≈ UΛUᵀ in the leading dimensions: a point
    with the squared lengths δ is at −½Λ^{−1/2}Uᵀ(δ − Δ1/m) (landmark MDS; de Silva and Tenenbaum
    2004). To 1e-3, 1,000 points of a Swiss roll take 150 steps, and 300 from a random start. Also
    returns the eigenvalue with this number relative to the largest.
    """
    squares, distances = least_squares_of(objective.loss), at_home(objective.map.distances)
    if squares is None or squares.ridge is not None or distances.order < LANDMARKS:
        return None
    n = distances.order
    scale = np.ones(distances.size) * host(squares.scale)
    lengths = np.sqrt(np.maximum(host(squares.targets) / np.where(scale > 0, scale, 1.0), 0.0))
    graph = sp.csr_array(sp.coo_array((lengths, (distances.rows, distances.cols)), shape=(n, n)))
    marks = np.linspace(0, n - 1, LANDMARKS).astype(int)
    paths = dijkstra(graph, directed=False, indices=marks) ** 2
    between = paths[:, marks]
    centred = between - between.mean(axis=0)
    values, axes = np.linalg.eigh(-0.5 * (centred - centred.mean(axis=1)[:, None]))
    values, axes = values[::-1], axes[:, ::-1]
    kept = np.flatnonzero(values[:LANDMARK_DIMENSIONS] > 1e-6 * values[0])
    if not kept.size:
        return None
    axes = axes[:, kept] / np.sqrt(values[kept])
    L = -0.5 * (paths - between.mean(axis=1)[:, None]).T @ axes
    return L, float(values[number - 1] / values[0])
