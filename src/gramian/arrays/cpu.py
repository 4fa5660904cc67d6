"""Gather and scatter on the CPU: plain numpy and scipy for small work, numba for large.

For factors U, V of shape (n, r) with rows u_i, v_i, and pairs e = (i, j):

    gather_entries     z_e = ½ (u_i·v_j + u_j·v_i)
    gather_products    z_e = u_i·v_j
    gather_distances   z_e = (u_i − u_j)·(v_i − v_j)
    scatter_entries    Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ) V
    scatter_distances  Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ V        (a Laplacian times V)

Factors are float32 or float64. A gather sums in float64 for any dtype of the factors; a scatter
returns the dtype of V. Neither makes an (edges × r) temporary. Indices are not checked here: the
maps validate them once, when they are built.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs

from gramian.arrays.entries import are_many, counting_sort, tallied
from gramian.arrays.threads import in_parts
from gramian.common.memory import memory

Floats = NDArray[np.floating[Any]]
Indices = NDArray[np.int32]

# Work (pairs × columns) of one call above which numba is used. Importing numba and reading a
# gather and a scatter from its cache costs 0.8 s, compiling them 3.5 s. At 100,000 pairs and rank
# 20 a gather and a scatter took 14 ms in NumPy and 4 ms compiled (one thread of a busy machine):
# this breaks even after 80 evaluations with a cache and 350 without.
COMPILED_WORK = 2_000_000
# The same for work on single rows, of which NumPy makes several passes.
COMPILED_ROW_WORK = 400_000

# Cost of a cache miss, in multiplications, and bytes of a cache line.
MISS, CACHE_LINE = 8, 64

# Entries of a sparse matrix in one block of rows.
ROW_BLOCK_ENTRIES = 4_096

# Rows within this distance in bytes are found in the L2 cache, and so are the temporary blocks of a
# gather in NumPy.
NEAR_BYTES = 2**18
# Factors in float32 of at most this many bytes are converted for a gather: for 100,000 pairs of
# rows of 96 numbers (0.6 MB) both precisions take 2.0 ms; compiling for another one takes 0.3 s.
SMALL_BYTES = 2**21
# A factor of at most this many bytes stays in the caches.
CACHED_BYTES = 2**23

# Rows of a factor that are collected for one row of the other: 3 MB for 200 columns.
COLLECTED_ROWS = 2_048

# Time of a multiplication in a product of sparse matrices, 5 to 10 ns, in units of that in a
# product of dense ones, 0.04 to 0.08 ns (MovieLens 100K and 1M, float64, one thread).
SPARSE_MULTIPLICATION = 100
# Entries of a sparse matrix in one block of its Gram matrix, if that is small.
GRAM_BLOCK = 2**18

# Indices taken at a time: NumPy copies them to int64.
TAKEN = 2**16

MAX_EDGES = np.iinfo(np.int32).max // 2


@dataclass(frozen=True, eq=False)
class Pattern:
    """Every pair (i, j) as two half-edges, i → j and j → i, sorted by row and then neighbour.

    Each row owns its half-edges, so that a scatter is parallel over rows without atomics. A
    diagonal entry (i, i) has both of its halves in row i.
    """

    indptr: Indices  # (n + 1,) half-edges of row i are indptr[i]:indptr[i + 1]
    neighbour: Indices  # (2p,) the other end j
    edge: Indices  # (2p,) the pair e of the half-edge

    @classmethod
    def from_pairs(cls, rows: ArrayLike, cols: ArrayLike, order: int) -> Pattern:
        """Sort the half-edges of the pairs (rows[e], cols[e]) of an `order` × `order` matrix."""
        rows, cols = index_array(rows), index_array(cols)
        if rows.size > MAX_EDGES:
            raise ValueError(f"at most {MAX_EDGES:,} pairs are supported, got {rows.size:,}")
        start, neighbour = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        _, by_neighbour = counting_sort(neighbour, order)
        indptr, by_row = counting_sort(start[by_neighbour], order)
        half_edge = by_neighbour[by_row]
        return cls(indptr, neighbour[half_edge], half_edge % np.int32(rows.size))

    @property
    def order(self) -> int:
        return int(self.indptr.shape[0]) - 1

    @property
    def size(self) -> int:
        return int(self.edge.shape[0]) // 2

    def matrix(self, w: Floats) -> sparse.csr_array:
        """Σ_e w_e (e_i e_jᵀ + e_j e_iᵀ), sharing the index arrays of the pattern."""
        found = copy(self._empty)
        found.data = taken(w, self.edge)
        return found

    @cached_property
    def _empty(self) -> sparse.csr_array:
        """The matrix without values: its indices are validated once, not for every w."""
        values = np.broadcast_to(0.0, self.edge.shape)
        shape = (self.order, self.order)
        found = sparse.csr_array((values, self.neighbour, self.indptr), shape=shape)
        found.data = np.empty(0)
        return found


def pattern(rows: Indices, cols: Indices, order: int) -> Pattern:
    """The pattern of these pairs."""
    return Pattern.from_pairs(rows, cols, order)


def csr(data: NDArray[Any], indices: Indices, indptr: Indices, shape: tuple[int, int]) -> Any:
    """The sparse matrix of these arrays, which are shared."""
    return sparse.csr_array((data, indices, indptr), shape=shape)


def starts(keys: Indices, count: int) -> Indices:
    """The first position of each key 0..count in a sorted array of keys."""
    return index_array(np.concatenate([[0], np.cumsum(tallied(keys, count))]))


def group_sums(groups: Indices, values: Floats, count: int) -> NDArray[np.float64]:
    """The sums of the values of each group 0..count."""
    return np.bincount(groups, values, minlength=count).astype(float, copy=False)


def group_sums_of(groups: Indices, part: slice, values: Floats, count: int) -> NDArray[np.float64]:
    """`group_sums` of a part of the groups and the values of this part."""
    return group_sums(groups[part], values, count)


def gram(matrix: Any) -> NDArray[np.float64]:
    """BᵀB of a sparse B, dense; in blocks of rows no larger than the result.

    A product of sparse matrices would copy them, and takes longer than one of dense matrices unless
    B has few entries.
    """
    m, n = matrix.shape
    found, counts = np.zeros((n, n)), np.diff(matrix.indptr).astype(float)
    dense = 0.5 * m * n * n < SPARSE_MULTIPLICATION * float(counts @ counts)
    if dense:
        cuts = np.append(np.arange(0, m, max(n, 1)), m)
    else:
        bounds = np.arange(0, matrix.nnz, max(GRAM_BLOCK, n * n))
        cuts = np.unique([0, *np.searchsorted(matrix.indptr, bounds), m])
    for first, last in pairwise(cuts.tolist()):
        block = matrix[first:last]
        B = block.toarray() if dense else block
        product = B.T @ B
        found += product if dense else product.toarray()
    return found


def cholesky(A: Floats) -> Callable[[Floats], Floats] | None:
    """b ↦ A⁻¹b by Cholesky, None if A is not positive definite; A is overwritten."""
    factor, info = dpotrf(A.T, lower=0, clean=0, overwrite_a=1)
    return None if info else lambda b: dpotrs(factor, b, lower=0)[0]


def free_memory() -> float:
    """Free memory in bytes."""
    return memory()


def turned(
    indptr: Indices, indices: Indices, shape: tuple[int, int]
) -> tuple[Indices, Indices, Indices]:
    """The transposed pattern: its row starts, its columns, and the index of each entry."""
    if are_many(indices):
        begin, order = counting_sort(indices, shape[1])
        rows = np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(indptr))
        return begin, taken(rows, order), order
    numbers = np.arange(indices.size, dtype=np.int32)
    numbered = csr(numbers, indices, indptr, shape).tocsc()
    return index_array(numbered.indptr), index_array(numbered.indices), numbered.data


def index_array(indices: ArrayLike) -> Indices:
    """Contiguous int32, the only index type: half the traffic of int64, one compiled variant."""
    return np.ascontiguousarray(indices, dtype=np.int32)


def gather_entries(
    U: Floats, V: Floats, rows: Indices, cols: Indices, *, compiled: bool | None = None
) -> NDArray[np.float64]:
    """½ (u_i·v_j + u_j·v_i) for every pair; half the work when `V is U`."""
    z = gather_products(U, V, rows, cols, compiled=compiled)
    return z if V is U else 0.5 * (z + gather_products(V, U, rows, cols, compiled=compiled))


def gather_products(
    U: Floats, V: Floats, rows: Indices, cols: Indices, *, compiled: bool | None = None
) -> NDArray[np.float64]:
    """u_i·v_j for every pair of a row of U and a row of V."""
    return _gather(U, V, rows, cols, compiled, distances=False)


def gather_distances(
    U: Floats, V: Floats, rows: Indices, cols: Indices, *, compiled: bool | None = None
) -> NDArray[np.float64]:
    """(u_i − u_j)·(v_i − v_j) for every pair; half the work when `V is U`."""
    return _gather(U, V, rows, cols, compiled, distances=True)


def _gather(
    U: Floats,
    V: Floats,
    rows: Indices,
    cols: Indices,
    compiled: bool | None,
    *,
    distances: bool,
) -> NDArray[np.float64]:
    same = V is U
    U = _as_factor(U)
    V = U if same else _as_factor(V)
    # Sums are in float64; with small factors a second version of the kernel would gain nothing.
    if U.dtype != V.dtype or max(U.nbytes, V.nbytes) <= SMALL_BYTES:
        U = U.astype(np.float64, copy=False)
        V = U if same else V.astype(np.float64, copy=False)
    rows, cols = index_array(rows), index_array(cols)
    z, rank = np.empty(rows.size), U.shape[1]
    if worth_compiling(compiled, z.size * rank):
        far = _lie_far(U, rows) or _lie_far(V, cols)
        arguments = (U, V, same, far, rows, cols, z) if distances else (U, V, far, rows, cols, z)
        name = "gather_distances" if distances else "gather_products"
        _launch(name, z.size, z.size * rank, *arguments)
        return z
    step = max(1, NEAR_BYTES // (z.itemsize * max(1, rank)))
    for start in range(0, z.size, step):
        i, j = rows[start : start + step], cols[start : start + step]
        A, B = U.take(i, axis=0), U if same and distances else V.take(j, axis=0)
        if distances:
            A = np.subtract(A, U.take(j, axis=0), dtype=np.float64)
            B = A if same else np.subtract(V.take(i, axis=0), B, dtype=np.float64)
        z[start : start + step] = np.einsum("ij,ij->i", A, B, dtype=np.float64)
    return z


def scatter_entries(
    w: Floats, V: Floats, pattern: Pattern, *, compiled: bool | None = None
) -> Floats:
    """Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ) V; a diagonal entry counts once."""
    V = _as_factor(V)
    halves = (0.5 * _as_weights(w)).astype(V.dtype, copy=False)
    return sparse_product(pattern.matrix(halves), V, compiled=compiled)


def scatter_distances(
    w: Floats, V: Floats, pattern: Pattern, *, compiled: bool | None = None
) -> Floats:
    """Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ V: the Laplacian of the weighted pairs, times V."""
    w, V = _as_weights(w), _as_factor(V)
    if worth_compiling(compiled, pattern.size * V.shape[1]):
        # As in a gather, small factors need no second version of the kernel.
        U = V.astype(np.float64, copy=False) if V.nbytes <= NEAR_BYTES else V
        out, blocks = np.empty_like(U), _row_blocks(pattern.indptr)
        arrays = (blocks, pattern.indptr, pattern.neighbour, pattern.edge)
        far, work = _lie_far(U, pattern.neighbour), 2 * w.size * U.shape[1]
        _launch("scatter_distances", blocks.size - 1, work, w, U, far, *arrays, out)
        return out.astype(V.dtype, copy=False)
    adjacency = pattern.matrix(w.astype(V.dtype, copy=False))
    degree = adjacency @ np.ones((pattern.order, 1), dtype=V.dtype)
    return degree * V - adjacency @ V


def taken(values: NDArray[Any], places: NDArray[np.integer]) -> NDArray[Any]:
    """The values, or the rows, with the given indices, in several threads if that is faster."""
    found = np.empty((places.size, *values.shape[1:]), dtype=values.dtype)

    def take(start: int, stop: int) -> None:
        for first in range(start, stop, TAKEN):
            part = slice(first, min(first + TAKEN, stop))
            np.take(values, places[part], 0, found[part], "clip")  # mode "clip" needs no buffer

    in_parts(take, places.size, max(MISS * places.size, found.size))
    return found


def differences(
    values: Floats, more: Indices, less: Indices, *, compiled: bool | None = None
) -> NDArray[np.float64]:
    """values[more] − values[less]."""
    if not worth_compiling(compiled, MISS * more.size):
        return values.take(more) - values.take(less)
    out = np.empty(more.size)
    _launch("differences", more.size, more.size, values, more, less, out)
    return out


def sums_of_differences(
    w: Floats, more: Indices, less: Indices, count: int, *, compiled: bool | None = None
) -> NDArray[np.float64]:
    """The transpose of `differences`: sums of w_e over more_e minus over less_e, length `count`."""
    if not worth_compiling(compiled, MISS * more.size):
        found: NDArray[np.float64] = np.bincount(more, w, count).astype(float, copy=False)
        return found - np.bincount(less, w, count)
    out = np.zeros(count)
    kernels = importlib.import_module("gramian.arrays._kernels")
    kernels.add_differences(_as_weights(w), more, less, out)
    return out


def sparse_product(matrix: sparse.csr_array, V: Floats, *, compiled: bool | None = None) -> Floats:
    """A V for a CSR matrix of floats, in the precision of V; vectors use scipy."""
    if V.dtype == np.float32 and matrix.dtype == np.float64:
        data = matrix.data.astype(np.float32)
        matrix = csr(data, matrix.indices, matrix.indptr, matrix.shape)
    alike = V.ndim == 2 and V.dtype == matrix.dtype and V.dtype in (np.float32, np.float64)
    if not alike or V.shape[1] < 2 or not worth_compiling(compiled, matrix.nnz * V.shape[1]):
        return matrix @ V
    V = _as_factor(V)
    out = np.empty((matrix.shape[0], V.shape[1]), dtype=V.dtype)
    work, arrays = matrix.nnz * V.shape[1], _csr_arrays(matrix)
    blocks = _row_blocks(arrays[0])
    far = _lie_far(V, arrays[1])
    _launch("csr_product", blocks.size - 1, work, V, far, blocks, *arrays, out)
    return out


def triangular_solve(
    C: sparse.csr_array | sparse.csc_array, B: Floats, *, transposed: bool = False
) -> Floats:
    """C⁻¹B for a lower triangular C by rows (CSR), or C⁻ᵀB for one by columns (CSC), both sorted.

    In both cases each row of the result is a sum over rows computed before.
    """
    kernels = importlib.import_module("gramian.arrays._kernels")
    found = np.array(B, dtype=np.float64, order="C")
    kernels.solve_triangular(C.indptr, C.indices, C.data, transposed, found)
    return found


def refit_rows(P: Floats, Q: Floats, steps: int, indptr: Indices, *arguments: Any) -> float:
    """Compiled conjugate gradients on each row of P, in place: see `objectives.halves`."""
    blocks, lost, rank = _row_blocks(indptr), np.empty(P.shape[0]), P.shape[1]
    longest = int(np.max(np.diff(indptr), initial=0))
    kernels = importlib.import_module("gramian.arrays._kernels")

    def refit(start: int, stop: int) -> None:
        room = min(max(longest, 1), COLLECTED_ROWS)
        scratch = (_aligned(shape, P.dtype) for shape in ((room,), (room, rank), (6, rank)))
        given = (blocks, indptr, *arguments, steps, Q, P, lost, *scratch)
        kernels.refit_rows(start, stop, *given)

    in_parts(refit, blocks.size - 1, int(indptr[-1]) * rank * (steps + 1))
    return float(np.sum(lost))


def _aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An empty array that begins at a cache line: vectors across two lines take a tenth longer."""
    size = int(np.prod(shape)) * dtype.itemsize
    found = np.empty(size + CACHE_LINE, np.uint8)
    first = -found.ctypes.data % CACHE_LINE
    return found[first : first + size].view(dtype).reshape(shape)


