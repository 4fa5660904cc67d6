"""Compiled kernels; importing this module imports numba, so `cpu` imports it only on demand.

Each kernel computes a part of its output, from `start` to `stop`, and releases the GIL; `cpu` runs
the parts in threads. Compiling a kernel this way takes 0.5 s; with numba's own ``parallel=True`` it
took 1.5 to 2 s. These rules hold throughout:

- each output element is written by one thread and summed in a fixed order, so that results do
  not depend on the number of threads;
- ``fastmath`` allows reassociation and fused multiply-add only, which lets the sums over columns
  use vector registers with the usual error bound and does not affect NaN and infinity;
- if consecutive rows of the factors are `far` apart, the rows needed `AHEAD` steps later are
  prefetched; a scatter also collects the weights of a row in a separate loop that overlaps its
  cache misses. At rank 32 this halves the time of the plain loops;
- indices are cast to unsigned, which avoids numba's test for negative ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.common.signals import undisturbed

with undisturbed():
    import numba
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

from gramian.arrays._cache import cached
from gramian.arrays.cpu import CACHE_LINE

AHEAD = 16
"""Pairs or entries by which rows are prefetched ahead of their use."""


def compiled(function: Callable[..., Any], *flags: str) -> Any:
    """`numba.njit`, with the on-disk cache; `flags` are additional ``fastmath`` flags.

    Ctrl-C waits for a compilation.
    """
    kernel = cached(_njit(function, *flags))
    kernel.compile = undisturbed()(kernel.compile)
    return kernel


def inner(function: Callable[..., Any]) -> Any:
    """`numba.njit` for functions that only other kernels call; it is inlined there, not cached."""
    return _njit(function, no_cpython_wrapper=True)


def _njit(function: Callable[..., Any], *flags: str, **more: Any) -> Any:
    options: dict[str, Any] = {"fastmath": {"reassoc", "contract", *flags}, **more}
    return numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)  # type: ignore


@intrinsic
def _prefetch(typing_context: Any, array: Any, offset: Any) -> Any:
    """Prefetch the cache line of element `offset` of a C-contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        flag = ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address.type],
            ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag]),
        )
        read, keep_in_cache, data_not_code = flag(0), flag(3), flag(1)
        builder.call(prefetch, [address, read, keep_in_cache, data_not_code])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@inner
