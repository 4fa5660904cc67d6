"""The gradient of a completion on a cluster, less its linear term: a block of weights."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.dask._rounds import Rounds

Array = NDArray[np.floating]

COLUMNS = 512
"""Columns of a product of sparse matrices that are formed at a time."""

PIECE = 3e7
"""Bytes of a block's part of BᵀB that a task holds at a time."""


class Residual:
    """[0, B; Bᵀ, 0] = ½ 𝒜*(w) at a point, B by blocks of users that are kept on the workers."""

    def __init__(self, rounds: Rounds, kept: list[Any], *, near: bool) -> None:
        self.rounds, self.cluster, self.kept = rounds, rounds.rated.cluster, kept
        self.users, self.items = rounds.rated.shape
        self.near = near
        """Whether B is brought home for products."""
        self._gram: Array | None = None

    @cached_property
    def block(self) -> sp.csr_array:
        """B, brought home."""
        return sp.csr_array(sp.vstack(self.cluster.gather(self.kept)))

    def sparse(self) -> sp.csr_array:
        """[0, B; Bᵀ, 0], brought home."""
        return sp.csr_array(sp.block_array([[None, self.block], [self.block.T, None]]))

    def times(self, V: Array) -> Array:
        """[0, B; Bᵀ, 0]V, a round where B is not at home."""
        if self.near:
            return np.concatenate([self.block @ V[self.users :], self.block.T @ V[: self.users]])
        columns = V[:, None] if V.ndim == 1 else V
        tops = self.rounds.pieces(columns)
        low = self.cluster.shared("vectors", np.ascontiguousarray(columns[self.users :]))
        nodes = self.cluster.each("product", times, self.kept, tops, low)
        below, above = self.cluster.beside("product", nodes)
        found = np.concatenate([above, below])
        return found[:, 0] if V.ndim == 1 else found

    def gram(self) -> Array:
        """BᵀB: a sum over blocks of users, some columns a round."""
        if self._gram is None:
            width = max(1, int(PIECE / (8 * self.items)))
            self._gram = np.hstack([
                self.cluster.sum("gram", gram, self.kept, first, min(first + width, self.items))
                for first in range(0, self.items, width)
            ])  # fmt: skip
        return self._gram

    def gram_times(self, V: Array) -> Array:
        """BᵀBV for a few columns V, a round where neither B nor BᵀB is at home."""
        if self._gram is not None:
            return self._gram @ V
        if self.near:
            return np.asarray(self.block.T @ (self.block @ V))
        there = self.cluster.shared("vectors", np.ascontiguousarray(V))
        found: Array = self.cluster.sum("product", gram_times, self.kept, there)
        return found


# --- what tasks do -----------------------------------------------------------------------


def times(G: sp.csr_array, top: Array, low: Array) -> tuple[Array, Array]:
    return G.T @ top, G @ low


def gram_times(G: sp.csr_array, V: Array) -> Array:
    """GᵀGV."""
    return np.asarray(G.T @ (G @ V))


def gram(G: sp.csr_array, first: int, last: int) -> Array:
    """Some columns of GᵀG, dense, some at a time: the sparse product would be larger."""
    found, turned = np.empty((G.shape[1], last - first)), sp.csr_array(G.T)
    right = sp.csc_array(G[:, first:last])
    for at in range(0, last - first, COLUMNS):
        found[:, at : at + COLUMNS] = (turned @ right[:, at : at + COLUMNS]).toarray()
    return found
