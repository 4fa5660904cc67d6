"""Gather, scatter and sparse products on tensors, on a GPU or on the CPU.

The same functions as `gramian.arrays.cpu`. On a GPU two compiled kernels do the work. They sum
every row of the result in a fixed order, without atomics, so results are bitwise reproducible.
On the CPU tensors share their memory with the kernels there.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import torch
    from torch.utils.weak import WeakTensorKeyDictionary
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "a device needs torch, which is not installed: pip install 'gramian[gpu]'"
    ) from None

from gramian.arrays import cpu
from gramian.arrays._torch_dense import (
    cholesky,
    cholesky_factor,
    definite_inverse,
    inverse_factor,
    triangular_inverse,
)
from gramian.arrays._torch_recorded import Recorded
from gramian.arrays._torch_transfers import Stored, gathered, host, namespace, staged, stored
from gramian.arrays.blocks import Blocks, mapped
from gramian.common.memory import device_limit, memory

__all__ = [  # of the other modules with tensors
    "Recorded", "Stored", "cholesky", "cholesky_factor", "definite_inverse", "gathered", "host",
    "inverse_factor", "namespace", "staged", "stored", "triangular_inverse",
]  # fmt: skip

Tensor = Any

TILE = 4096
"""Rows and columns of a tile of a product: 0.13 GB."""

DENSE_BLOCK = 2**28
"""Elements of a dense block of rows of a sparse matrix: 2 GB."""


# --- devices ---------------------------------------------------------------------------


def device(name: Any) -> Any:
    """The device with this name, or ValueError if it is not available."""
    try:
        found = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(
            f"device must be None, 'cpu', 'cuda', 'cuda:1' etc., got {name!r}"
        ) from None
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (found.index or 0) >= count:
            there = f"{count} CUDA device(s)" if count else "no CUDA device"
            raise ValueError(
                f"device={name!r} is not available: this machine has {there}; "
                "use device='cpu' for the processor"
            )
        found = torch.device("cuda", found.index or 0)
    return found


def lent(array: Any) -> Tensor:
    """An array of any library that supports DLPack as a tensor that shares its memory."""
    return torch.from_dlpack(array)


def normal(seed: int, shape: tuple[int, ...], device: Any) -> Tensor:
    """Standard normal numbers for a seed, generated on the device."""
    generator = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(shape, generator=generator, device=device, dtype=torch.float64)


# --- gathers ---------------------------------------------------------------------------


def gather_entries(U: Tensor, V: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
    """½ (u_i·v_j + u_j·v_i) for every pair."""
    z = gather_products(U, V, rows, cols)
    return z if V is U else 0.5 * (z + gather_products(V, U, rows, cols))


def gather_products(U: Tensor, V: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
    """u_i·v_j for every pair of a row of U and a row of V, summed in float64."""
    if isinstance(rows, Blocks):
        return mapped(lambda i, j: gather_products(U, V, i, j), rows, cols)
    if U.is_cuda:
        return _compiled().gather(U, V, rows, cols, distances=False)
    return _lent(cpu.gather_products, U, V, rows, cols)


def gather_distances(U: Tensor, V: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
    """(u_i − u_j)·(v_i − v_j) for every pair, summed in float64."""
    if U.is_cuda:
        return _compiled().gather(U, V, rows, cols, distances=True)
    return _lent(cpu.gather_distances, U, V, rows, cols)


def _lent(function: Any, *tensors: Tensor) -> Tensor:
    """Apply a CPU function to tensors that share their memory with it; equal ones stay equal."""
    views = {id(tensor): _view(tensor) for tensor in tensors}
    return torch.as_tensor(function(*(views[id(tensor)] for tensor in tensors)))


def _view(tensor: Tensor) -> NDArray[Any]:
    """The memory of a CPU tensor as a NumPy array."""
    return tensor.detach().numpy()


def nearest(
    X: Any, queries: Any, k: int, marks: tuple[Any, Any], device: Any, step: int, *, alone: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The k rows of X nearest to each query, except those of equal marks: see `neighbours`.

    The search uses `step` samples and as many queries at a time.
    """
    found, whole = [], X.shape[0] <= step
    for begin in range(0, max(1, queries.shape[0]), step):
        asked, mine = (
            _dense_there(part[begin : begin + step], device) for part in (queries, marks[1])
        )
        best: tuple[Tensor, Tensor] | None = None
        for first in range(0, X.shape[0], step):
            block, theirs, own = asked, mine, mine
            if not (whole and queries is X):
                block, theirs = (
                    _dense_there(part[first : first + step], device) for part in (X, marks[0])
                )
            if alone and not whole:  # a mark is the index of its row of X
                inside = (mine >= first) & (mine < first + block.shape[0])
                own = torch.where(inside, mine - first, -1)
            few = min(k, block.shape[0])
            search = importlib.import_module("gramian.arrays._torch_neighbours").search
            places, squares = search(block, asked, few, (theirs, own), alone=alone)
            best = _nearer(best, (places + first, squares), k)
        assert best is not None
        found.append(tuple(map(host, best)))
    places, distances = (np.concatenate(part) for part in zip(*found, strict=True))
    return places, distances


