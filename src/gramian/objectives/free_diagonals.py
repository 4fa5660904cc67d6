"""A lower bound for entries of M where some diagonal entries are unknown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from gramian.common.types import Array
from gramian.losses.base import on_simplex
from gramian.maps import Entries
from gramian.objectives.parts import composite_errors
from gramian.objectives.pencil import PENCIL_ORDER
from gramian.objectives.supports import LowerBound
from gramian.proofs.dense import rounding_of

if TYPE_CHECKING:
    from gramian.objectives.composite import Composite


def known_diagonal_bounds(objective: Composite, w: Array) -> Iterator[LowerBound]:
    """The bound of w without the rows whose diagonal entry is not in the map, if C = 0.

    The diagonal of 𝒜*(w) is 0 in these rows, so 𝒜*(w) ⪰ 0 requires w = 0 in them: a large diagonal
    of M makes their entries free. The others are shifted along their diagonal until feasible.
    """
    map = objective.map
    there = isinstance(map, Entries) and objective.place.is_host
    there = there and not on_simplex(objective.loss)
    if not there or objective.order > PENCIL_ORDER or objective._size_of_C > 0:
        return
    assert isinstance(map, Entries)
    diagonal = np.flatnonzero(map.rows == map.cols)
    known, first = np.unique(map.rows[diagonal], return_index=True)
    if not 0 < known.size < objective.order:
        return
    w = np.where(np.isin(map.rows, known) & np.isin(map.cols, known), w, 0.0)
    G = map.adjoint_matrix(w)[np.ix_(known, known)]
    lowest = float(scipy.linalg.eigvalsh(G, subset_by_index=[0, 0])[0])
    lost = rounding_of(G, composite_errors(map, w)[known])
    shifted = w.copy()
    shifted[diagonal[first]] += max(0.0, lost - lowest)
    value = objective.constant - objective.loss.conjugate(shifted)
    if np.isfinite(value):
        yield LowerBound(value, "Fenchel dual point")
