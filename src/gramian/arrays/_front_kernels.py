"""Compiled kernels of the multifrontal factorisation (`fronts`); imports numba.

Compiling them takes 9 s, with NumPy's functions it took 21 s: subtracting one array of two
dimensions from another 4.5 s (of which most is the message about shapes that do not match), a sort
1.2 s, each layout of the factors of a product 0.7 s. So arrays are filled, copied and subtracted by
loops, and the only product is `_product`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled, inner

BLOCK, STRIP = 32, 256
"""Columns eliminated at a time, and columns updated at a time."""

MAX_LOOP_MULTIPLICATIONS = 4000
"""Multiplications below which a product is computed by explicit loops."""


@inner
def _filled(count: int, value: int) -> Any:
    """An array of equal numbers."""
    found = np.empty(count, np.int64)
    for i in range(count):
        found[i] = value
    return found


@inner
def _product(A: Any, B: Any) -> Any:
    """AB by BLAS, for arrays in C order."""
    return np.dot(A, B)


@compiled
def elimination_tree(indptr: Any, indices: Any) -> Any:
    """The parent of each column, −1 for a root, of a symmetric pattern by rows (Liu)."""
    n = indptr.size - 1
    parent, above = _filled(n, -1), _filled(n, -1)
    for i in range(n):
        for h in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[h])
            while j != -1 and j < i:
                up = above[j]
                above[j] = i
                if up == -1:
                    parent[j] = i
                j = up
    return parent


@compiled
def postorder(parent: Any) -> Any:
    """The columns in postorder: all descendants of a column directly before it."""
    n = parent.size
    first, following = _filled(n, -1), _filled(n, -1)
    for j in range(n - 1, -1, -1):
        if parent[j] >= 0:
            following[j] = first[parent[j]]
            first[parent[j]] = j
    order, stack, count = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        stack[0], top = root, 0
        while top >= 0:
            j = stack[top]
            child = first[j]
            if child >= 0:
                first[j] = following[child]
                top += 1
                stack[top] = child
            else:
                order[count] = j
                count += 1
                top -= 1
    return order


@compiled
def column_counts(indptr: Any, indices: Any, parent: Any) -> Any:
    """Number of entries of each column of the factor, including the diagonal."""
    n = parent.size
    counts, seen = _filled(n, 1), _filled(n, -1)
    for i in range(n):
        seen[i] = i
        for h in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[h])
            while j < i and seen[j] != i:
                counts[j] += 1
                seen[j] = i
                j = parent[j]
    return counts


@compiled
def merged(parent: Any, counts: Any, waste: float) -> Any:
    """First columns of groups that form one front each, with at most a fraction `waste` of zeros.

    Columns with the same rows below them form a group, and the last child of a group is merged into
    it if that adds few zeros.
    """
    n = parent.size
    start, width, height = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    held, top = np.empty(n, np.float64), -1
    for j in range(n):
        begin, wide, high, own = j, 1, counts[j], float(counts[j])
        while top >= 0 and begin <= parent[begin - 1] <= j:
            w, k = width[top] + wide, width[top] + high
            room = w * k - 0.5 * w * (w - 1)
            filled = own + held[top]
            if room - filled > waste * room:
                break
            begin, wide, high, own = start[top], w, k, filled
            top -= 1
        top += 1
        start[top], width[top], height[top], held[top] = begin, wide, high, own
    return start[: top + 1]


@compiled
def rows_below(indptr: Any, indices: Any, starts: Any, sizes: Any, parents: Any) -> Any:
    """The rows below each group of columns, in no order, concatenated; and their boundaries."""
    n, groups = indptr.size - 1, sizes.size
    ends = np.zeros(groups + 1, np.int64)
    for s in range(groups):
        ends[s + 1] = ends[s] + sizes[s]
    rows, seen = np.empty(ends[groups], np.int64), _filled(n, -1)
    child, following = _filled(groups, -1), _filled(groups, -1)
    for s in range(groups):
        last, count = starts[s + 1] - 1, ends[s]
        for j in range(starts[s], last + 1):
            for h in range(indptr[j], indptr[j + 1]):
                i = np.int64(indices[h])
                if i > last and seen[i] != s:
                    seen[i] = s
                    rows[count] = i
                    count += 1
        c = child[s]
        while c >= 0:
            for h in range(ends[c], ends[c + 1]):
                i = rows[h]
                if i > last and seen[i] != s:
                    seen[i] = s
                    rows[count] = i
                    count += 1
            c = following[c]
        if parents[s] >= 0:
            following[s] = child[parents[s]]
            child[parents[s]] = s
    return rows, ends


@compiled
def stack_room(sizes: Any, parents: Any) -> int:
    """Largest number of elements that fronts store for their parents at any time."""
    most, top = 0, 0
    base, begins = np.zeros(sizes.size, np.int64), _filled(sizes.size, -1)
    for s in range(sizes.size):
        most = max(most, top + sizes[s] * sizes[s])
        begin = top if begins[s] < 0 else begins[s]
        base[s], top = begin, begin + sizes[s] * sizes[s]
        if sizes[s] > 0 and parents[s] >= 0 and begins[parents[s]] < 0:
            begins[parents[s]] = begin
    return most


@compiled
def eliminate(
    indptr: Any, indices: Any, data: Any, starts: Any, rows: Any, ends: Any, parents: Any,
    panels: Any, at: Any, signs: Any, last: int, stack: Any,
) -> int:  # fmt: skip
    """C diag(σ) Cᵀ of the fronts before the `last`; their contributions are added to its panel.

    A is given by columns, its lower half; the panel of a front holds its columns of C, by rows.
    Returns −1 for a zero pivot, otherwise the number of negative signs.
    """
    n, negative, top = indptr.size - 1, 0, 0
    place = np.empty(n, np.int64)
    child, following = _filled(last + 1, -1), _filled(last + 1, -1)
    base = np.empty(last + 1, np.int64)
    for s in range(last + 1):
        k, m = starts[s + 1] - starts[s], ends[s + 1] - ends[s]
        panel = panels[at[s] : at[s + 1]].reshape((k + m, k))
        for j in range(k):
            place[starts[s] + j] = j
        for h in range(m):
            place[rows[ends[s] + h]] = k + h
        for j in range(k):
            for h in range(indptr[starts[s] + j], indptr[starts[s] + j + 1]):
                panel[place[indices[h]], j] += data[h]
        straight = s == last - 1 and m == starts[s + 2] - starts[s + 1]
        if straight:  # the parent is the last front: add to it without a copy
            room = panels[at[s + 1] : at[s + 2]].reshape((m, m))
        else:
            room = stack[top : top + m * m].reshape((m, m))
            for h in range(top, top + m * m):
                stack[h] = 0.0
        begin, c = top, child[s]
        while c >= 0:
            size = ends[c + 1] - ends[c]
            _add(panel, room, stack[base[c] : base[c] + size * size].reshape((size, size)),
                 place, rows[ends[c] : ends[c + 1]])  # fmt: skip
            begin = min(begin, base[c])
            c = following[c]
        if s == last:
            return negative
        found = _factor(panel, signs[starts[s] : starts[s + 1]])
        if found < 0:
            return -1
        negative += found
        if m > 0:
            _update(room, panel[k:], signs[starts[s] : starts[s + 1]])
        if straight:
            m = 0
        if m > 0:
            for h in range(m * m):
                stack[begin + h] = stack[top + h]
            following[s] = child[parents[s]]
            child[parents[s]] = s
        base[s] = begin
        top = begin + m * m
    return negative


@inner
def _add(panel: Any, room: Any, update: Any, place: Any, rows: Any) -> None:
    """Add the update matrix of a front to the columns and rows of its parent."""
    k = panel.shape[1]
    for a in range(rows.size):
        i = place[rows[a]]
        for b in range(a + 1):
            j = place[rows[b]]
            if j < k:
                panel[i, j] += update[a, b]
            else:
                room[i - k, j - k] += update[a, b]


@inner
def _factor(panel: Any, signs: Any) -> int:
    """Factor the columns of a front in place; returns the negative signs, −1 for a zero pivot."""
    height, k = panel.shape
    negative = 0
    for begin in range(0, k, BLOCK):
        end = min(begin + BLOCK, k)
        for i in range(begin, height):
            for j in range(begin, min(i + 1, end)):
                value = panel[i, j]
                for p in range(begin, j):
                    value -= panel[i, p] * signs[p] * panel[j, p]
                if i == j:
                    if value == 0.0 or not np.isfinite(value):
                        return -1
                    signs[j] = 1.0 if value > 0 else -1.0
                    negative += value < 0
                    panel[j, j] = np.sqrt(abs(value))
                else:
                    panel[i, j] = value / (signs[j] * panel[j, j])
        if end < k:
            left = np.empty((height - end, end - begin))
            right = np.empty((end - begin, k - end))
            for i in range(end, height):
                for p in range(begin, end):
                    left[i - end, p - begin] = panel[i, p]
                    if i < k:
                        right[p - begin, i - end] = panel[i, p] * signs[p]
            _subtract(panel, end, end, _product(left, right))
    for i in range(k):
        for j in range(i + 1, k):
            panel[i, j] = 0.0
    return negative


@inner
def _subtract(out: Any, row: int, column: int, product: Any) -> None:
    """Subtract a matrix from the part of another that starts at this row and column."""
    for i in range(product.shape[0]):
        into, line = out[row + i, column:], product[i]
        for j in range(line.size):
            into[j] -= line[j]


@inner
def _update(room: Any, below: Any, signs: Any) -> None:
    """room −= below diag(σ) belowᵀ, its lower half."""
    m, k = below.shape
    if m * m * k < MAX_LOOP_MULTIPLICATIONS:
        for a in range(m):
            for b in range(a + 1):
                value = 0.0
                for p in range(k):
                    value += below[a, p] * signs[p] * below[b, p]
                room[a, b] -= value
        return
    for begin in range(0, m, STRIP):
        end = min(begin + STRIP, m)
        turned = np.empty((k, end - begin))
        for a in range(begin, end):
            for p in range(k):
                turned[p, a - begin] = below[a, p] * signs[p]
        _subtract(room, begin, begin, _product(below[begin:], turned))


@compiled
def solve_forward(
    starts: Any, rows: Any, ends: Any, panels: Any, at: Any, count: int, B: Any
) -> None:
    """B ← C⁻¹B along the first fronts."""
    columns = B.shape[1]
    for s in range(count):
        k, m = starts[s + 1] - starts[s], ends[s + 1] - ends[s]
        panel = panels[at[s] : at[s + 1]].reshape((k + m, k))
        own = B[starts[s] : starts[s + 1]]
        for i in range(k):
            for p in range(i):
                weight = panel[i, p]
                for c in range(columns):
                    own[i, c] -= weight * own[p, c]
            for c in range(columns):
                own[i, c] /= panel[i, i]
        if m * k * columns < MAX_LOOP_MULTIPLICATIONS:
            for a in range(m):
                i = rows[ends[s] + a]
                for p in range(k):
                    weight = panel[k + a, p]
                    for c in range(columns):
                        B[i, c] -= weight * own[p, c]
        else:
            moved = _product(panel[k:], own)
            for a in range(m):
                i = rows[ends[s] + a]
                for c in range(columns):
                    B[i, c] -= moved[a, c]


@compiled
def solve_backward(
    starts: Any, rows: Any, ends: Any, panels: Any, at: Any, count: int, B: Any
) -> None:
    """B ← C⁻ᵀB along the first fronts, in reverse order."""
    columns = B.shape[1]
    for s in range(count - 1, -1, -1):
        k, m = starts[s + 1] - starts[s], ends[s + 1] - ends[s]
        panel = panels[at[s] : at[s + 1]].reshape((k + m, k))
        own = B[starts[s] : starts[s + 1]]
        if m * k * columns < MAX_LOOP_MULTIPLICATIONS:
            for a in range(m):
                i = rows[ends[s] + a]
                for p in range(k):
                    weight = panel[k + a, p]
                    for c in range(columns):
                        own[p, c] -= weight * B[i, c]
        else:
            around = np.empty((columns, m))
            for a in range(m):
                i = rows[ends[s] + a]
                for c in range(columns):
                    around[c, a] = B[i, c]
            moved = _product(around, panel[k:])
            for p in range(k):
                for c in range(columns):
                    own[p, c] -= moved[c, p]
        for i in range(k - 1, -1, -1):
            for c in range(columns):
                own[i, c] /= panel[i, i]
            for p in range(i):
                weight = panel[i, p]
                for c in range(columns):
                    own[p, c] -= weight * own[i, c]


@compiled
def times(
    starts: Any, rows: Any, ends: Any, panels: Any, at: Any, transposed: bool, sizes: bool,
    B: Any, out: Any,
) -> None:  # fmt: skip
    """out += CB or CᵀB, with `sizes` for the absolute values of the entries of C."""
    for s in range(starts.size - 1):
        k, m = starts[s + 1] - starts[s], ends[s + 1] - ends[s]
        panel = panels[at[s] : at[s + 1]].reshape((k + m, k))
        for a in range(k + m):
            i = starts[s] + a if a < k else rows[ends[s] + a - k]
            for p in range(min(a + 1, k)):
                weight = abs(panel[a, p]) if sizes else panel[a, p]
                target, source = (starts[s] + p, i) if transposed else (i, starts[s] + p)
                for c in range(B.shape[1]):
                    out[target, c] += weight * B[source, c]
