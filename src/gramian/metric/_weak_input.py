"""Input of pairs and triplets: vectors, or indices into samples.

Both are converted to samples and index arrays and validated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from gramian.arrays.samples import refuse_masked

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ROLES = ("anchor", "same", "other")
NAMES = {2: "pairs", 3: "triplets"}

BLOCK = 4_000_000
"""Number of elements of a block of differences."""


def tuples(given: Any, X: Any, width: int) -> tuple[Any, Indices]:
    """Samples and (t, width) indices into them.

    `given` holds (t, width, d) vectors, or (t, width) indices into X, which is already validated.
    Repeated vectors become one sample.
    """
    if X is None:
        points = vectors(given, width)
        samples, indices = distinct_rows(points.reshape(-1, points.shape[2]))
        return samples, indices.reshape(-1, width)
    indices = as_indices(given, width)
    n, name = X.shape[0], NAMES[width]
    outside = (indices < 0) | (indices >= n)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(
            f"{name}[{row}] has the index {indices[row, column]}, "
            f"but X has {n} samples (0 to {n - 1})"
        )
    return X, indices


def touched(samples: Any, indices: Indices) -> tuple[Any, Indices]:
    """The samples that occur in the indices, in their order, and the indices into these.

    Other samples must not affect the result: neither the mean nor the scale nor the number of
    samples per direction.
    """
    named, places = np.unique(indices, return_inverse=True)
    if named.size == samples.shape[0]:
        return samples, indices
    return samples[named], places.reshape(indices.shape)


def vectors(given: Any, width: int) -> Array:
    """Validated (t, width, d) vectors."""
    name = NAMES[width]
    refuse_masked(given, name)
    if np.ndim(given) == 2 and np.asarray(given).shape[1] == width:
        raise ValueError(
            f"{name} has shape {np.asarray(given).shape}: pass X= with the samples that these "
            f"indices mean, or vectors of shape (n_{name}, {width}, n_features)"
        )
    _refuse_none(given, name)
    points = check_array(given, allow_nd=True, dtype=[np.float64, np.float32], input_name=name)
    if points.ndim != 3 or points.shape[1] != width:
        raise ValueError(
            f"{name} must have shape (n_{name}, {width}, n_features), got {points.shape}"
        )
    return points


def as_indices(given: Any, width: int) -> Indices:
    """Validated (t, width) integers."""
    refuse_masked(given, NAMES[width])
    indices, name = np.asarray(given), NAMES[width]
    _refuse_none(indices, name)
    if indices.ndim != 2 or indices.shape[1] != width:
        raise ValueError(
            f"with X given, {name} are indices of shape (n_{name}, {width}), got {indices.shape}"
        )
    if not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices of {name} must be whole numbers, got {indices.dtype}")
    return indices.astype(np.intp, copy=False)


def distinct_rows(points: Array) -> tuple[Array, Indices]:
    """The distinct rows, in an order determined by their content, and the index of each row.

    Rows are compared by a projection, and in full if it agrees.
    """
    key = row_keys(points)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    same = np.ones(key.size, dtype=bool)
    for rows in blocks(key.size, points.shape[1]):
        same[rows] = np.all(points[rows] == points[first[which[rows]]], axis=1)
    if not same.all():
        _, first, which = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return points[first], which.ravel()


def split_pairs(X: Any, pairs: Indices, same: ArrayLike) -> tuple[Indices, Indices]:
    """Similar and dissimilar pairs; ValueError if no metric can satisfy them."""
    alike = marks(same, pairs.shape[0])
    itself = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if itself.size:
        raise ValueError(f"pairs[{itself[0]}] is of a point with itself: leave it out")
    if alike.all() or not alike.any():
        kind, other = ("similar", "dissimilar") if alike.all() else ("dissimilar", "similar")
        raise ValueError(
            f"all {alike.size} pairs are {kind}: a metric is learned from the difference between "
            f"similar and dissimilar pairs, so add {other} ones"
        )
    _refuse_contradictions(X.shape[0], pairs, alike)
    dissimilar = pairs[~alike]
    _refuse_identical(X, dissimilar, np.flatnonzero(~alike), "pairs")
    return pairs[alike], dissimilar


def marks(same: ArrayLike, count: int) -> NDArray[np.bool_]:
    """The mask of pairs labelled the same, from booleans or ±1."""
    refuse_masked(same, "same")
    values = np.asarray(same)
    if values.shape != (count,):
        raise ValueError(f"same must have one entry for each of {count} pairs, got {values.shape}")
    if values.dtype == bool:
        return values
    if not np.issubdtype(values.dtype, np.number) or not np.isin(values, (-1, 1)).all():
        found = np.unique(values)[:4].tolist()
        raise ValueError(
            f"same must be booleans, or +1 (same) and −1 (not the same); got {found} among its "
            "values. For 0 and 1 pass same == 1"
        )
    return values == 1


def check_triplets(X: Any, triplets: Indices) -> None:
    """Raise ValueError for triplets that no metric can satisfy."""
    for one, two in ((0, 1), (0, 2), (1, 2)):
        equal = np.flatnonzero(triplets[:, one] == triplets[:, two])
        if equal.size:
            raise ValueError(
                f"triplets[{equal[0]}] has one point as {ROLES[one]} and as {ROLES[two]}: "
                "leave it out"
            )
    _refuse_reversed(X.shape[0], triplets)
    _refuse_identical(X, triplets[:, [0, 2]], np.arange(triplets.shape[0]), "triplets")


def _refuse_contradictions(n: int, pairs: Indices, alike: NDArray[np.bool_]) -> None:
    keys = pairs.min(axis=1).astype(np.int64) * n + pairs.max(axis=1)
    both = np.intersect1d(keys[alike], keys[~alike])
    if both.size:
        at = np.flatnonzero(keys == both[0])
        one, two = at[alike[at]][0], at[~alike[at]][0]
        raise ValueError(
            f"contradictory pairs: pairs[{one}] is marked the same and pairs[{two}], of the same "
            f"two points, is not ({both.size} such in all)"
        )


def _refuse_reversed(n: int, triplets: Indices) -> None:
    """(i, j, l) and (i, l, j) cannot both hold."""
    ends = np.sort(triplets[:, 1:], axis=1).astype(np.int64) @ [n, 1]
    _, pair = np.unique(ends, return_inverse=True)
    key = triplets[:, 0].astype(np.int64) * (int(pair.max()) + 1) + pair
    rising = triplets[:, 1] < triplets[:, 2]
    both = np.intersect1d(key[rising], key[~rising])
    if both.size:
        where = np.flatnonzero(key == both[0])
        one, two = where[rising[where]][0], where[~rising[where]][0]
        raise ValueError(
            f"contradictory triplets: triplets[{one}] and triplets[{two}] rank the same two "
            f"points the other way round ({both.size} such in all)"
        )


def _refuse_identical(X: Any, pairs: Indices, where: Indices, name: str) -> None:
    key = row_keys(X)
    suspects = np.flatnonzero(key[pairs[:, 0]] == key[pairs[:, 1]])
    for rows in blocks(suspects.size, X.shape[1]):
        i, j = pairs[suspects[rows]].T
        differing = np.ravel(np.asarray((X[i] != X[j]).sum(axis=1)))
        if not differing.all():
            at = suspects[rows][np.argmin(differing)]
            raise ValueError(
                f"{name}[{where[at]}] marks samples {pairs[at, 0]} and {pairs[at, 1]} as "
                "different, but they are identical: no metric can tell them apart. Leave it out"
            )


def _refuse_none(given: Any, name: str) -> None:
    if np.shape(given)[:1] == (0,):
        raise ValueError(f"there are no {name}: nothing to learn from")


def blocks(count: int, width: int) -> Iterator[slice]:
    """Slices of rows such that a block of this width stays small."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(count, start + step)) for start in range(0, count, step))


def row_keys(X: Any) -> Array:
    """One number per row: equal for equal rows, and rarely for different ones."""
    v = np.cos(np.arange(X.shape[1]) + 1.0).astype(X.dtype)
    return X @ v if sp.issparse(X) else np.einsum("ij,j->i", X, v)