def _nearer(
    known: tuple[Tensor, Tensor] | None, more: tuple[Tensor, Tensor], k: int
) -> tuple[Tensor, Tensor]:
    """The k nearest of two sets of candidates; ties are broken in favour of the first."""
    if known is None:
        return more
    places, squares = (torch.cat(part, dim=1) for part in zip(known, more, strict=True))
    squares, order = torch.sort(squares, dim=1, stable=True)
    return places.gather(1, order)[:, :k], squares[:, :k]


def _dense_there(rows: Any, device: Any) -> Tensor:
    return torch.as_tensor(rows.toarray() if hasattr(rows, "nnz") else rows).to(device)


# --- scatters --------------------------------------------------------------------------


def scatter_entries(w: Tensor, V: Tensor, pattern: Any) -> Tensor:
    """Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ) V; a diagonal entry counts once."""
    return csr_product(pattern.indptr, pattern.neighbour, (0.5 * w)[pattern.edge], V)


def scatter_distances(w: Tensor, V: Tensor, pattern: Any) -> Tensor:
    """Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ V: the Laplacian of the weighted pairs, times V."""
    weights = w[pattern.edge]
    ones = torch.ones((pattern.order, 1), dtype=torch.float64, device=V.device)
    degree = csr_product(pattern.indptr, pattern.neighbour, weights, ones)
    return degree.to(V.dtype) * V - csr_product(pattern.indptr, pattern.neighbour, weights, V)


def entries_dense(w: Tensor, pattern: Any) -> Tensor:
    """Σ_e w_e ½ (e_i e_jᵀ + e_j e_iᵀ), dense."""
    return _adjacency(0.5 * w, pattern).toarray()


def laplacian_dense(w: Tensor, pattern: Any) -> Tensor:
    """Σ_e w_e (e_i − e_j)(e_i − e_j)ᵀ, dense."""
    adjacency = _adjacency(w, pattern)
    found = -adjacency.toarray()
    found.diagonal().add_(adjacency.row_sums())
    return found


def _adjacency(w: Tensor, pattern: Any) -> Csr:
    shape = (pattern.order, pattern.order)
    return Csr(w[pattern.edge], pattern.neighbour, pattern.indptr, shape)


_GROUPS = WeakTensorKeyDictionary()


def group_sums(groups: Tensor, values: Tensor, count: int) -> Tensor:
    """The sums of the values, or of the rows, of each group 0..count, in a fixed order."""
    if isinstance(groups, Blocks):
        return sum(group_sums_of(groups, part, values[part], count) for part in groups.parts)
    begin, order = _grouped(groups, count)
    return _summed(begin, order, values)


def _grouped(groups: Tensor, count: int) -> tuple[Tensor, Tensor | None]:
    """The start of each group 0..count and the order that sorts them, stored with the groups."""
    if groups not in _GROUPS:
        _GROUPS[groups] = starts(groups, count), sorting(groups)
    return _GROUPS[groups]


def group_sums_of(groups: Any, part: slice, values: Tensor, count: int) -> Tensor:
    """`group_sums` of a part of the groups and the values of this part."""
    if not isinstance(groups, Stored):
        # The sorted order is cached per tensor, and a slice is a new tensor.
        return group_sums(groups if part == slice(None) else groups[part], values, count)
    order = None if groups.is_sorted else groups.order[part]
    return _summed(starts(groups[part], count), order, values)


