"""Lower bounds on tr((AM)² + BM² + 2CM) over the cone, by dual points from a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from gramian.arrays.dense import eigh
from gramian.arrays.places import Placed, at_home, host, inner, norm, side_by_side
from gramian.common import clock
from gramian.common.types import Array
from gramian.objectives.matrices import (
    DENSE_ORDER,
    LowRankPlusIdentity,
    is_multiple_of_identity,
)
from gramian.objectives.supports import LowerBound
from gramian.proofs import EXACT_ORDER, eigen_seconds

if TYPE_CHECKING:
    from gramian.objectives.gram_quadratic import GramImage, GramQuadratic


def lowered(eigenvalues: Array) -> Array:
    """Eigenvalues minus their rounding error, at least 0: a lower bound on A."""
    reach = float(np.max(np.abs(eigenvalues), initial=0.0))
    lost = 4 * np.finfo(float).eps * np.sqrt(eigenvalues.size) * reach
    return np.maximum(eigenvalues - lost, 0.0)


@dataclass(frozen=True)
class Eigenbasis(Placed):
    """A ⪰ V diag(a) Vᵀ and B ⪰ V diag(b) Vᵀ, with which 𝓗M = AMA + ½(BM + MB) is diagonal.

    Equal up to rounding, which is subtracted (`lowered`): ⟨M, 𝓗M⟩, and hence F, is at least its
    value in this basis.
    """

    V: Array
    a: Array
    b: Array

    @cached_property
    def H(self) -> Array:
        """𝓗 as elementwise weights a_i a_j + ½(b_i + b_j) on VᵀMV."""
        return self.a[:, None] * self.a + 0.5 * (self.b[:, None] + self.b)


def common_eigenbasis(A: Any, B: Any) -> Eigenbasis | None:
    """An eigenbasis of both matrices, None if they do not commute."""
    order, even_A, even_B = A.order, is_multiple_of_identity(A), is_multiple_of_identity(B)
    if even_A and even_B:
        return Eigenbasis(np.eye(order), np.full(order, A.scale), np.full(order, B.scale))
    clock.check(2 * eigen_seconds(order))
    if even_A or even_B:
        values, V = eigh((A if even_B else B).dense())
        a = lowered(values) if even_B else np.full(order, A.scale)
        return Eigenbasis(V, a, np.full(order, B.scale) if even_B else lowered(values))
    A, B = A.dense(), B.dense()
    size_A, size_B = norm(A) or 1.0, norm(B) or 1.0
    if norm(A @ B - B @ A) > 1e-12 * size_A * size_B:
        return None
    # Within an eigenspace of B any basis diagonalises B: the sum with A selects one that suits A.
    _, V = eigh(A / size_A + np.sqrt(0.5) * B / size_B)
    (own_A, rest_A), (own_B, rest_B) = _diagonalised(A, V), _diagonalised(B, V)
    if rest_A / size_A + rest_B / size_B > 1e-11:
        return None
    # The off-diagonal remainder counts as rounding of both.
    return Eigenbasis(V, lowered(own_A - rest_A), lowered(own_B - rest_B))


def _diagonalised(A: Array, V: Array) -> tuple[Array, float]:
    """The diagonal of VᵀAV, and the norm of the rest."""
    rotated = V.T @ A @ V
    diagonal = np.diagonal(rotated).copy()
    return diagonal, norm(rotated - np.diag(diagonal))


def quadratic_bounds(objective: GramQuadratic, image: GramImage) -> Iterator[LowerBound]:
    """For every S ⪰ 0, with G = ∇F(M): F(M) − F* ≤ ⟨S, M⟩ + ¼⟨G − S, 𝓗⁻¹(G − S)⟩.

    This is the Lagrangian dual at S. In a common eigenbasis 𝓗⁻¹ is diagonal; otherwise
    𝓗⁻¹ ⪯ 1/m by strong convexity. For large orders S = P₊(G − 2mM), whose remainder is known
    exactly if B and C are low-rank plus a multiple of the identity.
    """
    if not objective.place.is_host:
        home = at_home(objective)
        yield from quadratic_bounds(home, home.image(host(image.factor)))
    elif objective.order > DENSE_ORDER:
        yield from _structured_bound(objective, image)
    elif objective.modulus > 0 or (
        objective.eigenbasis is not None and np.any(objective.eigenbasis.H > 0)
    ):
        yield _spectral_bound(objective, image)


def _spectral_bound(objective: GramQuadratic, image: GramImage) -> LowerBound:
    """S = P₊(G − κM): κ > 0 removes the range of M from S; several κ are tried."""
    G = objective.gradient(image).dense()
    M = image.factor @ image.factor.T
    size = norm(M)
    ratio = norm(G) / size if size > 0 else 0.0
    kappas = {0.0, 2 * objective.modulus, ratio}
    if objective.order > EXACT_ORDER:  # a second each: try only the usually best one
        kappas = {2 * objective.modulus or ratio}
    gaps = [_dual_gap(objective, G, M, kappa) for kappa in kappas]
    gaps.append(_flat_gap(objective.eigenbasis, G, M))
    method = "strong convexity" if objective.eigenbasis is None else "Fenchel dual point"
    return LowerBound(objective.value(image) - min(gaps), method)


def _dual_gap(objective: GramQuadratic, G: Array, M: Array, kappa: float) -> float:
    clock.check(eigen_seconds(objective.order))
    S = _positive_part(G - kappa * M)
    R = G - S
    basis = objective.eigenbasis
    if basis is None:
        return inner(S, M) + inner(R, R) / (4 * objective.modulus)
    R = basis.V.T @ R @ basis.V
    flat = 1e-14 * np.max(basis.H, initial=0.0) >= basis.H
    if np.max(np.abs(R[flat]), initial=0.0) > 0:
        return np.inf
    return inner(S, M) + float(np.sum(R[~flat] ** 2 / basis.H[~flat])) / 4


def _flat_gap(basis: Eigenbasis | None, G: Array, M: Array) -> float:
    """S = G, except where 𝓗 has curvature: there the smallest matrix that makes it PSD is added.

    With the eigenvectors of curvature first, S = G + (T, 0; 0, 0) ⪰ 0 for the positive part T
    of −(G₁₁ − G₁₂G₂₂⁻¹G₂₁), where G₂₂ ≻ 0: it equals 2C there for every M.
    """
    flat = None if basis is None else np.diag(basis.H) <= 1e-14 * np.max(basis.H, initial=0.0)
    if basis is None or flat is None or not flat.any() or flat.all():
        return np.inf
    turned = basis.V.T @ G @ basis.V
    first, last = ~flat, flat
    try:
        factor = scipy.linalg.cho_factor(turned[np.ix_(last, last)])
    except np.linalg.LinAlgError:
        return np.inf
    across = turned[np.ix_(first, last)]
    core = turned[np.ix_(first, first)] - across @ scipy.linalg.cho_solve(factor, across.T)
    T = _positive_part(-0.5 * (core + core.T))
    H = basis.H[np.ix_(first, first)]
    there = (basis.V.T @ M @ basis.V)[np.ix_(first, first)]
    return inner(G, M) + inner(T, there) + float(np.sum(T * T / H)) / 4


def _structured_bound(objective: GramQuadratic, image: GramImage) -> Iterator[LowerBound]:
    """F* ≥ constant − s²‖LᵀAL‖² − ‖P₊(−sAMA − C)‖²/b for B = bI, C = cI + UDUᵀ and any s.

    This is q linearised at sM, except for b‖·‖². It is concave in s, and the best s is near 1
    if M is near the optimum.
    """
    B, C = objective.B, objective.C
    if not (is_multiple_of_identity(B) and isinstance(C, LowRankPlusIdentity)):
        return
    if B.scale <= 0:
        return
    span = side_by_side([image.AL, C.factor])
    R: Array = scipy.linalg.qr(span, mode="r", check_finite=False)[0][: span.shape[1]]
    moving, still = R[:, : image.AL.shape[1]], R[:, image.AL.shape[1] :]
    fixed, change = (still * C.weights) @ still.T, moving @ moving.T
    outside = (objective.order - R.shape[0]) * max(0.0, -C.scale) ** 2
    quadratic = inner(image.inside[0], image.inside[0])

    def minus_bound(s: float) -> float:
        inside = -C.scale - np.linalg.eigvalsh(fixed + s * change)
        positive = outside + float(np.sum(np.maximum(inside, 0.0) ** 2))
        return s * s * quadratic + positive / B.scale - objective.constant

    best = scipy.optimize.minimize_scalar(minus_bound, bounds=(0.0, 2.0), method="bounded")
    yield LowerBound(-min(float(best.fun), minus_bound(1.0)), "strong convexity")


def _positive_part(S: Array) -> Array:
    """P₊(S), increased by its rounding error so that it is truly PSD."""
    values, vectors = eigh(S)
    lift = values.size * np.finfo(float).eps * np.max(np.abs(values), initial=0.0)
    return (vectors * (np.maximum(values, 0.0) + lift)) @ vectors.T
