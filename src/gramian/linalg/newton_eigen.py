"""The leading eigenvector by Hessian-free Newton methods: BILGO, Algorithm 2.

    min f(v) = ¼‖vvᵀ − A‖²_F,   ∇f(v) = (vᵀv)v − Av,   ∇²f(v) = 2vvᵀ + (vᵀv)I − A    (section 3.2)

The inner system ∇²f(v) d ≈ −∇f(v) is solved by conjugate gradients or by Lanczos.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramian.arrays.places import norm
from gramian.linalg._lanczos import (
    Array,
    CountedOperator,
    EigenPair,
    LanczosBasis,
    Probe,
    probe,
)
from gramian.linalg.conjugate_gradient import conjugate_gradient
from gramian.linalg.polynomial import minimise_quartic

_MAX_REFRESH = 5
"""Restarts from a new product after the updated images have drifted."""
_MAX_FORCING = 0.1
"""Largest relative residual of an inner solve."""
_MAX_BASIS_VECTORS = 20
"""Largest number of vectors of one basis."""
_MIN_NEW_PART = 1e-3
"""Part of the previous direction outside of the basis below which it is omitted."""


@dataclass(frozen=True)
class Centred:
    """B = (A + σI)/s, whose spectrum is approximately centred in [−1, 1].

    f has a nonzero minimiser only if the leading eigenvalue is positive, as it is for B. Centring
    also makes the iterates invariant to the scale and shift of A.
    """

    operator: CountedOperator
    sigma: float
    scale: float

    @classmethod
    def around(cls, operator: CountedOperator, found: Probe) -> "Centred":
        """Centre the operator on the interval found by a probe."""
        return cls(operator, -(found.high + found.low) / 2, (found.high - found.low) / 2)

    def __call__(self, vector: Array) -> Array:
        return self.shift(vector, self.operator(vector))

    def shift(self, vector: Array, image: Array) -> Array:
        """Return B·vector, given the image A·vector."""
        return (image + self.sigma * vector) / self.scale


@dataclass(frozen=True)
class Iterate:
    """A unit vector u and Bu; Algorithm 2's v is √ρ u, the best multiple of u.

    f(tu) = ¼(t⁴ − 2t²ρ + ‖B‖²_F), ρ = uᵀBu, is least at t² = ρ; there ∇f = √ρ (ρu − Bu).
    """

    u: Array
    image: Array
    previous: tuple[Array, Array] | None = None
    """The last direction and its image under B, if a method stores them."""

    @cached_property
    def rho(self) -> float:
        """The Rayleigh quotient of B, in [about 1, λ_max(B)]."""
        return float(self.u @ self.image)

    @cached_property
    def residual(self) -> float:
        """‖Bu − ρu‖."""
        return norm(self.image - self.rho * self.u)


Advance = Callable[[Centred, Iterate, float], Iterate]
"""One Newton step: (B, iterate, relative accuracy of the inner solve) → next iterate."""


def minimise(
    operator: CountedOperator, start: Array, advance: Advance, tol: float, max_iter: int | None
) -> EigenPair:
    """Minimise f(v) = ¼‖vvᵀ − B‖²_F by Newton steps from the Ritz vector of a short probe."""
    found = probe(operator, start)
    reach = found.norm
    if found.residual <= tol * reach:
        return operator.pair(found.vector, tol, reach)
    centred = Centred.around(operator, found)
    iterate = Iterate(found.vector, centred.shift(found.vector, found.image))
    left = 500 if max_iter is None else max_iter
    for _ in range(_MAX_REFRESH):
        while left > 0 and iterate.residual > _target(centred, iterate, tol, reach):
            goal = _target(centred, iterate, tol, reach) / iterate.residual
            forcing = max(min(_MAX_FORCING, np.sqrt(iterate.residual)), goal / 2)
            iterate = advance(centred, iterate, forcing)
            left -= 1
        pair = operator.pair(iterate.u, tol, reach)
        if pair.converged or left == 0:
            break
        # The images are updated, not recomputed: a large residual means that they have drifted.
        iterate = Iterate(pair.vector, centred(pair.vector))
    return pair


def _target(centred: Centred, iterate: Iterate, tol: float, reach: float) -> float:
    value = centred.scale * iterate.rho - centred.sigma
    return tol * max(abs(value), reach) / centred.scale


# --- conjugate gradients ---------------------------------------------------------------


def newton_cg(
    operator: CountedOperator, start: Array, tol: float, max_iter: int | None
) -> EigenPair:
    """Truncated Newton steps: ∇²f(v) d ≈ −∇f(v) by CG; v ← v + μd, μ = argmin f(v + μd).

    CG stops at negative curvature and returns the most recent descent direction. The paper's
    limit 0 < μ < 1 is an error: the best real root of the cubic is used. A is centred and
    scaled first, since f depends on positive eigenvalues only. Each CG step needs one product and
    the line search none; no basis is stored, which is the only advantage of this method. If several
    eigenvalues are close to the leading one it needs far more products than a Krylov method.
    """
    return minimise(operator, start, _cg_step, tol, max_iter)


def _cg_step(centred: Centred, iterate: Iterate, forcing: float) -> Iterate:
    root = np.sqrt(iterate.rho)
    v, image = root * iterate.u, root * iterate.image
    d, image_d = _direction(centred, v, image, forcing)
    mu = _exact_step(v, image, d, image_d)
    moved, moved_image = v + mu * d, image + mu * image_d
    length = float(np.linalg.norm(moved))
    return Iterate(moved / length, moved_image / length)


def _direction(centred: Centred, v: Array, image: Array, forcing: float) -> tuple[Array, Array]:
    """Return d with ∇²f(v) d ≈ −∇f(v), and Bd, which follows from the residual of CG."""
    square = float(v @ v)
    right = image - square * v

    def hessian(d: Array) -> Array:
        return 2.0 * v * (v @ d) + square * d - centred(d)

    found = conjugate_gradient(hessian, right, steps=v.size, tol=forcing)
    d, hessian_d = found.x, right - found.residual
    return d, 2.0 * v * (v @ d) + square * d - hessian_d


def _exact_step(v: Array, image: Array, d: Array, image_d: Array) -> float:
    """Return argmin over μ of f(v + μd) − f(v), a quartic with leading coefficient ‖d‖⁴/4."""
    a, b, c = float(v @ v), float(v @ d), float(d @ d)
    slope = b * a - float(d @ image)
    bend = b * b + (a * c - float(d @ image_d)) / 2
    return minimise_quartic([0.0, slope, bend, b * c, c * c / 4])[0]


# --- Lanczos ---------------------------------------------------------------------------


def newton_lanczos(
    operator: CountedOperator, start: Array, tol: float, max_iter: int | None
) -> EigenPair:
    """Newton steps in short Lanczos bases, stopped where a negative eigenvalue appears.

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
    return minimise(operator, start, _lanczos_step, tol, max_iter)


def _lanczos_step(centred: Centred, iterate: Iterate, forcing: float) -> Iterate:
    basis = _newton_basis(centred, iterate, forcing)
    extra = _independent_part(basis, iterate.previous)
    small = basis.tridiagonal()
    if extra is not None:
        small = _bordered(small, basis.vectors @ extra[1], float(extra[0] @ extra[1]))
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
        iterate.u, min(_MAX_BASIS_VECTORS, iterate.u.shape[0]), centred.operator.precision
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
        y = basis.vectors @ p
        p, image = p - basis.combine(y), image - basis.image(y)
    length = norm(p)
    if length <= _MIN_NEW_PART * before:
        return None
    return p / length, image / length


def _bordered(small: Array, column: Array, corner: float) -> Array:
    return np.block([[small, column[:, None]], [column[None, :], np.full((1, 1), corner)]])
