"""A semidefinite program as min c·x subject to Ax = b over semidefinite and nonnegative cones.

x contains svec of every block of M, then the entries of M that are blocks of their own, then a
slack for every inequality. Rows, b and c have norm 1: M = ‖b‖ X, y = ‖c‖ ŷ/‖A_k‖.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from gramian.constrained.model import MIN_INDEPENDENT_EIGENVALUE, Model
from gramian.constrained.points import factor_of

Array = NDArray[np.floating]
Indices = NDArray[np.intp]

MIN_INDEPENDENT_NORM = 1e-10
"""An equation whose component orthogonal to the others has at most this norm is dropped."""


class StandardForm:
    """The data of a program with a linear objective, scaled to order one."""

    def __init__(self, model: Model) -> None:
        assert model.rows is not None
        self.model = model
        self.blocks = [rows for rows in model.blocks if len(rows) > 1]
        lower, upper = model.bounds.lower, model.bounds.upper
        places = list(model.bounds.sides)
        whole = model.rows.whole() if model.rows.places.size else np.zeros((lower.size, 0))
        dense = np.asarray(whole.toarray() if hasattr(whole, "toarray") else whole)
        self.norms = np.linalg.norm(dense, axis=1)
        self.norms[self.norms == 0] = 1.0
        dense = (dense / self.norms[:, None]).reshape(lower.size, model.order, model.order)
        places[0] = self._independent(dense, places[0])
        self.source: Indices = np.concatenate(places)
        """The row of the model for each row of A."""
        right = np.concatenate([lower[places[0]], lower[places[1]], upper[places[2]]])
        right = right / self.norms[self.source]
        self.right = float(np.linalg.norm(right)) or 1.0
        self.b = right / self.right
        self.matrices = [dense[np.ix_(self.source, rows, rows)] for rows in self.blocks]
        self.entries = self._beside(dense[self.source][:, model.single, model.single], places)
        C = model.linear.dense()
        self.left = float(np.linalg.norm(C)) or 1.0
        self.C = [C[np.ix_(rows, rows)] / self.left for rows in self.blocks]
        slacks = self.source.size - places[0].size
        self.cost = np.concatenate([np.diagonal(C)[model.single] / self.left, np.zeros(slacks)])
        self.entry = np.concatenate([np.ones(model.single.size), np.zeros(slacks)])
        """1 for entries of M, 0 for slacks."""

    @cached_property
    def order(self) -> int:
        """The degree of the cone: the sum of the orders of its blocks."""
        return sum(map(len, self.blocks)) + self.cost.size

    def _independent(self, dense: Array, equal: Indices) -> Indices:
        """Linearly independent equations."""
        if equal.size < 2:
            return equal
        flat = dense[equal].reshape(equal.size, -1)
        if np.linalg.eigvalsh(flat @ flat.T)[0] > MIN_INDEPENDENT_EIGENVALUE:
            return equal
        R, order = scipy.linalg.qr(flat.T, mode="r", pivoting=True, check_finite=False)
        kept = np.abs(np.diagonal(R)) > MIN_INDEPENDENT_NORM
        return np.sort(equal[order[: kept.size][kept]])

    def _beside(self, single: Array, places: list[Indices]) -> Array:
        """The columns of A for single entries of M, and ∓1 for the slack of an inequality."""
        equal, low, high = (part.size for part in places)
        signs = np.concatenate([np.full(low, -1.0), np.full(high, 1.0)])
        slacks = np.vstack([np.zeros((equal, low + high)), np.diag(signs)])
        return np.hstack([single, slacks])

    def multipliers(self, y: Array) -> Array:
        """The multipliers of the rows of the model, 0 where they would need a missing bound."""
        found = np.zeros(self.model.bounds.size)
        np.add.at(found, self.source, y * self.left / self.norms[self.source])
        return self.model.bounds.signed(found)

    def factor(self, roots: list[Array], single: Array) -> Array:
        """A factor of M from X = RRᵀ of every block, and from the nonnegative entries."""
        alone, parts = self.model.single, []
        for root in roots:
            U, sizes, _ = np.linalg.svd(root)
            parts.append(factor_of(sizes**2, U))
        inside = np.diag(np.sqrt(np.maximum(single[: alone.size], 0.0)))
        L = self.model.side_by_side([*self.blocks, alone], [*parts, inside])
        return L * np.sqrt(self.right)
