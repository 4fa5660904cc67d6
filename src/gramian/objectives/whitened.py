"""What an objective in whitened coordinates computes of a factor Y: all of it at the places RY.

A product with R or Rᵀ is a sparse triangular solve, which costs more than everything along the
edges. F and its slope take one of each: the linear term is had from RᵀCRY = Rᵀ(CRY), whose outer
product the slope shares with that of the loss.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.backends.arrays import inner
from gramian.maps import WhitenedDistances
from gramian.objectives.matrices import Rooted

Array = NDArray[np.floating]


class WhitenedImage:
    """Y, RY, z = 𝒜(RYYᵀRᵀ), ⟨C, RYYᵀRᵀ⟩, CRY, and RᵀCRY where it is asked for."""

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
