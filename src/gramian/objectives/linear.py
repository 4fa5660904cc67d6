"""F(M) = ⟨C, M⟩, the objective of a semidefinite program."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.losses import Squared
from gramian.maps import Stack
from gramian.objectives.composite import Composite
from gramian.objectives.matrix_inputs import as_symmetric


class Linear(Composite):
    """F(M) = ⟨C, M⟩ + constant: a composite of the map to R⁰.

    Over the whole cone it has a minimum only if C ⪰ 0; it is intended for problems with
    constraints.
    """

    def __init__(self, C: Any, order: int | None = None, *, constant: float = 0.0) -> None:
        symmetric = as_symmetric(C, "C", order)
        nothing = Stack((), symmetric.order)
        super().__init__(nothing, Squared(np.zeros(0)), symmetric, constant=constant)
