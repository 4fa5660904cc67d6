"""λ_min of a multiple of the identity plus a low-rank matrix, computed in the span."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from gramian.common.types import Array
from gramian.proofs.base import UNIT, Bottom, rounded_sum


@dataclass(frozen=True)
class LowRank:
    """cI + UWUᵀ with U (n × k) and a symmetric W (k × k), dense or sparse."""

    scale: float
    U: Array
    W: Any

    def lowest(self) -> tuple[Bottom, float]:
        """The bound with its vector, and the amount subtracted for rounding.

        c plus the eigenvalues of RWRᵀ for U = QR, minus the rounding errors. The columns of U are
        first scaled so that no row of |W| sums to more than 1. The residual of QR and the deviation
        of Q from orthonormality are computed.
        """
        n, k = self.U.shape
        if k == 0:
            return Bottom(self.scale, "span"), 0.0
        reach = np.asarray(abs(self.W).sum(axis=1), dtype=float).ravel()
        root = np.sqrt(np.where(reach > 0, reach, 1.0))
        U = self.U * root
        W = np.asarray(self.W.toarray() if hasattr(self.W, "toarray") else self.W)
        W = W / np.outer(root, root)
        if not np.all(np.isfinite(U)):
            raise FloatingPointError("the gradient is not finite")
        Q, R = scipy.linalg.qr(U, mode="economic", check_finite=False)
        S = R @ W @ R.T
        S = 0.5 * (S + S.T)
        size = float(np.sum(R * R))
        residual = float(np.linalg.norm(U - Q @ R)) + rounded_sum(k) * np.sqrt(size * k)
        skew = float(np.linalg.norm(Q.T @ Q - np.eye(Q.shape[1]))) + rounded_sum(n) * k
        values, vectors = np.linalg.eigh(S)
        hidden = 2 * residual * np.sqrt(size) + residual**2
        hidden += (16 * UNIT + 4 * rounded_sum(k)) * size
        below = min(float(values[0]), 0.0) if n > k else float(values[0])
        bound = (below - hidden) * (1 + skew) if below < hidden else (below - hidden) * (1 - skew)
        return Bottom(self.scale + bound, "span", vector=Q @ vectors[:, 0]), float(hidden)
