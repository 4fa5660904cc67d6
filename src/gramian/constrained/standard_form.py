"""A semidefinite program as min c·x subject to Ax = b over semidefinite cones.

x contains svec of every block of M, then a slack for every inequality; blocks of equal size are
stacked, and scalars are blocks of size 1. Rows, b and c have norm 1: M = ‖b‖ X, y = ‖c‖ ŷ/‖A_k‖.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common.types import Array
from gramian.constrained.model import Model
from gramian.constrained.points import factor_of
from gramian.linalg.tolerances import ZERO

Indices = NDArray[np.intp]


class StandardForm:
    """The data of a program with a linear objective, scaled to order one."""

    def __init__(self, model: Model) -> None:
        assert model.rows is not None
        self.model, n, C = model, model.order, model.linear.dense()
        equal, low, high = model.bounds.sides
        equal = self._independent(equal)
        self.source: Indices = np.concatenate([equal, low, high])
        """The row of the model for each row of A."""
        lower, upper = model.bounds.lower, model.bounds.upper
        self.norms = model.norms[self.source]
        right = np.concatenate([lower[equal], lower[low], upper[high]]) / self.norms
        self.right, self.left = (float(np.linalg.norm(part)) or 1.0 for part in (right, C))
        self.b = right / self.right
        A = sp.csc_array(sp.diags_array(1.0 / self.norms) @ model.rows.whole()[self.source])
        sizes = dict.fromkeys(len(rows) for rows in model.blocks)
        self.groups = [np.array([b for b in model.blocks if len(b) == size]) for size in sizes]
        """The rows of M of the blocks of each size."""
        self.matrices, self.C = [], []
        """A_k and C of each stack of blocks; the slacks are the last."""
        for blocks in self.groups:
            i, j = blocks[:, :, None], blocks[:, None, :]
            columns = A[:, (i * n + j).ravel()].toarray()
            self.matrices.append(columns.reshape(self.b.size, *blocks.shape, blocks.shape[1]))
            self.C.append(C[i, j] / self.left)
        signs = np.repeat([0.0, -1.0, 1.0], [equal.size, low.size, high.size])
        slacks = np.diag(signs)[:, equal.size :, None, None]
        self.matrices.append(slacks)
        self.C.append(np.zeros(slacks.shape[1:]))
        self.order = n + slacks.shape[1]
        """The degree of the cone: the sum of the orders of its blocks."""

    def _independent(self, equal: Indices) -> Indices:
        """Linearly independent equations, at least one."""
        assert self.model.rows is not None
        flat = self.model.rows.matrix[equal].toarray() / self.model.norms[equal, None]
        if not np.any(flat):
            return equal[:1]
        if equal.size < 2 or np.linalg.eigvalsh(flat @ flat.T)[0] > ZERO:
            return equal
        R, order = scipy.linalg.qr(flat.T, mode="r", pivoting=True, check_finite=False)
        kept = np.abs(np.diagonal(R)) > ZERO  # the component orthogonal to the others
        return np.sort(equal[order[: kept.size][kept]])

    def multipliers(self, y: Array) -> Array:
        """The multipliers of the rows of the model, 0 where they would need a missing bound."""
        found = np.zeros(self.model.bounds.size)
        np.add.at(found, self.source, y * self.left / self.norms)
        return self.model.bounds.signed(found)

    def factor(self, roots: list[Array]) -> Array:
        """A factor of M from X = RRᵀ of every block."""
        blocks, parts = [], []
        for group, root in zip(self.groups, roots, strict=False):  # without the slacks
            U, sizes, _ = np.linalg.svd(root)
            blocks += list(group)
            parts += [factor_of(size**2, vectors) for size, vectors in zip(sizes, U, strict=True)]
        return self.model.side_by_side(blocks, parts) * np.sqrt(self.right)
