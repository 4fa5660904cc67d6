"""An objective in whitened coordinates: its value at Y is the original value at RY.

A product with R or Rᵀ is a sparse triangular solve, which costs more than all operations along the
edges. F and its slope take one of each: the linear term is computed as RᵀCRY = Rᵀ(CRY), and its
outer product is shared with that of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.arrays.places import at_home, host, inner, relocated
from gramian.losses.base import least_squares_of
from gramian.maps import PairDistances, WhitenedDistances
from gramian.objectives.base import Objective, once
from gramian.objectives.matrices import Rooted

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite

Array = NDArray[np.floating]

COLUMNS = 24
"""Typical number of columns of a factor in whitened coordinates."""

FEWEST_POINTS = 10
"""Order above which whitened coordinates are worth a sparse factorisation."""

SHORTEST = 0.2
"""Smallest edge weight, as a fraction of the mean squared length of an edge."""


class WhitenedImage:
    """Y, RY, z = 𝒜(RYYᵀRᵀ), ⟨C, RYYᵀRᵀ⟩, CRY, and RᵀCRY on request."""

    def __init__(self, map: WhitenedDistances, C: Rooted, Y: Array) -> None:
        self.root, self.factor = map.root, Y
        self.places = map.root @ Y
        self.z: Array = map.distances.bilinear(self.places, self.places)
        self.pulled: Array = C.matrix @ self.places
        self.linear = inner(self.places, self.pulled)

    @cached_property
    def CL(self) -> Array:
        found: Array = self.root.transposed(self.pulled)
        return found

    def slope(self, map: WhitenedDistances, w: Any) -> Array:
        """2Rᵀ(𝒜*(w) + C)RY."""
        along = map.distances.adjoint(w, self.places)
        found: Array = self.root.transposed(2.0 * (along + self.pulled))
        return found


@dataclass(frozen=True)
class Whitening:
    """An objective F̃ with F̃(Y) = F(RY) for every factor, and the maps between Y and L = RY."""

    objective: Composite
    factor: Callable[[Array], Array]
    """Y ↦ RY."""
    coordinates: Callable[[Array], Array]
    """L ↦ a Y with the same F."""


def whitening(objective: Objective) -> Whitening | None:
    """A composite of distances in coordinates where the Laplacian of its edges is the identity.

    None for other objectives, for a disconnected graph, and if F is not invariant to translations
    of all points.
    """
    map = getattr(objective, "map", None)
    if not isinstance(map, PairDistances) or objective.order <= FEWEST_POINTS:
        return None
    return _whitening(objective)


@once
def _whitening(objective: Any) -> Whitening | None:
    if not objective.place.is_host:
        return _moved_whitening(objective)
    if not _can_whiten(objective):
        return None
    distances = objective.map.for_many_products(COLUMNS)
    map = WhitenedDistances(distances, edge_weights(objective.loss))
    C = Rooted(objective.C, map.root)
    white = type(objective)(map, objective.loss, C, constant=objective.constant)
    return Whitening(white, map.root.__matmul__, map.root.coordinates)


def _moved_whitening(objective: Any) -> Whitening | None:
    """The same on a device, where the root is dense; None if it does not fit into memory."""
    home, place = at_home(objective), objective.place
    if 24.0 * objective.order**2 > place.free_memory() / 2 or not _can_whiten(home):
        return None
    try:
        map = WhitenedDistances.on(objective.map, place, edge_weights(home.loss))
    except ValueError:
        return None
    white = relocated(objective, home, map=map, C=Rooted(objective.C, map.root))
    white.order = map.order
    return Whitening(white, map.root.__matmul__, map.root.coordinates)


def edge_weights(loss: Any) -> Array | float:
    """The edge weights of the Laplacian of the coordinates, 1 on average.

    If the lengths are near their targets t, the Hessian of Σ ω(d − t)² along L is close to that of
    edges weighted by ωd = ωt: a step moves the ends of a long edge farther than those of a short
    one. Weights are at least `SHORTEST`, because edges of length 0 also hold the graph together.
    """
    squares = least_squares_of(loss)
    if squares is None or squares.ridge is not None:
        return 1.0
    weights: Array = np.asarray(host(squares.scale * squares.targets), dtype=float)
    mean = float(np.mean(weights)) if weights.ndim and weights.size else 0.0
    if not mean > 0:
        return 1.0
    floored = np.maximum(weights / mean, SHORTEST)
    return floored / float(np.mean(floored))


def _can_whiten(objective: Any) -> bool:
    """Whether the graph is connected, and C1 = 0 relative to C times a random vector."""
    map, C, n = objective.map, objective.C, objective.order
    laplacian = map.adjoint_sparse(np.ones(map.size))
    if connected_components(laplacian, directed=False, return_labels=False) > 1:
        return False
    usual = C @ np.random.default_rng(0).standard_normal((n, 1))
    return float(np.linalg.norm(C @ np.ones((n, 1)))) <= 1e-10 * float(np.linalg.norm(usual))