def sweep_rows(C: Any, L: Floats, lengths: Floats, sweeps: int) -> None:
    """l_i ← −√d_i g/‖g‖ with g = Σ_{j≠i} c_ij l_j, for every row in turn, in place.

    Each minimises ⟨C, LLᵀ⟩ over its row. `C` is CSR without its diagonal.
    """
    kernels = importlib.import_module("gramian.arrays._kernels")
    kernels.sweep_rows(*_csr_arrays(C), lengths, sweeps, L)


def _row_blocks(indptr: Indices) -> Indices:
    """Boundaries of blocks of rows with about equally many entries."""
    entries = int(indptr[-1])
    bounds = np.linspace(0, entries, max(1, -(-entries // ROW_BLOCK_ENTRIES)) + 1)
    blocks = index_array(np.searchsorted(indptr, bounds))
    blocks[0], blocks[-1] = 0, indptr.size - 1
    return blocks


def _csr_arrays(matrix: sparse.csr_array) -> tuple[Indices, Indices, NDArray[np.float64]]:
    return index_array(matrix.indptr), index_array(matrix.indices), matrix.data


def entries_matrix(w: Floats, pattern: Pattern) -> sparse.csr_array:
    """Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ) as a new CSR matrix, repeated pairs summed."""
    return _without_duplicates(pattern.matrix(0.5 * _as_weights(w)))


def laplacian_matrix(w: Floats, pattern: Pattern) -> sparse.csr_array:
    """Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ as a new CSR matrix, repeated pairs summed."""
    adjacency = _without_duplicates(pattern.matrix(_as_weights(w)))
    degree = adjacency @ np.ones(pattern.order)
    return sparse.csr_array(sparse.diags_array(degree, format="csr") - adjacency)


def _without_duplicates(shared: sparse.csr_array) -> sparse.csr_array:
    own = shared.copy()  # the sum is in place and would overwrite the pattern
    own.sum_duplicates()
    return own


def _lie_far(V: Floats, indices: Indices) -> bool:
    """Whether consecutively accessed rows are too far apart for the caches.

    Uses the mean step between neighbours in a sample of the indices. Prefetching of near rows costs
    a quarter of the time of a scatter over a sorted graph; if the caches hold all of V it costs
    half of the time of a product with 24 columns of 32,561 rows.
    """
    if V.nbytes <= CACHED_BYTES or indices.size <= 3:
        return False
    step = np.abs(np.diff(indices[indices.size // 2 :][:4096])).mean()
    return bool(step * V[:1].nbytes > NEAR_BYTES)


def _launch(name: str, units: int, work: int, *arguments: Any) -> None:
    """Run a compiled kernel; numba is imported here, on first use."""
    kernels = importlib.import_module("gramian.arrays._kernels")
    in_parts(getattr(kernels, name), units, work, *arguments)


def worth_compiling(asked: bool | None, work: int, limit: int | None = None) -> bool:
    if asked is not None:
        return asked
    return work > (COMPILED_WORK if limit is None else limit)


def _as_factor(V: Floats) -> Floats:
    dtype = np.float32 if V.dtype == np.float32 else np.float64
    return np.ascontiguousarray(V, dtype=dtype)


def _as_weights(w: Floats) -> NDArray[np.float64]:
    return np.ascontiguousarray(w, dtype=np.float64)
