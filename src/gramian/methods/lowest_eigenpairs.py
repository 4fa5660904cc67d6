"""The lowest eigenpairs of ∇F(M): directions of decrease, and a lower bound on λ_min."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.sparse.linalg import LinearOperator

from gramian.arrays.dense import eigh
from gramian.arrays.places import host, namespace, norm
from gramian.arrays.threads import blas_threads_for
from gramian.common.types import Array
from gramian.linalg import ritz_pairs
from gramian.proofs import ComplementSplit, SparseForm, lost_by
from gramian.proofs.base import SymmetricMatrix

INVERSE_STEPS = 40
"""Solves of a Lanczos run for the lowest eigenvectors, at least three per vector."""

SHIFT_RATIO, MAX_SHIFTS = 8.0, 8
"""Factor by which a shift above an eigenvalue is lowered, and maximum number of shifts."""

MIN_DIRECTION_RATIO = 0.02
"""Eigenvalues closer to the level than this fraction of the lowest are not used as directions."""


@dataclass(frozen=True)
class LowestEigenpairs:
    """The lowest eigenpairs of ∇F − level·I, the level 0, or ⟨∇F, M⟩/τ at fixed trace τ."""

    values: Array
    vectors: Array
    bound: float
    """A lower bound on λ_min(∇F)."""
    hope: float
    """The same bound if the computed eigenvalues were exact."""
    rounding: float = 0.0
    """Distance to the level within which an eigenvalue may lie on it."""

    def falling(self) -> Array:
        """The eigenvectors along which F decreases by a relevant amount."""
        return self.vectors[
            :, self.values < min(MIN_DIRECTION_RATIO * float(self.values[0]), -self.rounding)
        ]


def exact_eigenpairs(gradient: SymmetricMatrix, level: float, count: int) -> LowestEigenpairs:
    """The lowest `count` eigenpairs of a matrix of moderate order.

    The bound includes the rounding errors of the entries, which are large where large terms cancel.
    """
    G = gradient.dense()
    xp = namespace(G)
    if not bool(xp.all(xp.isfinite(G))):
        raise FloatingPointError("the gradient is not finite")
    if xp is np:
        with blas_threads_for(G.size):
            values, vectors = _lowest(G, min(G.shape[0], count) - 1)
        rounding = float(8 * np.finfo(float).eps) * norm(G)
    else:
        values, vectors = xp.linalg.eigh(0.5 * (G + G.T))
        rounding = lost_by(G, values, vectors)
        values, vectors = host(values)[:count], vectors[:, :count]
    hope = float(values[0]) - rounding
    bound = hope - float(np.sum(gradient.slack()))
    return LowestEigenpairs(values - level, vectors, bound, hope, rounding)


def _lowest(G: Array, last: int) -> tuple[Array, Array]:
    """The eigenpairs 0 … last of a matrix."""
    try:
        found: tuple[Array, Array] = scipy.linalg.eigh(
            G, subset_by_index=[0, last], check_finite=False
        )
    except np.linalg.LinAlgError:  # LAPACK's default driver fails on some close eigenvalues
        values, vectors = scipy.linalg.eigh(G, driver="evd", check_finite=False)
        found = values[: last + 1], vectors[:, : last + 1]
    return found


def estimated_eigenpairs(
    gradient: Any, L: Array, level: float, count: int, *, steps: int, start: Array
) -> LowestEigenpairs:
    """Ritz pairs of ∇F on the complement of the range of L.

    Near the optimum no eigenvalue on the complement lies at the level.
    """
    split = ComplementSplit.along(gradient, L)
    found = ritz_pairs(split, count, steps=steps, v0=split.beside(start))
    lowest, residual = -float(found.values[0]), float(found.residuals[0])
    hope, bound = split.least(lowest), split.least(lowest - residual)
    return LowestEigenpairs(-found.values - level, found.vectors, bound, hope)


def factored_eigenpairs(
    form: SparseForm, count: int, *, guess: float, start: Any
) -> LowestEigenpairs | None:
    """The lowest eigenpairs by solves with a sparse factor of ∇F − tI, with t slightly below them.

    Products with ∇F do not separate eigenvalues that are close relative to ‖∇F‖, as for a graph in
    weakly connected parts. `guess` is about λ_min. None if no factor was found.
    """
    shifts = (guess * SHIFT_RATIO**k for k in range(MAX_SHIFTS))
    solve = next((f.solve for f in map(form.tried, shifts) if f.solve is not None), None)
    if solve is None:
        return None
    inverse = LinearOperator((form.order,) * 2, matvec=solve, dtype=float)
    found = ritz_pairs(inverse, count, steps=max(INVERSE_STEPS, 3 * count), v0=start)
    V = np.linalg.qr(found.vectors)[0]
    image = form.S @ V
    values, turn = eigh(V.T @ image)
    V, image = V @ turn, image @ turn
    residual = norm(image[:, 0] - values[0] * V[:, 0])
    hope = float(values[0])
    return LowestEigenpairs(values, np.ascontiguousarray(V), hope - residual, hope)
