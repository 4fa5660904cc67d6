"""Multifrontal sparse symmetric factorisation: PAPᵀ = C diag(σ) Cᵀ, C lower triangular, σ = ±1.

Columns of C with the same rows below them are eliminated together, as a dense matrix called a front
(Duff and Reid 1983). For a factor with much fill-in, such as that of a neighbour graph in many
dimensions, nearly all operations are then products of large dense matrices. 60,000 digits, three
neighbours: 6 s, SuperLU 24 s, and more with a dense border.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import spilu

from gramian.common.memory import memory
from gramian.common.types import Array

Indices = NDArray[np.int64]

MIN_FRONT_POINTS = 8000
"""Number of points from which factors are multifrontal: 5,000 digits unfold in the same time
without, and compiling the kernels on a new machine takes about twenty seconds."""

MAX_ZERO_FRACTION = 0.2
"""Largest fraction of explicit zeros in a front; merging gives larger fronts."""

PRODUCTS_PER_SECOND, MAX_MEMORY_FRACTION = 1e10, 0.1
"""Approximate multiplications per second, and the fraction of memory that a factor may take."""

SYMMETRIC: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.0,
    "options": {"SymmetricMode": True},
}
"""Options of SuperLU for a symmetric matrix. The default ordering takes ten times as long on the
Laplacian of 5,000 points of 50 dimensions (22 s, 2.2 s)."""


@dataclass(frozen=True)
class Elimination:
    """The order of elimination, and the resulting fronts."""

    order: Indices
    """The column eliminated in step k."""
    starts: Indices
    """The first column of each front, and the end of the last."""
    rows: Indices
    """The rows below the columns of each front, concatenated."""
    ends: Indices
    """The boundaries of the fronts in `rows`."""
    parents: Indices
    """The front that contains the first of these rows, −1 if there are none."""

    @cached_property
    def at(self) -> Indices:
        """The start of the panel of each front."""
        wide = np.diff(self.starts)
        return np.concatenate([[0], np.cumsum(wide * (wide + np.diff(self.ends)))])

    @property
    def entries(self) -> int:
        """Number of elements of the factor."""
        return int(self.at[-1])

    @property
    def seconds(self) -> float:
        """Estimated seconds of a factorisation, from counts, independent of the machine's load.

        Infinite if the factor and its work space exceed a fraction of the memory.
        """
        if 8.0 * (self.entries + self.room) > MAX_MEMORY_FRACTION * memory():
            return np.inf
        wide, below = np.diff(self.starts).astype(float), np.diff(self.ends)
        return (
            float(np.sum(wide * (wide * wide / 3 + wide * below + below * below)))
            / PRODUCTS_PER_SECOND
        )

    @cached_property
    def terms(self) -> Array:
        """Number of entries of each row of the factor, in the order of the matrix."""
        wide = np.diff(self.starts)
        own = np.arange(self.order.size) - np.repeat(self.starts[:-1], wide) + 1
        others = np.repeat(wide, np.diff(self.ends)).astype(float)
        found = np.empty(self.order.size)
        found[self.order] = own + np.bincount(self.rows, others, minlength=self.order.size)
        return found

    @cached_property
    def room(self) -> int:
        """Number of elements that fronts store for their parents."""
        return int(_kernels().stack_room(np.diff(self.ends), self.parents))


def elimination(A: Any, borders: int = 0) -> Elimination:
    """Elimination plan of a sparse symmetric matrix, whose last rows may be dense `borders`.

    Uses a minimum degree ordering; the borders come just before the last front, which is dense.
    """
    A = sp.csr_array(A, copy=True)  # sorting is in place, also of data shared with the argument
    A.sort_indices()
    key = A.indptr.astype(np.int64).tobytes(), A.indices.astype(np.int64).tobytes()
    return _eliminated(*key, borders)


@lru_cache(maxsize=2)
def _eliminated(indptr: bytes, indices: bytes, borders: int) -> Elimination:
    ends, columns = np.frombuffer(indptr, np.int64), np.frombuffer(indices, np.int64)
    n = ends.size - 1
    whole = sp.csr_array((np.ones(columns.size), columns, ends), shape=(n, n))
    inner = n - borders
    found = _inner(sp.csr_array(whole[:inner, :inner]))
    return _bordered(found, borders) if borders else found


def _inner(A: sp.csr_array) -> Elimination:
    """The fronts of a pattern, in minimum degree order."""
    kernels = _kernels()
    order = _least_degree(A)
    A = A[order][:, order]
    lead = kernels.postorder(kernels.elimination_tree(A.indptr, A.indices))
    A, order = sp.csr_array(A[lead][:, lead]), order[lead]
    parent = kernels.elimination_tree(A.indptr, A.indices)
    counts = kernels.column_counts(A.indptr, A.indices, parent)
    starts = np.append(kernels.merged(parent, counts, MAX_ZERO_FRACTION), A.shape[0])
    front = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    above = parent[starts[1:] - 1]
    parents = np.where(above >= 0, front[above], -1)
    sizes = counts[starts[1:] - 1] - 1
    rows, ends = kernels.rows_below(A.indptr, A.indices, starts, sizes, parents)
    first = np.repeat(np.arange(sizes.size) * order.size, sizes)
    return Elimination(order, starts, np.sort(first + rows) - first, ends, parents)


def _least_degree(A: sp.csr_array) -> Indices:
    """SuperLU's minimum degree order, from an incomplete factor with maximal dropping."""
    degrees = np.diff(A.indptr).astype(float)
    diagonal = sp.csc_array(sp.diags_array(degrees + 1.0) - A)
    rough = spilu(diagonal, drop_tol=0.9, fill_factor=1, drop_rule="basic", **SYMMETRIC)
    return np.argsort(rough.perm_c).astype(np.int64)


