"""Gram quadratics with commuting A and B, solved in the basis in which the Hessian is diagonal."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.linalg

from gramian.arrays.places import beside, contiguous, host, inner, namespace, norm
from gramian.bounds import certificate_of
from gramian.certificate import Certificate
from gramian.common.types import Array
from gramian.methods.base import Run, Settings, Step, entering, needs_cone
from gramian.objectives import GramQuadratic, LowerBound
from gramian.problem import Problem

RELAXATION = 1.6
MAX_RESIDUAL_RATIO = 2.0

MIN_PIVOT_RATIO = 4 * float(np.finfo(float).eps)
"""Smallest squared pivot of a definite matrix, relative to the largest and to the order."""


def refusal(problem: Problem, settings: Settings) -> str | None:
    """The reason why the method does not accept the problem; None if it accepts it."""
    objective = problem.objective
    if not isinstance(objective, GramQuadratic):
        return "it solves tr((AM)² + BM² + 2CM) only"
    if reason := needs_cone(problem, settings):
        return reason
    if settings.rank is not None and settings.rank < problem.order:
        return "its solution has the rank of the optimum, but a smaller rank was requested"
    if objective.eigenbasis is None:
        return "A and B do not commute, or their order is too large to find their eigenvectors"
    if float(namespace(objective.eigenbasis.H).min(objective.eigenbasis.H)) <= 0:
        return "the quadratic part is flat in some direction"
    return None


@entering("eigenbasis")
def eigenbasis(problem: Problem, factor: Array, settings: Settings, *, penalty: float = 2.0) -> Run:
    """In the common eigenbasis F(M) = Σ H_ij M_ij² + 2⟨C, M⟩ with H_ij = a_i a_j + ½(b_i + b_j).

    M = −C/H is the solution if it is PSD. Otherwise M is scaled by the congruence M_ij √(h_i h_j)
    with h_i² = H_ii, which preserves the cone and gives weights H_ij/(h_i h_j) of at most 1 that
    are 1 on the diagonal; then the splitting

        M ← (ρ(Z − U) − 2C)/(2H + ρ),   Z ← P₊(M + U),   U ← U + M − Z

    with over-relaxed M and balanced ρ takes a few projections, at most a few dozen. S = −ρU ⪰ 0
    is dual feasible at every step, so that its gap is certified at no cost.
    """
    objective = problem.objective
    assert isinstance(objective, GramQuadratic) and objective.eigenbasis is not None
    basis = objective.eigenbasis
    xp = namespace(basis.H)
    stretch = xp.linalg.diagonal(basis.H) ** 0.25
    H = basis.H / (stretch[:, None] * stretch) ** 2
    V = basis.V / stretch
    C = V.T @ objective.C.dense() @ V
    C = 0.5 * (C + C.T)
    rho = float(penalty)

    Z, U = -C / H, xp.zeros_like(C)
    settled, negative = False, True
    while True:
        M = (rho * (Z - U) - 2 * C) / (2 * H + rho)
        W = RELAXATION * M + (1 - RELAXATION) * Z + U
        previous = Z
        Z, rank = _project(W, negative)
        negative = 2 * rank > problem.order
        U = W - Z
        certificate = _certificate(problem, H, C, Z, -rho * U, stretch)
        yield Step(
            partial(_factor, V, Z), certificate.value, certificate, {"rank": rank, "penalty": rho}
        )
        if settled:
            change = _balance(M - Z, rho * (Z - previous))
            rho, U = rho * change, U / change
        settled = True


def _project(W: Array, negative: bool) -> tuple[Array, int]:
    """P₊(W) and its rank, from the part that is expected to have fewer eigenvalues."""
    if negative and _root(W) is not None:
        return W, W.shape[0]
    values, vectors = eigenpairs_of_sign(W, negative)
    part = (vectors * values) @ vectors.T
    count = values.shape[0]
    return (W - part, W.shape[0] - count) if negative else (part, count)


def eigenpairs_of_sign(W: Array, negative: bool) -> tuple[Array, Array]:
    """The eigenpairs of one sign."""
    if isinstance(W, np.ndarray):
        side = (-np.inf, 0.0) if negative else (0.0, np.inf)
        values, vectors = scipy.linalg.eigh(W, subset_by_value=side, check_finite=False)
        return values, vectors
    values, vectors = namespace(W).linalg.eigh(W)
    kept = np.flatnonzero(host(values) < 0 if negative else host(values) > 0)
    inside = slice(int(kept[0]), int(kept[-1]) + 1) if kept.size else slice(0, 0)
    return values[inside], vectors[:, inside]


def _root(W: Array) -> Array | None:
    """The Cholesky factor of a definite matrix, in a tenth of the time of its eigenvalues.

    None if it is not clearly definite, and on a device.
    """
    if not isinstance(W, np.ndarray):
        return None
    try:
        root: Array = np.linalg.cholesky(W)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(root)
    clear = bool(np.min(pivots) ** 2 > pivots.size * MIN_PIVOT_RATIO * np.max(pivots) ** 2)
    return root if clear else None


def _factor(V: Array, Z: Array) -> Array:
    """L with LLᵀ = VZVᵀ."""
    root = _root(Z)
    if root is not None:
        return contiguous(V @ root)
    values, vectors = namespace(Z).linalg.eigh(Z)
    sizes = host(values)
    kept = sizes > sizes.size * np.finfo(float).eps * sizes[-1]
    columns = vectors[:, np.flatnonzero(kept)] * beside(Z, np.sqrt(sizes[kept]))
    return contiguous(V @ columns)


def _balance(difference: Array, movement: Array) -> float:
    """Raise the penalty if M and Z differ more than Z moves, lower it in the opposite case."""
    primal, dual = norm(difference), norm(movement)
    if primal > MAX_RESIDUAL_RATIO * dual:
        return 2.0
    return 0.5 if dual > MAX_RESIDUAL_RATIO * primal else 1.0


def _certificate(
    problem: Problem, H: Array, C: Array, Z: Array, S: Array, stretch: Array
) -> Certificate:
    """F(Z) − F* ≤ ⟨S, Z⟩ + ¼⟨G − S, (G − S)/H⟩ with G = ∇F(Z) and S ⪰ 0.

    λ_min(∇F) ≥ −‖∇F − S‖, both converted back to the coordinates of M by `stretch`.
    """
    constant = problem.objective.constant
    square, linear = inner(H * Z, Z), 2 * inner(C, Z)
    value = square + linear + constant
    G = 2 * (H * Z + C)
    gap = max(0.0, inner(S, Z) + inner((G - S) / H, G - S) / 4)
    return certificate_of(
        value,
        LowerBound(value - gap, "Fenchel dual point", how="eigenvalues"),
        rounding=16 * float(np.finfo(float).eps) * (square + abs(linear) + abs(constant)),
        lambda_min=-norm(stretch[:, None] * (G - S) * stretch),
        complementarity=inner(G, Z),
        scale=problem.scale,
    )
