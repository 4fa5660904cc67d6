"""The Lanczos recurrence with full or partial reorthogonalisation."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from gramian.arrays.places import beside, norm, numbers, zeros

Array = NDArray[np.float64]


class LanczosBasis:
    """Orthonormal Q of a Krylov space of A, grown one product at a time.

        A Q_k = Q_k T_k + β_k q_{k+1} e_kᵀ,        T_k = tridiag(β, α, β)

    The caller passes ``A @ basis.last`` to `extend`, so that known products are not repeated.
    The recurrence also gives A·(Qy) without a product: see `image`.

    With `partial`, a vector is orthogonal to all before it only up to the square root of the
    precision. T_k is then as accurate as with full reorthogonalisation (Simon 1984).
    """

    def __init__(
        self, start: Array, capacity: int, precision: float, *, partial: bool = False
    ) -> None:
        self._rows = zeros((capacity + 1, start.shape[0]), start)
        self._rows[0, :] = start / norm(start)
        self._capacity = capacity
        self._precision = precision
        self._scale = 0.0
        self.alphas: list[float] = []
        self.betas: list[float] = []
        self._drift = _Drift(precision) if partial else None

    @property
    def size(self) -> int:
        """Number k of completed steps."""
        return len(self.alphas)

    @property
    def last(self) -> Array:
        """q_{k+1}, the vector whose image `extend` expects."""
        return self._rows[self.size, :]

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
        return self._rows[: self.size, :]

    def extend(self, image: Array) -> None:
        """Take one step, given the image A q_{k+1}."""
        known = self._rows[: self.size + 1, :]
        along = known[-1, :] @ image
        rest = image - along * known[-1, :]
        if self.betas:
            rest -= self.betas[-1] * known[-2, :]
        due = known
        if self._drift is not None:
            alpha, square = numbers(along, rest @ rest)
            self._scale = max(self._scale, abs(alpha), math.sqrt(square))
            level = self._precision * self._scale
            if not self._drift.is_due([*self.alphas, alpha], self.betas, math.sqrt(square), level):
                due = known[-2:, :]
        rest -= (due @ rest) @ due  # the remaining components are rounding errors
        alpha, square = numbers(along, rest @ rest)
        if not math.isfinite(alpha + square):
            raise FloatingPointError("the operator returned NaN or infinite values")
        beta = math.sqrt(square)
        self._scale = max(self._scale, abs(alpha), beta)
        self.alphas.append(alpha)
        if beta <= self._precision * self._scale:
            self.betas.append(0.0)
            self._rows[self.size, :] = 0.0
        else:
            self.betas.append(beta)
            self._rows[self.size, :] = rest / beta

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


class _Drift:
    """Estimated loss of orthogonality of the last two vectors to those before them.

    ω_{j+1} = (Tω_j − α_j ω_j − β_{j−1} ω_{j−1} + rounding)/β_j, with T that of the steps before.
    """

    def __init__(self, precision: float) -> None:
        self.precision, self.most = precision, math.sqrt(np.finfo(float).eps)
        self.before, self.last = np.zeros(0), np.ones(1)
        self.again = False
        """Whether to reorthogonalise the next vector as well: the loss affects two vectors."""

    def is_due(self, alphas: list[float], betas: list[float], beta: float, level: float) -> bool:
        """Whether the next vector, of length `beta`, must be orthogonalised to all others."""
        a, b, w = np.array(alphas), np.array(betas), self.last
        moved = (a[:-1] - a[-1]) * w[:-1] + b * w[1:]
        moved[1:] += b[:-1] * w[:-2]
        if moved.size:
            moved -= b[-1] * self.before
        moved += np.copysign(level, moved)
        lost = moved / beta if beta > 0 else np.full(moved.size, np.inf)
        crossed = not np.all(np.abs(lost) <= self.most)
        due, self.again = crossed or self.again, crossed and not self.again
        lost = np.full(lost.size, self.precision) if due else lost
        self.before, self.last = w, np.concatenate([lost, [self.precision, 1.0]])
        return due