def sorting(keys: Tensor) -> Tensor | None:
    """The permutation that sorts the keys, None if they are sorted."""
    if bool((keys[1:] >= keys[:-1]).all()):
        return None
    return torch.argsort(keys, stable=True).int()


def _summed(begin: Tensor, order: Tensor | None, values: Tensor) -> Tensor:
    """The sums of values in this order, grouped consecutively."""
    if values.ndim == 1:
        return segment_sums(begin, values if order is None else taken(values, order))
    ones = torch.ones(values.shape[0], dtype=torch.float32, device=values.device)
    if order is None:
        order = torch.arange(values.shape[0], dtype=torch.int32, device=values.device)
    return csr_product(begin, order, ones, values)


def taken(values: Tensor, places: Tensor) -> Tensor:
    """The values with the given indices."""
    if isinstance(places, Blocks):
        return mapped(lambda rows: taken(values, rows), places)
    return values.index_select(0, places)


def block_products(
    w: Blocks, rows: Stored, cols: Stored, P: Tensor, Q: Tensor
) -> tuple[Tensor, Tensor]:
    """G Q and Gᵀ P for the sparse G of entries w with sorted rows, block by block.

    A row that continues in the next block is summed in two parts, always the same.
    """
    GQ, GP = torch.zeros_like(P), torch.zeros_like(Q)
    for part in rows.parts:
        i, j, order, values = rows[part], cols[part], cols.order[part], w[part]
        first, last = (int(rows.held[k]) for k in (part.start, part.stop - 1))
        some = slice(first, last + 1)
        GQ[some] += csr_product(starts(i - first, last + 1 - first), j, values, Q)
        GP += csr_product(starts(j, Q.shape[0]), taken(i, order), taken(values, order), P)
    return GQ, GP


def segment_sums(indptr: Tensor, values: Tensor) -> Tensor:
    """The sums of consecutive values, from indptr[i] to indptr[i + 1]."""
    places = torch.zeros(values.shape[0], dtype=torch.int32, device=values.device)
    one = torch.ones((1, 1), dtype=torch.float64, device=values.device)
    return csr_product(indptr, places, values, one)[:, 0]


def pattern(rows: Tensor, cols: Tensor, order: int) -> cpu.Pattern:
    """Every pair as two half-edges, sorted by row and then neighbour: see `cpu.Pattern`."""
    begin, end = torch.cat([rows, cols]).long(), torch.cat([cols, rows]).long()
    half_edge = torch.argsort(begin * order + end, stable=True)
    edge = (half_edge % rows.shape[0]).int()
    return cpu.Pattern(starts(begin, order), end[half_edge].int(), edge)


def starts(keys: Tensor, count: int) -> Tensor:
    """The first position of each key 0..count in a sorted array of keys."""
    found = torch.zeros(count + 1, dtype=torch.int64, device=keys.device)
    torch.cumsum(torch.bincount(keys, minlength=count), 0, out=found[1:])
    return found


