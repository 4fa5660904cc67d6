"""Newton–Lanczos for the leading eigenvector: BILGO, Algorithm 2 with Lanczos inside."""

import numpy as np

from gramian.arrays.places import host, norm
from gramian.linalg._base import Array, CountedOperator, EigenPair
from gramian.linalg._lanczos import LanczosBasis
from gramian.linalg._newton import Centred, Iterate, minimise

_BASIS_SIZE = 20
"""Largest number of vectors of one basis."""
_LEAST_NEW_PART = 1e-3
"""Part of the previous direction outside of the basis below which it is omitted."""


def newton_lanczos(
    operator: CountedOperator, start: Array, tol: float, max_iter: int | None
) -> EigenPair:
    """Minimise f(v) = ¼‖vvᵀ − A‖²_F by Newton steps in short Lanczos bases.

        ∇f(v) = (vᵀv)v − Av,   ∇²f(v) = 2vvᵀ + (vᵀv)I − A         (BILGO, section 3.2)
        ∇²f(v) d ≈ −∇f(v) by Lanczos, stopped where a negative eigenvalue appears (Algorithm 2)

    The Hessian differs from −A by a multiple of I and a term in v, so v and its Krylov space
    started at ∇f(v) span the Krylov space of A started at v. One Lanczos basis Q of A (its
    first product is already known) therefore serves both: with v = √ρ q₁ and T = QᵀAQ,

        Qᵀ∇²f(v)Q = 2ρ e₁e₁ᵀ + ρI − T

    is tridiagonal, and its pivots show when the Newton system is solved or indefinite. Since A is
    then known on span(Q), f is minimised exactly over span(Q) and the previous direction instead of
    along d alone: a Rayleigh–Ritz step, at least as good as the exact line search and far better
    for clustered leading eigenvalues. The method is a restarted Lanczos method, in which Newton's
    criterion decides when to restart, with one additional vector.
    """
    return minimise(operator, start, _advance, tol, max_iter)


def _advance(centred: Centred, iterate: Iterate, forcing: float) -> Iterate:
    basis = _newton_basis(centred, iterate, forcing)
    extra = _independent_part(basis, iterate.previous)
    small = basis.tridiagonal()
    if extra is not None:
        small = _bordered(small, host(basis.vectors @ extra[1]), float(extra[0] @ extra[1]))
    y = np.linalg.eigh(small)[1][:, -1]
    # The move is formed without q₁, not as a difference: near convergence it is tiny, and its
    # image must keep its relative accuracy to be used as a direction again.
    along, last, move = float(y[0]), float(y[-1]), np.concatenate(([0.0], y[1:]))
    p, image_p = basis.combine(move[: basis.size]), basis.image(move[: basis.size])
    if extra is not None:
        p, image_p = p + last * extra[0], image_p + last * extra[1]
    u, image = along * iterate.u + p, along * iterate.image + image_p
    length = norm(u)
    return Iterate(u / length, image / length, previous=(p, image_p))


def _newton_basis(centred: Centred, iterate: Iterate, forcing: float) -> LanczosBasis:
    """Grow Q until it solves the Newton system to the forcing accuracy or is indefinite."""
    rho = iterate.rho
    basis = LanczosBasis(
        iterate.u, min(_BASIS_SIZE, iterate.u.shape[0]), centred.operator.precision
    )
    basis.extend(iterate.image)
    pivot, forward = 2.0 * rho, 0.0
    while not basis.full:
        ratio = basis.betas[-1] / pivot
        basis.extend(centred(basis.last))
        # Gaussian elimination on 2ρ e₁e₁ᵀ + ρI − T, right side e₂ (∇f over its norm).
        forward = ratio * forward if basis.size > 2 else 1.0
        pivot = rho - basis.alphas[-1] - ratio * basis.betas[-2]
        if pivot <= 0.0 or basis.betas[-1] * forward <= forcing * pivot:
            break
    return basis


def _independent_part(
    basis: LanczosBasis, direction: tuple[Array, Array] | None
) -> tuple[Array, Array] | None:
    """Return the unit part of a direction outside span(Q), and its image, if there is any."""
    if direction is None:
        return None
    before = norm(direction[0])
    p, image = direction
    for _ in range(2):
        y = host(basis.vectors @ p)
        p, image = p - basis.combine(y), image - basis.image(y)
    length = norm(p)
    if length <= _LEAST_NEW_PART * before:
        return None
    return p / length, image / length


def _bordered(small: Array, column: Array, corner: float) -> Array:
    return np.block([[small, column[:, None]], [column[None, :], np.full((1, 1), corner)]])
