"""𝒜*(w) + C as an operator: products, structure for proofs, and rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import at_home, host, stored
from gramian.maps import BlockEntries, Entries, Mix, PairDistances, Stack, WhitenedDistances
from gramian.maps.whitened import DenseRoot
from gramian.objectives.base import SymmetricOperator
from gramian.objectives.coordinates import coordinates_of
from gramian.objectives.matrices import Rooted, Sparse
from gramian.objectives.parts import adjoint_parts, parts_of
from gramian.objectives.structure import composite_errors, composite_form, whitened_errors

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite

Array = NDArray[np.floating]


def dual_operator(objective: Composite, w: Array) -> SymmetricOperator:
    """𝒜*(w) + C for the map and the linear term of an objective."""
    w, fused = stored(w), list[Any]()

    def product(V: Array) -> Array:
        if V.ndim == 2:
            return objective.map.adjoint(w, V) + objective.C @ V
        # A Krylov method multiplies by many vectors: use one sparse matrix for all of them.
        if not fused:
            fused.append(_vector_product(objective, w))
        quick: Array = fused[0](V)
        return quick

    return SymmetricOperator(
        objective.order,
        product,
        lambda: objective.map.adjoint_matrix(w) + objective.C.dense(),
        lambda: _form(objective, w),
        lambda: _errors(objective, w),
        objective.place,
        lambda: coordinates_of(objective),
    )


def _errors(objective: Composite, w: Array) -> Array:
    """e² for the dense 𝒜*(w) + C."""
    map = objective.map
    if isinstance(map, WhitenedDistances) and isinstance(map.root, DenseRoot):
        return whitened_errors(map, host(w), objective.C)
    return composite_errors(map, w)


def _form(objective: Composite, w: Array) -> Any:
    """The structure of 𝒜*(w) + C, on the host except for the blocks of a completion."""
    map = objective.map
    if isinstance(map, BlockEntries) and not map.streamed:
        return composite_form(map, w, at_home(objective.C))
    return composite_form(at_home(map), host(w), at_home(objective.C))


def _vector_product(objective: Composite, w: Array) -> Callable[[Array], Array]:
    """v ↦ (𝒜*(w) + C)v, by one sparse matrix if both are sparse."""
    map, C = objective.map, objective.C
    if not objective.place.is_host:
        return _column_product(objective, w)
    if isinstance(map, Entries | PairDistances) and isinstance(C, Sparse):
        matrix = map.adjoint_sparse(w) + C.matrix
        return lambda v: matrix @ v
    if isinstance(map, WhitenedDistances) and isinstance(C, Rooted):
        return map.root.congruence(map.distances.adjoint_sparse(w), C.matrix)
    if isinstance(map, Mix | Stack):
        adjoint, linear = adjoint_parts(map, w), parts_of(C)
        if adjoint is not None and linear is not None:
            return (adjoint + linear).__matmul__
    quick = map.vector_product(w)
    if quick is not None:
        return lambda v: quick(v) + C @ v
    return _column_product(objective, w)


def _column_product(objective: Composite, w: Array) -> Callable[[Array], Array]:
    """The same with vectors as matrices of one column."""
    return lambda v: objective.map.adjoint(w, v[:, None])[:, 0] + objective.C @ v
