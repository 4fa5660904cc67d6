"""Queries and references in the form used for products, with bounds on rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.floating[Any]]
Indices = NDArray[np.integer[Any]]

BLOCK = 1024
"""Rows processed at a time to avoid a copy of all."""

ROUNDING, UNDERFLOW = 2.0**-24, 2.0**-120

EXACT = 2**22
"""Squared norm up to which integers are exact in float32: sums of four of them are below 2²⁴."""


@dataclass(frozen=True)
class Frame:
    """The origin and the power of two by which samples are shifted and scaled for products."""

    origin: Array
    scale: float
    terms: float
    """Number of products in a score; 0 if nothing is rounded."""

    @classmethod
    def of(cls, X: Any, others: Any) -> Frame:
        """The frame of the rows of X, also suitable for those of `others`."""
        both = (X,) if others is X else (X, others)
        if all(_whole_and_small(rows) for rows in both):
            return cls(np.zeros(X.shape[1]), 1.0, 0.0)
        origin = np.zeros(X.shape[1])
        if not sparse.issparse(X):
            origin = np.asarray(np.mean(X, axis=0, dtype=np.float64))
        size = max(_largest(rows) for rows in both) + _largest(origin)
        return cls(origin, 2.0 ** -np.ceil(np.log2(size)) if size > 0 else 1.0, float(X.shape[1]))

    def put(self, X: Any) -> Any:
        """Rows prepared for products, in float32."""
        if sparse.issparse(X):
            return sparse.csr_array((X * self.scale).astype(np.float32))
        moved = np.empty(X.shape, dtype=np.float32)
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            moved[rows] = self.scale * (X[rows] - self.origin)
        return moved

    def asking(self, squares: Array) -> tuple[Array, Array, Array]:
        """Data of queries for the kernels: ‖x̂‖², and b and a of the error bound.

        A score is within a(x) + b(x)‖ŷ‖ + c(y) of the squared distance, in total

            1.01u [2γ‖x̂‖‖ŷ‖ + 2‖ŷ‖² + 2‖x̂‖‖ŷ‖ + 2(‖x̂‖ + ‖ŷ‖)²],   u = 2⁻²⁴, γ = p/(1 − pu):

        p products summed in any order, the last two operations, and the rounding of both rows to
        float32; the factor 1.01 covers the float64 comparisons.
        """
        if self.terms == 0:
            return squares, np.zeros(squares.size), np.zeros(squares.size)
        gamma = self.terms / (1.0 - self.terms * ROUNDING)
        unit = 1.01 * ROUNDING
        own = 2.0 * unit * squares + self.terms * UNDERFLOW
        return squares, (2.0 * gamma + 6.0) * unit * np.sqrt(squares), own

    def offered(self, squares: Array) -> tuple[Array, Array, Array]:
        """Data of references for the kernels: ‖ŷ‖² in float32, ‖ŷ‖ and c."""
        unit = 1.01 * ROUNDING if self.terms else 0.0
        return squares.astype(np.float32), np.sqrt(squares), 4.0 * unit * squares


@dataclass(frozen=True, eq=False)
class Side:
    """Queries or references: original rows, rows prepared for products, and marks."""

    rows: tuple[Any, ...]
    moved: Any
    marks: Indices

    @classmethod
    def of(cls, X: Any, frame: Frame, marks: Indices, names: Indices) -> Side:
        """Rows with their marks and the indices that break ties."""
        return cls(rows_of(X, names), frame.put(X), marks)

    @property
    def n(self) -> int:
        return int(self.marks.size)

    @cached_property
    def squares(self) -> Array:
        """Squared norms of the prepared rows."""
        return _squares(self.moved)

    def only_mark(self, start: int, stop: int) -> int | None:
        """The common mark of a range of rows, None if they differ."""
        part = self.marks[start:stop]
        return int(part[0]) if part[0] == part[-1] and np.all(part == part[0]) else None


def rows_of(X: Any, names: Indices) -> tuple[Any, ...]:
    """The arguments of kernels: (dense, indptr, indices, data, names), one format empty."""
    if sparse.issparse(X):
        return np.empty((0, 0)), X.indptr, X.indices, X.data, names
    none = np.empty(0, dtype=np.int32)
    return np.ascontiguousarray(X), none, none, np.empty(0), names


def _whole_and_small(X: Any) -> bool:
    """Whether all values are integers with squared norms small enough for float32."""
    blocks = (X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK))
    return all(
        np.array_equal(_entries(rows), np.rint(_entries(rows)))
        and float(_squares(rows).max()) < EXACT
        for rows in blocks
    )


def _squares(X: Any) -> Array:
    """Squared norms of the rows, summed in float64."""
    if sparse.issparse(X):
        squares = X.astype(np.float64).multiply(X).sum(axis=1)
        return np.ravel(np.asarray(squares, dtype=np.float64))
    found: Array = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return found


def _largest(X: Any) -> float:
    entries = _entries(X)
    return max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))


def _entries(X: Any) -> Array:
    return np.asarray(X.data if sparse.issparse(X) else X)
