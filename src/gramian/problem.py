"""A problem: an objective, its domain, its constraints, and its formula."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.places import HOST, Place, host
from gramian.common import html
from gramian.common.parameters import check_made
from gramian.domains import Domain, PSDCone
from gramian.linear_constraints import Constraint, Constraints
from gramian.objectives import Objective
from gramian.objectives.gram_quadratic import fall_unit

ROUNDED = 1e-14
"""Fraction of the possible decrease of F that is rounding error."""


@dataclass(frozen=True)
class Problem:
    """min F(M) over a domain of PSD matrices, optionally subject to linear constraints."""

    objective: Objective
    domain: Domain = field(default_factory=PSDCone)
    name: str = "problem"
    formula: str = "F(M)"
    variable: str = "M"
    """The name of M in the formula, or its block structure."""
    constraints: tuple[Constraint, ...] = ()
    """lower ≤ 𝒜(M) ≤ upper, each with its own map."""
    conditions: str = ""
    """The constraints as displayed."""

    def __post_init__(self) -> None:
        if isinstance(self.objective, Problem):
            raise TypeError("expected an objective, got a Problem; pass problem.objective")
        check_made(self.objective, "pair_image", "objective", "one of gramian.objectives")
        check_made(self.domain, "project_eigenvalues", "domain", "a PSDCone() or Spectrahedron(τ)")
        given = self.constraints
        if isinstance(given, type):
            check_made(given, "", "constraints", "")
        constraints = (given,) if isinstance(given, Constraint) else tuple(given)
        for k, constraint in enumerate(constraints):
            if not isinstance(constraint, Constraint):
                raise TypeError(
                    f"constraints[{k}] is a {type(constraint).__name__}; pass a "
                    "gramian.Constraint(map, lower, upper)"
                )
            if constraint.map.order != self.order:
                raise ValueError(
                    f"constraints[{k}] has order {constraint.map.order}, but the objective has "
                    f"order {self.order}"
                )
        object.__setattr__(self, "constraints", constraints)

    @property
    def order(self) -> int:
        """The number of rows of M."""
        return self.objective.order

    @under_own_errstate
    def value(self, factor: ArrayLike) -> float:
        """F(LLᵀ), the value of the displayed formula, including constants."""
        L = as_factor(factor, self.order, self.objective.place)
        return self.objective.value(self.objective.image(L))

    @cached_property
    def bounds(self) -> Constraints:
        """The constraints as one map with bounds."""
        return Constraints.of(self.constraints, self.order)

    @cached_property
    def scale(self) -> float:
        """|F(0)|, the reference for an optimum of 0; if that is also 0, its rounding error."""
        at_zero = abs(self.value(np.zeros((self.order, 0))))
        return at_zero if at_zero > 0 else ROUNDED * fall_unit(self.objective)

    @property
    def displayed(self) -> str:
        """The problem as one line of mathematics."""
        domain = str(self.domain).replace("M", self.variable)
        if self.constraints:
            domain = f"{self.conditions or 'l ≤ 𝒜(M) ≤ u'}, {domain}"
        return f"min {self.formula}  subject to {domain}"

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        constraints = sum(constraint.map.size for constraint in self.constraints) or None
        shown = {"problem": self.displayed, "order of M": self.order, "constraints": constraints}
        return html.facts(self.name, shown)

    def __str__(self) -> str:
        return f"{self.name}: {self.displayed}  (order {self.order})"


def check_problem(problem: Any) -> None:
    """Raise TypeError for anything but a problem."""
    if not isinstance(problem, Problem):
        raise TypeError(
            f"expected a gramian Problem, got {type(problem).__name__}; "
            "make one with gramian.problems or gramian.Problem(objective)"
        )


def as_factor(factor: ArrayLike, order: int, place: Place = HOST) -> np.ndarray:
    """A validated factor L as a C-contiguous float array of shape (order, r), on a device."""
    if place.is_host or isinstance(factor, np.ndarray):
        return place.put(_checked_factor(factor, order))
    there: Any = factor
    if there.ndim != 2 or there.shape[0] != order:
        raise ValueError(f"a factor must have shape ({order}, r), got {tuple(there.shape)}")
    if not bool(place.xp.all(place.xp.isfinite(there))):
        raise ValueError("the factor contains NaN or infinity")
    return there


def _checked_factor(factor: Any, order: int) -> np.ndarray:
    L = host(factor) if hasattr(factor, "device") else np.asarray(factor)
    if L.dtype == object or np.iscomplexobj(L):
        raise ValueError(f"a factor must hold real numbers, got dtype {L.dtype}")
    if L.dtype not in (np.float32, np.float64):
        L = L.astype(float)
    if L.ndim != 2 or L.shape[0] != order:
        raise ValueError(f"a factor must have shape ({order}, r), got {L.shape}")
    if not np.all(np.isfinite(L)):
        raise ValueError("the factor contains NaN or infinity")
    return np.ascontiguousarray(L)
