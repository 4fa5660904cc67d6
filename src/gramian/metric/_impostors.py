"""All triplets that a metric violates, found in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ROWS, COLUMNS = 1024, 2048
"""Anchors and others whose distances are computed at a time: 8 MB."""

BLOCK = 4_000_000
"""Numbers that a block of differences may hold."""


def violated_triplets(
    Z: Array, classes: Indices, near: Indices, anchors: Indices, *, margin: float = 1.0
) -> Iterator[tuple[Indices, Array]]:
    """(i, j, l) with 1 + d(i, j) − d(i, l) > 0 and those numbers, block after block.

    With a larger `margin` than 1 in its place also those that are nearly violated.

    i runs over the anchors, j over its targets `near[i]`, l over all samples of other classes; d
    is the squared distance of the rows of Z. Candidates come from products in float32, with room
    for their rounding, and are then computed again in full.
    """
    reach = margin + _distances(Z, anchors[:, None], near[anchors]).max(axis=1)
    for c in np.unique(classes[anchors]):
        mine = np.flatnonzero(classes[anchors] == c)
        rest = np.flatnonzero(classes != c)
        left, right = _halves(Z, anchors[mine], reach[mine], rest)
        for start in range(0, mine.size, ROWS):
            i = anchors[mine[start : start + ROWS]]
            row, column = _negative(left[start : start + ROWS], right)
            if row.size:
                yield _margins(Z, i[row], near[i[row]], rest[column], 1.0 - margin)


def _halves(Z: Array, anchors: Indices, reach: Array, rest: Indices) -> tuple[Array, Array]:
    """A and B with (AB)_il = d(i, l) − reach_i − room, so that one product finds candidates."""
    squares = np.sum(Z * Z, axis=1)
    largest = float(squares.max(initial=0.0)) + float(reach.max(initial=0.0))
    room = 4 * (Z.shape[1] + 2) * np.finfo(np.float32).eps * largest
    ones = np.ones((anchors.size, 1))
    left = np.hstack([-2 * Z[anchors], (squares[anchors] - reach - room)[:, None], ones])
    right = np.vstack([Z[rest].T, np.ones((1, rest.size)), squares[rest]])
    return left.astype(np.float32), np.ascontiguousarray(right, dtype=np.float32)


def _negative(left: Array, right: Array) -> tuple[Indices, Indices]:
    """Where the product of the two is below 0."""
    found = []
    for start in range(0, right.shape[1], COLUMNS):
        part = right[:, start : start + COLUMNS]
        flat = np.flatnonzero(left @ part < 0)
        row, column = np.divmod(flat, part.shape[1])
        found.append((row, column + start))
    rows, columns = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(columns)


def _margins(
    Z: Array, i: Indices, targets: Indices, l: Indices, least: float
) -> tuple[Indices, Array]:
    """(i, j, l) for every target j where 1 + d(i, j) − d(i, l) is above `least`, and those."""
    far = _distances(Z, i, l)
    unique, where = np.unique(i, return_inverse=True)
    first = np.zeros(unique.size, dtype=np.intp)
    first[where] = np.arange(i.size)
    close = _distances(Z, unique[:, None], targets[first])[where]
    margins = 1.0 + close - far[:, None]
    row, column = np.nonzero(margins > least)
    triplets = np.column_stack([i[row], targets[row, column], l[row]])
    return triplets, margins[row, column]


def _distances(Z: Array, i: Indices, j: Indices) -> Array:
    """‖z_i − z_j‖² for arrays of indices that broadcast, in blocks of pairs."""
    i, j = np.broadcast_arrays(i, j)
    flat_i, flat_j = i.ravel(), j.ravel()
    found = np.empty(flat_i.size)
    step = max(1, BLOCK // max(1, Z.shape[1]))
    for start in range(0, found.size, step):
        part = slice(start, start + step)
        difference = Z[flat_i[part]] - Z[flat_j[part]]
        found[part] = np.einsum("pr,pr->p", difference, difference)
    return found.reshape(i.shape)
