"""λ_min of a pencil (G, P) of small dense matrices, P ⪰ 0, with bounds on all rounding errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gramian.arrays.dense import eigh
from gramian.arrays.threads import blas_threads_for
from gramian.common.types import Array
from gramian.linalg.tolerances import ZERO
from gramian.proofs.base import rounded_sum
from gramian.proofs.dense import rounding_of


@dataclass(frozen=True)
class PencilRoot:
    """R with ‖RᵀPR − I‖ ≤ skew, and a basis of the null space of P.

    R divides by the square roots of eigenvalues of P down to `ZERO` times the largest. Its error is
    therefore computed: RᵀPR is formed, and its rounding error is bounded by γ|R|ᵀ|P||R|.
    """

    R: Array
    null: Array
    skew: float

    @classmethod
    def of(cls, P: Array, slack: Array) -> PencilRoot | None:
        """The root of P, known up to E with |E_ij| ≤ e_i e_j for e² = `slack`.

        None if P is zero or not positive semidefinite, or if R is too inaccurate.
        """
        values, vectors = eigh(P)
        live = values > ZERO * values[-1]
        if not np.any(live) or values[0] < -ZERO * values[-1]:
            return None
        R = vectors[:, live] / np.sqrt(values[live])
        seen, hidden = _congruence(R, P, slack)
        skew = float(np.linalg.norm(seen - np.eye(R.shape[1]))) + hidden
        return cls(R, vectors[:, ~live], skew) if skew < 1 else None

    def lowest(self, G: Array, slack: Array) -> float:
        """t with RᵀGR ⪰ t RᵀPR, where G is known up to E with |E_ij| ≤ e_i e_j, e² = `slack`."""
        seen, hidden = _congruence(self.R, G, slack)
        with blas_threads_for(G.size):
            least = float(scipy.linalg.eigvalsh(seen, subset_by_index=[0, 0])[0])
        least -= rounding_of(seen, np.zeros(1)) + hidden
        return least / (1 + self.skew if least > 0 else 1 - self.skew)


def _congruence(R: Array, A: Array, slack: Array) -> tuple[Array, float]:
    """The computed RᵀAR, and a bound on its distance in norm from that of the exact A.

    γ|R|ᵀ|A||R| for both products, whose entries are at most √(h_i h_j) with h = (R ∘ R)ᵀ|A|1: a
    matrix of rank one with norm Σh. |R|ᵀeeᵀ|R| for the rounding of A itself.
    """
    with blas_threads_for(A.size):
        found = R.T @ (A @ R)
    found = 0.5 * (found + found.T)
    squares = R * R
    sums = float(np.sum(squares.T @ np.abs(A).sum(axis=1)))
    own = float(np.sum((np.abs(R).T @ np.sqrt(slack)) ** 2))
    return found, (2 * rounded_sum(A.shape[0]) + rounded_sum(1)) * sums + own
