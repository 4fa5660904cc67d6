"""Feasible dual points of small problems: w shifted along weights s with a definite adjoint P.

𝒜*(w + ts) + C ⪰ 0 for t = −λ_min of the pencil (𝒜*(w) + C, P), P = 𝒜*(s): for distances the
Laplacian of their graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.arrays.places import host, largest
from gramian.losses.base import on_simplex
from gramian.maps import Mix, PairDistances, Stack, WhitenedDistances
from gramian.objectives.base import Objective, once
from gramian.objectives.structure import composite_errors
from gramian.objectives.supports import LowerBound
from gramian.objectives.whitened import edge_weights, whitening
from gramian.proofs import PencilRoot, lowest, rounded_sum

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite

Array = NDArray[np.floating]

PENCIL_ORDER = 500
"""Order up to which a generalised eigenvalue is cheap relative to the solve."""


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
    weights: Array = objective.place.put(np.ones(objective.map.size) * known)
    return weights


def _sees_distances_only(map: Any) -> bool:
    """Whether 𝒜*(w) is exactly 0 on the constants, for every w."""
    if isinstance(map, Mix):
        return _sees_distances_only(map.base)
    if isinstance(map, Stack):
        return all(_sees_distances_only(part) for part in map.maps)
    return isinstance(map, PairDistances)
