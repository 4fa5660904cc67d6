"""Feasible dual points of small problems: w shifted along weights s whose adjoint P is definite.

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
"""Up to this order a generalised eigenvalue is cheap beside the solve."""


def pencil_bounds(objective: Composite, w: Array) -> Iterator[LowerBound]:
    """The bound of w shifted along s, where P makes it feasible."""
    if on_simplex(objective.loss) or pencil_root(objective) is None:
        return
    s, conjugate = pencil_weights(objective), objective.loss.conjugate
    # The domain of g* is convex: where the least shift leaves it, every other one does.
    if not np.isfinite(conjugate(w + 1e-14 * largest(w) * s)):
        return
    shift = pencil_shift(objective, w)
    if shift is not None:
        value = objective.constant - conjugate(w + shift * s)
        yield LowerBound(value, "Fenchel dual point")


def edge_bounds(objective: Objective, w: Array | None, seconds: float) -> Iterator[LowerBound]:
    """The bound of w shifted along the edges of a large graph, by λ_min in whitened coordinates.

    It may take these seconds: a last certificate asks for it. Up to `PENCIL_ORDER` the bounds of
    the objective itself find that shift.
    """
    white = whitening(objective) if objective.order > PENCIL_ORDER else None
    if white is None or w is None:
        return
    map, bottom = white.objective.map, lowest(white.objective.dual_operator(w), seconds=seconds)
    assert isinstance(map, WhitenedDistances)
    shift = max(0.0, -bottom.value)
    if bottom.how == "eigenvalues":  # of coordinates that are white to rounding only
        shift = shift * (1 + 1e-9) + 1e-14 * largest(w)
    value = objective.constant - white.objective.loss.conjugate(w + shift * map.kept)
    yield LowerBound(value, "Fenchel dual point", how=bottom.how, miss=bottom.miss)


def pencil_shift(objective: Composite, w: Array) -> float | None:
    """A t with 𝒜*(w + ts) + C ⪰ 0 near the least, None where P = 𝒜*(s) cannot mend it.

    The null space of P (the constants, for the Laplacian of a graph) must be one of 𝒜*(w) and
    of C too, as it is where C is centred; C counts as centred where it is so to rounding.
    """
    root = pencil_root(objective)
    if root is None:
        return None
    C, image = host(objective.C.dense()), host(objective.map.adjoint_matrix(w))
    for part in (C, image):  # each by its own size: a large one would hide a small one
        if np.linalg.norm(part @ root.null) > 1e-12 * np.linalg.norm(part):
            return None
    slack = composite_errors(objective.map, w) + rounded_sum(1) * np.abs(C).sum(axis=1)
    return max(0.0, -root.lowest(image + C, slack))


@once
def pencil_root(objective: Composite) -> PencilRoot | None:
    """R with RᵀPR = I on the range of P = 𝒜*(s) ⪰ 0, and a basis of its null space.

    None where P has a null space that is not known to be one exactly: that of a graph's
    Laplacian has as many dimensions as the graph has components.
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
    """s: equal weights, or those that whitened coordinates have for the edges of a graph."""
    known = edge_weights(objective.loss) if isinstance(objective.map, PairDistances) else 1.0
    weights: Array = objective.place.put(np.ones(objective.map.size) * known)
    return weights


def _sees_distances_only(map: Any) -> bool:
    """Whether 𝒜*(w) is 0 on the constants, without rounding, for every w."""
    if isinstance(map, Mix):
        return _sees_distances_only(map.base)
    if isinstance(map, Stack):
        return all(_sees_distances_only(part) for part in map.maps)
    return isinstance(map, PairDistances)