def _bordered(inner: Elimination, borders: int) -> Elimination:
    """The same plan with borders that are rows of every front."""
    root, n = int(inner.starts[-2]), int(inner.starts[-1])
    count = inner.starts.size - 2
    """Number of fronts before the last."""
    starts = np.concatenate([inner.starts[:-1], [root + borders, n + borders]])
    new = np.arange(root, root + borders)
    rows = [
        np.concatenate([below[below < root], new, below[below >= root] + borders])
        for below in np.split(inner.rows, inner.ends[1:-1])[:count]
    ]
    rows.append(np.arange(root + borders, n + borders))
    ends = np.concatenate([[0], np.cumsum([below.size for below in rows]), [0]])
    ends[-1] = ends[-2]
    inside = inner.parents[:count]
    parents = np.where((inside < 0) | (inside == count), count, inside)
    order = np.concatenate([inner.order[:root], np.arange(n, n + borders), inner.order[root:]])
    return Elimination(
        order, starts, np.concatenate(rows), ends, np.append(parents, [count + 1, -1])
    )


class Fronts:
    """C and σ of a sparse symmetric matrix; `usable` if all pivots are nonzero.

    The last front is factored by Cholesky: the matrix is usable only if the remaining Schur
    complement is positive definite.
    """

    def __init__(self, plan: Elimination, A: Any) -> None:
        self.plan = plan
        kernels, order = _kernels(), plan.order
        n = order.size
        lower = sp.csc_array(sp.tril(sp.csr_array(A)[order][:, order]))
        self.panels, self.signs = np.zeros(plan.entries), np.ones(n)
        last = plan.starts.size - 2
        self.negative = kernels.eliminate(
            lower.indptr, lower.indices, lower.data, plan.starts, plan.rows, plan.ends,
            plan.parents, self.panels, plan.at, self.signs, last, np.empty(plan.room),
        )  # fmt: skip
        # A lower triangle by rows is an upper triangle by columns, as LAPACK expects.
        self.usable = (
            self.negative >= 0 and dpotrf(self._last.T, lower=0, clean=1, overwrite_a=1)[1] == 0
        )

    @property
    def entries(self) -> int:
        return self.plan.entries

    @property
    def _last(self) -> Array:
        """The last front, by rows."""
        width = int(self.plan.starts[-1] - self.plan.starts[-2])
        return self.panels[self.plan.at[-2] :].reshape(width, width)

    def forward(self, B: Array) -> Array:
        """C⁻¹PB."""
        plan = self.plan
        X = np.array(B[plan.order], dtype=np.float64, order="C")
        _kernels().solve_forward(*self._arrays, plan.starts.size - 2, X)
        self._solve_last(X, 0)
        return X

    def backward(self, B: Array) -> Array:
        """PᵀC⁻ᵀB."""
        plan = self.plan
        X = np.array(B, dtype=np.float64, order="C")
        self._solve_last(X, 1)
        _kernels().solve_backward(*self._arrays, plan.starts.size - 2, X)
        found = np.empty_like(X)
        found[plan.order] = X
        return found

    def _solve_last(self, X: Array, transposed: int) -> None:
        """Solve for the rows of the last front, in place: XᵀU = Bᵀ for U = Cᵀ by columns."""
        own = X[self.plan.starts[-2] :]
        dtrsm(1.0, self._last.T, own.T, side=1, lower=0, trans_a=transposed, overwrite_b=1)

    def solve(self, B: Array) -> Array:
        """A⁻¹B."""
        return self.backward(self.signs[:, None] * self.forward(B))

    def transposed_times(self, Z: Array) -> Array:
        """CᵀPZ."""
        return self._product(np.ascontiguousarray(Z[self.plan.order]), transposed=True)

    def sizes(self) -> Array:
        """|C||C|ᵀ1, in the order of A."""
        ones = np.ones((self.plan.order.size, 1))
        half = self._product(ones, transposed=True, sizes=True)
        found = np.empty(ones.size)
        found[self.plan.order] = self._product(half, transposed=False, sizes=True)[:, 0]
        return found

    def _product(self, B: Array, *, transposed: bool, sizes: bool = False) -> Array:
        """CB or CᵀB, with `sizes` for the absolute values of the entries of C."""
        out = np.zeros_like(B)
        _kernels().times(*self._arrays, transposed, sizes, B, out)
        return out

    @property
    def _arrays(self) -> tuple[Any, ...]:
        plan = self.plan
        return plan.starts, plan.rows, plan.ends, self.panels, plan.at


def _kernels() -> Any:
    return importlib.import_module("gramian.arrays._front_kernels")
