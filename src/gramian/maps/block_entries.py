"""Entries of the off-diagonal block of a Gram matrix, each once or several times."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from gramian.arrays import cpu
from gramian.arrays.blocks import Blocks
from gramian.arrays.places import (
    absolute_inner,
    as_double,
    backend,
    contiguous,
    host,
    namespace,
    precision,
)
from gramian.maps.base import (
    ROUNDINGS,
    Floats,
    LinearMap,
    check_factors,
    check_matrix,
    check_weights,
    symmetric_products,
)


class BlockEntries(LinearMap):
    """𝒜(K)_e = K_{i, m+j} for entries e = (i, j) of an m × n matrix, sorted by row.

    K has order m + n and factor [P; Q], and the block is PQᵀ (BiS §IV-B). The adjoint is
    ½[0 G; Gᵀ 0], where G is the sparse m × n matrix of the weights; no (m + n)² array is formed.
    """

    def __init__(self, rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int]) -> None:
        self.rows, self.cols = cpu.index_array(rows), cpu.index_array(cols)
        self.shape = shape
        m, n = shape
        self.order, self.size = m + n, self.rows.size
        if self.size == 0 or self.cols.shape != self.rows.shape:
            raise ValueError("rows and cols must have the same length and not be empty")
        if self.rows[0] < 0 or np.any(np.diff(self.rows) < 0) or self.rows[-1] >= m:
            raise ValueError(f"rows must be sorted and within 0..{m - 1}")
        if self.cols.min() < 0 or self.cols.max() >= n:
            raise ValueError(f"cols must be within 0..{n - 1}")

    def matrix(self, w: Floats) -> sparse.csr_array:
        """G, sharing the index arrays of the map."""
        w = self._summed(w)
        return backend(w).csr(w, self.cols, self._starts, self.shape)

    def _summed(self, w: Floats) -> Floats:
        """The weight of each entry."""
        return w

    def bilinear(self, U: Floats, V: Floats) -> NDArray[np.float64]:
        check_factors(self.order, U, V)
        m = self.shape[0]
        z = backend(U).gather_products(U[:m], V[m:], self.rows, self.cols)
        if V is U:
            return z
        return 0.5 * (z + backend(U).gather_products(V[:m], U[m:], self.rows, self.cols))

    def columns(self, W: Floats) -> NDArray[np.float64]:
        check_factors(self.order, W)
        take, m = backend(W).taken, self.shape[0]
        return symmetric_products(take(W[:m], self.rows), take(W[m:], self.cols))

    def adjoint(self, w: Floats, V: Floats) -> Floats:
        check_weights(self.size, w)
        check_factors(self.order, V)
        m = self.shape[0]
        if self.streamed:
            G = self._summed(w), self.rows, self.cols
            return 0.5 * namespace(V).concat(backend(V).block_products(*G, V[:m], V[m:]), axis=0)
        product, out = backend(V).sparse_product, namespace(V).empty_like(V)
        out[:m] = product(self.matrix(w), contiguous(V[m:]))
        out[m:] = product(self._turned(w), contiguous(V[:m]))
        out *= 0.5
        return out

    def vector_product(self, w: Floats) -> Callable[[Floats], Floats]:
        """v ↦ 𝒜*(w)v for a fixed w; on the host without another copy of w."""
        G, m = self.matrix(w), self.shape[0]
        turned = G.T if self.place.is_host else self._turned(w)
        return lambda v: 0.5 * namespace(v).concat([G @ v[m:], turned @ v[:m]])

    def adjoint_matrix(self, w: Floats) -> Floats:
        check_weights(self.size, w)
        if not self.place.is_host:
            return super().adjoint_matrix(w)
        G = 0.5 * self.matrix(np.asarray(host(w), dtype=float)).toarray()
        m, n = self.shape
        return np.block([[np.zeros((m, m)), G], [G.T, np.zeros((n, n))]])

    def of_matrix(self, M: Floats) -> NDArray[np.float64]:
        check_matrix(self.order, M)
        return as_double(M[self.rows, self.shape[0] + self.cols])

    def error_along(self, w: Floats, L: Floats, z: Floats) -> float:
        """`error` is a multiple of |z|."""
        return ROUNDINGS * precision(z) * absolute_inner(w, z)

    @property
    def apart(self) -> dict[tuple[int, ...], int]:
        """Arrays with one element per entry, and per value of the image."""
        entries = self.rows.shape[0]
        return {} if entries in self.shape else {(entries,): 1, (self.size,): self.size // entries}

    @property
    def streamed(self) -> bool:
        """Whether the entries are on the host and copied to a device in blocks."""
        return isinstance(self.rows, Blocks)

    def by_row(self) -> tuple[Any, Any, Any]:
        """Start of each row, the columns of the entries, and the index of each entry."""
        return self._starts, self.cols, slice(None)

    def by_column(self) -> tuple[Any, Any, Any]:
        """Start of each column, the rows of the entries, and the index of each entry."""
        return self._pattern

    @cached_property
    def _starts(self) -> cpu.Indices:
        return backend(self.rows).starts(self.rows, self.shape[0])

    @cached_property
    def _pattern(self) -> tuple[Any, Any, Any]:
        """Gᵀ's row starts, its column indices, and the index of each entry."""
        return backend(self.cols).turned(self._starts, self.cols, self.shape)

    def _turned(self, w: Floats) -> sparse.csr_array:
        (starts, indices, entry), library = self._pattern, backend(w)
        values = library.taken(self._summed(w), entry)
        return library.csr(values, indices, starts, self.shape[::-1])


class RepeatedEntries(BlockEntries):
    """Every entry of `BlockEntries` repeated a given number of times in succession.

    Ordinal levels compare the same entry with each threshold (Rennie and Srebro 2005). `rows`,
    `cols` and the orders of a block refer to the entries without repetition.
    """

    def __init__(
        self, rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int], repeat: int
    ) -> None:
        super().__init__(rows, cols, shape)
        if repeat < 1:
            raise ValueError(f"repeat must be at least 1, got {repeat}")
        self.repeat = int(repeat)
        self.size = self.rows.size * self.repeat

    def bilinear(self, U: Floats, V: Floats) -> NDArray[Any]:
        return self._repeated(super().bilinear(U, V))

    def columns(self, W: Floats) -> NDArray[Any]:
        return self._repeated(super().columns(W))

    def of_matrix(self, M: Floats) -> NDArray[Any]:
        return self._repeated(super().of_matrix(M))

    def _repeated(self, z: Floats) -> Floats:
        xp, count = namespace(z), z.shape[0]
        lines = xp.broadcast_to(z[:, None, ...], (count, self.repeat, *z.shape[1:]))
        return xp.reshape(lines, (self.size, *z.shape[1:]))

    def _summed(self, w: Floats) -> Floats:
        """The sums of the weights of each entry, rounded once, as the proof of λ_min requires.

        Weights of both signs may cancel; compensated summation (Knuth's two-sum) corrects this.
        """
        lines = namespace(w).reshape(w, (-1, self.repeat))
        total, lost = lines[:, 0], 0.0 * lines[:, 0]
        for k in range(1, self.repeat):
            term = lines[:, k]
            moved = total + term
            kept = moved - total
            lost = lost + ((total - (moved - kept)) + (term - kept))
            total = moved
        return total + lost
