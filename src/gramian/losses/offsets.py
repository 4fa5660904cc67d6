"""The squared loss beside free offsets of rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy import sparse

from gramian.backends.arrays import Placed, along, backend, namespace
from gramian.losses.base import LeastSquares

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

SMALL, DIRECT = 1000, 4000
"""Up to so many rows or columns the system of their offsets is factorised at once, and up to the
second where conjugate gradients have cost more than that by then: 0.1 GB."""

PRODUCT = 20.0
"""What an entry of a sparse product costs, in multiplications of dense ones."""

INVERTED, BLOCK = 20_000, 16_384
"""Up to so many of the shorter side the inverse of the system is kept on a device, and the rows of
which it is made at once."""

ACCURACY, MOST_STEPS = 1e-13, 5000
"""The residual that conjugate gradients end at beyond that, relatively, and their steps."""


class SquaredWithOffsets(Placed):
    """g(z) = min over β = (b, c) of ½ Σ_e ω_e (s_e z_e + b_i + c_j − t_e)² + κ/2 ‖β‖², e = (i, j).

    Convex in z, as a minimum over part of the arguments of a convex function. The best β solves a
    sparse system: those of the longer side are eliminated, those of the shorter found by conjugate
    gradients from the same start every time, or by Cholesky's factor once that would have cost
    less. What the residual ρ of the system leaves is at most ‖ρ‖²/2κ (`error`); the conjugate is
    exact.

    Parameters
    ----------
    targets : array of shape (p,)
        t.
    rows, cols : index arrays of shape (p,), sorted by row
    shape : (m, n)
    ridge : float
        κ > 0.
    scale : array of shape (p,)
        s > 0.
    weight : array of shape (p,), optional
        ω > 0; 1 unless told.
    """

    quadratic = True
    infimum = 0.0

    def __init__(
        self,
        targets: Array,
        rows: Indices,
        cols: Indices,
        shape: tuple[int, int],
        *,
        ridge: float,
        scale: Array | float = 1.0,
        weight: Array | None = None,
    ) -> None:
        self.targets, self.ridge = np.asarray(targets, dtype=float), float(ridge)
        self.scale = np.broadcast_to(np.asarray(scale, dtype=float), self.targets.shape)
        self.rows, self.cols, self.shape = rows, cols, shape
        self.size: int | None = self.targets.size
        self.weight = None if weight is None else np.asarray(weight, dtype=float)
        self.smoothness = float(np.max(self._weighted(self.scale**2)))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        ones = np.ones(self.targets.size) if self.weight is None else self.weight
        links = sparse.csr_array((ones, cols, starts), shape=shape)
        masses = (total + self.ridge for total in self._sums(ones))
        self._system = _Offsets(links, *masses)
        self._seen: tuple[Array, Array, Array, Array] | None = None

    def offsets(self, z: Array) -> tuple[Array, Array]:
        """b and c for a given z."""
        return self._residuals(z)[:2]

    def value(self, z: Array) -> float:
        b, c, left = self._residuals(z)
        return 0.5 * float(left @ self._weighted(left)) + 0.5 * self.ridge * float(b @ b + c @ c)

    def gradient(self, z: Array) -> Array:
        slope = self.scale * self._weighted(self._residuals(z)[2])
        slope *= -1.0
        return slope

    def hessian(self, z: Array) -> Callable[[Array], Array]:
        """d ↦ sHsd, H what is left of a vector beside its best offsets."""
        return self._bend

    def curvature(self, z: Array, directions: Array) -> Array:
        if not self.place.is_host:
            return directions.T @ self._bend(directions)
        bent = [self._bend(directions[:, k]) for k in range(directions.shape[1])]
        return directions.T @ namespace(z).stack(bent, axis=1)

    def smoothed(self, mu: float) -> None:
        return None

    def error(self, z: Array) -> float:
        """‖ρ‖²/2κ at most, ρ the gradient of the sum in the offsets, which should vanish."""
        b, c, left = self._residuals(z)
        by_row, by_col = self._sums(self._weighted(left))
        rest = _square(self.ridge * b - by_row) + _square(self.ridge * c - by_col)
        return rest / self.ridge

    def conjugate(self, w: Array) -> float:
        """½ Σ v²/ω + ⟨v, t⟩ + ‖Bᵀv‖²/(2κ) with v = w/s and B the offsets' sums."""
        v = w / self.scale
        square = v @ v if self.weight is None else v @ (v / self.weight)
        by_row, by_col = self._sums(v)
        offsets = (by_row @ by_row + by_col @ by_col) / (2 * self.ridge)
        return float(0.5 * square + v @ self.targets + offsets)

    def least_squares(self) -> LeastSquares:
        if self.weight is None:
            return LeastSquares(self.scale, self.targets, self.ridge)
        roots = np.sqrt(self.weight)
        return LeastSquares(roots * self.scale, roots * self.targets, self.ridge, roots)

    def _residuals(self, z: Array) -> tuple[Array, Array, Array]:
        """b, c, and the targets less all that is fitted; kept for the z it was asked for last.

        What is kept is replaced as a whole and depends on z alone, so that threads may share it.
        """
        seen = self._seen
        if seen is None or seen[0] is not z:
            left = self.scale * z
            left *= -1.0
            left += self.targets
            b, c = self._fitted(left)
            left -= b[self.rows]
            left -= c[self.cols]
            self._seen = seen = (z, b, c, left)
        return seen[1:]

    def _bend(self, d: Array) -> Array:
        scale = along(self.scale, d)
        e = scale * d
        b, c = self._system.solve(*self._sums(self._weighted(e)))
        e -= b[self.rows]
        e -= c[self.cols]
        e *= scale
        return self._weighted(e)

    def _weighted(self, e: Array) -> Array:
        """ωe, e itself without weights."""
        return e if self.weight is None else along(self.weight, e) * e

    def _sums(self, e: Array) -> tuple[Array, Array]:
        sums = backend(e).group_sums
        return sums(self.rows, e, self.shape[0]), sums(self.cols, e, self.shape[1])

    def _fitted(self, e: Array) -> tuple[Array, Array]:
        """The offsets that fit e best, once more for what the first solution leaves.

        On a device once: what is left shows in the square of it only (`error`).
        """
        b, c = self._system.solve(*self._sums(self._weighted(e)))
        if not self.place.is_host:
            return b, c
        left = e - b[self.rows] - c[self.cols]
        by_row, by_col = self._sums(self._weighted(left))
        more = self._system.solve(by_row - self.ridge * b, by_col - self.ridge * c)
        return b + more[0], c + more[1]


