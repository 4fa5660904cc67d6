"""A function of a few variables with two derivatives: the argument of the small exact searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gramian.common.types import Array

UNBOUNDED_STEP = 1e30
"""Length of a step beyond which a decreasing function is considered unbounded below."""


class Restriction(Protocol):
    """θ ↦ F(Σ θᵢ Mᵢ) over a few fixed matrices, with its first two derivatives."""

    @property
    def quadratic(self) -> bool: ...

    def value(self, theta: Array) -> float: ...

    def gradient(self, theta: Array) -> Array: ...

    def hessian(self, theta: Array) -> Array: ...

    def along(self, theta: Array, move: Array) -> Callable[[float], float]:
        """t ↦ F at θ + t·move, for many t."""
