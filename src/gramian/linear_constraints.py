"""Linear constraints on M: a linear map with bounds on its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.common.types import Array
from gramian.maps import LinearMap, Stack


@dataclass(frozen=True, eq=False)
class Constraint:
    """lower ≤ 𝒜(M) ≤ upper, entry by entry; an equality if both are the same.

    Parameters
    ----------
    map : LinearMap
        𝒜: entries, distances, linear combinations of them, `gramian.maps.inner_products`, …
    lower, upper : float or array of 𝒜's size
        Bounds; −inf and inf for none.
    unit : float or array of 𝒜's size
        Positive scale of the violation of each row, default 1.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Constraint
    >>> from gramian.maps import Entries
    >>> print(Constraint.equal(Entries(np.array([[0, 0], [1, 1]]), 2), 1.0))
    Entries(order=2, size=2) in bounds, 2 of them equalities
    """

    map: LinearMap
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    unit: ArrayLike = 1.0
    lowest: Array = field(init=False, repr=False)
    """The lower bounds as a vector."""
    highest: Array = field(init=False, repr=False)
    units: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.map, LinearMap):
            raise TypeError(
                f"a constraint needs a map of gramian.maps, got {type(self.map).__name__}; "
                "inner_products makes one from matrices"
            )
        lowest = _vector(self.lower, self.map.size, "lower")
        highest = _vector(self.upper, self.map.size, "upper")
        empty = (lowest > highest) | (lowest == np.inf) | (highest == -np.inf)
        if np.any(empty):
            k = int(np.argmax(empty))
            raise ValueError(
                f"row {k} of a constraint is infeasible: its bounds are {lowest[k]:g} and "
                f"{highest[k]:g}"
            )
        object.__setattr__(self, "lowest", lowest)
        object.__setattr__(self, "highest", highest)
        units = _vector(self.unit, self.map.size, "unit")
        if not np.all((units > 0) & np.isfinite(units)):
            raise ValueError("unit must hold finite numbers above 0")
        object.__setattr__(self, "units", units)

    @classmethod
    def equal(cls, map: LinearMap, values: ArrayLike, unit: ArrayLike = 1.0) -> Constraint:
        """𝒜(M) = values."""
        return cls(map, values, values, unit)

    @property
    def equalities(self) -> int:
        return int(np.sum(self.lowest == self.highest))

    def __str__(self) -> str:
        return f"{self.map} in bounds, {self.equalities} of them equalities"


@dataclass(frozen=True, eq=False)
class Constraints:
    """All constraints of a problem as one map with bounds."""

    map: Stack
    lower: Array
    upper: Array
    unit: Array

    @classmethod
    def of(cls, constraints: Sequence[Constraint], order: int) -> Constraints:
        sides = [(c.lowest, c.highest, c.units) for c in constraints] or [(np.zeros(0),) * 3]
        lower, upper, unit = (np.concatenate(side) for side in zip(*sides, strict=True))
        return cls(Stack([c.map for c in constraints], order), lower, upper, unit)

    @property
    def size(self) -> int:
        return self.map.size

    @cached_property
    def sides(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """The rows that are equations, the others with a lower bound, and those with an upper."""
        free = self.lower != self.upper
        low, high = free & np.isfinite(self.lower), free & np.isfinite(self.upper)
        return np.flatnonzero(~free), np.flatnonzero(low), np.flatnonzero(high)

    @cached_property
    def scale(self) -> float:
        """1 + the largest bound: the scale of violations, as in the DIMACS errors."""
        bounds = np.concatenate([self.lower / self.unit, self.upper / self.unit])
        return 1.0 + float(np.max(np.abs(bounds), where=np.isfinite(bounds), initial=0.0))

    def off(self, z: Array) -> Array:
        """Signed distance of each value from its bounds."""
        return z - np.clip(z, self.lower, self.upper)

    def violation(self, z: Array) -> float:
        """‖off‖/(1 + max |b|), both in the units of their rows."""
        return float(np.linalg.norm(self.off(z) / self.unit)) / self.scale

    def reach(self, y: Array) -> float:
        """The smallest y·𝒜(M) within the bounds: y⁺·lower − y⁻·upper, −inf if unbounded."""
        ends = np.where(y > 0, self.lower, self.upper)
        live = y != 0
        return float(np.sum(y[live] * ends[live]))

    def signed(self, y: Array) -> Array:
        """Multipliers, set to 0 if the bound they refer to does not exist."""
        missing = ((y > 0) & ~np.isfinite(self.lower)) | ((y < 0) & ~np.isfinite(self.upper))
        return np.where(missing, 0.0, y)


def _vector(bound: ArrayLike, size: int, name: str) -> Array:
    values = np.asarray(bound, dtype=float)
    if values.ndim > 1 or values.size not in (1, size):
        raise ValueError(
            f"{name} must be one number or {size}, one per row of the map; got shape {values.shape}"
        )
    if np.any(np.isnan(values)):
        first = int(np.argmax(np.isnan(np.atleast_1d(values))))
        raise ValueError(f"{name}[{first}] is NaN")
    return np.broadcast_to(values.ravel() if values.ndim else values, (size,)).astype(float)
