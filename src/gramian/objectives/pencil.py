"""Feasible dual points along the edges of a graph, and coordinates in which they are simple.

𝒜*(w + ts) + C ⪰ 0 for t = −λ_min of the pencil (𝒜*(w) + C, P), P = 𝒜*(s): for distances the
Laplacian of their graph. In whitened coordinates Y with L = RY and RᵀPR = I it is an eigenvalue.

A product with R or Rᵀ is a sparse triangular solve, which costs more than all operations along the
edges. F and its slope take one of each: the linear term is computed as RᵀCRY = Rᵀ(CRY), and its
outer product is shared with that of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from gramian.arrays.places import at_home, host, inner, largest, relocated
from gramian.common.types import Array
from gramian.losses.base import least_squares_of, on_simplex
from gramian.maps import Mix, PairDistances, Stack, WhitenedDistances
from gramian.objectives.base import Objective, once
from gramian.objectives.matrices import Rooted
from gramian.objectives.parts import composite_errors
from gramian.objectives.supports import LowerBound
from gramian.proofs import PencilRoot, lowest, rounded_sum

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite


COLUMNS = 24
"""Typical number of columns of a factor in whitened coordinates."""

FEWEST_POINTS = 10
"""Order above which whitened coordinates are worth a sparse factorisation."""

SHORTEST = 0.2
"""Smallest edge weight, as a fraction of the mean squared length of an edge."""

PENCIL_ORDER = 500
"""Order up to which a generalised eigenvalue is cheap relative to the solve."""


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
        return self.root.transposed(self.pulled)

    def slope(self, map: WhitenedDistances, w: Any) -> Array:
        """2Rᵀ(𝒜*(w) + C)RY."""
        along = map.distances.adjoint(w, self.places)
        return self.root.transposed(2.0 * (along + self.pulled))


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
    found = _whitening(objective)
    if found is not None:
        white: Any = found.objective.map
        white.distances.recount()
    return found


@once
def _whitening(objective: Any) -> Whitening | None:
    if not objective.place.is_host:
        return _moved_whitening(objective)
    if not _can_whiten(objective):
        return None
    distances = objective.map.counted(COLUMNS)
    map = WhitenedDistances(distances, edge_weights(objective.loss))
    C = Rooted(objective.C, map.root)
    white = type(objective)(map, objective.loss, C, constant=objective.constant)
    return Whitening(white, map.root.__matmul__, map.root.coordinates)


def _moved_whitening(objective: Any) -> Whitening | None:
    """The whitening on a device, where the root is dense; None if it does not fit into memory."""
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


def pencil_bounds(objective: Composite, w: Array) -> Iterator[LowerBound]:
    """The bound of w shifted along s, if P makes it feasible."""
    if on_simplex(objective.loss) or pencil_root(objective) is None:
        return
    s, conjugate = pencil_weights(objective), objective.loss.conjugate
    # The domain of g* is convex: if the smallest shift leaves it, every larger one does.
    if not np.isfinite(conjugate(w + 1e-14 * largest(w) * s)):
        return
    shift = pencil_shift(objective, w)
    if shift is not None:
        value = objective.constant - conjugate(w + shift * s)
        yield LowerBound(value, "Fenchel dual point")


def edge_bounds(objective: Objective, w: Array | None, seconds: float) -> Iterator[LowerBound]:
    """The bound of w shifted along the edges of a large graph, by λ_min in whitened coordinates.

    Limited by `seconds`; used for a last certificate. Up to `PENCIL_ORDER` the bounds of the
    objective itself include this shift.
    """
    white = whitening(objective) if objective.order > PENCIL_ORDER else None
    if white is None or w is None:
        return
    map, bottom = white.objective.map, lowest(white.objective.dual_operator(w), seconds=seconds)
    assert isinstance(map, WhitenedDistances)
    shift = max(0.0, -bottom.value)
    if bottom.how == "eigenvalues":  # the coordinates are white up to rounding only
        shift = shift * (1 + 1e-9) + 1e-14 * largest(w)
    value = objective.constant - white.objective.loss.conjugate(w + shift * map.kept)
    yield LowerBound(value, "Fenchel dual point", how=bottom.how, miss=bottom.miss)


def pencil_shift(objective: Composite, w: Array) -> float | None:
    """A t close to the smallest with 𝒜*(w + ts) + C ⪰ 0, None if P = 𝒜*(s) cannot achieve it.

    The null space of P (the constants, for the Laplacian of a graph) must be in that of 𝒜*(w) and
    of C, as it is if C is centred; C counts as centred if it is so up to rounding.
    """
    root = pencil_root(objective)
    if root is None:
        return None
    C, image = host(objective.C.dense()), host(objective.map.adjoint_matrix(w))
    for part in (C, image):  # relative to each one's size: a large one would hide a small one
        if np.linalg.norm(part @ root.null) > 1e-12 * np.linalg.norm(part):
            return None
    slack = composite_errors(objective.map, w) + rounded_sum(1) * np.abs(C).sum(axis=1)
    return max(0.0, -root.lowest(image + C, slack))


@once
def pencil_root(objective: Composite) -> PencilRoot | None:
    """R with RᵀPR = I on the range of P = 𝒜*(s) ⪰ 0, and a basis of its null space.

    None if the null space of P is not known exactly: that of a graph Laplacian has as many
    dimensions as the graph has components.
    """
    if objective.order > PENCIL_ORDER:
        return None
    s = pencil_weights(objective)
    P = host(objective.map.adjoint_matrix(s))
    root = PencilRoot.of(P, composite_errors(objective.map, s))
    if root is None or not root.null.shape[1]:
        return root
    components = connected_components(sp.csr_array(P != 0))[0]
    known = _sees_distances_only(objective.map) and components == root.null.shape[1]
    return root if known else None


@once
def pencil_weights(objective: Composite) -> Array:
    """s: equal weights, or the edge weights of whitened coordinates."""
    known = edge_weights(objective.loss) if isinstance(objective.map, PairDistances) else 1.0
    return objective.place.put(np.ones(objective.map.size) * known)


def _sees_distances_only(map: Any) -> bool:
    """Whether 𝒜*(w) is exactly 0 on the constants, for every w."""
    if isinstance(map, Mix):
        return _sees_distances_only(map.base)
    if isinstance(map, Stack):
        return all(_sees_distances_only(part) for part in map.maps)
    return isinstance(map, PairDistances)
