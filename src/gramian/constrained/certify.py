"""Certificates of points of problems with constraints, and their six DIMACS errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian import bounds as unconstrained
from gramian.arrays.errstate import under_own_errstate
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.constrained.dual import Repair
from gramian.constrained.model import Model
from gramian.objectives import LowerBound
from gramian.problem import Problem, as_factor, check_problem
from gramian.proofs import PATIENCE
from gramian.reductions.feature_scaling import feature_scaling


@under_own_errstate
def certify(
    problem: Problem,
    factor: ArrayLike,
    *,
    dual: ArrayLike | None = None,
    tol: float = 1e-6,
    time_limit: float = PATIENCE,
) -> Certificate:
    """Bound F(LLᵀ) − F* by the tightest bound that applies to the problem.

    Trace bound: for convex F and any τ ≥ tr M*, F(M) − F* ≤ ⟨∇F, M⟩ + τ·max(0, −λ_min(∇F)).
    Fenchel dual point and strong convexity: see `lower_bounds` of the objectives. With constraints:
    by the multipliers `dual`, made feasible; the violation is reported with the gap.

    λ_min is proved by all eigenvalues up to order 1500, and above it by a factorisation (dense,
    sparse or of the span) that fits into the memory and the time limit; otherwise it is estimated
    by Lanczos, and the certificate reports this.

    Parameters
    ----------
    problem : Problem
    factor : array of shape (n, r)
        L. With a fixed trace, tr LLᵀ must be equal to it.
    dual : array, optional
        A dual vector w for the bound, such as `result.dual`; by default that of the point itself,
        or multipliers 0.
    tol : float
        The relative gap of interest: λ_min is computed to the accuracy that it requires.
    time_limit : float
        Approximate time limit of a proof, in seconds.
    """
    check_problem(problem)
    if not problem.constraints:
        return unconstrained.certify(problem, factor, dual=dual, tol=tol, time_limit=time_limit)
    scaling = feature_scaling(Model.of(problem).problem)
    model = Model(scaling.problem)
    L = as_factor(factor, problem.order).astype(float, copy=False)
    y = _multipliers(model, dual)
    image = model.objective.image(scaling.coordinates(L))
    wanted = accuracy(model, image, tol)
    point = Repair(model)(image, y, wanted=wanted, seconds=time_limit)
    return scaling.certificate(constrained_certificate(model, image, point, y), L)


def _multipliers(model: Model, dual: ArrayLike | None) -> Array:
    size = model.bounds.size
    y = np.zeros(size) if dual is None else np.asarray(dual, dtype=float)
    if y.shape != (size,) or not np.all(np.isfinite(y)):
        raise ValueError(
            f"dual must hold {size} finite numbers, a multiplier for every row of the "
            f"constraints; got shape {y.shape}"
        )
    return y


def accuracy(model: Model, image: Any, tol: float) -> float:
    """The error of λ_min that a relative gap of `tol` permits."""
    trace = float(np.sum(image.factor**2)) or 1.0
    return 0.05 * tol * max(abs(model.objective.value(image)), 1e-9 * model.left * trace) / trace


def constrained_certificate(
    model: Model, image: Any, point: LowerBound | None, y: Array, least: float | None = None
) -> Certificate:
    """The certificate of a point by a feasible dual point, or by known bounds without one."""
    objective, L = model.objective, image.factor
    least_terms = LowerBound(objective.growth().least, unconstrained.LEAST_TERMS)
    return unconstrained.certificate_of(
        objective.value(image),
        max(filter(None, (least_terms, point)), key=lambda bound: bound.value),
        rounding=objective.rounding(image),
        lambda_min=-np.inf if least is None else least,
        complementarity=float(np.sum(L * (model.slack(image, y) @ L))),
        trace=float(np.sum(L * L)),
        scale=model.problem.scale,
        violation=model.bounds.violation(model.bounds.map.bilinear(L, L)),
    )


def dimacs_errors(model: Model, image: Any, y: Array, least: float) -> tuple[float, ...]:
    """The six errors of the DIMACS challenge (Mittelmann 2003), with Z = ∇F − 𝒜*(y).

    ‖𝒜(M) − b‖/(1 + max |b|), −λ_min(M), ‖𝒜*(y) + Z − C‖, −λ_min(Z)/(1 + max |C|), the difference of
    the values and ⟨Z, M⟩, both over 1 + |primal| + |dual|. The second and the third are 0: M = LLᵀ,
    and Z is defined by the other two.
    """
    L = image.factor
    bounds = model.bounds
    primal = model.objective.value(image)
    dual = model.dual_value(image, bounds.signed(y))
    size = 1.0 + abs(primal) + abs(dual)
    along = float(np.sum(L * (model.slack(image, y) @ L)))
    entry = _largest_entry(model)
    return (
        bounds.violation(bounds.map.bilinear(L, L)),
        0.0,
        0.0,
        max(0.0, -least) / (1.0 + entry),
        (primal - dual) / size,
        along / size,
    )


def _largest_entry(model: Model) -> float:
    """max |C|, or an approximation if C is only known by products."""
    matrix = getattr(model.linear, "matrix", None)
    if matrix is not None and hasattr(matrix, "data"):
        return float(np.max(np.abs(matrix.data), initial=0.0))
    return model.left / model.order
