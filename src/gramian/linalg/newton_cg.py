"""Newton–CG for the leading eigenvector: BILGO, Algorithm 2 with conjugate gradients inside."""

import numpy as np

from gramian.linalg._base import Array, CountedOperator, EigenPair
from gramian.linalg._newton import Centred, Iterate, minimise
from gramian.linalg.conjugate_gradient import conjugate_gradient
from gramian.linalg.polynomial import minimise_quartic

_CG_STEPS = 200
"""Largest number of products of one inner solve."""


def newton_cg(
    operator: CountedOperator, start: Array, tol: float, max_iter: int | None
) -> EigenPair:
    """Minimise f(v) = ¼‖vvᵀ − A‖²_F by truncated Newton steps and an exact line search.

        ∇f(v) = (vᵀv)v − Av,   ∇²f(v) = 2vvᵀ + (vᵀv)I − A         (BILGO, section 3.2)
        ∇²f(v) d ≈ −∇f(v) by CG;   v ← v + μd,   μ = argmin f(v + μd)   (Algorithm 2)

    CG stops at negative curvature and returns the most recent descent direction. The paper's
    limit 0 < μ < 1 is an error: the best real root of the cubic is used. A is centred and
    scaled first, since f depends on positive eigenvalues only. Each CG step needs one product and
    the line search none; no basis is stored, which is the only advantage of this method. If several
    eigenvalues are close to the leading one it needs far more products than a Krylov method.
    """
    return minimise(operator, start, _advance, tol, max_iter)


def _advance(centred: Centred, iterate: Iterate, forcing: float) -> Iterate:
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

    found = conjugate_gradient(hessian, right, steps=min(_CG_STEPS, v.size), tol=forcing)
    d, hessian_d = found.x, right - found.residual
    return d, 2.0 * v * (v @ d) + square * d - hessian_d


def _exact_step(v: Array, image: Array, d: Array, image_d: Array) -> float:
    """Return argmin over μ of f(v + μd) − f(v), a quartic with leading coefficient ‖d‖⁴/4."""
    a, b, c = float(v @ v), float(v @ d), float(d @ d)
    slope = b * a - float(d @ image)
    bend = b * b + (a * c - float(d @ image_d)) / 2
    return minimise_quartic([0.0, slope, bend, b * c, c * c / 4])[0]
