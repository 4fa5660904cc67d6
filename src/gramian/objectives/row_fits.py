"""Least squares of every row of one factor, with the other factor fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gramian.arrays.cpu import Floats, Indices, gather_products, refit_rows, worth_compiling
from gramian.linalg import conjugate_gradient


@dataclass(frozen=True, eq=False)
class RowFits:
    """Least squares of every row of P for fixed rows of Q.

    ½ Σ_e (s_e p_i·q_j + r_e (b_i + c_j) − t_e)² + ½ Σ_k penalty_k p_ik² + ½ p_iᵀ G p_i, the offsets
    b and c are in the last columns of P and Q, if any (`free`); the penalty of a row, except that
    of its offset, is multiplied by `stiffness`. All in one precision, float32 or float64.
    """

    indptr: Indices  # (m + 1,) the entries of row i
    neighbour: Indices  # (p,) their j
    scale: Floats | None  # (p,) s; default 1
    targets: Floats  # (p,) t
    free: bool
    roots: Floats | None = None  # (p,) r; default 1
    stiffness: Floats | None = None  # (m,); default 1

    def refit(
        self,
        P: Floats,
        Q: Floats,
        penalty: Floats,
        steps: int,
        *,
        gram: Floats | None = None,
        compiled: bool | None = None,
    ) -> float:
        """Take a few conjugate gradient steps on each row of P, in place.

        They start from the current row and are scaled by the diagonal of its system. Returns the
        sum before the steps, including the penalties of P.
        """
        dtype, m = P.dtype, P.shape[0]
        penalty = np.asarray(penalty, dtype=dtype)
        gram = np.zeros((0, 0), dtype) if gram is None else np.asarray(gram, dtype=dtype, order="C")
        stiffness = np.ones(m, dtype) if self.stiffness is None else self.stiffness
        if not worth_compiling(compiled, int(self.indptr[-1]) * P.shape[1]):
            return self._refit_plain(P, Q, penalty, stiffness, gram, steps)
        roots = np.zeros(0, dtype) if self.roots is None else self.roots
        scale = np.zeros(0, dtype) if self.scale is None else self.scale
        data = (self.indptr, self.neighbour, scale, self.targets, roots)
        return refit_rows(P, Q, steps, *data, penalty, stiffness, gram, self.free)

    def _refit_plain(
        self, P: Floats, Q: Floats, penalty: Floats, stiffness: Floats, gram: Floats, steps: int
    ) -> float:
        """The same for all rows of P at once: two sparse products per step."""
        m, one = P.shape[0], P.dtype.type(self.free)
        counts, k = np.diff(self.indptr), gram.shape[0]
        rows, others = np.repeat(np.arange(m, dtype=np.int32), counts), Q[:, :-1]
        scale = np.ones(rows.size, P.dtype) if self.scale is None else self.scale
        roots = np.full(rows.size, one) if self.roots is None else self.roots
        ridge = np.tile(penalty, (m, 1))
        ridge[:, :-1] *= stiffness[:, None]

        def forward(V: Floats) -> Floats:
            z = scale * gather_products(V[:, :-1], others, rows, self.neighbour)
            return z + roots * V[rows, -1]

        def adjoint(weights: Floats, Z: Floats) -> Floats:
            shape = (m, Q.shape[0])
            return sparse.csr_array((weights, self.neighbour, self.indptr), shape=shape) @ Z

        def backward(y: Floats) -> Floats:
            sums = np.bincount(rows, roots * y, minlength=m)
            return np.column_stack([adjoint(scale * y, others), sums])

        def penalised(V: Floats) -> Floats:
            bent = ridge * V
            bent[:, :k] += V[:, :k] @ gram
            return bent

        left = self.targets - roots * Q[self.neighbour, -1] - forward(P)
        masses = np.bincount(rows, roots**2, minlength=m)
        mass = ridge + np.column_stack([adjoint(scale**2, others**2), masses])
        mass[:, :k] += np.diagonal(gram)
        bent = penalised(P)
        before = 0.5 * float(np.vdot(left, left) + np.vdot(P, bent))
        found = conjugate_gradient(
            lambda V: backward(forward(V)) + penalised(V),
            backward(left) - bent,
            steps=steps,
            precondition=lambda residual: residual / mass,
            axis=1,
        )
        P += found.x.astype(P.dtype)
        return before
