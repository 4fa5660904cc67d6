"""Pairs and triplets from labels, the training constraints of local metric learners.

Pairs are (p, 2) and triplets (t, 3) integer arrays, (anchor, same, other) in that order. Nearest
neighbours are found by `gramian.neighbours`, without n × n distances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays.errstate import under_own_errstate
from gramian.arrays.samples import checked_samples, class_indices
from gramian.common.parameters import whole_number
from gramian.common.random_state import generator
from gramian.common.types import Indices
from gramian.neighbours import Neighbours, nearest

__all__ = [
    "all_pairs",
    "local_pairs",
    "local_triplets",
    "other_class_neighbors",
    "random_pairs",
    "random_triplets",
    "same_class_neighbors",
]


EQUAL, BESIDE = 1e-9, 4
"""Relative difference of squared distances that may be rounding error, and the number of samples
beyond the k nearest that are checked for ties."""


@under_own_errstate
def same_class_neighbors(
    X: Any,
    y: ArrayLike,
    k: int = 3,
    *,
    fewer: bool = False,
    approximate: bool = False,
    device: Any = None,
) -> Indices:
    """The k nearest samples of the same class for every sample: its target neighbours.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    y : labels of shape (n_samples,)
    k : int
    fewer : bool
        Allow classes with at most k samples: they have fewer targets, at least one, and the nearest
        is repeated to fill the row. Otherwise such a class raises an error.
    approximate : bool
        Allow missed neighbours in classes of at least `gramian.neighbours.APPROXIMATE_FROM`
        samples; needs the extra ``gramian[neighbours]``.
    device : None, "cpu", "cuda" or similar
        Device of the search.

    Returns
    -------
    array of shape (n_samples, k)
        Indices, nearest first. Identical samples are neighbours of each other.
    """
    X, classes, names = _labelled(X, y)
    k = whole_number(k, "k")
    check_class_sizes(classes, names, 1 if fewer else k)
    found = np.empty((classes.size, k), dtype=np.intp)
    for members in _members(classes):
        few = min(k, members.size - 1)
        sought = few if approximate else min(few + BESIDE, members.size - 1)
        search = nearest(X[members], sought, approximate=approximate, device=device)
        near = _first(search, few)
        found[members, : near.shape[1]] = members[near]
        found[members, near.shape[1] :] = members[near[:, :1]]
    return found


@under_own_errstate
def other_class_neighbors(
    X: Any, y: ArrayLike, k: int = 3, *, approximate: bool = False, device: Any = None
) -> Indices:
    """The k nearest samples of any other class for every sample: its impostors.

    Parameters and return as in `same_class_neighbors`.
    """
    X, classes, names = _labelled(X, y)
    k = whole_number(k, "k")
    sizes = np.bincount(classes)
    if classes.size - sizes.max() < k:
        raise ValueError(
            f"only {classes.size - sizes.max()} samples are outside class "
            f"{plainly(names[sizes.argmax()])!r}, fewer than k = {k}: decrease k"
        )
    if not approximate:
        sought = min(k + BESIDE, classes.size - int(sizes.max()))
        return _first(nearest(X, sought, apart=classes, device=device), k).astype(np.intp)
    found = np.empty((classes.size, k), dtype=np.intp)
    for members in _members(classes):
        rest = np.flatnonzero(classes != classes[members[0]])
        near = nearest(X[rest], k, queries=X[members], approximate=True, device=device)
        found[members] = rest[near.indices]
    return found


@under_own_errstate
def local_pairs(X: Any, y: ArrayLike, k: int = 3, **options: Any) -> tuple[Indices, Indices]:
    """Similar pairs of every sample and its k targets, dissimilar pairs with its k impostors.

    DML-eig §5. Each is (n·k, 2), the sample first; a pair of mutual neighbours counts twice, as
    there. `options` are those of `same_class_neighbors`.
    """
    near = same_class_neighbors(X, y, k, **options)
    options.pop("fewer", None)
    return as_pairs(near), as_pairs(other_class_neighbors(X, y, k, **options))


@under_own_errstate
def local_triplets(X: Any, y: ArrayLike, k: int = 3, **options: Any) -> Indices:
    """(anchor, target, impostor) for every sample, its k targets and k impostors: (n·k², 3)."""
    near = same_class_neighbors(X, y, k, **options)
    options.pop("fewer", None)
    return as_triplets(near, other_class_neighbors(X, y, k, **options))


def as_pairs(neighbors: Indices) -> Indices:
    """(sample, neighbour) for each entry of an (n, k) array of neighbours."""
    n, k = neighbors.shape
    return np.column_stack([np.repeat(np.arange(n), k), neighbors.ravel()])


def as_triplets(near: Indices, far: Indices) -> Indices:
    """(sample, target, impostor) for every combination of each row."""
    n, k = near.shape
    return np.column_stack(
        [
            np.repeat(np.arange(n), k * far.shape[1]),
            np.repeat(near.ravel(), far.shape[1]),
            np.tile(far, (1, k)).ravel(),
        ]
    )


def all_pairs(y: ArrayLike) -> tuple[Indices, Indices]:
    """All pairs within a class and all pairs across classes: n(n − 1)/2 in total, each once."""
    _, classes = class_indices(y)
    i, j = np.triu_indices(classes.size, 1)
    same = classes[i] == classes[j]
    pairs = np.column_stack([i, j])
    return pairs[same], pairs[~same]


def random_pairs(y: ArrayLike, count: int, *, random_state: Any = None) -> tuple[Indices, Indices]:
    """`count` random similar and `count` random dissimilar pairs of different samples.

    Pairs may repeat; the same seed gives the same pairs.
    """
    classes, rng = class_indices(y)[1], generator(random_state)
    similar = _similar_pairs(y, count, rng, "similar pairs")
    first = rng.integers(0, classes.size, count)
    return similar, np.column_stack([first, _drawn(rng, classes, first, same=False)])


def random_triplets(y: ArrayLike, count: int, *, random_state: Any = None) -> Indices:
    """`count` random triplets (anchor, same, other); the same seed gives the same triplets."""
    rng = generator(random_state)
    pairs = _similar_pairs(y, count, rng, "triplets")
    other = _drawn(rng, class_indices(y)[1], pairs[:, 0], same=False)
    return np.column_stack([pairs, other])


def _similar_pairs(y: ArrayLike, count: int, rng: Any, name: str) -> Indices:
    names, classes = class_indices(y)
    count = whole_number(count, "count")
    _need_two(names)
    partnered = np.flatnonzero(np.bincount(classes)[classes] > 1)
    if partnered.size == 0:
        raise ValueError(f"every class has only one member, so there are no {name}")
    first = rng.choice(partnered, count)
    return np.column_stack([first, _drawn(rng, classes, first, same=True)])


def check_class_sizes(classes: Indices, names: Any, k: int) -> None:
    """Raise ValueError for a class with fewer than k + 1 members."""
    k = whole_number(k, "n_neighbors")
    sizes = np.bincount(classes)
    short = int(np.argmin(sizes))
    name = plainly(names[short])
    if sizes[short] == 1:
        raise ValueError(
            f"class {name!r} has a single sample, which has no neighbour of its own "
            "class: remove the class or add samples to it"
        )
    if sizes[short] <= k:
        raise ValueError(
            f"class {name!r} has {sizes[short]} samples, too few for {k} neighbours "
            f"each: use at most {sizes[short] - 1} neighbours, or remove the class"
        )


def plainly(label: Any) -> Any:
    """A label as a Python object instead of a NumPy scalar."""
    return label.item() if isinstance(label, np.generic) else label


def _labelled(X: Any, y: ArrayLike) -> tuple[Any, Indices, Any]:
    from sklearn.utils.validation import check_consistent_length

    X = checked_samples(X)
    names, classes = class_indices(y)
    check_consistent_length(X, classes)
    _need_two(names)
    return X, classes, names


def _need_two(names: Any) -> None:
    if names.size < 2:
        raise ValueError("y has only one class; constraints need at least two")


def _members(classes: Indices) -> Iterator[Indices]:
    for c in range(int(classes.max()) + 1):
        yield np.flatnonzero(classes == c)


def _first(found: Neighbours, k: int) -> Indices:
    """The k nearest; ties up to rounding are broken by the smaller index."""
    squares, first = found.sq_distances, found.indices[:, :k]
    apart = squares[:, 1:] > (1.0 + EQUAL) * squares[:, :-1]
    tied = np.flatnonzero(~apart.all(axis=1))
    if tied.size == 0:
        return first
    level = np.cumsum(np.pad(apart[tied], ((0, 0), (1, 0))), axis=1)
    order = np.lexsort((found.indices[tied], level), axis=1)[:, :k]
    first = first.copy()
    first[tied] = np.take_along_axis(found.indices[tied], order, axis=1)
    return first


def _drawn(rng: Any, classes: Indices, anchor: Indices, *, same: bool) -> Indices:
    """A random partner for each anchor, of its class or of another, using the sorted order."""
    order = np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    starts = np.cumsum(sizes) - sizes
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    own, start = sizes[classes[anchor]], starts[classes[anchor]]
    if same:
        step = rng.integers(1, own)
        return order[start + (place[anchor] - start + step) % own]
    step = rng.integers(0, classes.size - own)
    return order[(start + own + step) % classes.size]
