"""The leading eigenvectors by low-rank optimisation: LRO eqs. (3) and (4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.methods.base import Settings
from gramian.methods.columns import starting_factor
from gramian.objectives import GramQuadratic, LowRankPlusIdentity
from gramian.objectives.matrices import MatrixSum, Scaled, SymmetricMatrix
from gramian.papers.lro import conjugate_gradient
from gramian.problem import Problem
from gramian.spectral._inputs import Given

Array = NDArray[np.float64]

_LOOK = 10
_MAX_STEPS = 5000
_SETTLED = 50
_SMALL, _ZERO = 1e-2, 1e-10
"""A column shorter than this, relative to ‖K‖, vanishes if uᵀKu ≤ 0; below the second, always."""


def lro_subspace(
    matrix: Given, k: int, tol: float, max_products: int | None, rng: np.random.Generator
) -> Array:
    """An (n, k) array L whose span is that of the k leading eigenvectors.

        min tr((LLᵀ)² − 2 K LLᵀ),   L ∈ R^{n×k}                    (LRO eq. (3))

    LLᵀ has nonnegative eigenvalues. If fewer than k eigenvalues of K are positive, a column of L
    vanishes; K is then shifted by a multiple of I that makes them all positive.
    """
    steps = _MAX_STEPS if max_products is None else max(1, max_products // k)
    settings = Settings(rank=k, tol=tol, rng=rng)
    K, alive = matrix.matrix, False
    assert K is not None
    if matrix.norm > 0:
        L, alive = _minimise(K, 0.0, matrix.norm, settings, steps)
    if not alive:
        shift = 2 * matrix.norm or 1.0
        shifted = MatrixSum(K, LowRankPlusIdentity(matrix.order, shift))
        L, _ = _minimise(shifted, shift, matrix.norm, settings, steps)
    return L


def _minimise(
    K: SymmetricMatrix, shift: float, norm: float, settings: Settings, steps: int
) -> tuple[Array, bool]:
    """The factor L, and whether none of its columns vanished.

    With L = U D^{1/2} Vᵀ, eq. (4), ∂F/∂L = 4(LLᵀ − K)L = −4 R D^{1/2} Vᵀ: the gradient holds the
    residuals R = KU − UD of the eigenpairs of LLᵀ.
    """
    objective = GramQuadratic(None, 1.0, Scaled(K, -1.0))
    start = starting_factor(Problem(objective), settings)
    for step, (image, gradient) in enumerate(conjugate_gradient(objective, start)):
        L = image.factor
        if step % _LOOK and step < steps:
            continue
        D, V = np.linalg.eigh(L.T @ L)
        if D[0] <= _ZERO * norm:
            return L, False
        R, U = -(gradient @ V) / (4 * np.sqrt(D)), (L @ V) / np.sqrt(D)
        quotient = D[0] + float(U[:, 0] @ R[:, 0])
        if step >= _SETTLED and D[0] <= _SMALL * norm and quotient <= 0:
            return L, False
        size = max(norm, float(np.max(np.abs(D - shift))))
        if np.max(np.linalg.norm(R, axis=0)) <= settings.tol * size or step >= steps:
            break
    return L, True