def _prefetch_row(array: Any, row: Any) -> None:
    rank = array.shape[1]
    first = np.intp(row) * rank
    for column in range(0, rank, CACHE_LINE // array.itemsize):
        _prefetch(array, first + column)  # type: ignore[call-arg]
    # Rows rarely start on a cache line, so the last element may be on another one.
    _prefetch(array, first + rank - 1)  # type: ignore[call-arg]


@compiled
def gather_products(
    start: int, stop: int, U: Any, V: Any, far: bool, rows: Any, cols: Any, z: Any
) -> None:
    """z_e = u_i·v_j for start ≤ e < stop."""
    last, rank = rows.size - 1, U.shape[1]
    for e in range(start, stop):
        if far:
            ahead = min(e + AHEAD, last)
            _prefetch_row(U, rows[ahead])
            _prefetch_row(V, cols[ahead])
        i, j = np.uint32(rows[e]), np.uint32(cols[e])
        total = 0.0
        for c in range(rank):
            total += np.float64(U[i, c]) * np.float64(V[j, c])
        z[e] = total


@compiled
def gather_distances(
    start: int, stop: int, U: Any, V: Any, same: bool, far: bool, rows: Any, cols: Any, z: Any
) -> None:
    """z_e = (u_i − u_j)·(v_i − v_j) for start ≤ e < stop; `same`: U is V."""
    last, rank = rows.size - 1, U.shape[1]
    for e in range(start, stop):
        if far:
            ahead = min(e + AHEAD, last)
            _prefetch_row(U, rows[ahead])
            _prefetch_row(U, cols[ahead])
            if not same:
                _prefetch_row(V, rows[ahead])
                _prefetch_row(V, cols[ahead])
        i, j = np.uint32(rows[e]), np.uint32(cols[e])
        total = 0.0
        if same:
            for c in range(rank):
                difference = np.float64(U[i, c]) - np.float64(U[j, c])
                total += difference * difference
        else:
            for c in range(rank):
                u_difference = np.float64(U[i, c]) - np.float64(U[j, c])
                total += u_difference * (np.float64(V[i, c]) - np.float64(V[j, c]))
        z[e] = total


@inner
def _keep(w: Any, neighbour: Any, edge: Any, kept: Any, weights: Any) -> int:
    """The half-edges of nonzero weight: their neighbours, their weights and their number."""
    count = 0
    for h in range(edge.size):
        weight = w[edge[h]]
        kept[count], weights[count] = neighbour[h], weight
        count += weight != 0.0
    return count


@compiled
def scatter_distances(
    start: int, stop: int, w: Any, V: Any, far: bool, blocks: Any, indptr: Any, neighbour: Any,
    edge: Any, out: Any,
) -> None:  # fmt: skip
    """out_i = Σ w_e (v_i − v_j) over the half-edges (j, e) of the rows of some blocks.

    Skips half-edges of weight 0, such as those of an inactive hinge.
    """
    rank, longest = V.shape[1], 0
    for i in range(blocks[start], blocks[stop]):
        longest = max(longest, indptr[i + 1] - indptr[i])
    kept, weights = np.empty(longest + 1, neighbour.dtype), np.empty(longest + 1, V.dtype)
    for i in range(blocks[start], blocks[stop]):
        for c in range(rank):
            out[i, c] = 0
        mine = slice(indptr[i], indptr[i + 1])
        count = _keep(w, neighbour[mine], edge[mine], kept, weights)
        h = 0
        while h + 3 < count:
            if far:
                for ahead in range(4):
                    _prefetch_row(V, kept[min(h + ahead + AHEAD, count - 1)])
            j0, j1 = np.uint32(kept[h]), np.uint32(kept[h + 1])
            j2, j3 = np.uint32(kept[h + 2]), np.uint32(kept[h + 3])
            w0, w1, w2, w3 = weights[h], weights[h + 1], weights[h + 2], weights[h + 3]
            for c in range(rank):
                own = V[i, c]
                left = w0 * (own - V[j0, c]) + w1 * (own - V[j1, c])
                out[i, c] += left + w2 * (own - V[j2, c]) + w3 * (own - V[j3, c])
            h += 4
        while h < count:
            j, weight = np.uint32(kept[h]), weights[h]
            for c in range(rank):
                out[i, c] += weight * (V[i, c] - V[j, c])
            h += 1


@compiled
def differences(start: int, stop: int, values: Any, more: Any, less: Any, out: Any) -> None:
    """out_e = values[more_e] − values[less_e] for start ≤ e < stop."""
    for e in range(start, stop):
        out[e] = values[np.uint32(more[e])] - values[np.uint32(less[e])]


@compiled
def add_differences(w: Any, more: Any, less: Any, out: Any) -> None:
    """Add w_e to out[more_e] and subtract it from out[less_e]; skips zeros."""
    for e in range(w.size):
        if w[e] != 0.0:
            out[np.uint32(more[e])] += w[e]
            out[np.uint32(less[e])] -= w[e]


@compiled
def csr_product(
    start: int, stop: int, V: Any, far: bool, blocks: Any, indptr: Any, indices: Any, data: Any,
    out: Any,
) -> None:  # fmt: skip
    """out_i = Σ a_ij v_j over the rows of some blocks, four entries at a time."""
    last, rank = indices.size - 1, V.shape[1]
    for i in range(blocks[start], blocks[stop]):
        for c in range(rank):
            out[i, c] = 0.0
        h, end = indptr[i], indptr[i + 1]
        while h + 3 < end:
            if far:
                for ahead in range(4):
                    _prefetch_row(V, indices[min(h + ahead + AHEAD, last)])
            j0, j1 = np.uint32(indices[h]), np.uint32(indices[h + 1])
            j2, j3 = np.uint32(indices[h + 2]), np.uint32(indices[h + 3])
            w0, w1, w2, w3 = data[h], data[h + 1], data[h + 2], data[h + 3]
            for c in range(rank):
                left = w0 * V[j0, c] + w1 * V[j1, c]
                out[i, c] += left + w2 * V[j2, c] + w3 * V[j3, c]
            h += 4
        while h < end:
            j, weight = np.uint32(indices[h]), data[h]
            for c in range(rank):
                out[i, c] += weight * V[j, c]
            h += 1


@inner
def _take_off(B: Any, j: int, h: int, stop: int, indices: Any, data: Any) -> None:
    """B_j −= Σ data_h B_i over the entries from h on, four at a time to reduce memory traffic."""
    rank = B.shape[1]
    while h + 3 < stop:
        i0, i1 = np.uint32(indices[h]), np.uint32(indices[h + 1])
        i2, i3 = np.uint32(indices[h + 2]), np.uint32(indices[h + 3])
        w0, w1, w2, w3 = data[h], data[h + 1], data[h + 2], data[h + 3]
        for c in range(rank):
            B[j, c] -= w0 * B[i0, c] + w1 * B[i1, c] + w2 * B[i2, c] + w3 * B[i3, c]
        h += 4
    while h < stop:
        i, weight = np.uint32(indices[h]), data[h]
        for c in range(rank):
            B[j, c] -= weight * B[i, c]
        h += 1


@compiled
def solve_triangular(indptr: Any, indices: Any, data: Any, upper: bool, B: Any) -> None:
    """B ← C⁻¹B for a lower triangular C by rows, each with its diagonal entry last, or C⁻ᵀB for
    one by columns (`upper`), each with its diagonal entry first.
    """
    n = B.shape[0]
    for k in range(n):
        j = n - 1 - k if upper else k
        first, stop = indptr[j] + upper, indptr[j + 1] - (not upper)
        _take_off(B, j, first, stop, indices, data)
        pivot = data[first - 1] if upper else data[stop]
        for c in range(B.shape[1]):
            B[j, c] /= pivot


@inner
def _add_gram(B: Any, count: int, v: Any, out: Any) -> None:
    """out += BᵀBv, four rows at a time, in the precision of B."""
    rank, whole, zero = B.shape[1], count - count % 4, B.dtype.type(0)
    for e in range(0, whole, 4):
        s0, s1, s2, s3 = zero, zero, zero, zero
        for c in range(rank):
            s0 += B[e, c] * v[c]
            s1 += B[e + 1, c] * v[c]
            s2 += B[e + 2, c] * v[c]
            s3 += B[e + 3, c] * v[c]
        for c in range(rank):
            out[c] += s0 * B[e, c] + s1 * B[e + 1, c] + s2 * B[e + 2, c] + s3 * B[e + 3, c]
    for e in range(whole, count):
        s0 = zero
        for c in range(rank):
            s0 += B[e, c] * v[c]
        for c in range(rank):
            out[c] += s0 * B[e, c]


@inner
def _collect(
    B: Any, y: Any, first: int, stop: int, neighbour: Any, scale: Any, targets: Any, roots: Any,
    one: Any, Q: Any,
) -> int:  # fmt: skip
    """The rows (s_e q_j, r_e) and t_e − r_e c_j of the entries with nonzero s_e, r_e or t_e.

    r_e is the coefficient of the offsets b_i and c_j. Returns the number of rows: entries that are
    held out have none.
    """
    last, count, zero = B.shape[1] - 1, 0, B.dtype.type(0)
    for h in range(first, stop):
        s = scale[h] if scale.size > 0 else B.dtype.type(1)
        r = roots[h] if roots.size > 0 else one
        if s == zero and r == zero and targets[h] == zero:
            continue
        j = np.uint32(neighbour[h])
        for c in range(last):
            B[count, c] = s * Q[j, c]
        B[count, last], y[count] = r, targets[h] - r * Q[j, last]
        count += 1
    return count


@inner
def _start_row(B: Any, y: Any, count: int, p: Any, residual: Any, mass: Any) -> float:
    """Add Bᵀ(y − Bp) and the diagonal of BᵀB; return half the squared norm of y − Bp.

    Four rows at a time to reduce memory traffic.
    """
    rank, lost, whole = B.shape[1], 0.0, count - count % 4
    for e in range(0, whole, 4):
        s0, s1, s2, s3 = y[e], y[e + 1], y[e + 2], y[e + 3]
        for c in range(rank):
            s0 -= B[e, c] * p[c]
            s1 -= B[e + 1, c] * p[c]
            s2 -= B[e + 2, c] * p[c]
            s3 -= B[e + 3, c] * p[c]
        for c in range(rank):
            b0, b1, b2, b3 = B[e, c], B[e + 1, c], B[e + 2, c], B[e + 3, c]
            residual[c] += s0 * b0 + s1 * b1 + s2 * b2 + s3 * b3
            mass[c] += b0 * b0 + b1 * b1 + b2 * b2 + b3 * b3
        lost += 0.5 * np.float64(s0 * s0 + s1 * s1 + s2 * s2 + s3 * s3)
    for e in range(whole, count):
        left = y[e]
        for c in range(rank):
            left -= B[e, c] * p[c]
        for c in range(rank):
            residual[c] += left * B[e, c]
            mass[c] += B[e, c] * B[e, c]
        lost += 0.5 * np.float64(left * left)
    return lost


@inner
def _add_product(gram: Any, v: Any, out: Any) -> None:
    """out += gram v, for the columns of gram."""
    for k in range(gram.shape[0]):
        for c in range(gram.shape[1]):
            out[c] += v[k] * gram[k, c]


@compiled
def refit_rows(
    start: int, stop: int, blocks: Any, indptr: Any, neighbour: Any, scale: Any, targets: Any,
    roots: Any, penalty: Any, stiffness: Any, gram: Any, free: bool, steps: int, Q: Any, P: Any,
    lost: Any, y: Any, B: Any, work: Any,
) -> None:  # fmt: skip
    """Conjugate gradient steps on each row of P, from its current value; see `objectives.halves`.

    The rows of Q paired with a row of P are copied to B once and used in all steps. If B has no
    room for them, they are copied in parts and again in every step. y has as many elements as B has
    rows, `work` has six rows. They are arguments as compiling an allocation takes 0.4 s.
    """
    last, room, dtype = P.shape[1] - 1, B.shape[0], P.dtype  # the last column: the offsets
    residual, slope, step, mass, bent, ridge = work[0], work[1], work[2], work[3], work[4], work[5]
    one = dtype.type(1) if free else dtype.type(0)
    for i in range(blocks[start], blocks[stop]):
        first, end, p = indptr[i], indptr[i + 1], P[i]
        for c in range(last + 1):
            ridge[c] = penalty[c] * stiffness[i] if c < last else penalty[c]
            mass[c] = ridge[c]
            bent[c] = 0
        _add_product(gram, p, bent)
        lost[i] = 0.0
        for c in range(last + 1):
            lost[i] += 0.5 * np.float64(p[c]) * np.float64(bent[c] + ridge[c] * p[c])
            residual[c] = -bent[c] - ridge[c] * p[c]
        for c in range(gram.shape[0]):
            mass[c] += gram[c, c]
        for low in range(first, end, room):
            until = min(low + room, end)
            count = _collect(B, y, low, until, neighbour, scale, targets, roots, one, Q)
            lost[i] += _start_row(B, y, count, p, residual, mass)
        rho = dtype.type(0)
        for c in range(last + 1):
            step[c] = residual[c] / mass[c]
            rho += residual[c] * step[c]
        for _ in range(steps):
            for c in range(last + 1):
                bent[c] = ridge[c] * step[c]
            _add_product(gram, step, bent)
            for low in range(first, end, room):
                if end - first > room:
                    until = min(low + room, end)
                    count = _collect(B, y, low, until, neighbour, scale, targets, roots, one, Q)
                _add_gram(B, count, step, bent)
            curvature = dtype.type(0)
            for c in range(last + 1):
                curvature += step[c] * bent[c]
            if not (rho > 0.0 and curvature > 0.0):
                break
            length, after = rho / curvature, dtype.type(0)
            for c in range(last + 1):
                p[c] += length * step[c]
                residual[c] -= length * bent[c]
                slope[c] = residual[c] / mass[c]
                after += residual[c] * slope[c]
            turn = after / rho
            for c in range(last + 1):
                step[c] = slope[c] + turn * step[c]
            rho = after


# --- small systems of single rows (`row_systems`) ------------------------------------


@inner
def _decompose(A: Any) -> None:
    """A ← its lower Cholesky factor, in place; the pivots are positive by construction."""
    order = A.shape[0]
    for j in range(order):
        for k in range(j):
            for i in range(j, order):
                A[i, j] -= A[i, k] * A[j, k]
        pivot = np.sqrt(A[j, j])
        for i in range(j, order):
            A[i, j] /= pivot


@inner
def _substitute(A: Any, W: Any) -> None:
    """W ← A⁻¹W for a lower triangular A."""
    for a in range(A.shape[0]):
        for k in range(a):
            for c in range(W.shape[1]):
                W[a, c] -= A[a, k] * W[k, c]
        for c in range(W.shape[1]):
            W[a, c] /= A[a, a]


@compiled
def decompose_rows(
    start: int, stop: int, indptr: Any, neighbour: Any, weights: Any, base: Any, V: Any,
    places: Any, out: Any,
) -> None:  # fmt: skip
    """The rows W of each system's inverse; see `row_systems`."""
    rank = V.shape[1]
    scratch = np.empty((rank, rank))
    for i in range(start, stop):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        order = min(count, rank)
        A, W = scratch[:order, :order], out[places[i] : places[i + 1]]
        A[:] = 0.0
        for c in range(order):
            A[c, c] = base[i]
        if count <= rank:
            for a in range(count):
                j = np.uint32(neighbour[first + a])
                root = np.sqrt(weights[first + a] / base[i])
                for c in range(rank):
                    W[a, c] = root * V[j, c]
            for a in range(count):
                for b in range(a + 1):
                    dot = 0.0
                    for c in range(rank):
                        dot += np.float64(W[a, c]) * np.float64(W[b, c])
                    A[a, b] += base[i] * dot
        else:
            W[:] = 0.0
            for c in range(rank):
                W[c, c] = 1.0
            for h in range(first, first + count):
                j = np.uint32(neighbour[h])
                for a in range(rank):
                    for b in range(a + 1):
                        A[a, b] += weights[h] * np.float64(V[j, a]) * np.float64(V[j, b])
        _decompose(A)
        _substitute(A, W)


@compiled
def solve_rows(
    start: int, stop: int, indptr: Any, base: Any, places: Any, W: Any, R: Any, out: Any
) -> None:
    """M_i⁻¹r_i for every row."""
    rank = R.shape[1]
    none, one = R.dtype.type(0.0), R.dtype.type(1.0)
    for i in range(start, stop):
        few = indptr[i + 1] - indptr[i] <= rank
        own = one / R.dtype.type(base[i]) if few else none
        for c in range(rank):
            out[i, c] = own * R[i, c]
        for a in range(places[i], places[i + 1]):
            dot = none
            for c in range(rank):
                dot += W[a, c] * R[i, c]
            dot = -dot if few else dot
            for c in range(rank):
                out[i, c] += dot * W[a, c]


@compiled
def sweep_rows(indptr: Any, indices: Any, data: Any, lengths: Any, sweeps: int, L: Any) -> None:
    """Update the rows in order, each with the current values of the others."""
    rows, rank = L.shape
    g = np.empty(rank)
    for _ in range(sweeps):
        for i in range(rows):
            for k in range(rank):
                g[k] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                c, j = data[p], indices[p]
                for k in range(rank):
                    g[k] += c * L[j, k]
            square = 0.0
            for k in range(rank):
                square += g[k] * g[k]
            if square > 0.0:
                scale = -lengths[i] / np.sqrt(square)
                for k in range(rank):
                    L[i, k] = scale * g[k]
