"""Input of metric learners: pairs and triplets, weights of classes, and an order of the samples.

A fit sorts its samples by their content first. All results (sums, ties of nearest neighbours,
folds) are then independent of the order of the rows and the names of the classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array

from gramian.arrays.samples import (
    UNKNOWN,
    in_blocks,
    integers,
    is_missing,
    refuse_masked,
    refuse_odd_labels,
    steps,
    varying_columns,
)
from gramian.common.parameters import NOT_NEGATIVE, Rule
from gramian.common.types import Array, Indices
from gramian.common.warnings import warn
from gramian.constraints import plainly

ROLES = ("anchor", "same", "other")
NAMES = {2: "pairs", 3: "triplets"}

BLOCK = 4_000_000
"""Number of elements of a block of differences."""

CLASS_WEIGHT = Rule(
    '"balanced", a mapping of classes to weights, or None',
    lambda value: value is None or isinstance(value, Mapping) or _is_balanced(value),
)


def plain_labels(y: Any) -> Any:
    """Labels without missing ones; numbers that are stored as objects become numbers."""
    if y is None:
        return None
    refuse_odd_labels(y)
    labels = np.asarray(y)
    if labels.dtype == object and all(isinstance(label, Real) for label in labels.flat):
        return np.array(labels.tolist())
    return y


def refuse_continuous(y: NDArray[Any]) -> None:
    """Raise ValueError for measurements in place of classes."""
    with np.errstate(invalid="ignore"):  # scikit-learn converts large labels to int
        kind = type_of_target(y)
    if kind == "unknown":
        raise ValueError(
            f"Unknown label type: y holds objects of type {type(y[0]).__name__}: convert them to "
            "strings or integers"
        )
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. A metric is learned from classes, and y has "
            f"{np.unique(y).size} different values that are not whole numbers or names: cut them "
            "into groups first (pandas.qcut, numpy.digitize)"
        )


def labelled_rows(y: ArrayLike) -> NDArray[np.bool_]:
    """Mask of the samples of known class; −1 marks the others, as in scikit-learn.

    −1 is a class if there are fewer than two others, or another negative one.
    """
    y = np.asarray(y)
    everything = np.ones(y.shape, dtype=bool)
    if y.dtype.kind not in "iuf" or np.min(y, initial=0) != UNKNOWN:
        return everything
    known: NDArray[np.bool_] = y != UNKNOWN
    return known if np.unique(y[known]).size > 1 else everything


def warn_of_unknown(y: NDArray[Any], known: NDArray[np.bool_]) -> None:
    """Warn if the labels are 0, 1 and unknown: they look like the classes −1, 0 and 1."""
    if not known.all() and np.unique(y[known]).tolist() == [0, 1]:
        warn(
            f"y is -1 for {int(np.sum(~known))} of {y.size} samples, which are left out as samples "
            "of unknown class: if -1 is a class, give it another name"
        )


def in_content_order(samples: Any, indices: Indices) -> tuple[Any, Indices]:
    """Samples in an order determined by their content, and the indices into them."""
    order = canonical_rows(samples)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return samples[order], place[indices]


def sorted_pairs(pairs: Indices) -> tuple[Indices, Indices]:
    """Pairs with the smaller index first, sorted, and the position of each one before."""
    ends = np.sort(pairs, axis=1)
    order = np.lexsort(ends.T[::-1])
    return ends[order], order


def canonical_rows(X: Any) -> Indices:
    """The order of the rows by two projections; only rows equal in both keep their order."""
    first, second = projections(X)
    return np.lexsort((second, first))


def canonical_labels(
    X: Any,
    classes: Indices,
    weights: Array | None = None,
    varying: NDArray[np.bool_] | None = None,
) -> tuple[Indices, Indices]:
    """The order of labelled rows, and the number of each class in a canonical order.

    Identical rows are ordered by their class, and then by their weight. `varying` is the mask of
    the columns that are not constant, if known.
    """
    first, second = projections(X, varying)
    number = _class_numbers(first, classes)
    order = np.argsort(first, kind="stable")
    ahead = first[order]
    if np.all(ahead[1:] > ahead[:-1]):
        return order, number
    last = np.zeros(classes.size) if weights is None else weights
    return np.lexsort((last, number[classes], second, first)), number


def _class_numbers(key: Array, classes: Indices) -> Indices:
    """Numbers of the classes by size, ties broken by the ranks of the keys of their rows."""
    sizes = np.bincount(classes)
    ranked = np.argsort(sizes, kind="stable").tolist()
    if np.unique(sizes).size < sizes.size:
        place = np.unique(key, return_inverse=True)[1]
        members = np.split(place[np.lexsort((place, classes))], np.cumsum(sizes)[:-1])
        ranked.sort(key=lambda c: (members[c].size, members[c].tolist()))
    number = np.empty(len(ranked), dtype=np.intp)
    number[ranked] = np.arange(len(ranked))
    return number


def projections(X: Any, varying: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Two numbers per row: equal for equal rows, and rarely both equal for different rows.

    Each is a sum over the entries of its row only. Constant columns do not count.
    """
    used = np.flatnonzero(varying_columns(X) if varying is None else varying)
    directions = np.zeros((2, X.shape[1]))
    angles = np.arange(used.size) + 1.0
    directions[0, used], directions[1, used] = np.cos(angles), np.sin(angles)
    if sp.issparse(X):
        cosines, sines = (X.astype(float, copy=False) @ v for v in directions)
        return cosines, sines
    found = np.empty((2, X.shape[0]))

    def project(_: int, block: slice) -> None:
        for rows in steps(X, block):
            part = np.ascontiguousarray(X[rows], dtype=float)
            for place, v in enumerate(directions):
                found[place, rows] = np.einsum("ij,j->i", part, v)

    in_blocks(project, X)
    return found[0], found[1]


