"""A kernel close to a given one that separates classes, LRO eq. (10)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_matrix
from gramian.common.parameters import positive
from gramian.common.types import Array
from gramian.objectives import GramQuadratic
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem

SINGULAR = 1e-12
"""Relative size below which the smallest eigenvalue of a kernel is rounding error."""


@under_own_errstate
def inductive_kernel(kernel: Any, scores: Any, lam: float, *, tau: float = 0.0) -> Problem:
    """min tr(N⁻¹KN⁻¹K) + tr((τN⁻¹ + λT)K) over K ⪰ 0, LRO eq. (10).

    Parameters
    ----------
    kernel : array of shape (n, n), or a positive number for that multiple of the identity
        N, positive definite: the reference kernel. A singular kernel has to be reduced to its span
        first, where it is the identity, as `gramian.kernel` does.
    scores : array of shape (n, n)
        T, symmetric: the Laplacian of pair scores, which are positive for pairs to be close and
        negative for pairs to be apart.
    lam : float
        λ > 0.
    tau : float
        τ ≥ 0: 0 is the supervised model; larger values reduce the rank.
    """
    check_matrix(scores, "scores")
    T = as_symmetric(scores, "scores").dense()
    if not (isinstance(tau, Real) and 0 <= tau < np.inf):
        raise ValueError(f"tau must be finite and not negative, got {tau!r}")
    inverse = _inverse(kernel, len(T))
    C = 0.5 * (float(tau) * inverse + positive(lam, "lam") * T)
    A = inverse[0, 0] if isinstance(kernel, Real) else inverse
    return Problem(
        GramQuadratic(A, None, C),
        name="inductive_kernel",
        formula="tr(N⁻¹KN⁻¹K) + tr((τN⁻¹ + λT)K)",
        variable="K",
    )


def _inverse(kernel: Any, order: int) -> Array:
    """N⁻¹; ValueError if N is not positive definite."""
    if isinstance(kernel, Real):
        return np.eye(order) / positive(float(kernel), "kernel")
    check_matrix(kernel, "kernel")
    N = as_symmetric(kernel, "kernel", order).dense()
    if len(N) != order:
        raise ValueError(f"kernel has order {len(N)}, but scores has order {order}")
    values, vectors = scipy.linalg.eigh(N)
    if values[0] <= SINGULAR * abs(values[-1]):
        raise ValueError(
            f"kernel must be positive definite, but it has the eigenvalue {values[0]:.3g}; learn "
            "in its span, as gramian.kernel.InductiveKernel does, or add to its diagonal"
        )
    return (vectors / values) @ vectors.T
