"""A kernel near a given one that draws classes together, LRO eq. (10)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import check_matrix
from gramian.common.parameters import positive
from gramian.objectives import GramQuadratic
from gramian.objectives.matrix_inputs import as_symmetric
from gramian.problem import Problem

Array = NDArray[np.floating]

SINGULAR = 1e-12
"""Of its largest eigenvalue: below it the smallest one of a kernel is rounding."""


@under_own_errstate
def inductive_kernel(kernel: Any, scores: Any, lam: float, *, tau: float = 0.0) -> Problem:
    """min tr(N⁻¹KN⁻¹K) + tr((τN⁻¹ + λT)K) over K ⪰ 0, LRO eq. (10).

    Parameters
    ----------
    kernel : array of shape (n, n), or a number above 0 for that multiple of the identity
        N, positive definite: the kernel to stay near. In the coordinates of its own span a kernel
        is the identity, and a singular one is to be learned there, as `gramian.kernel` does.
    scores : array of shape (n, n)
        T, symmetric: the Laplacian of the scores of pairs, above 0 where they are to come together
        and below it where they are to part.
    lam : float
        λ > 0.
    tau : float
        τ ≥ 0: 0 is the supervised model, more keeps fewer directions.
    """
    check_matrix(scores, "scores")
    T = as_symmetric(scores, "scores").dense()
    if not (isinstance(tau, Real) and 0 <= tau < np.inf):
        raise ValueError(f"tau must be a finite number of at least 0, got {tau!r}")
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
    """N⁻¹, refused where N is not positive definite."""
    if isinstance(kernel, Real):
        return np.eye(order) / positive(float(kernel), "kernel")
    check_matrix(kernel, "kernel")
    N = as_symmetric(kernel, "kernel", order).dense()
    if len(N) != order:
        raise ValueError(f"kernel is of order {len(N)}, but scores is of order {order}")
    values, vectors = scipy.linalg.eigh(N)
    if values[0] <= SINGULAR * abs(values[-1]):
        raise ValueError(
            f"kernel must be positive definite, but it has the eigenvalue {values[0]:.3g}; learn "
            "in its span, as gramian.kernel.InductiveKernel does, or add to its diagonal"
        )
    found: Array = (vectors / values) @ vectors.T
    return found