def _is_balanced(class_weight: Any) -> bool:
    return isinstance(class_weight, str) and class_weight == "balanced"


def weights_of_classes(
    class_weight: Any, names: NDArray[Any], classes: NDArray[np.integer], counts: Array
) -> Array:
    """Weight of each sample due to its class.

    Parameters
    ----------
    class_weight : "balanced" or a mapping
        "balanced" gives all classes equal total weight, n/(k n_c) for each of the n_c samples of a
        class among n samples of k classes; a mapping gives weights by class name, default 1. Names
        that do not occur in y are allowed, because a subset of the samples may lack classes.
    names : the classes
    classes : the class of each sample
    counts : array of shape (n_samples,)
        Given weights of the samples.
    """
    CLASS_WEIGHT.check(class_weight, "class_weight")
    if _is_balanced(class_weight):
        sizes = np.bincount(classes, weights=counts, minlength=len(names))
        there = np.maximum(sizes, np.finfo(float).tiny)
        return np.asarray(sizes.sum() / (np.count_nonzero(sizes) * there))[classes]
    known = {plainly(name) for name in names}
    others = [name for name in class_weight if name not in known]
    if others and known - set(class_weight):
        raise ValueError(f"class_weight has a weight for {others[0]!r}, which is no class of y")
    for name, weight in class_weight.items():
        NOT_NEGATIVE.check(weight, f"class_weight[{name!r}]")
    return np.array([float(class_weight.get(plainly(name), 1.0)) for name in names])[classes]


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
    return integers(indices, f"indices of {name}").astype(np.intp, copy=False)


def distinct_rows(points: Array) -> tuple[Array, Indices]:
    """The distinct rows, in an order determined by their content, and the index of each row.

    Rows are compared by a projection, and in full if it agrees.
    """
    key, _ = projections(points)
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
    if values.dtype == object and not any(map(is_missing, values)):
        values = np.array(values.tolist())
    if values.dtype == bool:
        return values
    if not np.issubdtype(values.dtype, np.number) or not np.isin(values, (-1, 1)).all():
        found = list(dict.fromkeys(values.tolist()))[:4]
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
    both = _in_both(pairs.min(axis=1).astype(np.int64) * n + pairs.max(axis=1), alike)
    if both is not None:
        raise ValueError(
            f"contradictory pairs: pairs[{both[0]}] is marked the same and pairs[{both[1]}], of "
            f"the same two points, is not ({both[2]} such in all)"
        )


def _in_both(keys: Indices, mask: NDArray[np.bool_]) -> tuple[int, int, int] | None:
    """The positions of a key inside and outside of a mask, and the number of such keys."""
    both = np.intersect1d(keys[mask], keys[~mask])
    if both.size == 0:
        return None
    at = np.flatnonzero(keys == both[0])
    return int(at[mask[at]][0]), int(at[~mask[at]][0]), both.size


def _refuse_reversed(n: int, triplets: Indices) -> None:
    """(i, j, l) and (i, l, j) cannot both hold."""
    ends = np.sort(triplets[:, 1:], axis=1).astype(np.int64) @ [n, 1]
    _, pair = np.unique(ends, return_inverse=True)
    key = triplets[:, 0].astype(np.int64) * (int(pair.max()) + 1) + pair
    both = _in_both(key, triplets[:, 1] < triplets[:, 2])
    if both is not None:
        raise ValueError(
            f"contradictory triplets: triplets[{both[0]}] and triplets[{both[1]}] rank the same "
            f"two points the other way round ({both[2]} such in all)"
        )


def _refuse_identical(X: Any, pairs: Indices, where: Indices, name: str) -> None:
    key, _ = projections(X)
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
        raise ValueError(f"there are no {name}: pass at least one")


def blocks(count: int, width: int) -> Iterator[slice]:
    """Slices of rows such that a block of this width stays small."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(count, start + step)) for start in range(0, count, step))
