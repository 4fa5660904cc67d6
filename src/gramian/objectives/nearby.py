"""Images of matrices near a point, without a factor: for averaged and repaired dual vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays.places import beside, host, stored
from gramian.linalg.svec import svec
from gramian.objectives.base import Image, Objective
from gramian.objectives.composite import Composite, CompositeImage

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Beside:
    """F(M + V S Vᵀ) for a few columns V, to second order in svec(S), and the resulting image."""

    hessian: Array
    gradient: Array
    image: Callable[[Array], Image]
    """S ↦ the image of M + V S Vᵀ, without a factor."""


def toward(objective: Objective, image: Any, other: Any, share: float) -> Any:
    """The image of (1 − share) M + share N, for objectives with dual vectors."""
    assert isinstance(objective, Composite)
    none = other.factor[:, :0]
    z = stored(image.z + share * (other.z - image.z))
    return CompositeImage(none, z, image.linear + share * (other.linear - image.linear), none)


def near(objective: Objective, image: Any, V: Array) -> Beside | None:
    """g(z + Zs) + ⟨C, VSVᵀ⟩ with the columns Z = 𝒜(V·Vᵀ) of the map; None for other objectives."""
    if not isinstance(objective, Composite):
        return None
    Z, z, linear = stored(objective.map.columns(V)), image.z, svec(host(V.T @ (objective.C @ V)))

    def taken(S: Array) -> CompositeImage:
        s = svec(S)
        moved = stored(z + Z @ beside(Z, s))
        return CompositeImage(V[:, :0], moved, image.linear + float(linear @ s), V[:, :0])

    slope = host(Z.T @ objective.loss.gradient(z)) + linear
    return Beside(host(objective.loss.curvature(z, Z)), slope, taken)
