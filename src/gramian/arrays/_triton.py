"""GPU kernels: products of rows with given indices, and products of a sparse matrix.

Each row of a result is computed by one program, or by a fixed number of programs whose sums are
added in a fixed order: results are bitwise reproducible.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch.utils.weak import WeakTensorKeyDictionary

Tensor = Any

COLUMNS, LOADED, MAX_ENTRIES = 64, 512, 256
"""Columns per program, numbers that one warp loads at once, and entries of a sparse row at most.
With several warps, or more numbers at once, gathers and products take 1.5 to 3 times as long on an
H200 (MovieLens 1M with 24 to 196 columns, graphs of 12 and 40 neighbours)."""

SHORT_ROW, ROWS = 8, 128
"""Mean number of entries per row up to which a sparse matrix-vector product processes `ROWS` rows
per program."""

MAX_ROW_PIECE = 1024
"""Entries of a sparse row per program; longer rows are split into pieces."""

_PIECES = WeakTensorKeyDictionary()


@triton.jit(do_not_specialize=["count", "width"])
def _gather(
    U, V, rows, cols, z, count, width, stride_u, stride_v,
    DISTANCES: tl.constexpr, SAME: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    e = tl.program_id(0).to(tl.int64) * P + tl.arange(0, P)
    live = e < count
    i = tl.load(rows + e, mask=live, other=0).to(tl.int64)
    j = tl.load(cols + e, mask=live, other=0).to(tl.int64)
    total = tl.zeros((P,), dtype=tl.float64)
    for start in range(0, width, R):
        c = start + tl.arange(0, R)
        inside = live[:, None] & (c < width)[None, :]
        if DISTANCES:
            u = tl.load(U + i[:, None] * stride_u + c[None, :], mask=inside, other=0.0)
            u -= tl.load(U + j[:, None] * stride_u + c[None, :], mask=inside, other=0.0)
            if SAME:
                v = u
            else:
                v = tl.load(V + i[:, None] * stride_v + c[None, :], mask=inside, other=0.0)
                v -= tl.load(V + j[:, None] * stride_v + c[None, :], mask=inside, other=0.0)
        else:
            u = tl.load(U + i[:, None] * stride_u + c[None, :], mask=inside, other=0.0)
            v = tl.load(V + j[:, None] * stride_v + c[None, :], mask=inside, other=0.0)
        total += tl.sum((u * v).to(tl.float64), axis=1)
    tl.store(z + e, total, mask=live)


@triton.jit(do_not_specialize=["width"])
def _product(
    starts, ends, indices, data, V, out, width, stride_v, stride_out,
    E: tl.constexpr, R: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * R + tl.arange(0, R)
    inside = c < width
    begin, end = tl.load(starts + row), tl.load(ends + row)
    total = tl.zeros((R,), dtype=TYPE)
    for k in range(begin, end, E):
        e = k + tl.arange(0, E)
        live = e < end
        j = tl.load(indices + e, mask=live, other=0).to(tl.int64)
        w = tl.load(data + e, mask=live, other=0.0).to(TYPE)
        v = tl.load(
            V + j[:, None] * stride_v + c[None, :], mask=live[:, None] & inside[None, :], other=0.0
        )
        total += tl.sum(w[:, None] * v, axis=0)
    tl.store(out + row * stride_out + c, total, mask=inside)


@triton.jit(do_not_specialize=["count"])
def _short(starts, ends, indices, data, v, out, count, P: tl.constexpr, TYPE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * P + tl.arange(0, P)
    live = row < count
    begin = tl.load(starts + row, mask=live, other=0)
    length = tl.load(ends + row, mask=live, other=0) - begin
    total = tl.zeros((P,), dtype=TYPE)
    for k in range(0, tl.max(length, axis=0)):
        inside = k < length
        j = tl.load(indices + begin + k, mask=inside, other=0).to(tl.int64)
        w = tl.load(data + begin + k, mask=inside, other=0.0).to(TYPE)
        total += w * tl.load(v + j, mask=inside, other=0.0)
    tl.store(out + row, total, mask=live)


def gather(U: Tensor, V: Tensor, rows: Tensor, cols: Tensor, *, distances: bool) -> Tensor:
    """u_i·v_j, or (u_i − u_j)·(v_i − v_j), for every pair, in float64."""
    same = V is U
    U = U.contiguous()
    V = U if same else V.contiguous()
    z = torch.empty(rows.shape[0], dtype=torch.float64, device=U.device)
    width = U.shape[1]
    if width == 0 or rows.shape[0] == 0:
        return z.zero_()
    block = min(COLUMNS, triton.next_power_of_2(width))
    pairs = LOADED // block
    _gather[(triton.cdiv(rows.shape[0], pairs),)](
        U, V, rows, cols, z, rows.shape[0], width, U.stride(0), V.stride(0),
        DISTANCES=distances, SAME=same, P=pairs, R=block, num_warps=1,
    )  # fmt: skip
    return z


def csr_product(indptr: Tensor, indices: Tensor, data: Tensor, V: Tensor) -> Tensor:
    """Row i is Σ data_k v_{indices_k} over k from indptr[i] to indptr[i + 1]."""
    V = V.contiguous()
    starts, ends, joined, each, ones = _pieces(indptr)
    found = _summed(starts, ends, indices, data, V)
    return found if joined is None else _summed(joined[:-1], joined[1:], each, ones, found)


def _summed(starts: Tensor, ends: Tensor, indices: Tensor, data: Tensor, V: Tensor) -> Tensor:
    count, width = starts.shape[0], V.shape[1]
    out = torch.empty((count, width), dtype=V.dtype, device=V.device)
    if count == 0 or width == 0:
        return out
    kind = tl.float32 if V.dtype == torch.float32 else tl.float64
    if width == 1 and data.shape[0] <= SHORT_ROW * count:
        _short[(triton.cdiv(count, ROWS),)](
            starts, ends, indices, data, V, out, count, P=ROWS, TYPE=kind
        )
        return out
    block = min(COLUMNS, triton.next_power_of_2(width))
    _product[(count, triton.cdiv(width, block))](
        starts, ends, indices, data, V, out, width, V.stride(0), out.stride(0),
        E=min(LOADED // block, MAX_ENTRIES), R=block, TYPE=kind, num_warps=1,
    )  # fmt: skip
    return out


def _pieces(indptr: Tensor) -> tuple[Any, ...]:
    """Start and end of the pieces of the rows, and the pieces of each row with weights 1.

    Empty if no row is long. Cached for each pattern as long as its tensor exists.
    """
    if indptr not in _PIECES:
        _PIECES[indptr] = _cut(indptr.long())
    # Caching a view of the tensor as its value would keep the tensor alive.
    return _PIECES[indptr] or (indptr[:-1], indptr[1:], None, None, None)


def _cut(indptr: Tensor) -> tuple[Any, ...] | None:
    counts = torch.diff(indptr)
    pieces = torch.clamp((counts + MAX_ROW_PIECE - 1) // MAX_ROW_PIECE, min=1)
    if counts.numel() == 0 or int(pieces.max()) <= 1:
        return None
    row = torch.repeat_interleave(torch.arange(counts.shape[0], device=indptr.device), pieces)
    joined = torch.zeros(counts.shape[0] + 1, dtype=torch.int64, device=indptr.device)
    torch.cumsum(pieces, 0, out=joined[1:])
    nth = torch.arange(row.shape[0], device=indptr.device) - joined[row]
    starts = indptr[row] + nth * MAX_ROW_PIECE
    ends = torch.minimum(starts + MAX_ROW_PIECE, indptr[row + 1])
    each = torch.arange(row.shape[0], device=indptr.device, dtype=torch.int32)
    return starts, ends, joined, each, torch.ones_like(each, dtype=torch.float64)
