"""Squares of some entries of a block whose rows and columns have features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from scipy import sparse

from gramian.arrays.cpu import gather_products
from gramian.common.types import Array
from gramian.maps import BlockEntries, Congruence
from gramian.objectives.composite import Composite
from gramian.objectives.halves import Halves, RowFits, halves_of


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior p_i = θ_i + x_iᵀΦ of the rows of one half, with the penalty of θ and Φ.

    The penalty is ‖A^½θ‖² + ‖Φ‖², minimised over Φ for given rows p: Φ = (XᵀAX + I)⁻¹ XᵀA p, a
    small system. Rows without entries have θ = 0 and do not affect Φ.
    """

    features: Array
    """X, (m, d)."""
    weights: Array
    """A, (m,), 0 for rows without entries."""

    @cached_property
    def _factor(self) -> Any:
        gram = self.features.T @ (self.weights[:, None] * self.features)
        return scipy.linalg.cho_factor(gram + np.eye(len(gram)))

    def coefficients(self, P: Array) -> Array:
        """Φ, (d, r)."""
        right = self.features.T @ (self.weights[:, None] * P)
        return scipy.linalg.cho_solve(self._factor, right)


class Featured(Composite):
    """F(M) of a block with features: the original F of ZMZᵀ, plus λ/2 tr M.

    With M = [Θ; Φ; Ξ; Ψ][…]ᵀ the block is PQᵀ with P = Θ + A^½XΦ and Q = Ξ + B^½YΨ: the nuclear
    norm is that of an operator on rows and features together (Abernethy, Bach, Evgeniou and Vert
    2009, with the identity in addition to the attributes). M ⪰ 0 enters linearly: F is convex.
    """

    def __init__(self, plain: Composite, rows: Prior | None, cols: Prior | None) -> None:
        assert isinstance(plain.map, BlockEntries)
        self.plain, self.priors = plain, (rows, cols)
        super().__init__(Congruence(plain.map, self._expansion()), plain.loss, plain.C.lower)

    @property
    def entries(self) -> BlockEntries:
        assert isinstance(self.plain.map, BlockEntries)
        return self.plain.map

    def _sides(self) -> list[tuple[Array, Prior | None]]:
        """√A of the rows and of the columns, each with its prior."""
        by_row, by_col = self.plain.loss.sides  # type: ignore[attr-defined]
        return [(1.0 / by_row, self.priors[0]), (1.0 / by_col, self.priors[1])]

    def _expansion(self) -> Any:
        """Z."""
        parts = []
        for root, prior in self._sides():
            blocks = [sparse.eye_array(root.size)]
            if prior is not None:
                blocks.append(sparse.csr_array(root[:, None] * prior.features))
            parts.append(sparse.hstack(blocks))
        return sparse.csr_array(sparse.block_diag(parts))

    def with_linear(self, C: Any) -> Featured:
        return Featured(self.plain.with_linear(C), *self.priors)

    def expanded(self, factor: Array) -> Array:
        """[P; Q] of a factor."""
        return self.map.X @ factor  # type: ignore[attr-defined]

    def contracted(self, factor: Array) -> Array:
        """The factor of smallest trace with this [P; Q]."""
        parts, start = [], 0
        for root, prior in self._sides():
            own = factor[start : start + root.size]
            start += root.size
            if prior is None:
                parts.append(own)
                continue
            found = prior.coefficients(own / root[:, None])
            parts += [own - root[:, None] * (prior.features @ found), found]
        return np.ascontiguousarray(np.vstack(parts))


@dataclass(frozen=True, eq=False)
class FeaturedHalves(Halves):
    """½ Σ_e (p_i·q_j + b_i + c_j − t_e)² + λ/2 (‖A^½(P − XΦ)‖² + ‖Φ‖² + the same of Q) + offsets.

    A state is [P b; Q c] in the units of the entries. Before a half is fitted, its Φ is computed
    exactly; then every row is regularised towards x_iᵀΦ instead of 0.
    """

    priors: tuple[Prior | None, Prior | None] = (None, None)
    contracted: Any = None

    def factor(self, state: Array) -> Array:
        return self.contracted(super().factor(state))

    def alone(self) -> Halves:
        return self

    def refit_upper(self, state: Array, steps: int) -> float:
        own, other = self._parted(state)
        return self._drawn(self.upper, self.lower, own, other, self.priors, steps)

    def refit_lower(self, state: Array, steps: int) -> float:
        other, own = self._parted(state)
        return self._drawn(self.lower, self.upper, own, other, self.priors[::-1], steps)

    def _drawn(
        self,
        fits: RowFits,
        held: RowFits,
        own: Array,
        other: Array,
        priors: tuple[Prior | None, Prior | None],
        steps: int,
    ) -> float:
        """Update the rows of one half; returns F before, plus an excess for the fixed half."""
        less = 0.0 if priors[1] is None else self._less(held, other, priors[1])
        if priors[0] is None:
            return self._refit(fits, held, own, other, steps) - less
        found = priors[0].coefficients(own[:, :-1])
        mean = np.ascontiguousarray(priors[0].features @ found, dtype=own.dtype)
        own[:, :-1] -= mean
        drawn = replace(fits, targets=_beside(fits, mean, other))
        value = self._refit(drawn, held, own, other, steps)
        own[:, :-1] += mean
        return value - less + 0.5 * self.lam * float(np.sum(np.square(found)))

    def _less(self, held: RowFits, other: Array, prior: Prior) -> float:
        """λ/2 ‖A^½Q‖² minus the penalty of Q given its features."""
        found = prior.coefficients(other[:, :-1])
        apart = other[:, :-1] - prior.features @ found
        stiff = 1.0 if held.stiffness is None else held.stiffness[:, None]
        plain = float(np.sum(stiff * other[:, :-1] ** 2))
        cost = float(np.sum(stiff * apart**2)) + float(np.sum(np.square(found)))
        return 0.5 * self.lam * (plain - cost)


def _beside(fits: RowFits, mean: Array, other: Array) -> Array:
    """The targets minus the products with the expected rows."""
    rows = np.repeat(np.arange(len(mean), dtype=np.int32), np.diff(fits.indptr))
    expected = gather_products(mean, np.ascontiguousarray(other[:, :-1]), rows, fits.neighbour)
    if fits.scale is not None:
        expected *= fits.scale
    return np.subtract(fits.targets, expected, dtype=fits.targets.dtype, casting="same_kind")


@halves_of.register
def _(objective: Featured, dtype: Any = float) -> FeaturedHalves | None:
    """The halves of the original F in float32, with rows regularised towards their prior."""
    if np.dtype(dtype) != np.float32 or not objective.place.is_host:
        return None
    plain = halves_of(objective.plain, dtype)
    assert plain is not None
    return FeaturedHalves(**vars(plain), priors=objective.priors, contracted=objective.contracted)