class _Offsets(Placed):
    """(D_r, N; Nᵀ, D_c)(b, c) = (f, g) with N the links of rows and columns."""

    def __init__(self, links: sparse.csr_array, row_mass: Array, col_mass: Array) -> None:
        self.turned = links.shape[0] < links.shape[1]
        if self.turned:
            links, row_mass, col_mass = sparse.csr_array(links.T), col_mass, row_mass
        self.links, self.row_mass, self.col_mass = links, row_mass, col_mass
        n, longest = links.shape[1], np.diff(links.indptr).astype(float)
        self.price = PRODUCT * float(longest @ longest) + n**3 / 3 if n <= DIRECT else np.inf
        """What Cholesky's factor costs, in multiplications."""
        self.spent = 0.0

    @cached_property
    def _turned_links(self) -> Any:
        """Nᵀ."""
        return self.links.T

    @cached_property
    def _factor(self) -> Any:
        """Cholesky's factor of D_c − NᵀD_r⁻¹N, of the shorter side."""
        weighted = sparse.csr_array(sparse.diags_array(1.0 / self.row_mass) @ self.links)
        schur = -(self.links.T @ weighted).toarray()
        schur[np.diag_indices_from(schur)] += self.col_mass
        try:
            return scipy.linalg.cho_factor(schur, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # a ridge below rounding
            return None

    def solve(self, f: Array, g: Array) -> tuple[Array, Array]:
        """b and c, the shorter side first."""
        if self.turned:
            f, g = g, f
        mass = along(self.row_mass, f)
        right = g - self._turned_links @ (f / mass)
        c = self._shorter(right)
        b = (f - self.links @ c) / mass
        return (c, b) if self.turned else (b, c)

    def _shorter(self, right: Array) -> Array:
        if not self.place.is_host:
            inverted = self.links.shape[1] <= INVERTED
            if inverted:
                return self._inverse @ right
            if right.ndim == 2:
                columns = [self._by_steps(right[:, k]) for k in range(right.shape[1])]
                return namespace(right).stack(columns, axis=1)
            return self._by_steps(right)
        if (self.links.shape[1] <= SMALL or self.spent > self.price) and self._factor is not None:
            found: Array = scipy.linalg.cho_solve(self._factor, right, check_finite=False)
            return found
        return self._by_steps(right)

    @cached_property
    def _inverse(self) -> Array:
        """(D_c − NᵀD_r⁻¹N)⁻¹ on a device, where one product with it takes less than any solution.

        Its rounding ρ costs ‖ρ‖²/2κ at most, which `error` tells.
        """
        xp, links, n = namespace(self.col_mass), self.links, self.links.shape[1]
        schur = xp.zeros((n, n), dtype=xp.float64, device=self.col_mass.device)
        for first in range(0, links.shape[0], BLOCK):
            block = links.rows(first, first + BLOCK).toarray()
            schur -= (block / self.row_mass[first : first + BLOCK, None]).T @ block
        every = xp.arange(n, device=self.col_mass.device)
        schur[every, every] += self.col_mass
        return xp.linalg.inv(schur)

    def _by_steps(self, right: Array) -> Array:
        """By conjugate gradients, scaled by the diagonal, from 0."""
        links, turned, mass = self.links, self._turned_links, self.row_mass
        c, left = 0.0 * right, right
        scaled = left / self.col_mass
        step, rho = scaled, float(left @ scaled)
        enough = ACCURACY**2 * float(right @ right)
        for _ in range(MOST_STEPS):
            if not float(left @ left) > enough:
                break
            self.spent += 2 * PRODUCT * links.nnz
            bent = self.col_mass * step - turned @ ((links @ step) / mass)
            length = rho / float(step @ bent)
            c, left = c + length * step, left - length * bent
            scaled = left / self.col_mass
            rho, last = float(left @ scaled), rho
            step = scaled + (rho / last) * step
        return c


def _square(u: Array) -> float:
    return float(u @ u)
