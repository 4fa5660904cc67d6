"""Directions without curvature, and approximate inverses of the Hessian on the factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr

from gramian.arrays.dense import eigh
from gramian.arrays.places import as_double, at_home, contiguous, host, namespace
from gramian.common.types import Array
from gramian.linalg.tolerances import ROUNDING
from gramian.losses.base import Separable, least_squares_of, recession_of
from gramian.maps import Entries, PairDistances
from gramian.objectives.base import Objective, once
from gramian.objectives.composite import Composite
from gramian.objectives.gram_quadratic import GramQuadratic
from gramian.objectives.matrices import DENSE_ORDER, diagonal_of
from gramian.objectives.parts import connected_parts

FLATTENING, LSQR = 6, 400
"""Newton steps towards a ray without curvature, and the products per step."""

LEAST_DIAGONAL = 0.8
"""Fraction of the mean of |∇F_ii| to which the preconditioner raises the diagonal of ∇F."""


def flat_directions(objective: Objective) -> Array | None:
    """Columns that span the directions D ⪰ 0 without curvature, None if unknown."""
    if isinstance(objective, GramQuadratic):
        return _common_null_space(objective)
    if isinstance(objective, Composite):
        return _constant_on_parts(objective)
    return None


def _constant_on_parts(objective: Composite) -> Array | None:
    """For squares of distances: the indicators of the components of their graph."""
    if not (isinstance(objective.map, PairDistances) and objective.place.is_host):
        return None
    squares = least_squares_of(objective.loss)
    if squares is None or squares.ridge is not None or np.any(squares.scale == 0):
        return None
    return connected_parts(objective.map.rows, objective.map.cols, objective.order)


def _common_null_space(objective: GramQuadratic) -> Array | None:
    """The common null space of A and B, None if it is the whole space."""
    a, b, _ = objective.sizes
    if objective.order > DENSE_ORDER or a + b == 0:
        return None
    if not objective.place.is_host:
        known = _common_null_space(at_home(objective))
        return None if known is None else objective.place.put(known)
    both = objective.A.dense() / (a or 1.0) + objective.B.dense() / (b or 1.0)
    sizes, vectors = eigh(both)
    return contiguous(vectors[:, sizes <= ROUNDING * objective.order])


def flattened(objective: Objective, V: Array) -> Array:
    """V changed slightly to reduce the curvature of F along VVᵀ, if possible.

    Minimum-norm Newton steps towards 𝒜(VVᵀ) = 0.
    """
    if not isinstance(objective, Composite):
        return V
    if not objective.place.is_host:
        return objective.place.put(flattened(at_home(objective), host(V)))
    noise = np.full(objective.map.size, 1e-15 * float(np.sum(V * V)))
    for _ in range(FLATTENING):
        z = objective.map.bilinear(V, V)
        off = z if objective.facts.quadratic else np.minimum(z, 0.0)
        if not np.any(off) or np.isfinite(recession_of(objective.loss, z, noise)):
            break
        V = V - _least_change(objective, V, off)
    return V


def _least_change(objective: Composite, V: Array, off: Array) -> Array:
    """The smallest D that changes 𝒜(VVᵀ) by `off` to first order."""
    bilinear, adjoint = objective.map.fixed(V)
    live = off != 0
    system = LinearOperator(
        (off.size, V.size),
        matvec=lambda d: 2 * live * bilinear(d.reshape(V.shape)),
        rmatvec=lambda w: 2 * adjoint(live * w).ravel(),
        dtype=float,
    )
    found = lsqr(system, off, atol=1e-14, btol=1e-14, iter_lim=LSQR)[0]
    return found.reshape(V.shape)


def row_preconditioner(objective: Objective, image: Any) -> Callable[[Array], Array] | None:
    """The inverse of the diagonal blocks of the Hessian, one per row of the factor; for entries.

    A block is 2 G_ii I plus the curvature of the loss (`Entries.row_systems`), G = ∇F, with a
    diagonal that is raised if it is close to 0 or negative.
    """
    if not (isinstance(objective, Composite) and isinstance(objective.map, Entries)):
        return None
    own = _linear_diagonal(objective)
    if own is None or not isinstance(objective.loss, Separable):
        return None
    xp = namespace(image.z)
    diagonal = own + objective.map.adjoint_diagonal(objective.loss.gradient(image.z))
    least = LEAST_DIAGONAL * float(xp.mean(xp.abs(diagonal))) or 1.0
    bend = objective.loss.hessian(image.z)(xp.ones_like(image.z))
    raised = xp.where(diagonal > least, diagonal, least)
    return objective.map.row_systems(bend, 2.0 * raised, image.factor)


@once
def _linear_diagonal(objective: Composite) -> Array | None:
    """The diagonal of C, None if it is not available cheaply."""
    found = diagonal_of(at_home(objective.C))
    return None if found is None else as_double(objective.place.put(found))
