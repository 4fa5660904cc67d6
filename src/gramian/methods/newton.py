"""Newton's direction on the factor, by conjugate gradient on the convex part of the Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from gramian.arrays.dense import eigh
from gramian.arrays.places import beside, host, inner, namespace, recorded
from gramian.domains import Domain
from gramian.linalg import quartic
from gramian.linalg.conjugate_gradient import Product, conjugate_gradient
from gramian.objectives import Objective
from gramian.objectives.curvature import hessian_metric, row_preconditioner

Array = NDArray[np.floating]

MIN_EIGENVALUE_RATIO = 1e-6
"""Eigenvalues of LᵀPL below this fraction of the largest are raised to it in the preconditioner."""

MAX_STEP = 4.0
"""Longest step along a direction on a sphere of factors."""


@dataclass(frozen=True)
class NegativePart:
    """A lower bound on the negative part of ∇F: ∇F ⪰ V diag(values) Vᵀ + rest·(I − VVᵀ)."""

    values: Array
    vectors: Array
    rest: float

    def lifted(self, hessian: Product) -> Product:
        """The Hessian with 2∇F replaced by (about) 2P₊(∇F): positive semidefinite."""
        if not (self.values.size or self.rest):
            return hessian
        weights = beside(self.vectors, self.rest - self.values)[:, None]
        return lambda D: (
            hessian(D) + 2 * (self.vectors @ (weights * (self.vectors.T @ D)) - self.rest * D)
        )


@dataclass(frozen=True)
class Direction:
    """A search direction from L, and whether all curvatures met were positive."""

    blocks: list[Array]
    """The approximate Newton direction, then the direction of negative curvature if one was met."""
    products: int

    @property
    def clean(self) -> bool:
        return len(self.blocks) == 1


def newton_direction(
    objective: Objective,
    image: Any,
    gradient: Array,
    *,
    below: NegativePart | None,
    domain: Domain,
    tol: float,
    limit: int,
) -> Direction:
    """−(∂²F)⁻¹∂F to relative residual `tol`, in at most `limit` products.

    In a domain of trace τ the factor lies on ‖L‖² = τ: the Hessian is that of
    F(LLᵀ) − λ(‖L‖² − τ) with λ = ⟨∂F, L⟩/2τ, on the plane tangent to the sphere.
    """
    L = image.factor
    hessian = recorded(objective.hessian_factor(image), objective.place)
    if below is not None:
        hessian = below.lifted(hessian)
    precondition = row_preconditioner(objective, image)
    precondition = precondition or _preconditioner(hessian_metric(objective), L)
    if domain.bounded:
        slope = objective.gradient_factor(image)  # `gradient` may be tangent to the sphere
        multiplier, plain = domain.level(inner(slope, L)), hessian

        def hessian(D: Array) -> Array:
            return domain.tangent(plain(D) - multiplier * D, L)

        gradient, precondition = domain.tangent(gradient, L), None
    found = conjugate_gradient(hessian, -gradient, steps=limit, precondition=precondition, tol=tol)
    curved = [] if found.curved is None else [found.curved]
    return Direction([found.x, *curved], found.products)


def _preconditioner(P: Array | None, L: Array) -> Product | None:
    """(P ⊗ LᵀPL)⁻¹: the inverse Hessian if every row of the map has the same part of LᵀPL."""
    if P is None:
        return None
    values, basis = namespace(P).linalg.eigh(P)
    small, turn = eigh(host(L.T @ P @ L))
    ends = beside(L, 1.0 / np.maximum(small, MIN_EIGENVALUE_RATIO * small[-1]))
    weights, turn = ends / values[:, None], beside(L, turn)
    return lambda R: basis @ (weights * (basis.T @ R @ turn)) @ turn.T


def best_along(
    objective: Objective, image: Any, direction: Array, domain: Domain
) -> tuple[Any, float]:
    """The image of the best L + μD, scaled back to its trace if that is fixed, and μ."""
    line, trace = objective.line(image, direction), domain.trace
    if trace is None:
        mu, _ = quartic(line.restriction)
        return line.take(mu), mu
    L = image.factor
    cross, square = inner(L, direction), inner(direction, direction)

    def value(mu: float) -> float:
        size = trace / (trace + 2 * mu * cross + mu * mu * square)
        return line.restriction.value(size * np.array([1.0, 2 * mu, mu * mu]))

    found = scipy.optimize.minimize_scalar(value, bounds=(0.0, MAX_STEP), method="bounded")
    mu = min((0.0, 1.0, float(found.x)), key=value)
    return objective.image(domain.rescale(L + mu * direction)), mu
