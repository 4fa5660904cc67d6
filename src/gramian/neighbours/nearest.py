"""The public search function, and the choice of the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gramian.arrays.places import Place, place, side_by_side
from gramian.arrays.samples import check_size, far_means, shifted, with_short_indices
from gramian.common import clock
from gramian.common.memory import check_memory, device_limit
from gramian.common.types import Array, Indices
from gramian.neighbours import _approximate, _plain, _tree

MAX_PLAIN_WORK = 1e10
"""Pairs of samples times (features + 100) up to which NumPy is used: about a second, the time to
load numba and its kernels."""

DEVICE_COPIES, MIN_DEVICE_SAMPLES = 8, 1024
"""Copies of each sample on a device during a search (itself, a query, both centred), and the
smallest number of samples that must fit."""

SMALL_SEARCH = 2.0**28
"""Bytes of a search on a device for which its free memory is not read, which takes 1 ms."""

MAX_SQUARED = 1e150
"""Size of entries whose squares neither overflow nor, if they are as small, underflow."""

MIN_DENSE_FRACTION, MAX_DENSE_ELEMENTS = 0.3, 20_000_000
"""Density above which CSR is searched as a dense array, and the number of elements up to which it
always is."""


@dataclass(frozen=True)
class Neighbours:
    """The result of a search.

    Attributes
    ----------
    indices : array of shape (n_queries, k)
        Sorted by distance.
    sq_distances : array of shape (n_queries, k)
    recall : float
        The fraction of the true neighbours found: 1 for an exact search, otherwise estimated on a
        sample of the queries.
    """

    indices: Indices
    sq_distances: Array
    recall: float = 1.0


def nearest(
    X: Any,
    k: int,
    *,
    queries: Any = None,
    apart: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    approximate: bool = False,
    device: Any = None,
) -> Neighbours:
    """The k nearest rows of X for each query, nearest first, ties broken by the smaller index.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features), validated
    k : int
    queries : array or CSR matrix with the same features, optional
        By default the rows of X, each excluding itself.
    apart : integer labels of shape (n_samples,), or of both the samples and the queries, optional
        Samples with the label of a query are excluded.
    approximate : bool
        Allow missed neighbours if there are at least `APPROXIMATE_FROM` samples; this needs the
        extra ``gramian[neighbours]``. With `apart` the search is exact.
    device : None, "cpu", "cuda" or similar
        Device of the search; on a GPU every search is exact.
    """
    alone = queries is None
    X, queries = _alike(X, X if alone else queries)
    for samples in [X] if alone else [X, queries]:
        check_size(samples, "X", least=1 / MAX_SQUARED, most=MAX_SQUARED)
    marks = _marks(X, queries, alone, apart)
    clock.phase(f"the neighbours of {queries.shape[0]:,} samples")
    _check_enough(marks, k)
    labelled, there = apart is not None, place(device)
    if not there.is_host:
        return Neighbours(*_on_device(X, queries, k, marks, there, alone=not labelled))
    if approximate and not labelled and X.shape[0] >= _approximate.APPROXIMATE_FROM:
        return Neighbours(*_approximate.search(X, queries, k, marks))
    if not labelled and _tree.fits(X):
        return Neighbours(*_tree.search(X, queries, k, marks))
    return Neighbours(*exact(X, queries, k, marks))


def search_mixtures(
    spaces: Sequence[tuple[Array, Array]], weights: Array, k: int, *, device: Any = None
) -> tuple[Indices, Array]:
    """The k samples nearest to each query for every combination Σ_p w_p d_p of squared distances.

    Each space has its own coordinates of samples and queries, and each row of `weights` is a
    combination. The returned indices and combined distances have shape (combinations, queries, k).
    On the host, scores are computed once per space and used for all combinations; on a device each
    combination is searched in the coordinates √w_p x_p side by side.
    """
    there = place(device)
    if there.is_host:
        return _plain.search_mixtures(spaces, weights, k)
    spaces = [(there.put(X), there.put(queries)) for X, queries in spaces]
    marks, found = _marks(*spaces[0], False, None), []
    for mixture in np.sqrt(weights):
        used = [(float(w), *space) for w, space in zip(mixture, spaces, strict=True) if w]
        X, queries = (side_by_side(w * rows[side] for w, *rows in used) for side in (0, 1))
        found.append(_on_device(X, queries, k, marks, there, alone=True))
    indices, distances = zip(*found, strict=True)
    return np.stack(indices), np.stack(distances)


def _on_device(
    X: Any, queries: Any, k: int, marks: tuple[Indices, Indices], there: Place, *, alone: bool
) -> tuple[Indices, Array]:
    """Brute force on a device, with sparse rows as dense blocks that fit into its memory."""
    each = 8.0 * DEVICE_COPIES * (X.shape[1] + 1)
    need = (X.shape[0] + queries.shape[0]) * each
    free = need if need <= min(SMALL_SEARCH, device_limit()) else there.free_memory()
    check_memory(
        min(X.shape[0], MIN_DEVICE_SAMPLES) * each,
        f"samples of {X.shape[1]:,} features are searched as dense arrays on a device",
        "search on the processor (device=None), or project the features first",
        free,
    )
    return import_module("gramian.arrays.torch").nearest(
        X, queries, k, marks, there.device, int(min(free / each, 2**31)), alone=alone
    )


def exact(X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]) -> tuple[Indices, Array]:
    """The k nearest rows of X for each query, except those of equal marks, by brute force."""
    plain = _is_plain(X, queries)
    kernels: Any = _plain if plain else import_module("gramian.arrays.neighbours")
    return kernels.search(X, queries, k, marks)


def _alike(X: Any, queries: Any) -> tuple[Any, Any]:
    """Both dense or both sorted CSR, of one dtype; the same object if they are equal."""
    same = queries is X
    forms = (X,) if same else (X, queries)
    if not all(sp.issparse(rows) for rows in forms) or _as_dense(X, queries):
        forms = tuple(rows.toarray() if sp.issparse(rows) else rows for rows in forms)
    else:
        shift = far_means(X)  # products of samples far from the origin would cancel
        if shift.any():
            forms = tuple(shifted(rows, shift) for rows in forms)
        forms = tuple(_in_order(rows) for rows in forms)
    if len({rows.dtype for rows in forms}) > 1:
        forms = tuple(rows.astype(np.float64) for rows in forms)
    return forms[0], forms[-1]


def _marks(X: Any, queries: Any, alone: bool, apart: Any) -> tuple[Indices, Indices]:
    """Marks of samples and queries; pairs with equal marks are excluded."""
    if apart is not None:
        if isinstance(apart, tuple):
            return np.asarray(apart[0], dtype=np.int32), np.asarray(apart[1], dtype=np.int32)
        labels = np.asarray(apart, dtype=np.int32)
        return labels, labels
    own = np.arange(X.shape[0], dtype=np.int32)
    return own, own if alone else np.full(queries.shape[0], -1, dtype=np.int32)


def _check_enough(marks: tuple[Indices, Indices], k: int) -> None:
    """Raise ValueError if k exceeds the number of available samples."""
    known, counts = np.unique(marks[0], return_counts=True)
    own = counts[np.isin(known, marks[1])].max(initial=0)
    most = marks[0].size - int(own)
    if not 1 <= k <= most:
        raise ValueError(f"k = {k} neighbours requested, but a query has only {most} other samples")


def _is_plain(X: Any, queries: Any) -> bool:
    return float(X.shape[0]) * queries.shape[0] * (X.shape[1] + 100) <= MAX_PLAIN_WORK


def _as_dense(X: Any, queries: Any) -> bool:
    """Whether CSR is dense or small enough to be searched as a dense array."""
    entries = X.shape[0] * X.shape[1]
    return X.nnz > MIN_DENSE_FRACTION * entries or (
        _is_plain(X, queries) and entries <= MAX_DENSE_ELEMENTS
    )


def _in_order(X: Any) -> Any:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return with_short_indices(X)