def turned(
    indptr: Tensor, indices: Tensor, shape: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """The transposed pattern: its row starts, its columns, and the index of each entry."""
    each = torch.arange(shape[0], device=indices.device, dtype=torch.int32)
    rows = torch.repeat_interleave(each, torch.diff(indptr))
    begin, order = _grouped(indices, shape[1])
    if order is None:
        order = torch.arange(indices.shape[0], device=indices.device, dtype=torch.int32)
    return begin, taken(rows, order), order


# --- sparse matrices -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Csr:
    """A sparse matrix in CSR format with the operations that solvers use."""

    data: Tensor
    indices: Tensor
    indptr: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: Any, device: Any) -> Csr:
        """From a SciPy matrix."""
        matrix = matrix.tocsr()
        arrays = matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)
        data, indices, indptr = (torch.as_tensor(np.array(part)).to(device) for part in arrays)
        return cls(data, indices, indptr, tuple(matrix.shape))

    def to_scipy(self) -> Any:
        """As a SciPy matrix."""
        return cpu.csr(host(self.data), host(self.indices), host(self.indptr), self.shape)

    @property
    def nnz(self) -> int:
        return int(self.data.shape[0])

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    def __matmul__(self, V: Tensor) -> Tensor:
        columns = V[:, None] if V.ndim == 1 else V
        product = csr_product(self.indptr, self.indices, self.data, columns)
        return product[:, 0] if V.ndim == 1 else product

    def __abs__(self) -> Csr:
        return Csr(self.data.abs(), self.indices, self.indptr, self.shape)

    def rows(self, first: int, last: int) -> Csr:
        """A range of its rows."""
        last = min(last, self.shape[0])
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        starts = self.indptr[first : last + 1] - begin
        inside = slice(begin, end)
        return Csr(self.data[inside], self.indices[inside], starts, (last - first, self.shape[1]))

    def tocsr(self) -> Csr:
        return self

    def row_sums(self) -> Tensor:
        return segment_sums(self.indptr, self.data)

    @cached_property
    def T(self) -> Csr:
        begin, rows, order = turned(self.indptr, self.indices, self.shape)
        return Csr(self.data[order], rows, begin, self.shape[::-1])

    def toarray(self) -> Tensor:
        each = torch.arange(self.shape[0], device=self.data.device)
        rows = torch.repeat_interleave(each, torch.diff(self.indptr))
        found = torch.zeros(self.shape, dtype=self.data.dtype, device=self.data.device)
        return found.index_put_((rows, self.indices.long()), self.data, accumulate=True)


def gram(matrix: Csr) -> Tensor:
    """BᵀB, dense, from dense blocks of rows: its lower tiles, which the upper ones repeat."""
    n = matrix.shape[1]
    found = torch.zeros((n, n), dtype=torch.float64, device=matrix.data.device)
    step, tiles = max(1, DENSE_BLOCK // n), _lower_tiles(n)
    for first in range(0, matrix.shape[0], step):
        block = matrix.rows(first, first + step).toarray()
        for rows, cols in tiles:
            found[rows, cols].addmm_(block[:, rows].T, block[:, cols])
    for rows, cols in tiles:
        if rows != cols:
            found[cols, rows] = found[rows, cols].T
    return found


def _lower_tiles(n: int) -> list[tuple[slice, slice]]:
    """The tiles of a matrix of order n that are on or below the diagonal."""
    spans = [slice(first, min(first + TILE, n)) for first in range(0, n, TILE)]
    return [(rows, cols) for k, rows in enumerate(spans) for cols in spans[: k + 1]]


@contextmanager
def room() -> Iterator[None]:
    """Convert torch's out-of-memory error to a MemoryError with numbers."""
    try:
        yield
    except torch.OutOfMemoryError:
        free, total = torch.cuda.mem_get_info()
        raise MemoryError(
            f"the device has {total / 1e9:.1f} GB, of which {free / 1e9:.1f} GB are free, but this "
            "needs more: limit the number of columns (rank=), use less data, or compute on the "
            "processor (device=None)"
        ) from None


def free_memory(device: Any) -> float:
    """Free bytes on a device, within the limit of this process."""
    if device.type != "cuda":
        return min(memory(), device_limit())
    mine = torch.cuda.memory_allocated(device)
    idle = torch.cuda.memory_reserved(device) - mine  # cached memory of deleted tensors
    allowed = max(device_limit() - mine, 0.0)
    return float(min(torch.cuda.mem_get_info(device)[0] + idle, allowed))


def csr(data: Tensor, indices: Tensor, indptr: Tensor, shape: tuple[int, int]) -> Csr:
    """The sparse matrix of these arrays, which are shared."""
    return Csr(data, indices, indptr, shape)


def sparse_product(matrix: Csr, V: Tensor) -> Tensor:
    """A V."""
    return matrix @ V


def csr_product(indptr: Tensor, indices: Tensor, data: Tensor, V: Tensor) -> Tensor:
    """Row i is Σ data_k v_{indices_k} over k from indptr[i] to indptr[i + 1], in V's precision."""
    if V.is_cuda:
        return _compiled().csr_product(indptr, indices, data, V)
    shape = (indptr.shape[0] - 1, V.shape[0])
    arrays = _view(data.to(V.dtype)), _view(indices), _view(indptr)
    return torch.as_tensor(cpu.sparse_product(cpu.csr(*arrays, shape), _view(V)))


def _compiled() -> Any:
    return importlib.import_module("gramian.arrays._triton")
