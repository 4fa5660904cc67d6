"""The Lanczos recurrence with full reorthogonalisation, for short bases."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from gramian.backends.arrays import beside, norm, numbers, zeros

Array = NDArray[np.float64]


class LanczosBasis:
    """Orthonormal Q of a Krylov space of A, grown one product at a time.

        A Q_k = Q_k T_k + β_k q_{k+1} e_kᵀ,        T_k = tridiag(β, α, β)

    The caller forms ``A @ basis.last`` and hands it to `extend`, so that a product it already
    knows costs nothing. The recurrence also gives A·(Qy) without a product: see `image`.
    """

    def __init__(self, start: Array, capacity: int, precision: float) -> None:
        self._rows = zeros((capacity + 1, start.shape[0]), start)
        self._rows[0] = start / norm(start)
        self._capacity = capacity
        self._precision = precision
        self._scale = 0.0
        self.alphas: list[float] = []
        self.betas: list[float] = []

    @property
    def size(self) -> int:
        """Number k of completed steps."""
        return len(self.alphas)

    @property
    def last(self) -> Array:
        """q_{k+1}, the vector whose image `extend` expects."""
        return self._rows[self.size]

    @property
    def exhausted(self) -> bool:
        """Whether the space is invariant: β_k = 0 up to rounding."""
        return bool(self.betas) and self.betas[-1] == 0.0

    @property
    def full(self) -> bool:
        """Whether no further step can be taken."""
        return self.exhausted or self.size == self._capacity

    @property
    def vectors(self) -> Array:
        """The rows q_1 … q_k."""
        return self._rows[: self.size]

    def extend(self, image: Array) -> None:
        """Take one step, given the image A q_{k+1}."""
        known = self._rows[: self.size + 1]
        along = known[-1] @ image
        rest = image - along * known[-1]
        if self.betas:
            rest -= self.betas[-1] * known[-2]
        rest -= (known @ rest) @ known  # what is left of them is rounding, and small beside rest
        alpha, square = numbers(along, rest @ rest)
        if not math.isfinite(alpha + square):
            raise FloatingPointError("the operator returned NaN or infinite values")
        beta = math.sqrt(square)
        self._scale = max(self._scale, abs(alpha), beta)
        self.alphas.append(alpha)
        if beta <= self._precision * self._scale:
            self.betas.append(0.0)
            self._rows[self.size] = 0.0
        else:
            self.betas.append(beta)
            self._rows[self.size] = rest / beta

    def ritz(self) -> tuple[Array, Array]:
        """Return the eigenvalues (ascending) and eigenvectors of T_k."""
        values, vectors = eigh_tridiagonal(self.alphas, self.betas[:-1])
        return values, vectors

    def tridiagonal(self) -> Array:
        """Return T_k as a dense array."""
        off = self.betas[:-1]
        return np.diag(self.alphas) + np.diag(off, 1) + np.diag(off, -1)

    def combine(self, y: Array) -> Array:
        """Return Q_k y."""
        combined: Array = beside(self._rows, y) @ self.vectors
        return combined

    def image(self, y: Array) -> Array:
        """Return A Q_k y = Q_k (T_k y) + β_k y_k q_{k+1}."""
        tail = self.betas[-1] * float(y[-1])
        inside: Array = self.combine(self.tridiagonal() @ y)
        return inside + tail * self.last

    def residual(self, y: Array) -> float:
        """Return ‖A Q_k y − Q_k T_k y‖ = β_k |y_k|."""
        return self.betas[-1] * abs(float(y[-1]))
